/** The metadata documents (RFC 9728, RFC 8414). `base` is the name of this server that the request used. */

import { urlOf } from '../lib/url.ts'
import { scopes } from '../mcp/tool.ts'

/** The identifier of the protected resource. */
export const resourceOf = (base: string): string => `${base}/mcp`

/** RFC 9728. */
export const protectedResource = (base: string): object => ({
  resource: resourceOf(base),
  authorization_servers: [base],
  scopes_supported: scopes,
  bearer_methods_supported: ['header'],
  resource_name: 'Model Gateway',
  resource_documentation: resourceOf(base),
})

const METHODS = ['none', 'client_secret_basic', 'client_secret_post']

/** RFC 8414. `readsDocuments`: a client's id may be the address of a document. */
export const authorizationServer = (base: string, readsDocuments: boolean): object => ({
  issuer: base,
  authorization_endpoint: `${base}/oauth/authorize`,
  token_endpoint: `${base}/oauth/token`,
  registration_endpoint: `${base}/oauth/register`,
  revocation_endpoint: `${base}/oauth/revoke`,
  response_types_supported: ['code'],
  response_modes_supported: ['query'],
  grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
  token_endpoint_auth_methods_supported: METHODS,
  revocation_endpoint_auth_methods_supported: METHODS,
  code_challenge_methods_supported: ['S256'],
  scopes_supported: scopes,
  authorization_response_iss_parameter_supported: true,
  ...(readsDocuments && { client_id_metadata_document_supported: true }),
  service_documentation: resourceOf(base),
})

/** Whether `resource` (RFC 8707) is this server: its MCP endpoint or all of it, with or without a slash at the end. */
export function isOwnResource(base: string, resource: string): boolean {
  const url = urlOf(resource)
  if (!url) return false
  const { origin, pathname, search, hash, username, password } = url
  const path = pathname.replace(/\/$/, '')
  const isPlain = search === '' && hash === '' && username === '' && password === '' && !resource.includes('#')
  return isPlain && origin === new URL(base).origin && (path === '' || path === '/mcp')
}
