/** What every implementation of the counters and of the reply cache must do. */
import type { Test } from 'tap'
import type { CachedReply, Counters, ReplyCache } from '../../src/core/ports.ts'

/** A clock that stands still until it is set. */
export interface Clock {
  now: number
}

export function countersContract(t: Test, make: (clock: Clock) => Counters): void {
  t.test('units are taken up to the limit, and refused ones do not count', async t => {
    const clock = { now: 5_000_000 }
    const counters = make(clock)
    for (const remaining of [2, 1, 0]) t.match(await counters.take('a', 3, 60_000), { allowed: true, remaining })
    for (let i = 0; i < 5; i++) t.match(await counters.take('a', 3, 60_000), { allowed: false, remaining: 0 })
    const { resetMs } = await counters.take('a', 3, 60_000)
    t.equal(resetMs, 60_000, 'nobody who is refused has to wait for longer than a window')
    clock.now += resetMs
    for (const remaining of [2, 1, 0]) t.match(await counters.take('a', 3, 60_000), { allowed: true, remaining })
    t.match(await counters.take('a', 3, 60_000), { allowed: false })
  })

  t.test('a caller that is refused and returns after resetMs is admitted, however a burst lies in time', async t => {
    for (const spread of [0, 1, 400, 999, 1000, 1001, 25_000]) {
      const clock = { now: 5_000_250 }
      const counters = make(clock)
      for (let i = 0; i < 4; i++) {
        t.match(await counters.take('a', 4, 60_000), { allowed: true })
        clock.now += spread / 4
      }
      const { allowed, resetMs } = await counters.take('a', 4, 60_000)
      t.notOk(allowed)
      t.ok(resetMs <= 60_000, `${resetMs}`)
      clock.now += resetMs
      t.match(await counters.take('a', 4, 60_000), { allowed: true }, `after ${resetMs}`)
    }
  })

  t.test('a look takes nothing, and says what the next take would get', async t => {
    const clock = { now: 5_000_000 }
    const counters = make(clock)
    for (let i = 0; i < 5; i++)
      t.match(await counters.peek('a', 2, 60_000), { allowed: true, remaining: 2, resetMs: 0 })
    t.match(await counters.take('a', 2, 60_000), { allowed: true, remaining: 1 })
    t.match(await counters.peek('a', 2, 60_000), { allowed: true, remaining: 1, resetMs: 60_000 })
    t.match(await counters.take('a', 2, 60_000), { allowed: true, remaining: 0 })
    clock.now += 500
    for (let i = 0; i < 5; i++) t.match(await counters.peek('a', 2, 60_000), { allowed: false, remaining: 0 })
    t.match(await counters.take('a', 2, 60_000), { allowed: false })
    t.match(await counters.peek('a', 3, 60_000), { allowed: true, remaining: 1 }, 'a limit may change')
    t.match(await counters.peek('a', 2, 1000), { allowed: true, remaining: 2 }, 'windows count apart')
    t.match(await counters.peek('b', 2, 60_000), { allowed: true, remaining: 2 }, 'as do keys')
    const { resetMs } = await counters.peek('a', 2, 60_000)
    t.ok(resetMs >= 59_500 && resetMs <= 60_000)
    clock.now += resetMs
    t.match(await counters.peek('a', 2, 60_000), { allowed: true, remaining: 2 })
  })

  t.test('a unit that is given back is free at once, in the window that it was taken in', async t => {
    const clock = { now: 5_000_000 }
    const counters = make(clock)
    const take = () => counters.take('a', 2, 60_000)
    const first = await take()
    clock.now += 5000
    t.match(await take(), { allowed: true, remaining: 0 })
    t.match(await take(), { allowed: false })
    await counters.correct('a', 60_000, first.bucket!, -1)
    t.match(await take(), { allowed: true, remaining: 0 })
    t.match(await take(), { allowed: false, resetMs: 60_000 }, 'the first one waits for nothing that has gone')
    clock.now += 60_000
    await counters.correct('a', 60_000, first.bucket!, -1)
    for (const remaining of [1, 0]) t.match(await take(), { allowed: true, remaining })
    t.match(await take(), { allowed: false }, 'one that has left the window is not given back again')
  })

  t.test('keys and windows count apart, and a limit may change between two takes', async t => {
    const counters = make({ now: 5_000_000 })
    await counters.take('a', 1, 60_000)
    t.match(await counters.take('a', 1, 60_000), { allowed: false })
    t.match(await counters.take('b', 1, 60_000), { allowed: true })
    t.match(await counters.take('a', 1, 1000), { allowed: true })
    t.match(await counters.take('c', 1, 1000), { allowed: true })
    t.match(await counters.take('c', 1, 60_000), { allowed: true })
    t.match(await counters.take('a', 2, 60_000), { allowed: true, remaining: 0 })
    t.match(await counters.take('a', 1, 1000), { allowed: false })
    t.match(await counters.take('a', 2, 60_000), { allowed: false })
    t.match(await counters.take('a', 0, 60_000), { allowed: false, remaining: 0 })
  })
}

