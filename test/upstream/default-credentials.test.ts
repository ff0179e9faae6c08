/** Credentials that nobody wrote into a manifest: where they are looked for, in which order, and what is said of none. */
import t from 'tap'
import type { Auth } from '../../src/core/provider-settings.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { findAwsKeys } from '../../src/upstream/auth/aws-default.ts'
import { type CredentialSources, foundBy } from '../../src/upstream/auth/credential-sources.ts'
import type { EndpointAnswer, EndpointRequest } from '../../src/upstream/auth/endpoint.ts'
import { findGcpToken } from '../../src/upstream/auth/gcp-default.ts'
import type { SignedRequest } from '../../src/upstream/auth/strategy.ts'
import { account, tokenEndpoint } from './token-endpoint.ts'

const NOW = Date.UTC(2026, 10, 20)
const HOUR = new Date(NOW + 3_600_000).toISOString()

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

const ENV = { AWS_ACCESS_KEY_ID: 'AKENV', AWS_SECRET_ACCESS_KEY: 'secret-env' }
const CREDENTIALS = '/home/me/.aws/credentials'
const CONFIG = '/home/me/.aws/config'
const MACHINE = 'http://169.254.169.254/latest'
const ROLES = `${MACHINE}/meta-data/iam/security-credentials/`
const sts = (id: string) =>
  `<R><AccessKeyId>${id}</AccessKeyId><SecretAccessKey>secret-sts</SecretAccessKey>` +
  `<SessionToken>session-sts</SessionToken><Expiration>${HOUR}</Expiration></R>`
const metadata = (id: string) =>
  JSON.stringify({ AccessKeyId: id, SecretAccessKey: 'secret-role', Token: 'session-role', Expiration: HOUR })
const machine = {
  [`PUT ${MACHINE}/api/token`]: 'open',
  [`GET ${ROLES}`]: 'web-role\n',
  [`GET ${ROLES}web-role`]: metadata('AKROLE'),
}
const profiles = `
# mine
[default]
aws_access_key_id = AKDEFAULT
aws_secret_access_key=secret-default

[work]
aws_access_key_id = AKWORK
aws_secret_access_key = secret/with+signs=
aws_session_token = session-work
`
const roles = `[profile role]
role_arn = arn:aws:iam::1:role/reader
source_profile = work
external_id = ext
[profile self]
role_arn = arn:aws:iam::1:role/self
source_profile = self
aws_access_key_id = AKSELF
aws_secret_access_key = secret-self
[profile pod]
role_arn = arn:aws:iam::1:role/pod
web_identity_token_file = /var/token
[profile host]
role_arn = arn:aws:iam::1:role/host
credential_source = Ec2InstanceMetadata
[profile a]
role_arn = arn:aws:iam::1:role/a
source_profile = b
[profile b]
role_arn = arn:aws:iam::1:role/b
source_profile = a
[profile sso]
sso_session = corp
[profile bare]
role_arn = arn:aws:iam::1:role/bare
[profile empty]
region = eu-west-1
`
const files = { [CREDENTIALS]: profiles, [CONFIG]: roles }
const STS = 'POST https://sts.eu-west-1.amazonaws.com/'

const aws = (at: CredentialSources, profile?: string) => findAwsKeys({ region: 'eu-west-1', profile, now: NOW }, at)
const refusal = (promise: Promise<unknown>): Promise<GatewayError> =>
  promise.then(
    () => {
      throw new Error('credentials were found')
    },
    (error: GatewayError) => error,
  )

t.test('keys of AWS come from the first place that has some', async t => {
  const rows: [says: string, place: Place, profile: string | undefined, token: string, seconds: number][] = [
    ['the environment', { env: ENV, files }, undefined, 'AKENV:secret-env', 300],
    ['temporary ones', { env: { ...ENV, AWS_SESSION_TOKEN: 's' } }, undefined, 'AKENV:secret-env:s', 300],
    ['half of them are none', { env: { AWS_ACCESS_KEY_ID: 'x' }, files }, undefined, 'AKDEFAULT:secret-default', 300],
    ['the usual profile', { files }, undefined, 'AKDEFAULT:secret-default', 300],
    [
      'a profile by variable',
      { env: { ...ENV, AWS_PROFILE: 'work' }, files },
      undefined,
      'AKWORK:secret/with+signs=:session-work',
      300,
    ],
    [
      'a profile of the manifest',
      { env: { ...ENV, AWS_PROFILE: 'x' }, files },
      'work',
      'AKWORK:secret/with+signs=:session-work',
      300,
    ],
    [
      'files elsewhere',
      { env: { AWS_SHARED_CREDENTIALS_FILE: '/c' }, files: { '/c': profiles } },
      'work',
      'AKWORK:secret/with+signs=:session-work',
      300,
    ],
    [
      'a config elsewhere',
      { env: { AWS_CONFIG_FILE: '/c' }, files: { '/c': profiles.replace('[work]', '[profile work]') } },
      'work',
      'AKWORK:secret/with+signs=:session-work',
      300,
    ],
    ['a role', { files, answers: { [STS]: sts('AKSTS') } }, 'role', 'AKSTS:secret-sts:session-sts', 3600],
    [
      'a role by its own keys',
      { files, answers: { [STS]: sts('AKSTS') } },
      'self',
      'AKSTS:secret-sts:session-sts',
      3600,
    ],
    [
      'a role by the machine',
      { files, answers: { ...machine, [STS]: sts('AKSTS') } },
      'host',
      'AKSTS:secret-sts:session-sts',
      3600,
    ],
    [
      'a pod',
      { files: { ...files, '/var/token': 'jwt\n' }, answers: { [STS]: sts('AKPOD') } },
      'pod',
      'AKPOD:secret-sts:session-sts',
      3600,
    ],
    [
      'a pod by variables',
      {
        env: { AWS_ROLE_ARN: 'arn:r', AWS_WEB_IDENTITY_TOKEN_FILE: '/t' },
        files: { '/t': 'jwt' },
        answers: { [STS]: sts('AKPOD') },
      },
      undefined,
      'AKPOD:secret-sts:session-sts',
      3600,
    ],
    [
      'another address of STS',
      { env: { AWS_ENDPOINT_URL_STS: 'http://sts.test' }, files, answers: { 'POST http://sts.test/': sts('AKSTS') } },
      'role',
      'AKSTS:secret-sts:session-sts',
      3600,
    ],
    [
      'a container',
      {
        env: { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '/v2/x' },
        answers: { 'GET http://169.254.170.2/v2/x': metadata('AKBOX'), ...machine },
      },
      undefined,
      'AKBOX:secret-role:session-role',
      3600,
    ],
    ['the machine', { answers: machine }, undefined, 'AKROLE:secret-role:session-role', 3600],
    [
      'a role whose end is not told',
      { answers: { ...machine, [`GET ${ROLES}web-role`]: '{"AccessKeyId":"A","SecretAccessKey":"s"}' } },
      undefined,
      'A:s',
      300,
    ],
  ]
  for (const [says, given, profile, token, seconds] of rows) {
    t.strictSame(await aws(place(given), profile), { token, seconds }, says)
  }
})

