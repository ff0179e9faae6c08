/** The ledger on PostgreSQL while nodes touch the same accounts in any order, connections break, and the server dies. */
import assert from 'node:assert/strict'
import t from 'tap'
import type { Budget, Hold, HoldRequest, Principal } from '../../src/core/ports.ts'
import { markChange } from '../../src/stores/postgres/changes.ts'
import type { PostgresLedger } from '../../src/stores/postgres/ledger.ts'
import { SqlAccounts } from '../../src/stores/sql/accounts.ts'
import { AuditedTransaction } from '../../src/stores/sql/audit.ts'
import { SqlCredits } from '../../src/stores/sql/credits.ts'
import { PostgresSql } from '../../src/stores/sql/postgres.ts'
import { startPostgres, withoutPostgres } from '../helpers/postgres.ts'
import { random } from '../helpers/random.ts'
import { runs } from '../helpers/runs.ts'
import { type PostgresSubject, postgresSubject, seeded } from './postgres-subject.ts'
import { HOUR, identity, NOON, rowOf, temporaryFolder } from './subject.ts'

const SEED = 20261128
const AT_ONCE = 24

/** What a storm has done. */
interface Storm {
  /** Costs by the ids of requests whose settlement was acknowledged, or whose row is in the spool. */
  readonly settled: Map<string, bigint>
  /** Errors of calls, by message. */
  readonly errors: string[]
}

/** Organizations whose keys share limits in any order; every third has a plan. */
async function tenants(subject: PostgresSubject): Promise<Principal[]> {
  const limit = (id: string): Budget => ({ id, of: 'key', limit: 10n ** 15n, period: 'total', zone: 'UTC' })
  const shared = ['a', 'b', 'c', 'd'].map(limit)
  await seeded(subject, 'open', 0n, shared)
  const principals: Principal[] = []
  for (let n = 0; n < 9; n++) {
    const principal = await seeded(subject, n % 2 === 0 ? 'open' : 'prepaid', 50_000n)
    const budgets = [shared[n % 4]!, shared[(n + 1 + (n % 3)) % 4]!]
    const plan = n % 3 === 0 ? ({ plan: 'lite', since: NOON, overflow: true } as const) : undefined
    if (plan) {
      const text =
        "INSERT INTO subscriptions (org_id, plan, since, overflow, month_at) VALUES ($1, 'lite', $2, true, $2)"
      await subject.rows(text, [principal.orgId, NOON])
    }
    principals.push({ ...principal, budgets, plan })
  }
  return principals
}

