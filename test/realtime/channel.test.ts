/** One side of a session, as its messages are taken. */
import t from 'tap'
import { TokenBucket } from '../../src/lib/token-bucket.ts'
import { Channel } from '../../src/realtime/channel.ts'
import { End, settle } from './kit.ts'

t.test('of large messages that wait, few are taken in one turn of the event loop', async t => {
  const taken: number[] = []
  let turn = 0
  let ticking = setImmediate(function tick() {
    turn++
    ticking = setImmediate(tick)
  })
  const take = (text: string | undefined) => {
    if (text !== undefined && text !== '"first"') taken.push(turn)
    return text === '"first"' ? new Promise<void>(resolve => setImmediate(resolve)) : undefined
  }
  const nothing = () => undefined
  const events = {
    take,
    failed: (cause: unknown) => t.fail(String(cause)),
    closed: nothing,
    stalled: nothing,
    flooded: nothing,
  }
  const ends = [new End(), new End()] as const
  const [client, provider] = ends.map(end => new Channel(end, events, new TokenBucket(1e9, 1e9))) as [Channel, Channel]
  client.open(provider)
  provider.open(client)
  const [end] = ends
  end.message('"first"')
  for (let count = 0; count < 20; count++) end.message(`"${'a'.repeat(128 * 1024)}"`)
  await settle()
  clearImmediate(ticking)
  t.equal(taken.length, 20)
  t.ok(new Set(taken).size >= 10, `${new Set(taken).size} turns`)
})

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
  end.come(2000)
  t.ok(end.paused)
  end.message('"a"')
  t.ok(end.paused, 'also when its messages have been taken')
  while (end.paused) await new Promise(resolve => setTimeout(resolve, 1))
  end.come(5000)
  t.ok(end.paused)
  client.stop()
  t.notOk(end.paused, 'what comes of a side that has ended is dropped')
})
