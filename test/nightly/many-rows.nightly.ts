/** Times the queries behind the page and the request log on a database of many rows (`ROWS`; 10,000,000 by default). */
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import Database from 'better-sqlite3'
import t from 'tap'
import type { RequestFilter, Stores, UsageGroup } from '../../src/core/ports.ts'
import { stampOf } from '../../src/lib/id.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'

const ROWS = Number(process.env.ROWS ?? 10_000_000)
const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const SPAN_MS = 90 * DAY_MS
const MOST_MS = 200
/** Runs of each query; the median counts, since the first one reads the disk. */
const RUNS = 5

const now = Date.now()
const fill = `
  WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${ROWS})
  INSERT INTO requests (id, request_id, at, org_id, project_id, key_id, endpoint, requested_model, model, provider, source,
    status, outcome, error_code, streamed, cached, attempts, duration_ms, ttft_ms, prompt_tokens, completion_tokens,
    estimated, cost, charged, end_user, tags)
  SELECT stamp(at) || printf('%011d', i), 'req-' || i, at, 'org-' || (i % 4), 'project-' || (i % 8), 'key-' || (i % 40),
    'chat', 'model-' || (i % 11), 'model-' || (i % 11), 'provider-' || (i % 3), 'app', iif(i % 50 = 0, 502, 200),
    iif(i % 50 = 0, 'error', 'ok'), iif(i % 50 = 0, 'all_providers_failed', NULL), i % 2, 0, 1, i % 9000, i % 700, 1000,
    200, 0, i % 1000 * 1000, i % 1000 * 1000, iif(i % 200 = 0, 'user-' || (i % 1000), NULL),
    iif(i % 200 = 0, '{"team":"team-' || (i % 30) || '"}', NULL)
  FROM (SELECT i, ${now - SPAN_MS} + CAST(i * ${SPAN_MS / ROWS} AS INTEGER) AS at FROM n)`
const sum = `
  INSERT INTO usage_hourly (hour, org_id, project_id, key_id, provider, model, source, requests, errors, cached,
    input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, credits_cost, byok_cost, storage_cost, savings,
    updated_at)
  SELECT at / ${HOUR_MS} * ${HOUR_MS}, org_id, project_id, key_id, provider, model, source, count(*),
    sum(outcome = 'error'), 0, sum(prompt_tokens), sum(completion_tokens), 0, 0, sum(cost), sum(cost), 0, 0, 0, max(at)
  FROM requests GROUP BY 1, 2, 3, 4, 5, 6, 7`

function filled(path: string): void {
  const db = new Database(path)
  db.pragma('synchronous = OFF')
  db.function('stamp', { deterministic: true }, at => stampOf(Number(at)))
  db.exec(`BEGIN; ${fill}; ${sum}; COMMIT`)
  db.pragma('wal_checkpoint(TRUNCATE)')
  db.close()
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

t.test(`every query of the page and the log takes at most ${MOST_MS} ms`, { timeout: 1_800_000 }, async t => {
  const path = join(t.testdir(), 'gateway.db')
  await openSqlite(path).close()
  filled(path)
  const stores = openSqlite(path)
  t.teardown(() => stores.close())
  while ((await stores.usage.sumDay()) !== undefined);
  for (const [name, query] of Object.entries(queriesOf(stores))) {
    const times: number[] = []
    for (let run = 0; run < RUNS; run++) {
      const start = performance.now()
      await query()
      times.push(performance.now() - start)
    }
    const median = times.sort((a, b) => a - b)[RUNS >> 1]!
    t.ok(median <= MOST_MS, `${name}: ${median.toFixed(1)} ms`)
  }
})
