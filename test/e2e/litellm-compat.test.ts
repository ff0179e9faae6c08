/** Clients of LiteLLM at `compat: { litellm: true }` (docs/litellm-compat.md). */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import OpenAI from 'openai'
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>

const upstream = await startUpstream(t, { key: upstreamSecret })
const models = [testMapping, { ...testMapping, model: 'other', id: 'other-1' }]
const gateway = await startGateway(t, {
  providers: { one: { base_url: upstream.url('one'), models } },
  config: { compat: { litellm: true } },
})
const command = commandsOf(gateway)
const { key } = gateway
const messages = [{ role: 'user' as const, content: 'Hi' }]
const anonymous = { authorization: null }
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const json = async (response: Response) => (await response.json()) as Tree

t.test("OpenAI's client with LiteLLM's header is served at both paths, and reads cost and ids", async t => {
  // The log names the first key of a gateway once, at its start.
  const { key } = await command<{ key: string }>('keys.create', { project: 'default', name: 'client' })
  for (const [path, value] of [
    ['', key],
    ['/v1', `Bearer ${key}`],
  ]) {
    const client = new OpenAI({
      apiKey: 'sk-of-another-service',
      baseURL: gateway.url + path,
      defaultHeaders: { 'x-litellm-api-key': value, 'x-litellm-call-id': 'call-7' },
      maxRetries: 0,
    })
    const { data, response } = await client.chat.completions.create({ model: 'test', messages }).withResponse()
    t.equal(data.object, 'chat.completion')
    const { headers } = response
    t.equal(headers.get('x-litellm-call-id'), 'call-7')
    t.equal(headers.get('x-litellm-model-id'), 'one/test')
    t.equal(headers.get('x-litellm-model-group'), 'test')
    t.equal(headers.get('x-litellm-attempted-retries'), '0')
    t.equal(Number(headers.get('x-litellm-response-cost')), (data.usage as unknown as { cost: number }).cost)
    t.ok(Number(headers.get('x-litellm-response-cost')) > 0)
    const { data: stream, response: begun } = await client.chat.completions
      .create({ model: 'test', messages, stream: true })
      .withResponse()
    let text = ''
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
    t.not(text, '')
    t.equal(begun.headers.get('x-litellm-model-id'), 'one/test')
    t.equal(begun.headers.get('x-litellm-response-cost'), null, 'the cost of a stream is not known yet')
    const listed = await client.models.list()
    t.match(
      listed.data.map(({ id }) => id),
      ['test', 'other'],
    )
  }
  const asked = JSON.stringify(await upstream.record('one'))
  t.notOk(asked.includes(key), 'no provider gets the key')
  t.notOk(asked.includes('litellm'), 'nor a header of LiteLLM')
  t.notOk(`${gateway.stdout()}${gateway.stderr()}`.includes(key.slice(3)), 'no line of the log has the key')
})

const chat = { model: 'test', messages }
const paths: readonly (readonly [path: string, body: Tree, status: number])[] = [
  ['/chat/completions', chat, 200],
  ['/v1/chat/completions', chat, 200],
  ['/completions', { model: 'test', prompt: 'Hi' }, 200],
  ['/engines/test/chat/completions', { messages }, 200],
  ['/openai/deployments/test/chat/completions?api-version=2024-10-21', { messages }, 200],
  ['/openai/deployments/one/test/chat/completions', { messages }, 200],
  ['/openai/deployments/test/completions', { prompt: 'Hi' }, 200],
  ['/openai/deployments/other/chat/completions', { ...chat, model: 'test' }, 200],
  ['/responses', { model: 'test', input: 'Hi' }, 200],
  ['/v1/messages', { ...chat, max_tokens: 9 }, 200],
  // Nothing serves these here; the endpoint is reached.
  ['/embeddings', { model: 'nothing', input: 'Hi' }, 404],
  ['/openai/deployments/nothing/embeddings', { input: 'Hi' }, 404],
  ['/moderations', { model: 'nothing', input: 'Hi' }, 404],
  ['/rerank', { model: 'nothing', query: 'q', documents: ['d'] }, 404],
  ['/images/generations', { model: 'nothing', prompt: 'a cat' }, 404],
  ['/audio/speech', { model: 'nothing', input: 'Hi', voice: 'alloy' }, 404],
]
for (const [path, body, status] of paths) {
  t.test(`POST ${path} answers ${status}`, async t => {
    const answer = await gateway.post(path, body)
    const text = await answer.text()
    t.equal(answer.status, status, text)
    t.ok(answer.headers.get('x-litellm-call-id'), 'errors have an id, too')
    if (status === 404) t.match(text, /nothing/)
    else if (path.includes('/other/')) t.equal(answer.headers.get('x-litellm-model-id'), 'one/other')
    else t.equal(answer.headers.get('x-litellm-model-id'), 'one/test')
  })
}

