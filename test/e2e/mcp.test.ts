/** `/mcp`: transport, versions, refusals, and the tools that call models, with clients of both eras. */
import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t from 'tap'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { callTool, rpc } from '../helpers/mcp.ts'
import { runs } from '../helpers/runs.ts'
import { scripted } from '../helpers/scripted.ts'
import { startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>

const folder = await mkdtemp(join(tmpdir(), 'uploads-'))
t.teardown(() => rm(folder, { recursive: true, force: true }))
const upstream = await startUpstream(t, { key: upstreamSecret })
const drawing = await scripted(t)
const gateway = await startGateway(t, {
  env: { UPLOAD_DIR: folder },
  models: [
    { id: 'test', name: 'Test', family: 'test', input: ['text'], output: ['text'], context_length: 128000 },
    { id: 'demo-image', name: 'Demo', family: 'demo', input: ['text'], output: ['image'] },
    { id: 'draws', name: 'Draws', family: 'demo', input: ['text'], output: ['text', 'image'] },
  ],
  providers: {
    a: { base_url: upstream.url('a'), models: [testMapping] },
    demo: {
      base_url: '$' + '{GATEWAY_DEMO_URL}',
      auth: { scheme: 'none' },
      wires: { images: 'openai.images', image_edits: 'openai.image-edits' },
      models: [{ model: 'demo-image', pricing: { per_image: { default: '0.01' } } }],
    },
    draws: { base_url: drawing.url, models: [{ model: 'draws', pricing: testMapping.pricing }] },
  },
  config: {
    mcp: { hosts: ['gateway.test'], origins: ['https://app.example'], nano_banana: 'demo-image' },
    endpoints: { mcp: { ratelimit: { rpm: 10_000 } }, chat: { ratelimit: { rpm: 10_000 } } },
  },
})
const command = commandsOf(gateway)
const ping = { jsonrpc: '2.0', id: 7, method: 'ping' }
const MODERN = '2026-07-28'
const meta = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientCapabilities': {},
}

t.test('X1 every refusal has its status, its code and the id once that is known', async t => {
  const call = (params: unknown) => ({ jsonrpc: '2.0', id: 7, method: 'tools/call', params })
  const modern = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/list' }
  const list = { jsonrpc: '2.0', id: 7, method: 'tools/list', params: { _meta: meta } }
  type Row = [says: string, message: unknown, headers: Record<string, string | null>, status: number, code: number]
  const rows: Row[] = [
    ['a foreign origin', ping, { origin: 'https://evil.example' }, 403, -32000],
    ['the origin null', ping, { origin: 'null' }, 403, -32000],
    ['our host by another scheme', ping, { origin: gateway.url.replace('http', 'https') }, 403, -32000],
    ['no key', ping, { authorization: null, 'x-api-key': '' }, 401, -32001],
    ['a wrong key', ping, { authorization: 'Bearer mgw_nobody' }, 401, -32001],
    ['two keys', ping, { authorization: `Bearer ${gateway.key}`, 'x-api-key': 'other' }, 400, -32001],
    ['another content type', 'ping', { 'content-type': 'text/plain' }, 415, -32000],
    ['no JSON accepted', ping, { accept: 'text/html' }, 406, -32000],
    ['no JSON sent', '{', {}, 400, -32700],
    ['nothing sent', '', {}, 400, -32700],
    ['what nests too deep', `${'['.repeat(200)}${']'.repeat(200)}`, {}, 400, -32600],
    ['what is too large', { ...ping, params: { a: 'x'.repeat(4 * 1024 * 1024) } }, {}, 413, -32000],
    ['a batch', [ping], {}, 400, -32600],
    ['an empty batch', [], {}, 400, -32600],
    ['a text', '"ping"', {}, 400, -32600],
    ['another JSON-RPC', { id: 7, method: 'ping' }, {}, 400, -32600],
    ['a list of parameters', { ...ping, params: [] }, {}, 400, -32600],
    ['no method', { jsonrpc: '2.0', id: 7 }, {}, 400, -32600],
    ['an id of null', { ...ping, id: null }, {}, 400, -32600],
    ['a fraction as id', { ...ping, id: 1.5 }, {}, 400, -32600],
    ['an unsafe integer as id', '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', {}, 400, -32600],
    ['an unknown version', ping, { 'mcp-protocol-version': '1999-01-01' }, 400, -32022],
    ['a call without a name', call({}), {}, 200, -32602],
    ['arguments that are a list', call({ name: 'chat', arguments: [] }), {}, 200, -32602],
    ['an unknown tool', call({ name: 'nope' }), {}, 200, -32602],
    ['an unknown method', { ...ping, method: 'resources/list' }, {}, 200, -32601],
    [
      'initialize without a client',
      { ...ping, method: 'initialize', params: { protocolVersion: '1' } },
      {},
      200,
      -32602,
    ],
    ['a modern ping', { ...ping, params: { _meta: meta } }, { ...modern, 'mcp-method': 'ping' }, 404, -32601],
    ['two versions', list, { ...modern, 'mcp-protocol-version': '2025-11-25' }, 400, -32020],
    [
      'no capabilities',
      { ...list, params: { _meta: { ...meta, 'io.modelcontextprotocol/clientCapabilities': 1 } } },
      modern,
      400,
      -32602,
    ],
    ['no meta', { ...list, params: {} }, modern, 400, -32602],
    ['no version header', list, {}, 400, -32020],
    ['another method header', list, { ...modern, 'mcp-method': 'ping' }, 400, -32020],
    [
      'another name header',
      call({ name: 'chat', _meta: meta }),
      { ...modern, 'mcp-method': 'tools/call', 'mcp-name': 'x' },
      400,
      -32020,
    ],
  ]
  for (const [says, message, headers, status, code] of rows) {
    const response = await rpc(gateway, message, headers)
    const body = (await response.json()) as { id: unknown; error: { code: number; message: string; data?: Tree } }
    t.equal(response.status, status, says)
    t.equal(body.error?.code, code, `${says}: ${body.error?.message}`)
    t.notMatch(body.error.message, /MCP error|zod|invalid_type/, `${says} in plain words`)
    if (code === -32022) t.match(body.error.data, { supported: [MODERN, '2025-11-25'], requested: '1999-01-01' })
  }
})

