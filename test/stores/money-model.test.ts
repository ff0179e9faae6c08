/**
 * The books against a model of them, whatever is done in whatever order: a balance is the sum of its entries, no hold
 * is settled twice, and no limit or plan lets more through than it says. MONEY_RUNS sets how many histories are tried.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { Hold, HoldRequest, Ledger, Principal, Stores } from '../../src/core/ports.ts'
import { checkBooks } from '../../src/stores/postgres/books.ts'
import { markChange } from '../../src/stores/postgres/changes.ts'
import { PostgresLedger } from '../../src/stores/postgres/ledger.ts'
import { SqlAccounts } from '../../src/stores/sql/accounts.ts'
import { AuditedTransaction } from '../../src/stores/sql/audit.ts'
import { SqlCredits } from '../../src/stores/sql/credits.ts'
import { SqlKeys } from '../../src/stores/sql/keys.ts'
import { SqlPlans } from '../../src/stores/sql/plans.ts'
import { PostgresSql } from '../../src/stores/sql/postgres.ts'
import { SqliteSql } from '../../src/stores/sql/sqlite.ts'
import { checkBooks as checkSqliteBooks } from '../../src/stores/sqlite/books.ts'
import { ChangeDetector } from '../../src/stores/sqlite/change-detector.ts'
import { SqliteLedger } from '../../src/stores/sqlite/ledger.ts'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { Writer } from '../../src/stores/sqlite/writer.ts'
import { figure } from '../helpers/figure.ts'
import { withoutPostgres } from '../helpers/postgres.ts'
import { emptying, postgresSubject, seeded } from './postgres-subject.ts'
import { HOUR, identity, integer, NOON, rowOf, seed } from './subject.ts'

const DAY = 24 * HOUR
const RUNS = Number(process.env.MONEY_RUNS ?? 30)
/** PostgreSQL has several nodes, whose orders of events are more. */
const NODES_RUNS = Number(process.env.MONEY_RUNS ?? 50)
const NODES = 3
const MONTHLY = 200n
const WEEKLY = 60n

const amount = fc.bigInt(0n, 40n)
const command = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('hold' as const),
      amount,
      least: fc.option(amount),
      as: fc.constantFrom('credits', 'byok', 'plan', 'premium'),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('extend' as const), which: fc.nat(), amount }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      which: fc.nat(),
      cost: fc.option(fc.bigInt(0n, 60n)),
      storage: fc.constantFrom(0n, 0n, 3n),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('void' as const), which: fc.nat() }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('top up' as const), amount: fc.bigInt(1n, 90n), reference: fc.nat(20) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('refund' as const), amount: fc.bigInt(1n, 50n) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('limit' as const),
      amount: fc.option(fc.bigInt(0n, 300n)),
      daily: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('record' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.oneof(fc.nat(2 * HOUR), fc.nat(9 * DAY)) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('recover' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('crash' as const, 'restart' as const) }) },
)
type Command = typeof command extends fc.Arbitrary<infer C> ? C : never
type Do<K> = Extract<Command, { do: K }>

interface Limit {
  amount: bigint
  daily: boolean
  spent: bigint
  day: number
}
interface Open {
  /** As whoever ends it knows it. */
  hold: Hold
  held: bigint
  readonly expiresAt: number
  readonly limits: Set<Limit>
  /** Those that it knew of when it began. */
  first: ReadonlySet<Limit>
  /** Recovery took it for lost. */
  orphaned: boolean
  open: boolean
  /** Given back: whoever does that settles nothing. */
  voided: boolean
  lost: boolean
  /** The node that has opened it. */
  readonly node: number
}

/** What the books must say, kept in the plainest way. */
class Model {
  now = NOON
  balance = 0n
  used = 0n
  rows = 0
  planUsed = 0n
  monthAt = NOON
  premiumUsed = 0n
  weekAt: number | undefined
  limits: Limit[] = []
  holds: Open[] = []
  readonly booked = new Map<number, bigint>()
  readonly spent: { at: number; cost: bigint }[] = []
  readonly prepaid: boolean
  readonly overflow: boolean

