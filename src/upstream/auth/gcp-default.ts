/**
 * Tokens as Google's own tools find them: the key file that GOOGLE_APPLICATION_CREDENTIALS names, what `gcloud auth
 * application-default login` has left, or the account of the machine.
 */
import { join } from 'node:path'
import { serviceAccount } from '../../secrets/credential.ts'
import type { Grant } from './access-token.ts'
import { type CredentialSources, missing } from './credential-sources.ts'
import { fieldsOf, formRequest, grantIn } from './endpoint.ts'
import { requestToken } from './gcp-oauth.ts'

const TOKEN_URI = 'https://oauth2.googleapis.com/token'
const DEADLINE_MS = 10_000
/** Outside Google's cloud nothing answers there. */
const METADATA_MS = 1_500
const METADATA = 'metadata.google.internal'

/** The OAuth scope of the token that is looked for, and the time. */
interface GcpTokenRequest {
  readonly scope: string
  /** Unix milliseconds. */
  readonly now: number
}

/** Rejects with a GatewayError that names what is missing, and shows nothing of a credential. */
export async function findGcpToken(request: GcpTokenRequest, at: CredentialSources): Promise<Grant> {
  const { env, home, read } = at
  const named = env.GOOGLE_APPLICATION_CREDENTIALS
  const folder = env.CLOUDSDK_CONFIG || join(home, '.config', 'gcloud')
  const path = named || join(folder, 'application_default_credentials.json')
  const text = await read(path)
  if (text !== undefined) return fromFile(path, text, request, at)
  if (named) throw missing(`the file "${named}" of GOOGLE_APPLICATION_CREDENTIALS is not there`)
  return fromMachine(request, at)
}

async function fromFile(
  path: string,
  text: string,
  { scope, now }: GcpTokenRequest,
  { env, call, egress }: CredentialSources,
) {
  const { type, client_id, client_secret, refresh_token } = fieldsOf(text)
  if (type === 'authorized_user') {
    const given = { client_id, client_secret, refresh_token }
    const absent = Object.entries(given).find(([, value]) => typeof value !== 'string')
    if (absent) throw missing(`the file "${path}" lacks "${absent[0]}"`)
    const fields = { grant_type: 'refresh_token', ...(given as Record<keyof typeof given, string>) }
    const uri = env.GOOGLE_OAUTH_TOKEN_URI || TOKEN_URI
    return grantIn(await call(uri, { ...formRequest(fields), deadlineMs: DEADLINE_MS }), fields.refresh_token)
  }
  if (type !== 'service_account') {
    const kind = typeof type === 'string' ? type.slice(0, 50) : 'unknown'
    throw missing(`the file "${path}" is of the type "${kind}"; a service account's or gcloud's own is needed`)
  }
  const parsed = serviceAccount(text)
  if ('issue' in parsed) throw missing(`the file "${path}": ${parsed.issue}`)
  return requestToken(parsed.value, { scope, tokenUri: parsed.value.tokenUri ?? TOKEN_URI, now, egress })
}

async function fromMachine({ scope }: GcpTokenRequest, { env, call }: CredentialSources): Promise<Grant> {
  const account = '/computeMetadata/v1/instance/service-accounts/default/token'
  const url = `http://${env.GCE_METADATA_HOST || METADATA}${account}?scopes=${encodeURIComponent(scope)}`
  const answer = await call(url, { headers: { 'metadata-flavor': 'Google' }, deadlineMs: METADATA_MS }).catch(() => {
    throw missing('none in GOOGLE_APPLICATION_CREDENTIALS, from gcloud or of this machine')
  })
  return grantIn(answer, '')
}
