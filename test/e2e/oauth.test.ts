/** The authorization server of the MCP endpoint: what clients get of it, and each attack on it. */
import { readdir, readFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { callTool, rpc } from '../helpers/mcp.ts'
import { callback, Program } from '../helpers/oauth.ts'
import { raw } from '../helpers/raw.ts'
import { startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>

const trusted = { trusted_proxies: ['127.0.0.0/8'] }
const upstream = await startUpstream(t, { key: upstreamSecret })
const gateway = await startGateway(t, {
  providers: { a: { base_url: upstream.url('a'), models: [testMapping] } },
  config: {
    mcp: { hosts: ['gateway.test'], origins: ['https://app.example'] },
    chains: { local: [{ auth: { optional: true, ...trusted } }, { ratelimit: { rpm: 10_000 } }, 'telemetry'] },
    endpoints: { mcp: { ratelimit: { rpm: 10_000 } } },
  },
})
const command = commandsOf(gateway)
const both = 'mcp:tools usage:read'
/** The characters that RFC 6749 allows in an `error_description`. */
const DESCRIPTION = /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/
const bearer = (token: unknown) => ({ authorization: `Bearer ${token}` })
const list = { jsonrpc: '2.0', id: 7, method: 'tools/list' }
const statusWith = async (token: unknown) => (await rpc(gateway, list, bearer(token))).status
const actions = async (limit: number) =>
  (await command<Tree[]>('audit', { limit })).map(({ action }) => action as string)

t.test('O1 metadata name the server by the address of the request, and need no key', async t => {
  for (const path of ['oauth-protected-resource', 'oauth-authorization-server']) {
    for (const end of ['', '/mcp']) {
      const response = await fetch(`${gateway.url}/.well-known/${path}${end}`)
      t.equal(response.headers.get('access-control-allow-origin'), '*')
      t.equal(response.headers.get('cache-control'), 'public, max-age=300')
      t.equal(response.headers.get('vary'), 'Host')
      const body = (await response.json()) as Tree
      if (path === 'oauth-protected-resource') {
        t.match(body, { resource: `${gateway.url}/mcp`, authorization_servers: [gateway.url] })
      } else {
        t.match(body, { issuer: gateway.url, token_endpoint: `${gateway.url}/oauth/token` })
        t.same(body.code_challenge_methods_supported, ['S256'])
        t.notOk('client_id_metadata_document_supported' in body, 'without https')
      }
      const preflight = await fetch(`${gateway.url}/.well-known/${path}${end}`, { method: 'OPTIONS' })
      t.match(preflight.headers.get('access-control-allow-headers'), /mcp-protocol-version/)
    }
  }
  t.equal((await fetch(`${gateway.url}/.well-known/openid-configuration`)).status, 404)
})

/** Status and body of a request with a `Host` of its own. */
const withHost = (host: string, path: string, method = 'GET') =>
  new Promise<[number, string]>((resolve, reject) => {
    const req = httpRequest({ port: gateway.port, host: '127.0.0.1', path, method, headers: { host } }, async res => {
      let text = ''
      for await (const chunk of res) text += String(chunk)
      resolve([res.statusCode!, text])
    })
    req.once('error', reject).end()
  })

t.test('O2 a host that is no name of ours gets no links, and one that is gets its own', async t => {
  const server = '/.well-known/oauth-authorization-server'
  t.match(JSON.parse((await withHost('gateway.test', server))[1]), { issuer: 'http://gateway.test' })
  for (const path of [server, '/oauth/authorize?client_id=x']) t.equal((await withHost('evil.example', path))[0], 403)
  for (const path of ['/oauth/token', '/oauth/register', '/oauth/revoke']) {
    t.equal((await withHost('evil.example', path, 'POST'))[0], 403)
  }
})

t.test('O3, X13 registration says what is wrong, and stores only the fields that the server uses', async t => {
  const program = () => new Program(gateway)
  const rows: [metadata: Tree, status: number, error: string | undefined][] = [
    [{ redirect_uris: [] }, 400, 'invalid_redirect_uri'],
    [{ redirect_uris: undefined }, 400, 'invalid_redirect_uri'],
    [{ redirect_uris: Array(21).fill(callback) }, 400, 'invalid_redirect_uri'],
    [{ redirect_uris: [callback, 'http://evil.example/'] }, 400, 'invalid_redirect_uri'],
    [{ redirect_uris: ['https://\\"\u00e9\n'] }, 400, 'invalid_redirect_uri'],
    [{ redirect_uris: 'x' }, 400, 'invalid_client_metadata'],
    [{ client_name: 'a\u0000b' }, 400, 'invalid_client_metadata'],
    [{ client_name: 'x'.repeat(101) }, 400, 'invalid_client_metadata'],
    [{ token_endpoint_auth_method: 'private_key_jwt' }, 400, 'invalid_client_metadata'],
    [{ grant_types: ['password'] }, 400, 'invalid_client_metadata'],
    [{ grant_types: ['client_credentials'], token_endpoint_auth_method: 'client_secret_post' }, 401, 'invalid_client'],
    [{ scope: 'nothing known', logo_uri: 'http://169.254.169.254/', contacts: ['x'] }, 201, undefined],
  ]
  for (const [metadata, status, error] of rows) {
    const answer = await program().register(metadata)
    t.equal(answer.status, status, JSON.stringify(metadata))
    t.equal(answer.body.error, error)
    if (error !== undefined) t.match(answer.body.error_description, DESCRIPTION)
    t.match(answer.headers.get('cache-control'), /no-store/)
  }
  const usual = program()
  const { body } = await usual.register({ token_endpoint_auth_method: undefined, client_name: undefined })
  t.match(body, {
    client_name: 'MCP client',
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'client_secret_basic',
    client_secret_expires_at: 0,
    scope: both,
  })
  t.match(usual.id, /^mgw_cl_[\w-]{22}$/)
  t.match(usual.secret, /^mgw_cs_[\w-]{43}$/)
  for (const body of ['{', '[]', '']) {
    const headers = { 'content-type': 'application/json' }
    t.equal((await program().send('/oauth/register', { method: 'POST', body, headers })).status, 400)
  }
  const { access_token: token } = await program().signIn(gateway.key)
  const own = { grant_types: ['client_credentials'], token_endpoint_auth_method: 'client_secret_post' }
  t.equal((await program().register(own, bearer(token))).status, 401, 'an access token is no API key')
  t.equal((await program().register({ ...own, token_endpoint_auth_method: 'none' }, bearer(gateway.key))).status, 400)
})

t.test('O12 a person signs a program in, which then acts for their key within its scopes', async t => {
  const program = new Program(gateway)
  await program.register({ client_name: '<b>Program</b>\u202e' })
  const page = await program.open()
  t.equal(page.status, 200)
  t.match(
    page.headers.get('content-security-policy'),
    /form-action 'self' http:\/\/127\.0\.0\.1:5555; frame-ancestors 'none'/,
  )
  t.match(page.headers.get('set-cookie'), /^mgw_consent=[\w-]{32}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/)
  for (const [name, value] of [
    ['x-frame-options', 'DENY'],
    ['cache-control', 'no-store'],
    ['referrer-policy', 'same-origin'],
    ['x-content-type-options', 'nosniff'],
  ] as const) {
    t.equal(page.headers.get(name), value)
  }
  t.ok(page.html.length < 8192)
  t.notMatch(page.html, /<script|<b>Program|\u202e|\son\w+=/)
  t.match(page.html, /its name is not verified/)
  const wrong = await program.submit(page, { credential: 'mgw_wrong' })
  t.equal(wrong.status, 400)
  t.match(wrong.html, /role="alert"/)
  t.notMatch(wrong.html, /mgw_wrong/, 'what was pasted is not shown again')
  const none = await program.submit(page, { credential: gateway.key, scope: undefined })
  t.equal(none.status, 400, 'nothing ticked')
  t.notMatch(none.html, new RegExp(gateway.key))
  const sent = await program.submit(page, { credential: `  ${gateway.key}\n` })
  t.equal(sent.status, 303)
  const back = new URL(sent.location!)
  t.equal(back.origin + back.pathname, callback)
  t.same([back.searchParams.get('state'), back.searchParams.get('iss')], ['a state', gateway.url])
  const { status, body, headers } = await program.redeem(back.searchParams.get('code')!)
  t.equal(status, 200)
  t.match(body, { token_type: 'Bearer', expires_in: 3600, scope: both })
  t.match(headers.get('cache-control'), /no-store/)
  const account = await callTool(gateway, 'get-account', {}, bearer(body.access_token))
  t.match(account.structuredContent, { apiKey: { name: 'default', expiresAt: null } })
  t.same((await actions(1))[0], 'oauth.grant')
  const log = gateway.stdout() + gateway.stderr()
  for (const secret of [body.access_token, body.refresh_token, back.searchParams.get('code')]) {
    t.notOk(log.includes(String(secret)), 'no log holds a secret')
  }
})

t.test('O26 a token is good at the MCP endpoint alone', async t => {
  const { access_token: token, refresh_token: refresh } = await new Program(gateway).signIn(gateway.key)
  t.equal(await statusWith(token), 200)
  for (const path of ['/v1/key', '/v1/models', '/v1/credits', '/v1/ai/config']) {
    t.equal((await gateway.get(path, bearer(token))).status, 401, path)
  }
  t.equal((await gateway.chat('hello', bearer(token))).status, 401)
  t.equal((await rpc(gateway, list, { authorization: null, 'x-api-key': String(token) })).status, 200)
  for (const wrong of [refresh, `${token}x`, 'mgw_at_of-another-gateway']) t.equal(await statusWith(wrong), 401)
  const refused = await rpc(gateway, list, bearer(refresh))
  t.match(refused.headers.get('www-authenticate'), /error="invalid_token".*resource_metadata="http/)
})

t.test(
  'X3 blanks that end a line are no part of a token, and those that belong to the value make it unknown',
  async t => {
    const { access_token: token } = await new Program(gateway).signIn(gateway.key)
    const body = JSON.stringify(list)
    const statusOf = async (line: string) => {
      const head = ['POST /mcp HTTP/1.1', `host: 127.0.0.1:${gateway.port}`, 'content-type: application/json', line]
      const text = [...head, `content-length: ${body.length}`, 'connection: close', '', body].join('\r\n')
      return (await raw(gateway.port, Buffer.from(text, 'latin1'))).status
    }
    const rows: [line: string, status: number][] = [
      [`authorization: Bearer ${token}`, 200],
      // RFC 9110 5.5: blanks around a value are not part of it, so that no server sees them.
      [`authorization: Bearer ${token} \t `, 200],
      [`x-api-key: ${token} `, 200],
      [`authorization: Bearer ${token}\u00a0`, 401],
      [`authorization: Bearer ${token} x`, 401],
      [`authorization: Bearer ${token}%20`, 401],
      [`authorization: Bearer "${token} "`, 401],
      [`authorization: Bearer ${token}\r\n x`, 400],
      [`x-api-key: ${token}+`, 401],
      [`authorization: Bearer ${token},`, 401],
    ]
    for (const [line, status] of rows) t.equal(await statusOf(line), status, line.replace(String(token), 'TOKEN'))
  },
)

t.test('O27 too small a scope is challenged with the one that is needed', async t => {
  const { access_token: token } = await new Program(gateway).signIn(gateway.key, { scope: 'usage:read other' })
  const call = (name: string, args: Tree = {}) => ({
    ...list,
    method: 'tools/call',
    params: { name, arguments: args },
  })
  const chat = await rpc(gateway, call('chat', { model: 'test', messages: [] }), bearer(token))
  t.equal(chat.status, 403)
  t.match(chat.headers.get('www-authenticate'), /^Bearer error="insufficient_scope", .*scope="mcp:tools"/)
  t.match(await chat.json(), { id: 7, error: { code: -32001 } })
  t.ok((await callTool(gateway, 'get-usage', {}, bearer(token))).structuredContent)
  const { access_token: other } = await new Program(gateway).signIn(gateway.key, { scope: 'mcp:tools' })
  t.match(
    (await rpc(gateway, call('get-account'), bearer(other))).headers.get('www-authenticate'),
    /scope="usage:read"/,
  )
  const args = { model: 'test', messages: [{ role: 'user', content: 'hello' }] }
  t.notOk((await callTool(gateway, 'chat', args, bearer(other))).isError)
  t.equal((await rpc(gateway, call('list-models'), bearer(other))).status, 200, 'models need none')
})

t.test('O8 no redirect is sent before client and address are checked', async t => {
  const program = new Program(gateway)
  await program.register({ redirect_uris: [callback, 'https://app.example/back?a=b'] })
  const rows: [parameters: Record<string, string | undefined>, more?: string][] = [
    [{ client_id: 'mgw_cl_unknown' }],
    [{ client_id: undefined }],
    [{ client_id: 'https://evil.example/client.json' }],
    [{ redirect_uri: undefined }],
    [{ redirect_uri: 'https://evil.example/cb' }],
    [{ redirect_uri: 'http://127.0.0.1:5555/cb/' }],
    [{ redirect_uri: 'http://127.0.0.1:5555/cb?x=1' }],
    [{ redirect_uri: 'http://localhost:5555/cb' }],
    [{ redirect_uri: 'http://127.0.0.1:5555@evil.example/cb' }],
    [{ redirect_uri: 'https://app.example:444/back?a=b' }],
    [{ redirect_uri: 'https://app.example/back?a=b&c=d' }],
    [{ redirect_uri: 'javascript:alert(1)' }],
    [{}, '&redirect_uri=https%3A%2F%2Fevil.example'],
    [{}, '&client_id=other'],
    [{}, '&state=other'],
  ]
  for (const [parameters, more] of rows) {
    const page = await program.open(parameters, more)
    t.ok(page.status >= 400 && page.status < 500, `${JSON.stringify(parameters)} ${more ?? ''}`)
    t.equal(page.location, null)
    t.match(page.headers.get('content-security-policy'), /form-action 'none'; frame-ancestors 'none'/)
    t.match(page.html, /role="alert"/)
  }
  t.equal((await program.open({ redirect_uri: 'http://127.0.0.1:61000/cb' })).status, 200, 'but by another port')
})

t.test('O9 what else is wrong goes back to the client by a link of a page alone', async t => {
  const program = new Program(gateway)
  await program.register()
  const rows: [parameters: Record<string, string | undefined>, error: string][] = [
    [{ response_type: 'token' }, 'unsupported_response_type'],
    [{ response_type: undefined }, 'unsupported_response_type'],
    [{ code_challenge: undefined }, 'invalid_request'],
    [{ code_challenge_method: undefined }, 'invalid_request'],
    [{ code_challenge_method: 'plain' }, 'invalid_request'],
    [{ code_challenge: 'short' }, 'invalid_request'],
    [{ resource: 'https://evil.example/mcp' }, 'invalid_target'],
    [{ resource: `${gateway.url}/v1` }, 'invalid_target'],
    [{ resource: `${gateway.url.replace('http', 'https')}/mcp` }, 'invalid_target'],
    [{ scope: 'admin' }, 'invalid_scope'],
    [{ scope: '' }, 'invalid_scope'],
  ]
  for (const [parameters, error] of rows) {
    const { status, location, html } = await program.open(parameters)
    t.strictSame([status, location], [400, null], JSON.stringify(parameters))
    const [, href = ''] = /<a href="([^"]+)"/.exec(html) ?? []
    const back = new URL(href.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))))
    t.equal(back.origin + back.pathname, callback)
    const said = ['error', 'state', 'iss'].map(name => back.searchParams.get(name))
    t.same(said, [error, 'a state', gateway.url])
    t.match(back.searchParams.get('error_description'), DESCRIPTION)
  }
  for (const resource of [`${gateway.url}/mcp`, `${gateway.url}/mcp/`, gateway.url, `${gateway.url}/`.toUpperCase()]) {
    t.equal((await program.open({ resource: resource.replace('HTTP', 'http') })).status, 200, resource)
  }
  const noCodes = new Program(gateway)
  await noCodes.register({ grant_types: ['refresh_token'] })
  t.match((await noCodes.open()).html + (await noCodes.open()).location, /unauthorized_client|redirect_uri/)
})

