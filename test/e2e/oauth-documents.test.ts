/** Clients whose id is the address of a document: fetched over TLS, by a gateway that believes nothing of what it reads. */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { makeAuthority } from '../helpers/certificates.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { callTool } from '../helpers/mcp.ts'
import { callback, Program } from '../helpers/oauth.ts'
import { startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>
type Serve = (res: ServerResponse, req: IncomingMessage) => unknown

/** The gateway trusts it. */
const authority = makeAuthority(t)
const here = 'IP:127.0.0.1'

/** A server of documents; `paths` are those that were asked for, `connections` all that were made. */
async function documentServer(secure: { key: Buffer; cert: Buffer }) {
  const routes = new Map<string, Serve>()
  const paths: string[] = []
  const server = createServer(secure, (req, res) => {
    paths.push(req.url!)
    res.setHeader('content-type', 'application/json')
    const serve = routes.get(req.url!)
    if (serve) serve(res, req)
    else res.writeHead(404).end('{}')
  })
  const counted = { connections: 0 }
  server.on('connection', () => counted.connections++).on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return { origin: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, routes, paths, counted }
}

const good = await documentServer(authority.certificate('good', here, 2))
const untrusted = await documentServer(authority.certificate('untrusted', here))
const misnamed = await documentServer(authority.certificate('misnamed', 'DNS:app.example', 2))
const unlisted = await documentServer(authority.certificate('unlisted', here, 2))

const upstream = await startUpstream(t)
const gateway = await startGateway(t, {
  providers: { a: { base_url: upstream.url('a') } },
  env: { NODE_EXTRA_CA_CERTS: authority.path },
  config: {
    server: { fetch_from: [good, untrusted, misnamed].map(({ origin }) => origin) },
    mcp: { client_metadata: 'on' },
    chains: {
      local: [
        { auth: { optional: true, trusted_proxies: ['127.0.0.0/8'] } },
        { ratelimit: { rpm: 10_000 } },
        'telemetry',
      ],
    },
  },
})
const command = commandsOf(gateway)

/** A program that the document at this address describes, once it does. */
function programAt(path: string, { origin } = good): Program {
  const program = new Program(gateway)
  program.id = origin + path
  return program
}
const describe = (program: Program, changes: Tree = {}): string =>
  JSON.stringify({ client_id: program.id, client_name: 'An app', redirect_uris: [callback], ...changes })

t.test('O4 a person signs in a program that a document describes, which is fetched once', async t => {
  const metadata = await fetch(`${gateway.url}/.well-known/oauth-authorization-server`)
  t.match(await metadata.json(), { client_id_metadata_document_supported: true })
  const program = programAt('/client.json')
  good.routes.set('/client.json', (res, { headers }) => {
    t.same([headers.authorization, headers.cookie, headers.accept], [undefined, undefined, 'application/json'])
    res.setHeader('cache-control', 'max-age=3600').end(describe(program))
  })
  const page = await program.open()
  t.equal(page.status, 200)
  t.match(page.html, `verified: ${new URL(good.origin).host}`)
  t.match(page.html, /Any program on this computer could use this name/)
  t.equal((await program.open({ redirect_uri: 'https://evil.example/cb' })).status, 400)
  const tokens = await program.signIn(gateway.key)
  const headers = { authorization: `Bearer ${tokens.access_token}` }
  t.match((await callTool(gateway, 'get-account', {}, headers)).structuredContent, { apiKey: { name: 'default' } })
  const [grant] = await command<Tree[]>('oauth.grants.list')
  t.match(grant, { client: program.id, clientName: 'An app' })
  const { body } = await program.refresh(tokens.refresh_token)
  t.match(body, { token_type: 'Bearer' })
  t.equal((await program.refresh(body.refresh_token, { client_secret: 'x' })).status, 401, 'it has no secret')
  t.equal((await program.revoke(body.refresh_token)).status, 200)
  t.same(await command('oauth.grants.list'), [])
  t.same(good.paths, ['/client.json'])
})

t.test('O5 a document that is hostile or wrong leads to a page that says why, and nowhere else', async t => {
  const closes: Promise<unknown>[] = []
  /** Begins an answer that goes on for as long as it is read. */
  const endless: Serve = res => {
    closes.push(once(res, 'close'))
    const more = () => {
      while (res.write(' '.repeat(1024)));
    }
    res.on('drain', more)
    more()
  }
  const silent: Serve = res => closes.push(once(res, 'close'))
  const described =
    (changes: Tree): Serve =>
    (res, { url }) =>
      res.end(describe(programAt(url!), changes))
  type Row = [path: string, serve: Serve, status: number, says: RegExp]
  const rows: Row[] = [
    ['/large', endless, 502, /larger than 5120 bytes/],
    ['/cut', res => res.writeHead(200, { 'content-length': '100' }).write('{', () => res.destroy()), 502, /cannot be/],
    ['/moved', res => res.writeHead(302, { location: `${good.origin}/client.json` }).end(), 502, /answers 302/],
    ['/inward', res => res.writeHead(307, { location: `${unlisted.origin}/x` }).end(), 502, /answers 307/],
    ['/gone', res => res.writeHead(404).end('{}'), 502, /answers 404/],
    ['/page', res => res.setHeader('content-type', 'text/html').end('<p>'), 502, /no plain JSON/],
    ['/packed', res => res.setHeader('content-encoding', 'gzip').end('{}'), 502, /no plain JSON/],
    ['/text', res => res.end('{'), 400, /is not JSON/],
    ['/list', res => res.end('[]'), 400, /does not name its own address/],
    ['/other', described({ client_id: `${good.origin}/client.json` }), 400, /does not name its own address/],
    ['/slash', described({ client_id: `${good.origin}/slash/` }), 400, /does not name its own address/],
    ['/secret', described({ client_secret: 'x' }), 400, /has a secret/],
    ['/basic', described({ token_endpoint_auth_method: 'client_secret_basic' }), 400, /has a secret/],
    ['/nowhere', described({ redirect_uris: [] }), 400, /redirect_uris must hold/],
    ['/plain', described({ redirect_uris: [callback, 'http://evil.example/'] }), 400, /must be https/],
    ['/script', described({ redirect_uris: ['javascript:alert(1)'] }), 400, /the scheme &#34;javascript&#34;/],
    ['/name', described({ client_name: 'x'.repeat(101) }), 400, /at most 100 characters/],
    ['/control', described({ client_name: 'a\u0000' }), 400, /control character/],
  ]
  const check = async ([path, serve, status, says]: Row) => {
    good.routes.set(path, serve)
    const page = await programAt(path).open()
    t.same([page.status, page.location], [status, null], path)
    t.match(page.html, says, path)
    t.match(page.headers.get('content-security-policy'), /form-action 'none'/)
    if (status === 502) t.match(page.html, /mcp\.client_metadata/, 'and names the setting')
  }
  const longest = check(['/silent', silent, 502, /cannot be reached/])
  for (const row of rows) await check(row)
  await longest
  t.equal((await Promise.all(closes)).length, 2, 'it reads no further than it must')
  t.equal(unlisted.counted.connections, 0, 'and follows no redirect')
})

t.test('O6 only public addresses by https are connected to, and those that the operator lists', async t => {
  const rows: [id: string, status: number, says: RegExp][] = [
    [`${unlisted.origin}/client.json`, 502, /no public https address/],
    ['https://127.0.0.1/client.json', 502, /cannot be reached/],
    ['https://localhost/client.json', 502, /cannot be reached/],
    ['https://[::1]/client.json', 502, /cannot be reached/],
    ['https://[::ffff:7f00:1]/client.json', 502, /cannot be reached/],
    ['https://169.254.169.254/latest/meta-data', 502, /cannot be reached/],
    ['https://10.0.0.1/client.json', 502, /cannot be reached/],
    [`${untrusted.origin}/client.json`, 502, /cannot be reached/],
    [`${misnamed.origin}/client.json`, 502, /cannot be reached/],
    // These name no document, and no client.
    [`${good.origin.replace('https', 'http')}/client.json`, 400, /client_id is unknown/],
    [`${good.origin}/a/../client.json`, 400, /client_id is unknown/],
    [`${good.origin}/%2e%2e/client.json`, 400, /client_id is unknown/],
    [`${good.origin}/client.json#`, 400, /client_id is unknown/],
    [`${good.origin.replace('https://', 'https://user@')}/client.json`, 400, /client_id is unknown/],
    [`${good.origin}/`, 400, /client_id is unknown/],
  ]
  const before = good.paths.length
  for (const [id, status, says] of rows) {
    const page = await new Program(gateway).open({ client_id: id })
    t.same([page.status, page.location], [status, null], id)
    t.match(page.html, says, id)
  }
  t.equal(good.paths.length, before)
  t.same([...untrusted.paths, ...misnamed.paths], [], 'nothing is sent to a server that proves no name')
  t.equal(unlisted.counted.connections, 0)
})

t.test('O7 what one address makes the gateway fetch at once is bounded', async t => {
  const program = programAt('/client.json')
  const held: ServerResponse[] = []
  let arrived = () => {}
  const four = new Promise<void>(resolve => {
    arrived = resolve
  })
  for (const n of [0, 1, 2, 3, 4]) {
    good.routes.set(`/held${n}`, res => {
      if (held.push(res) === 4) arrived()
    })
  }
  const open = (n: number, by = program) => by.open({ client_id: `${good.origin}/held${n}` })
  const waiting = [0, 1, 2, 3].map(n => open(n))
  await four
  const more = await open(4)
  t.same([more.status, more.location], [529, null])
  for (const res of held) res.end('{}')
  t.same(
    (await Promise.all(waiting)).map(({ status }) => status),
    [400, 400, 400, 400],
  )
})
