/** How requests to providers are signed: with what they carry, over all their bytes, and with tokens that run out. */
import crypto from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Auth } from '../../src/core/provider-settings.ts'
import type { Provider, Translator } from '../../src/core/translator.ts'
import type { WireRequest } from '../../src/core/wire.ts'
import { errors, GatewayError } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { awsSigv4 } from '../../src/upstream/auth/aws-sigv4.ts'
import type { SignedRequest } from '../../src/upstream/auth/strategy.ts'
import { JSON_TYPE } from '../../src/upstream/content.ts'
import { dispatch } from '../../src/upstream/dispatch.ts'
import { sign, waitFor } from '../../src/upstream/sign.ts'
import { Transport } from '../../src/upstream/transport.ts'
import { byName, exchange, thrown } from '../core/kit.ts'
import { target } from '../plugins/wire-kit.ts'

const BODY = '{"messages":[{"role":"user","content":[{"text":"hi"}]}]}'
const common = {
  'content-type': 'application/json',
  'accept-encoding': 'identity',
  'user-agent': 'model-gateway',
  'x-request-id': 'id-1',
}

interface Signing {
  request?: Partial<WireRequest>
  provider?: Partial<Provider>
  secret?: string
  body?: string
  at?: number
}

type Signed = Omit<SignedRequest, 'headers'> & { headers: Record<string, string> }

/** Signs at once: a promise is a failure here. */
function signed(auth: Auth, { request, provider, secret = 'sk 1', body = '{}', at = 0 }: Signing = {}): Signed {
  const to = target({ provider: { auth, ...provider }, secret })
  const out = sign(to, { path: '/chat', body: {}, ...request }, 'id-1', { type: JSON_TYPE, body }, () => at)
  if (out instanceof Promise) throw new Error('signing waits for something')
  return { ...out, headers: byName(out.headers) }
}

t.test('a request carries the headers of its provider, the credential, and nothing else', async t => {
  const query: Auth = { scheme: 'query', parameter: 'k&y' }
  const none: Auth = { scheme: 'none' }
  const rows: [says: string, out: Signed, path: string, headers: object][] = [
    ['none', signed(none), '/chat', {}],
    ['bearer', signed({ scheme: 'bearer' }), '/chat', { authorization: 'Bearer sk 1' }],
    ['header', signed({ scheme: 'header', header: 'x-api-key' }), '/chat', { 'x-api-key': 'sk 1' }],
    ['query', signed(query), '/chat?k%26y=sk%201', {}],
    ['query beside another', signed(query, { request: { path: '/chat?alt=sse' } }), '/chat?alt=sse&k%26y=sk%201', {}],
    ['fixed headers', signed(none, { provider: { headers: { version: '1' } } }), '/chat', { version: '1' }],
    ['headers of the wire', signed(none, { request: { headers: { beta: 'b' } } }), '/chat', { beta: 'b' }],
    [
      'the nearest of two that have one name',
      signed(none, { provider: { headers: { beta: 'a', 'x-request-id': 'x' } }, request: { headers: { beta: 'b' } } }),
      '/chat',
      { beta: 'b' },
    ],
  ]
  for (const [says, { secret, method, ...out }, path, headers] of rows) {
    t.equal(method, 'POST')
    t.equal(secret, JSON.stringify(out).includes('sk') ? 'sk 1' : undefined, `${says}: what must not be shown`)
    const sent = { baseUrl: 'http://127.0.0.1:0/v1', path, headers: { ...common, ...headers }, body: '{}' }
    t.strictSame(out, sent, says)
  }

  const one = target({ provider: { auth: { scheme: 'bearer' }, headers: { version: '1' } }, secret: 'sk-1' })
  const two = { ...one, credential: { ...one.credential!, secret: 'sk-2' } }
  const first = sign(one, { path: '/', body: {}, headers: { beta: 'b' } }, 'id-1', {
    type: JSON_TYPE,
    body: '{}',
  }) as SignedRequest
  first.headers.push('leak', 'x')
  const second = sign(two, { path: '/', body: {} }, 'id-2', { type: JSON_TYPE, body: '{}' }) as SignedRequest
  t.strictSame(byName(second.headers), {
    ...common,
    version: '1',
    authorization: 'Bearer sk-2',
    'x-request-id': 'id-2',
  })
})

const KEYS = 'AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
const sigv4: Auth = { scheme: 'aws-sigv4', region: 'us-east-1', service: 'bedrock' }
const model = {
  secret: KEYS,
  provider: { baseUrl: 'https://bedrock-runtime.us-east-1.amazonaws.com' },
  request: { path: '/model/anthropic.claude-haiku-4-5-20251001-v1%3A0/converse' },
  body: BODY,
  at: Date.UTC(2026, 10, 20),
}