const credentials: readonly (readonly [name: string, headers: Record<string, string | null>, status: number])[] = [
  ['x-litellm-api-key', { ...anonymous, 'x-litellm-api-key': key }, 200],
  ['x-litellm-api-key as a bearer', { ...anonymous, 'x-litellm-api-key': `Bearer ${key}` }, 200],
  ['x-litellm-api-key before others', { authorization: 'Bearer x', 'x-api-key': 'y', 'x-litellm-api-key': key }, 200],
  ['a wrong x-litellm-api-key before a right bearer', { 'x-litellm-api-key': 'sk-wrong' }, 401],
  ['an empty x-litellm-api-key beside a bearer', { 'x-litellm-api-key': '' }, 200],
  ['api-key', { ...anonymous, 'api-key': key }, 200],
  ['nothing', anonymous, 401],
]
for (const [name, headers, status] of credentials) {
  t.test(`a request with ${name} answers ${status}`, async t => {
    const answer = await gateway.post('/chat/completions', chat, headers)
    const text = await answer.text()
    t.equal(answer.status, status, text)
    t.notOk(text.includes('sk-wrong'))
  })
}

interface Row {
  readonly end_user: string | null
  readonly tags: Tree
}
const labels: readonly (readonly [body: Tree, headers: Record<string, string>, endUser: string | null, tags: Tree])[] =
  [
    [{ user: 'ann' }, {}, 'ann', {}],
    [{ user: 'ann' }, { 'x-litellm-end-user-id': 'bob' }, 'bob', {}],
    [{}, { 'x-litellm-end-user-id': 'bob', 'x-litellm-customer-id': 'cy' }, 'cy', {}],
    [{ metadata: { tags: ['prod', 'team:blue'], run: 7 } }, {}, null, { prod: 'true', team: 'blue', run: '7' }],
    [{ tags: ['a=b'] }, { 'x-litellm-tags': 'prod, team:red' }, null, { a: 'b', prod: 'true', team: 'red' }],
    [
      { litellm_metadata: { user: 'dan', tags: ['x:y:z'] } },
      { 'x-litellm-spend-logs-metadata': '{"project":"web"}', 'x-gateway-tags': 'k=v' },
      'dan',
      { x: 'y:z', project: 'web', k: 'v' },
    ],
    [
      { metadata: { tags: 'no list', nested: { a: 1 } } },
      { 'x-litellm-spend-logs-metadata': 'no json' },
      null,
      { tags: 'no list' },
    ],
  ]
for (const [body, headers, endUser, tags] of labels) {
  t.test(`the log has the labels of ${JSON.stringify({ ...body, ...headers })}`, async t => {
    for (const path of ['/chat/completions', '/v1/responses']) {
      const input = path === '/v1/responses' ? { input: 'Hi' } : { messages }
      const answer = await gateway.post(path, { model: 'test', ...input, ...body }, headers)
      t.equal(answer.status, 200, await answer.text())
      const { rows } = await command<{ rows: readonly Row[] }>('requests.list', {})
      t.equal(rows[0]!.end_user, endUser)
      t.strictSame(rows[0]!.tags, tags)
    }
  })
}

t.test('the health endpoints answer as those of LiteLLM', async t => {
  for (const path of ['/health/liveliness', '/health/liveness']) {
    const answer = await gateway.get(path, anonymous)
    t.equal(answer.status, 200)
    t.equal(await answer.json(), "I'm alive!")
  }
  t.equal(
    (await gateway.get('/health/liveliness', { authorization: 'Bearer sk-wrong' })).status,
    200,
    'probes are open',
  )
  const ready = await gateway.get('/health/readiness', anonymous)
  t.equal(ready.status, 200)
  t.match(await json(ready), { status: 'healthy', db: 'connected', cache: null, litellm_version: String })
  t.equal((await gateway.get('/health', anonymous)).status, 401)
  t.match(await json(await gateway.get('/health')), {
    healthy_endpoints: [{ model: 'one/test-1', model_id: 'one/test' }, { model: 'one/other-1' }],
    unhealthy_endpoints: [],
    healthy_count: 2,
    unhealthy_count: 0,
  })
  t.match(await json(await gateway.get('/health?model=other')), { healthy_count: 1 })
})

