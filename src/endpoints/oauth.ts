/** The authorization server of the MCP endpoint: metadata, registration, consent, tokens. */

import { oauthCodec } from '../codecs/json-rpc.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Services } from '../core/ports.ts'
import { type ErrorAnswer, type Reply, value } from '../core/reply.ts'
import type { GatewayError } from '../lib/error.ts'
import { authorize } from '../oauth/authorize.ts'
import { consent } from '../oauth/consent.ts'
import { contextOf, type OAuthContext, siteOf } from '../oauth/context.ts'
import { errorBody } from '../oauth/errors.ts'
import { authorizationServer, protectedResource } from '../oauth/metadata.ts'
import { errorPage } from '../oauth/pages.ts'
import { register, registration } from '../oauth/register.ts'
import { revoke, token } from '../oauth/token.ts'

const MAX_BODY_BYTES = 64 * 1024
const NO_STORE = ['cache-control', 'no-store', 'pragma', 'no-cache']
const JSON_TYPE = 'application/json'

const row = {
  name: 'oauth',
  chain: 'local',
  codec: oauthCodec(errorBody, registration.prepare),
  limitsAddress: true,
  check: (ex: Exchange) => void siteOf(ex),
} as const
const reading = { ...row, bodyLimit: 0, body: 'none', open: true } as const
const posting = { ...row, method: 'POST', bodyLimit: MAX_BODY_BYTES } as const

const asPage = (error: GatewayError): ErrorAnswer => {
  const { html, headers } = errorPage(error.message)
  const own = Object.entries(error.headers).flat()
  return { contentType: 'text/html; charset=utf-8', headers: [...headers, ...own], body: html }
}
const asJson = (error: GatewayError, ex: Exchange): ErrorAnswer => {
  const headers = [...Object.entries(error.headers).flat(), ...NO_STORE, ...corsOf(ex)]
  return { contentType: JSON_TYPE, headers, body: JSON.stringify(errorBody(error)) }
}

/** CORS for origins that the operator lists. */
function corsOf(ex: Exchange): readonly string[] {
  const origin = ex.header('origin')
  if (origin === undefined || !ex.snapshot.mcp.site.origins.has(origin.toLowerCase())) return []
  const exposed = ['access-control-expose-headers', 'WWW-Authenticate, x-request-id, Retry-After']
  return ['access-control-allow-origin', origin, 'vary', 'Origin', ...exposed]
}

/** Metadata are public. */
const anyOrigin = (): readonly string[] => ['access-control-allow-origin', '*']

const preflight =
  (methods: string, cors: (ex: Exchange) => readonly string[]) =>
  async (ex: Exchange): Promise<Reply> => {
    const allowed = cors(ex)
    const more = [
      ...['access-control-allow-methods', methods],
      ...['access-control-allow-headers', 'Authorization, Content-Type, Accept, mcp-protocol-version'],
    ]
    const reply = value(undefined, 204)
    return { ...reply, headers: allowed.length > 0 ? [...allowed, ...more] : [] }
  }

const answering =
  (status: number, work: (context: OAuthContext) => Promise<object | undefined>) =>
  async (ex: Exchange, services: Services): Promise<Reply> => {
    const result = await work(contextOf(ex, services))
    return { ...value(result, status), headers: [...NO_STORE, ...corsOf(ex)] }
  }

function document(path: string, make: (base: string, readsDocuments: boolean) => object): Endpoint[] {
  const serve = async (ex: Exchange): Promise<Reply> => {
    const reply = value(make(siteOf(ex), ex.snapshot.mcp.oauth.readsDocuments))
    return { ...reply, headers: [...anyOrigin(), 'cache-control', 'public, max-age=300', 'vary', 'Host'] }
  }
  const options = preflight('GET, HEAD, OPTIONS', anyOrigin)
  return [path, `${path}/mcp`].flatMap((path): Endpoint[] => [
    { ...reading, method: 'GET', path, serve, errorAnswer: asJson },
    { ...reading, method: 'OPTIONS', path, serve: options, errorAnswer: asJson },
  ])
}

const page =
  (make: (context: OAuthContext) => Promise<Reply>) =>
  (ex: Exchange, services: Services): Promise<Reply> =>
    make(contextOf(ex, services))

const forPages = {
  ...reading,
  method: 'OPTIONS',
  serve: preflight('POST, OPTIONS', corsOf),
  errorAnswer: asJson,
} as const

/** RFC 6749 with PKCE, RFC 7591, RFC 7009, RFC 8414 and RFC 9728. All but registration are open. */
export const oauth: readonly Endpoint[] = [
  ...document('/.well-known/oauth-protected-resource', protectedResource),
  ...document('/.well-known/oauth-authorization-server', authorizationServer),
  { ...reading, method: 'GET', path: '/oauth/authorize', serve: page(authorize), errorAnswer: asPage },
  { ...posting, path: '/oauth/authorize', open: true, body: 'raw', serve: page(consent), errorAnswer: asPage },
  { ...posting, path: '/oauth/token', open: true, body: 'raw', serve: answering(200, token), errorAnswer: asJson },
  { ...forPages, path: '/oauth/token' },
  // Not open: a client of client_credentials registers with the key to which it is bound.
  { ...posting, path: '/oauth/register', serve: answering(201, register), errorAnswer: asJson },
  { ...forPages, path: '/oauth/register' },
  {
    ...posting,
    path: '/oauth/revoke',
    open: true,
    body: 'raw',
    serve: answering(200, async context => {
      await revoke(context)
      return {}
    }),
    errorAnswer: asJson,
  },
]
