/** Two gateways on one PostgreSQL: they cannot spend one credit twice, see each other's changes, and outlive each other. */
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { postgresServer, withoutPostgres } from '../helpers/postgres.ts'
import { startUpstream } from '../helpers/upstream.ts'

const content = 'What does this cost?'
const usage = { prompt: Math.ceil(content.length / 4), completion: 10 }
const request = { model: 'test', max_tokens: usage.completion, messages: [{ role: 'user', content }] }
const PRICE = 0.000025

t.test('two gateways on one PostgreSQL', { skip: withoutPostgres }, async t => {
  const upstream = await startUpstream(t)
  const postgres = await (await postgresServer()).database()
  const endpoints = { chat: { ratelimit: { rpm: 100_000 }, admission: { in_flight: 10_000, lag: '60s' } } }
  const providers = { a: { base_url: upstream.url('a'), models: [testMapping] } }
  const options = { providers, config: { endpoints, stores: { postgres } } }
  // Both at once: one of them migrates.
  const gateways = await Promise.all([startGateway(t, options), startGateway(t, options)])
  const [one, two] = gateways as [(typeof gateways)[0], (typeof gateways)[0]]
  const command = commandsOf(one)
  let made = 0
  const tenant = async (credits: string, key: object = {}) => {
    const name = `tenant-${++made}`
    const { id: org } = await command<{ id: string }>('orgs.create', { name })
    await command('credits.add', { organization: org, amount: credits })
    const { id: project } = await command<{ id: string }>('projects.create', { organization: org, name: 'web' })
    const { id, key: secret } = await command<{ id: string; key: string }>('keys.create', { project, ...key })
    return { org, project, id, as: { authorization: `Bearer ${secret}` } }
  }
  const statusOf = async (gateway: (typeof gateways)[0], as: Record<string, string>) => {
    const response = await gateway.chat({ ...request }, as)
    await response.text()
    return response.status
  }

  for (const [says, credits, key] of [
    ['credit', (PRICE * 10).toFixed(9), {}],
    ['a limit', '1', { limit: (PRICE * 10).toFixed(9) }],
    ['a daily limit', '1', { limit: (PRICE * 10).toFixed(9), limitPeriod: 'day' }],
  ] as const) {
    await t.test(`two hundred requests on ${says} for ten are ten`, async t => {
      await upstream.reset()
      await upstream.script('a', [{ hold: 0, usage }])
      const { as, org } = await tenant(credits, key)
      const asked = Array.from({ length: 200 }, (_, i) => statusOf(gateways[i % 2]!, as))
      await upstream.record('a', { requests: 10 })
      await upstream.release('a')
      const statuses = await Promise.all(asked)
      t.equal(statuses.filter(status => status === 200).length, 10)
      t.equal(statuses.filter(status => status === 402).length, 190)
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
      while ((await statusOf(two, as)) !== status);
    }
    await command('keys.revoke', { id })
    while ((await statusOf(two, as)) !== 401);
    for (const gateway of gateways) t.equal(await statusOf(gateway, as), 401)
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
    while ((await nodes()).get(second)?.state !== 'draining');
    t.equal((await nodes()).get(second)?.inFlight, 1)
    await upstream.release('a')
    t.equal(await answer, 200)
    await two.exited
    t.equal((await nodes()).get(second), undefined, 'one that has left is not listed')
    await two.restart()
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

  for (const gateway of gateways) await checkInvariants(t, gateway, upstream)
})