t.test('/model/info lists prices, sizes and abilities', async t => {
  for (const path of ['/v1/model/info', '/model/info']) {
    t.equal((await gateway.get(path, anonymous)).status, 401)
    const { data } = (await json(await gateway.get(path))) as { data: Tree[] }
    t.match(data, [
      {
        model_name: 'test',
        litellm_params: { model: 'one/test-1' },
        model_info: {
          id: 'one/test',
          mode: 'chat',
          litellm_provider: 'one',
          input_cost_per_token: 0.000001,
          output_cost_per_token: 0.000002,
          supports_vision: true,
          supports_function_calling: true,
        },
      },
      { model_name: 'other' },
    ])
    t.notOk(JSON.stringify(data).includes(upstreamSecret))
    t.match(await json(await gateway.get(`${path}?litellm_model_id=one/other`)), { data: [{ model_name: 'other' }] })
    t.equal((await gateway.get(`${path}?litellm_model_id=nope`)).status, 400)
  }
})

t.test('/v2/model/info lists in pages, and /model_group/info by name', async t => {
  for (const path of ['/v2/model/info', '/model_group/info']) t.equal((await gateway.get(path, anonymous)).status, 401)
  const page = async (query: string) => json(await gateway.get(`/v2/model/info?${query}`))
  t.match(await page(''), {
    data: [{ model_name: 'test' }, {}],
    total_count: 2,
    current_page: 1,
    total_pages: 1,
    size: 50,
  })
  t.match(await page('page=2&size=1'), { data: [{ model_name: 'other' }], total_count: 2, total_pages: 2 })
  t.match(await page('search=OTH'), { data: [{ model_name: 'other' }], total_count: 1 })
  t.match(await page('modelId=one/test'), { data: [{ model_name: 'test' }], total_count: 1 })
  t.match(await page('page=3'), { data: [], total_count: 2, current_page: 3 })
  for (const query of ['page=0', 'size=no', 'size=1e9']) {
    t.equal((await gateway.get(`/v2/model/info?${query}`)).status, 400, query)
  }
  t.match(await json(await gateway.get('/model_group/info')), {
    data: [
      {
        model_group: 'test',
        providers: ['one'],
        mode: 'chat',
        input_cost_per_token: 0.000001,
        output_cost_per_token: 0.000002,
        supports_function_calling: true,
        supports_vision: true,
      },
      { model_group: 'other' },
    ],
  })
  const one = (await json(await gateway.get('/model_group/info?model_group=other'))) as { data: Tree[] }
  t.strictSame(
    one.data.map(({ model_group: name }) => name),
    ['other'],
  )
})

const commands = readFileSync('docs/reference/commands.md', 'utf8')
for (const [method, path, command] of [
  ['POST', '/key/generate', 'keys create'],
  ['POST', '/key/service-account/generate', 'keys create'],
  ['POST', '/key/sk-canary/regenerate', 'keys roll'],
  ['POST', '/key/update', 'keys update'],
  ['POST', '/key/delete', 'keys revoke'],
  ['GET', '/key/list', 'keys list'],
  ['POST', '/user/new', 'members create'],
  ['GET', '/user/info', 'members list'],
  ['POST', '/team/new', 'projects create'],
  ['POST', '/team/member_add', 'members create'],
  ['PATCH', '/organization/update', 'orgs update'],
  ['DELETE', '/organization/delete', 'orgs list'],
  ['POST', '/budget/new', 'keys update'],
  ['GET', '/spend/logs', 'requests list'],
  ['POST', '/model/new', 'models list'],
  ['GET', '/team/constructor', 'projects list'],
] as const) {
  t.test(`${method} ${path} names the command "${command}"`, async t => {
    const body = method === 'GET' ? {} : { body: JSON.stringify({ models: ['test'], key: 'sk-canary' }) }
    for (const authorization of ['Bearer sk-master-canary', `Bearer ${key}`]) {
      const headers = { authorization, 'content-type': 'application/json' }
      const answer = await fetch(gateway.url + path, { method, headers, ...body })
      const text = await answer.text()
      t.equal(answer.status, 404, text)
      t.match(text, `gatewayctl ${command}`)
      t.match(commands, `\n## ${command}`)
      t.notMatch(text, /canary/)
    }
  })
}

