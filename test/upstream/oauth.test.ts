/** OAuth for a service account: what is asked for, how long a token serves, and what its failures mean. */
import { createPrivateKey } from 'node:crypto'
import t, { type Test } from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Auth, Credential } from '../../src/core/provider-settings.ts'
import { errors } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { serviceAccount } from '../../src/secrets/credential.ts'
import { oauth, requestToken } from '../../src/upstream/auth/gcp-oauth.ts'
import type { SignedRequest } from '../../src/upstream/auth/strategy.ts'
import { dispatch } from '../../src/upstream/dispatch.ts'
import { sign } from '../../src/upstream/sign.ts'
import { Transport } from '../../src/upstream/transport.ts'
import { byName, exchange, thrown } from '../core/kit.ts'
import { target } from '../plugins/wire-kit.ts'
import { account, json, privateKey, tokenEndpoint } from './token-endpoint.ts'

const SECOND = 1000

const pem = (der: Buffer): string =>
  `-----BEGIN RSA PRIVATE KEY-----\n${der.toString('base64')}\n-----END RSA PRIVATE KEY-----\n`

/** Of whole numbers, in DER. */
function sequence(numbers: readonly Buffer[]): Buffer {
  const item = (tag: number, value: Buffer) => {
    const size = value.length
    return Buffer.concat([Buffer.from([tag, 0x82, size >> 8, size & 0xff]), value])
  }
  const positive = (number: Buffer) => Buffer.concat([Buffer.alloc(number[0]! >> 7), number])
  return item(0x30, Buffer.concat(numbers.map(number => item(2, positive(number)))))
}
const START = Date.UTC(2026, 10, 20)

/** A token endpoint, and a provider that is spoken to with its tokens at a time that the test sets. */
async function setup(t: Test, more: Readonly<Record<string, unknown>> = {}) {
  const endpoint = await tokenEndpoint()
  t.teardown(() => endpoint.close())
  const secret = account({ token_uri: endpoint.url, ...more })
  const clock = { at: START }
  const signAt = (auth: Auth = { scheme: 'gcp-oauth', scope: 'all' }, text = secret) =>
    sign(
      target({ provider: { auth }, secret: text }),
      { path: '/chat', body: {} },
      'id-1',
      { type: 'application/json', body: '{}' },
      () => clock.at,
    )
  /** The token that a request carries, or that it waits for it. */
  const now = () => {
    const out = signAt()
    return out instanceof Promise ? 'waits' : token(out)
  }
  const later = async () => token(await signAt())
  return { endpoint, secret, clock, signAt, now, later }
}
const token = (out: SignedRequest) => byName(out.headers).authorization
const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'no failure',
    error => error,
  )

t.test('a key that is dear to sign with is no key of a service account', async t => {
  const reads = (key: string) => 'value' in serviceAccount(account({ private_key: key }))
  const { n, e, d } = createPrivateKey(privateKey).export({ format: 'jwk' })
  const [modulus, exponent, secret] = [n, e, d].map(part => Buffer.from(part ?? '', 'base64url')) as [
    Buffer,
    Buffer,
    Buffer,
  ]
  // OpenSSL does not check that these belong together.
  const crafted = (own: { n?: Buffer; e?: Buffer; d?: Buffer }) => {
    const small = [3, 5, 1, 1, 1].map(value => Buffer.from([value]))
    return pem(sequence([Buffer.alloc(1), own.n ?? modulus, own.e ?? exponent, own.d ?? secret, ...small]))
  }
  t.ok(reads(crafted({})))
  t.ok(reads(crafted({ n: Buffer.alloc(512, 0x7f) })), '4096 bits')
  t.notOk(reads(crafted({ n: Buffer.alloc(513, 0x7f) })), 'a longer one')
  t.notOk(reads(crafted({ d: Buffer.alloc(2000, 0x7f) })), 'a long private exponent')
  t.notOk(reads(crafted({ e: Buffer.alloc(256, 0x7f) })), 'a long public exponent')
})

t.test('a signed claim is traded for a token', async t => {
  const { endpoint, signAt } = await setup(t)
  const pending = signAt()
  t.ok(pending instanceof Promise)
  const out = await pending
  t.match(out, { path: '/chat', body: '{}' })
  t.match(byName(out.headers), { authorization: 'Bearer token-1', 'x-request-id': 'id-1' })
  const [asked] = endpoint.asked
  t.ok(asked?.signed)
  t.strictSame(asked?.header, { alg: 'RS256', typ: 'JWT', kid: 'kid-1' })
  const iat = START / SECOND
  t.strictSame(asked?.claims, { iss: 'a@acme.test', scope: 'all', aud: endpoint.url, iat, exp: iat + 3600 })
  t.strictSame([...asked!.form.keys()], ['grant_type', 'assertion'])
  t.equal(asked?.form.get('grant_type'), 'urn:ietf:params:oauth:grant-type:jwt-bearer')
})

