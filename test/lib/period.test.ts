/** Periods as clocks on walls show them, over days that are shorter or longer than others; and billing months. */
import fc from 'fast-check'
import t from 'tap'
import { cycleOf, isZone, periods, spanOf } from '../../src/lib/period.ts'
import { runs } from '../helpers/runs.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261120 })

const HOUR = 3_600_000
const at = (text: string): number => Date.parse(text)
const shown = ({ start, end }: { start: number; end: number }) => [start, end].map(ms => new Date(ms).toISOString())

t.test('periods begin where the clock of their zone says', async t => {
  const rows: [period: (typeof periods)[number], zone: string, now: string, start: string, end: string][] = [
    ['hour', 'UTC', '2026-03-10T17:59:59.999Z', '2026-03-10T17:00', '2026-03-10T18:00'],
    ['hour', 'Asia/Kolkata', '2026-03-10T17:10Z', '2026-03-10T16:30', '2026-03-10T17:30'],
    ['day', 'UTC', '2026-03-10T00:00Z', '2026-03-10T00:00', '2026-03-11T00:00'],
    ['day', 'Asia/Tokyo', '2026-03-10T15:00Z', '2026-03-10T15:00', '2026-03-11T15:00'],
    ['day', 'America/Los_Angeles', '2026-01-10T07:59Z', '2026-01-09T08:00', '2026-01-10T08:00'],
    ['week', 'UTC', '2026-03-15T23:59Z', '2026-03-09T00:00', '2026-03-16T00:00'],
    ['week', 'UTC', '2026-03-16T00:00Z', '2026-03-16T00:00', '2026-03-23T00:00'],
    ['week', 'UTC', '1969-12-31T12:00Z', '1969-12-29T00:00', '1970-01-05T00:00'],
    ['month', 'UTC', '2028-02-29T12:00Z', '2028-02-01T00:00', '2028-03-01T00:00'],
    ['month', 'Pacific/Auckland', '2025-12-31T11:00Z', '2025-12-31T11:00', '2026-01-31T11:00'],
  ]
  for (const [period, zone, now, ...span] of rows) {
    t.strictSame(
      shown(spanOf(period, zone, at(now))),
      span.map(text => `${text}:00.000Z`),
      `${period} of ${now} in ${zone}`,
    )
  }
})

t.test('a day on which clocks change is an hour shorter or longer', async t => {
  const hours = (zone: string, now: string) => {
    const { start, end } = spanOf('day', zone, at(now))
    return (end - start) / HOUR
  }
  t.equal(hours('Europe/Berlin', '2026-03-29T12:00Z'), 23)
  t.equal(hours('Europe/Berlin', '2026-10-25T12:00Z'), 25)
  t.equal(hours('America/New_York', '2026-11-01T12:00Z'), 25)
  t.equal(hours('Australia/Lord_Howe', '2026-10-04T00:00Z'), 23.5)
  t.equal(hours('Europe/Berlin', '2026-03-30T12:00Z'), 24)
  t.strictSame(
    shown(spanOf('week', 'Europe/Berlin', at('2026-03-29T12:00Z'))),
    ['2026-03-22T23:00:00.000Z', '2026-03-29T22:00:00.000Z'],
    'a week of 167 hours',
  )
  t.strictSame(shown(spanOf('month', 'America/Sao_Paulo', at('2018-11-10T12:00Z'))), [
    '2018-11-01T03:00:00.000Z',
    '2018-12-01T02:00:00.000Z',
  ])
})

t.test('a day whose midnight is missing or comes twice begins once', async t => {
  // Clocks went from 2018-11-04 00:00 to 01:00 there.
  t.strictSame(shown(spanOf('day', 'America/Sao_Paulo', at('2018-11-04T12:00Z'))), [
    '2018-11-04T03:00:00.000Z',
    '2018-11-05T02:00:00.000Z',
  ])
  // And from 2018-02-18 00:00 back to 2018-02-17 23:00.
  t.strictSame(shown(spanOf('day', 'America/Sao_Paulo', at('2018-02-17T12:00Z'))), [
    '2018-02-17T02:00:00.000Z',
    '2018-02-18T03:00:00.000Z',
  ])
  // From 01:00 back to 00:00: the first midnight counts.
  t.strictSame(shown(spanOf('day', 'America/Havana', at('2026-11-01T12:00Z'))), [
    '2026-11-01T04:00:00.000Z',
    '2026-11-02T05:00:00.000Z',
  ])
})

t.test('spans hold their moment, and the next one begins where one ends', async t => {
  const zones = [
    'UTC',
    'Europe/Berlin',
    'America/St_Johns',
    'Asia/Kathmandu',
    'Africa/Cairo',
    'Pacific/Apia',
    'America/Havana',
  ]
  const moment = fc.integer({ min: at('2000-01-01'), max: at('2040-01-01') })
  const property = fc.property(fc.constantFrom(...periods), fc.constantFrom(...zones), moment, (period, zone, now) => {
    const span = spanOf(period, zone, now)
    if (now < span.start || now >= span.end) return false
    if (period === 'hour') return true
    const [first, next] = [spanOf(period, zone, span.start), spanOf(period, zone, span.end)]
    return first.start === span.start && first.end === span.end && next.start === span.end
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: runs(2000) }))
})

t.test('a zone is one that the platform supports', async t => {
  for (const zone of ['UTC', 'Europe/Berlin', 'Etc/GMT+5']) t.ok(isZone(zone), zone)
  for (const zone of ['', 'Mars/Olympus', 'Europe/Berlin; DROP', '../etc']) t.notOk(isZone(zone), zone)
})

t.test('a billing month ends on the day on which the first one began, or on the last one there is', async t => {
  const anchor = at('2026-01-31T09:30Z')
  const rows: [now: string, start: string, end: string][] = [
    ['2026-01-31T09:30Z', '2026-01-31', '2026-02-28'],
    ['2026-02-28T09:29Z', '2026-01-31', '2026-02-28'],
    ['2026-02-28T09:30Z', '2026-02-28', '2026-03-31'],
    ['2026-04-30T10:00Z', '2026-04-30', '2026-05-31'],
    ['2028-02-29T10:00Z', '2028-02-29', '2028-03-31'],
    ['2025-06-01T00:00Z', '2026-01-31', '2026-02-28'],
  ]
  for (const [now, start, end] of rows) {
    const span = shown(cycleOf(anchor, at(now)))
    t.strictSame(span, [`${start}T09:30:00.000Z`, `${end}T09:30:00.000Z`], now)
  }
  const anyAnchor = fc.integer({ min: at('2000-01-01'), max: at('2030-01-01') })
  const property = fc.property(anyAnchor, fc.nat(20 * 365 * 24 * HOUR), (from, later) => {
    const { start, end } = cycleOf(from, from + later)
    const next = cycleOf(from, end)
    return start <= from + later && from + later < end && next.start === end
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: runs(2000) }))
})
