/** Tokens of Google that nobody wrote into a manifest: where they are looked for, in which order, and what is said of none. */
import t from 'tap'
import type { Auth } from '../../src/core/provider-settings.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { type CredentialSources, foundBy } from '../../src/upstream/auth/credential-sources.ts'
import type { EndpointAnswer, EndpointRequest } from '../../src/upstream/auth/endpoint.ts'
import { findGcpToken } from '../../src/upstream/auth/gcp-default.ts'
import type { SignedRequest } from '../../src/upstream/auth/strategy.ts'
import { account, tokenEndpoint } from './token-endpoint.ts'

const NOW = Date.UTC(2026, 10, 20)

interface Place {
  env?: Record<string, string>
  files?: Record<string, string>
  /** Answers by method and address; what has none cannot be reached. */
  answers?: Record<string, string | EndpointAnswer>
}
interface Asked extends EndpointRequest {
  readonly url: string
}

function place({ env = {}, files = {}, answers = {} }: Place): CredentialSources & { readonly asked: Asked[] } {
  const asked: Asked[] = []
  return {
    asked,
    env,
    home: '/home/me',
    read: async path => files[path],
    async call(url, request) {
      asked.push({ url, ...request })
      const answer = answers[`${request.method ?? 'GET'} ${url}`]
      if (answer === undefined)
        throw new GatewayError({ status: 502, type: 'upstream_error', code: null, message: url })
      return typeof answer === 'string' ? { status: 200, text: answer } : answer
    },
  }
}

const refusal = (promise: Promise<unknown>): Promise<GatewayError> =>
  promise.then(
    () => {
      throw new Error('credentials were found')
    },
    (error: GatewayError) => error,
  )

const gcp = (at: CredentialSources) => findGcpToken({ scope: 'all', now: NOW }, at)
const GCLOUD = '/home/me/.config/gcloud/application_default_credentials.json'
const user = { type: 'authorized_user', client_id: 'c', client_secret: 'user-secret', refresh_token: 'user-refresh' }
const TOKEN = JSON.stringify({ access_token: 'ya29.token', expires_in: 3599, token_type: 'Bearer' })
const OAUTH = 'POST https://oauth2.googleapis.com/token'
const METADATA = 'http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token?scopes=all'

t.test('a token of Google comes from a key file, from gcloud or from the machine', async t => {
  const found = { token: 'ya29.token', seconds: 3599 }
  const gcloud = place({ files: { [GCLOUD]: JSON.stringify(user) }, answers: { [OAUTH]: TOKEN } })
  t.strictSame(await gcp(gcloud), found)
  const { type: _type, ...given } = user
  t.strictSame(Object.fromEntries(new URLSearchParams(gcloud.asked[0]!.body)), {
    grant_type: 'refresh_token',
    ...given,
  })
  const moved = {
    env: { CLOUDSDK_CONFIG: '/g' },
    files: { '/g/application_default_credentials.json': JSON.stringify(user) },
  }
  t.strictSame(await gcp(place({ ...moved, answers: { [OAUTH]: TOKEN } })), found)

  const host = place({ answers: { [`GET ${METADATA}`]: TOKEN } })
  t.strictSame(await gcp(host), found)
  t.match(host.asked, [{ headers: { 'metadata-flavor': 'Google' } }])
  const elsewhere = METADATA.replace('metadata.google.internal', '127.0.0.1:1')
  t.strictSame(
    await gcp(place({ env: { GCE_METADATA_HOST: '127.0.0.1:1' }, answers: { [`GET ${elsewhere}`]: TOKEN } })),
    found,
  )

  const endpoint = await tokenEndpoint()
  t.teardown(() => endpoint.close())
  const env = { GOOGLE_APPLICATION_CREDENTIALS: '/key.json' }
  const keyFile = place({ env, files: { '/key.json': account({ token_uri: endpoint.url }), [GCLOUD]: '{}' } })
  t.strictSame(await gcp(keyFile), { token: 'token-1', seconds: 3599 })
  t.ok(endpoint.asked[0]?.signed)
})

t.test('what is missing of Google is named, and no secret is shown', async t => {
  const env = { GOOGLE_APPLICATION_CREDENTIALS: '/key.json' }
  const { refresh_token: _token, ...half } = user
  const rows: [says: string, place: Place, said: RegExp][] = [
    ['nothing anywhere', {}, /none in GOOGLE_APPLICATION_CREDENTIALS, from gcloud or of this machine/],
    ['a file that is not there', { env }, /the file "\/key\.json" of GOOGLE_APPLICATION_CREDENTIALS is not there/],
    ['a federation', { env, files: { '/key.json': '{"type":"external_account"}' } }, /type "external_account"/],
    ['no JSON', { env, files: { '/key.json': 'user-secret' } }, /type "unknown"/],
    ['half a user', { env, files: { '/key.json': JSON.stringify(half) } }, /lacks "refresh_token"/],
    ['half an account', { env, files: { '/key.json': '{"type":"service_account"}' } }, /needs the key "private_key"/],
    [
      'a user who is refused',
      {
        files: { [GCLOUD]: JSON.stringify(user) },
        answers: { [OAUTH]: { status: 400, text: '{"error":"invalid_grant","error_description":"of user-refresh"}' } },
      },
      /invalid_grant: of \*\*\*/,
    ],
  ]
  for (const [says, given, said] of rows) {
    const error = await refusal(gcp(place(given)))
    t.match(error.detail ?? '', said, says)
    t.ok(error.failover, says)
    t.notMatch(error.detail ?? '', /user-secret|user-refresh/, says)
  }
})

t.test('what was found serves all requests while it lasts, and an own key is used as it is', async t => {
  const auth: Extract<Auth, { scheme: 'gcp-oauth' }> = { scheme: 'gcp-oauth', scope: 'all', source: 'default' }
  let count = 0
  const say =
    (what: string) =>
    (out: SignedRequest, _: Auth, { secret }: { secret: string }) => {
      out.path += ` ${what}:${secret}`
      return out
    }
  const strategy = foundBy<'gcp-oauth'>(async () => ({ token: `t${++count}`, seconds: 3600 }), {
    given: say('given'),
    found: say('found'),
  })
  const ask = (more: object = {}, secret = '', at = NOW) =>
    strategy(
      { method: 'POST', baseUrl: '', path: '', headers: [], body: '' },
      { ...auth, ...more },
      { id: '', source: 'platform', secret, fingerprint: '' },
      () => at,
    )
  const first = ask()
  t.ok(first instanceof Promise)
  t.strictSame(
    (await Promise.all([first, ask()])).map(({ path }) => path),
    [' found:t1', ' found:t1'],
  )
  t.match(ask(), { path: ' found:t1' }, 'at once, when it is there')
  t.match(await ask({ scope: 'other' }), { path: ' found:t2' })
  t.match(await ask({}, '', NOW + 3_600_000), { path: ' found:t3' }, 'anew when it has run out')
  t.match(ask({}, 'own'), { path: ' given:own' })
  t.match(ask({ source: undefined }), { path: ' given:' })
})