t.test('a signature over the request is the published one', async t => {
  const { path, body, headers } = signed(sigv4, model)
  t.equal(path, model.request.path, 'what is sent is encoded once')
  t.equal(body, BODY)
  t.strictSame(headers, {
    ...common,
    'x-amz-date': '20261120T000000Z',
    authorization:
      'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261120/us-east-1/bedrock/aws4_request, ' +
      'SignedHeaders=content-type;host;x-amz-date, ' +
      'Signature=04d3f83d78ea44c2607881f72fc72ea3d1dfa8629d7f3fcdc355ae43873ba7a0',
  })
})

t.test('without a secret a request is signed with the keys of the process', async t => {
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'AKENV', AWS_SECRET_ACCESS_KEY: 'of-the-process', AWS_PROFILE: '' })
  const to = target({ provider: { ...model.provider, auth: { ...sigv4, source: 'default' } as Auth }, secret: '' })
  const ask = () => sign(to, { path: '/chat', body: {} }, 'id-1', { type: JSON_TYPE, body: BODY }, () => model.at)
  const first = ask()
  t.ok(first instanceof Promise, 'they are looked for')
  for (const { headers } of [await first, ask() as SignedRequest]) {
    t.match(byName(headers).authorization, /^AWS4-HMAC-SHA256 Credential=AKENV\/20261120\/us-east-1\/bedrock\//)
  }
})

t.test('whatever is signed changes the signature', async t => {
  const signature = (auth: Auth, more: Signing) => signed(auth, { ...model, ...more }).headers.authorization
  const variants = [
    signature(sigv4, {}),
    signature(sigv4, { body: `${BODY} ` }),
    signature(sigv4, { request: { path: `${model.request.path}-stream` } }),
    signature(sigv4, { request: { path: `${model.request.path}?a=1` } }),
    signature(sigv4, { provider: { baseUrl: 'https://bedrock-runtime.us-east-1.amazonaws.com/v1' } }),
    signature(sigv4, { provider: { baseUrl: 'https://bedrock-runtime.us-east-1.amazonaws.com:8443' } }),
    signature(sigv4, { request: { ...model.request, headers: { 'x-amz-target': 'x' } } }),
    signature(sigv4, { at: model.at + 1000 }),
    signature(sigv4, { secret: `${KEYS}:session` }),
    signature(sigv4, { secret: `${KEYS}2` }),
    signature({ ...sigv4, region: 'eu-west-1' } as Auth, {}),
    signature({ ...sigv4, service: 'execute-api' } as Auth, {}),
  ]
  t.equal(new Set(variants.map(text => /Signature=(\w+)$/.exec(text!)?.[1])).size, variants.length)
  t.equal(
    signature(sigv4, { request: { ...model.request, headers: { beta: 'b' } } }),
    variants[0],
    'but no other header',
  )
})

t.test('the key of a day is derived once', t => {
  const original = crypto.createHmac
  let made = 0
  const replace = (by: typeof original) => {
    crypto.createHmac = by
    syncBuiltinESMExports()
  }
  t.teardown(() => replace(original))
  replace((...args) => {
    made++
    return original(...args)
  })
  const digests = (at: number, region = 'us-east-1') => {
    const before = made
    const to = target({ secret: `${KEYS}-of-a-day` }).credential!
    const out = { method: 'POST' as const, baseUrl: 'https://acme.example', path: '/', headers: [], body: '' }
    awsSigv4(out, { scheme: 'aws-sigv4', region, service: 'bedrock' }, to, () => at)
    return made - before
  }
  const hour = 3_600_000
  t.strictSame([digests(model.at), digests(model.at + 23 * hour), digests(model.at + 24 * hour)], [5, 1, 5])
  t.strictSame([digests(model.at, 'eu-west-1'), digests(model.at)], [5, 1])
  t.end()
})

