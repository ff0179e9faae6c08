/** Engines of the operator's own, and other providers with models that stand in no file, at a gateway of two workers. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, upstreamSecret } from '../helpers/gateway.ts'
import { metric } from '../helpers/invariants.ts'
import { startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>

/** Turned off, as an engine that has not been started; the port is its own all the while. */
let models: string[] | undefined
const engine = createServer((req, res) => {
  let body = ''
  req.on('data', (piece: Buffer) => {
    body += piece
  })
  req.on('end', () => {
    res.setHeader('content-type', 'application/json')
    if (!models) res.destroy()
    else if (req.url === '/v1/models')
      res.end(JSON.stringify({ data: models.map(id => ({ id, created: 1700000000 })) }))
    else {
      const { model } = JSON.parse(body) as { model: string }
      const message = { role: 'assistant', content: `I am ${model}.` }
      const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
      res.end(JSON.stringify({ id: 'x', choices: [{ index: 0, message, finish_reason: 'stop' }], usage }))
    }
  })
}).listen(0, '127.0.0.1')
await new Promise(resolve => engine.once('listening', resolve))
t.teardown(() => {
  engine.closeAllConnections()
  engine.close()
})

const upstream = await startUpstream(t)
const local = `provider: engine
name: Engine
base_url: http://127.0.0.1:${(engine.address() as AddressInfo).port}/v1
auth: { scheme: none }
wires: { chat: openai.chat }
models: open
discover: true
open: { pricing: { prompt: "0", completion: "0" } }
`
const remote = `provider: remote
name: Remote
base_url: ${upstream.url('remote')}
auth: { scheme: bearer, secret: ${upstreamSecret} }
wires: { chat: openai.chat }
models: open
`
const gateway = await startGateway(t, {
  providers: {},
  models: [],
  config: { server: { workers: 2 } },
  files: {
    'providers.d/engine.yaml': local,
    'providers.d/remote.yaml': remote,
    'config/models.d/mine.yaml': 'aliases: { fast: "engine/tiny:1" }\n',
  },
})
const command = commandsOf(gateway)

const listed = async (as?: Record<string, string | null>) => {
  const { data } = (await (await gateway.get('/v1/models', as)).json()) as { data: (Tree & { id: string })[] }
  return data
}
/** Asked over connections of their own, so that both workers answer, until all of them list the same. */
async function untilListed(ids: readonly string[]): Promise<void> {
  await (await gateway.admin('POST', '/reload')).text()
  for (;;) {
    const lists = await Promise.all(
      Array.from({ length: 8 }, () => listed({ authorization: null, connection: 'close' })),
    )
    if (lists.every(list => list.map(({ id }) => id).join() === ids.join())) return
  }
}
const ask = async (model: string, more: Tree = {}) => {
  const response = await gateway.post('/v1/chat/completions', {
    model,
    messages: [{ role: 'user', content: 'Who are you?' }],
    ...more,
  })
  return { status: response.status, body: (await response.json()) as Tree }
}

t.test('an engine that is not there is silent, and its models appear when it answers', async t => {
  t.strictSame(await listed(), [])
  t.match(await command('providers.list'), [
    { id: 'engine', status: 'no answer', models: 0 },
    { id: 'remote', status: 'live' },
  ])
  t.equal((await ask('engine/tiny:1')).status, 502)

  models = ['tiny:1', 'vendor/large']
  await untilListed(['engine/tiny:1', 'engine/vendor/large'])
  const [tiny] = await listed()
  t.match(tiny, { id: 'engine/tiny:1', created: 1700000000, owned_by: 'engine', free: true, family: 'engine' })
  t.match(tiny, { providers: [{ providerId: 'engine', externalId: 'tiny:1', streaming: true, tools: true }] })
  t.match(await command('providers.list'), [{ id: 'engine', status: 'live', models: 2 }, {}])
  t.match(await command('models.list', { query: 'large' }), [{ id: 'engine/vendor/large', live: true }])
})

t.test('what it lists can be called, and what it does not list, too', async t => {
  for (const [model, id] of [
    ['engine/tiny:1', 'tiny:1'],
    ['fast', 'tiny:1'],
    ['engine/vendor/large', 'vendor/large'],
    ['engine/new', 'new'],
  ] as const) {
    const { status, body } = await ask(model)
    t.equal(status, 200, model)
    t.match(body, {
      model: id,
      choices: [{ message: { content: `I am ${id}.` } }],
      usage: { cost: 0 },
      metadata: { used_provider: 'engine', used_model: id, requested_provider: 'engine' },
    })
  }
  t.match(await ask('tiny:1'), { status: 400, body: { error: { message: /Request it as "engine\/tiny:1"/ } } })
  t.match(await ask('engine/../x'), { status: 404, body: { error: { code: 'model_not_found' } } })
  const text = await gateway.metrics()
  const requests = (model: string) =>
    metric(text, 'gateway_requests_total', { endpoint: 'chat', outcome: 'ok', provider: 'engine', model })
  t.strictSame([requests('tiny:1'), requests('*'), requests('new')], [2, 1, 0], 'names of callers are one series')
})