t.test('requests for credentials carry what each platform requires', async t => {
  const role = place({ files, answers: { [STS]: sts('AKSTS') } })
  await aws(role, 'role')
  const [asked, ...others] = role.asked
  t.strictSame(others, [])
  t.match(asked!.headers, {
    'content-type': 'application/x-www-form-urlencoded',
    'x-amz-security-token': 'session-work',
    authorization:
      /^AWS4-HMAC-SHA256 Credential=AKWORK\/20261120\/eu-west-1\/sts\/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, /,
  })
  t.strictSame(Object.fromEntries(new URLSearchParams(asked!.body)), {
    Version: '2011-06-15',
    RoleSessionName: 'model-gateway',
    Action: 'AssumeRole',
    RoleArn: 'arn:aws:iam::1:role/reader',
    ExternalId: 'ext',
  })

  const pod = place({ files: { ...files, '/var/token': 'jwt' }, answers: { [STS]: sts('AKSTS') } })
  await aws(pod, 'pod')
  t.match(new URLSearchParams(pod.asked[0]!.body).get('WebIdentityToken'), 'jwt')
  t.notOk('authorization' in pod.asked[0]!.headers!, 'the token is the credential')

  const box = place({
    env: { AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://127.0.0.1:1/v1', AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: '/t' },
    files: { '/t': 'pod-token\n' },
    answers: { 'GET http://127.0.0.1:1/v1': metadata('AKBOX') },
  })
  await aws(box)
  t.match(box.asked, [{ headers: { authorization: 'pod-token' } }])

  const host = place({ answers: machine })
  await aws(host)
  t.match(host.asked, [
    { method: 'PUT', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' } },
    { headers: { 'x-aws-ec2-metadata-token': 'open' } },
    { headers: { 'x-aws-ec2-metadata-token': 'open' } },
  ])
  t.ok([...role.asked, ...host.asked].every(({ deadlineMs }) => deadlineMs <= 10_000))
})

t.test('what is missing is named, and no key is shown', async t => {
  const denied = { status: 403, text: '<E><Code>AccessDenied</Code><Message>secret-default</Message></E>' }
  const rows: [says: string, place: Place, profile: string | undefined, said: RegExp][] = [
    [
      'nothing anywhere',
      {},
      undefined,
      /No credential: none in AWS_ACCESS_KEY_ID, ~\/\.aws or the role of this machine\.$/,
    ],
    ['metadata turned off', { env: { AWS_EC2_METADATA_DISABLED: 'true' }, answers: machine }, undefined, /none in/],
    [
      'a machine without a role',
      { answers: { ...machine, [`GET ${ROLES}`]: '<html>' } },
      undefined,
      /this machine has no role/,
    ],
    [
      'a role without keys',
      { answers: { ...machine, [`GET ${ROLES}web-role`]: '{"Code":"x"}' } },
      undefined,
      /machine's role gave no keys \(status 200\)/,
    ],
    ['another profile', { files }, 'nobody', /no profile "nobody" in ~\/\.aws\/credentials or ~\/\.aws\/config/],
    [
      'single sign-on',
      { files },
      'sso',
      /"sso" has "sso_session", which is not supported; it needs "aws_access_key_id"/,
    ],
    ['an empty profile', { files }, 'empty', /"empty" has no "aws_access_key_id"/],
    ['a role without keys to take it', { files }, 'bare', /"bare" has a "role_arn" without keys of a "source_profile"/],
    ['profiles in a circle', { files }, 'a', /the profiles around "a" name one another/],
    [
      'a role that is refused',
      { files, answers: { [STS]: denied } },
      'role',
      /AWS STS answered with status 403 \(AccessDenied\)/,
    ],
    ['a pod without its token', { files }, 'pod', /the file "\/var\/token" holds no token/],
  ]
  for (const [says, given, profile, said] of rows) {
    const error = await refusal(aws(place(given), profile))
    t.match(error.detail ?? '', said, says)
    t.strictSame([error.failover, error.upstreamStatus], [true, 401], `${says}: another provider may answer`)
    t.notMatch(error.detail ?? '', /secret-|session-/, says)
  }
})

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
