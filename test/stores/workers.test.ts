/** What the workers of one machine share: the contracts of the ports, and bounds under any order of messages. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { CachedReply, Quota } from '../../src/core/ports.ts'
import { MemoryCache } from '../../src/stores/memory/cache.ts'
import { AffinityBoard, type AffinityEntry, SharedAffinity } from '../../src/stores/workers/affinity.ts'
import { type OpenedCircuit, SharedCircuits } from '../../src/stores/workers/circuits.ts'
import { LeasedCounters } from '../../src/stores/workers/counters.ts'
import {
  type Lease,
  type LeaseClient,
  type Remainder,
  systemClock,
  type Unused,
} from '../../src/stores/workers/lease.ts'
import { LeaseServer } from '../../src/stores/workers/lease-server.ts'
import { SharedTurns, TurnBoard } from '../../src/stores/workers/turns.ts'
import { countersContract, placesContract, reservationsContract } from './contract-memory.ts'

/** Time for what follows from one message. */
const settled = async () => {
  for (let i = 0; i < 12; i++) await undefined
}

/** Workers and their lender, with messages that arrive, in order, when they are delivered. */
class Machine {
  now = 5_000_000
  /** When each unit was admitted. */
  readonly admitted: number[] = []
  readonly quotas: Quota[] = []
  readonly workers: Worker[]
  readonly lender = new LeaseServer(() => this.now)
  unanswered = 0

  constructor(count: number) {
    this.workers = Array.from({ length: count }, () => new Worker(this))
  }

  async take(at: number, limit: number, windowMs: number): Promise<void> {
    const { counters } = this.workers[at]!
    const quota = counters.take('key', limit, windowMs)
    if (!(quota instanceof Promise)) return this.#note(quota, this.now)
    this.unanswered++
    void quota.then(given => {
      this.unanswered--
      // What was waited for counts from when it was lent, what was left of that loan from when it is used.
      this.#note(given, this.workers[at]!.lent.shift() ?? this.now)
    })
    await settled()
  }

  /** What a worker says is left when no other message is on its way. */
  async peek(at: number, limit: number, windowMs: number): Promise<Quota> {
    let quota: Quota | undefined
    void this.workers[at]!.counters.peek('key', limit, windowMs).then(given => {
      quota = given
    })
    await settled()
    await this.deliverAll()
    assert.ok(quota, 'an answer')
    return quota
  }

  /** Delivers the next message on one way; false when there is none. */
  async deliver(way: number): Promise<boolean> {
    const worker = this.workers[way >> 1]!
    const message = (way % 2 === 0 ? worker.up : worker.down).shift()
    if (!message) return false
    message()
    await settled()
    return true
  }

  async deliverAll(): Promise<void> {
    for (let quiet = false; !quiet; ) {
      quiet = true
      for (let way = 0; way < 2 * this.workers.length; way++) if (await this.deliver(way)) quiet = false
    }
  }

  end(): void {
    for (const { counters } of this.workers) counters.close()
  }

  #note(quota: Quota, at: number): void {
    this.quotas.push(quota)
    if (quota.allowed) this.admitted.push(at)
  }
}

class Worker {
  readonly up: (() => void)[] = []
  readonly down: (() => void)[] = []
  /** When the units were lent that requests have waited for. */
  readonly lent: number[] = []
  readonly counters: LeasedCounters
  readonly borrower: LeaseClient & { end(): void }

  constructor(machine: Machine) {
    const recall = (key: string, windowMs: number) =>
      new Promise<Unused | undefined>(resolve => {
        this.down.push(() => {
          const unused = this.counters.recall(key, windowMs)
          this.up.push(() => resolve(unused))
        })
      })
    this.borrower = machine.lender.borrower(recall)
    const answer = async (ask: Parameters<LeaseClient['take']>[0], resolve: (loan: Lease) => void) => {
      const loan = await this.borrower.take(ask)
      for (let i = 0; i < Math.min(loan.units, ask.need); i++) this.lent.push(machine.now)
      this.down.push(() => resolve(loan))
    }
    const left = async (asked: Parameters<LeaseClient['peek']>[0], resolve: (left: Remainder) => void) => {
      const remainder = await this.borrower.peek(asked)
      this.down.push(() => resolve(remainder))
    }
    const lending: LeaseClient = {
      take: ask => new Promise(resolve => this.up.push(() => void answer(ask, resolve))),
      peek: asked => new Promise(resolve => this.up.push(() => void left(asked, resolve))),
      giveBack: (key, windowMs, unused) => this.up.push(() => this.borrower.giveBack(key, windowMs, unused)),
      enter: (key, limit) => this.borrower.enter(key, limit),
      reserve: request => this.borrower.reserve(request),
      correct: correction => this.borrower.correct(correction),
      leave: key => this.borrower.leave(key),
    }
    this.counters = new LeasedCounters(lending, () => machine.now)
  }
}

