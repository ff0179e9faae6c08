/** Who gets a place, who waits for one, and who is sent away. */

import t, { type Test } from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Services } from '../../src/core/ports.ts'
import type { Reply } from '../../src/core/reply.ts'
import { admission, FairLimiter, type FairLimits, type Permit } from '../../src/filters/admission.ts'
import { errors, GatewayError } from '../../src/lib/error.ts'
import { Hysteresis } from '../../src/lib/hysteresis.ts'
import { eventsOf, exchange, principal } from '../core/kit.ts'

const reply = (): Reply => ({ status: 200, headers: [], events: eventsOf() })
const MINUTE = 60_000

/** Places whose clock a test turns, and what the gauges say. */
function places(t: Test, given: Partial<FairLimits>) {
  const rules = { inFlight: 2, queue: 10, waitMs: MINUTE, share: 1, ...given }
  const gauges = { running: 0, waiting: 0 }
  const clock = { now: 0 }
  const metrics = {
    inFlight(by: number) {
      gauges.running += by
    },
    waiting(by: number) {
      gauges.waiting += by
    },
  }
  const left: Cancellation[] = []
  t.teardown(() => {
    for (const signal of left) signal.abort(errors.aborted())
  })
  const held = new FairLimiter(rules, metrics, () => clock.now)
  /** A place, `waits`, or the status of the refusal. */
  const take = (org: string, signal = new Cancellation()) => {
    left.push(signal)
    try {
      const place = held.take(org, rules, signal)
      if (place instanceof Promise) place.catch(() => undefined)
      return place
    } catch (error) {
      return (error as GatewayError).status
    }
  }
  return { held, rules, gauges, clock, take }
}
const statusOf = (pending: unknown) =>
  Promise.resolve(pending).then(
    () => 200,
    (error: GatewayError) => error.status,
  )

t.test('places are given up to the limit, then to those who wait, in their order', async t => {
  const { held, gauges, take } = places(t, { queue: 2 })
  const [first, second] = [take('a'), take('a')] as Permit[]
  const order: string[] = []
  const waiting = ['third', 'fourth'].map(name =>
    Promise.resolve(take('a')).then(place => {
      order.push(name)
      return place as Permit
    }),
  )
  t.equal(take('a'), 529, 'the queue is full')
  t.strictSame(gauges, { running: 2, waiting: 2 })
  held.leave(first!)
  await waiting[0]
  t.strictSame(gauges, { running: 2, waiting: 1 })
  held.leave(second!)
  for (const place of await Promise.all(waiting)) held.leave(place)
  t.strictSame(order, ['third', 'fourth'])
  t.strictSame(gauges, { running: 0, waiting: 0 })
})

t.test('OB-05 a caller that leaves while it waits leaves the queue', async t => {
  const { held, gauges, take } = places(t, { inFlight: 1 })
  const first = take('a') as Permit
  const signal = new Cancellation()
  const gone = statusOf(take('a', signal))
  const patient = take('a') as Promise<Permit>
  signal.abort(errors.aborted())
  t.equal(await gone, 499)
  t.strictSame(gauges, { running: 1, waiting: 1 })
  held.leave(first)
  held.leave(await patient)
  t.strictSame(gauges, { running: 0, waiting: 0 })
  const late = new Cancellation()
  late.abort(errors.shuttingDown())
  const busy = take('a') as Permit
  t.equal(await statusOf(take('a', late)), 503, 'and who is gone already does not enter it')
  held.leave(busy)
  t.strictSame(gauges, { running: 0, waiting: 0 })
})

t.test('OB-06 a caller that has waited long enough is refused, with seconds after which to retry', async t => {
  const { held, gauges, take } = places(t, { inFlight: 1, waitMs: 5 })
  const first = take('a') as Permit
  const error = await (take('a') as Promise<Permit>).catch((error: GatewayError) => error)
  t.match(error, { status: 529, type: 'overloaded', code: 'overloaded', headers: { 'retry-after': /^[123]$/ } })
  t.strictSame(gauges, { running: 1, waiting: 0 })
  held.leave(first)
  t.equal(typeof take('a'), 'object')
})

t.test('OB-07 an organization alone takes all; beside others it takes its share', async t => {
  const { held, take, clock, rules } = places(t, { inFlight: 8, queue: 4, share: 0.25 })
  const flood = Array.from({ length: 8 }, () => take('a') as Permit)
  t.ok(
    flood.every(place => typeof place === 'object'),
    'alone: all eight',
  )
  const waiting = take('b') as Promise<Permit>
  t.type(waiting, Promise, 'another one waits for a place')
  t.type(take('a'), Promise, 'and one of the first may wait, a quarter of the queue')
  t.equal(take('a'), 529)
  held.leave(flood.pop()!)
  const b = await waiting
  t.ok(b, 'the place goes to the one that has fewer than its share, not to the one that came first')
  while (flood.length > 2) held.leave(flood.pop()!)
  t.equal(take('a'), 529, 'who has its two places gets no third, though five are free')
  const others = [b, take('b') as Permit]
  held.leave(flood.pop()!)
  others.push(take('c') as Permit)
  t.notOk(others[2] instanceof Promise, 'a third one finds room at once')
  clock.now += 11 * MINUTE
  t.type(take('a'), Promise, 'who is at work uses places too, however long that takes')
  for (const place of others) held.leave(place)
  clock.now += 11 * MINUTE
  const many = Array.from({ length: 3 }, () => take('a'))
  t.notOk(
    many.some(place => typeof place !== 'object' || place instanceof Promise),
    'alone again after ten minutes, it takes more than its share',
  )
  t.equal(rules.inFlight, 8)
})

