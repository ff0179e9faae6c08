/** What comes in part or too slowly: usage, vectors, bodies; and what of a provider's words may be told on. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { timing } from '../helpers/figure.ts'
import { startGateway } from '../helpers/gateway.ts'
import { untilInFlight } from '../helpers/invariants.ts'
import { raw } from '../helpers/raw.ts'

/** For an answer of the provider, and for which a status is held. */
const LIMIT_MS = 5000

let answer: (res: ServerResponse, url: string) => void = () => {}
const server = createServer((req, res) => {
  req.resume()
  req.on('end', () => answer(res, req.url!))
})
await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
t.teardown(() => {
  server.closeAllConnections()
  server.close()
})
const { port } = server.address() as AddressInfo
const secret = 'canary+of/a==key'
const gateway = await startGateway(t, {
  providers: {
    q: {
      base_url: `http://127.0.0.1:${port}/v1`,
      auth: { scheme: 'query', parameter: 'key', secret },
      wires: { chat: 'openai.chat', embeddings: 'openai.embeddings' },
      timeouts: { total: `${LIMIT_MS}ms` },
      models: [
        { model: 'test', id: 'x', pricing: { prompt: '1', completion: '1' }, supports: ['streaming'] },
        { model: 'emb', id: 'e', pricing: { prompt: '1' } },
      ],
    },
  },
  models: [
    { id: 'test', name: 'test', family: 'f', input: ['text'], output: ['text'] },
    { id: 'emb', name: 'emb', family: 'f', input: ['text'], output: ['embedding'] },
  ],
  config: { server: { drain: '500ms', hold: `${LIMIT_MS}ms` } },
})
const tell = (value: unknown, status = 200) => {
  answer = res => {
    res.writeHead(status, { 'content-type': 'application/json' })
    res.end(JSON.stringify(value))
  }
}
const said = (usage: unknown) => ({
  id: 'x',
  choices: [{ index: 0, message: { role: 'assistant', content: 'four and more words' }, finish_reason: 'stop' }],
  usage,
})

t.test('C4 what a provider does not count is estimated', async t => {
  for (const usage of [{ completion_tokens: 3 }, { prompt_tokens: null, completion_tokens: 3 }, { prompt_tokens: 9 }]) {
    tell(said(usage))
    const { usage: told } = (await (await gateway.chat('a prompt of some length')).json()) as {
      usage: { prompt_tokens: number; completion_tokens: number; info?: string }
    }
    t.ok(told.prompt_tokens > 0 && told.completion_tokens > 0, JSON.stringify(usage))
    t.ok(told.info)
  }
  tell(said({ completion_tokens: 3, total_tokens: 50 }))
  t.match(await (await gateway.chat('hi')).json(), { usage: { prompt_tokens: 47, completion_tokens: 3 } })
})

t.test('an answer without one vector for each input is none', async t => {
  const vector = (index: number) => ({ object: 'embedding', index, embedding: [1, 2] })
  for (const [input, count] of [
    [['a', 'b'], 1],
    [['a'], 2],
    ['a', 2],
    [[[1], [2]], 1],
  ] as const) {
    tell({ object: 'list', data: Array.from({ length: count }, (_, index) => vector(index)), usage: {} })
    t.equal((await gateway.post('/v1/embeddings', { model: 'emb', input })).status, 502, JSON.stringify(input))
  }
})

t.test('no error, log line or row carries a secret or a prompt', async t => {
  const prompt = 'PROMPTCANARY'
  const leaks = (text: string) => text.includes(secret) || text.includes(encodeURIComponent(secret))
  for (const status of [400, 403, 500]) {
    answer = (res, url) => {
      const message = `cannot POST ${url}: ${prompt}`
      res.writeHead(status, { 'content-type': 'application/json' })
      res.end(JSON.stringify({ error: { message, code: `${message} ${secret}`, param: `${message} ${secret}` } }))
    }
    t.notOk(leaks(await (await gateway.chat(prompt)).text()), `${status}`)
  }
  t.notOk(leaks(gateway.stderr()))
  t.notMatch(gateway.stderr(), prompt)
  const db = new Database(`${gateway.dir}/data/gateway.db`, { readonly: true })
  const rows = JSON.stringify(db.prepare('SELECT * FROM requests').all())
  db.close()
  t.notOk(leaks(rows))
  t.notMatch(rows, prompt)
})

