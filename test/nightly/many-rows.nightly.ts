/** Times the queries behind the page and the request log on a database of many rows (`ROWS`; 10,000,000 by default). */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import Database from 'better-sqlite3'
import pg from 'pg'
import t, { type Test } from 'tap'
import type { RequestFilter, Stores, UsageGroup } from '../../src/core/ports.ts'
import { stampOf } from '../../src/lib/id.ts'
import { openPostgres } from '../../src/stores/postgres/index.ts'
import { PostgresRetention } from '../../src/stores/postgres/retention.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { figure } from '../helpers/figure.ts'
import { postgresServer, withoutPostgres } from '../helpers/postgres.ts'

const ROWS = Number(process.env.ROWS ?? 10_000_000)
const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const SPAN_MS = 90 * DAY_MS
const MOST_MS = 200
/** Runs of each query; the median counts, since the first one reads the disk. */
const RUNS = 5

const now = Date.now()
const idOf = (at: number | bigint, i: number | bigint) => stampOf(Number(at)) + String(i).padStart(11, '0')
/** SQL of `idOf` for PostgreSQL, which builds each digit of base 32 from 5 bits. */
const postgresId = `
  CREATE FUNCTION id_of(at bigint, i bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT ${[40, 35, 30, 25, 20, 15, 10, 5, 0]
      .map(bits => `substr('234567abcdefghijklmnopqrstuvwxyz', CAST((at >> ${bits}) & 31 AS int) + 1, 1)`)
      .join(' || ')} || lpad(CAST(i AS text), 11, '0')
  $$`