  constructor(prepaid: boolean, overflow: boolean) {
    this.prepaid = prepaid
    this.overflow = overflow
  }

  held(of: (open: Open) => boolean): bigint {
    return this.holds.reduce((sum, one) => (one.open && of(one) ? sum + one.held : sum), 0n)
  }

  /** The clock goes on: days, weeks and the one month that histories are long enough for begin anew. */
  roll(): void {
    for (const limit of this.limits) {
      if (!limit.daily || limit.day === Math.floor(this.now / DAY)) continue
      limit.day = Math.floor(this.now / DAY)
      limit.spent = 0n
    }
    if (this.weekAt !== undefined && this.now >= this.weekAt + 7 * DAY) {
      this.weekAt = undefined
      this.premiumUsed = 0n
    }
    for (;;) {
      const next = new Date(this.monthAt)
      next.setUTCMonth(next.getUTCMonth() + 1)
      if (this.now < next.getTime()) return
      this.monthAt = next.getTime()
      this.planUsed = 0n
    }
  }

  /** The most that may be held, and who pays; undefined when that is nobody. */
  most(wanted: bigint, least: bigint, funds: (amount: bigint) => Hold['funds'] | undefined) {
    for (let amount = wanted; amount >= least && amount >= 0n; amount--) {
      const by = funds(amount)
      if (by) return { amount, by }
    }
    return undefined
  }

  /** Who pays for more of a hold, or that nobody does. */
  more(amount: bigint, { hold, limits }: Open): Hold['funds'] | undefined {
    for (const limit of this.limits) if (limits.has(limit) && !this.hasRoom(limit, amount)) return undefined
    return this.pays(amount, hold.funds) ? hold.funds : undefined
  }

  hasRoom(limit: Limit, amount: bigint): boolean {
    const held = this.held(({ limits }) => limits.has(limit))
    return limit.spent < limit.amount && limit.spent + held + amount <= limit.amount
  }

  pays(amount: bigint, as: Hold['funds']): boolean {
    if (as === 'byok' || amount === 0n) return true
    if (as === 'credits') return !this.prepaid || this.balance - this.held(({ hold }) => hold.funds === as) >= amount
    const month = this.planUsed + this.held(({ hold }) => isPlan(hold)) + amount <= MONTHLY
    const week = this.premiumUsed + this.held(({ hold }) => hold.funds === 'premium') + amount <= WEEKLY
    return month && (as === 'plan' || week)
  }

  /** Who pays, or that nobody does. */
  funds(amount: bigint, as: Hold['funds']): Hold['funds'] | undefined {
    for (const limit of this.limits) if (!this.hasRoom(limit, amount)) return undefined
    if (this.pays(amount, as)) return as
    return isPlan({ funds: as }) && this.overflow && this.pays(amount, 'credits') ? 'credits' : undefined
  }

  settle(one: Open, cost: bigint, storage: bigint): void {
    if (!one.orphaned) this.rows++
    const limits = one.orphaned ? one.first : one.limits
    one.open = false
    one.orphaned = false
    for (const limit of limits) if (this.limits.includes(limit)) limit.spent += cost
    this.spent.push({ at: this.now, cost })
    const { funds } = one.hold
    const charge = funds === 'credits' ? cost + storage : storage
    this.balance -= charge
    this.used += charge
    if (isPlan(one.hold)) this.planUsed += cost
    if (funds !== 'premium') return
    this.premiumUsed += cost
    if (cost > 0n) this.weekAt ??= this.now
  }

  setLimit({ amount, daily }: Do<'limit'>): void {
    const old = this.limits.find(limit => limit.daily === daily)
    if (amount !== null && old) {
      old.amount = amount
      return
    }
    this.limits = this.limits.filter(limit => limit !== old)
    if (amount === null) return
    const day = Math.floor(this.now / DAY)
    const since = daily ? day * DAY : 0
    const spent = this.spent.reduce((sum, { at, cost }) => (at >= since ? sum + cost : sum), 0n)
    const limit = { amount, daily, spent, day }
    this.limits.push(limit)
    for (const one of this.holds) if (one.open) one.limits.add(limit)
  }
}