t.test('X8, X9 a state comes back as it was, and a redirect keeps its own query', async t => {
  const program = new Program(gateway)
  const uri = 'https://app.example/back?a=b&c='
  await program.register({ redirect_uris: [uri] })
  const state = `&x=1#\r\nset-cookie: a=b\u00e4\u{1f600}${'s'.repeat(4068)}`
  t.equal(Buffer.byteLength(state), 4096)
  for (const fields of [{ credential: gateway.key }, { action: 'deny' }]) {
    const { status, location, headers } = await program.submit(await program.open({ redirect_uri: uri, state }), fields)
    t.equal(status, 303)
    const { searchParams, hash } = new URL(location!)
    t.equal(searchParams.get('state'), state)
    t.same([searchParams.get('a'), searchParams.get('c'), hash], ['b', '', ''])
    t.equal(headers.get('set-cookie'), null)
    t.ok(searchParams.has('action' in fields ? 'error' : 'code'))
  }
})

t.test('O14 a form of another site, browser, page or time is refused and leads nowhere', async t => {
  const program = new Program(gateway)
  await program.register()
  const page = await program.open()
  const other = await program.open()
  const [content, mac] = page.request.split('.')
  const forged = Buffer.from(
    JSON.stringify({ ...JSON.parse(Buffer.from(content!, 'base64url').toString()), scopes: [] }),
  )
  const rows: [says: string, fields: Record<string, string>, headers: Record<string, string>][] = [
    ['another origin', {}, { origin: 'https://evil.example' }],
    ['the origin null', {}, { origin: 'null' }],
    ['another site', {}, { 'sec-fetch-site': 'cross-site' }],
    ['a sibling site', {}, { 'sec-fetch-site': 'same-site' }],
    ['no cookie', {}, { cookie: '' }],
    ['the cookie of a newer page', {}, { cookie: other.cookie }],
    ['two cookies', {}, { cookie: `${page.cookie}; ${other.cookie}` }],
    ['a changed request', { request: `${forged.toString('base64url')}.${mac}` }, {}],
    ['no signature', { request: content! }, {}],
    ['a longer signature', { request: `${page.request}A` }, {}],
    ['more behind the signature', { request: `${page.request}.x` }, {}],
    ['nothing', { request: '' }, {}],
  ]
  for (const [says, fields, headers] of rows) {
    const answer = await program.submit(page, { credential: gateway.key, ...fields }, headers)
    t.equal(answer.status, 403, says)
    t.equal(answer.location, null, says)
  }
  t.equal((await program.submit(page, { credential: gateway.key, action: 'x' })).status, 400)
  t.equal((await program.submit(page, { credential: gateway.key })).status, 303, 'the same form from its own page')
  const headers = { 'content-type': 'application/json' }
  t.equal((await program.send('/oauth/authorize', { method: 'POST', body: '{}', headers })).status, 400)
})

