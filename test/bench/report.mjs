/** Says what was measured, as text, and whether it is within the bounds. */
import { cpus, totalmem } from 'node:os'
import { median } from './stats.mjs'

/** What the gateway may cost at most, by what is measured; ratios are over the floor. */
const bounds = [
  { name: 'unary CPU', limit: 2.0, unit: '× floor', read: results => ratio(results, 'unary') },
  { name: 'stream CPU', limit: 1.3, unit: '× floor', read: results => ratio(results, 'stream of 64') },
  { name: 'memory idle', limit: 120, unit: 'MB', read: results => memory(results)?.idleBytes / 1e6 },
  { name: 'memory per open stream', limit: 60, unit: 'kB', read: results => memory(results)?.streamBytes / 1e3 },
  { name: 'start', limit: 0.7, unit: 's', read: results => results.start?.medianMs / 1e3 },
]

const ratio = ({ loads }, name) => loads?.find(load => load.name === name)?.rows.find(isGateway)?.ratio
const memory = results => results.memory?.find(isGateway)
const isGateway = ({ target }) => target === 'gateway'

/** Adds to each row of a load what it costs over the first row, the floor. */
export function overFloor([floor, ...others]) {
  const added = (of, over) => of && { p50: of.p50 - over.p50, p99: of.p99 - over.p99 }
  const compared = others.map(row => ({
    ...row,
    // Of each run by itself: what slowed a whole run slowed both.
    ratio: row.cpuUsRuns && median(row.cpuUsRuns.map((cpu, run) => cpu / floor.cpuUsRuns[run])),
    addedMs: added(row.totalMs, floor.totalMs),
    addedFirstMs: added(row.firstMs, floor.firstMs),
  }))
  return [{ ...floor, ratio: 1, addedMs: null, addedFirstMs: null }, ...compared]
}

/** The bounds whose figure was measured. */
export const verdicts = results =>
  bounds
    .map(({ name, limit, unit, read }) => ({ name, limit, unit, value: read(results) }))
    .filter(({ value }) => Number.isFinite(value))
    .map(verdict => ({ ...verdict, holds: verdict.value <= verdict.limit }))

export const machine = () => ({
  node: process.version,
  cpu: cpus()[0].model.trim(),
  cores: cpus().length,
  memoryGb: Math.round(totalmem() / 1e9),
  date: new Date().toISOString(),
})

export function render(results) {
  const parts = []
  if (results.loads?.length > 0) parts.push(loadTable(results.loads))
  if (results.memory) parts.push(memoryTable(results.memory))
  if (results.start) parts.push(`start to the first 200 of GET /: ${results.start.medianMs.toFixed(0)} ms`)
  for (const { name, functions } of results.profiles ?? []) parts.push(profileTable(name, functions))
  if (results.bounds.length > 0) parts.push(boundTable(results.bounds))
  const { node, cpu, cores, memoryGb, date } = results.machine
  parts.push(`Node ${node}, ${cores} × ${cpu}, ${memoryGb} GB, ${date}`)
  return parts.join('\n\n')
}

function loadTable(loads) {
  const head = ['load', 'target', 'CPU/request', '× floor', 'p50', 'p99', 'added p50', 'added p99']
  const rows = loads.flatMap(({ name, rows }) =>
    rows.flatMap(row => [
      [name, row.target, us(row.cpuUs), row.ratio?.toFixed(2) ?? '', ...latency(row.totalMs, row.addedMs)],
      ...(row.firstMs ? [['  its first byte', row.target, '', '', ...latency(row.firstMs, row.addedFirstMs)]] : []),
    ]),
  )
  return table([head, ...rows], 2)
}

const latency = (of, added) => [ms(of.p50), ms(of.p99), signed(added?.p50), signed(added?.p99)]
const us = value => (value === null ? '' : `${value.toFixed(0)} µs`)
const ms = value => `${value.toFixed(2)} ms`
const signed = value => (value === undefined ? '' : `${value < 0 ? '' : '+'}${ms(value)}`)

function memoryTable(rows) {
  const head = ['memory', 'idle', 'per open stream', 'streams']
  const mb = bytes => `${(bytes / 1e6).toFixed(1)} MB`
  const kb = bytes => `${(bytes / 1e3).toFixed(1)} kB`
  return table([head, ...rows.map(row => [row.target, mb(row.idleBytes), kb(row.streamBytes), String(row.streams)])], 1)
}

function profileTable(name, functions) {
  const rows = functions.map(({ function: called, at, share, usPerRequest }) => [
    `${(share * 100).toFixed(1)} %`,
    `${usPerRequest.toFixed(1)} µs`,
    `  ${called}  ${at}`,
  ])
  return `${name}: self time, share and per request\n${table(rows, 0)}`
}

const boundTable = verdicts =>
  table(
    verdicts.map(({ name, value, unit, limit, holds }) => [
      name,
      value.toFixed(2),
      `of ${limit} ${unit}`,
      holds ? 'holds' : 'BROKEN',
    ]),
    1,
  )

/** Aligns columns: the first `left` and the last to the left, the others to the right. */
function table(rows, left) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map(row => row[column].length)))
  const cell = (text, column, { length }) =>
    column < left || column === length - 1 ? text.padEnd(widths[column]) : text.padStart(widths[column])
  return rows.map(row => row.map(cell).join('  ').trimEnd()).join('\n')
}
