/** Two gateways on one PostgreSQL: they cannot spend one credit twice, see each other's changes, and outlive each other. */
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { Keyring } from '../../src/stores/keyring.ts'
import { commandsOf } from '../helpers/commands.ts'
import { FILM, filmStudio } from '../helpers/film-studio.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { gatewayctl } from '../helpers/gatewayctl.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { pause } from '../helpers/pause.ts'
import { postgresServer, withoutPostgres } from '../helpers/postgres.ts'
import { runs } from '../helpers/runs.ts'
import { startUpstream } from '../helpers/upstream.ts'

const content = 'What does this cost?'
const usage = { prompt: Math.ceil(content.length / 4), completion: 10 }
const request = { model: 'test', max_tokens: usage.completion, messages: [{ role: 'user', content }] }
const PRICE = 0.000025
const model = (id: string, output: string) => ({
  id,
  name: id,
  family: 'test',
  input: ['text'],
  output: [output],
  stability: 'stable',
})
const models = [model('test', 'text'), model('film', 'video')]

/** Requests at once, of which ten have money. */
const AT_ONCE = runs(200, 4)

t.test('two gateways on one PostgreSQL', { skip: withoutPostgres }, async t => {
  const upstream = await startUpstream(t)
  const postgres = await (await postgresServer()).database()
  const endpoints = { chat: { ratelimit: { rpm: 100_000 }, admission: { in_flight: 10_000, lag: '60s' } } }
  const studio = await filmStudio(t)
  const hook = await listener(t)
  const films = [{ model: 'film', id: 'film-1', pricing: { per_second: { default: '0.025' } } }]
  const providers = {
    a: { base_url: upstream.url('a'), models: [testMapping] },
    films: { base_url: studio.url, wires: { videos: 'openai.videos' }, models: films },
  }
  // What one node seals, the other opens.
  const env = { GATEWAY_MASTER_KEY: randomBytes(32).toString('base64url') }
  const jobs = { poll: '20ms', poll_max: '40ms', lease: '1s', callback_to: [hook.url] }
  const options = { providers, models, config: { endpoints, jobs, stores: { postgres } }, env }
  // Both at once: one of them migrates.
  const gateways = await Promise.all([startGateway(t, options), startGateway(t, options)])
  const [one, two] = gateways as [(typeof gateways)[0], (typeof gateways)[0]]
  const command = commandsOf(one)
  let made = 0
  const tenant = async (credits: string, key: object = {}, ofProject: object = {}) => {
    const name = `tenant-${++made}`
    const { id: org } = await command<{ id: string }>('orgs.create', { name })
    await command('credits.add', { organization: org, amount: credits })
    const { id: project } = await command<{ id: string }>('projects.create', {
      organization: org,
      name: 'web',
      ...ofProject,
    })
    const { id, key: secret } = await command<{ id: string; key: string }>('keys.create', { project, ...key })
    return { org, project, id, as: { authorization: `Bearer ${secret}` } }
  }
  const statusOf = async (gateway: (typeof gateways)[0], as: Record<string, string>) => {
    const response = await gateway.chat({ ...request }, as)
    await response.text()
    return response.status
  }

  await t.test('a node makes no master key that the others lack', async t => {
    await t.rejects(command('provider-keys.reencrypt', { newKey: true }), /1 other nodes would lack the key/)
  })

  for (const [says, credits, key, ofProject] of [
    ['credit', (PRICE * 10).toFixed(9), {}],
    ['a limit', '1', { limit: (PRICE * 10).toFixed(9) }],
    ['a daily limit', '1', { limit: (PRICE * 10).toFixed(9), limitPeriod: 'day' }],
    ['a daily limit of the project', '1', {}, { limit: (PRICE * 10).toFixed(9), limitPeriod: 'day' }],
  ] as const) {
    await t.test(`dozens of requests on ${says} for ten are ten`, async t => {
      await upstream.reset()
      await upstream.script('a', [{ hold: 0, usage }])
      const { as, org } = await tenant(credits, key, ofProject)
      const asked = Array.from({ length: AT_ONCE }, (_, i) => statusOf(gateways[i % 2]!, as))
      await upstream.record('a', { requests: 10 })
      await upstream.release('a')
      const statuses = await Promise.all(asked)
      t.equal(statuses.filter(status => status === 200).length, 10)
      t.equal(statuses.filter(status => status === 402).length, AT_ONCE - 10)
      t.match(await command('credits.show', { organization: org }), { held: '0', used: '0.00025' })
      t.strictSame(await command('usage.check'), { differences: [] })
    })
  }

  await t.test('what changes at one gateway comes to the other', async t => {
    await upstream.reset()
    const { as, id } = await tenant('1')
    for (const gateway of gateways) t.equal(await statusOf(gateway, as), 200)
    for (const [change, status] of [
      [{ id, limit: '0' }, 402],
      [{ id, limit: 'none' }, 200],
    ] as const) {
      await command('keys.update', change)
      t.equal(await statusOf(one, as), status)
      while ((await statusOf(two, as)) !== status) await pause()
    }
    await command('keys.revoke', { id })
    while ((await statusOf(two, as)) !== 401) await pause()
    for (const gateway of gateways) t.equal(await statusOf(gateway, as), 401)
  })

  await t.test('every page opens at both gateways', async t => {
    const { as, id, org } = await tenant('1')
    t.equal(await statusOf(one, { ...as, 'x-gateway-tags': 'team=red' }), 200)
    const rows = async () => (await command<{ rows: { id: string }[] }>('requests.list', { key: id })).rows
    let [row] = await rows()
    while (!row) [row] = await rows()
    const pages: readonly (readonly [path: string, text: string])[] = [
      ['/ui', 'Providers now'],
      ['/ui/spend?period=90d', 'Figures of the chart'],
      ['/ui/spend?by=api_key&period=24h&measure=requests', 'Sums by key'],
      ['/ui/spend?by=tag&tag=team', 'team%3Dred'],
      ['/ui/spend?by=end_user&period=24h', 'Sums by end user'],
      ['/ui/spend?by=member', 'Sums by member'],
      [`/ui/requests?key=${id}&status=200`, row.id],
      [`/ui/requests/${row.id}`, 'a from '],
      ['/ui/models', 'test'],
      ['/ui/routes?model=test', 'would be tried first'],
      ['/ui/keys', id],
      [`/ui/organizations/${org}`, 'Payments and refunds'],
      ['/ui/organizations', 'Balance'],
      ['/ui/jobs', 'Newest videos'],
      ['/ui/config', 'In effect'],
      [`/ui/confirm?action=keys.revoke&id=${id}`, 'gatewayctl keys revoke'],
    ]
    for (const { adminUrl, token } of gateways) {
      const body = new URLSearchParams({ token })
      const signedIn = await fetch(`${adminUrl}/ui/sign-in`, { method: 'POST', redirect: 'manual', body })
      const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
      for (const [path, text] of pages) {
        const answer = await fetch(adminUrl + path, { headers: { cookie }, redirect: 'manual' })
        t.equal(answer.status, 200, path)
        t.ok((await answer.text()).includes(text), `${path} shows ${text}`)
      }
    }
  })

  await t.test('a gateway with another master key does not start, and says what to do', async t => {
    const key = randomBytes(32).toString('base64url')
    const { version } = new Keyring({ given: env.GATEWAY_MASTER_KEY, file: '' })
    const start = (given: Record<string, string>) => startGateway(t, { ...options, env: given })
    const refused = await start({ GATEWAY_MASTER_KEY: key }).then(
      () => '',
      (error: Error) => error.message,
    )
    for (const text of [
      `under the master key ${version}`,
      'Set GATEWAY_MASTER_KEY',
      `GATEWAY_LOST_MASTER_KEY=${version}`,
    ])
      t.ok(refused.includes(text), text)
    t.notOk(refused.includes(key), 'the key is not shown')
    await (await start({ GATEWAY_MASTER_KEY: `${key},${env.GATEWAY_MASTER_KEY}` })).kill()
  })

  await t.test('every gateway lists all of them, and says at once that one drains', async t => {
    interface Node {
      readonly address: string
      readonly state: string
      readonly inFlight: number
    }
    const nodes = async (): Promise<Map<string, Node>> =>
      new Map((await command<Node[]>('nodes.list')).map(node => [node.address, node]))
    const [first, second] = [new URL(one.url).host, new URL(two.url).host]
    const live = await nodes()
    t.match(live.get(first), { state: 'live', version: String, host: String, seen: /^20.*Z$/, pid: one.pid })
    t.match(live.get(second), { state: 'live', pid: two.pid })
    const status = await command<{ nodes: Node[]; pools: object[] }>('status')
    t.same(status.nodes.map(({ address }) => address).sort(), [first, second].sort())
    t.match(status.pools, [
      { name: 'ledger', most: 2 },
      { name: 'others', most: 4 },
    ])
    await upstream.reset()
    await upstream.script('a', [{ hold: 0, usage }])
    const { as } = await tenant('1')
    const answer = statusOf(two, as)
    await upstream.record('a', { requests: 1 })
    await two.admin('POST', '/drain')
    while ((await nodes()).get(second)?.state !== 'draining') await pause()
    t.equal((await nodes()).get(second)?.inFlight, 1)
    await upstream.release('a')
    t.equal(await answer, 200)
    await two.exited
    t.equal((await nodes()).get(second), undefined, 'one that has left is not listed')
    await two.restart()
  })

  await t.test('the connections of workers count with those of their primary', async t => {
    interface Pool {
      readonly name: string
      readonly most: number
    }
    const server = { workers: 2 }
    const many = await startGateway(t, { ...options, config: { ...options.config, server } })
    const { pools, workers } = await commandsOf(many)<{ pools: Pool[]; workers: { pools: Pool[] }[] }>('status')
    t.match(pools, [
      { name: 'ledger', most: 6 },
      { name: 'others', most: 12 },
    ])
    for (const worker of workers) t.match(worker.pools, [{ most: 2 }, { most: 4 }])
    const { out } = await gatewayctl(many.dir, 'status')
    t.match(out, /ledger pool\s+\d of 6 in use, 0 waiting/)
    await many.kill()
  })

  await t.test('a gateway that is killed takes nothing of the other with it', async t => {
    await upstream.reset()
    const { as, org } = await tenant('1')
    t.equal(await statusOf(two, as), 200)
    await two.kill('SIGKILL')
    t.equal(await statusOf(one, as), 200)
    t.match(await command('credits.show', { organization: org }), { held: '0' })
    await two.restart()
    t.equal(await statusOf(two, as), 200)
    t.strictSame(await command('usage.check'), { differences: [] })
  })

  await t.test(
    'a video that one gateway begins is finished, announced and read at the other after the first is dead',
    async t => {
      Object.assign(studio, { script: ['queued', 'in_progress'] })
      const { as, org } = await tenant('1')
      const wanted = { model: 'film', prompt: 'a cat', callback_url: hook.url, callback_secret: 's' }
      const made = await Promise.all(Array.from({ length: 6 }, () => two.post('/v1/videos', wanted, as)))
      t.same(
        made.map(({ status }) => status),
        Array.from(made, () => 200),
      )
      const ids = (await Promise.all(made.map(async one => ((await one.json()) as { id: string }).id))).sort()
      await studio.until(() => studio.polls.size === ids.length)
      await two.kill('SIGKILL')
      studio.script = ['completed']
      while (new Set(hook.told).size < ids.length) await hook.next()
      for (const id of ids) {
        t.match(await (await one.get(`/v1/videos/${id}`, as)).json(), { status: 'completed' })
        t.equal((await (await one.get(`/v1/videos/${id}/content`, as)).arrayBuffer()).byteLength, FILM.length)
      }
      t.match(await command('credits.show', { organization: org }), { held: '0', used: '0.6' })
      t.match(await command('jobs.status'), { running: {}, callbacks: 0 })
      await two.restart()
      const { data } = (await (await two.get('/v1/videos', as)).json()) as { data: { id: string }[] }
      t.same(data.map(({ id }) => id).sort(), ids)
      t.same([...hook.told].sort(), ids, 'each was told once')
      t.equal(studio.overlap, 1, 'no job was polled by both at one time')
      t.strictSame(await command('usage.check'), { differences: [] })
    },
  )

  for (const gateway of gateways) await checkInvariants(t, gateway, upstream)
})

/** Hears callbacks. */
async function listener(t: Test) {
  const told: string[] = []
  let heard = () => {}
  const server = createServer(async (req, res) => {
    const { data } = JSON.parse(await text(req)) as { data: { id: string } }
    told.push(data.id)
    res.end()
    heard()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, told, next: () => new Promise<void>(resolve => (heard = resolve)) }
}
