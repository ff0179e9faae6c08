/** `GET /oauth/authorize` (RFC 6749 4.1.1, RFC 7636, RFC 8707, RFC 9207): checks the request and shows the consent page. */

import { only, type Reply } from '../core/reply.ts'
import type { GatewayError } from '../lib/error.ts'
import type { Page } from '../lib/html.ts'
import type { KnownClient } from './client-metadata.ts'
import { findClient } from './clients.ts'
import type { OAuthContext } from './context.ts'
import { descriptionOf, invalidScope, invalidTarget, type OAuthCode, oauthError } from './errors.ts'
import { fieldsOf } from './form.ts'
import { isOwnResource, resourceOf } from './metadata.ts'
import { consentPage, errorPage } from './pages.ts'
import { isRegistered, withParameters } from './redirects.ts'
import { scopesIn } from './register.ts'
import { CONSENT_MS, type ConsentRequest, newCookie, PURPOSE, signed } from './state.ts'

const CHALLENGE = /^[A-Za-z0-9_-]{43}$/

type Return = Pick<ConsentRequest, 'redirectUri' | 'state'>
type Answer = { readonly code: string } | { readonly error: OAuthCode; readonly error_description: string }

const returnTo = ({ base }: OAuthContext, { redirectUri, state }: Return, answer: Answer): string =>
  withParameters(redirectUri, { ...answer, state, iss: base })

/** A redirect to the client, whose redirect URI has been checked, after the form of the consent page. */
export function redirectToClient(context: OAuthContext, back: Return, answer: Answer): Reply {
  const location = returnTo(context, back, answer)
  return { status: 303, headers: ['location', location, 'cache-control', 'no-store'], events: nothing() }
}

async function* nothing(): AsyncGenerator<never[]> {}

/** An HTML page as a reply; `more` are further headers. */
export function pageReply(status: number, { html, headers }: Page, more: readonly string[] = []): Reply {
  const event = { type: 'bytes', bytes: Buffer.from(html), contentType: 'text/html; charset=utf-8' } as const
  return { status, headers: [...headers, ...more], events: only(event) }
}

/**
 * Shows the consent page, or an error page with a link to the client. Throws an error that becomes a page without a link
 * for an unknown client or address. It never redirects, since everyone can register an address, and links to this server
 * look trustworthy (RFC 9700 4.11.2).
 */
export async function authorize(context: OAuthContext): Promise<Reply> {
  const { ex, services } = context
  const query = fieldsOf(ex.http.query)
  const client = await clientOf(context, query)
  const redirectUri = query.get('redirect_uri')
  if (redirectUri === null || !isRegistered(client.redirectUris, redirectUri)) {
    throw oauthError(400, 'invalid_request', 'The redirect_uri is missing, or is not registered for this client.')
  }
  const back = { redirectUri, state: query.get('state') ?? undefined }
  try {
    const request = { ...back, ...checkedRequest(context, query, client) }
    const cookie = newCookie()
    const [key] = services.signingKeys(PURPOSE)
    const text = signed(request, cookie, key!, services.now())
    services.metrics.oauth('page', 'ok')
    const shown = consentPage({ client, request, signed: text, ticked: request.scopes })
    return pageReply(200, shown, ['set-cookie', cookieOf(context, cookie)])
  } catch (thrown) {
    const { code, message } = thrown as GatewayError
    if ((thrown as GatewayError).type !== 'oauth_error') throw thrown
    services.metrics.oauth('page', 'refused')
    const said = descriptionOf(message)
    const href = returnTo(context, back, { error: code as OAuthCode, error_description: said })
    return pageReply(400, errorPage(said, { href, redirectUri }))
  }
}

/** The client that the request names. Throws 400 for an unknown one. */
async function clientOf(context: OAuthContext, query: URLSearchParams): Promise<KnownClient> {
  const client = await findClient(context, query.get('client_id') ?? '')
  if (client) return client
  throw oauthError(
    400,
    'invalid_client',
    'The client_id is unknown. Remove the connection in your program, and add it again.',
  )
}

function checkedRequest({ base }: OAuthContext, query: URLSearchParams, client: KnownClient) {
  if (query.get('response_type') !== 'code') {
    throw oauthError(400, 'unsupported_response_type', 'response_type must be "code".')
  }
  if (!client.grantTypes.includes('authorization_code')) {
    throw oauthError(400, 'unauthorized_client', 'The client did not register for authorization codes.')
  }
  const challenge = query.get('code_challenge') ?? ''
  if (query.get('code_challenge_method') !== 'S256' || !CHALLENGE.test(challenge)) {
    throw oauthError(400, 'invalid_request', 'A code_challenge by the method S256 is required (RFC 7636).')
  }
  const resource = query.get('resource')
  if (resource !== null && !isOwnResource(base, resource)) throw invalidTarget(base)
  const requested = query.get('scope')
  const allowed = scopesIn(client.scopes.join(' '))
  const scopes = requested === null ? allowed : scopesIn(requested).filter(scope => allowed.includes(scope))
  if (scopes.length === 0) throw invalidScope()
  return { clientId: client.id, challenge, scopes, resource: resourceOf(base) }
}

/** Browsers accept the prefix and `Secure` over https alone. */
export const cookieName = ({ base }: OAuthContext): string =>
  base.startsWith('https:') ? '__Host-mgw_consent' : 'mgw_consent'

function cookieOf(context: OAuthContext, cookie: string): string {
  const secure = context.base.startsWith('https:') ? ' Secure;' : ''
  return `${cookieName(context)}=${cookie}; Path=/; Max-Age=${CONSENT_MS / 1000}; HttpOnly;${secure} SameSite=Lax`
}
