/** Connections through a proxy, with authorities and certificates of one's own (docs/egress.md). */

import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import t from 'tap'
import { parse } from 'yaml'
import { makeAuthority } from '../helpers/certificates.ts'
import { startConnectProxy } from '../helpers/connect-proxy.ts'
import { manifest, startGateway, testMapping } from '../helpers/gateway.ts'
import { RealtimeClient } from '../helpers/realtime-client.ts'
import { realtimeProvider } from '../helpers/realtime-provider.ts'

const authority = makeAuthority(t)
const names = 'DNS:secure.test,DNS:mutual.test,DNS:tokens.test'
const served = authority.certificate('served', names, 30)
const client = authority.certificate('client', 'DNS:gateway', 30)
const next = authority.certificate('next', 'DNS:gateway', 30)
const ca = readFileSync(authority.path)

/** Requests that servers saw: the server, and the certificate of the client. */
const seen: { at: string; client: string | string[] | undefined; port: number | undefined }[] = []
const answering =
  (at: string): RequestListener =>
  (req: IncomingMessage, res) => {
    const { CN } = (req.socket as TLSSocket).getPeerCertificate?.().subject ?? {}
    seen.push({ at, client: CN, port: req.socket.remotePort })
    let body = ''
    req.on('data', chunk => {
      body += chunk
    })
    req.on('end', () => {
      const choice = { index: 0, finish_reason: 'stop' }
      const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
      const answer = { id: 'c1', object: 'chat.completion', created: 1, model: 'test-1', usage }
      if (!(JSON.parse(body) as { stream?: boolean }).stream) {
        res.setHeader('content-type', 'application/json')
        const message = { role: 'assistant', content: `from ${at}` }
        return void res.end(JSON.stringify({ ...answer, choices: [{ ...choice, message }] }))
      }
      res.setHeader('content-type', 'text/event-stream')
      for (const content of ['from ', at]) {
        const chunk = { ...answer, object: 'chat.completion.chunk', usage: undefined }
        res.write(`data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta: { content } }] })}\n\n`)
      }
      const last = { ...answer, object: 'chat.completion.chunk', choices: [{ ...choice, delta: {} }] }
      res.end(`data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`)
    })
  }

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}
const plainPort = await portOf(createServer(answering('plain')))
const localPort = await portOf(createServer(answering('local')))
const securePort = await portOf(createTlsServer(served, answering('secure')))
const mutual = createTlsServer({ ...served, ca, requestCert: true }, answering('mutual'))
const mutualPort = await portOf(mutual)

/** An identity provider, a server of pictures and an engine that lists its models, by the name that they are asked by. */
const [signing, account] = [
  await generateKeyPair('ES256', { extractable: true }),
  generateKeyPairSync('rsa', { modulusLength: 2048 }),
]
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg==',
  'base64',
)
let wasListed = () => {}
const listed = new Promise<void>(resolve => {
  wasListed = resolve
})
const others: Readonly<Record<string, () => Promise<object> | object>> = {
  'login.test': async () => ({ keys: [{ ...(await exportJWK(signing.publicKey)), kid: 'one', alg: 'ES256' }] }),
  'engine.test': () => {
    wasListed()
    return { data: [{ id: 'found', created: 1 }] }
  },
  'tokens.test': () => ({ access_token: 'token-1', expires_in: 3600 }),
  'pictures.test': () => PNG,
}
const answerOthers: RequestListener = async (req, res) => {
  const answer = await others[req.headers.host!.split(':')[0]!]!()
  res.end(answer instanceof Buffer ? answer : JSON.stringify(answer))
}
const othersPort = await portOf(createServer(answerOthers))
const tokensPort = await portOf(createTlsServer(served, answerOthers))
const voice = await realtimeProvider(t)

const ports: Readonly<Record<string, number>> = {
  'login.test:80': othersPort,
  'engine.test:80': othersPort,
  'pictures.test:80': othersPort,
  'tokens.test:443': tokensPort,
  'voice.test:80': Number(new URL(voice.url).port),
  'plain.test:80': plainPort,
  'secure.test:443': securePort,
  'mutual.test:443': mutualPort,
  [`127.0.0.1:${localPort}`]: localPort,
}
const route = (target: string) => ports[target]
const proxy = await startConnectProxy(t, { route, login: 'gate:p%ss:word-canary' })
/** Targets that the proxy was asked for since the last look. The engine is looked up every 30 s, and after reloads. */
const asked = () => proxy.taken().filter(target => target !== 'engine.test:80')
const own = await startConnectProxy(t, { route, tls: authority.certificate('proxy', 'IP:127.0.0.1', 30) })

