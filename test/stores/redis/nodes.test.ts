/** What routing remembers, on several nodes at once: circuits, affinity, measurements, signals. */
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { createServer } from 'node:tls'
import t, { type Test } from 'tap'
import type { Log } from '../../../src/core/ports.ts'
import { MemoryCache } from '../../../src/stores/memory/cache.ts'
import { openRedis } from '../../../src/stores/open.ts'
import { readRedisAddress } from '../../../src/stores/redis/address.ts'
import { redisClient } from '../../../src/stores/redis/client.ts'
import { freePort } from '../../helpers/postgres.ts'
import { needsRedis, proxyFor, type RedisServer, redisFor } from '../../helpers/redis.ts'

const MOST_MS = 20_000
const log: Log = { debug() {}, info() {}, warn() {}, error() {} }
const policy = { failures: 5, baseMs: 30_000, maxMs: 300_000, jitter: 0 }
const history = {
  ...{ minutes: 60, newest: 1, recent: 5, newestWeight: 1, recentWeight: 1, restWeight: 1 },
  ...{ usualLatency: 1000, usualThroughput: 50 },
}

async function nodeOf(
  t: Test,
  { address }: Pick<RedisServer, 'address'>,
  serves = true,
  debug = log.debug,
  warn = log.warn,
) {
  const options = {
    log: { ...log, debug, warn },
    serves,
    living: async () => 1,
    replies: new MemoryCache(),
    repliesPerOrganization: 1e6,
  }
  const node = await openRedis(address, options)
  t.teardown(() => node.close())
  return node
}

/** Resolves when it is true, which messages between nodes make it; rejects when it does not become true. */
async function until(isTrue: () => boolean): Promise<void> {
  const start = performance.now()
  while (!isTrue()) {
    if (performance.now() - start > MOST_MS) throw new Error(`not true within ${MOST_MS} ms: ${isTrue}`)
    await turn()
  }
}

t.test('a circuit that one node opens is open on all, and on one that starts later', needsRedis, async t => {
  const server = await redisFor(t)
  const [a, b] = [await nodeOf(t, server), await nodeOf(t, server)]
  t.equal(a.circuits.trip('acme/large', policy, 'org'), 'organization')
  await until(() => b.circuits.state('acme/large', 'org') === 'open')
  t.equal(b.circuits.state('acme/large', 'another'), 'closed')
  const late = await nodeOf(t, server)
  await until(() => late.circuits.state('acme/large', 'org') === 'open')
  const left = late.circuits.openMs('acme/large', 'org')
  t.ok(left > 0 && left <= 30_000, `${left}`)
})

t.test('a session stays with its provider on every node, and on one that starts later', needsRedis, async t => {
  const server = await redisFor(t)
  const [a, b] = [await nodeOf(t, server), await nodeOf(t, server)]
  a.affinity.set('session', 'acme/large', 60_000, 'org')
  await until(() => b.affinity.get('session') === 'acme/large')
  b.affinity.set('session', 'other/large', 60_000, 'org')
  await until(() => a.affinity.get('session') === 'other/large')
  const late = await nodeOf(t, server)
  await until(() => late.affinity.get('session') === 'other/large')
})

t.test('a node that starts loads all facts, in pieces, and loads none after a slow answer', needsRedis, async t => {
  const server = await redisFor(t)
  const proxy = await proxyFor(t, server)
  const client = redisClient(readRedisAddress(server.address))
  t.teardown(() => client.disconnect())
  await client.connect()
  const loads = async () => {
    const stats = await client.info('commandstats')
    return Number(/^cmdstat_z(?:rev)?rangebyscore:calls=(\d+)/m.exec(stats)?.[1] ?? 0)
  }
  const [a, b] = [await nodeOf(t, server), await nodeOf(t, server)]
  const sessions = Array.from({ length: 1100 }, (_, at) => `session ${at}`)
  for (const session of sessions) a.affinity.set(session, 'acme/large', 600_000, 'org')
  await until(() => sessions.every(session => b.affinity.get(session) !== undefined))
  const before = await loads()
  const late = await nodeOf(t, proxy)
  t.ok(sessions.every(session => late.affinity.get(session) === 'acme/large'))
  const after = await loads()
  t.ok(after - before >= 6, `${after - before}`)
  proxy.hang()
  await late.counters.take('org chat', 5, 60_000)
  proxy.resume()
  await until(() => late.up)
  await late.ping()
  t.equal(await loads(), after)
})

t.test('samples of one node count on the others, once', needsRedis, async t => {
  const server = await redisFor(t)
  const [a, b] = [await nodeOf(t, server), await nodeOf(t, server)]
  for (let i = 0; i < 4; i++) a.measurements.add('acme/large', { ok: i > 0, firstTokenMs: 200 }, 'org')
  await until(() => b.measurements.read('acme/large', history, 'org')?.requests === 4)
  t.match(b.measurements.read('acme/large', history, 'org'), { uptime: 75, latency: 200 })
  t.equal(a.measurements.read('acme/large', history, 'org')!.requests, 4)
})

t.test(
  'nodes hear at once that keys or policies have changed, and the one that says so does not',
  needsRedis,
  async t => {
    const server = await redisFor(t)
    const [a, b] = [await nodeOf(t, server), await nodeOf(t, server)]
    a.onChanged(() => t.fail('it knows already'))
    const heard = new Promise<void>(resolve => b.onChanged(resolve))
    a.changed()
    await heard
  },
)

