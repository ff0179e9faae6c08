/** Every implementation of a store against the contract of its port, and the bounds of the counters by property. */
import fc from 'fast-check'
import t from 'tap'
import { MemoryCache } from '../../src/stores/memory/cache.ts'
import { MemoryCounters } from '../../src/stores/memory/counters.ts'
import {
  accountStoreContract,
  countersContract,
  keyStoreContract,
  ledgerContract,
  replyCacheContract,
  usageStoreContract,
} from './contract.ts'
import { sqliteSubject } from './subject.ts'

t.test('sqlite accounts', async t => accountStoreContract(t, sqliteSubject))
t.test('sqlite keys', async t => keyStoreContract(t, sqliteSubject))
t.test('sqlite ledger', async t => ledgerContract(t, sqliteSubject))
t.test('sqlite usage', async t => usageStoreContract(t, sqliteSubject))
t.test('memory counters', async t => countersContract(t, clock => new MemoryCounters(() => clock.now)))
t.test('memory cache', async t =>
  replyCacheContract(t, (clock, limits) => new MemoryCache({ ...limits, now: () => clock.now })),
)

t.test('in no span of one window are more units admitted than the limit', async () => {
  const steps = fc.array(fc.record({ wait: fc.double({ min: 0, max: 2, noNaN: true }), takes: fc.nat(8) }), {
    maxLength: 60,
  })
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10 }),
      fc.integer({ min: 1, max: 90_000 }),
      steps,
      (limit, windowMs, steps) => {
        let now = 1_000_000
        const counters = new MemoryCounters(() => now)
        const admitted: number[] = []
        for (const { wait, takes } of steps) {
          now += wait * windowMs * 0.7
          for (let i = 0; i < takes; i++) {
            const { allowed, remaining } = counters.take('a', limit, windowMs)
            if (allowed) admitted.push(now)
            const inWindow = admitted.filter(at => at >= now - windowMs).length
            if (inWindow > limit) throw new Error(`${inWindow} of ${limit} in the window that ends at ${now}`)
            if (remaining > limit - inWindow) throw new Error(`${remaining} remain of ${limit} after ${inWindow}`)
          }
        }
      },
    ),
    { numRuns: 500 },
  )
})

t.test('a refused caller is served when it comes back after resetMs', async () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 90_000 }),
      fc.array(fc.nat(30_000), { minLength: 1, maxLength: 50 }),
      (limit, windowMs, waits) => {
        let now = 0
        const counters = new MemoryCounters(() => now)
        for (const wait of waits) {
          now += wait
          let quota = counters.take('a', limit, windowMs)
          while (quota.allowed) quota = counters.take('a', limit, windowMs)
          now += quota.resetMs
          if (!counters.take('a', limit, windowMs).allowed) throw new Error(`refused at ${now}`)
        }
      },
    ),
  )
})

t.test('at three times the rate nearly the whole limit is admitted, and nothing when the clock stands', async t => {
  let now = 0
  const counters = new MemoryCounters(() => now)
  const [limit, windowMs] = [100, 60_000]
  let admitted = 0
  for (let i = 0; i < 10_000; i++) {
    now += windowMs / (3 * limit)
    if (counters.take('a', limit, windowMs).allowed) admitted++
  }
  const ideal = (10_000 / 3 / limit) * limit
  t.ok(admitted <= ideal + limit && admitted > ideal * 0.95, `${admitted} of ${ideal}`)
  now -= 10 * windowMs
  while (counters.take('a', limit, windowMs).allowed) admitted++
  t.notOk(counters.take('a', limit, windowMs).allowed, 'a clock that runs backwards frees nothing')
})

t.test('counters remember a bounded number of keys', async t => {
  const counters = new MemoryCounters(() => 1000)
  counters.take('first', 1, 60_000)
  for (let i = 0; i < 10_000; i++) counters.take(`key ${i}`, 1, 60_000)
  t.ok(counters.take('first', 1, 60_000).allowed, 'the least recently used key is forgotten')
  t.notOk(counters.take('key 9999', 1, 60_000).allowed)
})
