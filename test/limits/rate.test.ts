/** A token bucket: what may be taken at once, and as time passes. */
import fc from 'fast-check'
import t from 'tap'
import { TokenBucket } from '../../src/limits/rate.ts'
import { runs } from '../helpers/runs.ts'

const owed = (bucket: TokenBucket, count: number, now: number): number => {
  bucket.take(count, now)
  return bucket.owedMs
}

t.test('its size is taken at once, and what is more is owed until time has given it back', t => {
  const bucket = new TokenBucket(1000, 1000)
  t.equal(owed(bucket, 1000, 5000), 0)
  t.equal(owed(bucket, 500, 5000), 500)
  t.equal(owed(bucket, 100, 5500), 100, 'half a second gives 500 back')
  t.equal(owed(bucket, 0, 9000), 0)
  t.equal(owed(bucket, 1001, 9000), 1, 'no more than its size is saved')
  bucket.give(5000)
  t.equal(owed(bucket, 1001, 9000), 1, 'nor by what is given back')
  t.end()
})

t.test('its size and its rate are two things', t => {
  const bucket = new TokenBucket(60, 2)
  for (let taken = 1; taken <= 60; taken++) t.equal(owed(bucket, 1, 1000), 0)
  t.equal(owed(bucket, 1, 1000), 500)
  for (let now = 2000; now < 100_000; now += 500) t.equal(owed(bucket, 1, now), 0)
  t.end()
})

t.test('a spent retry budget refills by time, up to its reserve', async t => {
  const budget = new TokenBucket(2, 2 / 60)
  const tries = (now: number, count: number) => Array.from({ length: count }, () => budget.tryTake(1, now))
  t.strictSame(tries(0, 3), [true, true, false])
  t.strictSame(tries(30_000, 2), [true, false], 'half of the reserve after half a minute')
  t.strictSame(tries(600_000, 3), [true, true, false], 'never more than the reserve')
  budget.give(0.5)
  budget.give(0.5)
  t.strictSame(tries(600_000, 2), [true, false], 'requests give back a part of a retry each')
})

t.test('who waits for what is owed takes no more than the rate, and the size once', t => {
  const sizes = fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1, maxLength: 100 })
  fc.assert(
    fc.property(sizes, sizes => {
      const bucket = new TokenBucket(1000, 1000)
      let now = 0
      let sum = 0
      for (const size of sizes) {
        sum += size
        now += owed(bucket, size, now)
        if (sum > 1000 + now + 0.001) return false
      }
      return true
    }),
    { seed: 20261127, numRuns: runs(1000) },
  )
  t.end()
})
