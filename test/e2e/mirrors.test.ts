/** Copies of requests that rules send to other models (docs/rules.md#mirrors). */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { wavHead } from '../../src/lib/wav.ts'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants, metric } from '../helpers/invariants.ts'
import { scripted } from '../helpers/scripted.ts'
import { readEvents, textOf } from '../helpers/sse.ts'
import { startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>

const upstream = await startUpstream(t, { key: upstreamSecret })
const offer = (model: string, usd: string) => ({
  ...testMapping,
  model,
  id: `${model}-1`,
  pricing: { prompt: usd, completion: usd },
})
const example = /mirrors.yaml\n([\s\S]*?)```/.exec(readFileSync('docs/rules.md', 'utf8'))![1]!
const names = ['second', 'trusted', 'all', 'none', 'moved', 'broken', 'slow', 'usual']
const rule = (model: string, to: string, percent?: number) => ({ match: { model }, mirror: { to, percent } })
const listener = await scripted(t)
listener.answers({ json: { text: 'Hello.', language: 'english', duration: 1, segments: [] } })
const hears = (id: string, name: string) => ({
  base_url: listener.url.replace('/v1', `/${id}`),
  wires: { transcriptions: 'openai.transcriptions' },
  models: [{ model: name, id: `${name}-1`, pricing: { input_audio_hour: '0.36' } }],
})
const ears = ['ears', 'other-ears'].map(id => {
  return { id, name: id, family: 'test', input: ['audio'], output: ['text'], operations: ['transcriptions'] }
})
const chats = [...names, 'shadow', 'bad', 'stuck'].map(id => {
  return { id, name: id, family: 'test', input: ['text'], output: ['text'] }
})
const gateway = await startGateway(t, {
  models: [...chats, ...ears],
  providers: {
    own: { base_url: upstream.url('own'), models: names.map(name => offer(name, '1')) },
    shadow: {
      base_url: upstream.url('shadow'),
      auth: { scheme: 'header', header: 'x-api-key', secret: upstreamSecret },
      wires: { chat: 'anthropic.messages' },
      models: [offer('shadow', '3')],
    },
    bad: { base_url: upstream.url('bad'), models: [offer('bad', '3')] },
    hears: hears('hears', 'ears'),
    copies: hears('copies', 'other-ears'),
    stuck: { base_url: upstream.url('stuck'), models: [offer('stuck', '3')] },
  },
  config: {
    catalog: { routes: './routes.d' },
    endpoints: {
      chat: {
        ratelimit: { rpm: 100_000 },
        admission: { in_flight: 1, queue: 50, wait: '60s', lag: '60s', org_share: 1 },
      },
    },
  },
  files: {
    'config/routes.d/mirrors.yaml': example,
    'config/routes.d/rules.yaml': JSON.stringify({
      virtual_models: [{ id: 'virtual', use: ['shadow'] }],
      rules: [
        rule('all', 'shadow'),
        rule('none', 'shadow', 0),
        { match: { model: 'moved' }, use: 'usual', mirror: { to: 'virtual', percent: 100 } },
        rule('broken', 'bad', 100),
        rule('slow', 'stuck', 100),
        // Copies are not copied, and no rule moves them.
        { match: { model: 'shadow' }, mirror: { to: 'bad', percent: 100 } },
        { match: { model: 'virtual' }, deny: 'Only for copies.' },
        rule('ears', 'other-ears'),
      ],
    }),
  },
})
const command = commandsOf(gateway)
const books = openBooks(t, gateway)
const OPERATOR = 'gateway-operator'

/** A tenant with a bounded account and a limit of requests. */
let tenants = 0
async function tenant() {
  const name = `tenant-${++tenants}`
  const { id: organization } = await command<{ id: string }>('orgs.create', { name })
  await command('credits.add', { organization, amount: '1' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
  const { key } = await command<{ key: string }>('keys.create', { project, name: 'k' })
  const ask = (model: string, more: Tree = {}) =>
    gateway.chat(
      { model, messages: [{ role: 'user', content: 'Who is there?' }], ...more },
      { authorization: `Bearer ${key}` },
    )
  const used = async () => (await command<{ used: string }>('credits.show', { organization })).used
  return { organization, ask, used, key }
}
const rowsOf = (org: string) =>
  books.prepare('SELECT * FROM requests WHERE org_id = ? ORDER BY id').all(org) as (Tree & { id: string })[]
/** Waits for the operator's rows: nothing tells a client when a copy has ended. */
async function copies(count: number) {
  for (;;) {
    const rows = rowsOf(OPERATOR)
    if (rows.length >= count) return rows
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}
const seen = async (prefix: string) => (await upstream.record(prefix)).length

let made = 0
for (const stream of [false, true]) {
  t.test(`a copy goes to the other model, paid by the operator (stream: ${stream})`, async t => {
    await upstream.script('own', [{ text: 'mine', usage: { prompt: 10, completion: 5 } }])
    await upstream.script('shadow', [{ text: 'theirs', usage: { prompt: 10, completion: 5 } }])
    const { ask, used, organization } = await tenant()
    const answer = await ask('all', { stream, stream_options: stream ? { include_usage: true } : undefined })
    t.equal(answer.status, 200)
    if (stream) t.equal(textOf((await readEvents<Tree>(answer)).data), 'mine')
    else t.match(await answer.json(), { choices: [{ message: { content: 'mine' } }], metadata: { used_model: 'all' } })
    const copy = (await copies(++made)).at(-1)!
    t.match(copy, { model: 'shadow', requested_model: 'shadow', outcome: 'ok', cost: 45_000, streamed: Number(stream) })
    t.match(await command('requests.show', { id: copy.id }), { org: OPERATOR, tags: { mirror: 'rules.yaml#1' } })
    t.equal(rowsOf(organization).length, 1, 'the tenant has its own row alone')
    t.equal(Number(await used()).toFixed(6), '0.000015')
    t.match((await upstream.record('shadow')).at(-1), {
      outcome: 'completed',
      body: { model: 'shadow-1', stream: stream || undefined },
    })
  })
}

t.test('nothing is copied when percent draws no', async t => {
  const { ask } = await tenant()
  const before = await seen('shadow')
  for (let n = 0; n < 5; n++) t.equal((await ask('none')).status, 200)
  t.equal(await seen('shadow'), before)
  t.notMatch(await gateway.metrics(), /action="mirror[^}]*rule="rules.yaml#2"/)
})

t.test('a rule moves a request and copies it, to a virtual model too', async t => {
  const { ask } = await tenant()
  t.match(await (await ask('moved')).json(), { metadata: { requested_model: 'moved', used_model: 'usual' } })
  t.match((await copies(++made)).at(-1), { requested_model: 'virtual', model: 'shadow', outcome: 'ok' })
  t.equal((await ask('virtual')).status, 403)
})

t.test('the example of the page copies', async t => {
  const { ask } = await tenant()
  t.equal((await ask('trusted')).status, 200)
  t.match((await copies(++made)).at(-1), { requested_model: 'second', model: 'second', outcome: 'ok' })
})

t.test('a copy that fails is no matter of the request', async t => {
  await upstream.script('bad', [{ status: 400, body: { error: { message: 'no' } } }])
  const { ask } = await tenant()
  t.equal((await ask('broken')).status, 200)
  t.match((await copies(++made)).at(-1), { requested_model: 'bad', outcome: 'error', cost: 0 })
})

t.test('on each client wire', async t => {
  await upstream.script('shadow', [{ text: 'theirs' }])
  const { key } = await tenant()
  const messages = [{ role: 'user', content: 'Who?' }]
  const wires: [path: string, body: Tree][] = [
    ['/v1/messages', { model: 'all', max_tokens: 9, messages, system: [{ type: 'text', text: 'Be brief.' }] }],
    ['/v1/responses', { model: 'all', input: 'Who?' }],
    ['/v1/completions', { model: 'all', prompt: 'Who?' }],
    ['/v1beta/models/all:generateContent', { contents: [{ role: 'user', parts: [{ text: 'Who?' }] }] }],
  ]
  for (const [path, body] of wires) {
    t.equal((await gateway.post(path, body, { authorization: `Bearer ${key}` })).status, 200, path)
    t.match((await copies(++made)).at(-1), { requested_model: 'shadow', outcome: 'ok' }, path)
    t.match((await upstream.record('shadow')).at(-1), { body: { model: 'shadow-1' } })
  }
})

t.test('a copy has the files of its request', async t => {
  const { key } = await tenant()
  const sound = Buffer.concat([wavHead(16_000, 3200), Buffer.alloc(3200, 5)])
  for (let n = 0; n < 5; n++) {
    const form = new FormData()
    form.set('model', 'ears')
    form.set('file', new Blob([sound]), 'a.wav')
    const headers = { authorization: `Bearer ${key}` }
    const answer = await fetch(`${gateway.url}/v1/audio/transcriptions`, { method: 'POST', headers, body: form })
    t.equal(answer.status, 200, await answer.text())
    t.match((await copies(++made)).at(-1), { requested_model: 'other-ears', outcome: 'ok' })
  }
  for (const { path, body } of listener.got) t.ok(body.includes(sound), path)
  t.equal(listener.got.filter(({ path }) => path.startsWith('/copies')).length, 5)
})

t.test('large bodies and organizations that keep no data are not copied', async t => {
  const { ask, organization } = await tenant()
  const before = await seen('shadow')
  const long = 'word '.repeat(60_000)
  t.equal((await ask('all', { messages: [{ role: 'user', content: long }] })).status, 200)
  const skipped = async () =>
    metric(await gateway.metrics(), 'gateway_route_rules_applied_total', { action: 'mirror_skipped' })
  t.equal(await skipped(), 1)
  await command('compliance.set', { organization, noLogging: true })
  const answer = await ask('all')
  // Its provider keeps prompts, or says nothing of that.
  t.match(answer.status, /200|403/)
  t.equal(await seen('shadow'), before)
})

t.test('explain names the rule and where it sends copies', async t => {
  t.match(await command('route.explain', { model: 'all' }), {
    rule: 'rules.yaml#1',
    mirror: { to: 'shadow', percent: 100 },
    choice: 'own/all',
  })
})

t.test('copies are bounded, take no place of a request, and a drain waits for none of them', async t => {
  await upstream.script('stuck', [{ fault: 'stall' }])
  const { ask } = await tenant()
  // The gateway takes one request at a time: a copy that took its place would refuse the next.
  for (let n = 0; n < 20; n++) t.equal((await ask('slow')).status, 200)
  const applied = (action: string) =>
    gateway.metrics().then(text => metric(text, 'gateway_route_rules_applied_total', { action, rule: 'rules.yaml#5' }))
  t.strictSame([await applied('mirror'), await applied('mirror_skipped')], [16, 4])
  await upstream.record('stuck', { requests: 16 })
  t.equal(await gateway.kill('SIGTERM'), 0)
  const ended = rowsOf(OPERATOR).filter(({ requested_model: model }) => model === 'stuck')
  t.equal(ended.length, 16, 'each has its row')
  t.strictSame(books.prepare('SELECT count(*) FROM holds').pluck().get(), 0, 'no money stays held')
  await gateway.restart()
  await checkInvariants(t, gateway, upstream)
  t.strictSame(await command('usage.check'), { differences: [] })
})
