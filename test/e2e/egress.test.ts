/** Connections through a proxy, with authorities and certificates of one's own (docs/egress.md). */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import t from 'tap'
import { parse } from 'yaml'
import { makeAuthority } from '../helpers/certificates.ts'
import { startConnectProxy } from '../helpers/connect-proxy.ts'
import { manifest, startGateway, testMapping } from '../helpers/gateway.ts'

const authority = makeAuthority(t)
const names = 'DNS:secure.test,DNS:mutual.test'
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

const ports: Readonly<Record<string, number>> = {
  'plain.test:80': plainPort,
  'secure.test:443': securePort,
  'mutual.test:443': mutualPort,
  [`127.0.0.1:${localPort}`]: localPort,
}
const route = (target: string) => ports[target]
const proxy = await startConnectProxy(t, { route, login: 'gate:p%ss:word-canary' })
const own = await startConnectProxy(t, { route, tls: authority.certificate('proxy', 'IP:127.0.0.1', 30) })

const provider = (base_url: string, rest: object = {}) => {
  const model = new URL(base_url).hostname.replace(/\.test$/, '').replaceAll('.', '-')
  return { base_url, allow_http: true, models: [{ ...testMapping, model }], ...rest }
}
/** The examples of the page: for gateway.yaml, and for a manifest. */
const [forAll, forOne] = [...readFileSync('docs/egress.md', 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g)].map(
  ([, text]) => parse(text!) as { egress: object },
) as [{ egress: object }, { egress: object }]
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
    away: provider('http://away.test/v1', { egress: { proxy: 'http://user:secret-canary@127.0.0.1:1' } }),
  },
  config: forAll,
  env: { HTTPS_PROXY: `http://gate:p%25ss:word-canary@127.0.0.1:${proxy.port}` },
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
  t.strictSame(proxy.taken(), ['plain.test:80', 'secure.test:443'])
})

t.test('streams come through the proxy', async t => {
  for (const model of ['plain', 'secure']) {
    const answer = await ask(model, true)
    t.equal(answer.status, 200)
    const text = await answer.text()
    t.match(text, new RegExp(`"content":"from "[\\s\\S]*"content":"${model}"[\\s\\S]*data: \\[DONE\\]`))
  }
})

t.test('a target on this machine has no proxy, unless its own manifest names one', async t => {
  proxy.taken()
  t.equal(await textOf(await ask('127-0-0-1')), 'from local')
  t.strictSame(proxy.taken(), [])
  t.equal(await textOf(await ask('named')), 'from local')
  t.strictSame(proxy.taken(), [`127.0.0.1:${localPort}`])
})

t.test('a provider has a proxy and a certificate of its own, and trusts the authority of all', async t => {
  seen.length = 0
  t.equal(await textOf(await ask('mutual')), 'from mutual')
  t.match(seen, [{ at: 'mutual', client: 'client' }])
  t.strictSame(proxy.taken(), [])
  t.strictSame(own.taken(), ['mutual.test:443'])
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