const provider = (base_url: string, rest: object = {}) => {
  const model = new URL(base_url).hostname.replace(/\.test$/, '').replaceAll('.', '-')
  return { base_url, allow_http: true, models: [{ ...testMapping, model }], ...rest }
}
/** The examples of the page: for gateway.yaml, and for a manifest. */
const page = readFileSync('docs/egress.md', 'utf8')
const exampleAt = (pattern: RegExp) => parse(pattern.exec(page)![1]!) as { egress: object }
const forAll = exampleAt(/```yaml\n([\s\S]*?)```/)
const forOne = exampleAt(/^`(egress: .*)`$/m)

const gateway = await startGateway(t, {
  providers: {
    plain: provider('http://plain.test/v1'),
    secure: provider('https://secure.test/v1'),
    mutual: provider('https://mutual.test/v1', {
      egress: { proxy: `https://127.0.0.1:${own.port}`, ...forOne.egress },
    }),
    local: provider(`http://127.0.0.1:${localPort}/v1`),
    named: provider(`http://127.0.0.1:${localPort}/v1`, {
      models: [{ ...testMapping, model: 'named' }],
      egress: { proxy: `\${HTTPS_PROXY}` },
    }),
    voice: {
      base_url: `http://voice.test${new URL(voice.url).pathname}`,
      allow_http: true,
      wires: { realtime: 'openai.realtime' },
      models: [{ model: 'voice', id: 'rt-1', pricing: { prompt: '4', completion: '16' }, supports: ['realtime'] }],
    },
    engine: provider('http://engine.test/v1', { auth: { scheme: 'none' }, models: [], open: {}, discover: true }),
    account: provider('http://plain.test/v1', {
      models: [{ ...testMapping, model: 'account' }],
      auth: { scheme: 'gcp-oauth', secret: `\${ACCOUNT}` },
      inline_media: true,
    }),
    away: provider('http://away.test/v1', { egress: { proxy: 'http://user:secret-canary@127.0.0.1:1' } }),
  },
  models: [
    ...['plain', 'secure', 'mutual', '127-0-0-1', 'named', 'account', 'away'].map(id => ({
      ...{ id, name: id, family: 'test', input: ['text', 'image'], output: ['text'] },
    })),
    { id: 'voice', name: 'voice', family: 'test', input: ['text'], output: ['text'], operations: ['realtime'] },
  ],
  config: {
    egress: { ...forAll.egress, ca: '../tls/authority.pem' },
    server: { fetch_from: ['http://pictures.test'] },
    auth: {
      jwt: [{ issuer: 'login', audience: 'gateway', jwks_uri: 'http://login.test/keys', default_project: 'default' }],
    },
  },
  env: {
    HTTPS_PROXY: `http://gate:p%25ss:word-canary@127.0.0.1:${proxy.port}`,
    ACCOUNT: JSON.stringify({
      ...{ type: 'service_account', client_email: 'a@acme.test', private_key_id: 'one' },
      private_key: account.privateKey.export({ type: 'pkcs8', format: 'pem' }),
      token_uri: 'https://tokens.test/token',
    }),
  },
  files: {
    'tls/authority.pem': ca.toString(),
    'tls/client.pem': client.cert.toString(),
    'tls/client.key': client.key.toString(),
  },
})

const ask = (model: string, stream = false) =>
  gateway.chat({ model, stream, messages: [{ role: 'user', content: 'Hi' }] })
const textOf = async (answer: Response): Promise<string> => {
  const text = await answer.text()
  if (answer.status !== 200) return text
  return (JSON.parse(text) as { choices: { message: { content: string } }[] }).choices[0]!.message.content
}
const refusal = async (answer: Response) => {
  const { error } = (await answer.json()) as { error: { code: string; message: string } }
  return `${answer.status} ${error.code}: ${error.message}`
}

t.test('providers are called through the proxy, by name, over one tunnel for as long as it is open', async t => {
  t.equal(await textOf(await ask('plain')), 'from plain')
  t.equal(await textOf(await ask('plain')), 'from plain')
  t.equal(await textOf(await ask('secure')), 'from secure')
  t.equal(await textOf(await ask('secure')), 'from secure')
  t.strictSame(asked(), ['plain.test:80', 'secure.test:443'])
})

t.test('streams come through the proxy', async t => {
  for (const model of ['plain', 'secure']) {
    const answer = await ask(model, true)
    t.equal(answer.status, 200)
    const text = await answer.text()
    t.match(text, new RegExp(`"content":"from "[\\s\\S]*"content":"${model}"[\\s\\S]*data: \\[DONE\\]`))
  }
})

t.test('a tunnel that the proxy has closed is replaced by another one', async t => {
  for (let n = 0; n < 5; n++) {
    proxy.cut()
    t.equal(await textOf(await ask('secure')), 'from secure')
    proxy.cut()
    t.equal(await textOf(await ask('plain')), 'from plain')
  }
})

t.test('a target on this machine has no proxy, unless its own manifest names one', async t => {
  asked()
  t.equal(await textOf(await ask('127-0-0-1')), 'from local')
  t.strictSame(asked(), [])
  t.equal(await textOf(await ask('named')), 'from local')
  t.strictSame(asked(), [`127.0.0.1:${localPort}`])
})

