/** The sessions of an organization are read together no faster than they may. */
import t from 'tap'
import { enterReadRates } from '../../src/realtime/read-rate.ts'

t.test('sessions of one organization share a rate for each side, until the last one has ended', t => {
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
