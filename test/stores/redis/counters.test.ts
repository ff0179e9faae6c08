/** Counters of Redis: the contracts of the port, several nodes, and what happens while Redis is away. */
import { type AddressInfo, createServer } from 'node:net'
import t, { type Test } from 'tap'
import { readRedisAddress } from '../../../src/stores/redis/address.ts'
import { redisClient } from '../../../src/stores/redis/client.ts'
import { RedisCounters } from '../../../src/stores/redis/counters.ts'
import { RedisLink } from '../../../src/stores/redis/link.ts'
import { Presence } from '../../../src/stores/redis/presence.ts'
import { needsRedis, proxyFor, redisFor } from '../../helpers/redis.ts'
import { countersContract, placesContract, reservationsContract } from '../contract-memory.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** A node; its probes run when the test says so. */
async function nodeAt(t: Test, address: string, name: string, serverNow?: () => number, inStores = 1) {
  const clock = { ms: 1_000_000 }
  const log: string[] = []
  /** Commands that Redis did not answer in time, on a busy machine: after these a node decides alone. */
  const late = { count: 0 }
  const link = new RedisLink(redisClient(readRedisAddress(address)), {
    log: { ...silent, warn: (_, message) => log.push(message), info: (_, message) => log.push(message) },
    later: () => () => undefined,
    observe: outcome => {
      if (outcome !== 'ok') late.count++
    },
  })
  const presence = new Presence(link, name, true, async () => inStores)
  const counters = new RedisCounters(link, presence, { now: () => clock.ms, serverNow })
  t.teardown(() => link.close())
  await link.start()
  await presence.beat()
  return { clock, counters, late, link, log, presence }
}

/** Probes until the connection is there again: it comes back by itself. */
async function back(link: RedisLink): Promise<void> {
  for (let probes = 0; !link.up; probes++) {
    if (probes > 100_000) throw new Error('not back')
    await link.probe()
    await new Promise(resolve => setImmediate(resolve))
  }
}

t.test('redis counters', needsRedis, async t => {
  const server = await redisFor(t)
  const flush = redisClient(readRedisAddress(server.address))
  t.teardown(() => flush.disconnect())
  await flush.connect()
  const made = await Promise.all(
    Array.from({ length: 24 }, async (_, at) => {
      const clock = { now: 0 }
      return { clock, node: await nodeAt(t, server.address, `n${at}`, () => clock.now) }
    }),
  )
  // A subject takes a ready node; its keys have a prefix of their own, so that subjects do not meet.
  let used = 0
  const make = (clock: { now: number }) => {
    const at = used++
    const one = made[at]!
    Object.defineProperty(one.clock, 'now', { get: () => clock.now })
    const { counters } = one.node
    const name = (key: string) => `subject${at} ${key}`
    return {
      take: (key: string, limit: number, ms: number) => counters.take(name(key), limit, ms),
      correct: (key: string, ms: number, bucket: number, units: number) =>
        counters.correct(name(key), ms, bucket, units),
      peek: (key: string, limit: number, ms: number) => counters.peek(name(key), limit, ms),
      enter: (key: string, limit: number) => counters.enter(name(key), limit),
      leave: (key: string) => counters.leave(name(key)),
      reserve: (key: string, limit: number, ms: number, units: number) => counters.reserve(name(key), limit, ms, units),
    }
  }
  countersContract(t, make)
  placesContract(t, make)
  reservationsContract(t, make)
})

