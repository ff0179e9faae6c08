/** Alerts on limits and credits, from requests to a receiver that verifies them (docs/alerts.md). */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { commandsOf } from '../helpers/commands.ts'
import { filmStudio } from '../helpers/film-studio.ts'
import { type Gateway, startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { metric } from '../helpers/invariants.ts'
import { pause } from '../helpers/pause.ts'
import { postgresServer, withoutPostgres } from '../helpers/postgres.ts'
import { startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>

const SECRET = 'alert-secret-canary'
const content = 'What does this cost?'
const usage = { prompt: Math.ceil(content.length / 4), completion: 10 }
const request = { model: 'test', max_tokens: usage.completion, messages: [{ role: 'user', content }] }
/** USD of one request. */
const PRICE = 0.000025
const times = (count: number): string => (PRICE * count).toFixed(9)

interface Posted {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const posted: Posted[] = []
const arrivals = new Set<() => void>()
const receiver = createServer(async (req, res) => {
  const body = await text(req)
  posted.push({ path: req.url!, headers: req.headers as Record<string, string>, body })
  res.writeHead(req.url!.startsWith('/broken') ? 500 : 204).end()
  for (const arrived of arrivals) arrived()
})
receiver.listen(0, '127.0.0.1')
await once(receiver, 'listening')
t.teardown(() => receiver.close())
const origin = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`

/** What came to a path, once it is so much. */
async function received(path: string, count: number): Promise<readonly Posted[]> {
  const found = () => posted.filter(one => one.path === path)
  while (found().length < count) await new Promise<void>(resolve => arrivals.add(resolve))
  return found()
}

/** The data of generic callbacks of one key, by share. */
async function told(path: string, key: string, count: number): Promise<readonly Tree[]> {
  const found = () =>
    posted
      .filter(one => one.path === path)
      .map(({ body }) => JSON.parse(body) as { data: Tree & { key: { id: string } } })
      .filter(({ data }) => data.key.id === key)
      .map(({ data }) => data)
  while (found().length < count) await new Promise<void>(resolve => arrivals.add(resolve))
  return found().sort((a, b) => Number(a.fraction) - Number(b.fraction))
}

const generic = { url: `${origin}/generic`, secret: SECRET }
const alerts: readonly Tree[] = [
  { on: 'limit', ...generic, match: { keys: 'watched*' } },
  { on: 'limit', at: [0.5], url: `${origin}/slack/T000`, format: 'slack', match: { keys: 'slack' } },
  { on: 'limit', at: [0.5], url: `${origin}/broken`, secret: SECRET, match: { keys: 'broken' } },
  { on: 'limit', at: [0.5], match: { keys: 'logged' } },
  { on: 'credits', below: '1.00', url: `${origin}/credits`, secret: SECRET, match: { orgs: 'poor' } },
]
const upstream = await startUpstream(t, { key: upstreamSecret })
await upstream.script('a', [{ usage }])
const studio = await filmStudio(t)
const films = [{ model: 'film', id: 'film-1', pricing: { per_second: { default: '0.025' } } }]
const providers = {
  a: { base_url: upstream.url('a'), models: [testMapping] },
  films: { base_url: studio.url, wires: { videos: 'openai.videos' }, models: films },
}
const named = { family: 'test', input: ['text'], stability: 'stable' }
const models = [
  { id: 'test', name: 'test', output: ['text'], ...named },
  { id: 'film', name: 'film', output: ['video'], ...named },
]
const limits = [{ match: { keys: 'watched-tokens' }, tpd: usage.prompt + usage.completion + 10 }]
const endpoints = { chat: { ratelimit: { rpm: 100_000, limits } } }
const jobs = { poll: '20ms', poll_max: '40ms', callback_to: [origin], callback_retry: '10ms', callback_attempts: 3 }
const gateway = await startGateway(t, { providers, models, config: { endpoints, jobs, alerts } })
const command = commandsOf(gateway)

async function tenant(run: typeof command, organization: string, credits: string, key: Tree) {
  const { id: org } = await run<{ id: string }>('orgs.create', { name: organization })
  await run('credits.add', { organization: org, amount: credits })
  const { id: project } = await run<{ id: string }>('projects.create', { organization: org, name: 'web' })
  const { id, key: secret } = await run<{ id: string; key: string }>('keys.create', { project, ...key })
  return { org, project, id, as: { authorization: `Bearer ${secret}` } }
}
async function ask(to: Gateway, as: Record<string, string>, count = 1): Promise<number> {
  let status = 0
  for (let n = 0; n < count; n++) {
    const answer = await to.chat({ ...request }, as)
    await answer.text()
    status = answer.status
  }
  return status
}
const output = (of: Gateway): string => of.stdout() + of.stderr()
const lines = (of: Gateway, message: string): readonly Tree[] =>
  output(of)
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line) as Tree)
    .filter(({ msg }) => msg === message)

t.test('each share of a limit gives one signed callback and one line in the log', async t => {
  const { id, org, project, as } = await tenant(command, 'acme', '1', {
    ...{ name: 'watched', limit: times(10), limitPeriod: 'month' },
  })
  t.equal(await ask(gateway, as, 4), 200)
  t.equal(await ask(gateway, as, 1), 200)
  t.match(await told('/generic', id, 1), [{ fraction: 0.5 }])
  t.equal(await ask(gateway, as, 5), 200)
  const all = await told('/generic', id, 3)
  const facts = {
    ...{ on: 'limit', limit_kind: 'spend', period: 'month', of: 'key', whose: { id, name: 'watched' }, unit: 'USD' },
    ...{ organization: { id: org, name: 'acme' }, project, key: { id, name: 'watched' }, limit: '0.00025' },
  }
  t.match(all, [
    { ...facts, fraction: 0.5, used: '0.000125' },
    { ...facts, fraction: 0.8, used: '0.0002' },
    { ...facts, fraction: 1, used: '0.00025' },
  ])
  const [{ period_start: start, period_end: end, time }] = all as [Record<string, string>]
  t.match(start, /^\d{4}-\d\d-01T00:00:00\.000Z$/)
  t.ok(start! < time! && time! < end!)
  t.equal(await ask(gateway, as), 402)
  for (const { headers, body } of posted.filter(({ path }) => path === '/generic')) {
    const { 'webhook-id': event, 'webhook-timestamp': at, 'webhook-signature': signature } = headers
    const signed = createHmac('sha256', SECRET).update(`${event}.${at}.${body}`).digest('base64')
    t.equal(signature, `v1,${signed}`)
    t.match(JSON.parse(body), { object: 'event', id: event, type: 'limit.reached', created_at: Number(at) })
  }
  const logged = lines(gateway, 'alert').filter(line => line.key_id === id)
  t.strictSame(
    logged.map(({ fraction }) => fraction),
    [0.5, 0.8, 1],
  )
  const written = output(gateway)
    .split('\n')
    .filter(line => line.includes('"msg":"alert"'))
  t.strictSame(
    written.filter(line => line.split('"time":').length !== 2),
    [],
    'no field stands twice in a line',
  )
})

t.test('a charge that passes several shares tells each, and a refusal tells the last', async t => {
  const { id, as } = await tenant(command, 'jumpers', '1', { name: 'watched-2', limit: times(1.2) })
  t.equal(await ask(gateway, as), 200)
  t.match(await told('/generic', id, 2), [{ fraction: 0.5 }, { fraction: 0.8 }])
  t.equal(await ask(gateway, as), 402)
  t.match(await told('/generic', id, 3), [{}, {}, { fraction: 1, used: '0.000025', period: 'total', period_end: null }])
})

t.test("Slack's form is one plain sentence, without a signature", async t => {
  const { as } = await tenant(command, 'slackers', '1', { name: 'slack', limit: times(2), limitPeriod: 'day' })
  await ask(gateway, as)
  const [{ body, headers }] = (await received('/slack/T000', 1)) as [Posted]
  t.match(JSON.parse(body), {
    text: /^The daily spending limit of key "slack" in organization "slackers" has reached 50 %: 0\.000025 of 0\.00005 USD are used\. A new period begins at \d{4}-/,
  })
  t.strictSame(Object.keys(JSON.parse(body) as Tree), ['text'])
  t.equal(headers['webhook-signature'], undefined)
})

t.test('an alert without an address is a line in the log alone', async t => {
  const { id, as } = await tenant(command, 'loggers', '1', { name: 'logged', limit: times(2) })
  const before = posted.length
  t.equal(await ask(gateway, as, 2), 200)
  const { id: other, as: asOther } = await tenant(command, 'others', '1', { name: 'watched-3', limit: times(1) })
  await ask(gateway, asOther)
  await told('/generic', other, 3)
  t.equal(posted.length, before + 3)
  t.match(
    lines(gateway, 'alert').filter(line => line.key_id === id),
    [{ type: 'limit.reached', fraction: 0.5 }],
  )
})

t.test('credits below an amount give one alert, and another one after more credits', async t => {
  const { org, as } = await tenant(command, 'poor', '1', { name: 'p' })
  t.equal(await ask(gateway, as, 2), 200)
  const data = ({ body }: Posted) => (JSON.parse(body) as { data: Tree }).data
  t.match((await received('/credits', 1)).map(data), [{ on: 'credits', balance: '0.999975', below: '1', of: 'org' }])
  await command('credits.add', { organization: org, amount: '0.000025' })
  t.equal(await ask(gateway, as, 2), 200)
  const all = await received('/credits', 2)
  t.match(JSON.parse(all[1]!.body), { type: 'credits.low', data: { whose: { id: org, name: 'poor' } } })
  t.equal(all.length, 2)
})

t.test('rate limits of a day and an hour give alerts, and those of a minute none', async t => {
  const rates = { rpd: 4, rph: 100, rpm: 2 }
  const { id, as } = await tenant(command, 'raters', '1', { name: 'watched-rates', ...rates })
  t.equal(await ask(gateway, as, 2), 200)
  const facts = { on: 'limit', limit_kind: 'rpd', period: 'day', of: 'key', unit: 'requests', limit: '4' }
  t.match(await told('/generic', id, 1), [
    { ...facts, used: '2', fraction: 0.5, whose: { name: 'key "watched-rates"' } },
  ])
  t.equal(await ask(gateway, as, 1), 429)
  const tokens = await tenant(command, 'token-raters', '1', { name: 'watched-tokens' })
  t.equal(await ask(gateway, tokens.as), 200)
  const kind = { limit_kind: 'tpd', unit: 'tokens', used: '15', limit: '25', fraction: 0.5 }
  t.match(await told('/generic', tokens.id, 1), [kind])
  t.equal(await ask(gateway, tokens.as), 200)
  t.match(await told('/generic', tokens.id, 3), [kind, { fraction: 0.8 }, { fraction: 1 }])
  t.equal((await told('/generic', id, 1)).length, 1)
})

t.test('a video is charged when it is made, and its alert comes then', async t => {
  const { id, org, as } = await tenant(command, 'film-makers', '1', { name: 'watched-film', limit: '0.20' })
  const made = await gateway.post('/v1/videos', { model: 'film', prompt: 'a cat', seconds: '4' }, as)
  t.equal(made.status, 200, await made.text())
  const whose = { id, name: 'watched-film' }
  t.match(await told('/generic', id, 1), [
    { fraction: 0.5, used: '0.1', whose, organization: { id: org, name: 'film-makers' } },
  ])
})

t.test('a receiver that fails gets the alert again, until it is given up with a line in the log', async t => {
  const { as } = await tenant(command, 'broken', '1', { name: 'broken', limit: times(2) })
  t.equal(await ask(gateway, as, 2), 200)
  const all = await received('/broken', 3)
  t.equal(new Set(all.map(({ headers }) => headers['webhook-id'])).size, 1)
  while (lines(gateway, 'alert callback given up').length === 0) await pause()
  t.match(lines(gateway, 'alert callback given up'), [{ attempt: 3, status: 500 }])
  const count = async (outcome: string) =>
    metric(await gateway.metrics(), 'gateway_alerts_total', { on: 'limit', outcome })
  t.equal(await count('failed'), 1)
  t.equal(await count('retrying'), 2)
  t.equal(all.length, 3)
})

t.test('a reload adds and removes alerts', async t => {
  const settings = parse(readFileSync(gateway.configPath, 'utf8')) as Tree
  const reload = async (changed: readonly Tree[]) => {
    await gateway.writeFile('config/gateway.yaml', stringify({ ...settings, alerts: changed }))
    t.equal((await gateway.admin('POST', '/reload')).status, 200)
  }
  const added = { on: 'limit', at: [1], url: `${origin}/added`, secret: SECRET, match: { keys: 'late' } }
  await reload([...alerts, added])
  const { id, as } = await tenant(command, 'late', '1', { name: 'late', limit: times(1) })
  await ask(gateway, as)
  t.match(await told('/added', id, 1), [{ fraction: 1 }])
  await reload(alerts)
  const next = await tenant(command, 'later', '1', { name: 'late', limit: times(1) })
  const watched = await tenant(command, 'latest', '1', { name: 'watched-4', limit: times(1) })
  await ask(gateway, next.as)
  await ask(gateway, watched.as)
  await told('/generic', watched.id, 3)
  t.equal((await received('/added', 1)).length, 1)
})

t.test('a restart tells nothing twice, and no secret is shown', async t => {
  const shown = output(gateway) + JSON.stringify(await command('config.show').catch(String)) + (await gateway.metrics())
  t.notOk(shown.includes(SECRET))
  t.notOk(shown.includes('/slack/T000'))
  const { id, as } = await tenant(command, 'again', '1', { name: 'watched-5', limit: times(10) })
  t.equal(await ask(gateway, as, 6), 200)
  await told('/generic', id, 1)
  const before = posted.length
  await gateway.restart()
  t.equal(await ask(gateway, as, 1), 200)
  t.equal(await ask(gateway, as, 1), 200)
  t.match(await told('/generic', id, 2), [{ fraction: 0.5 }, { fraction: 0.8 }])
  t.equal(posted.length, before + 1)
})

t.test('two nodes on PostgreSQL tell once', { skip: withoutPostgres }, async t => {
  const postgres = await (await postgresServer()).database()
  const entry = { on: 'limit', url: `${origin}/nodes`, secret: SECRET }
  const options = { providers, models, config: { endpoints, jobs, stores: { postgres }, alerts: [entry] } }
  const nodes = await Promise.all([startGateway(t, options), startGateway(t, options)])
  const run = commandsOf(nodes[0]!)
  const key = { name: 'shared', limit: times(10), limitPeriod: 'day' }
  const { id, as } = await tenant(run, 'acme', '1', key)
  for (let n = 0; n < 10; n++) t.equal(await ask(nodes[n % 2]!, as), 200)
  t.match(await told('/nodes', id, 3), [{ fraction: 0.5 }, { fraction: 0.8 }, { fraction: 1 }])
  // Requests at once on both nodes pass the shares of one key.
  const { id: busy, as: asBusy } = await tenant(run, 'busy', '1', key)
  await Promise.all(Array.from({ length: 10 }, (_, n) => ask(nodes[n % 2]!, asBusy)))
  t.match(await told('/nodes', busy, 3), [{ fraction: 0.5 }, { fraction: 0.8 }, { fraction: 1 }])
  const raised = await Promise.all(
    nodes.map(
      async node => metric(await node.metrics(), 'gateway_alerts_total', { on: 'limit', outcome: 'raised' }) ?? 0,
    ),
  )
  t.equal(raised[0]! + raised[1]!, 6)
  t.equal((await received('/nodes', 6)).length, 6)
})
