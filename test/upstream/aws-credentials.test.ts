/** Keys of AWS that nobody wrote into a manifest: where they are looked for, in which order, and what is said of none. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { HttpProxy } from '../../src/lib/egress.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { findAwsKeys } from '../../src/upstream/auth/aws-default.ts'
import { startConnectProxy } from '../helpers/connect-proxy.ts'
import { awsEnvironment, awsServices, type Services } from './aws-services.ts'

const HOUR_S = 3600
const REGION = 'eu-west-1'
const ENV = { AWS_ACCESS_KEY_ID: 'AKENV', AWS_SECRET_ACCESS_KEY: 'secret-env' }
const START = 'https://acme.example/start'
const credentials = `
# mine
[default]
aws_access_key_id = AKDEFAULT
aws_secret_access_key=secret-default

[work]
aws_access_key_id = AKWORK
aws_secret_access_key = secret/with+signs=
aws_session_token = session-work
`
const config = (token: string) => `[profile role]
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
web_identity_token_file = ${token}
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
sso_account_id = 123456789012
sso_role_name = reader
[sso-session corp]
sso_region = us-east-2
sso_start_url = ${START}
[profile process]
credential_process = echo '{"Version":1,"AccessKeyId":"AKPROCESS","SecretAccessKey":"secret-process"}'
[profile bare]
role_arn = arn:aws:iam::1:role/bare
[profile empty]
region = eu-west-1
`
const hourFrom = (now: number) => new Date(now + HOUR_S * 1000).toISOString()
const keysOfSts = (kind: string) =>
  `<${kind}Response><${kind}Result><Credentials><AccessKeyId>AKSTS</AccessKeyId>` +
  '<SecretAccessKey>secret-sts</SecretAccessKey><SessionToken>session-sts</SessionToken>' +
  `<Expiration>${hourFrom(Date.now())}</Expiration></Credentials></${kind}Result></${kind}Response>`
const keysOfRole = () =>
  JSON.stringify({
    ...{ Code: 'Success', Type: 'AWS-HMAC', AccessKeyId: 'AKROLE', SecretAccessKey: 'secret-role' },
    ...{ Token: 'session-role', Expiration: hourFrom(Date.now()) },
  })
const ROLES = '/latest/meta-data/iam/security-credentials/'
const machine = () => ({ 'PUT /latest/api/token': 'open', [`GET ${ROLES}`]: 'web', [`GET ${ROLES}web`]: keysOfRole() })
const sso = () => ({
  'GET /federation/credentials?role_name=reader&account_id=123456789012': JSON.stringify({
    roleCredentials: {
      ...{ accessKeyId: 'AKSSO', secretAccessKey: 'secret-sso', sessionToken: 'session-sso' },
      expiration: Date.now() + HOUR_S * 1000,
    },
  }),
})

/** A home folder with both files, the token of a pod, and one who has signed on. */
function homeOf(t: Test): string {
  const signedOn = { accessToken: 'token-sso', expiresAt: hourFrom(Date.now()), region: 'us-east-2', startUrl: START }
  const session = `${createHash('sha1').update('corp').digest('hex')}.json`
  return t.testdir({
    token: 'jwt\n',
    'pod-token': 'pod-token',
    elsewhere: credentials.replaceAll('AK', 'AKOTHER'),
    '.aws': {
      credentials,
      config: config(join(t.testdirName, 'token')),
      sso: { cache: { [session]: JSON.stringify(signedOn) } },
    },
  })
}

interface Place {
  readonly env?: Readonly<Record<string, string>>
  readonly answers?: Services['answers']
  readonly profile?: string
}

/** Looks for keys where there is what is given, and nothing else. */
async function look(t: Test, { env = {}, answers = {}, profile }: Place) {
  const services = await awsServices(t, answers)
  const { url } = services
  const endpoints = { AWS_ENDPOINT_URL_STS: url, AWS_ENDPOINT_URL_SSO: url, AWS_EC2_METADATA_SERVICE_ENDPOINT: url }
  awsEnvironment(t, { ...endpoints, ...env })
  const found = findAwsKeys({ region: REGION, profile, now: Date.now(), egress: undefined })
  return { found, services }
}