export function reservationsContract(t: Test, make: (clock: Clock) => Counters): void {
  t.test('a reservation takes all its units while any is free, and is corrected by what was used', async t => {
    const clock = { now: 5_000_000 }
    const counters = make(clock)
    const reserve = (units: number, key = 'a') => counters.reserve(key, 1000, 60_000, units)
    const first = await reserve(600)
    t.match(first, { allowed: true, remaining: 400 })
    const second = await reserve(600)
    t.match(second, { allowed: true, remaining: 0 }, 'the limit is passed by less than one reservation')
    const refused = await reserve(1)
    t.match(refused, { allowed: false, remaining: 0, resetMs: 60_000 })
    await refused.correct(0)
    t.match(await reserve(1), { allowed: false }, 'a refused one has nothing to give back')
    await second.correct(150)
    await first.correct(650)
    t.match(await reserve(100), { allowed: true, remaining: 100 })
    t.match(await reserve(100, 'b'), { allowed: true, remaining: 900 }, 'keys count apart')
    t.match(
      await counters.peek('b', 1000, 60_000),
      { allowed: true, remaining: 900, resetMs: 60_000 },
      'a look sees it',
    )
  })

  t.test('a reservation of more than any answer has is corrected by what was used, too', async t => {
    const counters = make({ now: 5_000_000 })
    const { correct } = await counters.reserve('a', 1000, 60_000, 2 ** 40)
    await correct(150)
    t.match(await counters.reserve('a', 1000, 60_000, 100), { allowed: true, remaining: 750 })
  })

  t.test('a correction after the window has passed takes nothing from newer reservations', async t => {
    const clock = { now: 5_000_000 }
    const counters = make(clock)
    const old = await counters.reserve('a', 100, 60_000, 80)
    clock.now += 70_000
    t.match(await counters.reserve('a', 100, 60_000, 60), { allowed: true, remaining: 40 })
    await old.correct(10)
    t.match(await counters.reserve('a', 100, 60_000, 20), { allowed: true, remaining: 20 })
    const none = await counters.reserve('a', 100, 60_000, 0)
    t.match(none, { allowed: true, remaining: 20 }, 'none is reserved where none is needed')
    await none.correct(30)
    t.match(await counters.reserve('a', 100, 60_000, 1), { allowed: false }, 'what was used counts from then on')
  })

  t.test('a caller whose reservation is refused and returns after resetMs is admitted', async t => {
    const clock = { now: 5_000_000 }
    const counters = make(clock)
    const given = await counters.reserve('a', 100, 60_000, 50)
    clock.now += 5000
    await counters.reserve('a', 100, 60_000, 100)
    await given.correct(0)
    const { allowed, resetMs } = await counters.reserve('a', 100, 60_000, 10)
    t.notOk(allowed)
    clock.now += resetMs
    t.match(await counters.reserve('a', 100, 60_000, 10), { allowed: true })
  })
}

