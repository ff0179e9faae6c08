/** Finds clients: registered ones, and those that the document at their id describes. */
import { describedClient, isDocumentUrl, type KnownClient } from './client-metadata.ts'
import type { OAuthContext } from './context.ts'

const REGISTERED = /^mgw_cl_[\w-]{1,100}$/

/** Undefined for an unknown client. Throws a GatewayError for a document that cannot be read. */
export async function findClient(context: OAuthContext, id: string): Promise<KnownClient | undefined> {
  if (isDocumentUrl(id)) return describedClient(context, id)
  if (!REGISTERED.test(id)) return undefined
  const found = await context.services.oauth.clients.find(id)
  return found && { ...found, isRegistered: true, verified: undefined }
}
