/** Tokens of an identity provider stand for keys (docs/jwt.md). */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import t from 'tap'
import { parse } from 'yaml'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { startUpstream } from '../helpers/upstream.ts'

const pairOf = async (kid: string, alg = 'ES256') => ({
  kid,
  alg,
  ...(await generateKeyPair(alg, { extractable: true })),
})
type Pair = Awaited<ReturnType<typeof pairOf>>

/** The identity provider: its key set, and whether it is away. */
const provider = { pairs: [await pairOf('first')], isAway: false, reads: 0 }
const server = createServer(async (req, res) => {
  if (provider.isAway) return void res.writeHead(500).end()
  res.setHeader('content-type', 'application/json')
  if (req.url === '/.well-known/openid-configuration')
    return void res.end(JSON.stringify({ jwks_uri: `${issuer}/keys` }))
  provider.reads++
  const keys = provider.pairs.map(async ({ kid, alg, publicKey }) => ({ ...(await exportJWK(publicKey)), kid, alg }))
  return void res.end(JSON.stringify({ keys: await Promise.all(keys) }))
})
await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
t.teardown(() => server.close().closeAllConnections())
const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

const upstream = await startUpstream(t, { key: upstreamSecret })
const page = readFileSync('docs/jwt.md', 'utf8')
const example = /```yaml\n([\s\S]*?)```/.exec(page)![1]!.replace('https://login.example.com', issuer)
const gateway = await startGateway(t, {
  providers: { acme: { base_url: upstream.url('acme') } },
  config: parse(example),
})
const command = commandsOf(gateway)
for (const name of ['Blue', 'Red']) await command('orgs.create', { name, account: 'open' })
for (const organization of ['Blue', 'Red']) await command('projects.create', { organization, name: 'search' })

const now = () => Math.floor(Date.now() / 1000)
const usual = { aud: 'model-gateway', iss: issuer, sub: 'ann', org: 'Blue', team: 'search' }
interface Signing {
  readonly pair?: Pair
  /** Of the header, where it is not the key's. */
  readonly kid?: string | undefined
}

/** A token with these changes of its claims; null leaves one out. */
async function token(changes: Record<string, unknown> = {}, { pair = provider.pairs[0]!, ...header }: Signing = {}) {
  const given = { ...usual, exp: now() + 600, ...changes }
  const claims = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)) as JWTPayload
  const { kid = pair.kid } = header
  return new SignJWT(claims).setProtectedHeader({ alg: pair.alg, ...(kid && { kid }) }).sign(pair.privateKey)
}
const ask = async (bearer: string, headers: Record<string, string> = { authorization: `Bearer ${bearer}` }) =>
  gateway.chat('Hi', headers)
const refusal = async (answer: Response) => {
  const { error } = (await answer.json()) as { error: { code: string; message: string } }
  return `${answer.status} ${error.code}: ${error.message}`
}
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

await upstream.script('acme', [{ text: 'Hello', usage: { prompt: 10, completion: 5 } }])

t.test('a token pays from the project that it names, by every header that clients have', async t => {
  const bearer = await token()
  t.equal((await ask(bearer)).status, 200)
  t.equal((await ask(bearer, { 'x-api-key': bearer })).status, 200)
  const answer = await gateway.post(
    '/v1beta/models/test:generateContent',
    { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
    { authorization: null, 'x-goog-api-key': bearer },
  )
  t.equal(answer.status, 200)
  const keys = await command<{ name: string; organization: string; project: string }[]>('keys.list')
  const made = keys.filter(({ name }) => name === `tokens of ${issuer}`)
  t.match(made, [{ organization: 'Blue', project: 'search' }])
  t.equal(made.length, 1, 'one key for all tokens of a project')
  const status = await gateway.get('/v1/key', { authorization: `Bearer ${bearer}` })
  t.equal(status.status, 200)
})

t.test('a token without a project has the default one', async t => {
  t.equal((await ask(await token({ team: null, org: null }))).status, 200)
})

t.test('requests that come together at first make one key', async t => {
  const bearer = await token({ org: 'Red' })
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask(bearer)))
  t.strictSame(new Set(answers.map(({ status }) => status)), new Set([200]))
})