/** Runs requests from several nodes; `every` is called after each one. */
async function storm(
  nodes: readonly PostgresLedger[],
  principals: readonly Principal[],
  count: number,
  every: (done: number) => unknown = () => {},
): Promise<Storm> {
  const next = random(SEED + count)
  const pick = <T>(some: readonly T[]): T => some[Math.floor(next() * some.length)]!
  const settled = new Map<string, bigint>()
  const errors: string[] = []
  const failed = (error: unknown) => void errors.push(String((error as { cause?: unknown }).cause ?? error))
  let begun = 0
  let done = 0
  const one = async (id: string) => {
    const ledger = pick(nodes)
    const principal = pick(principals)
    const monthly = { monthly: 10n ** 12n, premium: next() < 0.5 ? 10n ** 12n : undefined }
    const wanted: HoldRequest = {
      ...{ id, request: identity(id), principal, expiresAt: NOON + HOUR, allowance: principal.plan && monthly },
      ...{ amount: BigInt(Math.floor(next() * 100)), spare: next() < 0.3 ? 50n : 0n, byok: next() < 0.2 },
    }
    const got = await ledger.hold(wanted)
    if ('exhausted' in got) return
    let hold: Hold = got
    if (next() < 0.2) hold = await ledger.extend(hold, { principal, amount: 20n, allowance: wanted.allowance })
    if (next() < 0.2) await ledger.checkpoint(hold, { usage: { prompt: 1 }, cost: 1n })
    if (next() < 0.2) return await ledger.void(hold)
    const cost = BigInt(Math.floor(next() * 120))
    const row = rowOf(principal, id, { cost })
    await ledger.settle(hold, row).catch(error => {
      failed(error)
      return ledger.spool(row, hold)
    })
    settled.set(id, cost)
  }
  const worker = async () => {
    while (begun < count) {
      await one(`s${count}-${begun++}`).catch(failed)
      await every(++done)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return { settled, errors }
}

/** Fails where the books of all organizations, limits and keys contradict each other. */
async function checkBooks({ rows }: PostgresSubject, { settled }: Storm): Promise<void> {
  const differences = await rows(`
    SELECT 'balance' AS what, org_id AS id FROM balances b WHERE
      balance <> (SELECT coalesce(sum(amount), 0) FROM ledger l WHERE l.org_id = b.org_id AND account = 'credits')
      OR held <> (SELECT coalesce(sum(amount), 0) FROM holds h WHERE h.org_id = b.org_id AND funds = 'credits')
      OR used <> (SELECT coalesce(-sum(amount), 0) FROM ledger l WHERE l.org_id = b.org_id AND kind = 'charge')
    UNION ALL SELECT 'plan', org_id FROM subscriptions s WHERE
      used <> (SELECT coalesce(-sum(amount), 0) FROM ledger l WHERE l.org_id = s.org_id AND account = 'plan')
      OR held <> (SELECT coalesce(sum(amount), 0) FROM holds h WHERE h.org_id = s.org_id AND funds IN ('plan', 'premium'))
    UNION ALL SELECT 'limit', id FROM budgets b WHERE
      held <> (SELECT coalesce(sum(amount), 0) FROM holds h WHERE h.budgets::jsonb ? b.id)
    UNION ALL SELECT 'charges', '' WHERE
      (SELECT coalesce(sum(charged), 0) FROM requests)
        <> (SELECT coalesce(-sum(amount), 0) FROM ledger WHERE counter = 'usage')
    UNION ALL SELECT 'hours', '' WHERE
      (SELECT (count(*)::numeric, coalesce(sum(cost), 0)) FROM requests)
        <> (SELECT (coalesce(sum(requests), 0), coalesce(sum(cost), 0)) FROM usage_hourly)
    UNION ALL SELECT 'key', id FROM keys k WHERE
      spent_units * 1000000000 + spent_rest <> (SELECT coalesce(sum(cost), 0) FROM requests r WHERE r.key_id = k.id)`)
  assert.deepEqual(differences, [])
  const found = await rows<{ id: string; cost: bigint }>("SELECT id, cost FROM requests WHERE outcome = 'ok'")
  const costs = new Map(found.map(({ id, cost }) => [id, cost]))
  for (const [id, cost] of settled) assert.equal(costs.get(id), cost, id)
}

t.test('postgres in a storm', { skip: withoutPostgres }, async t => {
  t.test('nodes that touch the same accounts in any order never wait for each other in a circle', async t => {
    const subject = await postgresSubject(t)
    const nodes = [await subject.node(), await subject.node(), await subject.node()]
    const result = await storm(nodes, await tenants(subject), runs(20_000, 40))
    t.same(result.errors, [])
    await checkBooks(subject, result)
    t.same(await subject.rows('SELECT id FROM holds'), [])
    t.equal(await deadlocksOf(subject), 0n)
  })

  t.test('nor do operators who change their keys, limits and credits meanwhile', async t => {
    const subject = await postgresSubject(t)
    const nodes = [await subject.node(), await subject.node(), await subject.node()]
    const principals = await tenants(subject)
    const now = () => subject.clock.now
    const changes = new AuditedTransaction(new PostgresSql(subject.pool), { now, mark: markChange, onKeyChange() {} })
    const [accounts, credits] = [new SqlAccounts(changes), new SqlCredits(changes)]
    const failed: unknown[] = []
    let changed = 0
    const change = async ({ keyId, orgId }: Principal) => {
      const amount = 10n ** 15n + BigInt(++changed)
      const period = (['hour', 'day', 'month'] as const)[changed % 3]!
      await accounts.updateKey(keyId, { name: `k${changed}`, limit: { set: { amount, period } } })
      await accounts.updateKey(keyId, { limit: { set: { amount } } })
      await credits.add({ organization: orgId, amount: 1n }, 'test')
      if (changed % 4 === 0) await accounts.updateKey(keyId, { limit: { drop: 'period' } })
    }
    let running: Promise<void> | undefined
    const result = await storm(nodes, principals, runs(10_000), async () => {
      running ??= change(principals[changed % principals.length]!).catch(error => void failed.push(error))
      void running.then(() => {
        running = undefined
      })
    })
    await running
    t.ok(changed > 20, `${changed} changes`)
    t.same([failed, result.errors], [[], []])
    await checkBooks(subject, result)
    t.equal(await deadlocksOf(subject), 0n)
  })

  t.test('ten nodes on one hot key wait for each other, never in a circle', async t => {
    const subject = await postgresSubject(t)
    const limit: Budget = { id: 'hot', of: 'key', limit: 10n ** 15n, period: 'month', zone: 'UTC' }
    const principal = await seeded(subject, 'prepaid', 10n ** 12n, [limit])
    const nodes = await Promise.all(Array.from({ length: 10 }, () => subject.node()))
    const result = await storm(nodes, [principal], runs(60_000, 60))
    t.same(result.errors, [])
    await checkBooks(subject, result)
    const spent = [...result.settled.values()].reduce((sum, cost) => sum + cost, 0n)
    t.same(await subject.rows('SELECT spent, held FROM budgets'), [{ spent, held: 0n }])
    t.equal(await deadlocksOf(subject), 0n)
  })

  t.test('what waits longer for a lock than a statement may is repeated', async t => {
    const subject = await postgresSubject(t)
    const ledger = await subject.node()
    const principal = await seeded(subject, 'open', 0n)
    const migration = subject.pool.query('BEGIN; LOCK TABLE holds; SELECT pg_sleep(0.8); COMMIT')
    const request = { id: 'a:1', request: identity('a'), principal, amount: 1n, expiresAt: NOON + HOUR }
    t.match(await ledger.hold(request), { amount: 1n })
    await migration
    const inTurn = new PostgresSql(subject.pool, 7)
    const first = inTurn.transaction(sql => sql.query('SELECT pg_sleep(0.8)'))
    await Promise.all([first, inTurn.transaction(sql => sql.query('SELECT 1'))])
  })

  t.test('no settlement is lost or doubled when connections end', async t => {
    const subject = await postgresSubject(t)
    const spool = `${temporaryFolder(t)}/rows`
    const nodes = [await subject.node({ spool }), await subject.node({ spool })]
    const end = () =>
      subject.rows(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1`)
    const result = await storm(
      nodes,
      await tenants(subject),
      runs(6000),
      done => done % 25 === 0 && end().catch(() => {}),
    )
    t.ok(result.errors.length > 0, 'connections have ended')
    await settleAll(subject, nodes)
    await checkBooks(subject, result)
  })

  t.test('a request whose hold a crash of the server has lost is charged once', async t => {
    const server = await startPostgres({ fsync: true })
    // Until then a commit that does not wait for the disk stays in memory.
    await server.run("ALTER SYSTEM SET wal_writer_delay = '10s'")
    await server.run('SELECT pg_reload_conf()')
    const subject = await postgresSubject(t, { given: server })
    const ledger = await subject.node()
    const principal = await seeded(subject, 'prepaid', 1000n, [
      { id: 'limit', of: 'key', limit: 1000n, period: 'total', zone: 'UTC' },
    ])
    const request = { request: identity('a'), principal, amount: 100n, expiresAt: NOON + HOUR }
    const [lost, voided] = await Promise.all(['a:1', 'b:1'].map(id => ledger.hold({ ...request, id })))
    await server.crash()
    await server.start()
    t.same(await subject.rows('SELECT id FROM holds'), [])
    const row = rowOf(principal, 'a', { cost: 70n })
    await ledger.settle(lost as Hold, row)
    await ledger.settle(lost as Hold, row)
    await ledger.void(voided as Hold)
    t.same(await ledger.balance(principal.orgId), { balance: 930n, held: 0n, used: 70n })
    t.same(await subject.rows('SELECT spent, held FROM budgets'), [{ spent: 70n, held: 0n }])
    await checkBooks(subject, { settled: new Map([['a', 70n]]), errors: [] })
  })

  t.test('no settlement is lost or doubled when the server dies', async t => {
    const server = await startPostgres({ fsync: true })
    const subject = await postgresSubject(t, { given: server })
    const spool = `${temporaryFolder(t)}/rows`
    const nodes = [await subject.node({ spool }), await subject.node({ spool })]
    const principals = await tenants(subject)
    const rounds = runs(30, 15)
    const size = 300
    let restarted: Promise<void> | undefined
    const restart = async () => {
      await server.crash()
      await server.start()
      restarted = undefined
    }
    const result = await storm(nodes, principals, rounds * size, async done => {
      if (done % size === 150) restarted ??= restart()
      // Some requests meet a server that is away, the others wait for it.
      if (done % 10 === 0) await restarted
    })
    await restarted
    t.ok(result.errors.length > 0, 'the server was away')
    await settleAll(subject, nodes)
    await checkBooks(subject, result)
  })
})

async function deadlocksOf({ rows }: PostgresSubject): Promise<bigint> {
  const text = 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()'
  const [row] = await rows<{ deadlocks: bigint }>(text)
  return row!.deadlocks
}

const RECOVERIES = 5
/** Recovers as a gateway does, again and again: the pool may still have connections that the server has ended. */
async function recovered(node: PostgresLedger): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await node.recover()
      return
    } catch (error) {
      if (tries === RECOVERIES) throw error
    }
  }
}

/** Enters what is in the spool, and settles the holds that nothing ends any more. */
async function settleAll(subject: PostgresSubject, nodes: readonly PostgresLedger[]): Promise<void> {
  for (const node of nodes) await recovered(node)
  subject.clock.now += 2 * HOUR
  await recovered(nodes[0]!)
  assert.deepEqual(await subject.rows('SELECT id FROM holds'), [])
}