t.test('an engine serves the default organization alone, unless its file names others', async t => {
  const named = async (name: string) => {
    const { id } = await command<{ id: string }>('orgs.create', { name, account: 'open' })
    const { id: project } = await command<{ id: string }>('projects.create', { organization: name, name: 'web' })
    const { key } = await command<{ key: string }>('keys.create', { project })
    return { id, as: { authorization: `Bearer ${key}` } }
  }
  const [one, two] = [await named('one'), await named('two')]
  const model = 'engine/tiny:1'
  const messages = [{ role: 'user', content: 'Who are you?' }]
  /** What an organization is told on each way to a model of the engine. */
  const seen = async ({ as }: { as: Record<string, string> }) => {
    const asked: [string, Tree][] = [
      ['/v1/chat/completions', { model, messages }],
      ['/v1/chat/completions', { model: 'fast', messages, stream: true }],
      ['/v1/chat/completions', { model: 'engine/not-listed', messages }],
      ['/v1/messages', { model, messages, max_tokens: 9 }],
      ['/v1/responses', { model, input: 'Hi' }],
      [`/v1beta/models/${model}:generateContent`, { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }],
    ]
    const all = await Promise.all([
      ...asked.map(([path, body]) => gateway.post(path, body, as)),
      gateway.get(`/v1/models/${model}`, as),
    ])
    const statuses = await Promise.all(all.map(async answer => [answer.status, await answer.text()] as const))
    for (const [status, body] of statuses) if (status !== 200) t.match(body, /does not exist/)
    const ids = (await listed(as)).map(({ id }) => id)
    const hints = await Promise.all([
      gateway.get('/v1/models?include_restricted=true', as),
      ...['tiny:1', 'fast1'].map(name => gateway.post('/v1/chat/completions', { model: name, messages }, as)),
    ])
    const told = (await Promise.all(hints.map(answer => answer.text()))).join()
    if (ids.length === 0) t.notMatch(told, /engine|vendor|Did you mean/, 'nothing names its models')
    else t.match(told, /vendor.large.*Request it as \S*engine.*Did you mean \S*fast/s)
    return [new Set(statuses.map(([status]) => status)), ids]
  }
  const everything = [new Set([200]), ['engine/tiny:1', 'engine/vendor/large']]
  const nothing = [new Set([404]), []]
  t.strictSame(await seen({ as: { authorization: `Bearer ${gateway.key}` } }), everything)
  t.strictSame([await seen(one), await seen(two)], [nothing, nothing])
  for (const [says, sights] of [
    [`organizations: [${one.id}]\n`, [everything, nothing]],
    ['organizations: [two, default]\n', [nothing, everything]],
    ['organizations: all\n', [everything, everything]],
    ['', [nothing, nothing]],
  ] as const) {
    await gateway.writeFile('providers.d/engine.yaml', local + says)
    await (await gateway.admin('POST', '/reload')).text()
    await untilListed(['engine/tiny:1', 'engine/vendor/large'])
    t.strictSame([await seen(one), await seen(two)], sights, says)
  }
})

t.test('without a price credits do not pay', async t => {
  const refused = await ask('remote/anything')
  t.match(refused, { status: 402, body: { error: { message: /price of remote\/anything is unknown/ } } })
  await gateway.writeFile('providers.d/remote.yaml', `${remote}open: { unpriced: allow }\n`)
  await (await gateway.admin('POST', '/reload')).text()
  t.match(await ask('remote/vendor/any.thing:1'), { status: 200, body: { usage: { cost: null } } })
  t.match((await upstream.record('remote')).at(-1), { body: { model: 'vendor/any.thing:1' } })
  await upstream.script('remote', [{ status: 404 }, { status: 404 }])
  for (const model of ['remote/made-up', 'remote/another']) await ask(model)
  const { groups } = await command<{ groups: Tree[] }>('usage', { groupBy: 'model' })
  const names = groups.map(({ id }) => id)
  t.ok(names.includes('vendor/any.thing:1') && names.includes('*'), `${names}`)
  t.notOk(names.includes('made-up') || names.includes('another'), 'names that answer nothing add no sums')
})

t.test('an engine that has gone lists nothing', async t => {
  models = undefined
  await (await gateway.admin('POST', '/reload')).text()
  await untilListed([])
  t.match(await command('providers.list'), [{ id: 'engine', status: 'no answer' }, {}])
})
