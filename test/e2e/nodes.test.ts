/** Two gateways on one database: they cannot spend one credit twice, and see each other's changes. */
import { join } from 'node:path'
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { timing } from '../helpers/figure.ts'
import { type Gateway, startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { Program } from '../helpers/oauth.ts'
import { runs } from '../helpers/runs.ts'
import { startUpstream } from '../helpers/upstream.ts'

const upstream = await startUpstream(t)
const endpoints = { chat: { ratelimit: { rpm: 100_000 }, admission: { in_flight: 10_000, lag: '60s' } } }
const providers = { a: { base_url: upstream.url('a'), models: [testMapping] } }
const one = await startGateway(t, { providers, config: { endpoints } })
const sqlite = join(one.dir, 'data/gateway.db')
const two = await startGateway(t, { providers, config: { endpoints, stores: { sqlite } } })
const gateways = [one, two]

const content = 'What does this cost?'
const usage = { prompt: Math.ceil(content.length / 4), completion: 10 }
const request = { model: 'test', max_tokens: usage.completion, messages: [{ role: 'user', content }] }
const PRICE = 0.000025

const command = commandsOf(one)
let made = 0
async function tenant(credits: string, key: object = {}) {
  const name = `tenant-${++made}`
  const { id: org } = await command<{ id: string }>('orgs.create', { name })
  await command('credits.add', { organization: org, amount: credits })
  const { id: project } = await command<{ id: string }>('projects.create', { organization: org, name: 'web' })
  const { id, key: secret } = await command<{ id: string; key: string }>('keys.create', { project, ...key })
  return { org, project, id, as: { authorization: `Bearer ${secret}` } }
}
/** On a busy machine one gateway may wait too long for the other's transaction, and says to try again. */
const TRIES = 20
const statusOf = async (gateway: Gateway, as: Record<string, string>, body: object = request) => {
  for (let tries = 1; ; tries++) {
    const response = await gateway.chat({ ...body }, as)
    await response.text()
    if (response.status !== 503 || tries === TRIES) return response.status
  }
}

/** Resolves when so many are refused. */
const refused = (asked: readonly Promise<number>[], count: number) =>
  new Promise<void>(resolve => {
    let refused = 0
    for (const one of asked) one.then(status => status === 402 && ++refused === count && resolve())
  })

/** Requests at once, of which ten have money. */
const AT_ONCE = runs(200, 4)
for (const [says, credits, key] of [
  ['credit', (PRICE * 10).toFixed(9), {}],
  ['a limit', '1', { limit: (PRICE * 10).toFixed(9) }],
  ['a daily limit', '1', { limit: (PRICE * 10).toFixed(9), limitPeriod: 'day' }],
] as const) {
  t.test(`CC-01 dozens of requests at two gateways on ${says} for ten are ten`, async t => {
    await upstream.reset()
    await upstream.script('a', [{ hold: 0, usage }])
    const { as, org } = await tenant(credits, key)
    const asked = Array.from({ length: AT_ONCE }, (_, i) => statusOf(gateways[i % 2]!, as))
    await upstream.record('a', { requests: 10 })
    await Promise.race([refused(asked, AT_ONCE - 10), Promise.all(asked)])
    await upstream.release('a')
    const statuses = await Promise.all(asked)
    t.equal(statuses.filter(status => status === 200).length, 10)
    t.equal(statuses.filter(status => status === 402).length, AT_ONCE - 10)
    t.equal((await upstream.record('a')).length, 10, 'the refused were refused before any call')
    t.match(await command('credits.show', { organization: org }), { held: '0', used: '0.00025' })
    t.strictSame(await command('usage.check'), { differences: [] })
  })
}

t.test(
  'CC-02 what answers cost beyond what was reserved for them is all that a balance can fall below zero',
  async t => {
    await upstream.reset()
    // Half as much again as was reserved for each.
    await upstream.script('a', [{ hold: 0, usage: { prompt: 7, completion: 15 } }])
    const { as, org } = await tenant((PRICE * 10).toFixed(9))
    const asked = Array.from({ length: 40 }, (_, i) => statusOf(gateways[i % 2]!, as))
    await upstream.record('a', { requests: 10 })
    await Promise.race([refused(asked, 30), Promise.all(asked)])
    await upstream.release('a')
    t.equal((await Promise.all(asked)).filter(status => status === 200).length, 10)
    const { balance, used } = await command<{ balance: string; used: string }>('credits.show', { organization: org })
    t.equal(Number(used), Number((10 * (7 * 1000 + 15 * 2000) * 1e-9).toFixed(9)))
    t.equal(Number(balance), Number((0.00025 - Number(used)).toFixed(9)))
    for (const gateway of gateways) {
      t.match(await gateway.metrics(), new RegExp(`^gateway_overdraft_usd ${-Number(balance)}$`, 'm'))
    }
  },
)

t.test('AT-05 what changes at one gateway holds for the next request there, and soon at the other', async t => {
  await upstream.reset()
  const { as, id, project, org } = await tenant('1')
  const bodies = { ...request }
  for (const gateway of gateways) t.equal(await statusOf(gateway, as, bodies), 200)
  /** Milliseconds until the second gateway answers so, asked all the time. */
  const until = async (wanted: number) => {
    const start = performance.now()
    while ((await statusOf(two, as, bodies)) !== wanted) if (performance.now() - start > 30_000) return Infinity
    return performance.now() - start
  }
  const changes: [says: string, change: () => Promise<unknown>, status: number][] = [
    ['an archived project', () => command('projects.archive', { project }), 410],
    ['a restored one', () => command('projects.restore', { project }), 200],
    ['a limit', () => command('keys.update', { id, limit: '0' }), 402],
    ['no limit', () => command('keys.update', { id, limit: 'none' }), 200],
    ['a plan', () => command('plans.set', { organization: org, plan: 'lite' }), 200],
    ['a revoked key', () => command('keys.revoke', { id }), 401],
  ]
  for (const [says, change, status] of changes) {
    await change()
    t.equal(await statusOf(one, as, bodies), status, `${says}, at once`)
    const value = await until(status)
    t.ok(value < Infinity, `${says} comes to the other gateway`)
    timing(t, { id: 'AT-05', what: `until another gateway knows of ${says}`, value, unit: 'ms', atMost: 1000 })
  }
})

t.test('X11 of thirty redemptions of one code at two gateways one succeeds, and the grant ends', async t => {
  const { as } = await tenant('1')
  const programs = gateways.map(gateway => new Program(gateway))
  const [first, second] = programs as [Program, Program]
  await first.register()
  second.id = first.id
  const code = await first.code(as.authorization.slice('Bearer '.length))
  const fields = { code_verifier: first.verifier }
  const tries = await Promise.all(Array.from({ length: 30 }, (_, i) => programs[i % 2]!.redeem(code, fields)))
  t.equal(tries.filter(({ status }) => status === 200).length, 1)
  t.ok(tries.every(({ status, body }) => status === 200 || body.error === 'invalid_grant'))
  const { body } = tries.find(({ status }) => status === 200)!
  for (const program of programs) t.equal((await program.refresh(body.refresh_token)).body.error, 'invalid_grant')
})

t.test('both gateways are as they were', async t => {
  for (const gateway of gateways) await checkInvariants(t, gateway, upstream)
})
