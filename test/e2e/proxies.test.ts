/** The examples for nginx and Caddy in `deploy`, in front of a gateway. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { request as requestHttps } from 'node:https'
import t from 'tap'
import { WebSocket } from 'ws'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { freePort } from '../helpers/postgres.ts'
import { HOST, proxies, type ReverseProxy, startProxy } from '../helpers/proxies.ts'
import { startUpstream } from '../helpers/upstream.ts'

const BODY_LIMIT = 32 * 1024 * 1024
const rpm = 1_000_000

const upstream = await startUpstream(t, {})
const gateway = await startGateway(t, {
  providers: {
    a: { base_url: upstream.url('a'), models: [{ ...testMapping, pricing: { prompt: '0', completion: '0' } }] },
  },
  config: {
    server: { demo: 'on' },
    catalog: { extends: 'packaged' },
    endpoints: {
      chat: { auth: { trusted_proxies: ['127.0.0.1'] }, ratelimit: { rpm } },
      realtime: { ratelimit: { rpm } },
    },
  },
})
const command = commandsOf(gateway)
const bearer = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' }
const question = { model: 'test', messages: [{ role: 'user', content: 'Hi' }] }

interface Sent {
  readonly method?: string
  readonly path?: string
  readonly headers?: Record<string, string>
  readonly body?: unknown
  /** Address of the client's end. */
  readonly from?: string
}

/** Sends a request to the proxy; resolves with the head of the answer. */
async function ask(
  proxy: ReverseProxy,
  { path = '/v1/chat/completions', body, from, ...sent }: Sent,
): Promise<IncomingMessage> {
  const request = requestHttps({
    ...{ host: '127.0.0.1', port: proxy.port, servername: HOST, ca: proxy.ca, agent: false, path },
    ...{
      method: sent.method ?? (body === undefined ? 'GET' : 'POST'),
      headers: { host: HOST, ...bearer, ...sent.headers },
    },
    ...(from !== undefined && { localAddress: from }),
  })
  // A refusal may come while the body is still sent.
  request.on('error', () => undefined)
  request.end(body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body))
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  return answer
}
const textOf = async (answer: IncomingMessage): Promise<string> => Buffer.concat(await answer.toArray()).toString()

/** Reads until the text holds `part`. */
async function until(chunks: AsyncIterator<Buffer>, part: string): Promise<string> {
  let text = ''
  while (!text.includes(part)) {
    const { value, done } = await chunks.next()
    if (done) break
    text += String(value)
  }
  return text
}

