/** Many jobs: idle turns of the engine, and claims, read what is due and nothing else. */
import { join } from 'node:path'
import t from 'tap'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { planOf, statementsOf } from './statements.ts'
import { HOUR, NOON, temporaryFolder } from './subject.ts'

const FINISHED = 10_000
const RUNNING = 1_000
const DUE = 5
const INSERT = `
  INSERT INTO jobs (id, kind, log_id, request_id, org_id, project_id, key_id, endpoint, requested_model, model, provider,
    mapping, credential, wire, upstream_id, params, state, price, discount, hold_id, amount, funds, cost, settled_at,
    callback_state, created_at, completed_at, deadline_at, next_at, expires_at, result_kind)
  VALUES (@id, 'video', @id, @id, @org, 'project', 'key', 'videos', 'film', 'film', 'acme', 'film-1', 'none',
    'openai.videos', 'up', '{}', @state, '{}', 0, @id, 0, 'credits', @cost, @ended, 'none', @at, @ended, @deadline, @next,
    @expires, @result)`

const path = join(temporaryFolder(t), 'gateway.db')

t.before(() => {
  const db = openDatabase(path)
  const insert = db.prepare(INSERT)
  db.transaction(() => {
    for (let n = 0; n < FINISHED + RUNNING; n++) {
      const isRunning = n < RUNNING
      const at = NOON - n
      insert.run({
        ...{ id: `job-${n}`, org: `org-${n % 50}`, at, deadline: NOON + HOUR },
        state: isRunning ? 'in_progress' : 'completed',
        next: n < DUE ? NOON : NOON + HOUR,
        ended: isRunning ? null : at,
        expires: isRunning ? null : NOON + HOUR,
        result: isRunning ? null : 'own',
        cost: isRunning ? null : 0,
      })
    }
  })()
  db.close()
})

t.test('J18 an idle turn and a claim read indexes alone', async t => {
  const ran = statementsOf(t, path)
  const stores = openSqlite(path, { now: () => NOON })
  t.teardown(() => stores.close())
  const db = new Database(path)
  t.teardown(() => db.close())
  const { jobs } = stores
  const scans = () => {
    const reads = ran.filter(({ sql }) => /\bjobs\b/.test(sql))
    return reads.flatMap(one => planOf(db, one)).filter(step => /^SCAN jobs$/.test(step))
  }
  ran.length = 0
  t.equal(await jobs.nextAt(), NOON)
  t.equal(ran.length, 1, 'an idle turn is one statement')
  const claimed = await jobs.claim({ owner: 'one', now: NOON, until: NOON + HOUR, limit: 25 }, 8)
  t.equal(claimed.length, DUE)
  t.equal(await jobs.nextAt(), NOON + HOUR)
  t.same(await jobs.expireDue(NOON, 100), [])
  t.same(scans(), [])
  ran.push({ sql: "SELECT id FROM jobs WHERE wire = 'x'", given: [], db })
  t.equal(scans().length, 1, 'the pattern finds scans')
})