t.test('three nodes together admit the limit, whichever of them counts', needsRedis, async t => {
  const server = await redisFor(t)
  const nodes = await Promise.all(['a', 'b', 'c'].map(name => nodeAt(t, server.address, name)))
  let keys = 0
  /** What `work` counts on a key of its own, in a run in which Redis has answered in time. */
  const counted = async (work: (key: string) => Promise<number>): Promise<number> => {
    for (;;) {
      for (const { late, link } of nodes) {
        await back(link)
        late.count = 0
      }
      const count = await work(`org ${++keys}`)
      if (nodes.every(({ late, link }) => link.up && late.count === 0)) return count
    }
  }
  const admitted = await counted(async key => {
    let count = 0
    for (let round = 0; round < 25; round++) {
      const asks = Array.from({ length: 30 }, (_, at) => nodes[(at % 7) % 3]!.counters.take(`${key} chat`, 600, 60_000))
      count += (await Promise.all(asks)).filter(({ allowed }) => allowed).length
    }
    return count
  })
  t.ok(Math.abs(admitted - 600) <= 6, `${admitted} of 600`)
  const reserved = await counted(async key => {
    const asks = Array.from({ length: 200 }, (_, at) => nodes[at % 3]!.counters.reserve(`${key} tpm`, 1000, 60_000, 30))
    return (await Promise.all(asks)).filter(({ allowed }) => allowed).length
  })
  t.equal(reserved, 34, 'at most one reservation too much')
  const places = await counted(async key => {
    const asks = Array.from({ length: 30 }, (_, at) => nodes[at % 3]!.counters.enter(`${key} running`, 10))
    return (await Promise.all(asks)).filter(Boolean).length
  })
  t.equal(places, 10)

  const { link } = nodes[0]!
  const wrong: number[] = []
  for (let round = 0; round < 20; round++) {
    const places = await counted(async key => {
      await link.call(client => client.script('FLUSH'))
      const asks = Array.from({ length: 30 }, (_, at) => nodes[(at % 7) % 3]!.counters.enter(`${key} running`, 10))
      return (await Promise.all(asks)).filter(Boolean).length
    })
    if (places !== 10) wrong.push(places)
  }
  t.strictSame(wrong, [], 'although Redis has forgotten the scripts')

  const [one, other] = nodes.map(({ counters }) => counters) as [RedisCounters, RedisCounters, RedisCounters]
  for (let round = 0; round < 20; round++) {
    const places = await counted(async key => {
      const name = `${key} running`
      await one.enter(name, 4)
      for (let at = 0; at < 3; at++) await other.enter(name, 4)
      const asks = Array.from({ length: 20 }, () => one.enter(name, 4))
      other.leave(name)
      return (await Promise.all([...asks, other.enter(name, 4)])).filter(Boolean).length
    })
    if (places !== 1) wrong.push(places)
  }
  t.strictSame(wrong, [], 'a request that is refused takes no place, even for a moment')
})

t.test('the places of a node that has ended are free after a while', needsRedis, async t => {
  const server = await redisFor(t)
  const time = { now: 5_000_000 }
  const [gone, other] = await Promise.all(['a', 'b'].map(name => nodeAt(t, server.address, name, () => time.now)))
  t.ok(await gone!.counters.enter('org running', 1))
  gone!.link.close()
  t.notOk(await other!.counters.enter('org running', 1))
  time.now += 15_001
  t.ok(await other!.counters.enter('org running', 1))
})

t.test('a flushed Redis gets all taken places again, and no request is refused wrongly', needsRedis, async t => {
  const server = await redisFor(t)
  const [a, b] = await Promise.all(['a', 'b'].map(name => nodeAt(t, server.address, name)))
  for (let i = 0; i < 3; i++) t.ok(await a!.counters.enter('org running', 4))
  a!.counters.refresh()
  const flushed = a!.link.call(client => client.flushall())
  // The answer to the command before is still on its way.
  a!.counters.refresh()
  await flushed
  await a!.link.ping()
  t.strictSame([await b!.counters.enter('org running', 4), await b!.counters.enter('org running', 4)], [true, false])
  a!.counters.refresh()
  for (let i = 0; i < 3; i++) a!.counters.leave('org running')
  // What is left is sent once Redis has answered the command before.
  for (let i = 0; i < 2; i++) await a!.link.ping()
  t.ok(await b!.counters.enter('org running', 2), 'no place was counted twice')
})

t.test('Redis that hangs delays one request, then each node takes its share of the limit', needsRedis, async t => {
  const server = await redisFor(t)
  const proxy = await proxyFor(t, server)
  const nodes = await Promise.all(['a', 'b', 'c'].map(name => nodeAt(t, proxy.address, name)))
  for (const { presence } of nodes) await presence.beat()
  const [a] = nodes
  for (let i = 0; i < 50; i++) await a!.counters.take('org chat', 300, 60_000)
  proxy.hang()
  t.match(await a!.counters.take('org chat', 300, 60_000), { allowed: true }, 'the late one is decided here')
  t.notOk(a!.link.up)
  await a!.link.probe()
  await a!.link.probe()
  t.strictSame(a!.log, ['redis unreachable'], 'one line')
  let admitted = 0
  for (let i = 0; i < 200; i++) {
    const quota = a!.counters.take('org chat', 300, 60_000)
    if (quota instanceof Promise) return t.fail('nothing waits any more')
    if (quota.allowed) admitted++
  }
  t.equal(admitted, 49, 'the share of 100 has what this node admitted before in it')
  proxy.resume()
  await back(a!.link)
  t.match(await a!.counters.take('org chat', 300, 60_000), { allowed: true, remaining: 249 }, 'nothing was added')
})