t.test(
  '/key/info tells a key of itself, admins of the keys of their organization, and the operator of all',
  async t => {
    const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'blue' })
    const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
    await command('members.add', { organization, email: 'boss@x.example', role: 'admin' })
    await command('members.add', { organization, email: 'dev@x.example', role: 'developer' })
    const made = (name: string, createdBy: string, more: object = {}) =>
      command<{ key: string }>('keys.create', { project, name, createdBy, ...more })
    const boss = (await made('boss', 'boss@x.example')).key
    const dev = (await made('dev', 'dev@x.example', { limit: '5', rpm: 60 })).key
    const ask = async (by: string, asked?: string) => {
      const answer = await gateway.get(`/key/info${asked === undefined ? '' : `?key=${asked}`}`, {
        authorization: `Bearer ${by}`,
      })
      return { status: answer.status, body: await json(answer) }
    }
    const own = await ask(dev)
    t.match(own, {
      status: 200,
      body: {
        key: sha256(dev),
        info: { key_alias: 'dev', key_name: `sk-...${dev.slice(-4)}`, spend: 0, max_budget: 5, rpm_limit: 60 },
      },
    })
    t.notOk(JSON.stringify(own).includes(dev))
    t.equal((await ask(dev, dev)).status, 200)
    t.equal((await ask(dev, boss)).status, 403)
    t.equal((await ask(dev, key)).status, 403)
    t.equal((await ask(dev, 'sk-nothing')).status, 403)
    t.match(await ask(boss, dev), { status: 200, body: { info: { key_alias: 'dev' } } })
    t.equal((await ask(boss, key)).status, 403, 'of another organization')
    t.match(await ask(gateway.token, dev), { status: 200, body: { info: { key_alias: 'dev' } } })
    t.match(await ask(gateway.token, sha256(dev)), {
      status: 200,
      body: { info: { key_alias: 'dev', key_name: null } },
    })
    t.equal((await ask(gateway.token, 'sk-nothing')).status, 404)
    t.equal((await ask(gateway.token)).status, 400)
    t.equal((await ask('sk-wrong', dev)).status, 401)
    t.equal((await gateway.get('/key/info', anonymous)).status, 401)
    const begun = await gateway.post('/v1/sessions', { customer: 'ann' }, { authorization: `Bearer ${dev}` })
    const { sessionToken } = (await begun.json()) as { sessionToken: string }
    for (const asked of [undefined, dev, sha256(dev)])
      t.equal((await ask(sessionToken, asked)).status, 403, 'a session')
    t.equal((await gateway.get('/v1/models', { authorization: `Bearer ${gateway.token}` })).status, 401)
  },
)

t.test('a saved change turns it off and on, in both forms', async t => {
  const path = 'config/gateway.yaml'
  const { readFile } = await import('node:fs/promises')
  const before = await readFile(gateway.configPath, 'utf8')
  const off = before.replace(/^compat:\n {2}litellm: true$/m, 'compat: {}')
  t.not(off, before)
  const reached = async () => [
    (await gateway.post('/chat/completions', chat)).status,
    (await gateway.get('/health/liveliness')).status,
    (await gateway.get('/v1/model/info')).status,
    (await gateway.get('/key/info')).status,
    (await gateway.post('/v1/chat/completions', chat, { ...anonymous, 'x-litellm-api-key': key })).status,
  ]
  await gateway.writeFile(path, off)
  t.equal((await gateway.admin('POST', '/reload')).status, 200)
  t.strictSame(await reached(), [404, 404, 404, 404, 401])
  const plain = await gateway.post('/v1/chat/completions', chat)
  t.equal(plain.headers.get('x-litellm-call-id'), null)
  await gateway.writeFile(path, before.replace(/^compat:\n {2}litellm: true$/m, 'compat: litellm'))
  t.equal((await gateway.admin('POST', '/reload')).status, 200)
  t.strictSame(await reached(), [200, 200, 200, 200, 200])
})
