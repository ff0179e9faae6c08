/** Calls that are open: counted while they last, and forgotten with the last one of a provider of one's own. */
import t from 'tap'
import { type CalledProvider, InFlightCounts } from '../../src/upstream/in-flight-count.ts'

const own = (id: string, given: Partial<CalledProvider> = {}): CalledProvider => ({
  ...{ id, owner: 'a', concurrency: 2, ownerConcurrency: 3, ...given },
})

t.test('own providers and their owners have a count only while a call is open', async t => {
  const counts = new InFlightCounts()
  for (let at = 0; at < 1000; at++)
    counts.begin(`org-${at}`, own(`own-${at}`, { owner: `org-${at}` }))!.end(`org-${at}`)
  t.equal(counts.size, 0)
  const first = counts.begin('a', own('one'))!
  const second = counts.begin('a', own('one'))!
  t.equal(counts.size, 2, 'the provider and its owner')
  first.end('a')
  t.equal(counts.size, 2)
  second.end('a')
  t.equal(counts.size, 0)
})

t.test('what is open counts once when other counts of its provider and owner have gone', async t => {
  const counts = new InFlightCounts()
  const open = counts.begin('a', own('one'))!
  counts.begin('a', own('two'))!.end('a')
  counts.begin('a', own('one'))!.end('a')
  t.equal(counts.size, 2)
  const others = [own('one'), own('one'), own('two'), own('three'), own('three')].map(at => counts.begin('a', at))
  const began = [true, false, true, false, false]
  t.strictSame(others.map(Boolean), began, 'two of a provider, three of an owner')
  t.equal(counts.size, 3, 'a call that was refused leaves no count')
  for (const one of [open, ...others]) one?.end('a')
  t.equal(counts.size, 0)
  t.strictSame(
    [own('one'), own('one'), own('one')].map(at => !!counts.begin('a', at)),
    [true, true, false],
  )
})

t.test('a provider of all organizations keeps its count, and with it the share of each', async t => {
  const counts = new InFlightCounts()
  const shared = { id: 'one', concurrency: 4 }
  counts.begin('b', shared)!.end('b')
  t.equal(counts.size, 1)
  t.strictSame(
    Array.from({ length: 3 }, () => !!counts.begin('a', shared)),
    [true, true, false],
    'b was there just now',
  )
})

t.test('an organization alone leaves some calls of a large provider to others', async t => {
  const rows = [
    ['small', { concurrency: 15, owner: undefined }, 15],
    ['large', { concurrency: 32, owner: undefined }, 30],
    ['own', { concurrency: 32, ownerConcurrency: 64 }, 32],
  ] as const
  for (const [id, given, most] of rows) {
    const counts = new InFlightCounts()
    const open = Array.from({ length: 40 }, () => counts.begin('a', own(id, given))).filter(one => one !== undefined)
    t.equal(open.length, most, id)
    const other = counts.begin('b', own(id, given))
    t.equal(other !== undefined, id === 'large', `${id}: another organization`)
  }
})