const WORKERS = 3
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ take: fc.nat(WORKERS - 1), times: fc.integer({ min: 1, max: 12 }) }) },
  { weight: 5, arbitrary: fc.record({ deliver: fc.nat(2 * WORKERS - 1) }) },
  // So many requests, one after the other, that more is lent than is needed.
  { weight: 2, arbitrary: fc.record({ busy: fc.nat(WORKERS - 1), times: fc.integer({ min: 1, max: 20 }) }) },
  { weight: 1, arbitrary: fc.record({ giveBack: fc.nat(WORKERS - 1) }) },
)
/** In windows: anything, and what ends just before or just after the first unit leaves. */
const wait = fc.oneof(
  fc.double({ min: 0, max: 1.1, noNaN: true }),
  fc.double({ min: 0.97, max: 1.02, noNaN: true }),
  fc.double({ min: 0, max: 0.02, noNaN: true }),
)
const waiting = fc.record({ wait })

type Step =
  | { take: number; times: number }
  | { busy: number; times: number }
  | { deliver: number }
  | { giveBack: number }
  | { wait: number }

async function play(machine: Machine, steps: readonly Step[], limit: number, windowMs: number): Promise<void> {
  for (const step of steps) {
    if ('take' in step) for (let i = 0; i < step.times; i++) await machine.take(step.take, limit, windowMs)
    else if ('busy' in step) {
      for (let i = 0; i < step.times; i++) {
        await machine.take(step.busy, limit, windowMs)
        await machine.deliverAll()
      }
    } else if ('deliver' in step) await machine.deliver(step.deliver)
    else if ('giveBack' in step) machine.workers[step.giveBack]!.counters.giveBack()
    else machine.now += step.wait * windowMs
  }
  await machine.deliverAll()
  machine.end()
  assert.equal(machine.unanswered, 0, 'everybody is answered')
}

t.test('leased counters', async t => {
  const ends: (() => void)[] = []
  t.teardown(() => {
    for (const end of ends) end()
  })
  const make = (clock: { now: number }) => {
    const lending = new LeaseServer(() => clock.now).borrower(async (key, ms) => counters.recall(key, ms))
    const counters = new LeasedCounters(lending, () => clock.now)
    ends.push(() => counters.close())
    return counters
  }
  countersContract(t, make)
  placesContract(t, make)
  reservationsContract(t, make)
})

t.test('what clients name displaces no counter of a record at the primary either', async t => {
  const lending = new LeaseServer(() => 1000).borrower(async () => undefined)
  const day = { limit: 1, windowMs: 86_400_000, need: 1, more: 0, unused: undefined }
  t.match(await lending.take({ key: 'key k rpd', ...day }), { units: 1 })
  for (let n = 0; n < 11_000; n++) await lending.take({ key: `address v6 ${n}`, ...day })
  t.match(await lending.take({ key: 'key k rpd', ...day }), { units: 0 })
})

t.test('CC-06 in no span of one window do all workers together admit more than the limit', async () => {
  const steps = fc.array(fc.oneof({ weight: 8, arbitrary: step }, { weight: 2, arbitrary: waiting }), {
    minLength: 20,
    maxLength: 50,
    size: 'max',
  })
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 200 }), fc.constantFrom(50, 6000, 60_000), steps, async (...given) => {
      const [limit, windowMs, steps] = given
      const machine = new Machine(WORKERS)
      await play(machine, steps, limit, windowMs)
      const times = machine.admitted.toSorted((a, b) => a - b)
      for (const [i, at] of times.entries()) {
        const most = times[i + limit]
        assert.ok(most === undefined || most >= at + windowMs, `${limit + 1} between ${at} and ${most}`)
      }
      assert.ok(machine.quotas.every(({ remaining }) => remaining >= 0 && remaining <= limit))
    }),
    { numRuns: 60 },
  )
})

t.test('CC-05 whatever the order of messages, all of the limit is admitted before a request is refused', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 200 }),
      fc.array(step, { minLength: 20, maxLength: 50, size: 'max' }),
      async (limit, steps) => {
        const machine = new Machine(WORKERS)
        await play(machine, steps, limit, 60_000)
        assert.equal(machine.admitted.length, Math.min(limit, machine.quotas.length))
        for (let at = 0; at < WORKERS; at++) {
          const { allowed } = await machine.peek(at, limit, 60_000)
          assert.equal(allowed, machine.admitted.length < limit, 'a look counts what other workers have not used')
        }
      },
    ),
    { numRuns: 60 },
  )
})