t.test('a token serves all requests until its last minute, at once', async t => {
  const { endpoint, clock, now, later } = await setup(t)
  t.equal(await later(), 'Bearer token-1')
  clock.at += 3298 * SECOND
  t.equal(now(), 'Bearer token-1')
  t.equal(endpoint.asked.length, 1)
  clock.at = START + 3539 * SECOND
  t.equal(await later(), 'Bearer token-2')
  clock.at -= 3600 * SECOND
  t.equal(await later(), 'Bearer token-3', 'a clock that was set back makes no token last longer')
})

t.test('the next token is fetched shortly before the current one ends, and no request waits for it', async t => {
  const { endpoint, clock, now, later } = await setup(t)
  await later()
  clock.at += 3299 * SECOND
  const answered = new Promise<void>(resolve => {
    endpoint.answer = (res, count) => {
      json(200, { access_token: `token-${count}`, expires_in: 3599 })(res, count)
      res.on('close', resolve)
    }
  })
  t.strictSame([now(), now(), now()], ['Bearer token-1', 'Bearer token-1', 'Bearer token-1'])
  await answered
  clock.at = START + 3540 * SECOND
  t.equal(await later(), 'Bearer token-2', 'after the end of the first one')
  t.equal(now(), 'Bearer token-2')
  t.equal(endpoint.asked.length, 2)
})

t.test('a token that cannot be renewed serves on', async t => {
  const { endpoint, clock, now, later } = await setup(t)
  await later()
  clock.at += 3299 * SECOND
  const asked = new Promise<void>(resolve => {
    endpoint.answer = (res, count) => {
      json(500, {})(res, count)
      res.on('close', resolve)
    }
  })
  t.equal(now(), 'Bearer token-1')
  await asked
  t.equal(now(), 'Bearer token-1')
  clock.at = START + 3538 * SECOND
  t.equal(now(), 'Bearer token-1')
})

t.test('requests that wait share one fetch, and credentials share none', async t => {
  const { endpoint, secret, signAt, now } = await setup(t)
  const all = await Promise.all(Array.from({ length: 20 }, () => signAt()))
  t.strictSame([...new Set(all.map(token))], ['Bearer token-1'])
  t.equal(endpoint.asked.length, 1)
  t.equal(now(), 'Bearer token-1', 'a credential that was read again is the same')
  t.equal(token(await signAt({ scheme: 'gcp-oauth', scope: 'some' })), 'Bearer token-2', 'another scope')
  t.equal(token(await signAt(undefined, `${secret} `)), 'Bearer token-3', 'another secret')
})

