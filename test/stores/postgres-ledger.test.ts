/** What the ledger on PostgreSQL promises where several nodes use it at once. */
import t from 'tap'
import type { Hold, HoldRequest, Principal } from '../../src/core/ports.ts'
import type { PostgresLedger } from '../../src/stores/postgres/ledger.ts'
import { changeLimit } from '../../src/stores/sql/limits.ts'
import { PostgresSql } from '../../src/stores/sql/postgres.ts'
import type { Sql } from '../../src/stores/sql/sql.ts'
import { withoutPostgres } from '../helpers/postgres.ts'
import { postgresSubject, seeded } from './postgres-subject.ts'
import { HOUR, identity, NOON, rowOf } from './subject.ts'

const wanted = (principal: Principal, id: string, amount: bigint, more: Partial<HoldRequest> = {}): HoldRequest => ({
  id,
  request: identity(id),
  principal,
  amount,
  expiresAt: NOON + HOUR,
  ...more,
})
const many = (count: number, of: string) => Array.from({ length: count }, (_, i) => `${of}-${i}`)
const granted = (results: readonly object[]): Hold[] => results.filter(one => 'id' in one) as Hold[]

t.test('postgres ledger', { skip: withoutPostgres }, async t => {
  t.test('two hundred holds of two nodes on credit for ten are ten', async t => {
    const subject = await postgresSubject(t)
    const nodes = [await subject.node(), await subject.node()]
    for (let round = 0; round < 10; round++) {
      const principal = await seeded(subject, 'prepaid', 1000n)
      const results = await Promise.all(
        many(200, `r${round}`).map((id, i) => nodes[i % 2]!.hold(wanted(principal, id, 100n))),
      )
      t.equal(granted(results).length, 10)
      t.same(await nodes[0]!.balance(principal.orgId), { balance: 1000n, held: 1000n, used: 0n })
      const refused = results.find(one => 'exhausted' in one)
      t.match(refused, { exhausted: 'credits', room: 0n, held: 1000n })
    }
  })

  t.test('two hundred holds of two nodes on each kind of limit for ten are ten', async t => {
    const subject = await postgresSubject(t)
    const nodes = [await subject.node(), await subject.node()]
    for (const period of ['total', 'hour', 'day', 'week', 'month'] as const) {
      const limit = { id: `limit-${period}`, of: 'key', limit: 1000n, period, zone: 'Europe/Berlin' } as const
      const principal = await seeded(subject, 'open', 0n, [limit])
      const results = await Promise.all(
        many(200, period).map((id, i) => nodes[i % 2]!.hold(wanted(principal, id, 100n, { byok: i % 3 === 0 }))),
      )
      t.equal(granted(results).length, 10, period)
      t.match(
        results.find(one => 'exhausted' in one),
        { exhausted: 'key', period, room: 0n, held: 1000n },
      )
    }
  })

  t.test('a settlement is one, however often it is sent', async t => {
    const subject = await postgresSubject(t)
    const [one, two] = [await subject.node(), await subject.node()]
    const principal = await seeded(subject, 'prepaid', 1000n)
    const hold = (await one.hold(wanted(principal, 'a', 100n))) as Hold
    const row = rowOf(principal, 'a', { cost: 70n })
    await Promise.all([one.settle(hold, row), two.settle(hold, row), one.settle(hold, row)])
    await two.settle(hold, row)
    t.same(await one.balance(principal.orgId), { balance: 930n, held: 0n, used: 70n })
    t.same(await subject.rows("SELECT amount FROM ledger WHERE kind = 'charge'"), [{ amount: -70n }])
    t.match(await subject.rows('SELECT requests, cost FROM usage_hourly'), [{ requests: 1n, cost: 70n }])
    t.match(await subject.rows('SELECT spent_rest FROM keys WHERE id = $1', [principal.keyId]), [{ spent_rest: 70n }])
  })

  t.test('holds of a node that is silent for a minute become orphans, which its late settlements correct', async t => {
    const subject = await postgresSubject(t)
    const [lost, other] = [await subject.node(), await subject.node()]
    const principal = await seeded(subject, 'prepaid', 1000n)
    const [a, b] = granted(await Promise.all(['a', 'b'].map(id => lost.hold(wanted(principal, id, 100n)))))
    await lost.checkpoint(a!, { usage: { prompt: 10 }, cost: 30n })
    t.equal(await other.recover(), 0)
    await subject.rows('UPDATE nodes SET seen_at = seen_at - 60001 WHERE id <> $1', [await idOf(subject, other)])
    t.equal(await other.recover(), 2)
    t.same(await other.balance(principal.orgId), { balance: 970n, held: 0n, used: 30n })
    await Promise.all([
      lost.settle(a!, rowOf(principal, 'a', { cost: 50n })),
      lost.settle(b!, rowOf(principal, 'b', { cost: 20n })),
    ])
    t.same(await other.balance(principal.orgId), { balance: 930n, held: 0n, used: 70n })
    t.same(
      await subject.rows('SELECT sum(requests)::bigint AS requests, sum(cost)::bigint AS cost FROM usage_hourly'),
      [{ requests: 2n, cost: 70n }],
    )
  })

  t.test('a limit counts a request that settles while the limit is set', async t => {
    const subject = await postgresSubject(t)
    const ledger = await subject.node()
    const principal = await seeded(subject, 'open', 0n)
    const hold = (await ledger.hold(wanted(principal, 'a', 100n))) as Hold
    const settle = () => ledger.settle(hold, rowOf(principal, 'a', { cost: 70n }))
    await new PostgresSql(subject.pool).transaction(async sql => {
      const query: Sql['query'] = async (text, values) => {
        if (/UPDATE holds/.test(text)) await settle()
        return sql.query(text, values)
      }
      const change = { set: { amount: 1000n } }
      await changeLimit(
        { dialect: sql.dialect, query, transaction: work => work(sql) },
        'key',
        principal.keyId,
        change,
        NOON,
      )
    })
    t.same(await subject.rows('SELECT spent, held FROM budgets'), [{ spent: 70n, held: 0n }])
  })

  t.test('texts that PostgreSQL cannot hold fail no batch', async t => {
    const subject = await postgresSubject(t)
    const ledger = await subject.node()
    const principal = await seeded(subject, 'open', 0n)
    const odd = (id: string) => rowOf(principal, id, { requestedModel: 'a\0b\ud800', source: '\udfff' })
    await Promise.all([ledger.record(odd('a')), ledger.record(rowOf(principal, 'b'))])
    t.same(await subject.rows('SELECT requested_model FROM requests ORDER BY id'), [
      { requested_model: 'a\ufffdb\ufffd' },
      { requested_model: 'large' },
    ])
  })
})

/** The id of a node, as a hold of it shows. */
async function idOf(
  subject: { rows<Row>(sql: string, values?: unknown[]): Promise<Row[]> },
  ledger: PostgresLedger,
): Promise<string> {
  const principal = await seeded(subject, 'open', 0n)
  const hold = (await ledger.hold(wanted(principal, `of-${principal.orgId}`, 1n))) as Hold
  const [row] = await subject.rows<{ owner: string }>('SELECT owner FROM holds WHERE id = $1', [hold.id])
  await ledger.void(hold)
  return row!.owner
}
