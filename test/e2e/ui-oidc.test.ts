/** People sign in to the page at `/ui` by an identity provider (docs/ui.md#by-your-identity-provider). */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { chromium, startBrowser } from '../helpers/browser.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { raw } from '../helpers/raw.ts'

const SECRET = 'secret & of=the client'
const pair = await generateKeyPair('ES256')
const jwk = { ...(await exportJWK(pair.publicKey)), kid: 'one', alg: 'ES256' }
const ann = { sub: 'u-1', email: 'Ann@example.com', email_verified: true, groups: ['staff', 'platform'] }

interface Asked {
  readonly nonce: string
  readonly challenge: string
  readonly redirect: string
}

/** The identity provider: what it answers next, and the codes that it has given. */
const provider = {
  claims: {} as Record<string, unknown>,
  isAway: false,
  status: 200,
  /** In place of the id token; none where it is empty. */
  token: undefined as string | undefined,
  codes: new Map<string, Asked>(),
  given: 0,
}
const server = createServer(async (req, res) => {
  const url = new URL(req.url!, issuer)
  if (provider.isAway) return void res.writeHead(500).end()
  if (url.pathname === '/authorize') return void res.writeHead(302, { location: answerTo(url.href) }).end()
  res.setHeader('content-type', 'application/json')
  if (url.pathname === '/keys') return void res.end(JSON.stringify({ keys: [jwk] }))
  if (url.pathname === '/token') {
    if (provider.status === 0) return void req.destroy()
    const { status, body } = await exchange(req)
    return void res.writeHead(status).end(JSON.stringify(body))
  }
  const metadata = { issuer, jwks_uri: `${issuer}/keys`, token_endpoint: `${issuer}/token` }
  res.end(JSON.stringify({ ...metadata, authorization_endpoint: `${issuer}/authorize` }))
})
await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
t.teardown(() => server.close().closeAllConnections())
/** Another site than the gateway's, for browsers. */
const issuer = `http://localhost:${(server.address() as AddressInfo).port}`

/** Signs Ann in without asking, and leads back. */
function answerTo(location: string): string {
  const query = new URL(location).searchParams
  const code = `code-${++provider.given}`
  const redirect = query.get('redirect_uri')!
  provider.codes.set(code, { nonce: query.get('nonce')!, challenge: query.get('code_challenge')!, redirect })
  return `${redirect}?${new URLSearchParams({ code, state: query.get('state')!, iss: issuer })}`
}

const encoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)

async function exchange(req: IncomingMessage): Promise<{ status: number; body: object }> {
  let text = ''
  for await (const piece of req) text += piece
  const form = new URLSearchParams(text)
  const basic = `Basic ${Buffer.from(`model-gateway:${encoded(SECRET)}`).toString('base64')}`
  if (provider.status !== 200) return { status: provider.status, body: { error: 'server_error' } }
  if (req.headers.authorization !== basic) return { status: 401, body: { error: 'invalid_client' } }
  const asked = provider.codes.get(form.get('code') ?? '')
  provider.codes.delete(form.get('code') ?? '')
  const challenge = createHash('sha256').update(form.get('code_verifier')!).digest('base64url')
  const isAsked = asked?.challenge === challenge && asked.redirect === form.get('redirect_uri')
  if (!isAsked || form.get('grant_type') !== 'authorization_code')
    return { status: 400, body: { error: 'invalid_grant' } }
  return {
    status: 200,
    body: {
      id_token: provider.token === '' ? undefined : (provider.token ?? (await tokenOf(asked.nonce))),
      access_token: 'a',
    },
  }
}

const now = () => Math.floor(Date.now() / 1000)
/** An id token of Ann with the provider's changes; null leaves a claim out. */
async function tokenOf(nonce: string): Promise<string> {
  const given = { ...ann, iss: issuer, aud: 'model-gateway', nonce, exp: now() + 300, ...provider.claims }
  const claims = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)) as JWTPayload
  return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'one' }).sign(pair.privateKey)
}

const page = readFileSync('docs/ui.md', 'utf8')
const example = /```yaml\n([\s\S]*?)```/.exec(page)![1]!.replace('https://login.example.com', issuer)
const gateway = await startGateway(t, {
  providers: { acme: { base_url: 'http://127.0.0.1:1' } },
  config: parse(example),
  env: { OIDC_CLIENT_SECRET: SECRET },
})
const command = commandsOf(gateway)

