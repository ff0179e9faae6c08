/** A bounded amount, and the bytes that requests keep, shared out among tenants. */
import fc from 'fast-check'
import t from 'tap'
import { HeldValues } from '../../src/limits/held.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { FairShare } from '../../src/limits/share.ts'
import { FairEntries } from '../../src/stores/memory/fair-entries.ts'

const KIB = 1024
const MIB = 1024 * KIB
const MINUTE = 60_000

t.test('a tenant alone takes three quarters, and half while another one holds or has asked', async t => {
  const clock = { now: 0 }
  const share = new FairShare(100, () => clock.now)
  t.ok(share.acquire('a', 75))
  t.notOk(share.acquire('a', 1), 'a quarter is left for a newcomer')
  t.ok(share.acquire('b', 25), 'who finds it at once')
  t.notOk(share.acquire('b', 1), 'there is no more')
  share.release('a', 75)
  t.ok(share.acquire('a', 50))
  t.notOk(share.acquire('a', 1), 'b holds some')
  share.release('b', 25)
  t.notOk(share.acquire('a', 1), 'b has asked a moment ago')
  clock.now += 11 * MINUTE
  t.ok(share.acquire('a', 25), 'b has not asked for long')
  t.equal(share.used, 75)
})

t.test('whatever tenants do, nothing passes the limit, and a newcomer finds room', async () => {
  const step = fc.record({
    tenant: fc.constantFrom('a', 'b'),
    amount: fc.integer({ min: 0, max: 60 }),
    gives: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 50 }), steps => {
      const share = new FairShare(100, () => 0)
      const held = { a: 0, b: 0 } as Record<string, number>
      for (const { tenant, amount, gives } of steps) {
        if (gives && held[tenant]! >= amount) {
          share.release(tenant, amount)
          held[tenant]! -= amount
        } else if (!gives && share.acquire(tenant, amount)) held[tenant]! += amount
        if (share.used !== held.a! + held.b! || share.used > 100) return false
      }
      return held.a! + held.b! < 100 ? share.fits('c', Math.min(50, 100 - share.used)) : true
    }),
    { seed: 20261122 },
  )
})

t.test('one unit fits however small the limit is, and what is held stays beside a lower limit', async t => {
  const share = new FairShare(1, () => 0)
  t.ok(share.acquire('a', 1))
  t.notOk(share.acquire('b', 1))
  share.resize(8, 1 / 4)
  t.ok(share.acquire('b', 2))
  t.equal(share.lack('b', 1), 'share')
  share.resize(3, 1)
  t.equal(share.lack('b', 1), 'limit')
  share.release('a', 1)
  t.ok(share.acquire('b', 1))
})

t.test('whatever one tenant keeps, the entries that another one has within its half stay', async () => {
  const step = fc.record({
    key: fc.nat(30),
    size: fc.integer({ min: 1, max: 60 }),
    ttl: fc.integer({ min: 0, max: 9 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 50 }), (steps, size) => {
      let time = 0
      const entries = new FairEntries<number>({ limit: 100, now: () => time })
      entries.set('b', 'kept', 1, size, 1000)
      for (const { key, size, ttl } of steps) {
        entries.set('a', `${key}`, 0, size, ttl)
        time++
        if (entries.get('kept') !== 1) return false
      }
      return [...entries.all()].length <= 100
    }),
    { seed: 20261123 },
  )
})

t.test(
  'OB-09, OB-11 memory for requests is bounded, and for large ones ends earlier when the heap is short',
  async t => {
    let heap = 0
    const budget = new MemoryBudget(8 * MIB, { memory: () => heap })
    const large = budget.lease('a', 5 * MIB)
    t.ok(large.grow(3 * MIB))
    t.notOk(large.grow(3 * MIB), 'what does not fit is not taken')
    t.equal(budget.used, 3 * MIB)
    t.ok(large.grow(2 * MIB))
    large.keep(1 / 5)
    t.equal(budget.used, MIB, 'a part is given back')
    large.release()
    t.equal(budget.used, 0)
    heap = 0.86
    t.notOk(budget.fits('a', MIB + 1))
    t.ok(large.grow(MIB), 'small ones fit')
    t.notOk(large.grow(1))
    heap = 0.81
    t.notOk(large.grow(1))
    heap = 0.8
    t.ok(large.grow(1))
  },
)

t.test('small requests have a reserve that large ones cannot take, however those begin', async t => {
  const budget = new MemoryBudget(8 * MIB, { memory: () => 0 }, () => 0)
  const [first, second, third] = ['a', 'b', 'c'].map(tenant => budget.lease(tenant, 7 * MIB))
  t.ok(first!.grow(3.5 * MIB))
  t.ok(second!.grow(3.5 * MIB))
  t.notOk(third!.grow(1), 'the part for all is taken')
  const chunked = budget.lease('c')
  t.ok(chunked.grow(128 * KIB), 'a small one finds room in the reserve')
  t.notOk(chunked.grow(1), 'and none there once it is large')
  t.equal(budget.used, 7 * MIB + 128 * KIB)
  first!.release()
  t.ok(chunked.grow(MIB), 'it moves to the other part')
  t.equal(budget.used, 3.5 * MIB + 128 * KIB + MIB)
  for (const lease of [second!, chunked]) lease.release()
  t.equal(budget.used, 0)
})

t.test('what waits for its reader gives its memory back once, however the reading ends', async t => {
  const failing = function* () {
    yield 1
    throw new Error('it fails')
  }
  const rows: [says: string, values: Iterable<number>, reads: number, got: number[]][] = [
    ['it is read to its end', [1, 2], 3, [1, 2]],
    ['its reader stops', [1, 2], 1, [1]],
    ['it is never read', [1, 2], 0, []],
    ['it fails', failing(), 2, [1]],
  ]
  for (const [says, values, reads, got] of rows) {
    let released = 0
    const held = new HeldValues(values, () => released++)
    const seen: number[] = []
    for (let read = 0; read < reads; read++) {
      const next = await held.next().catch(() => undefined)
      if (next && !next.done) seen.push(next.value)
    }
    await held.return()
    t.strictSame([seen, released], [got, 1], says)
    t.strictSame(await held.next(), { done: true, value: undefined }, `${says}: nothing more comes`)
  }
})
