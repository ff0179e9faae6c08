/** Finds clients: registered ones, and those that the document at their id describes. */
import type { OAuthClient } from '../core/ports.ts'
import { describedClient, isDocumentUrl } from './client-metadata.ts'
import type { OAuthContext } from './context.ts'

/** The fields of a client that consent and token requests use. */
export type KnownClient = Pick<
  OAuthClient,
  'id' | 'name' | 'redirectUris' | 'grantTypes' | 'method' | 'secretHash' | 'scopes' | 'keyId'
> & {
  readonly isRegistered: boolean
  /** The host that verifies the client's name; undefined for an unverified name. */
  readonly verified: string | undefined
}

const REGISTERED = /^mgw_cl_[\w-]{1,100}$/

/** Undefined for an unknown client. Throws a GatewayError for a document that cannot be read. */
export async function findClient(context: OAuthContext, id: string): Promise<KnownClient | undefined> {
  if (isDocumentUrl(id)) return describedClient(context, id)
  if (!REGISTERED.test(id)) return undefined
  const found = await context.services.oauth.clients.find(id)
  return found && { ...found, isRegistered: true, verified: undefined }
}