t.test('O15 only a live regular key or a login code proves anything', async t => {
  const create = (args: Tree) => command<{ id: string; key: string }>('keys.create', { project: 'default', ...args })
  const revoked = await create({ name: 'revoked' })
  await command('keys.revoke', { id: revoked.id })
  const { key: publishable } = await create({ kind: 'publishable' })
  const { key: session } = await create({ kind: 'session' })
  const program = new Program(gateway)
  const tokens = await program.signIn(gateway.key)
  const texts = new Set<string>()
  const wrong = [revoked.key, publishable, session, tokens.access_token, tokens.refresh_token, 'mgw_li_x', '']
  for (const credential of wrong) {
    const answer = await program.submit(await program.open(), { credential: String(credential) })
    t.equal(answer.status, 400, String(credential).slice(0, 7))
    texts.add(/role="alert">([^<]*)/.exec(answer.html)![1]!)
  }
  t.equal(texts.size, 1, 'one text for every cause')
})

t.test('O21 a code is redeemed once, by its own client, with its own secret', async t => {
  const program = new Program(gateway)
  await program.register()
  const code = await program.code(gateway.key)
  const foreign = new Program(gateway)
  await foreign.register()
  const rows: [says: string, by: Program, changes: Record<string, string | undefined>, error: string][] = [
    ['a foreign client', foreign, { code_verifier: program.verifier }, 'invalid_grant'],
    ['another verifier', program, { code_verifier: 'v'.repeat(43) }, 'invalid_grant'],
    ['the challenge as verifier', program, { code_verifier: program.challenge }, 'invalid_grant'],
    ['no verifier', program, { code_verifier: undefined }, 'invalid_request'],
    ['a short verifier', program, { code_verifier: 'v' }, 'invalid_request'],
    ['another address', program, { redirect_uri: 'http://127.0.0.1:6666/cb' }, 'invalid_grant'],
    ['no address', program, { redirect_uri: undefined }, 'invalid_request'],
    ['another resource', program, { resource: 'https://evil.example' }, 'invalid_target'],
    ['no grant type', program, { grant_type: undefined }, 'invalid_request'],
    ['another grant type', program, { grant_type: 'password' }, 'unsupported_grant_type'],
    ['a grant it did not register for', program, { grant_type: 'client_credentials' }, 'unauthorized_client'],
    ['a secret of a client without one', program, { client_secret: 'x' }, 'invalid_client'],
    ['no client', program, { client_id: undefined }, 'invalid_client'],
  ]
  for (const [says, by, changes, error] of rows) {
    const { body, status } = await by.redeem(code, changes)
    t.same([body.error, status], [error, error === 'invalid_client' ? 401 : 400], says)
  }
  const tries = await Promise.all(Array.from({ length: 30 }, () => program.redeem(code)))
  const [first] = tries.filter(({ status }) => status === 200)
  t.equal(tries.filter(({ status }) => status === 200).length, 1)
  t.equal(await statusWith(first!.body.access_token), 401, 'the second use has ended the grant')
  t.equal((await program.refresh(first!.body.refresh_token)).body.error, 'invalid_grant')
})

