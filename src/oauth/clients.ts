/** Finds clients: those that are registered, and those that a document at their id describes. */
import type { OAuthClient } from '../core/ports.ts'
import { describedClient, isDocumentUrl } from './client-metadata.ts'
import type { OAuthContext } from './context.ts'

/** What consent and tokens need of a client. */
export type KnownClient = Pick<
  OAuthClient,
  'id' | 'name' | 'redirectUris' | 'grantTypes' | 'method' | 'secretHash' | 'scopes' | 'keyId'
> & {
  readonly isRegistered: boolean
  /** The host that verifies the client's name; undefined for an unverified name. */
  readonly verified: string | undefined
}

const REGISTERED = /^mgw_cl_[\w-]{1,100}$/

/** Throws a GatewayError for a document that cannot be read. */
export async function findClient(context: OAuthContext, id: string): Promise<KnownClient | undefined> {
  if (isDocumentUrl(id)) return describedClient(context, id)
  if (!REGISTERED.test(id)) return undefined
  const found = await context.services.oauth.clients.find(id)
  return found && { ...found, isRegistered: true, verified: undefined }
}
