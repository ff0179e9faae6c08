/** What every ledger must do about limits of keys and members, coding plans, and callers who pay for themselves. */
import { createHash } from 'node:crypto'
import type { Test } from 'tap'
import type { Allowance, Hold, HoldRequest, LimitInput, Principal } from '../../src/core/ports.ts'
import { stampOf } from '../../src/lib/id.ts'
import { HOUR, identity, type MakeSubject, NOON, rowOf, type Subject } from './subject.ts'

const DAY = 24 * HOUR
const sha256 = (key: string): string => createHash('sha256').update(key).digest('hex')

/** A key of an organization with `credits`, as requests see it. */
async function keyed(
  subject: Subject,
  { credits = 1_000_000n, limit, createdBy }: { credits?: bigint; limit?: LimitInput; createdBy?: string } = {},
) {
  const { projectId: project, orgId } = await subject.organization('prepaid', credits)
  if (createdBy) await subject.members.add({ organization: orgId, email: createdBy, role: 'developer' }, 'test')
  const { id, key } = await subject.accounts.createKey({ project, name: 'k', limit, createdBy })
  const principal = async () => (await subject.keys.find(sha256(key))) as Principal
  return { id, orgId, project, principal }
}

let asked = 0
async function ask(subject: Subject, principal: Principal, amount: bigint, more: Partial<HoldRequest> = {}) {
  const id = `limit-${++asked}`
  const got = await subject.ledger.hold({
    id,
    request: identity(id),
    principal,
    amount,
    expiresAt: subject.clock.now + HOUR,
    ...more,
  })
  return 'exhausted' in got ? got : Object.assign(got, { request: id })
}
async function granted(...args: Parameters<typeof ask>): Promise<Hold & { request: string }> {
  const got = await ask(...args)
  if ('exhausted' in got) throw new Error(`refused: ${JSON.stringify(got)}`)
  return got
}
const settle = (subject: Subject, principal: Principal, hold: Hold & { request: string }, cost: bigint, storage = 0n) =>
  subject.ledger.settle(hold, rowOf(principal, hold.request, { cost, storage, at: subject.clock.now }))
async function spend(subject: Subject, principal: Principal, cost: bigint, more?: Partial<HoldRequest>) {
  await settle(subject, principal, await granted(subject, principal, cost, more), cost)
}