t.test('O19 requests for tokens are forms in which nothing stands twice', async t => {
  const program = new Program(gateway)
  await program.register()
  const post = async (path: string, body: string, headers: Record<string, string> = {}) => {
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    const response = await program.send(path, { method: 'POST', body, headers: { ...type, ...headers } })
    return [response.status, ((await response.json()) as Tree).error]
  }
  const twice = `grant_type=refresh_token&client_id=${program.id}&client_id=${program.id}`
  t.same(await post('/oauth/token', twice), [400, 'invalid_request'])
  t.same(await post('/oauth/token', '{}', { 'content-type': 'application/json' }), [400, 'invalid_request'])
  t.same(await post('/oauth/token?code=x', `client_id=${program.id}`), [400, 'invalid_request'])
  t.same(await post('/oauth/token', `a=${'x'.repeat(70_000)}`), [413, 'invalid_request'])
  t.same(await post('/oauth/revoke', `client_id=${program.id}`), [400, 'invalid_request'])
  t.equal((await program.send('/oauth/token')).status, 405)
})

t.test('O22 refresh tokens rotate, and the reuse of one ends everything', async t => {
  const program = new Program(gateway)
  const first = await program.signIn(gateway.key)
  const second = await program.refresh(first.refresh_token, { scope: 'usage:read' })
  t.match(second.body, { scope: 'usage:read', token_type: 'Bearer' })
  t.not(second.body.refresh_token, first.refresh_token)
  const foreign = new Program(gateway)
  await foreign.register()
  t.equal((await foreign.refresh(second.body.refresh_token)).body.error, 'invalid_grant', 'a foreign client')
  t.equal((await program.refresh(second.body.access_token)).body.error, 'invalid_grant', 'an access token')
  const more = await program.refresh(second.body.refresh_token, { scope: `${both} admin` })
  t.equal(more.body.error, 'invalid_scope', 'an escalation')
  t.equal(await statusWith(second.body.access_token), 200)
  t.equal((await program.refresh(first.refresh_token)).body.error, 'invalid_grant')
  for (const { access_token } of [first, second.body]) t.equal(await statusWith(access_token), 401)
  t.equal((await program.refresh(second.body.refresh_token)).body.error, 'invalid_grant')
  t.equal((await actions(1))[0], 'oauth.revoke')
})

