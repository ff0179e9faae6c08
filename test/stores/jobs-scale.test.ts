/** Many jobs: idle turns of the engine, and claims, read what is due and nothing else. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Database, type Sqlite } from '../../src/stores/sqlite/driver.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { migrations } from '../../src/stores/sqlite/migrations.ts'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { planOf, type Ran, statementsOf } from './statements.ts'
import { HOUR, NOON, temporaryFolder } from './subject.ts'

const FINISHED = 10_000
const RUNNING = 1_000
const DUE = 5
const DUE_OF_ONE = 3_000
const INSERT = `
  INSERT INTO jobs (id, kind, log_id, request_id, org_id, project_id, key_id, endpoint, requested_model, model, provider,
    mapping, credential, wire, upstream_id, params, state, price, discount, hold_id, amount, funds, cost, settled_at,
    callback_state, created_at, completed_at, deadline_at, next_at, expires_at, result_kind)
  VALUES (@id, 'video', @id, @id, @org, 'project', 'key', 'videos', 'film', 'film', @provider, 'film-1', 'none',
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
        ...{ id: `job-${n}`, org: `org-${n % 50}`, provider: 'acme', at, deadline: NOON + HOUR },
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

t.test('J18 a list of a project and a look for lost jobs read no others, and a list is not sorted', async t => {
  const ran = statementsOf(t, path)
  const stores = openSqlite(path, { now: () => NOON })
  t.teardown(() => stores.close())
  const db = new Database(path)
  t.teardown(() => db.close())
  const ids = async (after: string | undefined, ascending: boolean) => {
    const listed = await stores.jobs.list({ projectId: 'project' }, 'video', { after, limit: 2, ascending })
    return listed.map(({ id }) => id)
  }
  ran.length = 0
  t.same(await ids(undefined, false), ['job-0', 'job-1'])
  t.same(await ids('job-1', false), ['job-2', 'job-3'])
  t.same(await ids('job-9', true), ['job-8', 'job-7'])
  t.same(await ids('job-nowhere', true), [])
  t.equal(await stores.jobs.interruptLost({ code: 'x', message: 'x' }, id => ({ id, type: 'x' }), NOON), 0)
  const steps = ran.filter(({ sql }) => /\bjobs\b/.test(sql)).flatMap(one => planOf(db, one))
  t.equal(steps.filter(step => step.includes('jobs_listed (project_id=? AND kind=?')).length, 4)
  t.equal(
    steps.filter(step => /jobs_listed .*created_at/.test(step)).length,
    3,
    'a page begins where the last one ended',
  )
  t.same(
    steps.filter(step => /^SCAN jobs$|TEMP B-TREE/.test(step)),
    [],
  )
})

/** Rows that a statement reads where a condition holds that it names. */
function rowsRead(db: Sqlite, { sql, given }: Pick<Ran, 'sql' | 'given'>, condition: string): number {
  let read = 0
  db.function('is_read', { deterministic: false }, () => {
    read++
    return 1
  })
  const counted = db.prepare(sql.replaceAll(condition, `${condition} AND is_read()`))
  db.exec('BEGIN')
  counted.all(...given)
  db.exec('ROLLBACK')
  return read
}

const dueRead = (db: Sqlite, ran: Ran): number => rowsRead(db, ran, 'next_at <= ?')

/** An empty store, another connection to it, and the statements that ran. */
function opened(t: Test) {
  const path = join(temporaryFolder(t), 'gateway.db')
  const ran = statementsOf(t, path)
  const stores = openSqlite(path, { now: () => NOON })
  t.teardown(() => stores.close())
  const db = new Database(path)
  t.teardown(() => db.close())
  return { ran, stores, db }
}

t.test('J19 of thousands of due jobs of one organization, a claim reads as many as it may have', async t => {
  const { ran, stores, db } = opened(t)
  const insert = db.prepare(INSERT)
  const add = (org: string, provider: string, count: number, next: number) => {
    for (let n = 0; n < count; n++) {
      const ends = { ended: null, expires: null, result: null, cost: null }
      const id = `${org} ${provider} ${n}`
      insert.run({ id, org, provider, state: 'queued', at: NOON, deadline: NOON + HOUR, next: next + n, ...ends })
    }
  }
  db.transaction(() => {
    add('busy', 'slow', DUE_OF_ONE, NOON - DUE_OF_ONE - 100)
    add('busy', 'quick', 3, NOON - 50)
    add('calm', 'slow', 2, NOON - 10)
    add('idle', 'slow', 1, NOON + HOUR)
  })()
  const claim = async (owner: string, now = NOON) => {
    ran.length = 0
    const claimed = await stores.jobs.claim({ owner, now, until: now + 1000, limit: 25 }, 8)
    const [update] = ran.filter(({ sql }) => sql.includes('UPDATE jobs'))
    const steps = planOf(db, update!).filter(step => /^(?:SCAN|SEARCH) jobs\b/.test(step))
    t.notMatch(steps.join(), /^SCAN jobs$/)
    t.ok(dueRead(db, update!) < 300, `${dueRead(db, update!)} rows`)
    return claimed.map(({ id }) => id).sort()
  }
  const of = (pair: string, from: number, to: number) =>
    Array.from({ length: to - from }, (_, at) => `${pair} ${from + at}`)
  const first = [...of('busy quick', 0, 3), ...of('busy slow', 0, 5), ...of('calm slow', 0, 2)]
  t.same(await claim('one'), first, 'a share of each, and the providers of one in turn')
  t.same(await claim('one'), [], 'it has its share')
  t.same(await claim('two'), of('busy slow', 5, 13).sort(), 'what one has is not claimed')
  t.same(await claim('two', NOON + 2000), first, 'leases that have ended come first, as their jobs are due first')
})