t.test('rare requests are counted one by one, frequent ones in leases', async t => {
  const clock = { now: 5_000_000 }
  const lender = new LeaseServer(() => clock.now)
  let asks = 0
  const join = () => {
    const borrower = lender.borrower(async (key, ms) => counters.recall(key, ms))
    const take: LeaseClient['take'] = ask => {
      asks++
      return borrower.take(ask)
    }
    const counters = new LeasedCounters({ ...borrower, take }, () => clock.now)
    t.teardown(() => counters.close())
    return counters
  }
  const [one, two] = [join(), join()]
  for (const remaining of [59, 57, 55, 53]) {
    t.match(await one.take('rare', 60, 60_000), { allowed: true, remaining })
    t.match(await two.take('rare', 60, 60_000), { allowed: true, remaining: remaining - 1 })
  }
  asks = 0
  let refused = 0
  for (let i = 0; i < 10_000; i++) {
    if (i % 1000 === 0) clock.now += 1000
    if (!(await one.take('often', 1_000_000, 60_000)).allowed) refused++
  }
  t.equal(refused, 0)
  t.ok(asks < 150, `${asks} questions for 10000 units`)
  asks = 0
  for (let i = 0; i < 100; i++) await two.take('none', 0, 60_000)
  t.equal(asks, 1, 'who is refused does not ask again before a unit is free')
})

t.test('a worker that does not answer keeps its leases, and no other waits for it for long', async t => {
  const clock = { now: 5_000_000 }
  const lender = new LeaseServer(() => clock.now)
  const ask = { key: 'a', limit: 100, windowMs: 60_000, unused: undefined }
  const silent = lender.borrower(() => new Promise(() => undefined))
  const other = lender.borrower(async () => undefined)
  t.match(
    await silent.take({ ...ask, need: 1, more: 50 }),
    { units: 13, free: 87 },
    'at most an eighth of what is left',
  )
  t.match(await other.take({ ...ask, need: 90, more: 0 }), { units: 87, free: 0 })
  t.match(await other.take({ ...ask, need: 1, more: 0 }), { units: 0 })
})

t.test('places of a worker that has ended are free', async t => {
  const lender = new LeaseServer(() => 0)
  const [one, two] = [lender.borrower(async () => undefined), lender.borrower(async () => undefined)]
  t.strictSame([one.enter('a', 3), one.enter('a', 3), two.enter('a', 3), two.enter('a', 3)], [true, true, true, false])
  two.leave('a')
  two.leave('a')
  t.strictSame([two.enter('a', 3), two.enter('a', 3)], [true, false], 'and who has none gives back none')
  one.end()
  t.strictSame([two.enter('a', 3), two.enter('a', 3), two.enter('a', 3)], [true, true, false])
})

t.test('affinity of all workers ends up the same, with no more messages than needed', async t => {
  const clock = { now: 0 }
  const told: (readonly AffinityEntry[])[] = []
  const workers = Array.from(
    { length: 2 },
    () =>
      new SharedAffinity(
        entries => told.push(entries),
        () => clock.now,
      ),
  )
  const [one, two] = workers as [SharedAffinity, SharedAffinity]
  one.set('a', 'acme/large', 60_000, 'org')
  two.set('a', 'other/large', 60_000, 'org')
  one.set('b', 'acme/large', 60_000, 'org')
  one.set('b', 'other/large', 60_000, 'org')
  for (const worker of workers) worker.flush()
  t.strictSame(told, [
    [
      ['a', 'acme/large', 60_000, 'org'],
      ['b', 'other/large', 60_000, 'org'],
    ],
    [['a', 'other/large', 60_000, 'org']],
  ])
  for (const entries of told.splice(0)) for (const worker of workers) worker.learn(entries)
  for (const worker of workers) t.strictSame([worker.get('a'), worker.get('b')], ['other/large', 'other/large'])
  for (const at of [1, 29_999]) {
    clock.now = at
    for (const worker of workers) worker.set('a', 'other/large', 60_000, 'org')
    for (const worker of workers) worker.flush()
  }
  t.strictSame(told, [], 'what all know is not told')
  clock.now = 30_001
  two.set('a', 'other/large', 60_000, 'org')
  two.flush()
  t.equal(told.length, 1, 'but before its time is over')
  one.learn(told[0]!)
  clock.now = 80_000
  t.equal(one.get('a'), 'other/large')

  clock.now = 1000
  const board = new AffinityBoard(() => clock.now)
  board.note([
    ['a', 'acme/large', 1000, 'org'],
    ['b', 'acme/large', 5000, 'org'],
  ])
  board.note([['a', 'other/large', 5000, 'org']])
  clock.now = 3000
  const entries = [
    ['b', 'acme/large', 3000, 'org'],
    ['a', 'other/large', 3000, 'org'],
  ]
  t.strictSame(board.all(), entries, 'who comes later learns what holds still')
  board.note([['a', 'acme/large', 0, 'org']])
  t.strictSame(board.all(), entries.slice(0, 1), 'what is to hold for no time is forgotten')
})