t.test('O23 a narrow grant does not widen at its refresh', async t => {
  const program = new Program(gateway)
  const { refresh_token } = await program.signIn(gateway.key, { scope: 'usage:read' })
  t.equal((await program.refresh(refresh_token, { scope: both })).body.error, 'invalid_scope')
  t.equal((await program.refresh(refresh_token)).body.scope, 'usage:read')
})

t.test('a client without refresh tokens gets none', async t => {
  const program = new Program(gateway)
  await program.register({ grant_types: ['authorization_code'] })
  const { refresh_token } = await program.signIn(gateway.key)
  t.equal(refresh_token, undefined)
})

t.test(
  'O25, X10, X12 tokens end with what they hang on: revoked themselves, their key, their client, their grant',
  async t => {
    const { id, key } = await command<{ id: string; key: string }>('keys.create', { project: 'default', name: 'mine' })
    const start = async () => {
      const program = new Program(gateway)
      return { program, tokens: await program.signIn(key) }
    }
    const one = await start()
    t.equal((await new Program(gateway).revoke(one.tokens.access_token)).status, 401, 'nobody')
    const foreign = await start()
    t.equal((await foreign.program.revoke(one.tokens.access_token)).status, 200)
    t.equal(await statusWith(one.tokens.access_token), 200, 'a foreign client changes nothing')
    await one.program.revoke(one.tokens.access_token)
    t.equal(await statusWith(one.tokens.access_token), 401)
    const { body } = await one.program.refresh(one.tokens.refresh_token)
    t.equal((await one.program.revoke(body.refresh_token)).status, 200)
    t.equal(await statusWith(body.access_token), 401, 'the grant has ended')

    const two = await start()
    const grants = await command<{ id: string; client: string }[]>('oauth.grants.list', { key: id })
    const grant = grants.find(({ client }) => client === two.program.id)!
    t.match(grant, { clientName: 'MCP client', key: id, member: null, scope: both })
    await command('oauth.grants.revoke', { id: grant.id })
    t.equal(await statusWith(two.tokens.access_token), 401)

    const three = await start()
    const page = await three.program.open()
    t.match(await command('oauth.clients.remove', { id: three.program.id }), { clientId: three.program.id })
    t.equal(await statusWith(three.tokens.access_token), 401)
    t.equal((await three.program.submit(page, { credential: key })).status, 403, 'between page and form')
    t.equal((await three.program.refresh(three.tokens.refresh_token)).body.error, 'invalid_client')

    const four = await start()
    const code = await four.program.code(key)
    await command('keys.revoke', { id })
    t.equal(await statusWith(four.tokens.access_token), 401)
    t.equal((await four.program.redeem(code)).body.error, 'invalid_grant')
    t.equal((await four.program.refresh(four.tokens.refresh_token)).body.error, 'invalid_grant')
    t.same(await command('oauth.grants.list', { key: id }), [])
  },
)