t.test('OB-07 those who wait take turns by organization', async t => {
  const { held, take } = places(t, { inFlight: 1, share: 1 })
  let place = take('x') as Permit
  const order: string[] = []
  const all = ['a', 'a', 'a', 'b', 'c', 'b'].map(async org => {
    place = (await take(org)!) as Permit
    order.push(org)
  })
  for (let turn = 0; turn < all.length; turn++) {
    held.leave(place)
    await new Promise(resolve => setImmediate(resolve))
  }
  await Promise.all(all)
  t.strictSame(order, ['a', 'b', 'c', 'a', 'b', 'a'])
})

t.test('a limit that a reload lowers admits no request until enough have left, and counts all that run', async t => {
  const { held, take, rules, gauges } = places(t, { inFlight: 3, queue: 0 })
  const three = [take('a'), take('a'), take('a')] as Permit[]
  Object.assign(rules, { inFlight: 1 })
  t.equal(take('a'), 529)
  held.leave(three.pop()!)
  held.leave(three.pop()!)
  t.equal(take('a'), 529)
  held.leave(three.pop()!)
  t.type(take('a'), 'object')
  t.equal(gauges.running, 1)
})

/** The filter with a load that a test sets. */
function filter(t: Test, options: Partial<Parameters<typeof admission.create>[0]> = {}, services?: Services) {
  const load = { lag: 0, memory: 0 }
  const gauges = { running: 0 }
  const given = services ?? {
    load: { lagMs: () => load.lag, memory: () => load.memory },
    metrics: {
      inFlight(by: number) {
        gauges.running += by
      },
      waiting() {},
    },
  }
  const all = { in_flight: 2, queue: 0, wait: MINUTE, org_share: 1, lag: 200, memory: 0.95, ...options }
  const made = admission.create(all, given as Services, 'inference.0')
  const enter = async (ex: Exchange = exchange({ principal })) => {
    try {
      return (await made.handle!(ex, async () => reply())).status
    } catch (error) {
      t.type(error, GatewayError)
      return (error as GatewayError).status
    }
  }
  return { enter, leave: (ex: Exchange) => made.finish!(ex, true), load, gauges, services: given as Services }
}

t.test('a refused request frees no place, nor one that never waited; one that ends frees one', async t => {
  const { enter, leave, gauges } = filter(t)
  const [first, second, third] = [exchange(), exchange(), exchange()]
  t.strictSame([await enter(first), await enter(second), await enter(third)], [200, 200, 529])
  leave(third!)
  leave(exchange())
  t.equal(await enter(third), 529)
  leave(first!)
  leave(first!)
  t.strictSame([await enter(third), await enter(first)], [200, 529])
  for (const ex of [second, third]) leave(ex!)
  t.equal(gauges.running, 0)
})

t.test('a reload makes new filters, which count those who came in before', async t => {
  const before = filter(t)
  const inside = exchange()
  t.equal(await before.enter(inside), 200)
  const after = filter(t, { in_flight: 1 }, before.services)
  t.equal(await after.enter(), 529)
  before.leave(inside)
  t.equal(await after.enter(), 200)
})

t.test('OB-10, OB-11 no request enters while the loop lags or memory is short, until it has recovered', async t => {
  const { enter, load } = filter(t, { in_flight: 100 })
  const rows: [lag: number, memory: number, status: number][] = [
    [200, 0.95, 200],
    [201, 0, 529],
    [101, 0, 529],
    [100, 0, 200],
    [200, 0, 200],
    [0, 0.951, 529],
    [0, 0.91, 529],
    [0, 0.9, 200],
    [300, 0.99, 529],
    [0, 0.99, 529],
    [150, 0, 200],
  ]
  for (const [lag, memory, status] of rows) {
    Object.assign(load, { lag, memory })
    t.equal(await enter(), status, `${lag} ms, ${memory * 100} %`)
  }
})

t.test('a threshold is left only below its slack', async t => {
  const limit = new Hysteresis(10, 5)
  const seen = [10, 11, 6, 5, 8, 12, 5.1, 4].map(value => limit.isOver(value))
  t.strictSame(seen, [false, true, true, false, false, true, true, false])
})
