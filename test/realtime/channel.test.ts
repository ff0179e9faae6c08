/** One side of a session, as its messages are taken; how fast the sessions of an organization are read. */
import t from 'tap'
import { TokenBucket } from '../../src/limits/rate.ts'
import { Channel, enterReadRates } from '../../src/realtime/channel.ts'
import { End, settle } from './kit.ts'

t.test('a side that sends faster than its organization may is not read for a while', async t => {
  const nothing = () => undefined
  const events = { take: nothing, failed: nothing, closed: nothing, stalled: nothing, flooded: nothing }
  const ends = [new End(), new End()] as const
  // It saves nothing up, so that no time that passes here counts.
  const [client, provider] = ends.map(end => new Channel(end, events, new TokenBucket(1, 100_000))) as [
    Channel,
    Channel,
  ]
  client.open(provider)
  provider.open(client)
  const [end] = ends
  end.come(1)
  t.notOk(end.paused)
  end.come(20_000)
  t.ok(end.paused)
  end.message('"a"')
  t.ok(end.paused, 'also when its messages have been taken')
  while (end.paused) await new Promise(resolve => setTimeout(resolve, 1))
  end.come(50_000)
  t.ok(end.paused)
  client.stop()
  t.notOk(end.paused, 'what comes of a side that has ended is dropped')
})

t.test('what a side throws beside its messages fails its session', async t => {
  const nothing = () => undefined
  const failures: unknown[] = []
  const broken = () => {
    throw new Error('broken')
  }
  const failed = (cause: unknown) => failures.push(cause)
  const events = { take: nothing, failed, closed: broken, stalled: nothing, flooded: broken }
  const ends = [new End(), new End()] as const
  const rate = new TokenBucket(1e9, 1e9)
  const [client, provider] = [new Channel(ends[0], events, rate), new Channel(ends[1], events, rate)]
  client.open(provider)
  provider.open(client)
  for (let count = 0; count <= 61; count++) ends[0].pinged()
  ends[1].close(1006)
  await settle()
  t.match(failures, [{ message: 'broken' }, { message: 'broken' }])
})

t.test('a message counts until it has been taken, also where its side has ended', async t => {
  const nothing = () => undefined
  let taken: () => void = nothing
  const take = () =>
    new Promise<void>(resolve => {
      taken = resolve
    })
  const events = { take, failed: nothing, closed: nothing, stalled: nothing, flooded: nothing }
  const rate = new TokenBucket(1e9, 1e9)
  const ends = [new End(), new End()] as const
  const [client, provider] = [new Channel(ends[0], events, rate), new Channel(ends[1], events, rate)]
  client.open(provider)
  provider.open(client)
  const long = `"${'é'.repeat(50_000)}"`
  ends[0].message(long)
  ends[0].message(long)
  t.equal(client.held, 200_004, 'in bytes')
  taken()
  await settle()
  t.equal(client.held, 100_002)
  ends[0].message(long)
  client.stop()
  t.equal(client.held, 100_002, 'what waits is dropped')
  taken()
  await settle()
  t.equal(client.held, 0)
})

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

t.test('a rate that a reload has changed counts for the next session, while earlier ones keep theirs', t => {
  const before = enterReadRates('c', 1000)
  const after = enterReadRates('c', 500)
  const owed = ({ client }: typeof before) => {
    client.take(2000, performance.now())
    return Math.round(client.owedMs / 1000)
  }
  t.strictSame([owed(before), owed(after)], [1, 3])
  before.leave()
  t.equal(enterReadRates('c', 500).client, after.client, 'the end of an earlier one leaves it')
  t.end()
})
