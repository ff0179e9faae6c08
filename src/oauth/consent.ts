/** `POST /oauth/authorize`: the form of the consent page becomes a grant and its code. */

import type { NewGrant } from '../core/ports.ts'
import type { Reply } from '../core/reply.ts'
import { opaque, sha256 } from '../lib/opaque.ts'
import { cookieName, pageReply, redirectToClient } from './authorize.ts'
import type { KnownClient } from './client-metadata.ts'
import { findClient } from './clients.ts'
import { checkAttempts, countAttempt, type OAuthContext } from './context.ts'
import { oauthError } from './errors.ts'
import { formOf } from './form.ts'
import { consentPage, plainName } from './pages.ts'
import { isRegistered } from './redirects.ts'
import { type ConsentRequest, opened, PURPOSE, type SignedIssue } from './state.ts'

const LOGIN_CODE = /^mgw_li_[\w-]{20,60}$/
const API_KEY = /^mgw_[\w-]{40,60}$/
const CODE_BYTES = 32

const refused: Readonly<Record<SignedIssue, string>> = {
  forged: 'This form does not come from this server.',
  expired: 'This page was open for too long.',
  'another page': 'This browser has opened a newer page of this kind, or does not store cookies.',
}
/** One text for every cause. */
const UNKNOWN = 'This API key or one-time code cannot be used here. Check it, and try again.'

/** Throws an error that becomes a page: a form of another session is refused. */
export async function consent(context: OAuthContext): Promise<Reply> {
  const { services } = context
  checkSender(context)
  const form = await formOf(context.ex, ['scope'])
  const signed = form.get('request') ?? ''
  const request = opened(signed, cookieIn(context), services.signingKeys(PURPOSE), services.now())
  if (typeof request === 'string') {
    services.metrics.oauth('consent', 'refused')
    throw oauthError(403, 'invalid_request', refused[request])
  }
  const client = await findClient(context, request.clientId)
  if (!client || !isRegistered(client.redirectUris, request.redirectUri)) {
    throw oauthError(403, 'invalid_client', 'The client was removed while this page was open.')
  }
  if (form.get('action') === 'deny') {
    services.metrics.oauth('consent', 'denied')
    const denied = { error: 'access_denied', error_description: 'The person refused.' } as const
    return redirectToClient(context, request, denied)
  }
  if (form.get('action') !== 'allow')
    throw oauthError(400, 'invalid_request', 'The field action must be "allow" or "deny".')
  const ticked = form.getAll('scope')
  const again = (error: string) => pageReply(400, consentPage({ client, request, signed, ticked, error }))
  const scopes = request.scopes.filter(scope => ticked.includes(scope))
  if (scopes.length === 0) return again('Tick what it may do, or choose Deny.')
  await checkAttempts(context, 'consent', context.options.limits.consent)
  const code = await granted(context, client, { ...request, scopes }, (form.get('credential') ?? '').trim())
  if (code !== undefined) {
    services.metrics.oauth('consent', 'ok')
    return redirectToClient(context, request, { code })
  }
  services.metrics.oauth('consent', 'refused')
  await countAttempt(context, 'consent', context.options.limits.consent)
  return again(UNKNOWN)
}

/** Throws 403 for a form of another site. Programs other than browsers send neither header. */
function checkSender({ ex, base }: OAuthContext): void {
  const origin = ex.header('origin')
  const site = ex.header('sec-fetch-site')
  const isOwn =
    (origin === undefined || origin === base) && (site === undefined || ['same-origin', 'none'].includes(site))
  if (!isOwn) throw oauthError(403, 'invalid_request', 'This form was sent by a page of another site.')
}

function cookieIn(context: OAuthContext): string | undefined {
  const name = cookieName(context)
  const all = (context.ex.header('cookie') ?? '').split(';').map(pair => pair.trim())
  const found = all.filter(pair => pair.startsWith(`${name}=`))
  return found.length === 1 ? found[0]!.slice(name.length + 1) : undefined
}

/** The code of a new grant; undefined for a credential that is not valid here. */
async function granted(
  { services, options }: OAuthContext,
  client: KnownClient,
  { scopes, resource, redirectUri, challenge }: ConsentRequest,
  credential: string,
): Promise<string | undefined> {
  const proof = await proofOf(services.keys, credential)
  if (!proof) return undefined
  const { text, hash } = opaque('mgw_ac_', CODE_BYTES)
  const grant: NewGrant = {
    client: { id: client.id, name: plainName(client.name), isRegistered: client.isRegistered },
    ...{ proof, scopes, resource },
    code: { hash, redirectUri, challenge, expiresAt: services.now() + options.codeMs },
  }
  return (await services.oauth.grants.begin(grant)) ? text : undefined
}

async function proofOf(
  keys: OAuthContext['services']['keys'],
  credential: string,
): Promise<NewGrant['proof'] | undefined> {
  if (LOGIN_CODE.test(credential)) return { loginCode: sha256(credential) }
  if (!API_KEY.test(credential)) return undefined
  const principal = await keys.find(sha256(credential))
  // A session or a token stands for a key that its holder does not have.
  return principal?.kind === 'key' && !principal.session && !principal.token ? { keyId: principal.keyId } : undefined
}
