/** Client authentication of token requests: Basic, a secret in the form, or the id alone (RFC 6749 2.3). */
import { timingSafeEqual } from 'node:crypto'
import { sha256 } from '../lib/opaque.ts'
import type { KnownClient } from './client-metadata.ts'
import { findClient } from './clients.ts'
import { checkAttempts, countAttempt, type OAuthContext } from './context.ts'
import { invalidClient, oauthError } from './errors.ts'

const BASIC = /^Basic +([A-Za-z0-9+/=]+)$/i

interface Presented {
  readonly id: string
  readonly secret: string | undefined
  readonly by: 'none' | 'client_secret_basic' | 'client_secret_post'
}

/** Throws 401 `invalid_client`, 429 for an address with too many wrong attempts, 400 for two ways at once. */
export async function authenticated(context: OAuthContext, form: URLSearchParams): Promise<KnownClient> {
  const { clientAuth } = context.options.limits
  await checkAttempts(context, 'client', clientAuth)
  const presented = presentedBy(context, form)
  const client = presented && (await findClient(context, presented.id))
  if (presented && client && matches(client, presented)) return client
  context.services.metrics.oauth('client', 'refused')
  await countAttempt(context, 'client', clientAuth)
  throw invalidClient()
}

function presentedBy({ ex }: OAuthContext, form: URLSearchParams): Presented | undefined {
  const authorization = ex.header('authorization')
  const id = form.get('client_id') ?? undefined
  const secret = form.get('client_secret') ?? undefined
  if (authorization === undefined) {
    return id === undefined ? undefined : { id, secret, by: secret === undefined ? 'none' : 'client_secret_post' }
  }
  if (secret !== undefined)
    throw oauthError(
      400,
      'invalid_request',
      'Send the client_secret in the Authorization header or in the body, not in both.',
    )
  const [, pair] = BASIC.exec(authorization) ?? []
  if (pair === undefined) return undefined
  const text = Buffer.from(pair, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  const basic = colon < 0 ? undefined : decoded(text.slice(0, colon), text.slice(colon + 1))
  if (basic && id !== undefined && id !== basic.id) {
    throw oauthError(400, 'invalid_request', 'The client_id in the body differs from that in the Authorization header.')
  }
  return basic
}

/** Both halves are form-encoded, once. */
function decoded(id: string, secret: string): Presented | undefined {
  const plain = (text: string) => decodeURIComponent(text.replaceAll('+', ' '))
  try {
    return { id: plain(id), secret: plain(secret), by: 'client_secret_basic' }
  } catch {
    return undefined
  }
}

/** A secret is accepted in the header and in the body: libraries do not follow the registered method. */
function matches({ method, secretHash }: KnownClient, { secret, by }: Presented): boolean {
  if (method === 'none' || secretHash === null) return by === 'none'
  return secret !== undefined && timingSafeEqual(Buffer.from(sha256(secret)), Buffer.from(secretHash))
}