t.test('O20, X14 a client with a secret proves that it has it', async t => {
  const program = new Program(gateway)
  await program.register({ token_endpoint_auth_method: 'client_secret_basic' })
  const other = new Program(gateway)
  await other.register({ token_endpoint_auth_method: 'client_secret_post' })
  const encoded = (text: string) => encodeURIComponent(text).replace(/_/g, '%5F')
  const basic = (id: string, secret: string) => ({
    authorization: `Basic ${Buffer.from(`${encoded(id)}:${encoded(secret)}`).toString('base64')}`,
  })
  const none = { client_id: undefined, client_secret: undefined }
  const code = await program.code(gateway.key)
  const fields = { grant_type: 'authorization_code', code, redirect_uri: callback, code_verifier: program.verifier }
  const wrong: [says: string, changes: Record<string, string | undefined>, headers: Record<string, string>][] = [
    ['no secret', { client_secret: undefined }, {}],
    ['a wrong secret', { client_secret: 'mgw_cs_x' }, {}],
    ['the secret of another client', { client_secret: other.secret }, {}],
    ['the same by Basic', none, basic(program.id, other.secret!)],
    ['what is encoded twice', none, basic(encoded(program.id), program.secret!)],
    ['a blank behind the id, as a plus', none, { authorization: `Basic ${btoa(`${program.id}+:${program.secret}`)}` }],
    ['a plus as itself', none, basic(program.id, `${program.secret}+`)],
    ['half an escape', none, { authorization: `Basic ${btoa(`${program.id}:${program.secret}%`)}` }],
    ['no Basic', none, { authorization: 'Basic !' }],
    ['a bearer', none, { authorization: `Bearer ${gateway.key}` }],
  ]
  for (const [says, changes, headers] of wrong) {
    const answer = await program.token({ ...fields, ...changes }, headers)
    t.same([answer.status, answer.body.error], [401, 'invalid_client'], says)
    t.match(answer.headers.get('www-authenticate'), /^Basic/)
  }
  const ways = await program.token(fields, basic(program.id, program.secret!))
  t.equal(ways.body.error, 'invalid_request', 'two ways at once')
  t.equal((await program.token({ ...fields, ...none }, basic(program.id, program.secret!))).status, 200)
})