const visit = (path: string, cookie = '') =>
  fetch(`${gateway.adminUrl}${path}`, { redirect: 'manual', headers: { cookie } })
const cookieOf = (answer: Response, at = 0) => answer.headers.getSetCookie()[at]?.split(';')[0] ?? ''

/** Begins a sign-in: the provider's address, and the browser's cookie. */
async function begin(to = '/ui/keys') {
  const answer = await visit(`/ui/sign-in/oidc?${new URLSearchParams({ to })}`)
  return { answer, location: answer.headers.get('location') ?? '', cookie: cookieOf(answer) }
}

/** Goes to the provider and back, with changes of the way back; null leaves a parameter out. */
async function signIn(changes: Record<string, string | null> = {}, to?: string) {
  const { location, cookie } = await begin(to)
  const back = new URL(answerTo(location))
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) back.searchParams.delete(name)
    else back.searchParams.set(name, value)
  }
  const path = back.pathname + back.search
  const answer = await visit(path, cookie)
  return { answer, text: await answer.text(), path, cookie, session: cookieOf(answer, 1) }
}

const original = readFileSync(join(gateway.dir, 'config/gateway.yaml'), 'utf8')
const changed = (allow: object): string => {
  const settings = parse(original) as { admin: { oidc: object } }
  return stringify({ ...settings, admin: { oidc: { ...settings.admin.oidc, allow } } })
}
/** Writes the settings and reads them. */
async function configure(text: string) {
  await gateway.writeFile('config/gateway.yaml', text)
  const answer = await gateway.admin('POST', '/reload')
  if (answer.status !== 200) throw new Error(await answer.text())
}

t.afterEach(() => {
  Object.assign(provider, { claims: {}, isAway: false, status: 200, token: undefined })
})

t.test('while the provider is away, the page says so, and the token still signs in', async t => {
  provider.isAway = true
  const { answer, cookie } = await begin()
  t.equal(answer.status, 502)
  t.equal(cookie, '')
  const text = await answer.text()
  t.ok(text.includes(`role="alert">The identity provider &#34;${issuer}&#34; does not give its metadata. Sign in with`))
  t.match(text, /href="\/ui\/sign-in"/)
  const body = new URLSearchParams({ token: gateway.token })
  const byToken = await fetch(`${gateway.adminUrl}/ui/sign-in`, { method: 'POST', body, redirect: 'manual' })
  t.equal(byToken.status, 303)
})

t.test('a person signs in, and changes bear their name', async t => {
  const signInPage = await (await visit('/ui/sign-in?to=%2Fui%2Fjobs')).text()
  t.ok(signInPage.includes(`href="/ui/sign-in/oidc?to=%2Fui%2Fjobs">Sign in with ${new URL(issuer).host}`))
  t.match(signInPage, /name="token"/)
  const { answer: begun, location, cookie } = await begin()
  t.equal(begun.status, 303)
  const query = Object.fromEntries(new URL(location).searchParams)
  t.match(query, { response_type: 'code', client_id: 'model-gateway', code_challenge_method: 'S256' })
  t.match(query, { scope: 'openid email profile', redirect_uri: `${gateway.adminUrl}/ui/sign-in/callback` })
  const set = begun.headers.get('set-cookie')!
  for (const part of ['HttpOnly', 'SameSite=Lax', 'Path=/ui/sign-in', 'Max-Age=600']) t.ok(set.includes(part), part)
  for (const secret of [query.state!, query.nonce!]) t.notOk(cookie.includes(secret), 'the cookie is sealed')

  const { answer, session } = await signIn()
  t.equal(answer.status, 200)
  t.equal(answer.headers.get('refresh'), '0; url=/ui/keys')
  const [used, made] = answer.headers.getSetCookie()
  t.match(used, /^gateway_oidc_\d+=; Max-Age=0/)
  t.match(made, /Max-Age=28[78]\d\d;.* HttpOnly; SameSite=Strict/)
  const { id } = await command<{ id: string }>('keys.create', { project: 'default', name: 'short-lived' })
  const shown = await (await visit('/ui/keys', session)).text()
  t.match(shown, 'Ann@example.com')
  const csrf = /name="csrf" value="([^"]+)"/.exec(shown)![1]!
  const body = new URLSearchParams({ action: 'keys.revoke', id, csrf })
  const done = await fetch(`${gateway.adminUrl}/ui/confirm`, { method: 'POST', body, headers: { cookie: session } })
  t.equal(done.status, 200)
  const [line] = await command<{ actor: string; action: string }[]>('audit', { limit: 1 })
  t.match(line, { actor: 'ui:Ann@example.com', action: 'keys.revoke' })
  t.equal((await gateway.admin('GET', '/config').then(answer => answer.text())).includes(SECRET), false)
})

