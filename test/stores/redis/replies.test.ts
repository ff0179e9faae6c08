/** Cached replies and kept turns in Redis: the contract of the port, bounds, and two nodes. */
import t, { type Test } from 'tap'
import type { CachedReply } from '../../../src/core/ports.ts'
import { MemoryCache } from '../../../src/stores/memory/cache.ts'
import { readRedisAddress } from '../../../src/stores/redis/address.ts'
import { redisClient } from '../../../src/stores/redis/client.ts'
import { RedisLink } from '../../../src/stores/redis/link.ts'
import { RedisReplies } from '../../../src/stores/redis/replies.ts'
import { needsRedis, type RedisServer, redisFor } from '../../helpers/redis.ts'
import { replyCacheContract } from '../contract-memory.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} }

async function linkTo(t: Test, server: RedisServer): Promise<RedisLink> {
  const link = new RedisLink(redisClient(readRedisAddress(server.address)), { log: silent })
  t.teardown(() => link.close())
  await link.start()
  return link
}

const reply = (logId: string): CachedReply => ({
  events: [{ type: 'text', choice: 0, text: 'hello' }],
  ...{ provider: 'acme', model: 'large', externalId: 'large-1', requestedModel: 'large', requestedProvider: null },
  ...{ logId, at: 0 },
})

t.test('redis cache', needsRedis, async t => {
  const link = await linkTo(t, await redisFor(t))
  let made = 0
  replyCacheContract(t, (clock, limits = {}) => {
    // Subjects do not meet.
    const tenant = `org${made++}`
    const own = new MemoryCache({ ...limits, now: () => clock.now })
    const options = { perOrganization: limits.maxBytes ?? 1e6, ...limits, now: () => clock.now }
    const replies = new RedisReplies(link, own, options)
    return {
      get: key => replies.get(key, tenant),
      set: (key, reply, bytes, ttlMs) => replies.set(key, reply, bytes, ttlMs, tenant),
    }
  })
})

t.test('what one node keeps, another one finds, within the bytes of the organization', needsRedis, async t => {
  const server = await redisFor(t)
  const [one, other, third] = await Promise.all(
    [1, 2, 3].map(async () => {
      const link = await linkTo(t, server)
      return { link, replies: new RedisReplies(link, new MemoryCache(), { perOrganization: 1000 }) }
    }),
  )
  one!.replies.set('a', reply('first'), 400, 60_000, 'org')
  await one!.link.ping()
  t.same(await other!.replies.get('a', 'org'), reply('first'))
  t.equal(await third!.replies.get('a', 'another'), undefined, 'organizations do not share entries')
  t.same([...(await other!.replies.find(['none', 'a'], 'org')).keys()], ['a'])
  for (const key of ['b', 'c']) one!.replies.set(key, reply(key), 400, 60_000 + key.charCodeAt(0), 'org')
  one!.replies.set('theirs', reply('theirs'), 400, 60_000, 'another')
  await one!.link.ping()
  t.same(
    [...(await third!.replies.find(['a', 'b', 'c'], 'org')).keys()],
    ['b', 'c'],
    'the one that ends first made room',
  )
  t.ok(await third!.replies.get('theirs', 'another'), 'others lose nothing')
  const names = await other!.link.call(async client => client.keys('*'))
  for (const name of names) {
    t.ok((await other!.link.call(client => client.pttl(name))) > 0, `${name} ends by itself`)
  }
})

t.test('without Redis each node has its own entries', needsRedis, async t => {
  const server = await redisFor(t)
  const link = await linkTo(t, server)
  const replies = new RedisReplies(link, new MemoryCache(), { perOrganization: 1000 })
  await server.kill()
  replies.set('a', reply('own'), 100, 60_000, 'org')
  t.same(await replies.get('a', 'org'), reply('own'))
  t.equal(await replies.get('b', 'org'), undefined)
  t.equal((await replies.find(['a', 'b'], 'org')).size, 1)
})