export function placesContract(t: Test, make: (clock: Clock) => Counters): void {
  t.test('so many places are taken at once, and each is free again when it is left', async t => {
    const counters = make({ now: 5_000_000 })
    t.strictSame(
      [await counters.enter('a', 2), await counters.enter('a', 2), await counters.enter('a', 2)],
      [true, true, false],
    )
    t.equal(await counters.enter('b', 1), true, 'keys count apart')
    await counters.leave('a')
    t.strictSame([await counters.enter('a', 2), await counters.enter('a', 2)], [true, false])
    t.equal(await counters.enter('a', 3), true, 'a limit may change')
    for (let i = 0; i < 5; i++) await counters.leave('a')
    t.strictSame(
      [await counters.enter('a', 1), await counters.enter('a', 1)],
      [true, false],
      'who leaves twice makes no room',
    )
  })
}

type MakeCache = (clock: Clock, limits?: { maxBytes?: number; maxEntryBytes?: number }) => ReplyCache

const reply = (text: string): CachedReply => ({
  events: [{ type: 'text', choice: 0, text }],
  provider: 'acme',
  model: 'large',
  externalId: 'large-1',
  requestedModel: 'large',
  requestedProvider: null,
  logId: 'first',
  at: 0,
})

export function replyCacheContract(t: Test, make: MakeCache): void {
  t.test('a reply is served until its time is over', async t => {
    const clock = { now: 1000 }
    const cache = make(clock)
    t.equal(await cache.get('a', 'org'), undefined)
    await cache.set('a', reply('hello'), 100, 60_000, 'org')
    clock.now += 59_999
    t.same(await cache.get('a', 'org'), reply('hello'))
    clock.now += 2
    t.equal(await cache.get('a', 'org'), undefined)
  })

  t.test('a reply that may not live is not kept, nor is the one before it', async t => {
    const cache = make({ now: 1000 })
    await cache.set('a', reply('old'), 100, 60_000, 'org')
    await cache.set('a', reply('new'), 100, 0, 'org')
    t.equal(await cache.get('a', 'org'), undefined)
  })

  t.test('the oldest leave when the room is used up, and what is too large does not come in', async t => {
    const cache = make({ now: 1000 }, { maxBytes: 250, maxEntryBytes: 150 })
    for (const key of ['a', 'b', 'c']) await cache.set(key, reply(key), 100, 60_000, 'org')
    await cache.set('d', reply('d'), 151, 60_000, 'org')
    t.same([await cache.get('a', 'org'), await cache.get('d', 'org')], [undefined, undefined])
    t.same([await cache.get('b', 'org'), await cache.get('c', 'org')], [reply('b'), reply('c')])
  })
}

/** What replies in memory do besides: organizations share one bound. */
export function sharedBoundContract(t: Test, make: MakeCache): void {
  t.test('an organization that keeps much loses its own entries, and those that it took too many of', async t => {
    const cache = make({ now: 1000 }, { maxBytes: 1000, maxEntryBytes: 150 })
    const kept = async (...keys: string[]) =>
      (await Promise.all(keys.map(key => cache.get(key, 'org')))).filter(Boolean).length
    const keys = (org: string, count: number) => Array.from({ length: count }, (_, n) => `${org}${n}`)
    const keep = async (org: string, count: number) => {
      for (const key of keys(org, count)) await cache.set(key, reply(key), 100, 60_000, org)
    }
    await keep('a', 10)
    t.equal(await kept(...keys('a', 10)), 10, 'alone it may have all')
    await keep('b', 3)
    t.equal(await kept(...keys('b', 3)), 3, 'beside others it gives up what is beyond its share')
    await keep('a', 75)
    t.equal(await kept(...keys('b', 3)), 3, 'whatever it does, what others have stays')
    t.equal(await kept(...keys('a', 75)), 5, 'within its share')
    await keep('b', 75)
    t.equal(await kept(...keys('a', 75)), 5, 'and the others cannot take that')
  })
}