t.test('a provider has a proxy and a certificate of its own, and trusts the authority of all', async t => {
  seen.length = 0
  t.equal(await textOf(await ask('mutual')), 'from mutual')
  t.match(seen, [{ at: 'mutual', client: 'client' }])
  t.strictSame(asked(), [])
  t.strictSame(own.taken(), ['mutual.test:443'])
})

t.test('WebSockets, key sets, tokens of clouds, lists of models and pictures come through the proxy', async t => {
  await listed
  asked()
  const session = await new RealtimeClient(gateway).opened()
  session.send({ type: 'response.create' })
  t.match(await session.until('response.done'), { response: { status: 'completed' } })
  await session.end()
  t.strictSame(asked(), ['voice.test:80'])

  const claims = { iss: 'login', aud: 'gateway', sub: 'ann', exp: Math.floor(Date.now() / 1000) + 600 }
  const token = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'one' }).sign(signing.privateKey)
  const refused = await gateway.chat('Hi', { authorization: `Bearer ${token}` })
  t.strictSame(asked(), ['login.test:80'], await refused.text())

  const image = { type: 'image_url', image_url: { url: 'http://pictures.test/one.png' } }
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'Hi' }, image] }]
  t.equal(await textOf(await gateway.chat({ model: 'account', messages })), 'from plain')
  const taken = asked()
  t.ok(taken.includes('pictures.test:80') && taken.includes('tokens.test:443'), taken.join())
})

t.test('a refusal of the proxy is named for WebSockets and tokens, too', async t => {
  proxy.refuse(403)
  const { ws } = new RealtimeClient(gateway)
  const [, answer] = (await once(ws, 'unexpected-response')) as [unknown, IncomingMessage]
  t.match((await answer.toArray()).join(''), /the proxy 127\.0\.0\.1:\d+ refused the connection with status 403/)
  proxy.refuse(undefined)
})

t.test('another certificate in the files is shown from the next reload on, over new connections', async t => {
  seen.length = 0
  t.equal(await textOf(await ask('mutual')), 'from mutual')
  writeFileSync(join(gateway.dir, 'tls/client.key'), next.key)
  writeFileSync(join(gateway.dir, 'tls/client.pem'), next.cert)
  const reloaded = await gateway.admin('POST', '/reload')
  t.equal(reloaded.status, 200, await reloaded.text())
  t.equal(await textOf(await ask('mutual')), 'from mutual')
  t.match(seen, [{ client: 'client' }, { client: 'next' }])
  t.not(seen[0]!.port, seen[1]!.port)
})

t.test('files that do not fit are refused at their position, and what was in force stays', async t => {
  writeFileSync(join(gateway.dir, 'tls/client.key'), client.key)
  const answer = await gateway.admin('POST', '/reload')
  t.not(answer.status, 200)
  t.match(await answer.text(), /providers\.d\/mutual\.yaml:\d+:\d+.*the key does not fit/)
  t.equal(await textOf(await ask('mutual')), 'from mutual')
  writeFileSync(join(gateway.dir, 'tls/client.key'), next.key)
})

t.test('metrics tell when certificates end that servers behind a proxy have shown', async t => {
  const text = await gateway.metrics()
  for (const host of ['secure.test', 'mutual.test', 'tokens.test']) {
    const [, end] = new RegExp(`gateway_upstream_certificate_end_seconds{host="${host}"} (\\d+)`).exec(text) ?? []
    t.equal(Number(end), Date.parse(new X509Certificate(served.cert).validTo) / 1000, host)
  }
})

t.test('what the proxy refuses names the proxy and no secret, and is no answer of the provider', async t => {
  const at = `the proxy 127.0.0.1:${own.port}`
  const before = 'Failed to connect to the upstream provider'
  const away = await refusal(await ask('away'))
  t.equal(away, `502 fetch_failed: ${before}: the proxy 127.0.0.1:1 cannot be reached: ECONNREFUSED.`)
  // A connection of its own, for each: the certificate tells them apart.
  for (const [how, why] of [
    [407, 'refused the connection with status 407'],
    [502, 'refused the connection with status 502'],
    ['break', 'broke the connection: ECONNRESET'],
  ] as const) {
    const changes = { egress: { proxy: `https://127.0.0.1:${own.port}`, no_proxy: [`${how}.test`] } }
    await gateway.writeProvider('away', manifest('away', provider('https://away.test/v1', changes)))
    await (await gateway.admin('POST', '/reload')).text()
    own.refuse(how)
    t.equal(await refusal(await ask('away')), `502 fetch_failed: ${before}: ${at} ${why}.`)
  }
  own.refuse(undefined)
  t.notMatch(gateway.stderr() + gateway.stdout(), /canary/)
})