const byMachine = { AWS_EC2_METADATA_DISABLED: 'false' }
const work = 'AKWORK:secret/with+signs=:session-work'
const taken = 'AKSTS:secret-sts:session-sts'

t.test('keys of AWS come from the first place that has some', async t => {
  const HOME = homeOf(t)
  const home = { HOME }
  const role = { 'POST /': keysOfSts('AssumeRole') }
  const pod = { 'POST /': keysOfSts('AssumeRoleWithWebIdentity') }
  const rows: [says: string, place: Place, token: string, lasts?: true][] = [
    ['the environment', { env: { ...home, ...ENV } }, 'AKENV:secret-env'],
    ['temporary ones', { env: { ...ENV, AWS_SESSION_TOKEN: 's' } }, 'AKENV:secret-env:s'],
    ['half of them are none', { env: { ...home, AWS_ACCESS_KEY_ID: 'x' } }, 'AKDEFAULT:secret-default'],
    ['the usual profile', { env: home }, 'AKDEFAULT:secret-default'],
    ['a profile by variable', { env: { ...home, ...ENV, AWS_PROFILE: 'work' } }, work],
    ['a profile of the manifest', { env: { ...home, ...ENV, AWS_PROFILE: 'x' }, profile: 'work' }, work],
    [
      'files elsewhere',
      { env: { AWS_SHARED_CREDENTIALS_FILE: join(HOME, 'elsewhere') } },
      'AKOTHERDEFAULT:secret-default',
    ],
    ['a role', { env: home, answers: role, profile: 'role' }, taken, true],
    ['a role by its own keys', { env: home, answers: role, profile: 'self' }, taken, true],
    [
      'a role by the machine',
      { env: { ...home, ...byMachine }, answers: { ...machine(), ...role }, profile: 'host' },
      taken,
      true,
    ],
    ['a pod', { env: home, answers: pod, profile: 'pod' }, taken, true],
    [
      'a pod by variables',
      {
        env: { AWS_ROLE_ARN: 'arn:aws:iam::1:role/r', AWS_WEB_IDENTITY_TOKEN_FILE: join(HOME, 'token') },
        answers: pod,
      },
      taken,
      true,
    ],
    ['single sign-on', { env: home, answers: sso(), profile: 'sso' }, 'AKSSO:secret-sso:session-sso', true],
    ['a program', { env: home, profile: 'process' }, 'AKPROCESS:secret-process'],
    ['the machine', { env: byMachine, answers: machine() }, 'AKROLE:secret-role:session-role', true],
  ]
  for (const [says, place, token, lasts] of rows) {
    await t.test(says, async t => {
      const { found } = await look(t, place)
      const { token: text, seconds } = await found
      t.equal(text, token)
      if (lasts) t.ok(seconds > HOUR_S - 60 && seconds <= HOUR_S, `${seconds} seconds`)
      else t.equal(seconds, 300, 'it is read again, since it may have changed')
    })
  }
})