t.test('a circuit that opens in one worker is open in all, for as long', async t => {
  const clock = { now: 0 }
  const workers: SharedCircuits[] = []
  for (let at = 0; at < 2; at++) {
    const tell = (circuit: OpenedCircuit) => workers[1 - at]!.learn(circuit)
    workers.push(new SharedCircuits(tell, { now: () => clock.now, random: () => 0 }))
  }
  const [one, two] = workers as [SharedCircuits, SharedCircuits]
  const policy = { failures: 2, baseMs: 1000, maxMs: 5000, jitter: 0 }
  one.failed('a', policy, 'x')
  t.strictSame([one.state('a', 'x'), two.state('a', 'x')], ['closed', 'closed'], 'failures are counted by each')
  t.equal(one.failed('a', policy, 'x'), 'organization')
  one.cool('b', 3000, 'x')
  two.trip('c', policy, 'x')
  for (const key of ['a', 'b', 'c']) {
    t.strictSame([one.openMs(key, 'x'), two.openMs(key, 'x')], Array(2).fill(key === 'b' ? 3000 : 1000))
    t.strictSame([one.state(key, 'y'), two.state(key, 'y')], ['closed', 'closed'], 'for one organization')
  }
  t.equal(two.trip('a', policy, 'y'), 'everyone')
  t.strictSame([one.state('a', 'z'), two.state('a', 'z')], ['open', 'open'], 'for all, once two have told it')
  clock.now = 1000
  one.begin('a', 'x')
  one.succeeded('a', 'x')
  t.strictSame([one.state('a', 'x'), two.state('a', 'x')], ['closed', 'half-open'], 'each closes its own')
})

t.test('a turn that one worker keeps is found by all, within bounds of size and time', async t => {
  let now = 1_000
  const board = new TurnBoard(() => now)
  const worker = () => {
    const asked: (readonly string[])[] = []
    const find = async (keys: readonly string[]) => {
      asked.push(keys)
      return board.find(keys)
    }
    const own = new MemoryCache({ now: () => now })
    return { asked, turns: new SharedTurns(own, { keep: turn => board.keep(turn), find }) }
  }
  const [one, two] = [worker(), worker()]
  const reply = (model: string): CachedReply => ({
    ...{ events: [], provider: 'p', model, externalId: 'm', logId: 'l', at: 0 },
    ...{ requestedModel: model, requestedProvider: null },
  })
  const found = async ({ turns }: ReturnType<typeof worker>, ...keys: string[]) =>
    [...(await turns.find(keys, 'org'))].map(([key, { model }]) => `${key} ${model}`)
  one.turns.set('a', reply('m1'), 100, 60_000, 'org')
  one.turns.set('large', reply('m2'), 300_000, 60_000, 'org')
  t.strictSame(await found(one, 'a', 'large'), ['a m1', 'large m2'])
  t.strictSame(one.asked, [], 'its own are at hand')
  t.strictSame(await found(two, 'a', 'large', 'b'), ['a m1'], 'what is large stays where it is')
  now += 59_000
  t.strictSame(await found(two, 'a'), ['a m1'])
  t.strictSame(two.asked, [['a', 'large', 'b']], 'what was found once is at hand')
  now += 1_001
  t.strictSame(await found(two, 'a'), [], 'for the rest of its time')
  for (let n = 0; n < 40; n++) one.turns.set(`k${n}`, reply('m'), 250_000, 60_000, 'org')
  const many = await found(two, ...Array.from({ length: 40 }, (_, n) => `k${n}`))
  t.ok(many.length > 4 && many.length < 20, `${many.length} in one answer`)
  const alone = new SharedTurns(new MemoryCache(), { keep: () => {}, find: () => Promise.reject(new Error('gone')) })
  t.equal((await alone.find(['a'], 'org')).size, 0, 'without the primary')
})

t.test("processes read one clock, the machine's, so that a limit resets for all of them at one time", async t => {
  const { hrtime } = process
  const read = (seconds: number, nanoseconds: number) => {
    process.hrtime = Object.assign(() => [seconds, nanoseconds] as [number, number], { bigint: hrtime.bigint })
    try {
      return systemClock()
    } finally {
      process.hrtime = hrtime
    }
  }
  t.strictSame([read(5, 250_000), read(7, 0)], [5000.25, 7000])
})
