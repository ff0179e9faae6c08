import fc from 'fast-check'
import t from 'tap'
import type { ReportGroup, ReportQuery, ReportStore } from '../../src/core/ports.ts'
import { SqlReports } from '../../src/stores/sql/reports.ts'
import type { Sqlite } from '../../src/stores/sqlite/driver.ts'
import { runs } from '../helpers/runs.ts'
import { planOf, type Ran, statementsOf } from './statements.ts'
import { HOUR, NOON, readersOf, sqliteSubject } from './subject.ts'

const DAY = 24 * HOUR
const AT_ONCE = 1000
const groups: readonly ReportGroup[] = ['provider', 'model', 'app', 'api_key']

interface Hour {
  readonly hour: number
  readonly project: string
  readonly key: string
  readonly provider?: string
  readonly model?: string
  readonly source?: string
  readonly requests?: number
  readonly cost?: number
  readonly updatedAt?: number
}

/** Writes hourly sums; those that are there already stay. */
function keep(db: Sqlite, hours: Iterable<Hour>): void {
  const insert = db.prepare(`
    INSERT INTO usage_hourly (
      hour, org_id, project_id, key_id, provider, model, source,
      requests, errors, cached, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, savings, updated_at
    ) VALUES (?, 'org', ?, ?, ?, ?, ?, ?, 0, 0, ?, 2, 0, 0, ?, ?, ?) ON CONFLICT DO NOTHING`)
  db.transaction(() => {
    for (const { hour, project, key, provider = '', model = '', source = '', ...rest } of hours) {
      const { requests = 1, cost = 0, updatedAt = hour } = rest
      insert.run(hour, project, key, provider, model, source, requests, requests, cost, cost, updatedAt)
    }
  })()
}

/** All that keys of a project may leave in each hour: 512 sums. */
function* busy(project: string, keys: number, hours: number): Generator<Hour> {
  for (let hour = 0; hour < hours; hour++) {
    for (let key = 0; key < keys; key++) {
      for (let n = 0; n < 512; n++) {
        yield {
          hour: NOON + hour * HOUR,
          project,
          key: `key-${key}`,
          source: `app-${n % 256}`,
          model: n < 256 ? '' : 'm',
        }
      }
    }
  }
}

/** Every report of a query. */
const allOf = async (reports: ReportStore, query: ReportQuery) => ({
  hours: await reports.series(query, HOUR),
  days: await reports.series(query, DAY),
  updatedAt: await reports.updatedAt(query),
  rankings: await Promise.all(
    groups.flatMap(by =>
      (['requests', 'cost', 'tokens'] as const).map(order => reports.ranking(query, by, order, 1000, 0)),
    ),
  ),
})

const ofSums = (ran: readonly Ran[]) => ran.filter(({ sql }) => sql.includes('FROM usage_hourly'))

/** How many hourly sums a statement goes through. */
const readBy = (db: Sqlite, { sql, given }: Ran): number => {
  const [found] = /FROM usage_hourly .*?(?= GROUP BY| ORDER BY|$)/.exec(sql)!
  return db
    .prepare<unknown[], number>(`SELECT count(*) ${found}`)
    .pluck()
    .get(...given.slice(1 - found.split('?').length))!
}

for (const [what, keys, hours] of [
  ['a day of few keys', 2, 24],
  ['an hour of many keys', 20, 1],
] as const) {
  t.test(`no query of a report reads more than ${AT_ONCE} hourly sums, however many ${what} holds`, async t => {
    const { reports, path, db } = sqliteSubject(t)
    keep(db, busy('p', keys, hours))
    keep(db, busy('other', 1, 24))
    const sums = keys * hours * 512
    const query = { projectId: 'p', from: NOON, to: NOON + DAY }
    const ran = statementsOf(t, path)
    const parts = Math.ceil(sums / AT_ONCE)
    for (const [says, report, count] of [
      ['series', () => reports.series(query, HOUR), sums],
      ['series of some keys', () => reports.series({ ...query, keyIds: ['key-1'] }, DAY), hours * 512],
      ['ranking', () => reports.ranking(query, 'app', 'requests', 300, 0), sums],
      ['time', () => reports.updatedAt(query), undefined],
    ] as const) {
      ran.length = 0
      const found = await report()
      const statements = ofSums(ran)
      t.ok(statements.length <= 2 * parts, `${says}: ${statements.length} statements for ${parts} parts`)
      for (const { sql, given } of statements.filter(({ sql }) => !sql.includes('OFFSET'))) {
        const read = readBy(db, { sql, given, db })
        if (read > AT_ONCE) t.fail(`${says}: ${read} sums in one query`)
      }
      if (Array.isArray(found))
        t.equal(
          found.reduce((all, { requests }) => all + requests, 0),
          count,
          says,
        )
      else t.equal(found, NOON + (hours - 1) * HOUR, says)
    }
  })
}

