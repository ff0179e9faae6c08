/** The sessions of an organization are read together no faster than they may. */
import fc from 'fast-check'
import t from 'tap'
import { enterReadRates, ReadRate } from '../../src/realtime/read-rate.ts'
import { runs } from '../helpers/runs.ts'

t.test('a second of what may come is read at once, and what is more makes its sender wait', t => {
  const readRate = new ReadRate(1000)
  t.equal(readRate.took(1000, 5000), 0)
  t.equal(readRate.took(500, 5000), 500)
  t.equal(readRate.took(100, 5500), 100, 'half a second gives 500 bytes back')
  t.equal(readRate.took(0, 9000), 0)
  t.equal(readRate.took(1001, 9000), 1, 'no more than a second is saved')
  t.end()
})

t.test('a sender that waits as long as it must comes to no more than the rate, and one second', t => {
  const sizes = fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1, maxLength: 100 })
  fc.assert(
    fc.property(sizes, sizes => {
      const readRate = new ReadRate(1000)
      let now = 0
      let sum = 0
      for (const size of sizes) {
        sum += size
        now += readRate.took(size, now)
        if (sum > 1000 + now + 0.001) return false
      }
      return true
    }),
    { seed: 20261127, numRuns: runs(1000) },
  )
  t.end()
})

t.test('sessions of one organization share an readRate for each side, until the last one has ended', t => {
  const first = enterReadRates('a', 1000)
  const second = enterReadRates('a', 1000)
  const other = enterReadRates('b', 1000)
  t.equal(first.client, second.client)
  t.not(first.client, first.provider)
  t.not(first.client, other.client)
  first.leave()
  const third = enterReadRates('a', 1000)
  t.equal(third.client, second.client)
  for (const { leave } of [second, third]) leave()
  t.not(enterReadRates('a', 1000).client, second.client)
  t.end()
})