t.test('requests for credentials carry what each platform requires', async t => {
  const HOME = homeOf(t)
  await t.test('a role', async t => {
    const { found, services } = await look(t, {
      env: { HOME },
      answers: { 'POST /': keysOfSts('AssumeRole') },
      profile: 'role',
    })
    await found
    const [asked, ...others] = services.asked
    t.strictSame(others, [])
    t.match(asked!.headers, {
      'content-type': 'application/x-www-form-urlencoded',
      'x-amz-security-token': 'session-work',
      authorization: /^AWS4-HMAC-SHA256 Credential=AKWORK\/\d{8}\/eu-west-1\/sts\/aws4_request, /,
    })
    t.match(Object.fromEntries(new URLSearchParams(asked!.body)), {
      Action: 'AssumeRole',
      RoleArn: 'arn:aws:iam::1:role/reader',
      ExternalId: 'ext',
    })
  })
  await t.test('a pod', async t => {
    const answers = { 'POST /': keysOfSts('AssumeRoleWithWebIdentity') }
    const { found, services } = await look(t, { env: { HOME }, answers, profile: 'pod' })
    await found
    const [asked] = services.asked
    t.equal(new URLSearchParams(asked!.body).get('WebIdentityToken')?.trim(), 'jwt')
    t.notOk('authorization' in asked!.headers, 'the token is the credential')
  })
  await t.test('a container', async t => {
    const services = await awsServices(t, { 'GET /v1': keysOfRole() })
    awsEnvironment(t, {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${services.url}/v1`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: join(HOME, 'pod-token'),
    })
    await findAwsKeys({ region: REGION, now: Date.now(), egress: undefined })
    t.match(services.asked, [{ headers: { authorization: 'pod-token' } }])
  })
  await t.test('single sign-on', async t => {
    const { found, services } = await look(t, { env: { HOME }, answers: sso(), profile: 'sso' })
    await found
    t.match(services.asked, [{ headers: { 'x-amz-sso_bearer_token': 'token-sso' } }])
  })
})

t.test('requests for a role leave by the egress that is given', async t => {
  const services = await awsServices(t, { 'POST /': keysOfSts('AssumeRole') })
  const port = Number(new URL(services.url).port)
  const proxy = await startConnectProxy(t, { route: target => (target === 'sts.test:80' ? port : undefined) })
  const to: HttpProxy = {
    ...{ protocol: 'http:' as const, hostname: '127.0.0.1', port: String(proxy.port), name: 'proxy' },
    ...{ authorization: undefined, password: undefined },
  }
  const egress = {
    ...{ id: 'one', proxy: to, noProxy: undefined, proxiesLoopback: true, proxyFor: () => to },
    ...{ ca: undefined, client: undefined },
  }
  awsEnvironment(t, { HOME: homeOf(t), AWS_ENDPOINT_URL_STS: 'http://sts.test' })
  const { token } = await findAwsKeys({ region: REGION, profile: 'role', now: Date.now(), egress })
  t.equal(token, taken)
  t.strictSame(proxy.taken(), ['sts.test:80'])
})

t.test('what is missing is named, and no key is shown', async t => {
  const HOME = homeOf(t)
  const denied =
    '<ErrorResponse><Error><Code>AccessDenied</Code><Message>secret/with+signs=</Message></Error></ErrorResponse>'
  const rows: [says: string, place: Place, said: RegExp][] = [
    [
      'nothing anywhere',
      {},
      /No credential: none in AWS_ACCESS_KEY_ID, ~\/\.aws, or the role of this container or machine\.$/,
    ],
    ['a machine without a role', { env: byMachine, answers: { 'PUT /latest/api/token': 'open' } }, /none in/],
    ['another profile', { env: { HOME }, profile: 'nobody' }, /profile: \[nobody\] in configuration\/credentials file/],
    [
      'a named profile without keys',
      { env: { HOME, ...byMachine }, answers: machine(), profile: 'empty' },
      /\[empty\]/,
    ],
    ['a role without keys to take it', { env: { HOME }, profile: 'bare' }, /\[bare\]/],
    ['profiles in a circle', { env: { HOME }, profile: 'a' }, /cycle .* profile a/],
    [
      'a role that is refused',
      { env: { HOME }, answers: { 'POST /': { status: 403, text: denied } }, profile: 'role' },
      /AWS answered with status 403 \(AccessDenied\)/,
    ],
  ]
  for (const [says, place, said] of rows) {
    await t.test(says, async t => {
      const { found } = await look(t, place)
      const error = await found.then(
        () => t.fail('credentials were found') as never,
        (error: GatewayError) => error,
      )
      t.match(error.detail ?? '', said)
      t.strictSame([error.failover, error.upstreamStatus], [true, 401], 'another provider may answer')
      t.notMatch(error.detail ?? '', /secret|session-/)
    })
  }
})