t.test('reports find their sums by the index of their project, from place to place', async t => {
  const { reports, path, db } = sqliteSubject(t)
  keep(db, busy('p', 3, 2))
  const ran = statementsOf(t, path)
  await allOf(reports, { projectId: 'p', keyIds: ['key-1'], from: NOON, to: NOON + DAY })
  const steps = ofSums(ran)
    .flatMap(one => planOf(db, one))
    .filter(step => step.includes('usage_hourly'))
  t.ok(steps.length > 6)
  for (const step of new Set(steps)) {
    t.match(
      step,
      /^SEARCH usage_hourly USING (?:COVERING )?INDEX usage_hourly_of_project \(project_id=\? AND \(hour,org_id,key_id,provider,model,source\)>.* AND \(hour,org_id,key_id,provider,model,source\)</,
    )
  }
})

t.test('a year without requests is read at once', async t => {
  const { reports, path, organization } = sqliteSubject(t)
  const { projectId } = await organization('open', 0n)
  const ran = statementsOf(t, path)
  const query = { projectId, from: NOON, to: NOON + 366 * DAY }
  t.strictSame(await reports.series(query, HOUR), [])
  t.strictSame(await reports.ranking(query, 'app', 'cost', 10, 0), [])
  t.equal(await reports.updatedAt(query), undefined)
  t.equal(ofSums(ran).length, 2 * 3)
})

t.test('a report is the same in parts of any size', async t => {
  const { db } = sqliteSubject(t)
  const some = (...names: string[]) => fc.constantFrom('', ...names)
  const hour = fc.record({
    hour: fc.nat(60).map(hour => NOON + hour * HOUR),
    project: fc.constantFrom('p', 'p', 'q'),
    key: fc.constantFrom('key-1', 'key-2', 'key-3'),
    provider: some('acme', 'other'),
    model: some('large', 'small'),
    source: some('an-app', 'opencode', 'Open-Code', 'other'),
    requests: fc.nat(3),
    cost: fc.maxSafeNat(),
    updatedAt: fc.nat(NOON),
  })
  // A sum from which every request was taken again holds nothing.
  const sums = hour.map(one => (one.requests === 0 ? { ...one, cost: 0 } : one))
  await fc.assert(
    fc.asyncProperty(
      fc.array(sums, { maxLength: 120 }),
      fc.option(fc.uniqueArray(fc.constantFrom<string[]>('key-1', 'key-2', 'key-4')), { nil: undefined }),
      fc.integer({ min: 1, max: 50 }),
      fc.tuple(fc.nat(30), fc.nat(60)),
      async (history, keyIds, atOnce, [from, length]) => {
        db.exec('DELETE FROM usage_hourly')
        keep(db, history)
        const query = { projectId: 'p', keyIds, from: NOON + from * HOUR, to: NOON + (from + length) * HOUR }
        const whole = await allOf(new SqlReports(readersOf(db).sql, 1000), query)
        t.same(await allOf(new SqlReports(readersOf(db).sql, atOnce), query), whole)
        const kept = db
          .prepare<[string, number, number], { key_id: string; requests: bigint; cost: bigint; updated_at: bigint }>(
            'SELECT * FROM usage_hourly WHERE project_id = ? AND hour >= ? AND hour < ? AND requests > 0',
          )
          .safeIntegers()
          .all(query.projectId, query.from, query.to)
          .filter(one => keyIds === undefined || keyIds.includes(one.key_id))
        const cost = kept.reduce((sum, one) => sum + one.cost, 0n)
        for (const report of [whole.hours, whole.days, ...whole.rankings]) {
          t.equal(
            report.reduce((sum, one) => sum + one.cost, 0n),
            cost,
          )
        }
        t.equal(whole.updatedAt, kept.length > 0 ? Math.max(...kept.map(one => Number(one.updated_at))) : undefined)
      },
    ),
    { numRuns: runs(300) },
  )
})
