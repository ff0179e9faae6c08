/** What an operation is made of: a row of the table, an endpoint and a wire, all of which stand in this file. */

import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { WebSocket } from 'ws'
import { withCleanup } from '../../src/app/cleanup.ts'
import { createComponents, listenerOf } from '../../src/app/components.ts'
import { Registry } from '../../src/app/registry.ts'
import { json } from '../../src/codecs/json.ts'
import { loadGateway } from '../../src/config/load.ts'
import type { Codec } from '../../src/core/codec.ts'
import type { Endpoint } from '../../src/core/endpoint.ts'
import type { Event } from '../../src/core/event.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Price } from '../../src/core/money.ts'
import type { Operation } from '../../src/core/operation.ts'
import { value } from '../../src/core/reply.ts'
import type { Translator } from '../../src/core/translator.ts'
import type { Decoder, Frame } from '../../src/core/wire.ts'
import { Form, type Upload } from '../../src/lib/body.ts'
import { errorBody, errors } from '../../src/lib/error.ts'
import { writeFiles } from '../config/kit.ts'

interface EchoRequest {
  readonly model: string
  readonly text: string
  readonly file?: Upload
  readonly stream: boolean
}

/** The row of the table. */
const operation = {
  name: 'echo',
  impliedBy: () => false,
  isPriced: ({ rates }: Price) => rates.prompt !== undefined,
  requirements: [
    {
      param: 'text',
      what: 'shouting',
      needed: ({ text }: EchoRequest) => text === text.toUpperCase(),
      met: () => false,
    },
  ],
  promptSize: ({ text }: EchoRequest) => text.length,
  tuning: {},
} as unknown as Operation

const codec = {
  wire: 'echo',
  decode(body: unknown): EchoRequest {
    if (!(body instanceof Form)) return body as EchoRequest
    const [model = '', text = ''] = ['model', 'text'].map(name => body.texts.get(name)?.[0])
    return { model, text, file: body.files.get('file')![0]!, stream: false }
  },
  encoder(ex: Exchange) {
    let type = 'application/json'
    let said = ''
    return {
      get contentType() {
        return type
      },
      headers: () => ['x-served-by', ex.target!.provider.id],
      write(batch: readonly Event[]) {
        const bytes: Buffer[] = []
        for (const event of batch) {
          if (event.type === 'result') said = JSON.stringify(event.value)
          if (event.type !== 'bytes') continue
          type = event.contentType ?? type
          bytes.push(event.bytes)
        }
        return bytes.length > 0 ? Buffer.concat(bytes) : undefined
      },
      end: () => said,
      fail: () => undefined,
    }
  },
  error: errorBody,
} as unknown as Codec

const row = {
  name: 'echo',
  chain: 'inference',
  operation,
  codec,
  serve: 'upstream',
  bodyLimit: 64 * 1024 * 1024,
} as const
const endpoints: Endpoint[] = [
  { ...row, method: 'POST', path: '/v1/echo' },
  { ...row, method: 'PUT', path: '/v1/echo', body: ['multipart', 'json'] },
  {
    ...{ name: 'echo-reads', method: 'GET', path: '/v1/echo/{id}', chain: 'local', codec: json, bodyLimit: 0 },
    body: 'none',
    serve: ex => Promise.resolve(value({ id: ex.http.params.id, query: ex.http.query })),
  },
  {
    ...{ name: 'echo-socket', method: 'GET', path: '/v1/echo-socket', chain: 'local', codec: json, bodyLimit: 0 },
    body: 'none',
    upgrade: true,
    check(ex) {
      if (!ex.http.upgrade) throw errors.badRequest('ask for a WebSocket')
    },
    async serve(ex) {
      if (!ex.caller.principal) throw errors.noCredentials()
      const socket = ex.http.upgrade!({ limit: 1000, protocol: 'echo' })
      const ended = new Promise<void>(resolve => {
        ex.signal.listen(() => socket.close(1001, 'draining'))
        socket.open({
          message: text => socket.send(`${text} from ${ex.caller.principal!.orgName}`),
          pinged: () => undefined,
          pong: () => undefined,
          read: () => undefined,
          drained: () => undefined,
          closed: () => resolve(),
        })
      })
      return { status: 101, headers: [], events: until(ended) }
    },
  },
]
async function* until(ended: Promise<void>): AsyncGenerator<readonly Event[]> {
  await ended
  yield []
}