t.test('installations with a database number each hear nothing of one another', needsRedis, async t => {
  const { address } = await proxyFor(t, await redisFor(t))
  const [a, b, other] = await Promise.all(['/1', '/1', '/2'].map(number => nodeOf(t, { address: address + number })))
  other!.onChanged(() => t.fail('nothing of its own has changed'))
  const heard = new Promise<void>(resolve => b!.onChanged(resolve))
  a!.circuits.trip('acme/large', policy, null)
  a!.changed()
  await heard
  // Redis sends messages in order, so that those before this answer have arrived.
  await other!.ping()
  await until(() => b!.circuits.state('acme/large', null) === 'open')
  t.equal(other!.circuits.state('acme/large', null), 'closed')
})

t.test('the log says that a user may not use the channels, which a server would not show', needsRedis, async t => {
  const server = await redisFor(t)
  const admin = redisClient(readRedisAddress(server.address))
  t.teardown(() => admin.disconnect())
  await admin.connect()
  await admin.acl('SETUSER', 'mute', 'on', '>secret', '~gw:*', 'resetchannels', '+@all')
  const said: unknown[] = []
  const address = server.address.replace('unix://', 'unix://mute:secret@')
  const node = await nodeOf(t, { address }, true, undefined, (_, message) => said.push(message))
  t.ok(node.up)
  t.strictSame(said, ['redis message dropped'])
})

t.test('a database that Redis does not have is not taken for database 0', needsRedis, async t => {
  const server = await redisFor(t)
  const { address } = await proxyFor(t, server)
  t.ok((await nodeOf(t, { address: `${address}/15` })).up)
  const node = await nodeOf(t, { address: `${address}/16` })
  t.notOk(node.up)
  await t.rejects(node.ping(), /out of range/)
})

t.test('a subscription that Redis answers too late ends no process, and is made again', needsRedis, async t => {
  const server = await redisFor(t)
  const proxy = await proxyFor(t, server)
  const said: string[] = []
  const a = await nodeOf(t, proxy, true, fields => said.push(`${(fields as { err?: Error }).err?.message}`))
  const b = await nodeOf(t, server)
  const reconnects = async (lost: RegExp | undefined) => {
    proxy.lose(lost)
    await proxy.refuse()
    await proxy.listen()
  }
  await reconnects(/subscribe/)
  await until(() => said.includes('Command timed out'))
  const heard = new Promise<void>(resolve => a.onChanged(resolve))
  await reconnects(undefined)
  const again = setInterval(() => b.changed(), 50)
  await heard
  clearInterval(again)
})

t.test('nodes that serve are counted, and one that ends is not', needsRedis, async t => {
  const server = await redisFor(t)
  const leader = await nodeOf(t, server, false)
  const a = await nodeOf(t, server)
  const b = await nodeOf(t, server)
  await until(() => b.nodes === 2)
  t.ok(leader.nodes <= 2)
  await a.close()
  const c = await nodeOf(t, server)
  await until(() => c.nodes === 2)
})

t.test('a wrong address keeps a node from starting, an unreachable one does not', needsRedis, async t => {
  await t.rejects(nodeOf(t, { address: 'http://cache' }), { name: 'StoreError' })
  const server = await redisFor(t)
  const proxy = await proxyFor(t, server)
  await proxy.refuse()
  const node = await nodeOf(t, proxy)
  t.notOk(node.up)
  await t.rejects(node.ping())
  t.match(node.counters.take('org chat', 5, 60_000), { allowed: true })
  node.affinity.set('session', 'acme/large', 60_000, 'org')
  t.equal(node.affinity.get('session'), 'acme/large')
  await proxy.listen()
  const late = await nodeOf(t, server)
  // It comes back by itself, with what others have told meanwhile.
  late.circuits.trip('acme/large', policy, null)
  await until(() => node.up)
  await until(() => node.circuits.state('acme/large', null) === 'open')
})

t.test('a node starts while no Sentinel answers', async t => {
  const node = await nodeOf(t, { address: 'redis+sentinel://127.0.0.1:1/main' })
  t.notOk(node.up)
  t.match(node.counters.take('org chat', 5, 60_000), { allowed: true })
})

t.test('a node starts while a cluster is down, and shares once it is up', needsRedis, async t => {
  const [port, bus] = [await freePort(), await freePort()]
  const own = ['--cluster-enabled', 'yes', '--cluster-port', `${bus}`, '--cluster-announce-ip', '127.0.0.1']
  const server = await redisFor(t, ['--port', `${port}`, ...own])
  const address = `redis+cluster://127.0.0.1:${port}`
  const [a, b] = [await nodeOf(t, { address }), await nodeOf(t, { address })]
  t.notOk(a.up)
  await server.run('CLUSTER ADDSLOTSRANGE 0 16383')
  await until(() => a.up && b.up)
  const heard = new Promise<void>(resolve => b.onChanged(resolve))
  const again = setInterval(() => a.changed(), 50)
  await heard
  clearInterval(again)
  t.match(await a.counters.take('org chat', 1, 60_000), { allowed: true })
  t.match(await b.counters.take('org chat', 1, 60_000), { allowed: false })
})

t.test('a node names the reason of a member of a cluster', needsRedis, async t => {
  const port = await freePort()
  await redisFor(t, ['--port', `${port}`, '--requirepass', 'right'])
  const node = await nodeOf(t, { address: `redis+cluster://:wrong@127.0.0.1:${port}` })
  await t.rejects(node.ping(), /WRONGPASS/)
})

t.test('a server gets the name by which it is asked for over TLS', async t => {
  let server = createServer()
  const asked = new Promise<string>(resolve => {
    server = createServer({
      SNICallback(name, end) {
        resolve(name)
        end(new Error('it has no certificate'))
      },
    })
  })
  server.on('tlsClientError', () => undefined)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const client = redisClient(readRedisAddress(`rediss://localhost:${(server.address() as AddressInfo).port}`))
  client.on('error', () => undefined)
  t.teardown(() => client.disconnect())
  client.connect().catch(() => undefined)
  t.equal(await asked, 'localhost')
})
