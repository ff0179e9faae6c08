/**
 * Secrets of AWS Secrets Manager and Google Secret Manager (docs/secrets.md#aws). Sources: "GetSecretValue" of the one's API
 * reference, "projects.secrets.versions.access" of the other's REST reference. Their client libraries bring far more along
 * than one request needs, gRPC among it.
 */
import type { AwsSecretSettings, GcpSecretSettings } from '../config/schemas/secrets.ts'
import { isObject, objectIn } from '../json/json.ts'
import { findAwsKeys } from '../upstream/auth/aws-default.ts'
import { awsSigv4 } from '../upstream/auth/aws-sigv4.ts'
import { fieldsOf } from '../upstream/auth/endpoint.ts'
import { findGcpToken } from '../upstream/auth/gcp-default.ts'
import { answerOf, type ManagerContext, managerError, type ReadSecret, sourcesOf } from './manager.ts'

const AWS = 'AWS Secrets Manager'
const SERVICE = 'secretsmanager'
/** The region in the ARN of a secret. */
const ARN = /^arn:[\w-]+:secretsmanager:([\w-]+):\d+:secret:/

/** Reads secrets by name or ARN, with keys as Amazon's own tools find them. */
export function awsReader(settings: AwsSecretSettings, context: ManagerContext): ReadSecret {
  const { env } = context
  return async id => {
    const region = ARN.exec(id)?.[1] ?? settings.region ?? (env.AWS_REGION || env.AWS_DEFAULT_REGION)
    if (!region) throw new Error('its region is unknown: set "secrets.aws.region", or AWS_REGION, or name the ARN')
    const now = Date.now()
    const keys = await findAwsKeys({ region, profile: settings.profile, now, egress: context.egress?.() })
    const auth = { scheme: 'aws-sigv4', region, service: SERVICE } as const
    const body = JSON.stringify({ SecretId: id })
    const baseUrl = awsEndpoint(settings, context, region)
    const headers = ['content-type', 'application/x-amz-json-1.1', 'x-amz-target', `${SERVICE}.GetSecretValue`]
    const out = { method: 'POST', baseUrl, path: '/', headers, body } as const
    await awsSigv4(out, auth, { id: '', source: 'platform', secret: keys.token, fingerprint: '' }, () => now)
    const sent = Object.fromEntries(headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1]!]] : [])))
    const { status, text } = await answerOf(AWS, context, `${baseUrl}/`, { method: 'POST', headers: sent, body })
    const { SecretString: secret, SecretBinary: bytes, __type: type, Message: message, message: other } = fieldsOf(text)
    if (status === 200 && typeof secret === 'string') return secret
    if (status === 200 && typeof bytes === 'string') return Buffer.from(bytes, 'base64').toString()
    const name = typeof type === 'string' ? type.replace(/^.*#/, '') : undefined
    throw managerError(AWS, status, [name, message ?? other].filter(part => typeof part === 'string').join(': '))
  }
}

function awsEndpoint({ endpoint }: AwsSecretSettings, { env }: ManagerContext, region: string): string {
  const given = endpoint ?? (env.AWS_ENDPOINT_URL_SECRETS_MANAGER || env.AWS_ENDPOINT_URL)
  if (given) return given.replace(/(?<!\/)\/+$/, '')
  return `https://${SERVICE}.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
}

const GOOGLE = 'Google Secret Manager'
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
/** A secret, perhaps of one location, perhaps with its version. */
const NAME = /^(projects\/[\w.:-]+(?:\/locations\/([\w-]+))?\/secrets\/[\w-]+)(?:\/versions\/([\w-]+))?$/

/** Reads versions of secrets, the latest by default, with a token as Google's own tools find it. */
export function gcpReader(settings: GcpSecretSettings, context: ManagerContext): ReadSecret {
  return async id => {
    const [, secret, location, version = 'latest'] = NAME.exec(id) ?? []
    if (secret === undefined)
      throw new Error(`expected a name such as "projects/acme/secrets/key/versions/latest", got "${id}"`)
    const { token } = await findGcpToken({ scope: SCOPE, now: Date.now() }, sourcesOf(context))
    const base = gcpEndpoint(settings, context, location)
    const headers = { authorization: `Bearer ${token}` }
    const { status, text } = await answerOf(GOOGLE, context, `${base}/v1/${secret}/versions/${version}:access`, {
      headers,
    })
    const { payload, error } = fieldsOf(text)
    if (status === 200 && isObject(payload) && typeof payload.data === 'string')
      return Buffer.from(payload.data, 'base64').toString()
    throw managerError(GOOGLE, status, objectIn(error).message)
  }
}

function gcpEndpoint({ endpoint }: GcpSecretSettings, { env }: ManagerContext, location: string | undefined): string {
  const given = endpoint ?? env.CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER
  if (given) return given.replace(/(?<!\/)\/+$/, '')
  return location ? `https://secretmanager.${location}.rep.googleapis.com` : 'https://secretmanager.googleapis.com'
}