t.test('a place that is given back while Redis is away is free for others once it is back', needsRedis, async t => {
  const server = await redisFor(t)
  const proxy = await proxyFor(t, server)
  const a = await nodeAt(t, proxy.address, 'a')
  const b = await nodeAt(t, server.address, 'b')
  t.ok(await a.counters.enter('org running', 1))
  await proxy.refuse()
  for (let i = 0; i < 3; i++) await a.counters.take('org chat', 10, 60_000)
  t.notOk(a.link.up)
  a.counters.leave('org running')
  t.notOk(await b.counters.enter('org running', 1), 'Redis has not heard of it')
  await proxy.listen()
  await back(a.link)
  await a.link.ping()
  t.ok(await b.counters.enter('org running', 1))
})

t.test(
  'keys of a time without Redis are not sent to it, and what a full Redis refuses is not repeated',
  needsRedis,
  async t => {
    const server = await redisFor(t)
    const proxy = await proxyFor(t, server)
    const a = await nodeAt(t, proxy.address, 'a')
    const sent = async () => {
      const stats = await a.link.call(client => client.info('commandstats'))
      return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(stats)![1])
    }
    t.ok(await a.counters.enter('org running', 5))
    const before = await sent()
    await proxy.refuse()
    for (let i = 0; i < 3; i++) await a.counters.take('org chat', 10, 60_000)
    t.notOk(a.link.up)
    for (let i = 0; i < 1000; i++) {
      t.equal(a.counters.enter(`org running ${i}`, 5), true)
      a.counters.leave(`org running ${i}`)
    }
    a.counters.leave('org running')
    await proxy.listen()
    await back(a.link)
    t.equal((await sent()) - before, 2, 'the probe, and the place that Redis counted')

    const keys = Array.from({ length: 200 }, (_, i) => `other running ${i}`)
    for (const key of keys) t.ok(await a.counters.enter(key, 5))
    const entered = await sent()
    a.counters.refresh()
    t.ok((await sent()) - entered < 10, 'other commands do not wait for a refresh')
    while ((await sent()) - entered < keys.length);
    for (const key of keys) a.counters.leave(key)
    while ((await sent()) - entered < 2 * keys.length);

    await a.link.call(client => client.config('SET', 'maxmemory', '1'))
    a.late.count = 0
    t.ok(await a.counters.enter('org running', 5), 'a full Redis counts none')
    for (let i = 0; i < 100; i++) await a.link.ping()
    t.ok(a.late.count <= 2, `${a.late.count} refused commands`)
  },
)

t.test('Redis that is gone delays no request, and is used again when it is back', needsRedis, async t => {
  const server = await redisFor(t)
  const proxy = await proxyFor(t, server)
  const a = await nodeAt(t, proxy.address, 'a')
  t.ok(await a.counters.enter('org running', 5))
  await proxy.refuse()
  for (let i = 0; i < 4; i++) t.ok((await a.counters.take('org chat', 10, 60_000)).allowed)
  t.notOk(a.link.up)
  t.ok(a.counters.enter('org running', 5), 'places are counted on')
  await server.kill()
  await server.start()
  await proxy.listen()
  await back(a.link)
  await a.link.ping()
  const b = await nodeAt(t, proxy.address, 'b')
  t.strictSame(
    await Promise.all([1, 2, 3, 4].map(() => b.counters.enter('org running', 5))),
    [true, true, true, false],
    'both places of the other node count, once',
  )
})