t.test('O24 a client acts for a key by itself, and no longer than the key lives', async t => {
  const { id, key } = await command<{ id: string; key: string }>('keys.create', { project: 'default', name: 'robot' })
  const made = await command<Record<'clientId' | 'clientSecret', string>>('oauth.clients.create', {
    name: 'Robot',
    key: id,
    scope: 'usage:read',
  })
  t.match(made, { name: 'Robot', key: id, scope: 'usage:read' })
  const robot = new Program(gateway)
  robot.id = made.clientId
  robot.secret = made.clientSecret
  const fields = { grant_type: 'client_credentials' }
  const { body } = await robot.token(fields)
  t.same(Object.keys(body), ['access_token', 'token_type', 'expires_in', 'scope'], 'no refresh token')
  t.match((await callTool(gateway, 'get-account', {}, bearer(body.access_token))).structuredContent, { apiKey: { id } })
  t.equal((await robot.token({ ...fields, scope: 'mcp:tools' })).body.error, 'invalid_scope')
  const own = new Program(gateway)
  const grantTypes = { grant_types: ['client_credentials'], token_endpoint_auth_method: 'client_secret_basic' }
  for (const none of [undefined, []]) {
    t.match((await own.register({ ...grantTypes, redirect_uris: none }, bearer(key))).body, { redirect_uris: [] })
  }
  t.equal((await own.token(fields)).status, 200)
  t.equal((await own.open()).location, null, 'it sends nobody anywhere')
  t.match(await actions(1), ['oauth.grant'])
  await command('keys.revoke', { id })
  t.equal((await robot.token(fields)).body.error, 'invalid_grant')
  t.equal(await statusWith(body.access_token), 401)
})

t.test('O18 a login code signs a member in once, whose tools show the keys that they made alone', async t => {
  await command('members.add', { organization: 'default', email: 'dev@a.example', role: 'developer' })
  const login = (args: Tree = {}) =>
    command<{ code: string; url: string }>('members.login-link', {
      organization: 'default',
      member: 'dev@a.example',
      ...args,
    })
  const made = await login()
  t.match(made, { member: 'dev@a.example', organization: 'default', project: 'default', url: `${gateway.url}/mcp` })
  t.match(made.code, /^mgw_li_[\w-]{27}$/)
  await gateway.chat('of the owner')
  const program = new Program(gateway)
  await program.register({ client_name: 'Their program' })
  const tokens = await program.signIn(made.code)
  const headers = bearer(tokens.access_token)
  const again = await program.submit(await program.open(), { credential: made.code })
  t.equal(again.status, 400, 'a second time')
  const account = (await callTool(gateway, 'get-account', {}, headers)).structuredContent
  t.match(account, { user: { name: 'dev@a.example' }, role: 'developer', usageScope: { type: 'member' } })
  t.match(account, { apiKey: { name: 'mcp: Their program' }, creditsBalanceUsd: null })
  const usage = async () => (await callTool(gateway, 'get-usage', {}, headers)).structuredContent
  t.match(await usage(), { totals: { requestCount: 0 } })
  const args = { model: 'test', messages: [{ role: 'user', content: 'hello' }] }
  t.notOk((await callTool(gateway, 'chat', args, headers)).isError)
  t.match(await usage(), { totals: { requestCount: 1 } })
  const keys = await command<Tree[]>('keys.list', { project: 'default' })
  const key = keys.find(({ name }) => name === 'mcp: Their program')!
  t.match(key, { createdBy: 'dev@a.example', status: 'active' })
  await command('keys.update', { id: key.id, limit: '0.000001' })
  t.match(await callTool(gateway, 'chat', args, headers), { isError: true, content: [{ text: /^Error: 402/ }] })
  t.match(await usage(), { totals: { requestCount: 2, errorCount: 1 } }, 'a spent key reads, and cannot generate')
  await program.revoke(tokens.refresh_token)
  const ended = await command<Tree[]>('keys.list', { project: 'default' })
  t.match(
    ended.find(({ id }) => id === key.id),
    { status: 'revoked' },
  )
  const { code } = await login({ expires: '1h', project: 'default' })
  await command('members.remove', { organization: 'default', member: 'dev@a.example' })
  t.equal((await program.submit(await program.open(), { credential: code })).status, 400, 'who has left')
  t.same((await actions(5)).includes('members.login-link'), true)
})

t.test('X19 while the database cannot be written nothing is granted, in whole or in part', async t => {
  const program = new Program(gateway)
  const tokens = await program.signIn(gateway.key)
  const page = await program.open()
  const before = await command<Tree[]>('oauth.grants.list')
  const db = new Database(join(gateway.dir, 'data/gateway.db'))
  db.exec('BEGIN IMMEDIATE')
  const [sent, refreshed, registered] = await Promise.all([
    program.submit(page, { credential: gateway.key }),
    program.refresh(tokens.refresh_token),
    new Program(gateway).register(),
  ])
  t.same([sent.status, sent.location], [503, null])
  t.match(sent.html, /unavailable/)
  for (const { status, body } of [refreshed, registered]) {
    t.same([status, body.error], [503, 'temporarily_unavailable'])
  }
  db.exec('ROLLBACK')
  db.close()
  t.same(await command('oauth.grants.list'), before)
  t.equal((await program.refresh(tokens.refresh_token)).status, 200, 'the token was not used up')
})