const isPlan = ({ funds }: Pick<Hold, 'funds'>): boolean => funds === 'plan' || funds === 'premium'

/** What histories are played on. */
interface Books extends Pick<Stores, 'accounts' | 'credits' | 'keys' | 'plans'> {
  /** One for each node. */
  readonly ledgers: readonly Ledger[]
  check(): Promise<string[]>
  /** A new organization with a project. */
  organization(account: Principal['account']): Promise<Pick<Principal, 'orgId' | 'projectId'>>
  /** The entries of an organization's credits, and the rows of all requests. */
  sums(orgId: string): Promise<{ entries: bigint; rows: number }>
  /** Another ledger takes the place of a node's that has ended, or whose process is gone. */
  begin(how: 'crash' | 'restart', node: number): Promise<void>
  /** The clock has gone on; nodes that live have shown it. */
  waited(): Promise<void>
  close(): Promise<void>
}

const warn = (error: unknown) => {
  throw error
}

function sqliteBooks(now: () => number): Books {
  const db = openDatabase(':memory:')
  const writer = new Writer(db)
  const sql = new SqliteSql(db, writer)
  const keys = new SqlKeys(sql, new ChangeDetector(db), now)
  const changes = new AuditedTransaction(sql, { now, onKeyChange: () => keys.clear() })
  const ledgers = [new SqliteLedger(db, writer, { now, warn })]
  const gone: SqliteLedger[] = []
  return {
    keys,
    accounts: new SqlAccounts(changes),
    credits: new SqlCredits(changes),
    plans: new SqlPlans(changes),
    ledgers,
    check: async () => checkSqliteBooks(db),
    organization: async account => seed(db, account, 0n),
    async sums(orgId) {
      const entries = db.prepare<[string], bigint>(
        "SELECT coalesce(sum(amount), 0) FROM ledger WHERE org_id = ? AND account = 'credits'",
      )
      const rows = integer(db, 'SELECT count(*) FROM requests')
      return { entries: entries.pluck().safeIntegers().get(orgId)!, rows }
    },
    async begin(how) {
      const ended = ledgers.pop()!
      if (how === 'restart') await ended.close()
      else {
        db.exec("UPDATE owners SET started = 'by somebody else'")
        gone.push(ended)
      }
      ledgers.push(new SqliteLedger(db, writer, { now, warn }))
    },
    // Processes show that they live by a lock.
    waited: async () => {},
    async close() {
      for (const ledger of [...gone, ...ledgers]) await ledger.close()
      db.close()
    },
  }
}

/** All histories have one database, which each of them finds empty. */
async function postgresDatabase(t: Test): Promise<Make> {
  const subject = await postgresSubject(t)
  const sql = new PostgresSql(subject.pool)
  const empty = await emptying(subject.pool)
  return async now => {
    await subject.pool.query(empty)
    let count = 0
    // The version of a node names it here.
    const node = async () => {
      const version = `node ${count++}`
      return { version, ledger: await PostgresLedger.open(subject.pool, { now, warn, version }) }
    }
    const watch = { poll: () => 'same' as const, lost: false }
    const keys = new SqlKeys(sql, watch, now)
    const changes = new AuditedTransaction(sql, { now, mark: markChange, onKeyChange: () => keys.clear() })
    const nodes = await Promise.all(Array.from({ length: NODES }, node))
    const ended: PostgresLedger[] = []
    return {
      keys,
      accounts: new SqlAccounts(changes),
      credits: new SqlCredits(changes),
      plans: new SqlPlans(changes),
      get ledgers() {
        return nodes.map(({ ledger }) => ledger)
      },
      check: () => checkBooks(subject.url),
      organization: account => seeded(subject, account, 0n),
      async sums(orgId) {
        const [sums] = await subject.rows<{ entries: bigint; rows: bigint }>(
          `SELECT coalesce(sum(amount), 0)::bigint AS entries, (SELECT count(*) FROM requests) AS rows
            FROM ledger WHERE org_id = $1 AND account = 'credits'`,
          [orgId],
        )
        return { entries: sums!.entries, rows: Number(sums!.rows) }
      },
      async begin(how, at) {
        const { ledger, version } = nodes[at]!
        if (how === 'restart') await ledger.close()
        else {
          await subject.rows('UPDATE nodes SET seen_at = 0 WHERE version = $1', [version])
          ended.push(ledger)
        }
        nodes[at] = await node()
      },
      async waited() {
        const living = JSON.stringify(nodes.map(({ version }) => version))
        const those = 'version IN (SELECT json_array_elements_text($1::json))'
        await subject.rows(`UPDATE nodes SET seen_at = $2 WHERE ${those}`, [living, now()])
      },
      async close() {
        for (const ledger of [...ended, ...nodes.map(({ ledger }) => ledger)]) await ledger.close()
      },
    }
  }
}