t.test('a host that is no name of ours is refused first, and the challenge names the host that was used', async t => {
  const { request } = await import('node:http')
  const statusOf = (host: string, method: string, authorization?: string) =>
    new Promise<[number, string]>((resolve, reject) => {
      const headers = { host, 'content-type': 'application/json', ...(authorization && { authorization }) }
      const req = request({ port: gateway.port, host: '127.0.0.1', path: '/mcp', method, headers }, res => {
        res.resume().once('end', () => resolve([res.statusCode!, res.headers['www-authenticate'] ?? '']))
      })
      req.once('error', reject).end(method === 'POST' ? JSON.stringify(ping) : undefined)
    })
  for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS']) {
    t.equal((await statusOf('evil.example', method))[0], 403, method)
  }
  const [status, challenge] = await statusOf('gateway.test', 'POST')
  t.equal(status, 401)
  const metadata = 'http://gateway.test/.well-known/oauth-protected-resource/mcp'
  t.equal(challenge, `Bearer resource_metadata="${metadata}", scope="mcp:tools usage:read"`)
  t.match(
    (await statusOf(`localhost:${gateway.port}`, 'POST', 'Bearer no'))[1],
    /error="invalid_token", error_description=/,
  )
  t.equal((await statusOf('gateway.test', 'POST', `Bearer ${gateway.key}`))[0], 200)
})