t.test('no answer carries a credential, however it is written, and in whatever part of it', async t => {
  const hexed = (char: string) => char.charCodeAt(0).toString(16)
  const written: Record<string, string> = {
    plain: secret,
    percent: encodeURIComponent(secret),
    'percent in small letters': encodeURIComponent(secret).toLowerCase(),
    basic: Buffer.from(`user:${secret}`).toString('base64'),
    base64: Buffer.from(secret).toString('base64'),
    base64url: Buffer.from(secret).toString('base64url'),
    html: secret.replace(/[+/=]/g, char => `&#x${hexed(char).toUpperCase()};`),
    json: secret.replace(/[+/=]/g, char => `\\u00${hexed(char)}`),
    'its first part': secret.slice(0, 13),
  }
  const shows = (text: string, form: string) => {
    const inner = form.slice(0, -2)
    for (let at = 0; at + 12 <= inner.length; at++) if (text.includes(inner.slice(at, at + 12))) return true
    return false
  }
  for (const [name, form] of Object.entries(written)) {
    const own = name === 'basic' ? form.slice(8) : form
    tell({ error: { message: `no: ${form}`, param: form } }, 400)
    t.notOk(shows(await (await gateway.chat('Hi')).text(), own), `${name}: an error`)
    const call = { id: form, type: 'function', function: { name: form, arguments: JSON.stringify({ a: form }) } }
    const message = { role: 'assistant', content: `It is ${form}.`, reasoning_content: form, tool_calls: [call] }
    tell({ id: 'x', system_fingerprint: form, choices: [{ index: 0, message, finish_reason: 'tool_calls' }] })
    const whole = await (await gateway.chat('Hi')).text()
    t.match(whole, 'It is ')
    t.notOk(shows(whole, own), `${name}: a whole answer`)
    const pieces = [form.slice(0, 7), form.slice(7), ' and ', ...form].map(content => ({ content }))
    const reasons = [form.slice(0, 9), form.slice(9)].map(reasoning_content => ({ reasoning_content }))
    const deltas = [...reasons, ...pieces]
    answer = res => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const delta of deltas) res.write(`data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta }] })}\n\n`)
      res.end(`data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`)
    }
    const streamed = await (
      await gateway.chat({ model: 'test', stream: true, messages: [{ role: 'user', content: 'Hi' }] })
    ).text()
    t.match(streamed, '" and "')
    const told = [...streamed.matchAll(/"(?:content|reasoning|reasoning_content)":"([^"]*)"/g)].map(match => match[1])
    t.notOk(shows(told.join(''), own), `${name}: a stream in pieces`)
  }
})

const body = '{"model":"test","stream":true,"messages":[{"role":"user","content":"Hi"}]}'
const head = (length: number) =>
  `POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer ${gateway.key}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`

t.test('the time for which a status is held, and that of the provider, begin when the request is here', async t => {
  // This is within the limits if they begin with the body's end, and beyond them if they begin with the head.
  answer = res =>
    void setTimeout(
      () => res.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}'),
      200,
    )
  const { status } = await raw(
    gateway.port,
    [head(body.length), body.slice(0, 9), { pauseMs: LIMIT_MS + 500 }, body.slice(9)],
    {
      responses: 1,
    },
  )
  t.equal(status, 400)
})

t.test('SD-02 a body that still comes is not waited for at the end', async t => {
  const slow = async (socket: Socket) => {
    socket.write(head(10_000_000))
    while (!socket.destroyed) {
      socket.write('x'.repeat(2000))
      await sleep(250)
    }
  }
  const pending = raw(gateway.port, slow, { timeoutMs: 2 ** 31 - 1 })
  await untilInFlight(gateway, 1)
  const start = performance.now()
  await gateway.kill()
  const value = performance.now() - start
  timing(t, { id: 'SD-02', what: 'an end while a body still comes', value, unit: 'ms', atMost: 4000 })
  const { status, body: text } = await pending
  t.equal(status, 503)
  t.match(text, /server_shutting_down/)
})
