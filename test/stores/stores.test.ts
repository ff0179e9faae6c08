/** Every implementation of a store against the contract of its port, and the bounds of the counters by property. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { MemoryCache } from '../../src/stores/memory/cache.ts'
import { MemoryCounters } from '../../src/stores/memory/counters.ts'
import { policyStoreContract } from '../policy/contract.ts'
import {
  accountStoreContract,
  countersContract,
  keyStoreContract,
  ledgerContract,
  replyCacheContract,
  sharedBoundContract,
  usageStoreContract,
} from './contract.ts'
import { auditContract, creditContract, memberContract, organizationContract } from './contract-accounts.ts'
import { alertStoreContract } from './contract-alerts.ts'
import { contentStoreContract } from './contract-contents.ts'
import { usageDaysContract } from './contract-days.ts'
import { jobStoreContract } from './contract-jobs.ts'
import { limitContract, planContract } from './contract-limits.ts'
import { masterKeyContract } from './contract-master-keys.ts'
import { placesContract, reservationsContract } from './contract-memory.ts'
import { oauthContract } from './contract-oauth.ts'
import { realtimeContract } from './contract-realtime.ts'
import { reportContract } from './contract-reports.ts'
import { requestLogContract } from './contract-requests.ts'
import { responseStoreContract } from './contract-responses.ts'
import { storesContract } from './contract-stores.ts'
import { type MakeSubject, readersOf, sqliteSubject } from './subject.ts'

const contracts: readonly (readonly [what: string, contract: (t: Test, make: MakeSubject) => void])[] = [
  ['accounts', accountStoreContract],
  ['keys', keyStoreContract],
  ['ledger', ledgerContract],
  ['jobs', jobStoreContract],
  ['limits', limitContract],
  ['plans', planContract],
  ['organizations', organizationContract],
  ['members', memberContract],
  ['credits', creditContract],
  ['audit', auditContract],
  ['usage', usageStoreContract],
  ['days of usage', usageDaysContract],
  ['reports', reportContract],
  ['request log', requestLogContract],
  ['contents', contentStoreContract],
  ['alerts', alertStoreContract],
  ['oauth', oauthContract],
  ['responses', responseStoreContract],
  ['realtime', realtimeContract],
  ['policies', policyStoreContract],
  ['stores', storesContract],
]
for (const [what, contract] of contracts) t.test(`sqlite ${what}`, async t => contract(t, sqliteSubject))
t.test('sqlite master keys', async t => masterKeyContract(t, async t => readersOf(sqliteSubject(t).db).sql))
t.test('memory counters', async t => countersContract(t, clock => new MemoryCounters(() => clock.now)))
t.test('memory reservations', async t => reservationsContract(t, clock => new MemoryCounters(() => clock.now)))
t.test('memory places', async t => placesContract(t, clock => new MemoryCounters(() => clock.now)))
for (const contract of [replyCacheContract, sharedBoundContract]) {
  t.test('memory cache', async t =>
    contract(t, (clock, limits) => new MemoryCache({ ...limits, now: () => clock.now })),
  )
}

t.test('CC-06 in no span of one window are more units admitted than the limit', async () => {
  // In windows: anything, and what ends just before or just after the first unit leaves.
  const wait = fc.oneof(fc.double({ min: 0, max: 1.4, noNaN: true }), fc.double({ min: 0.96, max: 1.02, noNaN: true }))
  const steps = fc.array(fc.record({ wait, takes: fc.nat(8) }), { maxLength: 60 })
  fc.assert(
    fc.property(fc.nat(9), fc.integer({ min: 1, max: 90_000 }), steps, (most, windowMs, steps) => {
      const limit = most + 1
      let now = 1_000_000
      const counters = new MemoryCounters(() => now)
      const admitted: number[] = []
      for (const { wait, takes } of steps) {
        now += wait * windowMs
        for (let i = 0; i < takes; i++) {
          const { allowed, remaining } = counters.take('a', limit, windowMs)
          if (allowed) admitted.push(now)
          const inWindow = admitted.filter(at => at + windowMs > now).length
          assert.ok(inWindow <= limit, `${inWindow} of ${limit} in the window that ends at ${now}`)
          assert.ok(remaining <= limit - inWindow, `${remaining} remain of ${limit} after ${inWindow}`)
        }
      }
    }),
    { numRuns: 500 },
  )
})

t.test('units of one bucket leave together, when the newest of them is a window old', async t => {
  for (const [windowMs, width] of [
    [1, 1],
    [61, 2],
    [1000, 17],
    [60_000, 1000],
  ] as const) {
    let now = 3 * width
    const counters = new MemoryCounters(() => now)
    t.match(counters.take('a', 2, windowMs), { allowed: true, resetMs: windowMs })
    now += width - 1
    t.match(counters.take('a', 2, windowMs), { allowed: true, resetMs: windowMs })
    now += windowMs - 1
    t.match(counters.take('a', 2, windowMs), { allowed: false, resetMs: 1 })
    now++
    t.match(counters.take('a', 2, windowMs), { allowed: true })
  }
})

t.test('ST-13 while the clock runs backwards, time stands still', async t => {
  let now = 1_000_000
  const counters = new MemoryCounters(() => now)
  counters.take('a', 2, 60_000)
  now -= 30_000
  t.match(counters.take('a', 2, 60_000), { allowed: true, remaining: 0 })
  t.notOk(counters.take('a', 2, 60_000).allowed)
  now += 30_000 + 61_000
  t.match(counters.take('a', 2, 60_000), { allowed: true, remaining: 1 })
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
          assert.ok(counters.take('a', limit, windowMs).allowed, `refused at ${now}`)
        }
      },
    ),
  )
})

t.test('at three times the rate nearly the whole limit is admitted', async t => {
  let now = 0
  const counters = new MemoryCounters(() => now)
  const [limit, windowMs] = [100, 60_000]
  let admitted = 0
  for (let i = 0; i < 10_000; i++) {
    now += windowMs / (3 * limit)
    if (counters.take('a', limit, windowMs).allowed) admitted++
  }
  const ideal = 10_000 / 3
  t.ok(admitted <= ideal + limit && admitted > ideal * 0.95, `${admitted} of ${ideal}`)
})

t.test('counters forget the least recently used of those that a client names', async t => {
  const counters = new MemoryCounters(() => 1000)
  counters.take('named org-a first', 1, 60_000)
  for (let i = 0; i < 20_000; i++) counters.take(`named org-a ${i}`, 1, 60_000)
  t.ok(counters.take('named org-a first', 1, 60_000).allowed)
  t.notOk(counters.take('named org-a 19999', 1, 60_000).allowed)
})