/** One whole JSON answer, or bytes as they come. */
function reads(toEvents: (frame: Frame) => Event[]): Decoder {
  return { done: false, frame: toEvents, end: () => [] }
}
const usage: Event = { type: 'usage', usage: { prompt: 4 } }
const wire = {
  op: 'echo',
  wire: 'acme.echo',
  encode({ text, file }: EchoRequest) {
    if (file) {
      const part = { name: 'file', filename: `a.${file.extension}`, contentType: 'image/png', pieces: file.pieces }
      return { path: '/upload', body: { text, tags: ['a', 'b'] }, files: [part] }
    }
    if (text.startsWith('get ')) return { method: 'GET', path: `/pictures?of=${text.slice(4)}`, body: {} }
    return { path: '/echo', body: { text } }
  },
  decoder: () => reads(({ data }) => [usage, { type: 'result', value: JSON.parse(data) as unknown }]),
  bytes: {
    types: ['image/'],
    decoder(contentType: string) {
      let told = false
      return reads(({ bytes }) => {
        const first = told ? {} : { contentType }
        told = true
        return [{ type: 'bytes', bytes: bytes!, ...first }]
      })
    },
  },
  error: () => errorOf(),
} as unknown as Translator
const errorOf = (): never => {
  throw new Error('the provider refuses nothing here')
}

interface Seen {
  readonly method: string
  readonly path: string
  readonly type: string | undefined
  readonly length: string | undefined
  readonly body: Buffer
}

const PICTURE = randomBytes(24 * 1024 * 1024)

/** A provider that notes what it gets; `sent` counts the bytes of a picture that left it. */
async function provider() {
  const seen: Seen[] = []
  const sent = { bytes: 0, waits: 0 }
  const serve = async (req: IncomingMessage, res: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const { method = '', url: path = '', headers } = req
    const body = Buffer.concat(chunks)
    seen.push({ method, path, type: headers['content-type'], length: headers['content-length'], body })
    if (method !== 'GET') {
      res.setHeader('content-type', 'application/json')
      res.end(JSON.stringify({ got: body.length }))
      return
    }
    res.setHeader('content-type', 'image/png')
    for (let at = 0; at < PICTURE.length; at += 64 * 1024) {
      const goesOn = res.write(PICTURE.subarray(at, at + 64 * 1024))
      sent.bytes = at
      if (goesOn) continue
      sent.waits++
      await once(res, 'drain')
    }
    res.end()
  }
  const server = createServer((req, res) => void serve(req, res)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { seen, sent, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` }
}

const { seen, sent, url } = await provider()
const folder = mkdtempSync(join(tmpdir(), 'kernel-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const config = writeFiles(folder, {
  'config/gateway.yaml': `server: { listen: 127.0.0.1:0 }
stores: { sqlite: ../gateway.db }
catalog: { models: ./models.d, providers: ../providers.d }
chains:
  inference: [admission, auth, ratelimit, cache, route, billing, translate, telemetry]
  local: [auth: { optional: true }]
`,
  'config/models.d/acme.yaml':
    'models: [{ id: acme-echo, name: Echo, family: acme, input: [text], output: [text], operations: [echo] }]\n',
  'providers.d/acme.yaml': `provider: acme
name: Acme
base_url: ${url}
auth: { scheme: none }
wires: { echo: acme.echo }
models: [{ model: acme-echo, pricing: { prompt: "1000" } }]
`,
})
const silent = { debug() {}, info() {}, warn() {}, error() {} }

const registry = new Registry({ operations: [operation], endpoints })
registry.wires.set(wire.wire, wire)

/** A gateway with one more operation, endpoint and wire. */
const gateway = await withCleanup(async cleanup => {
  t.teardown(() => cleanup.close())
  const { value: file } = await loadGateway(config, { env: {} })
  const components = await createComponents(file, { config, env: {}, log: silent, registry }, cleanup)
  await components.manager.start()
  const listener = listenerOf(components)
  cleanup.add(() => listener.drain({ delay: 0, drain: 0 }))
  await listener.listen()
  const { key } = (await components.stores.accounts.bootstrap())!
  return { url: `http://${listener.address}`, key, stores: components.stores }
})
const call = (method: string, path: string, body?: string | FormData, headers: object = {}) =>
  fetch(`${gateway.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${gateway.key}`, ...headers },
    ...(body !== undefined && { body }),
  })