export function limitContract(t: Test, make: MakeSubject): void {
  t.test('a limit of all time is what holds and charges may come to together', async t => {
    const subject = await make(t)
    const { id, principal } = await keyed(subject, { limit: { amount: 100n } })
    const key = await principal()
    t.match(key.budgets, [{ of: 'key', period: 'total', limit: 100n, zone: 'UTC' }])
    const first = await granted(subject, key, 60n)
    t.match(await ask(subject, key, 41n), { exhausted: 'key', period: 'total', resetsAt: undefined })
    const second = await granted(subject, key, 40n)
    await settle(subject, key, first, 50n)
    await subject.ledger.void(second)
    t.match(await ask(subject, key, 51n), { exhausted: 'key' })
    await spend(subject, key, 50n)
    t.match(await ask(subject, key, 0n), { exhausted: 'key' }, 'one that is reached refuses what is free, too')
    subject.clock.now += 1000 * DAY
    t.match(await ask(subject, key, 1n), { exhausted: 'key' }, 'for ever')
    t.match(await subject.accounts.listKeys(), [{}, { id, limits: [{ period: 'total', limit: 100n, spent: 100n }] }])
    t.same(await subject.usage.check(), [])
  })

  t.test('a limit of an end user begins with the first hold, and counts holds and charges of all keys', async t => {
    const subject = await make(t)
    const { orgId, principal } = await keyed(subject)
    const limit = { id: 'eu_1', of: 'end-user', limit: 100n, period: 'day', zone: 'UTC' } as const
    const of = (key: Principal, most = 100n): Principal => {
      return { ...key, endUser: 'ann', budgets: [{ ...limit, limit: most }, ...key.budgets] }
    }
    const key = of(await principal())
    const first = await granted(subject, key, 60n)
    const refused = { exhausted: 'end-user', endUser: 'ann', period: 'day', room: 40n, resetsAt: Date.UTC(2026, 0, 3) }
    t.match(await ask(subject, key, 41n), refused)
    t.match(await granted(subject, key, 41n, { least: 1n }), { amount: 40n })
    await settle(subject, key, first, 50n)
    t.match(await ask(subject, key, 11n), { exhausted: 'end-user', room: 10n })
    const other = { ...of(await principal()), budgets: [{ ...limit, id: 'eu_2' }], endUser: 'bob' }
    await spend(subject, other, 100n)
    t.match(
      await ask(subject, other, 0n),
      { exhausted: 'end-user', endUser: 'bob' },
      'a reached one refuses what is free',
    )
    t.match(await granted(subject, of(await principal(), 200n), 110n), { amount: 110n }, 'a raised one has more room')
    t.match(await ask(subject, of(await principal(), 50n), 1n), { exhausted: 'end-user', room: 0n }, 'a lower one less')
    t.same(await subject.usage.check(), [])
    subject.clock.now = Date.UTC(2026, 0, 3)
    await spend(subject, other, 100n)
    t.match(await ask(subject, other, 1n), { exhausted: 'end-user' }, 'in each of its periods')
    t.equal((await subject.ledger.balance(orgId)).held, 150n)
    t.same(await subject.usage.check(), [])
  })

  t.test('requests at a time hold no more than the limit of their end user', async t => {
    const subject = await make(t)
    const { principal } = await keyed(subject)
    const limit = { id: 'eu_1', of: 'end-user', limit: 100n, period: 'month', zone: 'UTC' } as const
    const key = { ...(await principal()), endUser: 'ann', budgets: [limit] }
    const got = await Promise.all(Array.from({ length: 50 }, () => ask(subject, key, 7n)))
    const held = got.filter(one => !('exhausted' in one)) as (Hold & { request: string })[]
    t.equal(held.length, 14)
    await Promise.all(held.map(one => settle(subject, key, one, 5n)))
    const again = await Promise.all(Array.from({ length: 50 }, () => ask(subject, key, 5n)))
    t.equal(again.filter(one => !('exhausted' in one)).length, 6)
    t.same(await subject.usage.check(), [])
  })

  t.test('a limit that only notifies counts what passes it, and says so', async t => {
    const subject = await make(t)
    const limit = { amount: 100n, onLimit: 'notify' } as const
    const { id, orgId, principal } = await keyed(subject, { limit, credits: 300n })
    const key = await principal()
    t.match(key.budgets, [{ onLimit: 'notify' }])
    const first = await granted(subject, key, 90n)
    t.notOk(first.passed, 'one with room passes nothing')
    const second = await granted(subject, key, 30n, { least: 1n })
    t.match(second, { amount: 30n, passed: [{ exhausted: 'key', period: 'total', room: 10n, held: 90n }] })
    const more = await subject.ledger.extend(second, { principal: key, amount: 20n })
    t.match(more, { amount: 50n, refused: undefined })
    await settle(subject, key, first, 90n)
    await settle(subject, key, second, 50n)
    t.match((await granted(subject, key, 0n)).passed, [{ room: 0n }], 'what is free passes too')
    t.match(await granted(subject, key, 200n, { least: 1n }), { amount: 160n, refused: { exhausted: 'credits' } })
    t.match(await ask(subject, key, 1n), { exhausted: 'credits' }, 'credits are never passed')
    t.equal((await subject.ledger.balance(orgId)).held, 160n)
    t.strictSame((await subject.accounts.showKey(id)).limits[0]!.on_limit, 'notify')
    t.same(await subject.usage.check(), [])
  })

  t.test(
    'a limit of all that are asked for at once counts all where it notifies, and refuses as before else',
    async t => {
      for (const onLimit of ['refuse', 'notify', { use: 'other' }] as const) {
        const subject = await make(t)
        const { orgId, principal } = await keyed(subject, { limit: { amount: 100n, onLimit }, credits: 900n })
        const key = await principal()
        const got = await Promise.all(Array.from({ length: 200 }, () => ask(subject, key, 7n)))
        const held = got.filter(one => !('exhausted' in one)) as (Hold & { request: string })[]
        t.equal(held.length, onLimit === 'notify' ? 128 : 14, JSON.stringify(onLimit))
        t.equal((await subject.ledger.balance(orgId)).held, BigInt(held.length) * 7n)
        await Promise.all(held.map(one => settle(subject, key, one, 7n)))
        t.match((await subject.keys.status(key)).budgets, [{ spent: BigInt(held.length) * 7n, held: 0n }])
        t.same(await subject.usage.check(), [])
      }
    },
  )

  t.test('a limit that uses another model has room for a whole request or none, and ends no answer', async t => {
    const subject = await make(t)
    const { id, principal } = await keyed(subject, { limit: { amount: 100n, onLimit: { use: 'other' } } })
    const key = await principal()
    const first = await granted(subject, key, 90n)
    const [{ id: limitId }] = key.budgets as [Principal['budgets'][number]]
    t.match(await ask(subject, key, 30n, { least: 1n }), { exhausted: 'key', limitId, room: 10n })
    t.match(await subject.ledger.extend(first, { principal: key, amount: 30n }), { amount: 120n, refused: undefined })
    await settle(subject, key, first, 120n)
    const action = async (limit: LimitInput) =>
      (await subject.accounts.updateKey(id, { limit: { set: limit } })).limits[0]!.on_limit
    t.strictSame(await action({ amount: 120n }), { use: 'other' }, 'a raised limit keeps it')
    t.equal(await action({ amount: 120n, onLimit: 'refuse' }), undefined)
    t.match(await ask(subject, await principal(), 1n), { exhausted: 'key', limitId })
    t.same(await subject.usage.check(), [])
  })

  t.test('a recurring limit begins anew with each period of its zone', async t => {
    const subject = await make(t)
    const limit = { amount: 100n, period: 'day', zone: 'America/New_York' } as const
    const { principal } = await keyed(subject, { limit })
    const key = await principal()
    await spend(subject, key, 90n)
    const midnight = Date.UTC(2026, 0, 3, 5)
    t.match(await ask(subject, key, 20n), { exhausted: 'key', period: 'day', resetsAt: midnight })
    const late = await granted(subject, key, 10n)
    subject.clock.now = midnight
    t.match(await ask(subject, key, 91n), { exhausted: 'key', resetsAt: midnight + DAY }, 'what is held still counts')
    await settle(subject, key, late, 30n)
    t.match((await subject.keys.status(key)).budgets, [{ spent: 30n, held: 0n, resetsAt: midnight + DAY }])
    await spend(subject, key, 70n)
    t.match(await ask(subject, key, 1n), { exhausted: 'key' })
    subject.clock.now += DAY
    t.match((await subject.keys.status(key)).budgets, [{ spent: 0n }], 'nothing need be asked for it to begin')
    await spend(subject, key, 100n)
    t.equal((await subject.keys.status(key)).spent, 290n, 'and all is remembered')
  })

  t.test('a budget of a member is that of all keys that it made', async t => {
    const subject = await make(t)
    const { id, orgId, project, principal } = await keyed(subject, { createdBy: 'ada@example.com' })
    const other = await subject.accounts.createKey({ project, name: 'other', createdBy: 'ada@example.com' })
    const foreign = await subject.accounts.createKey({ project, name: 'foreign' })
    const of = async (key: string) => (await subject.keys.find(sha256(key))) as Principal
    await spend(subject, await principal(), 30n)
    const limit = { set: { amount: 100n, period: 'month' } } as const
    t.match(await subject.members.update(orgId, 'ada@example.com', { limit }, 'test'), {
      limits: [{ period: 'month', limit: 100n, spent: 30n }],
    })
    await subject.accounts.updateKey(id, { limit: { set: { amount: 50n } } })
    await spend(subject, await of(other.key), 60n)
    const renewal = Date.UTC(2026, 1, 1)
    const refused = await ask(subject, await principal(), 15n)
    t.match(refused, { exhausted: 'member', period: 'month', resetsAt: renewal }, 'the smaller one decides')
    t.match(await ask(subject, await principal(), 25n), { exhausted: 'member' }, 'the member before the key')
    await spend(subject, await of(foreign.key), 60n)
    subject.clock.now = renewal
    t.match(await ask(subject, await principal(), 25n), { exhausted: 'key', period: 'total' })
    t.match((await subject.keys.status(await principal())).budgets, [{ of: 'member' }, { of: 'key', spent: 30n }])
    t.same(await subject.usage.check(), [])
  })

  t.test(
    'a limit of a project is that of all its keys, counts what was spent and what runs, and goes away',
    async t => {
      const subject = await make(t)
      const { project, orgId, principal } = await keyed(subject, { createdBy: 'ada@example.com' })
      const other = await subject.accounts.createKey({ project, name: 'other' })
      const of = async (key: string) => (await subject.keys.find(sha256(key))) as Principal
      const { id: elsewhere } = await subject.projects.create({ organization: orgId, name: 'elsewhere' }, 'test')
      const foreign = await subject.accounts.createKey({ project: elsewhere, name: 'foreign' })
      await spend(subject, await principal(), 20n)
      await spend(subject, await of(foreign.key), 500n)
      const before = await of(other.key)
      const running = await granted(subject, before, 30n)
      const limit = { set: { amount: 100n } } as const
      t.match(await subject.projects.update(project, { limit }, 'test'), { limits: [{ limit: 100n, spent: 20n }] })
      const key = await principal()
      t.match(key.budgets, [{ of: 'project', period: 'total', limit: 100n }])
      t.match(await ask(subject, key, 51n), { exhausted: 'project', room: 50n })
      await settle(subject, before, running, 40n)
      t.match(await ask(subject, await of(other.key), 41n), { exhausted: 'project', room: 40n })
      t.match((await subject.keys.status(key)).budgets, [{ of: 'project', spent: 60n, held: 0n }])
      t.same((await of(foreign.key)).budgets, [])
      await subject.members.update(orgId, 'ada@example.com', { limit: { set: { amount: 10n } } }, 'test')
      t.match((await principal()).budgets, [{ of: 'project' }, { of: 'member' }])
      const dropped = await subject.projects.update(project, { limit: { drop: 'total' } }, 'test')
      t.same(dropped.limits, [])
      t.match((await principal()).budgets, [{ of: 'member' }])
      t.same(await subject.usage.check(), [])
    },
  )

  t.test('CC-04 a request that one limit refuses holds nothing of the others, nor of the credits', async t => {
    const subject = await make(t)
    const { id, orgId, principal } = await keyed(subject, { credits: 100n, limit: { amount: 80n } })
    await subject.accounts.updateKey(id, { limit: { set: { amount: 50n, period: 'hour' } } })
    const key = await principal()
    t.match(await ask(subject, key, 60n), { exhausted: 'key', period: 'hour' })
    await granted(subject, key, 40n)
    await spend(subject, { ...key, budgets: [] }, 50n)
    t.match(await ask(subject, key, 10n), { amount: 10n })
    t.equal(await ask(subject, key, 0n).then(got => typeof got), 'object')
    const { balance, held } = await subject.ledger.balance(orgId)
    t.same([balance, held], [50n, 50n])
    t.match(await ask(subject, { ...key, budgets: [] }, 1n), { exhausted: 'credits' })
    const budgets = (await subject.keys.status(key)).budgets
    t.match(budgets, [{ held: 50n }, { held: 50n }])
    t.same(await subject.usage.check(), [])
  })

  t.test('a hold takes what is left where that will do, of all that it counts against', async t => {
    const subject = await make(t)
    const { orgId, principal } = await keyed(subject, { credits: 100n, limit: { amount: 80n } })
    const key = await principal()
    const refused = await ask(subject, key, 200n, { least: 81n })
    t.match(refused, { exhausted: 'key', room: 80n, held: 0n })
    const most = await granted(subject, key, 200n, { least: 10n })
    t.match(most, { amount: 80n, refused: { exhausted: 'key' } }, 'and says what has kept it from more')
    const rest = await granted(subject, { ...key, budgets: [] }, 50n, { least: 1n })
    t.match(rest, { amount: 20n, refused: { exhausted: 'credits', room: 20n, held: 80n } })
    t.match(await ask(subject, { ...key, budgets: [] }, 1n), { exhausted: 'credits', room: 0n, held: 100n })
    t.match(await ask(subject, key, 1n), { exhausted: 'key', room: 0n, held: 80n }, 'what holds keep is told apart')
    await settle(subject, key, most, 30n)
    await settle(subject, key, rest, 20n)
    await subject.plans.set(orgId, { plan: 'lite', overflow: true }, 'test')
    const allowance = { monthly: 40n, premium: undefined }
    const planned = await granted(subject, await principal(), 60n, { least: 1n, allowance })
    t.match(planned, { amount: 50n, funds: 'credits' }, 'the plan has room for 40, the credits for 50')
    t.same(await subject.usage.check(), [])
  })

  t.test('what is spare to a hold leaves half of the room beyond its amount to others', async t => {
    const subject = await make(t)
    const { orgId, principal } = await keyed(subject, { credits: 100n, limit: { amount: 80n } })
    const key = await principal()
    const open = { ...key, budgets: [] }
    const first = await granted(subject, key, 20n, { least: 1n, spare: 10n })
    t.match(first, { amount: 30n, refused: undefined }, 'all of it, where there is room for twice as much')
    const second = await granted(subject, key, 20n, { least: 1n, spare: 50n })
    t.match(second, { amount: 35n, refused: undefined }, 'the limit has room for 50')
    const third = await granted(subject, open, 30n, { spare: 50n })
    t.match(third, { amount: 32n, refused: undefined }, 'the credits for 35')
    t.match(await ask(subject, key, 20n, { least: 16n, spare: 5n }), { exhausted: 'key', room: 15n })
    const last = await granted(subject, open, 20n, { least: 1n, spare: 5n })
    t.match(last, { amount: 3n, refused: { exhausted: 'credits' } }, 'none where the amount is not had')
    t.match(await subject.ledger.balance(orgId), { balance: 100n, held: 100n })
    for (const [payer, hold] of [
      [key, first],
      [key, second],
      [open, third],
      [open, last],
    ] as const) {
      await settle(subject, payer, hold, 1n)
    }
    t.match(await subject.ledger.balance(orgId), { balance: 96n, held: 0n })
    const tight = await keyed(subject, { credits: 60n, limit: { amount: 100n } })
    const both = await granted(subject, await tight.principal(), 2n, { spare: 1000n })
    t.match(both, { amount: 31n }, 'of the tightest of all that it counts against')
    await settle(subject, await tight.principal(), both, 0n)
    t.same(await subject.usage.check(), [])
  })

  t.test('the plan pays for an amount that it has room for, however much is spare to it', async t => {
    const subject = await make(t)
    const { orgId, principal } = await keyed(subject, { credits: 1000n })
    await subject.plans.set(orgId, { plan: 'lite', overflow: true }, 'test')
    const payer = await principal()
    for (const [allowance, funds, amount] of [
      [{ monthly: 100n, premium: undefined }, 'plan', 60n],
      [{ monthly: 500n, premium: 50n }, 'premium', 35n],
      [{ monthly: 10n, premium: undefined }, 'credits', 220n],
    ] as const) {
      const held = await granted(subject, payer, 20n, { least: 1n, spare: 200n, allowance })
      t.match(held, { funds, amount, refused: undefined })
      await settle(subject, payer, held, 0n)
    }
    t.same(await subject.ledger.balance(orgId), { balance: 1000n, held: 0n, used: 0n })
    t.same(await subject.usage.check(), [])
  })

  t.test('a hold grows by what there is room for, in credits, plans and limits alike', async t => {
    const subject = await make(t)
    const { id, orgId, principal } = await keyed(subject, { credits: 100n, limit: { amount: 80n } })
    const key = await principal()
    const first = await granted(subject, key, 10n)
    const grown = await subject.ledger.extend(first, { principal: key, amount: 50n })
    t.match(grown, { id: first.id, amount: 60n, refused: undefined })
    await subject.accounts.updateKey(id, { limit: { set: { amount: 65n, period: 'day' } } })
    const more = await subject.ledger.extend(grown, { principal: key, amount: 50n })
    t.match(
      more,
      { amount: 65n, refused: { exhausted: 'key', period: 'day' } },
      'a limit that was set meanwhile counts',
    )
    const full = await subject.ledger.extend(more, { principal: key, amount: 50n })
    t.match(full, { amount: 65n, refused: { exhausted: 'key', room: 0n } })
    t.match(await subject.ledger.balance(orgId), { held: 65n })
    // As it was before it grew: who settles may not know of the last extension.
    await settle(subject, key, { ...first, request: first.request }, 40n)
    t.match(await subject.ledger.balance(orgId), { balance: 60n, held: 0n })
    t.match((await subject.keys.status(await principal())).budgets, [{ held: 0n, spent: 40n }, { held: 0n }])
    t.match(
      await subject.ledger.extend(full, { principal: key, amount: 5n }),
      { refused: { room: 0n } },
      'nor any more',
    )
    const own = await granted(subject, { ...key, budgets: [] }, 10n, { byok: true })
    t.match(await subject.ledger.extend(own, { principal: key, amount: 1000n }), { amount: 1010n, refused: undefined })
    await subject.plans.set(orgId, { plan: 'lite' }, 'test')
    const allowance = { monthly: 50n, premium: 20n }
    const premium = await granted(subject, { ...(await principal()), budgets: [] }, 15n, { allowance })
    const wanted = { principal: await principal(), amount: 10n, allowance }
    t.match(await subject.ledger.extend(premium, wanted), { amount: 20n, refused: { exhausted: 'premium', held: 15n } })
    t.match(await subject.ledger.balance(orgId), { held: 0n })
    t.same(await subject.usage.check(), [])
  })

  t.test('credits that do not suffice leave the limits as they were', async t => {
    const subject = await make(t)
    const { principal } = await keyed(subject, { credits: 10n, limit: { amount: 1000n } })
    t.match(await ask(subject, await principal(), 20n), { exhausted: 'credits' })
    t.match((await subject.keys.status(await principal())).budgets, [{ held: 0n, spent: 0n }])
  })

  t.test('a limit that is set later counts what was spent and what runs', async t => {
    const subject = await make(t)
    const { id, principal } = await keyed(subject)
    const before = await principal()
    await spend(subject, before, 40n)
    const running = await granted(subject, before, 30n)
    await subject.accounts.updateKey(id, { limit: { set: { amount: 100n } } })
    const key = await principal()
    t.match(await ask(subject, key, 31n), { exhausted: 'key' })
    await settle(subject, before, running, 35n)
    t.match((await subject.keys.status(key)).budgets, [{ spent: 75n, held: 0n }])
    await subject.accounts.updateKey(id, { limit: { set: { amount: 500n } } })
    t.match((await subject.keys.status(key)).budgets, [{ limit: 500n, spent: 75n }], 'raised, not begun anew')
    const open = await granted(subject, await principal(), 10n)
    await subject.accounts.updateKey(id, { limit: { drop: 'total' } })
    t.same((await principal()).budgets, [])
    await settle(subject, key, open, 10n)
    t.same(await subject.usage.check(), [])
  })

  t.test('a limit whose period begins within an hour of UTC counts nothing from before it', async t => {
    const subject = await make(t)
    const { id, principal } = await keyed(subject)
    const at = async (hours: number, cost: bigint) => {
      subject.clock.now = NOON + hours * HOUR
      const request = `${stampOf(subject.clock.now)}22222222222`
      const hold = await granted(subject, await principal(), cost, { id: request, request: identity(request) })
      await settle(subject, await principal(), { ...hold, request }, cost)
    }
    // Midnight in Kolkata is at half past six in the evening, UTC.
    await at(6.25, 7n)
    await at(6.75, 20n)
    await at(7.25, 300n)
    const spentOf = async (period: 'day' | 'month') => {
      await subject.accounts.updateKey(id, { limit: { drop: 'period' } })
      const limit = { set: { amount: 1000n, period, zone: 'Asia/Kolkata' } }
      return (await subject.accounts.updateKey(id, { limit })).limits[0]?.spent
    }
    t.equal(await spentOf('day'), 320n)
    // Of rows that were dropped only the sum of their hour is left, which counts in full: at most an hour too much.
    t.equal(await subject.retention.prune(NOON + 6.5 * HOUR), 1)
    t.equal(await spentOf('day'), 327n)
    t.equal(await subject.retention.prune(NOON + 8 * HOUR), 2)
    t.equal(await spentOf('day'), 327n)
    t.equal(await spentOf('month'), 327n)
  })

  t.test('the successor of a key has its limits, and what was spent of them', async t => {
    const subject = await make(t)
    const { id, principal } = await keyed(subject, { limit: { amount: 100n } })
    await spend(subject, await principal(), 90n)
    const { key, limits } = await subject.accounts.rollKey(id)
    t.match(limits, [{ limit: 100n, spent: 90n }])
    const next = (await subject.keys.find(sha256(key))) as Principal
    t.match(await ask(subject, next, 11n), { exhausted: 'key' })
  })

  t.test('a limit of the successor of a key counts what the key has spent and what of it runs', async t => {
    const subject = await make(t)
    const { id, principal } = await keyed(subject)
    const key = await principal()
    await spend(subject, key, 90n)
    const running = await granted(subject, key, 5n)
    const { id: second, key: secret } = await subject.accounts.rollKey(id)
    await spend(subject, (await subject.keys.find(sha256(secret))) as Principal, 3n)
    const { id: third } = await subject.accounts.rollKey(second)
    const set = async (limit: LimitInput) => (await subject.accounts.updateKey(third, { limit: { set: limit } })).limits
    t.match(await set({ amount: 100n, period: 'day' }), [{ spent: 93n }])
    t.match(await set({ amount: 100n }), [{ period: 'total', spent: 93n }, { period: 'day' }])
    await settle(subject, key, running, 5n)
    t.match(await subject.accounts.listKeys(), [{}, {}, {}, { id: third, limits: [{ spent: 98n }, { spent: 98n }] }])
    t.same(await subject.usage.check(), [])
  })

  t.test('an orphan gives back what it held of limits and plans', async t => {
    const subject = await make(t)
    const { orgId, principal } = await keyed(subject, { limit: { amount: 100n } })
    await granted(subject, await principal(), 60n)
    await subject.plans.set(orgId, { plan: 'lite' }, 'test')
    await granted(subject, await principal(), 30n, { allowance: { monthly: 50n, premium: 40n } })
    subject.clock.now += HOUR + 60_001
    t.equal(await subject.ledger.recover(), 2)
    t.match((await subject.keys.status(await principal())).budgets, [{ held: 0n, spent: 0n }])
    t.same(await subject.usage.check(), [])
    await granted(subject, await principal(), 50n, { allowance: { monthly: 50n, premium: undefined } })
  })

  t.test('CS-03 an orphan is charged once, for what was recorded of it, to the account that held it', async t => {
    const subject = await make(t)
    const { principal } = await keyed(subject, { limit: { amount: 1000n } })
    const key = await principal()
    const usage = { prompt: 3, completion: 40 }
    const lost = await granted(subject, key, 100n)
    await subject.ledger.checkpoint(lost, { usage: { prompt: 3, completion: 20 }, cost: 23n })
    await subject.ledger.checkpoint(lost, { usage, cost: 43n })
    const unpriced = await granted(subject, key, 0n)
    await subject.ledger.checkpoint(unpriced, { usage, cost: null })
    const own = await granted(subject, key, 10n, { byok: true })
    await subject.ledger.checkpoint(own, { usage, cost: 7n })
    const done = await granted(subject, key, 100n)
    await subject.ledger.checkpoint(done, { usage, cost: 90n })
    await settle(subject, key, done, 50n)
    await subject.ledger.checkpoint(done, { usage, cost: 99n })
    subject.clock.now += HOUR + 60_001
    const recovered = await Promise.all([subject.ledger.recover(), subject.ledger.recover()])
    t.same(recovered.sort(), [0, 3], 'each of them by one of the two')
    t.match(await subject.ledger.balance(key.orgId), { held: 0n, used: 93n })
    t.match((await subject.keys.status(key)).budgets, [{ spent: 100n, held: 0n }])
    const query = { orgId: key.orgId, from: NOON - HOUR, to: NOON + HOUR }
    t.match(await subject.usage.totals(query), { requests: 4, cost: 100n, byokCost: 7n, outputTokens: 140 })
    t.same(await subject.usage.check(), [])
  })

  t.test('a session has the limits of its key and its own, and is forgotten when it is over', async t => {
    const subject = await make(t)
    const made = await keyed(subject, { limit: { amount: 100n }, createdBy: 'dev@x.example' })
    const key = await made.principal()
    const begin = (more: object = {}) =>
      subject.sessions.begin({
        ...{ principal: key, customer: 'Ada', models: undefined, limit: undefined },
        expiresAt: subject.clock.now + HOUR,
        ...more,
      })
    const find = async (secret: string) => subject.keys.find(sha256(secret))
    const { id, key: secret } = await begin({ limit: 30n, models: ['small'] })
    const session = (await find(secret))!
    t.match(session, {
      keyId: made.id,
      keyName: 'k',
      endUser: 'Ada',
      kind: 'session',
      member: key.member,
      access: true,
      session: { id, models: ['small'] },
      budgets: [
        { of: 'session', limit: 30n },
        { of: 'key', limit: 100n },
      ],
      expiresAt: subject.clock.now + HOUR,
    })
    await spend(subject, session, 20n)
    t.match(await ask(subject, session, 11n), { exhausted: 'session' })
    const other = (await find((await begin()).key))!
    await spend(subject, other, 80n)
    t.match(await ask(subject, other, 1n), { exhausted: 'key' }, 'all together are within the limits of the key')
    const listed = await subject.accounts.listKeys(made.project)
    t.match(listed.at(-1), { id: made.id, spent: 100n })
    t.notOk(listed.some(({ kind }) => kind === 'session'))
    const known = async (id: string) =>
      subject.names.key(id).then(
        () => true,
        () => false,
      )
    t.ok(await known(id))
    subject.clock.now += HOUR
    await begin()
    t.notOk(await known(id), 'the next one takes its place')
    t.same(await subject.usage.check(), [])
  })

  t.test('a session is not forgotten while money is held within its limit', async t => {
    const subject = await make(t)
    const made = await keyed(subject)
    const input = { principal: await made.principal(), customer: 'Ada', models: undefined, limit: 30n }
    const begin = () => subject.sessions.begin({ ...input, expiresAt: subject.clock.now + HOUR })
    const find = async (secret: string) => subject.keys.find(sha256(secret))
    const { key } = await begin()
    const session = (await find(key))!
    const hold = await granted(subject, session, 20n)
    subject.clock.now += HOUR
    await begin()
    const grown = await subject.ledger.extend(hold, { principal: session, amount: 50n })
    t.match(grown, { amount: 30n, refused: { exhausted: 'session' } })
    await settle(subject, session, { ...grown, request: hold.request }, 30n)
    t.ok(await find(key))
    await begin()
    t.equal(await find(key), undefined, 'and then it is')
    t.same(await subject.usage.check(), [])
  })

  t.test('of one key so many sessions are live, and those that end first make room for others', async t => {
    const subject = await make(t)
    const made = await keyed(subject)
    const principal = await made.principal()
    const begin = (expiresAt: number) =>
      subject.sessions.begin({ principal, customer: 'Ada', models: undefined, limit: undefined, expiresAt })
    const find = async ({ key }: { key: string }) => subject.keys.find(sha256(key))
    const { now } = subject.clock
    const first = await begin(now + 1)
    const second = await begin(now + 2)
    await subject.exec!(`
      WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 9998)
      INSERT INTO keys (id, project_id, name, kind, hash, preview, created_at, expires_at, parent_id)
      SELECT 'many-' || n, '${principal.projectId}', 'Ada', 'session', 'hash-' || n, '', ${now}, ${now + HOUR},
        '${principal.keyId}'
      FROM many`)
    t.ok(await find(first))
    const newest = await begin(now + HOUR)
    t.equal(await find(first), undefined)
    t.ok((await find(second)) && (await find(newest)))
  })

  t.test('a limit that is reached by a session is reached by its key', async t => {
    const subject = await make(t)
    const made = await keyed(subject, { limit: { amount: 10n } })
    const principal = await made.principal()
    const input = { principal, customer: 'Ada', models: undefined, limit: undefined }
    const { key } = await subject.sessions.begin({ ...input, expiresAt: subject.clock.now + HOUR })
    await spend(subject, (await subject.keys.find(sha256(key))) as Principal, 10n)
    t.match(await ask(subject, principal, 0n), { exhausted: 'key' })
    const expiry = async (secret: string) => (await subject.keys.find(sha256(secret)))?.expiresAt
    await subject.accounts.updateKey(made.id, { expiresAt: subject.clock.now + 1 })
    t.equal(await expiry(key), subject.clock.now + 1, 'it ends no later than its key')
    await subject.accounts.updateKey(made.id, { expiresAt: subject.clock.now + 2 * HOUR })
    t.equal(await expiry(key), subject.clock.now + HOUR)
    await subject.accounts.revokeKey(made.id)
    t.equal(await subject.keys.find(sha256(key)), undefined, 'a session ends with its key')
  })

  t.test('a request with an own provider key costs no credits, and still counts against limits', async t => {
    const subject = await make(t)
    const { orgId, principal } = await keyed(subject, { credits: 0n, limit: { amount: 100n } })
    const key = await principal()
    const hold = await granted(subject, key, 80n, { byok: true })
    t.equal(hold.funds, 'byok')
    await settle(subject, key, hold, 70n, 5n)
    t.same(await subject.ledger.balance(orgId), { balance: -5n, held: 0n, used: 5n }, 'but for storage')
    t.match(await ask(subject, key, 31n, { byok: true }), { exhausted: 'key' })
    const totals = await subject.usage.totals({ orgId, from: NOON, to: NOON + HOUR })
    t.match(totals, { cost: 70n, creditsCost: 0n, byokCost: 70n, storageCost: 5n })
    t.same(await subject.usage.check(), [])
  })
}

