/** `/mcp` for clients of the older HTTP+SSE transport: answers, bounds, and whose a stream is. */
import { Client as NewerClient, SSEClientTransport as NewerTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { rpc } from '../helpers/mcp.ts'
import { plainGateway } from './plain.ts'

const { gateway, upstream } = await plainGateway()
const command = commandsOf(gateway)
const ping = { jsonrpc: '2.0', id: 7, method: 'ping' }
let made = 0

async function newKey() {
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: `streams-${++made}` })
  await command('credits.add', { organization, amount: '1' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
  const { key } = await command<{ key: string }>('keys.create', { project, name: 'k' })
  return { authorization: `Bearer ${key}` }
}

/** Opens a stream; `read` resolves with what came until it holds `text`. */
async function open(headers: Record<string, string>, { url } = gateway as { url: string }) {
  const abort = new AbortController()
  const response = await fetch(`${url}/mcp`, {
    headers: { accept: 'text/event-stream', ...headers },
    signal: abort.signal,
  })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  const read = async (text: string) => {
    let said = ''
    while (!said.includes(text)) {
      const { done, value } = await reader.read()
      if (done) throw new Error(`the stream ended after ${said}`)
      said += value
    }
    return said
  }
  return { response, read, close: () => abort.abort() }
}

const post = (path: string, message: unknown, headers: Record<string, string>) =>
  gateway.post(path, message, { accept: 'text/plain', ...headers })

t.test("the SDK's client of the older transport lists tools and calls a model", async t => {
  const client = new Client({ name: 'test', version: '1' })
  const headers = await newKey()
  await client.connect(
    new SSEClientTransport(new URL(`${gateway.url}/mcp`), {
      requestInit: { headers },
      eventSourceInit: {
        fetch: (url, init) => fetch(url, { ...init, headers: { ...headers, accept: 'text/event-stream' } }),
      },
    }),
  )
  t.equal((await client.listTools()).tools.length, 8)
  const calls = ['one', 'two', 'three'].map(content =>
    client.callTool({ name: 'chat', arguments: { model: 'test', messages: [{ role: 'user', content }] } }),
  )
  t.match(await Promise.all(calls), [
    { content: [{ text: 'echo: one' }] },
    { content: [{ text: 'echo: two' }] },
    { content: [{ text: 'echo: three' }] },
  ])
  await client.close()
})

t.test("the client of the SDK's second major version uses the older transport too", async t => {
  const client = new NewerClient({ name: 'test', version: '1' })
  const requestInit = { headers: await newKey() }
  await client.connect(new NewerTransport(new URL(`${gateway.url}/mcp`), { requestInit }))
  const { structuredContent } = await client.callTool({ name: 'get-account', arguments: {} })
  t.match(structuredContent, { role: 'owner' })
  await client.close()
})

t.test('X17 a stream names its address, and takes the answers to what its own key posts there', async t => {
  const key = await newKey()
  const { response, read, close } = await open(key)
  t.match(response.headers.get('content-type'), 'text/event-stream')
  t.equal(response.headers.get('cache-control'), 'no-cache, no-transform')
  const said = await read('\n\n')
  const [, path = ''] = /^event: endpoint\ndata: (\/mcp\?session=[\w-]{32})\n\n$/.exec(said) ?? []
  t.ok(path, said)
  t.ok(path.endsWith(response.headers.get('mcp-session-id') ?? 'none'))
  const answer = await post(path, ping, key)
  t.strictSame([answer.status, await answer.text()], [202, ''])
  t.match(await read('\n\n'), /^event: message\ndata: \{.*"id":7.*\}\n\n$/)
  const note = await post(path, { jsonrpc: '2.0', method: 'notifications/initialized' }, key)
  t.equal(note.status, 202)
  const rows: [says: string, path: string, message: unknown, headers: Record<string, string>, status: number][] = [
    ['a session that nobody has', '/mcp?session=nope', ping, key, 404],
    ['another key', path, ping, await newKey(), 403],
    ['no key', path, ping, { authorization: '' }, 401],
    ['a batch', path, [ping], key, 400],
  ]
  for (const [says, at, message, headers, status] of rows) {
    const refused = await post(at, message, headers)
    t.equal(refused.status, status, says)
    t.match(await refused.json(), { jsonrpc: '2.0', error: { code: Number, message: String } }, says)
  }
  close()
  let { status } = await post(path, ping, key)
  while (status === 202) ({ status } = await post(path, ping, key))
  t.equal(status, 404, 'it has ended with its connection')
  await upstream.reset()
  const args = { model: 'test', messages: [{ role: 'user', content: 'hi' }] }
  const call = { ...ping, method: 'tools/call', params: { name: 'chat', arguments: args } }
  const late = await post(path, call, key)
  t.equal(late.status, 404)
  t.match(await late.text(), /another node has it\. Use Streamable HTTP/)
  t.same(await upstream.record('a'), [], 'nothing is spent')
})

t.test('a key has as many streams as `mcp.streams` says, and one that closes makes room', async t => {
  const key = await newKey()
  t.equal((await rpc(gateway, ping, key)).status, 200)
  const streams = await Promise.all(Array.from({ length: 3 }, () => open(key)))
  t.ok(streams.every(({ response }) => response.status === 200))
  const refused = await open(key)
  t.equal(refused.response.status, 429)
  t.match(await refused.read('}}'), /"code":-32000,"message":"Too many streams are open: a key may have 3/)
  streams.pop()?.close()
  let next = await open(key)
  while (next.response.status === 429) next = await open(key)
  t.equal(next.response.status, 200)
  for (const { close } of [...streams, next]) close()
  const bare = await fetch(`${gateway.url}/mcp`, { headers: { accept: 'text/event-stream' } })
  t.equal(bare.status, 401)
  t.ok(bare.headers.get('www-authenticate'))
})

t.test('an end user cannot post to the stream of another one, though one key began both sessions', async t => {
  const key = await newKey()
  const sessionOf = async (customer: string) => {
    const { sessionToken } = (await (await gateway.post('/v1/sessions', { customer }, key)).json()) as Record<
      string,
      string
    >
    return { authorization: `Bearer ${sessionToken}` }
  }
  const [ada, bob] = [await sessionOf('Ada'), await sessionOf('Bob')]
  const { response, close } = await open(ada)
  const path = `/mcp?session=${response.headers.get('mcp-session-id')}`
  t.strictSame(
    [(await post(path, ping, ada)).status, (await post(path, ping, bob)).status, (await post(path, ping, key)).status],
    [202, 403, 403],
  )
  close()
})

t.test('a drain ends streams at once, and waits for none', async t => {
  const own = await startGateway(t, {
    providers: { a: { base_url: upstream.url('a') } },
    config: { server: { drain: '1h' } },
  })
  const { read } = await open({ authorization: `Bearer ${own.key}` }, own)
  await read('\n\n')
  const exit = own.kill('SIGTERM')
  await t.rejects(read('never'), /the stream ended/)
  t.equal(await exit, 0)
})
