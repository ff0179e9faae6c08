/** Says what was measured, as text. */
import { cpus, totalmem } from 'node:os'
import { renderWorkers } from './workers.mjs'

export const machine = () => ({
  node: process.version,
  cpu: cpus()[0].model.trim(),
  cores: cpus().length,
  memoryGb: Math.round(totalmem() / 1e9),
  date: new Date().toISOString(),
})

export function render(results) {
  const { loads, streams, beside, start, workers, filters, tracing, counts, profiles = [], bounds, machine } = results
  const parts = [
    loads && loadTable(loads),
    beside && besideTable(beside),
    streams && streamTable(streams),
    start && `start to the first 200 of GET /: ${start.medianMs.toFixed(0)} ms`,
    workers && renderWorkers(workers),
    filters && filterTable(filters),
    tracing && tracingTable(tracing),
    counts && countTable(counts),
    ...profiles.map(profileTable),
    bounds.length > 0 && boundTable(bounds),
    `Node ${machine.node}, ${machine.cores} × ${machine.cpu}, ${machine.memoryGb} GB, ${machine.date}`,
  ]
  return parts.filter(Boolean).join('\n\n')
}

const fixed = digits => value => (value == null ? '' : value.toFixed(digits))
const us = value => (value == null ? '' : `${value.toFixed(0)} µs`)
const ms = value => (value == null ? '' : `${value.toFixed(2)} ms`)
const signed = value => (value == null ? '' : `${value < 0 ? '' : '+'}${ms(value)}`)

function loadTable(loads) {
  const head = ['load', 'target', 'CPU/request', '× floor', 'by sums', 'p50', 'p99', 'added p50', 'added p99']
  const latency = (of, added) => [ms(of?.p50), ms(of?.p99), signed(added?.p50), signed(added?.p99)]
  const cpu = ({ cpuUs, ratio }) => [us(cpuUs), fixed(2)(ratio?.median), fixed(2)(ratio?.ofSums)]
  const rows = loads.flatMap(({ name, rows }) =>
    rows.flatMap(row => [
      [name, row.target, ...cpu(row), ...latency(row.totalMs, row.addedMs)],
      ...(row.firstMs ? [['  its first byte', row.target, '', '', '', ...latency(row.firstMs, row.addedFirstMs)]] : []),
    ]),
  )
  return table([head, ...rows], 2)
}

function besideTable(rows) {
  const head = ['small requests beside 1 MB prompts', 'p50', 'p99']
  return table([head, ...rows.map(({ target, p50Ms, p99Ms }) => [target, ms(p50Ms), ms(p99Ms)])], 1)
}

function streamTable(rows) {
  const head = [
    'open slow streams',
    'idle',
    'after work',
    'per stream',
    'per stream over idle',
    'streams',
    'event-loop lag p99',
  ]
  const mb = bytes => `${(bytes / 1e6).toFixed(1)} MB`
  const kb = bytes => `${(bytes / 1e3).toFixed(1)} kB`
  const cells = ({ target, idleBytes, servedBytes, streamBytes, firstStreamBytes, streams, lagP99Ms }) => [
    ...[target, mb(idleBytes), mb(servedBytes), kb(streamBytes), kb(firstStreamBytes), String(streams)],
    ms(lagP99Ms),
  ]
  return table([head, ...rows.map(cells)], 1)
}

function filterTable({ load, rows }) {
  const head = ['filter', 'CPU that it adds', 'middle half', 'profiled time', '']
  const one = fixed(1)
  const cells = ({ filter, needed, addedCpuUs, profiledUs }) => [
    filter,
    addedCpuUs ? `${one(addedCpuUs.median)} µs` : '',
    addedCpuUs ? `${one(addedCpuUs.low)} to ${one(addedCpuUs.high)}` : '',
    `${one(profiledUs)} µs`,
    needed ? `cannot be switched off: something ${needed}` : '',
  ]
  return [
    `what each filter costs per request, ${load}: with it less without it, the median of adjacent slices; in a profile of`,
    'the whole chain, where waiting for the disk counts, for filters that cannot be switched off',
    table([head, ...rows.map(cells)], 1),
  ].join('\n')
}

function tracingTable({ load, rows }) {
  const head = ['tracing', 'CPU/request', 'of the one without', 'by sums', 'added', 'middle half']
  const cells = ({ target, cpuUs, ratio, addedCpuUs: added }) => [
    ...[target, us(cpuUs), fixed(3)(ratio?.median), fixed(3)(ratio?.ofSums), us(added?.median)],
    added ? `${added.low.toFixed(0)} to ${added.high.toFixed(0)}` : '',
  ]
  return `what tracing costs, ${load}\n${table([head, ...rows.map(cells)], 1)}`
}

function countTable(rows) {
  const names = Object.keys(rows[0].counts)
  const cells = ({ name, counts }) => [
    name,
    ...names.map(count => counts[count].toFixed(count.endsWith('Bytes') ? 0 : 2)),
  ]
  return `per request, one at a time\n${table([['load', ...names], ...rows.map(cells)], 1)}`
}

function profileTable({ name, functions }) {
  const rows = functions.map(({ function: called, at, share, usPerRequest }) => [
    `${(share * 100).toFixed(1)} %`,
    `${usPerRequest.toFixed(1)} µs`,
    `  ${called}  ${at}`,
  ])
  return `${name}: self time, share and per request\n${table(rows, 0)}`
}

const boundTable = verdicts =>
  table(
    verdicts.map(({ name, value, unit, limit, atLeast, holds }) => [
      name,
      value.toFixed(2),
      `${atLeast ? 'at least' : 'of'} ${limit} ${unit}`,
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