t.test('a fetch that fails lets another provider answer and says why, without the key', async t => {
  const { endpoint, clock, signAt, later } = await setup(t)
  const credential = { status: 502, code: 'upstream_credential', upstreamStatus: 401 }
  const invalid = { status: 502, code: 'upstream_invalid_response' }
  const rows: [says: string, answer: typeof endpoint.answer, error: object][] = [
    [
      'refused',
      json(400, { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' }),
      {
        ...credential,
        detail: 'The token endpoint of the provider answered with status 400: invalid_grant: Invalid JWT Signature.',
      },
    ],
    ['unknown', json(401, { error: { message: 'no' } }), { ...credential, detail: /status 401$/ }],
    ['forbidden', json(403, 'no'), credential],
    ['limited', json(429, {}), { status: 503, upstreamStatus: 429 }],
    ['late', json(408, {}), { status: 504, upstreamStatus: 408 }],
    ['broken', json(500, {}), { status: 502, code: 'upstream_error', upstreamStatus: 500 }],
    ['overloaded', res => void res.writeHead(503).end('<html>'), { status: 503, upstreamStatus: 503 }],
    ['moved', res => void res.writeHead(302, { location: '/' }).end(), { ...invalid, upstreamStatus: 302 }],
    ['no JSON', res => void res.end('<html>'), invalid],
    ['nothing', json(200, null), invalid],
    ['no token', json(200, { expires_in: 3599 }), invalid],
    ['a token that is no header', json(200, { access_token: 'a\r\nb: c', expires_in: 3599 }), invalid],
    ['cut off', res => void res.destroy(), { status: 502, code: 'fetch_failed', upstreamStatus: 0 }],
    ['endless', res => void res.end('x'.repeat(70_000)), { status: 502, code: 'fetch_failed' }],
  ]
  for (const [says, answer, expected] of rows) {
    endpoint.answer = answer
    clock.at += SECOND
    t.match(await failure(later()), { ...expected, failover: true }, says)
  }
  endpoint.answer = (res, count) => {
    const said = endpoint.asked.at(-1)!.form.get('assertion')!
    json(400, { error: 'invalid_grant', error_description: `${said} ${said.slice(9)} ${privateKey}` })(res, count)
  }
  clock.at += SECOND
  const error = await failure(later())
  const assertion = endpoint.asked.at(-1)!.form.get('assertion')!
  t.match(error, credential)
  for (const part of [assertion, assertion.slice(20, 90), assertion.slice(-50), privateKey.slice(40, 100)]) {
    t.notMatch(String(error), part)
  }
  t.throws(() => signAt(), credential, 'it stands for a second')
  t.equal(endpoint.asked.length, rows.length + 1)
  clock.at += SECOND
  endpoint.answer = json(200, { access_token: 'good', expires_in: 3599 })
  t.equal(await later(), 'Bearer good')
})

t.test('a token endpoint that is not there or says nothing is a network fault', async t => {
  const { endpoint, secret } = await setup(t)
  const parsed = serviceAccount(secret)
  if ('issue' in parsed) return t.fail(parsed.issue)
  endpoint.answer = () => undefined
  const request = { scope: 'all', tokenUri: endpoint.url, now: START }
  await t.rejects(requestToken(parsed.value, { ...request, deadlineMs: 20 }), {
    status: 504,
    code: 'timeout',
    failover: true,
    upstreamStatus: 0,
  })
  await endpoint.close()
  await t.rejects(requestToken(parsed.value, request), {
    status: 502,
    code: 'fetch_failed',
    failover: true,
    upstreamStatus: 0,
    message: /ECONNREFUSED/,
  })
})

t.test('a token that says nothing of its life serves those who wait for it', async t => {
  const { endpoint, later, now } = await setup(t)
  for (const expires_in of [undefined, 'soon', -5, 60]) {
    endpoint.answer = json(200, { access_token: 'short', expires_in })
    t.equal(await later(), 'Bearer short')
    t.equal(now(), 'waits')
    await later()
  }
})

t.test('a request that ends while it waits for a token ends at once, and the token still comes', async t => {
  const { endpoint, secret, clock, now } = await setup(t)
  const transport = new Transport()
  t.teardown(() => transport.close())
  const asked = new Promise<() => void>(resolve => {
    endpoint.answer = (res, count) => resolve(() => json(200, { access_token: 'late', expires_in: 3599 })(res, count))
  })
  const auth: Auth = { scheme: 'gcp-oauth', scope: 'all' }
  const call = (signal: Cancellation, total: number) => {
    const timeouts = { connect: 1000, firstEvent: 1000, idle: 1000, total }
    const ex = exchange({ signal, target: target({ provider: { auth, timeouts }, secret }) })
    ex.outbound.request = { path: '/chat', body: {} }
    return dispatch(transport, new MemoryBudget(1024 * 1024, { memory: () => 0 }))(ex)
  }
  const signal = new Cancellation()
  const gone = call(signal, 10_000)
  const slow = failure(call(new Cancellation(), 10))
  const answer = await asked
  signal.abort(errors.aborted())
  await t.rejects(gone, { code: 'request_cancelled' })
  t.match(await slow, { status: 504, failover: true })
  clock.at = Date.now()
  t.equal(now(), 'waits')
  answer()
  await t.resolves(call(new Cancellation(), 10_000).catch(error => t.equal(error.code, 'fetch_failed')))
  t.equal(now(), 'Bearer late')
  t.equal(endpoint.asked.length, 1)
})

t.test('the address that a customer names is not called', async t => {
  const called: string[] = []
  const strategy = oauth((_account, { tokenUri }) => {
    called.push(tokenUri)
    return Promise.resolve({ token: 'x', seconds: 3599 })
  })
  const secret = account({ token_uri: 'http://127.0.0.1:1/inner' })
  for (const [source, text] of [
    ['byok', secret],
    ['platform', secret],
    ['platform', account()],
  ] as const) {
    const credential: Credential = { id: 'c', source, secret: text, fingerprint: 'f' }
    const out: SignedRequest = { method: 'POST', baseUrl: 'https://acme.example', path: '/', headers: [], body: '' }
    await strategy(out, { scheme: 'gcp-oauth', scope: 'all' }, credential, () => START)
  }
  const usual = 'https://oauth2.googleapis.com/token'
  t.strictSame(called, [usual, 'http://127.0.0.1:1/inner', usual])
})

t.test('a key file that cannot be read is refused without a word of it', t => {
  const rows: [text: string, says: RegExp][] = [
    ['hunter2', /expected the JSON/],
    ['"hunter2"', /expected the JSON/],
    ['[]', /needs the key "private_key"/],
    [account({ private_key: '' }), /needs the key "private_key"/],
    [account({ client_email: 7 }), /needs the key "client_email"/],
    [account({ private_key: 'hunter2' }), /no RSA key/],
    [account({ token_uri: 'hunter2' }), /no address/],
  ]
  for (const [text, says] of rows) {
    const parsed = serviceAccount(text)
    t.match('issue' in parsed && parsed.issue, says)
    t.notMatch(JSON.stringify(parsed), /hunter2/)
  }
  t.match(
    thrown(() => JSON.parse('hunter2')),
    /hunter2/,
    'which a parser would repeat',
  )
  t.end()
})