t.test('without a verified address, the person has the name of the provider', async t => {
  await configure(changed({ groups: ['platform'] }))
  for (const claims of [{ email_verified: false }, { email_verified: 'false' }, { email: null }]) {
    provider.claims = { ...claims, preferred_username: 'ann@example.com' }
    const { session } = await signIn()
    t.match(await (await visit('/ui', session)).text(), />u-1</)
  }
  await configure(original)
})

t.test('it leads to no other origin', async t => {
  for (const to of [
    'https://evil.example',
    '//evil.example',
    '/ui/../config',
    'javascript:1',
    `/ui?${'a'.repeat(2000)}`,
  ]) {
    const { answer } = await signIn({}, to)
    t.equal(answer.headers.get('refresh'), '0; url=/ui', to)
  }
})

const other = await generateKeyPair('ES256')
const hour = 3600
const refusals: readonly (readonly [name: string, Record<string, unknown>, RegExp, number?])[] = [
  ['another nonce', { nonce: 'other' }, /answered another sign-in/],
  ['no nonce', { nonce: null }, /answered another sign-in/],
  ['another audience', { aud: 'billing' }, /audience is not &#34;model-gateway&#34;/, 401],
  ['another authorized party', { aud: ['model-gateway', 'billing'], azp: 'billing' }, /answered another sign-in/],
  ['another issuer', { iss: 'https://evil.example' }, /claim &#34;iss&#34; is missing or wrong/, 401],
  ['an expired token', { exp: now() - hour }, /it has expired/, 401],
  ['no end', { exp: null }, /&#34;exp&#34;/, 401],
  ['another group', { groups: ['staff'] }, /may not sign in here.*groups and email/],
  ['no group', { groups: null }, /may not sign in here/],
  ['a group that is no text', { groups: [{ name: 'platform' }] }, /may not sign in here/],
  ['another address', { email: 'ann@example.com.evil.example' }, /may not sign in here/],
  ['an address that is not verified', { email_verified: false }, /u-1 may not sign in here/],
]
for (const [name, claims, expected, status = 403] of refusals) {
  t.test(`${name} is refused with the reason`, async t => {
    provider.claims = claims
    const { answer, text, session } = await signIn()
    t.equal(answer.status, status)
    t.match(text, expected)
    t.equal(session, '', 'no session')
    t.match(text, /href="\/ui\/sign-in"/)
  })
}

t.test('a token that the provider has not signed is refused', async t => {
  const claims = { ...ann, iss: issuer, aud: 'model-gateway', exp: now() + hour }
  const forged = new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'one' }).sign(other.privateKey)
  const shared = new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'one' })
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const rows: readonly (readonly [string, RegExp])[] = [
    [await forged, /signature is wrong/],
    [await shared.sign(new TextEncoder().encode(SECRET.padEnd(32))), /signed by one of/],
    [`${part({ alg: 'none' })}.${part(claims)}.`, /signed by one of/],
  ]
  for (const [token, expected] of rows) {
    provider.token = token
    const { answer, text, session } = await signIn()
    t.equal(answer.status, 401)
    t.match(text, expected)
    t.equal(session, '')
  }
})

t.test('an answer that does not belong to what the browser began is refused', async t => {
  for (const changes of [{ state: 'other' }, { state: null }]) {
    const { answer, text, session } = await signIn(changes)
    t.equal(answer.status, 403)
    t.match(text, /This sign-in has ended/)
    t.equal(session, '')
  }
  const { location } = await begin()
  const back = new URL(answerTo(location))
  const path = back.pathname + back.search
  const { cookie } = await begin()
  for (const foreign of ['', cookie, cookie.replace(/=.*/, '=x')]) {
    t.match(await (await visit(path, foreign)).text(), /This sign-in has ended/)
  }
  t.equal((await signIn({ iss: 'https://evil.example' })).answer.status, 403)
})