export function planContract(t: Test, make: MakeSubject): void {
  const lite: Allowance = { monthly: 100n, premium: undefined }
  const premium: Allowance = { monthly: 100n, premium: 30n }
  const planned = async (subject: Subject, credits = 0n) => {
    const made = await keyed(subject, { credits })
    await subject.plans.set(made.orgId, { plan: 'lite' }, 'test')
    return { ...made, key: await made.principal() }
  }

  t.test('a plan pays up to its credits of the month, and credits stay as they are', async t => {
    const subject = await make(t)
    const { orgId, key } = await planned(subject, 1000n)
    t.match(key.plan, { plan: 'lite', since: NOON, overflow: false })
    await spend(subject, key, 60n, { allowance: lite })
    const renewal = Date.UTC(2026, 1, 2, 12)
    t.match(await ask(subject, key, 41n, { allowance: lite }), {
      exhausted: 'plan',
      period: 'month',
      resetsAt: renewal,
    })
    t.match(await ask(subject, key, 0n, { allowance: { monthly: 0n, premium: 0n } }), { amount: 0n }, 'free is free')
    t.same(await subject.ledger.balance(orgId), { balance: 1000n, held: 0n, used: 0n })
    t.match(await subject.plans.show(orgId), {
      used: 60n,
      premiumUsed: 0n,
      renewsAt: renewal,
      premiumResetsAt: undefined,
    })
    subject.clock.now = renewal
    await spend(subject, key, 100n, { allowance: lite })
    t.match((await subject.keys.status(key)).plan, { used: 100n, renewsAt: Date.UTC(2026, 2, 2, 12) })
    t.match(await subject.usage.totals({ orgId, from: 0, to: renewal + HOUR }), { cost: 160n, creditsCost: 0n })
    t.same(await subject.usage.check(), [])
  })

  t.test('premium models have a week of their own, which begins with the first charge for one', async t => {
    const subject = await make(t)
    const { orgId, key } = await planned(subject)
    await spend(subject, key, 10n, { allowance: lite })
    subject.clock.now += DAY
    const begun = subject.clock.now
    await spend(subject, key, 20n, { allowance: premium })
    const end = begun + 7 * DAY
    t.match(await subject.plans.show(orgId), { used: 30n, premiumUsed: 20n, premiumResetsAt: end })
    t.match(await ask(subject, key, 11n, { allowance: premium }), {
      exhausted: 'premium',
      period: 'week',
      resetsAt: end,
    })
    await spend(subject, key, 11n, { allowance: lite })
    subject.clock.now = end - 1
    t.match(await ask(subject, key, 11n, { allowance: premium }), { exhausted: 'premium' })
    subject.clock.now = end
    t.match(await subject.plans.show(orgId), { premiumUsed: 0n, premiumResetsAt: undefined })
    await spend(subject, key, 30n, { allowance: premium })
    t.match(await subject.plans.show(orgId), { used: 71n, premiumUsed: 30n, premiumResetsAt: end + 7 * DAY })
    t.match(await subject.plans.resetWeek(orgId, 'test'), { used: 71n, premiumUsed: 0n, premiumResetsAt: undefined })
    await spend(subject, key, 29n, { allowance: premium })
    t.match(await ask(subject, key, 1n, { allowance: premium }), { exhausted: 'plan' })
    t.same(await subject.usage.check(), [])
  })

  t.test('with overflow, credits pay for what the plan does not', async t => {
    const subject = await make(t)
    const made = await planned(subject, 50n)
    await subject.plans.set(made.orgId, { overflow: true }, 'test')
    const key = await made.principal()
    await spend(subject, key, 90n, { allowance: lite })
    const hold = await granted(subject, key, 40n, { allowance: lite })
    t.equal(hold.funds, 'credits')
    await settle(subject, key, hold, 40n)
    t.match(await ask(subject, key, 11n, { allowance: lite }), { exhausted: 'plan' }, 'the plan is what is told of')
    await spend(subject, key, 10n, { allowance: lite })
    t.same(await subject.ledger.balance(made.orgId), { balance: 10n, held: 0n, used: 40n })
    t.same(await subject.usage.check(), [])
  })

  t.test('another plan keeps what was used, and one that begins again does not', async t => {
    const subject = await make(t)
    const { orgId, key, principal } = await planned(subject)
    await spend(subject, key, 60n, { allowance: lite })
    const running = await granted(subject, key, 20n, { allowance: premium })
    t.match(await subject.plans.set(orgId, { plan: 'pro' }, 'test'), { plan: 'pro', since: NOON, used: 60n })
    t.equal(await subject.plans.set(orgId, { plan: null }, 'test'), null)
    t.equal((await principal()).plan, undefined)
    subject.clock.now += DAY
    t.match(await subject.plans.set(orgId, { plan: 'max' }, 'test'), { used: 0n, since: NOON + DAY })
    await settle(subject, key, running, 15n)
    t.match(await subject.plans.show(orgId), { used: 15n, premiumUsed: 15n })
    t.same(await subject.usage.check(), [])
  })

  t.test('storage is paid by credits, whatever pays for the rest', async t => {
    const subject = await make(t)
    const { orgId, key } = await planned(subject, 100n)
    await settle(subject, key, await granted(subject, key, 40n, { allowance: lite }), 30n, 2n)
    t.same(await subject.ledger.balance(orgId), { balance: 98n, held: 0n, used: 2n })
    t.match(await subject.plans.show(orgId), { used: 30n })
    t.same(await subject.usage.check(), [])
  })
}