t.test('what needs no key: information, a page, and the methods that there are', async t => {
  const plain = async (method: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${gateway.url}/mcp`, { method, headers })
    return { response, text: await response.text() }
  }
  const facts = await plain('GET')
  t.match(JSON.parse(facts.text), {
    name: 'model-gateway',
    protocolVersion: '2025-11-25',
    transport: 'streamable-http',
    endpoint: `${gateway.url}/mcp`,
    capabilities: { tools: {} },
  })
  t.equal(facts.response.headers.get('vary'), 'Accept, Sec-Fetch-Mode')
  t.equal((await plain('HEAD')).text, '')
  const page = await plain('GET', { accept: 'text/html,*/*' })
  t.match(page.response.headers.get('content-type'), 'text/html')
  t.match(page.response.headers.get('content-security-policy'), /default-src 'none'.*frame-ancestors 'none'/)
  t.match(page.text, `claude mcp add --transport http gateway ${gateway.url}/mcp`)
  t.notMatch(page.text, /<script|mgw_/)
  const stream = await plain('GET', { accept: 'text/event-stream', 'mcp-protocol-version': '2025-11-25' })
  t.strictSame([stream.response.status, stream.response.headers.get('allow')], [405, 'POST'])
  for (const method of ['DELETE', 'PUT']) {
    const { response } = await plain(method)
    t.strictSame([response.status, response.headers.get('allow')], [405, 'GET, POST, OPTIONS'], method)
  }
  const preflight = await plain('OPTIONS', { origin: 'https://app.example', 'access-control-request-method': 'POST' })
  t.equal(preflight.response.status, 204)
  t.equal(preflight.response.headers.get('access-control-allow-origin'), 'https://app.example')
  t.equal(preflight.response.headers.get('access-control-allow-credentials'), null)
  t.match(preflight.response.headers.get('access-control-allow-headers'), 'mcp-protocol-version')
  t.equal((await plain('OPTIONS', { origin: 'https://evil.example' })).response.status, 403)
})

t.test('notifications and responses are taken note of, and answers say what is left of the limit', async t => {
  for (const message of [
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } },
    { jsonrpc: '2.0', id: 1, result: {} },
  ]) {
    const response = await rpc(gateway, message)
    t.strictSame([response.status, await response.text()], [202, ''])
  }
  const response = await rpc(gateway, ping)
  t.match(await response.json(), { id: 7, result: {} })
  t.ok(response.headers.get('ratelimit'))
  t.ok(response.headers.get('x-request-id'))
})

t.test(
  'each version is agreed on as it is asked for, and an unknown one becomes the newest that has a handshake',
  async t => {
    for (const version of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', MODERN, '1999-01-01']) {
      const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: 'x', version: '1' } }
      const { result } = (await (await rpc(gateway, { ...ping, method: 'initialize', params })).json()) as {
        result: Tree
      }
      t.equal(result.protocolVersion, version < '2000' || version === MODERN ? '2025-11-25' : version)
      t.match(result, { capabilities: { tools: {} }, serverInfo: { name: 'model-gateway' } })
    }
  },
)

t.test('the SDK of the first era calls a tool, and its own schemas accept all answers', async t => {
  const client = new Client({ name: 'test', version: '1' })
  const requestInit = { headers: { authorization: `Bearer ${gateway.key}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit }))
  const { tools } = await client.listTools()
  t.strictSame(
    tools.filter(({ annotations }) => annotations?.readOnlyHint === false).map(({ name }) => name),
    ['chat', 'generate-image', 'generate-nano-banana'],
  )
  const listed = await client.callTool({ name: 'list-models', arguments: { limit: 1 } })
  t.match(listed.structuredContent, {
    models: [{ id: 'test', pricing: { input: '1', output: '2' } }],
    total: 3,
    hasMore: true,
  })
  for (const name of ['get-account', 'get-usage', 'list-image-models']) {
    t.ok((await client.callTool({ name, arguments: {} })).structuredContent, name)
  }
  const ranked = await client.callTool({ name: 'get-usage-breakdown', arguments: { group_by: 'app' } })
  t.match(ranked.structuredContent, { groupBy: 'app', sortBy: 'requests' })
  const said = await client.callTool({
    name: 'chat',
    arguments: { model: 'test', messages: [{ role: 'user', content: 'hi' }] },
  })
  t.match(said.content, [{ type: 'text', text: 'echo: hi' }])
  await client.close()
})