const sendJson = (text: string, more: object = {}) =>
  call('POST', '/v1/echo', JSON.stringify({ model: 'acme-echo', text, ...more }), {
    'content-type': 'application/json',
  })
const bodyOf = async (answer: Response) => (await answer.json()) as Record<string, unknown>

t.test('an operation is a row, an endpoint and a wire: it is routed, checked and charged', async t => {
  const answer = await sendJson('hello')
  t.strictSame([answer.status, await bodyOf(answer)], [200, { got: 16 }])
  t.equal(answer.headers.get('x-served-by'), 'acme', 'an encoder adds headers')
  t.match(seen.at(-1), { method: 'POST', path: '/v1/echo', type: 'application/json' })
  const refused = await sendJson('HELLO')
  t.match(await bodyOf(refused), { error: { param: 'text', code: 'model_not_supported' } }, 'its own requirement')
  const chat = JSON.stringify({ model: 'acme-echo', messages: [{ role: 'user', content: 'Hi' }] })
  const other = await call('POST', '/v1/chat/completions', chat, { 'content-type': 'application/json' })
  t.match(await bodyOf(other), { error: { message: /ask for it at \/v1\/echo\.$/ } }, 'its model serves nothing else')
  const totals = () => gateway.stores.usage.totals({ from: 0, to: Date.now() + 3_600_000 })
  // A refusal is on its way before its row is kept.
  while ((await totals()).requests < 3) await turn()
  const { requests, cost } = await totals()
  // Four tokens at 1000 USD a million.
  t.strictSame([requests, cost], [3, 4_000_000n])
})

t.test('a row has path parameters and any method', async t => {
  const answer = await call('GET', '/v1/echo/a%20b?c=d')
  t.strictSame(await bodyOf(answer), { id: 'a b', query: 'c=d' })
  const wrong = await call('DELETE', '/v1/echo/x')
  t.strictSame([wrong.status, wrong.headers.get('allow')], [405, 'GET, HEAD'])
  const none = await call('GET', '/v1/echo/x/y')
  t.equal(none.status, 404)
})