interface Received {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** A provider that refuses everything and remembers it. */
async function provider(t: Test) {
  const received: Received[] = []
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      received.push({ url: req.url!, headers: req.headers, body: Buffer.concat(chunks) })
      res.writeHead(503).end()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const transport = new Transport()
  t.teardown(async () => {
    await transport.close()
    server.close()
  })
  return { received, transport, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

/** What the provider's side makes of a request: the same sum over what really came. */
function verified({ url, headers, body }: Received, secret: string): boolean {
  const [, scope = '', names = '', signature] =
    /Credential=\w+\/(\S+), SignedHeaders=(\S+), Signature=(\w+)$/.exec(headers.authorization ?? '') ?? []
  const hash = (data: string | Buffer) => crypto.createHash('sha256').update(data).digest('hex')
  const hmac = (key: crypto.BinaryLike, text: string) => crypto.createHmac('sha256', key).update(text).digest()
  const [path = '', query = ''] = url.split('?')
  const lines = names.split(';').map(name => `${name}:${headers[name]}\n`)
  const encoded = path.replaceAll('%', '%25').replaceAll('(', '%28').replaceAll(')', '%29')
  const canonical = `POST\n${encoded}\n${query}\n${lines.join('')}\n${names}\n${hash(body)}`
  const key = scope.split('/').reduce<crypto.BinaryLike>(hmac, `AWS4${secret}`)
  return (
    hmac(key, `AWS4-HMAC-SHA256\n${headers['x-amz-date']}\n${scope}\n${hash(canonical)}`).toString('hex') === signature
  )
}

t.test('what arrives at the provider is what was signed', async t => {
  const { received, transport, url } = await provider(t)
  const secret = 'AKID:secret/+key:session/token+=='
  const bodies = [{ a: 'é😀\u2028' }, { big: 'x'.repeat(300_000) }]
  for (const body of bodies) {
    const translator = { error: () => errors.unreachable('as expected') } as Pick<Translator, 'error'> as Translator
    const ex = exchange({
      target: target({ provider: { auth: sigv4, baseUrl: `${url}/prefix` }, secret, translator }),
    })
    ex.outbound.request = {
      path: '/model/a%3Ab(c)/converse?a=1&b=%20x',
      body,
      headers: { 'x-amz-extra': 'e', beta: 'b' },
    }
    await t.rejects(dispatch(transport, new MemoryBudget(1024 * 1024, { memory: () => 0 }))(ex), {
      code: 'fetch_failed',
    })
  }
  t.equal(received.length, 2)
  for (const request of received) {
    t.match(request.headers, { 'x-amz-security-token': 'session/token+==', 'content-type': 'application/json' })
    t.match(
      request.headers.authorization,
      /SignedHeaders=content-type;host;x-amz-date;x-amz-extra;x-amz-security-token,/,
    )
    t.ok(verified(request, 'secret/+key'))
    t.notOk(verified({ ...request, body: Buffer.concat([request.body, Buffer.from(' ')]) }, 'secret/+key'))
  }
})

t.test('pairs of a query are signed in their order, each part encoded once', async t => {
  const signature = (query: string) =>
    signed(sigv4, { ...model, request: { path: `/m?${query}` } }).headers.authorization
  t.equal(signature('b=2&a=1&a=0'), signature('a=0&a=1&b=2'))
  t.equal(signature('a=%7E&c'), signature('a=~&c='))
  t.not(signature('a=1'), signature('a=2'))
})

t.test('a credential that cannot be used lets another provider answer, and is not shown', async t => {
  const gcp: Auth = { scheme: 'gcp-oauth', scope: 'all' }
  const rows: [auth: Auth, secret: string][] = [
    [sigv4, 'hunter2'],
    [sigv4, 'hunter2:'],
    [sigv4, 'AKID:hunter2:a:b'],
    [gcp, 'hunter2'],
    [gcp, '{"private_key": "hunter2", "client_email": "x"}'],
  ]
  for (const [auth, secret] of rows) {
    const error = thrown(() => signed(auth, { secret }))
    t.ok(error instanceof GatewayError, secret)
    t.match(error, { status: 502, code: 'upstream_credential', failover: true, upstreamStatus: 401 }, secret)
    t.notMatch(JSON.stringify(error) + (error as GatewayError).message, /hunter2/)
  }
})

t.test('one of several waiters for the same value can be cancelled', async t => {
  const never = new Promise<string>(() => undefined)
  const gone = new Cancellation()
  const waiting = waitFor(never, 10_000, gone)
  gone.abort(errors.aborted())
  await t.rejects(waiting, { code: 'request_cancelled' })
  await t.rejects(waitFor(never, 10_000, gone), { code: 'request_cancelled' }, 'it was gone before')
  await t.rejects(waitFor(never, 5, new Cancellation()), { status: 504, failover: true, message: /total time/ })
  t.equal(await waitFor(Promise.resolve('token'), 10_000, new Cancellation()), 'token')
  const soon = new Promise(resolve => setTimeout(resolve, 20, 'token'))
  t.equal(await waitFor(soon, 30 * 86_400_000, new Cancellation()), 'token', 'longer than a timer can be set to')
  await t.rejects(waitFor(Promise.reject(errors.truncated()), 10_000, new Cancellation()), {
    code: 'upstream_stream_truncated',
  })
  let listens = 0
  const signal = new Cancellation()
  await waitFor(Promise.resolve(1), 10_000, signal)
  signal.listen(() => listens++)
  signal.abort(errors.aborted())
  t.equal(listens, 1, 'the next phase hears of the end')
})