for (const name of ['nginx', 'caddy'] as const) {
  t.test(name, { skip: proxies[name].skip }, async t => {
    const proxy = await startProxy(t, name, [gateway.port])
    t.beforeEach(() => upstream.reset())

    t.test('a stream arrives piece by piece, over HTTP/1.1', async t => {
      await upstream.script('a', [{ chunks: ['one', 'two', 'three'], hold: 1 }])
      const answer = await ask(proxy, { body: { ...question, stream: true } })
      t.match(answer.headers['content-type'], 'text/event-stream')
      const chunks = answer[Symbol.asyncIterator]() as AsyncIterator<Buffer>
      const first = await until(chunks, 'one')
      t.notMatch(first, 'two', 'the provider has not sent the rest')
      await upstream.release('a')
      const rest = await until(chunks, '[DONE]')
      t.match(rest, 'three')
    })

    t.test('a stream arrives piece by piece, over HTTP/2', async t => {
      await upstream.script('a', [{ chunks: ['one', 'two', 'three'], hold: 1 }])
      const client = connectHttp2(`https://127.0.0.1:${proxy.port}`, { servername: HOST, ca: proxy.ca })
      t.teardown(() => client.close())
      const stream = client.request({
        ':method': 'POST',
        ':path': '/v1/chat/completions',
        ':authority': HOST,
        ...bearer,
      })
      stream.end(JSON.stringify({ ...question, stream: true }))
      const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>
      t.notMatch(await until(chunks, 'one'), 'two')
      await upstream.release('a')
      t.match(await until(chunks, '[DONE]'), 'three')
    })

    t.test('a client that leaves ends the call to the provider', async t => {
      await upstream.script('a', [{ chunks: ['one', 'two'], hold: 1 }])
      const answer = await ask(proxy, { body: { ...question, stream: true } })
      await until(answer[Symbol.asyncIterator]() as AsyncIterator<Buffer>, 'one')
      answer.destroy()
      const [entry] = await upstream.record('a', { requests: 1, ended: 1 })
      t.equal(entry?.outcome, 'aborted')
    })

    t.test('a WebSocket passes both ways', async t => {
      const url = `wss://127.0.0.1:${proxy.port}/v1/realtime?model=demo-realtime`
      // The types of `ws` lack `servername`.
      const options = { headers: { ...bearer, host: HOST }, ca: proxy.ca, servername: HOST }
      const socket = new WebSocket(url, [], options)
      t.teardown(() => socket.terminate())
      const next = async () => JSON.parse(String((await once(socket, 'message'))[0])) as { type: string }
      t.match(await next(), { type: 'session.created' })
      socket.send(JSON.stringify({ type: 'session.update', session: { type: 'realtime', instructions: 'Be brief.' } }))
      t.match(await next(), { type: 'session.updated' })
    })

    t.test('a body of 32 MiB passes', async t => {
      await upstream.script('a', [{ text: 'read' }])
      const empty = JSON.stringify({ ...question, messages: [{ role: 'user', content: '' }] })
      const body = empty.replace('""', `"${'x'.repeat(BODY_LIMIT - empty.length)}"`)
      const answer = await ask(proxy, { body })
      t.match(await textOf(answer), '"read"')
    })

    // Caddy resets a connection whose body it has not read, so that its client may miss the answer.
    if (name === 'nginx') {
      t.test('a large body that the gateway refuses gets its answer', async t => {
        const answer = await ask(proxy, {
          body: 'x'.repeat(BODY_LIMIT / 4),
          headers: { authorization: 'Bearer mgw_x' },
        })
        t.equal(answer.statusCode, 401)
        t.match(JSON.parse(await textOf(answer)), { error: { code: String } })
        const refused = await ask(proxy, { body: 'x'.repeat(BODY_LIMIT + 1) })
        t.equal(refused.statusCode, 413)
        t.match(JSON.parse(await textOf(refused)), { error: { code: String } })
      })
    }

    t.test('rules about addresses see the client, which cannot forge its address', async t => {
      await command('orgs.create', { name })
      const project = await command('projects.create', { organization: name, name: 'p' })
      const { key } = await command<{ key: string }>('keys.create', { project: project.id, name: 'k' })
      await command('iam.add', { organization: name, type: 'allow_ip_cidrs', ipCidrs: ['127.0.0.2'] })
      const statusFrom = async (from: string, headers: Record<string, string> = {}) => {
        const answer = await ask(proxy, {
          body: question,
          from,
          headers: { authorization: `Bearer ${key}`, ...headers },
        })
        answer.resume()
        return answer.statusCode
      }
      await command('credits.add', { organization: name, amount: '1' })
      t.equal(await statusFrom('127.0.0.2'), 200)
      t.equal(await statusFrom('127.0.0.3'), 403)
      t.equal(await statusFrom('127.0.0.3', { 'x-forwarded-for': '127.0.0.2' }), 403)
    })

    t.test('no key reaches the log of the proxy', async t => {
      const path = '/v1beta/models/test:generateContent?key=mgw_query'
      const headers = { 'x-api-key': 'mgw_header', 'x-goog-api-key': 'mgw_google', authorization: 'Bearer mgw_bearer' }
      const answer = await ask(proxy, { path, body: {}, headers })
      await textOf(answer)
      t.notMatch(proxy.log(), 'mgw_')
    })
  })

  t.test(`${name} asks another node where one is gone`, { skip: proxies[name].skip }, async t => {
    const proxy = await startProxy(t, name, [await freePort(), gateway.port])
    // Caddy 2.6 repeats no request with a body, so it must have checked the nodes.
    if (name === 'caddy') await proxy.said(/HTTP request failed/)
    for (let n = 0; n < 4; n++) {
      const answer = await ask(proxy, { body: question })
      t.equal(answer.statusCode, 200)
      answer.resume()
    }
  })

  t.test(`${name} without a gateway answers an error of the API`, { skip: proxies[name].skip }, async t => {
    const proxy = await startProxy(t, name, [await freePort()])
    const answer = await ask(proxy, { body: question })
    t.equal(answer.statusCode, 503)
    t.match(answer.headers, { 'content-type': 'application/json', 'retry-after': '1' })
    t.match(JSON.parse(await textOf(answer)), { error: { message: String, type: 'api_error', code: String } })
  })
}