type Make = (now: () => number) => Books | Promise<Books>

async function run(
  make: Make,
  account: Principal['account'],
  overflow: boolean,
  commands: readonly Command[],
): Promise<void> {
  const model = new Model(account === 'prepaid', overflow)
  const store = await make(() => model.now)
  const { keys, accounts, credits, plans } = store
  const { orgId, projectId } = await store.organization(account)
  const { id: keyId, key } = await accounts.createKey({ project: projectId, name: 'k' })
  await plans.set(orgId, { plan: 'lite', overflow }, 'test')
  const principal = async () => (await keys.find(createHash('sha256').update(key).digest('hex')))!
  const allowance = (as: string): HoldRequest['allowance'] =>
    as === 'plan' || as === 'premium' ? { monthly: MONTHLY, premium: as === 'premium' ? WEEKLY : undefined } : undefined

  for (const [i, it] of commands.entries()) {
    const node = i % store.ledgers.length
    const ledger = store.ledgers[node]!
    model.roll()
    const chosen = 'which' in it ? model.holds[it.which % (model.holds.length || 1)] : undefined
    if (it.do === 'hold') {
      const [id, expiresAt] = [`hold-${i}`, model.now + HOUR]
      const base = { id, request: identity(id), principal: await principal(), amount: it.amount, expiresAt }
      const least = it.least === null ? {} : { least: it.least < it.amount ? it.least : it.amount }
      const got = await ledger.hold({ ...base, ...least, byok: it.as === 'byok', allowance: allowance(it.as) })
      const as = it.as as Hold['funds']
      const most = model.most(it.amount, least.least ?? it.amount, amount => model.funds(amount, as))
      const granted = 'id' in got ? got : undefined
      assert.deepEqual([granted?.funds, granted?.amount], [most?.by, most?.amount])
      const limits = new Set(model.limits)
      const first = new Set(limits)
      const one = { expiresAt, limits, first, orphaned: false, open: true, voided: false, lost: false, node }
      if (granted) model.holds.push({ hold: granted, held: granted.amount, ...one })
    } else if (it.do === 'extend' && chosen) {
      const before = chosen.hold.amount
      const most = chosen.open ? model.most(it.amount, 1n, amount => model.more(amount, chosen)) : undefined
      const wanted = { principal: await principal(), amount: it.amount, allowance: allowance(chosen.hold.funds) }
      const grown = await ledger.extend(chosen.hold, wanted)
      assert.equal(grown.amount, before + (most?.amount ?? 0n))
      // Who ends it need not know.
      if (it.which % 2 === 0) {
        chosen.hold = grown
        if (chosen.open) chosen.first = new Set(chosen.limits)
      }
      chosen.held += most?.amount ?? 0n
    } else if (it.do === 'settle' && chosen && !chosen.voided) {
      const row = rowOf(await principal(), chosen.hold.id, { at: model.now, cost: it.cost, storage: it.storage })
      await ledger.settle(chosen.hold, row)
      if (chosen.open || chosen.orphaned) model.settle(chosen, it.cost ?? 0n, it.storage)
    } else if (it.do === 'void' && chosen) {
      await ledger.void(chosen.hold)
      chosen.voided ||= chosen.open
      chosen.open = false
    } else if (it.do === 'top up') {
      const first = model.booked.get(it.reference)
      const booking = credits.add({ organization: orgId, amount: it.amount, reference: `p${it.reference}` }, 'test')
      if (first !== undefined && first !== it.amount) await assert.rejects(booking, { status: 400 })
      else await booking
      if (first === undefined) {
        model.booked.set(it.reference, it.amount)
        model.balance += it.amount
      }
    } else if (it.do === 'refund') {
      const free = model.balance - model.held(({ hold }) => hold.funds === 'credits')
      const refund = credits.refund({ organization: orgId, amount: it.amount }, 'test')
      if (model.prepaid && free < it.amount) await assert.rejects(refund, { status: 400 })
      else {
        await refund
        model.balance -= it.amount
      }
    } else if (it.do === 'limit') {
      const period = it.daily ? ('day' as const) : undefined
      const drop = it.daily ? ('period' as const) : ('total' as const)
      await accounts.updateKey(keyId, { limit: it.amount === null ? { drop } : { set: { amount: it.amount, period } } })
      model.setLimit(it)
    } else if (it.do === 'record') {
      await ledger.record(rowOf(await principal(), `record-${i}`, { at: model.now }))
      model.rows++
    } else if (it.do === 'wait') {
      model.now += it.ms
      await store.waited()
    } else if (it.do === 'recover') {
      const lost = model.holds.filter(one => one.open && (one.lost || one.expiresAt + 60_000 < model.now))
      assert.equal(await ledger.recover(), lost.length)
      for (const one of lost) {
        one.open = false
        one.orphaned = true
      }
      model.rows += lost.length
    } else if (it.do === 'crash' || it.do === 'restart') {
      await store.begin(it.do, node)
      for (const one of model.holds) one.lost ||= one.node === node
    }
    await compare(model, store, orgId, await principal())
  }
  assert.deepEqual(await store.check(), [])
  await store.close()
}