t.test('a Redis that refuses what nodes write is away, says why, and is not tried by requests', needsRedis, async t => {
  const server = await redisFor(t)
  const admin = redisClient(readRedisAddress(server.address))
  t.teardown(() => admin.disconnect())
  await admin.connect()
  await admin.acl('SETUSER', 'reader', 'on', '>secret', '~gw:*', '&gw:*', '+@all', '-@scripting')
  const asReader = server.address.replace('unix://', 'unix://reader:secret@')
  const isRefused = async (address: string, why: RegExp) => {
    const a = await nodeAt(t, address, 'a', undefined, 3)
    t.strictSame(a.log, ['redis unreachable'])
    await t.rejects(a.link.ping(), why)
    t.match(a.counters.take('org chat', 3, 60_000), { allowed: true, remaining: 0 }, 'its share, at once')
    for (let probes = 0; probes < 3; probes++) await a.link.probe()
    t.strictSame(a.log, ['redis unreachable'], 'one line')
    return a
  }
  await isRefused(asReader, /NOPERM/)
  await admin.config('SET', 'maxmemory', '1')
  const full = await isRefused(server.address, /OOM/)
  await admin.config('SET', 'maxmemory', '0')
  await back(full.link)
  await admin.replicaof('127.0.0.1', '1')
  await isRefused(server.address, /READONLY|no connection/)
})

t.test('a node that starts while Redis is away serves its share, and shares when it is there', needsRedis, async t => {
  const server = await redisFor(t)
  const proxy = await proxyFor(t, server)
  await proxy.refuse()
  const a = await nodeAt(t, proxy.address, 'a')
  t.strictSame(a.log, ['redis unreachable'])
  t.match(await a.counters.take('org chat', 2, 60_000), { allowed: true, remaining: 1 })
  const [b, c] = await Promise.all(['b', 'c'].map(name => nodeAt(t, proxy.address, name, undefined, 3)))
  for (const { counters } of [b!, c!]) {
    const taken = await Promise.all(Array.from({ length: 9 }, () => counters.take('other chat', 9, 60_000)))
    t.equal(taken.filter(({ allowed }) => allowed).length, 3, 'its share, since the stores say who lives')
    t.strictSame(
      [1, 2, 3, 4].map(() => counters.enter('other running', 9)),
      [true, true, true, false],
    )
  }
  await t.rejects(a.link.ping(), /ECONNREFUSED/)
  await proxy.listen()
  await back(a.link)
  t.match(await a.counters.take('org chat', 2, 60_000), { allowed: true, remaining: 1 })
})

t.test('in a cluster, a command whose answer is lost, or a refusal, is not sent again', async t => {
  let sent = 0
  let isDown = false
  const answerOf = (text: string): string | undefined => {
    if (/\r\nslots\r\n/i.test(text)) {
      const shards = ports.map(
        (port, at) => `*3\r\n:${8192 * at}\r\n:${8192 * at + 8191}\r\n*2\r\n$9\r\n127.0.0.1\r\n:${port}\r\n`,
      )
      return `*${shards.length}\r\n${shards.join('')}`
    }
    if (!/\r\nevalsha\r\n/i.test(text)) return /\r\ninfo\r\n/i.test(text) ? '$9\r\nloading:0\r\n' : '+OK\r\n'
    sent++
    return isDown ? '-CLUSTERDOWN Hash slot not served\r\n' : undefined
  }
  const shards = [0, 1].map(() =>
    createServer(socket => {
      socket.on('error', () => undefined)
      socket.on('data', bytes => {
        for (const text of bytes.toString('latin1').split(/(?=\*\d+\r\n)/)) {
          const answer = answerOf(text)
          if (answer === undefined) socket.destroy()
          else socket.write(answer)
        }
      })
    }),
  )
  for (const shard of shards) {
    await new Promise<void>(resolve => shard.listen(0, '127.0.0.1', resolve))
    t.teardown(() => shard.close())
  }
  const ports = shards.map(shard => (shard.address() as AddressInfo).port)
  const client = redisClient(readRedisAddress(`redis+cluster://127.0.0.1:${ports[0]}`))
  t.teardown(() => client.disconnect())
  await client.connect()
  await t.rejects(client.evalsha('0'.repeat(40), 1, 'gw:{org}:w60000:org chat'))
  t.equal(sent, 1)
  isDown = true
  await t.rejects(client.evalsha('0'.repeat(40), 1, 'gw:{org}:w60000:org chat'), /CLUSTERDOWN Hash slot not served$/)
  t.equal(sent, 2)
})
