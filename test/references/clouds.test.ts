/** Secrets of AWS and Google Cloud, at scripted services that check signatures, tokens and names as the real ones do. */
import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { SecretSettings } from '../../src/config/schemas/secrets.ts'
import { Secrets } from '../../src/references/index.ts'
import { ref } from '../config/kit.ts'
import { awsEnvironment } from '../upstream/aws-services.ts'
import { account, tokenEndpoint } from '../upstream/token-endpoint.ts'

type Answer = readonly [status: number, body: unknown]

/** Answers each request as `answer` says. */
async function serve(t: Test, answer: (request: IncomingMessage, body: string) => Answer): Promise<string> {
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    request.on('end', () => {
      const [status, body] = answer(request, text)
      response.writeHead(status).end(JSON.stringify(body))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function reader(env: Record<string, string>, settings: Partial<SecretSettings> = {}) {
  const secrets = new Secrets({ env: { HOME: '/nowhere', ...env } })
  secrets.configure({ exec: {}, vault: { auth_path: 'approle' }, aws: {}, gcp: {}, ...settings }, '.')
  return async (name: string) => {
    const found = await secrets.read(name)
    return 'value' in found ? found.value : found.issue().replace(/^.*" cannot be read: /, 'failed: ')
  }
}

const KEYS = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()

/** Whether Signature Version 4 of a request is right; source: "Create a signed AWS API request" of the IAM user guide. */
function isSigned({ method, url, headers }: IncomingMessage, body: string, region: string): boolean {
  const [, scope = '', names = '', signature] =
    /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/(\S+), SignedHeaders=(\S+), Signature=(\w+)$/.exec(
      String(headers.authorization),
    ) ?? []
  const time = String(headers['x-amz-date'])
  const signed = names.split(';')
  if (!['host', 'x-amz-date', 'x-amz-target'].every(name => signed.includes(name))) return false
  const lines = signed.map(name => `${name}:${headers[name]}`)
  const canonical = [method, url, '', ...lines, '', names, sha256(body)].join('\n')
  const parts = [time.slice(0, 8), region, 'secretsmanager', 'aws4_request']
  const key = parts.reduce<string | Buffer>(hmac, `AWS4${KEYS.AWS_SECRET_ACCESS_KEY}`)
  const text = ['AWS4-HMAC-SHA256', time, parts.join('/'), sha256(canonical)].join('\n')
  return scope === parts.join('/') && signature === hmac(key, text).toString('hex')
}

const ARN = 'arn:aws:secretsmanager:eu-west-3:123456789012:secret:acme/key-AbCdEf'

/** Secrets Manager of one region. */
const secretsManager = (t: Test, region = 'eu-central-1') =>
  serve(t, (request, body) => {
    const { method, headers } = request
    if (method !== 'POST' || headers['content-type'] !== 'application/x-amz-json-1.1')
      return [400, { __type: 'SerializationException' }]
    if (headers['x-amz-target'] !== 'secretsmanager.GetSecretValue')
      return [400, { __type: 'UnknownOperationException' }]
    if (!isSigned(request, body, region))
      return [403, { __type: 'InvalidSignatureException', message: 'The request signature does not match.' }]
    const { SecretId, ...more } = JSON.parse(body) as Record<string, string>
    if (Object.keys(more).length > 0) return [400, { __type: 'InvalidParameterException' }]
    const all: Record<string, object> = {
      'acme/key': { SecretString: 'sk-acme-plain' },
      'acme/fields': { SecretString: JSON.stringify({ key: 'sk-acme-field', port: 1 }) },
      'acme/bytes': { SecretBinary: Buffer.from('sk-acme-bytes').toString('base64') },
      [ARN]: { SecretString: 'sk-acme-arn' },
    }
    const found = all[SecretId!]
    if (SecretId === 'acme/denied')
      return [400, { __type: 'AccessDeniedException', Message: 'User is not authorized to perform this.' }]
    const missing = { __type: 'ResourceNotFoundException', Message: "Secrets Manager can't find the specified secret." }
    return found
      ? [200, { ARN, Name: SecretId, VersionStages: ['AWSCURRENT'], CreatedDate: 1.5e9, ...found }]
      : [400, missing]
  })

t.test('AWS gives texts, bytes and fields to requests that are signed', async t => {
  const url = await secretsManager(t)
  awsEnvironment(t, KEYS)
  const read = reader({ AWS_REGION: 'eu-central-1', AWS_ENDPOINT_URL_SECRETS_MANAGER: url })
  const rows: [name: string, value: string][] = [
    ['acme/key', 'sk-acme-plain'],
    ['acme/fields#key', 'sk-acme-field'],
    ['acme/fields#port', '1'],
    ['acme/fields', JSON.stringify({ key: 'sk-acme-field', port: 1 })],
    ['acme/bytes', 'sk-acme-bytes'],
    ['acme/key#key', 'failed: it is no JSON object, so that it has no fields; leave out "#" and what follows'],
    ['acme/fields#kee', 'failed: it has no field "kee"; did you mean "key"?'],
    [
      'nowhere',
      "failed: AWS Secrets Manager answered with status 400: ResourceNotFoundException: Secrets Manager can't find the specified secret.",
    ],
    [
      'acme/denied',
      'failed: AWS Secrets Manager answered with status 400: AccessDeniedException: User is not authorized to perform this.',
    ],
    ['#key', `failed: expected a name such as "${ref('aws:acme/key')}"`],
  ]
  for (const [name, value] of rows) t.equal(await read(`aws:${name}`), value, name)
})

t.test('the region is that of the ARN, of the settings, or of the environment', async t => {
  const url = await secretsManager(t, 'eu-west-3')
  const settings = { endpoint: url }
  awsEnvironment(t, KEYS)
  t.equal(await reader({}, { aws: settings })(`aws:${ARN}`), 'sk-acme-arn')
  t.equal(await reader({}, { aws: { ...settings, region: 'eu-west-3' } })('aws:acme/key'), 'sk-acme-plain')
  t.equal(await reader({ AWS_DEFAULT_REGION: 'eu-west-3' }, { aws: settings })('aws:acme/key'), 'sk-acme-plain')
  t.match(await reader({ AWS_REGION: 'eu-west-1' }, { aws: settings })('aws:acme/key'), /InvalidSignature/)
  t.match(await reader({}, { aws: settings })('aws:acme/key'), /^failed: its region is unknown: set /)
  awsEnvironment(t, {})
  t.match(
    await reader({ AWS_REGION: 'eu-west-3' }, { aws: settings })('aws:acme/key'),
    /^failed: .*No credential: none in/,
  )
})

/** Secret Manager of the project `acme-1`, for the tokens of an endpoint. */
const secretManager = (t: Test, seen: string[]) =>
  serve(t, ({ method, url, headers }) => {
    seen.push(url!)
    const refuse = (code: number, status: string, message: string): Answer => [
      code,
      { error: { code, message, status } },
    ]
    if (!/^Bearer token-\d+$/.test(String(headers.authorization)))
      return refuse(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.')
    const all: Record<string, string> = {
      '/v1/projects/acme-1/secrets/key/versions/latest:access': 'sk-acme-latest',
      '/v1/projects/acme-1/secrets/key/versions/2:access': 'sk-acme-second',
      '/v1/projects/acme-1/locations/europe-west3/secrets/key/versions/latest:access': 'sk-acme-regional',
      '/v1/projects/acme-1/secrets/fields/versions/latest:access': '{"key":"sk-acme-field"}',
    }
    const found = method === 'GET' ? all[url!] : undefined
    if (!found) return refuse(404, 'NOT_FOUND', 'Secret not found or has no versions.')
    return [200, { name: url!.slice(4), payload: { data: Buffer.from(found).toString('base64'), dataCrc32c: '1' } }]
  })

t.test('Google gives versions of secrets to the account of the application default credentials', async t => {
  const tokens = await tokenEndpoint()
  t.teardown(() => tokens.close())
  const folder = t.testdir({ 'key.json': account({ token_uri: tokens.url }) })
  const env = { GOOGLE_APPLICATION_CREDENTIALS: join(folder, 'key.json') }
  const seen: string[] = []
  const read = reader(env, { gcp: { endpoint: await secretManager(t, seen) } })
  const rows: [name: string, value: string][] = [
    ['projects/acme-1/secrets/key/versions/latest', 'sk-acme-latest'],
    ['projects/acme-1/secrets/key', 'sk-acme-latest'],
    ['projects/acme-1/secrets/key/versions/2', 'sk-acme-second'],
    ['projects/acme-1/locations/europe-west3/secrets/key', 'sk-acme-regional'],
    ['projects/acme-1/secrets/fields/versions/latest#key', 'sk-acme-field'],
    [
      'projects/acme-1/secrets/nowhere/versions/latest',
      'failed: Google Secret Manager answered with status 404: Secret not found or has no versions.',
    ],
    ['key', 'failed: expected a name such as "projects/acme/secrets/key/versions/latest", got "key"'],
  ]
  for (const [name, value] of rows) t.equal(await read(`gcp:${name}`), value, name)
  t.equal(seen.length, 6)
  t.ok(tokens.asked.every(({ signed }) => signed))
  const none = reader({ GOOGLE_APPLICATION_CREDENTIALS: join(folder, 'none.json') })
  t.match(await none('gcp:projects/acme-1/secrets/key'), /No credential: the file ".*none.json" of GOOGLE_APPL/)
})
