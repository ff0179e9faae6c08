/** Two gateways with workers that share a Redis; and what they do while it is away. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { makeAuthority } from '../helpers/certificates.ts'
import { commandsOf } from '../helpers/commands.ts'
import { type Gateway, startGateway, testMapping } from '../helpers/gateway.ts'
import { pause } from '../helpers/pause.ts'
import { freePort } from '../helpers/postgres.ts'
import { needsRedis, proxyFor, redisFor } from '../helpers/redis.ts'
import { startUpstream } from '../helpers/upstream.ts'

t.test('gateways that share a Redis', { ...needsRedis, timeout: 120_000 }, async t => {
  const upstream = await startUpstream(t)
  const server = await redisFor(t)
  const proxy = await proxyFor(t, server)
  const providers = { a: { base_url: upstream.url('a'), models: [testMapping] } }
  const endpoints = { chat: { ratelimit: { rpm: 30 } } }
  // One configuration: its version is part of the keys of the cache.
  const folder = mkdtempSync(join(tmpdir(), 'shared-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const stores = { sqlite: join(folder, 'gateway.db'), redis: proxy.address }
  const config = { server: { workers: 2 }, endpoints, stores }
  const one = await startGateway(t, { providers, config })
  const two = await startGateway(t, { providers, config })
  const command = commandsOf(one)
  let made = 0
  const tenant = async (project: object = {}) => {
    const name = `tenant-${++made}`
    const { id: organization } = await command<{ id: string }>('orgs.create', { name })
    await command('credits.add', { organization, amount: '10' })
    const { id } = await command<{ id: string }>('projects.create', { organization, name: 'web', ...project })
    const { key } = await command<{ key: string }>('keys.create', { project: id })
    return { authorization: `Bearer ${key}` }
  }
  const ask = async (gateway: Gateway, as: Record<string, string>, content = 'Hello') => {
    const response = await gateway.chat({ model: 'test', messages: [{ role: 'user', content }] }, as)
    await response.text()
    return response
  }
  const admitted = async (as: Record<string, string>, count: number) => {
    let admitted = 0
    for (let at = 0; at < count; at++) if ((await ask(at % 3 === 0 ? one : two, as)).status === 200) admitted++
    return admitted
  }
  const health = async (gateway: Gateway) => {
    const response = await fetch(gateway.url)
    const { health } = (await response.json()) as { health: { status: string; redis: object } }
    return [response.status, health.status, health.redis]
  }
  const readiness = async (gateway: Gateway) => {
    const response = await gateway.admin('GET', '/ready')
    return [response.status, await response.json()]
  }
  const status = () => command<{ redis: { connected: boolean; nodes: number } }>('status', {})

  /** Asks until the answer is this one: on a busy machine Redis may be late at first. */
  const settles = async (read: () => Promise<unknown>, wanted: unknown) => {
    while (!isDeepStrictEqual(await read(), wanted)) await pause()
    t.pass('Redis is connected')
  }
  await settles(() => health(one), [200, 'ok', { connected: true }])
  await settles(() => health(two), [200, 'ok', { connected: true }])
  await settles(() => readiness(two), [200, { status: 'ready', redis: { connected: true } }])
  await settles(async () => (await status()).redis.connected, true)

  await t.test('count the requests of an organization together', async t => {
    const count = await admitted(await tenant(), 45)
    // On a busy machine Redis may be late, and nodes decide by themselves then.
    t.ok(count >= 30 && count < 40, `${count} of 30`)
  })

  await t.test('answer from one cache', async t => {
    const source = async (gateway: Gateway, as: Record<string, string>, content?: string) =>
      (await ask(gateway, as, content)).headers.get('x-gateway-cache')
    // An answer is kept after it was sent, and a late Redis keeps nothing: another tenant asks then.
    const sources = async () => {
      const as = await tenant({ cacheTtl: '1h' })
      return [await source(one, as), await source(two, as), await source(two, as, 'Other')]
    }
    let found = await sources()
    while (found[1] !== 'HIT') found = await sources()
    t.strictSame(found, ['MISS', 'HIT', 'MISS'])
  })

  await t.test('serve on while Redis is away, and share again when it is back', async t => {
    await proxy.refuse()
    const as = await tenant()
    t.equal((await ask(one, as)).status, 200)
    t.equal((await ask(two, as)).status, 200)
    t.match(await health(one), [503, 'unhealthy', { connected: false, error: 'unavailable' }])
    t.equal((await fetch(`${one.url}/?skip=redis`)).status, 200)
    t.strictSame(await readiness(one), [200, { status: 'ready', redis: { connected: false, error: 'unavailable' } }])
    t.match(await status(), { ready: true, redis: { connected: false } })
    // The reason is that of the last try.
    while (!JSON.stringify(await status()).includes('ECONNREFUSED')) await pause()
    t.match(await one.metrics(), /^gateway_redis_up 0$/m)
    await proxy.listen()
    while ((await health(one))[0] !== 200 || (await health(two))[0] !== 200) await pause()
    // Each worker finds its own way back.
    while (!/^gateway_redis_up 1$/m.test(await one.metrics())) await pause()
    t.match(await one.metrics(), /^gateway_redis_seconds_count\{outcome="error"\} [1-9]/m)
  })
})

t.test('members of a cluster whose certificates have names are reached over TLS', needsRedis, async t => {
  const authority = makeAuthority(t)
  const folder = mkdtempSync(join(tmpdir(), 'cluster-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const [keyFile, certFile] = [join(folder, 'key'), join(folder, 'cert')]
  const { key, cert } = authority.certificate('own', 'DNS:localhost', 2)
  writeFileSync(keyFile, key)
  writeFileSync(certFile, cert)
  const [port, bus] = [await freePort(), await freePort()]
  const server = await redisFor(t, [
    ...['--tls-port', `${port}`, '--tls-key-file', keyFile, '--tls-cert-file', certFile],
    ...['--tls-ca-cert-file', authority.path, '--tls-auth-clients', 'no', '--tls-cluster', 'yes'],
    ...['--cluster-enabled', 'yes', '--cluster-port', `${bus}`, '--cluster-announce-hostname', 'localhost'],
    ...['--cluster-preferred-endpoint-type', 'hostname'],
  ])
  await server.run('CLUSTER ADDSLOTSRANGE 0 16383')
  const gateway = await startGateway(t, {
    providers: { a: { base_url: 'http://127.0.0.1:9', models: [testMapping] } },
    config: { stores: { redis: `rediss+cluster://localhost:${port}` } },
    env: { NODE_EXTRA_CA_CERTS: authority.path },
  })
  while (!/^gateway_redis_up 1$/m.test(await gateway.metrics())) await pause()
})
