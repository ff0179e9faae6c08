/** Parts of the authorization server: where people may be sent, which documents describe clients, what forms are ours. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { addressKey, parseAddress } from '../../src/core/address.ts'
import { DocumentFetcher } from '../../src/egress/documents.ts'
import { Fetcher } from '../../src/egress/fetcher.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { describedClient, isDocumentUrl } from '../../src/oauth/client-metadata.ts'
import type { OAuthContext } from '../../src/oauth/context.ts'
import { isOwnResource } from '../../src/oauth/metadata.ts'
import { consentPage } from '../../src/oauth/pages.ts'
import { isRegistered, placeOf, redirectIssue, sourceOf, withParameters } from '../../src/oauth/redirects.ts'
import { CONSENT_MS, opened, signed } from '../../src/oauth/state.ts'

const schemes = new Set(['cursor', 'vscode'])

t.test('O10 redirects go to https, to loopback, and to private-use schemes', async t => {
  const good = [
    'https://app.example/cb?a=b',
    'http://127.0.0.1/cb',
    'http://localhost:1/',
    'http://[::1]:65535/cb',
    'cursor://anysphere.cursor-mcp/oauth/callback',
    'com.example.app:/cb',
  ]
  for (const uri of good) t.equal(redirectIssue(uri, schemes), undefined, uri)
  const bad = [
    'http://app.example/cb',
    'http://127.0.0.1.evil.example/',
    'http://10.0.0.1/',
    'https://app.example/#a',
    'https://app.example/#',
    'https://user@app.example/',
    'https://:secret@app.example/',
    'https://*.example/',
    'https://app.example/a b',
    'https://app.example\\@evil.example/',
    'https://app.example/\n',
    'https://app.example/\u202e',
    `https://app.example/${'x'.repeat(2000)}`,
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'other://cb',
    'ws://127.0.0.1/',
    '/cb',
    '',
  ]
  for (const uri of bad) t.type(redirectIssue(uri, schemes), 'string', uri.slice(0, 50))
})

t.test('O11 an address is the one that was registered, as text; on the loopback at any port', async t => {
  const registered = ['https://app.example/cb', 'http://127.0.0.1:1234/cb', 'http://localhost/']
  for (const uri of [...registered, 'http://127.0.0.1/cb', 'http://127.0.0.1:1/cb', 'http://localhost:9/']) {
    t.ok(isRegistered(registered, uri), uri)
  }
  for (const uri of [
    'https://app.example:443/cb',
    'https://APP.example/cb',
    'https://app.example/cb/',
    'http://localhost:1234/cb',
    'http://[::1]:1234/cb',
    'http://127.0.0.1:99999/cb',
    'http://127.0.0.1:/cb',
    'http://127.0.0.1:1@evil.example/cb',
    'http://127.0.0.1.evil.example/cb',
    'http://127.1/cb',
  ]) {
    t.notOk(isRegistered(registered, uri), uri)
  }
})

t.test('an address keeps what it has when parameters are added', async t => {
  const added = { code: 'a b', state: undefined, iss: 'http://x' }
  t.equal(withParameters('https://a.example/cb', added), 'https://a.example/cb?code=a+b&iss=http%3A%2F%2Fx')
  t.equal(
    withParameters('https://a.example/cb?x=%20y', added),
    'https://a.example/cb?x=%20y&code=a+b&iss=http%3A%2F%2Fx',
  )
  t.equal(withParameters('cursor://a/b', { code: 'c' }), 'cursor://a/b?code=c')
  t.equal(withParameters('com.example.app:/cb', { code: 'c' }), 'com.example.app:/cb?code=c')
  t.same(['https://a.example:8/x', 'http://[::1]:1/', 'cursor://x/y'].map(sourceOf), [
    'https://a.example:8',
    'http:',
    'cursor:',
  ])
  t.same(['https://a.example:8/x', 'http://localhost/'].map(placeOf), ['a.example:8', 'a program on this computer'])
})

t.test('a resource is this server or its endpoint', async t => {
  const base = 'https://gateway.example'
  for (const one of ['', '/', '/mcp', '/mcp/']) t.ok(isOwnResource(base, base + one), one)
  t.ok(isOwnResource(base, 'https://GATEWAY.example/mcp'))
  for (const one of [`${base}/v1`, `${base}/mcp?x`, `${base}/mcp#`, 'https://gateway.example:444/mcp', 'mcp', '']) {
    t.notOk(isOwnResource(base, one), one)
  }
})

t.test('O28 a form is ours for ten minutes, with the cookie of its page, under any key that there was', async t => {
  const request = {
    clientId: 'c',
    redirectUri: 'https://a.example/',
    state: 'x',
    scopes: ['usage:read'],
    challenge: 'y',
    resource: 'z',
  } as const
  const [older, newer] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const text = signed(request, 'cookie', older, 1000)
  t.same(opened(text, 'cookie', [newer, older], 1000 + CONSENT_MS - 1), request)
  t.equal(opened(text, 'cookie', [newer], 1000), 'forged')
  t.equal(opened(text, 'cookie', [older], 1000 + CONSENT_MS), 'expired')
  t.equal(opened(text, 'other', [older], 1000), 'another page')
  t.equal(opened(text, undefined, [older], 1000), 'another page')
  for (const wrong of ['', '.', `${text}=`, text.slice(0, -1), `x${text}`]) {
    t.equal(opened(wrong, 'cookie', [older], 1000), 'forged', wrong.slice(-5))
  }
})

t.test('limits count an address of IPv4, and a network of IPv6', async t => {
  const keyOf = (text: string) => addressKey(parseAddress(text))
  t.not(keyOf('192.0.2.1'), keyOf('192.0.2.2'))
  t.equal(keyOf('2001:db8::1'), keyOf('2001:db8::ffff:1'))
  t.not(keyOf('2001:db8::1'), keyOf('2001:db8:0:1::1'))
  t.equal(addressKey(undefined), 'unknown')
})

const id = 'https://app.example/client.json'
const described = (text: string | GatewayError, readsDocuments = true) => {
  const read = async () => {
    if (typeof text !== 'string') throw text
    return text
  }
  const services = { documents: { read }, metrics: { oauth() {} } }
  const ex = { http: { clientAddress: undefined } }
  return describedClient(
    { ex, services, options: { readsDocuments, redirectSchemes: schemes } } as unknown as OAuthContext,
    id,
  )
}

t.test('a document describes the client that it names by its own address', async t => {
  for (const url of [id, 'https://a.example/x?y=1', 'https://a.example:8443/x']) t.ok(isDocumentUrl(url), url)
  for (const url of [
    'https://a.example/',
    'https://a.example',
    'http://a.example/x',
    'https://a.example:443/x',
    'https://u@a.example/x',
    'https://a.example/x#y',
    'https://a.example/a/../x',
    'https://a.example/%2e%2e/x',
    'https://A.example/x',
    `https://a.example/${'x'.repeat(2000)}`,
  ]) {
    t.notOk(isDocumentUrl(url), url.slice(0, 40))
  }
  const good = { client_id: id, client_name: 'App', redirect_uris: ['http://127.0.0.1/cb'] }
  const client = (await described(JSON.stringify(good)))!
  t.match(client, { id, name: 'App', method: 'none', isRegistered: false, verified: 'app.example' })
  const request = { clientId: id, redirectUri: 'http://127.0.0.1/cb', state: undefined, challenge: '', resource: '' }
  const { html } = consentPage({ client, request: { ...request, scopes: ['usage:read'] }, signed: 'x', ticked: [] })
  t.match(html, /verified: app\.example/)
  t.match(html, /Any program on this computer could use this name/)
  t.notMatch(html, / checked/)
  const redirects = [...good.redirect_uris, 'https://app.example/cb']
  const both = (await described(JSON.stringify({ ...good, redirect_uris: redirects })))!
  const warns = redirects.map(redirectUri => {
    const asked = { ...request, redirectUri, scopes: ['usage:read'] as const }
    const { html } = consentPage({ client: both, request: asked, signed: 'x', ticked: [] })
    return /Any program on this computer/.test(html)
  })
  t.strictSame(warns, [true, false], 'the page warns of a program on this computer where this answer goes to one')
  t.equal(await described(JSON.stringify(good), false), undefined, 'where documents are not read')
  const wrong: [document: string, status: number][] = [
    ['{', 400],
    ['[]', 400],
    [JSON.stringify({ ...good, client_id: 'https://app.example/other.json' }), 400],
    [JSON.stringify({ ...good, redirect_uris: ['http://evil.example/'] }), 400],
    [JSON.stringify({ ...good, redirect_uris: 'x' }), 400],
    [JSON.stringify({ ...good, client_name: 1 }), 400],
    [JSON.stringify({ ...good, client_name: 'a\u0007' }), 400],
    [JSON.stringify({ ...good, token_endpoint_auth_method: 'client_secret_basic' }), 400],
    [JSON.stringify({ ...good, client_secret: 'x' }), 400],
  ]
  for (const [document, status] of wrong) await t.rejects(described(document), { status, message: /./ }, document)
  const unread = new GatewayError({ status: 502, type: 'x', code: null, message: 'It is not read: x.' })
  await t.rejects(described(unread), { status: 502, message: /It is not read: x\. .*mcp\.client_metadata/ })
})

t.test('documents are small, plain, public and kept for as long as they say', async t => {
  let visits = 0
  const routes: Record<string, (res: ServerResponse) => void> = {
    '/good': res => res.setHeader('cache-control', 'max-age=600').end('{"a":1}'),
    '/short': res => res.setHeader('cache-control', 'no-store').end('{}'),
    '/large': res => res.end(' '.repeat(5 * 1024 + 1)),
    '/html': res => res.setHeader('content-type', 'text/html').end('{}'),
    '/gone': res => res.writeHead(404).end('{}'),
    '/moved': res => res.writeHead(302, { location: '/good' }).end(),
    '/packed': res => res.setHeader('content-encoding', 'gzip').end('{}'),
  }
  const server = createServer((req, res) => {
    visits++
    res.setHeader('content-type', 'application/json')
    routes[req.url!]!(res)
  }).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const clock = { now: 0 }
  const fetcher = new DocumentFetcher(new Fetcher([origin]), () => clock.now)
  const both = await Promise.all([fetcher.read(`${origin}/good`, 'me'), fetcher.read(`${origin}/good`, 'me')])
  t.same(both, ['{"a":1}', '{"a":1}'])
  t.equal(visits, 1, 'one fetch for both')
  const again = async (path: string, after: number) => {
    clock.now += after
    const before = visits
    await fetcher.read(origin + path, 'me').catch(() => undefined)
    return visits - before
  }
  t.equal(await again('/good', 599_999), 0)
  t.equal(await again('/good', 1), 1)
  t.equal(await again('/short', 0), 1)
  t.equal(await again('/short', 59_999), 0, 'a minute at least')
  t.equal(await again('/short', 1), 1)
  for (const path of ['/large', '/html', '/gone', '/moved', '/packed']) {
    await t.rejects(fetcher.read(origin + path, 'me'), { status: 502, message: /It is not read/ }, path)
  }
  t.equal(await again('/gone', 59_999), 0, 'nor is a failure tried again within a minute')
  t.equal(await again('/gone', 1), 1)
  const held: ServerResponse[] = []
  for (const n of [0, 1, 2, 3, 4, 5]) routes[`/slow${n}`] = res => held.push(res)
  const slow = [0, 1, 2, 3].map(n => fetcher.read(`${origin}/slow${n}`, 'me'))
  await t.rejects(fetcher.read(`${origin}/slow4`, 'me'), { status: 529, message: /./ }, 'four at once for one reader')
  slow.push(fetcher.read(`${origin}/slow5`, 'another'))
  while (held.length < 5) await setImmediate()
  for (const res of held) res.end('{}')
  t.same(await Promise.all(slow), Array(5).fill('{}'))
  const guarded = new DocumentFetcher(new Fetcher([], async () => ['127.0.0.1']))
  for (const url of [`${origin}/good`, 'https://127.0.0.1/x', 'https://app.example/x', 'https://a.example:8443/x']) {
    await t.rejects(guarded.read(url, 'me'), { status: 502, message: /It is not read/ }, url)
  }
})