t.test('O31 pages that the operator lists may register and ask for tokens, and no others', async t => {
  for (const [path, isOpen] of [
    ['/oauth/register', true],
    ['/oauth/token', true],
    ['/oauth/revoke', false],
    ['/oauth/authorize', false],
  ] as const) {
    for (const origin of ['https://app.example', 'https://evil.example']) {
      const preflight = await fetch(`${gateway.url}${path}`, { method: 'OPTIONS', headers: { origin } })
      const allowed = preflight.headers.get('access-control-allow-origin')
      t.equal(allowed, isOpen && origin === 'https://app.example' ? origin : null, `${path} ${origin}`)
      t.equal(preflight.headers.get('access-control-allow-credentials'), null)
    }
  }
})

t.test('O17 what one address may try in a minute is bounded', async t => {
  const program = new Program(gateway)
  for (let i = 0; i < 10; i++) t.equal((await program.register()).status, 201)
  const more = await program.register()
  t.match(more, { status: 429, body: { error: 'temporarily_unavailable' } })
  t.ok(Number(more.headers.get('retry-after')) > 0)
  const page = await program.open()
  const wrong = async () => (await program.submit(page, { credential: 'mgw_wrong' })).status
  const paste = async () => program.submit(page, { credential: gateway.key })
  t.equal((await paste()).status, 303, 'a right attempt is not counted')
  for (let i = 0; i < 10; i++) t.equal(await wrong(), 400)
  t.equal(await wrong(), 429)
  const right = await paste()
  t.same([right.status, right.location], [429, null], 'the right key comes too late')
  t.ok(Number(right.headers.get('retry-after')) > 0)
  t.equal((await program.submit(page, { action: 'deny' })).status, 303, 'Deny proves nothing')
  const caller = new Program(gateway)
  await caller.register()
  const client = async (secret?: string) => (await caller.token({ client_secret: secret })).status
  for (let i = 0; i < 25; i++) t.equal(await client(), 400, 'a right client is not counted')
  for (let i = 0; i < 20; i++) t.equal(await client('wrong'), 401)
  t.equal(await client('wrong'), 429)
  t.equal(await client(), 429, 'the right client comes too late')
  t.equal((await caller.revoke('x')).status, 429)
  const other = new Program(gateway)
  t.equal((await other.register()).status, 201, 'another address')
  t.ok(await other.code(gateway.key))
  const documents = new Program(gateway)
  const read = async () => (await documents.send('/.well-known/oauth-authorization-server')).status
  const seen = new Set<number>()
  for (let i = 0; i < 61; i++) seen.add(await read())
  t.same([...seen], [200, 429], 'sixty requests in all')
})

t.test('O29 secrets are kept by their hash alone, also when the process starts again', async t => {
  const program = new Program(gateway)
  const tokens = await program.signIn(gateway.key)
  const page = await program.open()
  await gateway.restart()
  const { status } = await new Program(gateway).submit(page, { credential: gateway.key })
  t.equal(status, 303, 'a page that was opened before')
  t.equal(await statusWith(tokens.access_token), 200)
  const folder = join(gateway.dir, 'data')
  for (const name of await readdir(folder)) {
    const bytes = await readFile(join(folder, name)).catch(() => Buffer.alloc(0))
    for (const secret of [tokens.access_token, tokens.refresh_token]) t.notOk(bytes.includes(String(secret)), name)
  }
})

t.test('X20 a reload changes names and lives of what is granted from then on', async t => {
  const { access_token: before } = await new Program(gateway).signIn(gateway.key)
  const file = parse(await readFile(gateway.configPath, 'utf8')) as { mcp: Tree }
  file.mcp = { hosts: ['other.test'], access_token: '2s', client_metadata: 'on' }
  await gateway.writeFile('config/gateway.yaml', stringify(file))
  t.equal((await gateway.admin('POST', '/reload')).status, 200)
  const server = '/.well-known/oauth-authorization-server'
  t.equal((await withHost('gateway.test', server))[0], 403)
  const shown = JSON.parse((await withHost('other.test', server))[1]) as Tree
  t.equal(shown.client_id_metadata_document_supported, true)
  const { expires_in } = await new Program(gateway).signIn(gateway.key)
  t.equal(expires_in, 2)
  t.equal(await statusWith(before), 200)
  const page = await new Program(gateway).open({ client_id: 'https://127.0.0.1/client.json' })
  t.equal(page.status, 502)
  t.match(page.html, /mcp\.client_metadata/)
})
