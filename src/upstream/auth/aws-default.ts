/**
 * Keys as Amazon's own tools find them. Its library finds them, and is loaded only where a manifest or a secret asks for
 * such keys.
 */
import { Readable } from 'node:stream'
import type { Auth } from '../../core/provider-settings.ts'
import type { Egress } from '../../lib/egress.ts'
import { GatewayError } from '../../lib/error.ts'
import type { Grant } from './access-token.ts'
import { missing } from './credential-sources.ts'
import { callEndpoint, type EndpointRequest } from './endpoint.ts'

type AwsAuth = Extract<Auth, { scheme: 'aws-sigv4' }>

const DEADLINE_MS = 10_000
/** Keys without an end are read again after this: they may have changed. */
const READ_AGAIN_S = 300

/** Selects keys by profile, and the region of an assumed role. Without `profile`, the SDKs' default chain applies. */
interface AwsKeysRequest extends Pick<AwsAuth, 'region' | 'profile'> {
  /** Unix milliseconds. */
  readonly now: number
  readonly egress: Egress | undefined
}

/** Returns `ID:SECRET[:SESSION]`. Rejects with a GatewayError that says what is missing, and shows nothing of a key. */
export async function findAwsKeys({ region, profile, now, egress }: AwsKeysRequest): Promise<Grant> {
  const { fromIni, fromNodeProviderChain } = await import('@aws-sdk/credential-providers')
  const clientConfig = { requestHandler: requestHandler(egress) }
  // A client of single sign-on has the region of its profile.
  const settings = { ignoreCache: true, clientConfig, parentClientConfig: { ...clientConfig, region } }
  const named = profile ?? (process.env.AWS_PROFILE || undefined)
  // The chain would go on to the machine's role where a named profile has no keys.
  const find = named === undefined ? fromNodeProviderChain(settings) : fromIni({ ...settings, profile: named })
  try {
    const { accessKeyId: id, secretAccessKey: secret, sessionToken: session, expiration } = await find()
    return {
      token: [id, secret, ...(session ? [session] : [])].join(':'),
      seconds: expiration ? Math.max(0, (expiration.getTime() - now) / 1000) : READ_AGAIN_S,
    }
  } catch (thrown) {
    throw thrown instanceof GatewayError ? thrown : missing(reasonOf(thrown as LibraryError))
  }
}

/** An error of a service has `$metadata`. */
type LibraryError = Error & { readonly $metadata?: { readonly httpStatusCode?: number } }

/** Reasons of the library itself name profiles and files. Those of a service may repeat what it was sent. */
function reasonOf({ name, message, $metadata }: LibraryError): string {
  if ($metadata) return `AWS answered with status ${$metadata.httpStatusCode} (${name})`
  if (!message.startsWith('Could not load credentials')) return message.replace(/\.$/, '')
  return 'none in AWS_ACCESS_KEY_ID, ~/.aws, or the role of this container or machine'
}

interface LibraryRequest extends Required<Pick<EndpointRequest, 'method' | 'headers'>> {
  readonly protocol: string
  readonly hostname: string
  readonly port?: number
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

/** Sends the requests of the library, by `egress`. */
const requestHandler = (egress: Egress | undefined) => ({
  async handle({ protocol, hostname, port, path, query, method, headers, body }: LibraryRequest) {
    const search = new URLSearchParams(query).toString()
    const url = `${protocol}//${hostname}${port ? `:${port}` : ''}${path}${search && `?${search}`}`
    const { status, text } = await callEndpoint(url, {
      method,
      headers,
      ...(body !== undefined && { body: Buffer.from(body).toString() }),
      deadlineMs: DEADLINE_MS,
      egress,
    })
    return { response: { statusCode: status, headers: {}, body: Readable.from([Buffer.from(text)]) } }
  },
})