t.test('what the provider refuses is said as text', async t => {
  const { answer, text } = await signIn({ code: null, error: 'access_denied', error_description: '<b>no</b>' })
  t.equal(answer.status, 403)
  t.match(text, 'refused: access_denied &#60;b&#62;no&#60;/b&#62;.')
})

t.test('a code is taken once', async t => {
  const { answer, path, cookie } = await signIn()
  t.equal(answer.status, 200)
  const again = await visit(path, cookie)
  t.equal(again.status, 403)
  t.match(await again.text(), /was used or has expired/)
  t.equal(again.headers.getSetCookie().length, 1, 'only the used cookie is deleted')
  provider.codes.clear()
})

const failures: readonly (readonly [name: string, next: Partial<typeof provider>, expected: string])[] = [
  ['fails', { status: 500 }, 'answered 500 at its token endpoint. Sign in with the token, or later.'],
  ['hangs up', { status: 0 }, 'cannot be reached at its token endpoint. Sign in with the token, or later.'],
  [
    'refuses the client',
    { status: 401 },
    'gave no id token: it answered 401 server_error. The operator checks client_id,',
  ],
  ['gives no id token', { token: '' }, 'gave no id token: it answered 200. The operator checks client_id,'],
]
for (const [name, next, expected] of failures) {
  t.test(`a provider that ${name} at the exchange is named, with the remedy`, async t => {
    Object.assign(provider, next)
    const { answer, text, session } = await signIn()
    t.equal(answer.status, 502)
    t.ok(text.includes(`The identity provider &#34;${issuer}&#34; ${expected}`), text)
    t.equal(session, '')
  })
}

t.test('a provider that fails before the exchange is named, too', async t => {
  const { answer, text } = await signIn({ code: null, error: 'server_error', error_description: 'later' })
  t.equal(answer.status, 502)
  t.match(text, 'failed: server_error later. Sign in with the token, or later.')
})

t.test('a person whom the rules no longer allow is signed out; without rules all are refused', async t => {
  const { session } = await signIn()
  t.equal((await visit('/ui', session)).status, 200)
  await configure(changed({ groups: 'security' }))
  t.equal((await visit('/ui', session)).status, 303)
  await configure(changed({}))
  t.match((await signIn()).text, /may not sign in here/)
  await configure(original)
  t.equal((await visit('/ui', session)).status, 303, 'the session has ended')
  const { admin: _, ...without } = parse(original)
  await configure(stringify(without))
  t.notMatch(await (await visit('/ui/sign-in')).text(), /Sign in with/)
  t.equal((await begin()).answer.status, 404)
  await configure(original)
})

t.test('behind a proxy the page has the name of redirect_url', async t => {
  const settings = parse(original)
  const redirect = 'https://gateway.example.com/ui/sign-in/callback'
  const ask = (host: string, path: string) =>
    raw(gateway.adminPort, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  t.equal((await ask('gateway.example.com', '/ui/sign-in')).status, 403)
  settings.admin.oidc.redirect_url = redirect
  await configure(stringify(settings))
  t.equal((await ask('gateway.example.com', '/ui/sign-in')).status, 200)
  t.equal((await ask('evil.example', '/ui/sign-in')).status, 403)
  t.equal((await ask('gateway.example.com', '/live')).status, 403, 'for the page alone')
  t.equal(new URL((await begin()).location).searchParams.get('redirect_uri'), redirect)
  await configure(original)
})

t.test(
  'in a browser the provider of another site leads back, signed in',
  { skip: !chromium && 'no chromium' },
  async t => {
    const browser = await startBrowser(t)
    const tab = await browser.tab({ scripts: true, width: 1280 })
    await tab.open(`${gateway.adminUrl}/ui/keys`)
    // The page after the callback leads on by itself.
    const arrived = new Promise<void>(resolve =>
      browser.on('Page.frameNavigated', ({ frame }) => {
        if (new URL((frame as { url: string }).url).pathname === '/ui/keys') resolve()
      }),
    )
    await tab.evaluate(`void document.querySelector('a[href^="/ui/sign-in/oidc"]').click()`)
    await arrived
    await tab.evaluate(`document.readyState === 'complete' || new Promise(done => addEventListener('load', done))`)
    t.equal(await tab.read('location.pathname'), '/ui/keys')
    t.match(await tab.read('document.body.innerText'), 'Ann@example.com')
  },
)