t.test('the SDK of the second era discovers the server without a handshake', async t => {
  const client = new ModernClient({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  const requestInit = { headers: { authorization: `Bearer ${gateway.key}` } }
  await client.connect(new ModernTransport(new URL(`${gateway.url}/mcp`), { requestInit }))
  const images = await client.callTool({ name: 'list-image-models', arguments: {} })
  t.match(images.structuredContent, { models: [{ id: 'demo-image', imagePriceUsd: '0.01' }], total: 2 })
  await client.close()
})

t.test('chat goes through the chain of chat: its money, its attribution, its refusals', async t => {
  const books = openBooks(t, gateway)
  await upstream.script('a', [
    { text: 'hello', usage: { prompt: 10, completion: 4 } },
    { text: 'cut', finish: 'length' },
  ])
  const messages = [{ role: 'user', content: 'hi' }]
  const said = await callTool(gateway, 'chat', { model: 'test', messages }, { 'x-source': 'my-app' })
  t.strictSame(said.content, [
    { type: 'text', text: 'hello' },
    { type: 'text', text: 'Model: a/test · Tokens: 10 prompt, 4 completion, 14 total · Cost: 0.000018 USD' },
  ])
  t.type(said._meta?.['model-gateway/requestId'], 'string')
  t.notOk('structuredContent' in said)
  const cut = await callTool(gateway, 'chat', { model: 'test', messages, max_tokens: 5 })
  t.match(cut.content[1]?.text, /· Finish: length$/)
  await upstream.reset()
  const unknown = await callTool(gateway, 'chat', { model: 'nope', messages })
  t.match(unknown, { isError: true, content: [{ text: /^Error: 404 - The model "nope" does not exist/ }] })
  const { endpoint, source } = books.prepare('SELECT * FROM requests ORDER BY id DESC LIMIT 1 OFFSET 1').get() as Tree
  t.strictSame([endpoint, source], ['chat', null])
  t.equal(books.prepare("SELECT count(*) FROM requests WHERE source = 'my-app'").pluck().get(), 1)
  t.match(await gateway.metrics(), /gateway_mcp_calls_total\{tool="chat",outcome="ok"\} \d/)
})

t.test('X2 keys without money, of other kinds and of archived projects get what is theirs', async t => {
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'poor' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
  const keyOf = async (more: Tree = {}) => {
    const { key } = await command<{ key: string }>('keys.create', { project, name: 'k', ...more })
    return { authorization: `Bearer ${key}` }
  }
  const as = await keyOf()
  const question = { model: 'test', messages: [{ role: 'user', content: 'hi' }] }
  const spent = await callTool(gateway, 'chat', question, as)
  t.match(spent, { isError: true, content: [{ text: /^Error: 402 - / }] })
  t.notOk((await callTool(gateway, 'list-models', {}, as)).isError, 'and reads all the same')
  t.equal((await rpc(gateway, ping, await keyOf({ kind: 'publishable' }))).status, 403)

  await command('credits.add', { organization, amount: '1' })
  const begun = await gateway.post('/v1/sessions', { customer: 'Ada' }, as)
  const { sessionToken } = (await begun.json()) as { sessionToken: string }
  const session = { authorization: `Bearer ${sessionToken}` }
  t.match((await callTool(gateway, 'chat', question, session)).content, [{ text: 'echo: hi' }])

  const member = { organization, email: 'gone@a.example', role: 'developer' }
  await command('members.add', member)
  const theirs = await keyOf({ createdBy: member.email })
  t.equal((await rpc(gateway, ping, theirs)).status, 200)
  await command('members.remove', { organization, member: member.email })
  const refused = await rpc(gateway, ping, theirs)
  t.strictSame([refused.status, ((await refused.json()) as { error: Tree }).error.code], [403, -32001])

  await command('projects.archive', { project })
  const archived = await rpc(gateway, ping, as)
  t.strictSame([archived.status, ((await archived.json()) as { error: Tree }).error.code], [410, -32001])
})

t.test('wrong arguments are errors of the tool, which name where they are wrong', async t => {
  const rows: [tool: string, args: Tree, says: RegExp][] = [
    ['chat', { model: 'test' }, /^Invalid arguments for chat: messages is required$/],
    [
      'chat',
      { model: 'test', messages: [{ role: 'tool', content: 'x' }] },
      /messages\[0\]\.role must be one of "user"/,
    ],
    ['chat', { model: 'test', messages: [], more: 1 }, /^Invalid arguments for chat: more is unknown; leave it out$/],
    ['list-models', { 'a b': 1 }, /a b is unknown/],
    ['get-account', { more: 1 }, /more is unknown/],
    ['generate-image', { prompt: 'x', n: 5 }, /n must be <= 4/],
    ['list-models', { limit: 0 }, /limit must be >= 1/],
    ['generate-nano-banana', { prompt: 'x', filename: '../x.png' }, /filename must be a name without path separators/],
    ['generate-nano-banana', { prompt: 'x', filename: '.x.png' }, /filename must not begin with a dot/],
    ['generate-nano-banana', { prompt: 'x', filename: 'é'.repeat(150) }, /filename must be at most 200 bytes/],
  ]
  for (const [tool, args, says] of rows) {
    const told = await callTool(gateway, tool, args)
    t.equal(told.isError, true)
    t.match(told.content[0]?.text, says, JSON.stringify(args).slice(0, 80))
  }
})

t.test('images come inline, and are saved where the operator says, never over another file', async t => {
  const image = await callTool(gateway, 'generate-image', { model: 'demo-image', prompt: 'a cat', n: 2 })
  t.match(image.content, [
    { type: 'image', mimeType: 'image/png' },
    { type: 'image', mimeType: 'image/png' },
  ])
  const saved = await callTool(gateway, 'generate-nano-banana', { prompt: 'a cat', filename: 'cat' })
  t.strictSame(saved.content[0], { type: 'text', text: 'Saved: cat.png' }, 'the folder is not told')
  const [org = ''] = await readdir(folder)
  const own = join(folder, org)
  t.strictSame(await readFile(join(own, 'cat.png')), Buffer.from(saved.content[1]?.data ?? '', 'base64'))
  t.equal((await stat(join(own, 'cat.png'))).mode & 0o777, 0o640)
  await symlink('/etc/passwd', join(own, 'link.png'))
  for (const filename of ['cat.png', 'cat', 'link.png']) {
    const again = await callTool(gateway, 'generate-nano-banana', { prompt: 'a cat', filename })
    t.match(again, { isError: true, content: [{ text: /filename is the name of a file that is there already/ }] })
  }
  await writeFile(join(folder, 'dog.png'), '')
  const dog = await callTool(gateway, 'generate-nano-banana', { prompt: 'a dog', filename: 'dog.png' })
  t.match(dog.content[0]?.text, /^Saved: dog\.png$/, 'files of others are not told')
  await callTool(gateway, 'generate-nano-banana', { prompt: 'a dog', aspect_ratio: '16:9' })
  t.match((await readdir(own)).sort(), ['cat.png', 'dog.png', 'link.png', /^nano-banana-\d+\.png$/])
})

t.test('images of a chat come as blocks behind its text', async t => {
  const url = 'data:image/png;base64,iVBORw0KGgo='
  const message = {
    ...{ role: 'assistant', content: 'Here it is:' },
    images: [url, 'https://files.example/b.png'].map(url => ({ type: 'image_url', image_url: { url } })),
  }
  const usage = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 }
  drawing.answers({
    json: { id: 'c', object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }], usage },
  })
  const messages = [{ role: 'user', content: 'Draw a cat.' }]
  const { content } = await callTool(gateway, 'chat', { model: 'draws', messages })
  t.match(content, [
    { type: 'text', text: 'Here it is:' },
    { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
    { type: 'text', text: 'https://files.example/b.png' },
    { type: 'text', text: /^Model: draws/ },
  ])
})