async function compare(model: Model, { keys, credits, plans, sums }: Books, orgId: string, principal: Principal) {
  model.roll()
  const held = model.held(({ hold }) => hold.funds === 'credits')
  assert.deepEqual(await credits.show(orgId), { balance: model.balance, held, used: model.used })
  assert.deepEqual(await sums(orgId), { entries: model.balance, rows: model.rows })
  const plan = await plans.show(orgId)
  assert.deepEqual([plan?.used, plan?.premiumUsed], [model.planUsed, model.premiumUsed])
  const { budgets, spent } = await keys.status(principal)
  assert.equal(
    spent,
    model.spent.reduce((sum, { cost }) => sum + cost, 0n),
  )
  const known = (daily: boolean) => {
    const limit = model.limits.find(one => one.daily === daily)
    return limit && [limit.amount, limit.spent, model.held(({ limits }) => limits.has(limit))]
  }
  const told = (daily: boolean) => {
    const one = budgets.find(({ period }) => (period === 'day') === daily)
    return one && [one.limit, one.spent, one.held]
  }
  for (const daily of [true, false]) assert.deepEqual(told(daily), known(daily))
}

const agree = (make: Make, numRuns: number) => {
  const account = fc.constantFrom('open' as const, 'prepaid' as const)
  const commands = fc.array(command, { minLength: 1, maxLength: 30 })
  return fc.assert(
    fc.asyncProperty(account, fc.boolean(), commands, (...history) => run(make, ...history)),
    { numRuns },
  )
}

t.test(`the books agree with the model over ${RUNS} histories`, async t => {
  await agree(sqliteBooks, RUNS)
  figure(t, { id: 'CS-06', what: 'histories of the books that agree with the model', value: RUNS, unit: '' })
})

const several = `the books of ${NODES} nodes in PostgreSQL agree with the model over ${NODES_RUNS} histories`
t.test(several, { skip: withoutPostgres }, async t => {
  await agree(await postgresDatabase(t), NODES_RUNS)
  const what = 'histories of three nodes on PostgreSQL that agree with the model'
  figure(t, { id: 'CS-06', what, value: NODES_RUNS, unit: '' })
})