const other = await pairOf('first')
const hour = 3600
const refusals: readonly (readonly [string, () => Promise<string>, RegExp])[] = [
  ['an expired one', () => token({ exp: now() - hour }), /^401 invalid_api_key: .*expired/],
  ['one of later', () => token({ nbf: now() + hour }), /^401 .*not valid yet/],
  ['one without an end', () => token({ exp: null }), /^401 .*"exp"/],
  ['one without a subject', () => token({ sub: null }), /^401 .*"sub"/],
  ['one for somebody else', () => token({ aud: 'billing' }), /^401 .*audience is not "model-gateway"/],
  ['one without an audience', () => token({ aud: null }), /^401 .*audience/],
  ['one of another issuer', () => token({ iss: 'https://evil.example' }), /^401 .*issuer is none of/],
  ['one signed by another key', () => token({}, { pair: other }), /^401 .*signature is wrong/],
  [
    'one that is not signed',
    async () => `${part({ alg: 'none' })}.${part({ ...usual, exp: now() + hour })}.`,
    /^401 .*signed by one of/,
  ],
  [
    'one signed with the public key as a secret',
    async () => {
      const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(provider.pairs[0]!.publicKey)))
      return new SignJWT({ ...usual, exp: now() + hour })
        .setProtectedHeader({ alg: 'HS256', kid: 'first' })
        .sign(secret)
    },
    /^401 .*signed by one of/,
  ],
  ['a broken one', async () => `${(await token()).slice(0, -20)}`, /^401 /],
  ['one that is no JSON', async () => 'eyJ.eyJ.abc', /^401 /],
  ['a long one', () => token({ more: 'a'.repeat(9000) }), /^401 .*more than 8192 characters/],
  [
    'one of a project that is not here',
    () => token({ team: 'nowhere' }),
    /^403 .*"nowhere" of "Blue", which is not here/,
  ],
  ['one whose organization is not here', () => token({ org: 'Green' }), /^403 .*which is not here/],
  ['one with an unknown role', () => token({ gateway_role: 'god' }), /^403 .*owner, admin, developer, not "god"/],
  ['one whose project is no text', () => token({ team: 7 }), /^401 .*"team" must be a text/],
]
for (const [name, make, expected] of refusals) {
  t.test(`${name} is refused with the reason`, async t => {
    const said = await refusal(await ask(await make()))
    t.match(said, expected)
    t.notMatch(said, /default|Red/, 'and without what exists')
  })
}

t.test('what a token may read depends on its role', async t => {
  const credits = async (role: string | null) => {
    const authorization = `Bearer ${await token({ gateway_role: role })}`
    return (await gateway.get('/v1/credits', { authorization })).status
  }
  t.equal(await credits(null), 403)
  t.equal(await credits('developer'), 403)
  t.equal(await credits('admin'), 200)
})

t.test('a session that a token begins may ask', async t => {
  const authorization = `Bearer ${await token({ gateway_role: 'admin' })}`
  const answer = await gateway.post('/v1/sessions', { customer: 'carl' }, { authorization })
  const { sessionToken } = (await answer.json()) as { sessionToken: string }
  t.equal(answer.status, 200)
  t.equal((await ask(sessionToken)).status, 200)
})

t.test('a token begins sessions of others only as an owner or an admin', async t => {
  const begin = async (customer: string, role: string | null) => {
    const authorization = `Bearer ${await token({ gateway_role: role })}`
    return gateway.post('/v1/sessions', { customer }, { authorization })
  }
  t.match(await refusal(await begin('carl', null)), /^403 permission_denied: .*"ann"/)
  t.match(await refusal(await begin('carl', 'developer')), /^403 permission_denied: /)
  t.equal((await begin('ann', null)).status, 200)
  t.equal((await begin('carl', 'owner')).status, 200)
})

t.test('a token registers no client that would act for the key of its issuer', async t => {
  const client = { grant_types: ['client_credentials'], token_endpoint_auth_method: 'client_secret_post' }
  for (const role of ['developer', 'owner']) {
    const authorization = `Bearer ${await token({ gateway_role: role })}`
    const answer = await gateway.post('/oauth/register', client, { authorization })
    t.equal(answer.status, 401, role)
    t.match(await answer.json(), { error: 'invalid_client', error_description: /not a regular API key/ })
  }
})

t.test('an issuer whose keys are known may be away, and may change them', async t => {
  provider.isAway = true
  t.equal((await ask(await token({ sub: 'bob' }))).status, 200)
  provider.isAway = false
  provider.pairs = [await pairOf('second', 'RS256'), ...provider.pairs]
  const { reads } = provider
  t.match(await refusal(await ask(await token())), /^401 .*no key that it is signed with/, 'read a moment ago')
  t.equal(provider.reads, reads, 'guessed keys ask the issuer nothing')
})

t.test('a new process reads the new keys; while they cannot be read it says so', async t => {
  provider.isAway = true
  await gateway.restart()
  const bearer = await token()
  t.match(await refusal(await ask(bearer)), /^503 issuer_unavailable: /)
  provider.isAway = false
  t.equal((await ask(bearer)).status, 200)
})

t.test('a revoked key stops all tokens of its project', async t => {
  const keys = await command<{ id: string; name: string; organization: string }[]>('keys.list')
  const { id } = keys.find(({ name, organization }) => name.startsWith('tokens of') && organization === 'Red')!
  const bearer = await token({ org: 'Red' })
  t.equal((await ask(bearer)).status, 200)
  await command('keys.revoke', { id })
  t.match(await refusal(await ask(bearer)), /^401 .*revoked/)
})

t.test('the books are right', t => checkInvariants(t, gateway))