t.test(
  'J19 of thousands of callbacks of one organization, a turn reads few, and claims those of others first',
  async t => {
    const { ran, stores, db } = opened(t)
    const insert = db.prepare(INSERT)
    const event = db.prepare(`
    INSERT INTO job_events (event_id, job_id, type, attempt, state, next_at, org_id)
    SELECT id, id, 'video.failed', 1, 'pending', ?, org_id FROM jobs WHERE id = ?`)
    const add = (org: string, count: number, next: number) => {
      for (let n = 0; n < count; n++) {
        const ends = { ended: NOON, expires: null, result: null, cost: 0 }
        const id = `${org} ${n}`
        insert.run({ id, org, provider: 'acme', state: 'failed', at: NOON, deadline: NOON, next: NOON, ...ends })
        event.run(next + n, id)
      }
    }
    db.transaction(() => {
      add('busy', DUE_OF_ONE, NOON - DUE_OF_ONE - 100)
      add('calm', 2, NOON - 10)
      add('idle', 1, NOON + HOUR)
    })()
    const claim = async (owner: string, now: number, limit = 25) => {
      ran.length = 0
      const claimed = await stores.jobs.claimDeliveries({ owner, now, until: now + 1000, limit }, 4)
      const [update] = ran.filter(({ sql }) => sql.includes('UPDATE job_events'))
      t.ok(dueRead(db, update!) < 300, `${dueRead(db, update!)} rows of a claim`)
      ran.length = 0
      t.equal(await stores.jobs.nextAt(), NOON - DUE_OF_ONE - 100 + (owner === 'one' ? 4 : 8))
      const read = rowsRead(db, ran[0]!, "FROM job_events WHERE state = 'pending'")
      t.ok(read < 100, `${read} rows for the next time`)
      return claimed.map(({ jobId }) => jobId).sort()
    }
    t.same(await claim('one', NOON), ['busy 0', 'busy 1', 'busy 2', 'busy 3', 'calm 0', 'calm 1'], 'a share of each')
    t.same(await claim('one', NOON), [], 'it has its share')
    t.same(await claim('two', NOON), ['busy 4', 'busy 5', 'busy 6', 'busy 7'], 'what one has is not claimed')
    t.same(
      (await claim('three', NOON + 2000, 2)).sort(),
      ['busy 0', 'calm 0'],
      'of each in turn, though one has waited less',
    )
  },
)

t.test('J19 callbacks that waited before they named their organization are claimed in its share', async t => {
  const path = join(temporaryFolder(t), 'gateway.db')
  const old = openDatabase(path, migrations.slice(0, 18))
  const insert = old.prepare(INSERT)
  const event = old.prepare(
    "INSERT INTO job_events (event_id, job_id, type, attempt, state, next_at) VALUES (?, ?, 'video.failed', 1, 'pending', 0)",
  )
  for (const [id, org] of Object.entries({ a: 'busy', b: 'busy', c: 'busy', d: 'calm' })) {
    const ends = { ended: NOON, expires: null, result: null, cost: 0 }
    insert.run({ id, org, provider: 'acme', state: 'failed', at: NOON, deadline: NOON, next: NOON, ...ends })
    event.run(id, id)
  }
  old.prepare("UPDATE job_events SET lease_owner = 'gone', state = 'delivered' WHERE job_id = 'c'").run()
  const trigger = `
    CREATE TRIGGER IF NOT EXISTS note AFTER UPDATE OF lease_owner ON job_events BEGIN
      INSERT INTO given_up VALUES (NEW.job_id);
    END`
  old.exec(`CREATE TABLE given_up (id TEXT NOT NULL); ${trigger}`)
  old.close()
  const stores = openSqlite(path, { now: () => NOON })
  t.teardown(() => stores.close())
  const db = new Database(path)
  t.teardown(() => db.close())
  // A later migration makes the table again, without the trigger.
  db.exec(trigger)
  const claimed = await stores.jobs.claimDeliveries({ owner: 'one', now: NOON, until: NOON + 1000, limit: 9 }, 2)
  t.same(claimed.map(({ jobId }) => jobId).sort(), ['a', 'b', 'd'])
  t.same(
    db.prepare('SELECT id FROM given_up').pluck().all().sort(),
    ['a', 'b', 'c', 'd'],
    'three claims, one old lease',
  )
})