const counted = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${ROWS})`
/** SQL for both databases; `numbers` is the table `n` of all `i`. */
const fillFrom = (numbers: string): string => `
  ${numbers}
  INSERT INTO requests (id, request_id, at, org_id, project_id, key_id, endpoint, requested_model, model, provider, source,
    status, outcome, error_code, streamed, cached, attempts, duration_ms, ttft_ms, prompt_tokens, completion_tokens,
    estimated, cost, charged, funds, storage, discount, end_user, tags)
  SELECT id_of(at, i), 'req-' || i, at, 'org-' || (i % 4), 'project-' || (i % 8), 'key-' || (i % 40), 'chat',
    'model-' || (i % 11), 'model-' || (i % 11), 'provider-' || (i % 3), 'app',
    CASE WHEN i % 50 = 0 THEN 502 ELSE 200 END, CASE WHEN i % 50 = 0 THEN 'error' ELSE 'ok' END,
    CASE WHEN i % 50 = 0 THEN 'all_providers_failed' END, i % 2 = 1, 1 = 0, 1, i % 9000, i % 700, 1000, 200, 1 = 0,
    i % 1000 * 1000, i % 1000 * 1000, 'credits', 0, 0, CASE WHEN i % 200 = 0 THEN 'user-' || (i % 1000) END,
    CASE WHEN i % 200 = 0 THEN '{"team":"team-' || (i % 30) || '"}' END
  FROM (SELECT i, ${now - SPAN_MS} + CAST(i * ${SPAN_MS / ROWS} AS bigint) AS at FROM n) AS numbered`
const SUMS = `count(*), count(*) FILTER (WHERE outcome = 'error'), 0, sum(prompt_tokens), sum(completion_tokens), 0, 0,
  sum(cost), sum(cost), 0, 0`
const SUMMED = `requests, errors, cached, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost,
  credits_cost, byok_cost, storage_cost`
const sum = `
  INSERT INTO usage_hourly (hour, org_id, project_id, key_id, provider, model, source, ${SUMMED}, savings, updated_at)
  SELECT at / ${HOUR_MS} * ${HOUR_MS}, org_id, project_id, key_id, provider, model, source, ${SUMS}, 0, max(at)
  FROM requests GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1`
/** What a function adds on PostgreSQL, and triggers on SQLite. */
const labels = ['end_user', "CAST(tags AS json) ->> 'team'"].flatMap((value, tag) => [
  `INSERT INTO request_labels (label, id)
  SELECT '${tag ? 'tag:team=' : 'end_user='}' || (${value}), id FROM requests WHERE end_user IS NOT NULL`,
  `INSERT INTO usage_labels (label, day, org_id, value, project_id, key_id, ${SUMMED})
  SELECT '${tag ? 'tag:team' : 'end_user'}', at / ${DAY_MS} * ${DAY_MS}, org_id, ${value}, project_id, key_id, ${SUMS}
  FROM requests WHERE end_user IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6`,
])

async function sqlite(t: Test): Promise<Stores> {
  const path = join(t.testdir(), 'gateway.db')
  await openSqlite(path).close()
  const db = new Database(path)
  db.pragma('synchronous = OFF')
  db.function('id_of', { deterministic: true }, (at, i) => idOf(at as number, i as number))
  db.exec(`BEGIN; ${fillFrom(counted)}; ${sum}; COMMIT`)
  db.pragma('wal_checkpoint(TRUNCATE)')
  db.close()
  return openSqlite(path)
}

async function postgres(t: Test): Promise<Stores> {
  const url = await (await postgresServer()).database()
  const options = { warn: (error: unknown) => t.fail(String(error)), keyring: () => assert.fail(), version: 'test' }
  await (await openPostgres(url, options)).close()
  for (let day = now - SPAN_MS; day < now; day += DAY_MS) await new PostgresRetention(url, () => day).prepare()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const fill = fillFrom(`WITH n AS (SELECT generate_series(CAST(0 AS bigint), ${ROWS - 1}) AS i)`)
  for (const text of [postgresId, fill, sum, ...labels, 'VACUUM ANALYZE']) await client.query(text)
  await client.end()
  return openPostgres(url, options)
}

/** A filter that no row passes makes a query look at all the rows that it may. */
const filters: Readonly<Record<string, RequestFilter>> = {
  none: {},
  organization: { orgId: 'org-1' },
  project: { projectId: 'project-3' },
  key: { keyId: 'no-such-key' },
  model: { model: 'no-such-model' },
  provider: { provider: 'no-such-provider' },
  status: { status: 418 },
  error: { errorCode: 'no_such_code' },
  slower: { slower: 3_600_000 },
  dearer: { dearer: 10n ** 15n },
  'an hour': { since: now - HOUR_MS },
  '90 days': { since: now - SPAN_MS, keyId: 'no-such-key' },
  'end user': { endUser: 'user-200' },
  'absent end user': { endUser: 'nobody' },
  tag: { tag: 'team=team-10' },
  'end user and key': { endUser: 'user-200', keyId: 'no-such-key' },
  'tag and end user': { tag: 'team=team-10', endUser: 'user-200' },
}
const groups: readonly UsageGroup[] = [
  ...(['provider', 'model', 'app', 'api_key', 'project', 'member', 'day', 'end_user', 'tag:team'] as const),
]

function queriesOf({ requests, usage, jobs }: Stores): Record<string, () => Promise<unknown>> {
  const today = Math.floor(now / DAY_MS) * DAY_MS - DAY_MS
  const all = { from: today - 89 * DAY_MS, to: today + 2 * DAY_MS }
  const queries: Record<string, () => Promise<unknown>> = {}
  for (const [name, filter] of Object.entries(filters)) queries[`log: ${name}`] = () => requests.page(filter, 50)
  queries['log: far back'] = () => requests.page({}, 50, stampOf(now - SPAN_MS / 2))
  queries['log: one'] = async () => requests.get((await requests.page({}, 1)).rows[0]!.id)
  queries['usage: an hour'] = () => usage.totals({ from: today, to: today + HOUR_MS })
  queries['usage: a day'] = () => usage.totals({ from: today, to: today + DAY_MS })
  queries['usage: a day of a key'] = () => usage.totals({ keyId: 'key-3', from: today, to: today + DAY_MS })
  for (const by of groups) {
    queries[`usage: a day by ${by}`] = () => usage.breakdown({ from: today, to: today + DAY_MS }, by, 100)
  }
  queries['usage: all days'] = () => usage.totals(all)
  for (const by of groups) queries[`usage: all days by ${by}`] = () => usage.breakdown(all, by, 100)
  queries['jobs: counts'] = () => jobs.counts()
  return queries
}

for (const [name, open, skip] of [
  ['SQLite', sqlite, false],
  ['PostgreSQL', postgres, withoutPostgres],
] as const) {
  const title = `every query of the page and the log takes at most ${MOST_MS} ms on ${name}`
  t.test(title, { skip, timeout: 1_800_000 }, async t => {
    const stores = await open(t)
    t.teardown(() => stores.close())
    while ((await stores.usage.sumDay()) !== undefined);
    for (const [query, run] of Object.entries(queriesOf(stores))) {
      const times: number[] = []
      for (let count = 0; count < RUNS; count++) {
        const start = performance.now()
        await run()
        times.push(performance.now() - start)
      }
      const median = times.sort((a, b) => a - b)[RUNS >> 1]!
      figure(t, { id: name, what: query, value: median, unit: 'ms', atMost: MOST_MS })
    }
  })
}