t.test('X4 interleaved calls under one id each get their own answer', async t => {
  for (let left = runs(1000); left > 0; left -= 50) {
    const texts = Array.from({ length: 50 }, (_, index) => `number ${left - index}`)
    const answers = await Promise.all(
      texts.map(content => callTool(gateway, 'chat', { model: 'test', messages: [{ role: 'user', content }] })),
    )
    t.strictSame(
      answers.map(({ content }) => content[0]?.text),
      texts.map(text => `echo: ${text}`),
    )
  }
})

t.test('X15 a client that leaves during a generation ends it at the provider, and pays what was delivered', async t => {
  const books = openBooks(t, gateway)
  await upstream.reset()
  await upstream.script('a', [{ text: 'one two three four', hold: 2, usage: { prompt: 10 } }])
  const client = new AbortController()
  const params = { name: 'chat', arguments: { model: 'test', messages: [{ role: 'user', content: 'hi' }] } }
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
  const headers = { accept: 'application/json', 'x-source': 'leaves' }
  const answer = gateway.post('/mcp', message, headers, client.signal)
  await upstream.record('a', { requests: 1 })
  client.abort()
  await t.rejects(answer)
  const [entry] = await upstream.record('a', { ended: 1 })
  t.equal(entry!.outcome, 'aborted')
  const row = () => books.prepare("SELECT * FROM requests WHERE source = 'leaves'").get() as Tree | undefined
  while (row() === undefined) await setImmediate()
  t.match(row(), { endpoint: 'chat', outcome: 'aborted', error_code: 'request_cancelled' })
  await upstream.reset()
})
