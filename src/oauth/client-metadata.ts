/** Clients whose id is the address of a document that describes them (draft-ietf-oauth-client-id-metadata-document). */

import { addressKey } from '../core/address.ts'
import type { OAuthClient } from '../core/ports.ts'
import { isObject, jsonIn } from '../json/json.ts'
import { GatewayError } from '../lib/error.ts'
import { urlOf } from '../lib/url.ts'
import { scopes } from '../mcp/tool.ts'
import type { OAuthContext } from './context.ts'
import { oauthError } from './errors.ts'
import { nameOf, redirectsOf } from './register.ts'

/** The fields of a client that consent and token requests use. */
export type KnownClient = Pick<
  OAuthClient,
  'id' | 'name' | 'redirectUris' | 'grantTypes' | 'method' | 'secretHash' | 'scopes' | 'keyId'
> & {
  readonly isRegistered: boolean
  /** The host that verifies the client's name; undefined for an unverified name. */
  readonly verified: string | undefined
}

const MAX_URL_CHARACTERS = 2_000
const HINT = 'The setting mcp.client_metadata decides whether such documents are read.'

/**
 * An https address with a path, and nothing that two readers could read in two ways. Which of them are fetched from is the
 * rule of `DocumentSource`.
 */
export function isDocumentUrl(id: string): boolean {
  const url = id.length > MAX_URL_CHARACTERS || !id.startsWith('https://') ? undefined : urlOf(id)
  if (!url) return false
  const { href, pathname, username, password } = url
  const isPlain = href === id && !id.includes('#') && username === '' && password === ''
  return isPlain && pathname !== '/' && !/%2e/i.test(pathname)
}

/**
 * Undefined where documents are not read. Throws 502 when the document cannot be fetched, 529 while too many are, 400 when
 * it does not describe a valid client.
 */
export async function describedClient(context: OAuthContext, id: string): Promise<KnownClient | undefined> {
  const { services, options } = context
  if (!options.readsDocuments) return undefined
  const text = await fetched(context, id)
  const wrong = (why: string) =>
    oauthError(400, 'invalid_client_metadata', `The client's document at ${id.slice(0, 200)} ${why}. ${HINT}`)
  const document = jsonIn(text)
  if (document === undefined) throw wrong('is not JSON')
  if (!isObject(document) || document.client_id !== id) throw wrong('does not name its own address as client_id')
  const { client_name: name, redirect_uris: uris, token_endpoint_auth_method: method = 'none' } = document
  if (method !== 'none' || 'client_secret' in document)
    throw wrong('has a secret, or a token_endpoint_auth_method other than "none"')
  if (name !== undefined && typeof name !== 'string') throw wrong('has a client_name that is not a string')
  if (!Array.isArray(uris) || !uris.every(uri => typeof uri === 'string')) throw wrong('has no list of redirect_uris')
  services.metrics.oauth('document', 'ok')
  return {
    id,
    name: nameOf(name),
    redirectUris: redirectsOf(uris, options.redirectSchemes),
    grantTypes: ['authorization_code', 'refresh_token'],
    method: 'none',
    secretHash: null,
    scopes,
    keyId: null,
    isRegistered: false,
    verified: new URL(id).host,
  }
}

async function fetched({ ex, services }: OAuthContext, id: string): Promise<string> {
  try {
    return await services.documents.read(id, addressKey(ex.http.clientAddress))
  } catch (thrown) {
    services.metrics.oauth('document', 'refused')
    if (thrown instanceof GatewayError && thrown.status === 529) throw thrown
    const why = thrown instanceof GatewayError ? ` ${thrown.message}` : ''
    throw oauthError(502, 'temporarily_unavailable', `The client's document cannot be read.${why} ${HINT}`)
  }
}