t.test('a file of a form reaches the provider byte for byte, in a form of its own', async t => {
  const file = randomBytes(3 * 1024 * 1024)
  const form = new FormData()
  form.append('file', new Blob([file], { type: 'image/png' }), 'secret-name.PNG')
  form.append('model', 'acme-echo')
  form.append('text', 'hello')
  const answer = await call('PUT', '/v1/echo', form)
  t.equal(answer.status, 200)
  const { type, length, body } = seen.at(-1)!
  t.match(type, /^multipart\/form-data; boundary=/)
  t.equal(Number(length), body.length)
  const upload = (await new Response(new Uint8Array(body), {
    headers: { 'content-type': type! },
  }).formData()) as FormData
  const got = upload.get('file') as File
  t.strictSame([upload.get('text'), upload.getAll('tags')], ['hello', ['a', 'b']])
  t.strictSame([got.name, got.type], ['a.png', 'image/png'])
  const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
  t.equal(digest(Buffer.from(await got.arrayBuffer())), digest(file))
  const refused = await call('POST', '/v1/echo', form)
  t.equal(refused.status, 415)
  t.match(await bodyOf(refused), { error: { message: /^Content-Type must be application\/json, got "multipart/ } })
  const neither = await call('PUT', '/v1/echo', 'x', { 'content-type': 'text/plain' })
  const takes = 'Content-Type must be multipart/form-data or application/json, got "text/plain".'
  t.match(await bodyOf(neither), { error: { code: 'unsupported_media_type', message: takes } })
})

t.test('a request that is a GET is answered with bytes, no faster than its reader takes them', async t => {
  const body = JSON.stringify({ model: 'acme-echo', text: 'get cats', stream: true })
  const headers = {
    authorization: `Bearer ${gateway.key}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  }
  const sending = request(`${gateway.url}/v1/echo`, { method: 'POST', headers })
  sending.end(body)
  const [answer] = (await once(sending, 'response')) as [IncomingMessage]
  t.match(seen.at(-1), { method: 'GET', path: '/v1/pictures?of=cats', type: undefined, length: undefined })
  t.equal(answer.headers['content-type'], 'image/png')
  // Nothing reads: the provider comes to a wait long before its end, and stays there.
  let before = -1
  for (let turns = 0; turns < 200 || sent.bytes !== before; turns++) {
    before = sent.bytes
    await new Promise(resolve => setImmediate(resolve))
  }
  t.ok(sent.waits > 0)
  t.ok(sent.bytes < PICTURE.length / 2, `${sent.bytes} bytes left the provider`)
  const got: Buffer[] = []
  for await (const chunk of answer) got.push(chunk as Buffer)
  t.ok(Buffer.concat(got).equals(PICTURE))
})

const socketAt = (path: string, headers: Record<string, string> = {}, protocols: string[] = []) =>
  new WebSocket(`${gateway.url.replace('http', 'ws')}${path}`, protocols, { headers })

t.test('an endpoint that takes upgrades has a filtered WebSocket, and says refusals in plain HTTP', async t => {
  const refused = socketAt('/v1/echo-socket')
  const [, answer] = (await once(refused, 'unexpected-response')) as [unknown, IncomingMessage]
  t.strictSame([answer.statusCode, answer.headers.connection], [401, 'close'])
  t.match(JSON.parse((await answer.toArray()).join('')), { error: { code: 'invalid_api_key' } })
  t.equal((await call('GET', '/v1/echo-socket')).status, 400, 'a plain request is checked as any is')

  const socket = socketAt('/v1/echo-socket', { authorization: `Bearer ${gateway.key}` }, ['other', 'echo'])
  socket.on('open', () => socket.send('hello'))
  const [upgraded] = (await once(socket, 'upgrade')) as [IncomingMessage]
  t.ok(upgraded.headers['x-request-id'], 'with the headers that every answer has')
  t.equal(String((await once(socket, 'message'))[0]), 'hello from default')
  t.equal(socket.protocol, 'echo')
  socket.send('x'.repeat(1001))
  t.equal((await once(socket, 'close'))[0], 1009, 'beyond its limit')
})

t.test('where no upgrade is taken, a request that asks for one is served whole', async t => {
  const ask = (extra: object, method: string, path: string, body = '') =>
    new Promise<[number | undefined, string]>((resolve, reject) => {
      const headers = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json', ...extra }
      const req = request(`${gateway.url}${path}`, { method, headers }, res => {
        void res.toArray().then(all => resolve([res.statusCode, all.join('')]), reject)
      })
      req.on('error', reject)
      req.end(body)
    })
  const h2c = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABk' }
  const text = 'y'.repeat(300_000)
  const body = JSON.stringify({ model: 'acme-echo', text })
  // What the provider got: the text in an object of its own.
  const got = JSON.stringify({ text }).length
  t.strictSame(await ask(h2c, 'POST', '/v1/echo', body), [200, JSON.stringify({ got })])
  const websocket = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
  t.equal((await ask(websocket, 'GET', '/v1/echo/a%20b?x=1'))[1], '{"id":"a b","query":"x=1"}')
})
