/** `/mcp`: the Model Context Protocol over Streamable HTTP, without sessions; browsers get a page of instructions. */

import { codes, jsonRpc, rpcBody } from '../codecs/json-rpc.ts'
import type { Endpoint, Method } from '../core/endpoint.ts'
import type { Exchange } from '../core/exchange.ts'
import { catalogOf } from '../core/policy.ts'
import type { Principal, Services } from '../core/ports.ts'
import { type ErrorAnswer, only, type Reply, value } from '../core/reply.ts'
import { baseOf, isOwnOrigin } from '../core/site.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import { escaped, type Page, page } from '../lib/html.ts'
import { infoOf, LEGACY, VERSIONS } from '../mcp/eras.ts'
import { openStream, streamOf } from '../mcp/event-stream.ts'
import { rpcError } from '../mcp/message.ts'
import { allScopes, answer, NEEDED_SCOPE, prepare } from '../mcp/server.ts'
import { listedModels } from './models.ts'

const PATH = '/mcp'
const MAX_BODY_BYTES = 4 * 1024 * 1024
const METHODS = 'GET, POST, OPTIONS'
const ALLOWED_HEADERS =
  'Authorization, Content-Type, Accept, x-api-key, x-source, x-session-id, mcp-protocol-version, mcp-session-id, ' +
  'mcp-method, mcp-name'
const EXPOSED_HEADERS =
  'WWW-Authenticate, x-request-id, Retry-After, RateLimit-Policy, RateLimit, RateLimit-Limit, RateLimit-Remaining, ' +
  'RateLimit-Reset, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset'

const row = {
  name: 'mcp',
  path: PATH,
  chain: 'local',
  takesTokens: true,
  codec: { ...jsonRpc, prepare },
  check,
  errorAnswer,
} as const

/** `check` compares Host and Origin before the credential is read. */
export const mcp: readonly Endpoint[] = [
  { ...row, method: 'GET', bodyLimit: 0, body: 'none', open: ex => viewOf(ex) !== 'older stream', serve: show },
  { ...row, method: 'POST', bodyLimit: MAX_BODY_BYTES, serve: post },
  { ...row, method: 'OPTIONS', bodyLimit: 0, body: 'none', open: true, serve: preflight },
  ...(['DELETE', 'PUT', 'PATCH'] as const).map(
    (method: Method): Endpoint => ({
      ...row,
      method,
      bodyLimit: 0,
      body: 'none',
      check: refuseMethod,
      serve: preflight,
    }),
  ),
]

const siteBase = (ex: Exchange): string | undefined => baseOf(ex.snapshot.mcp.site, ex.header('host'), ex.http.port)

/** Throws 403 for a host that is no name of ours, and for pages of other origins: DNS rebinding leads both here. */
function check(ex: Exchange): void {
  const origin = ex.header('origin')
  const hint = 'Operators add it to mcp'
  if (siteBase(ex) === undefined) {
    throw rpcError(403, `The Host header does not name this server. ${hint}.hosts, or set server.public_url.`, {
      code: codes.server,
      id: null,
    })
  }
  if (origin !== undefined && !isOwnOrigin(ex.snapshot.mcp.site, origin, ex.http.port)) {
    throw rpcError(403, `Pages of this origin may not call the MCP server. ${hint}.origins.`, {
      code: codes.server,
      id: null,
    })
  }
}

function refuseMethod(ex: Exchange): never {
  check(ex)
  const message = `Use ${METHODS}: there are no sessions to delete.`
  throw rpcError(405, message, { code: codes.server, id: null }, { allow: METHODS })
}

/** A JSON-RPC error with the challenge of RFC 9728, and CORS for listed origins. */
function errorAnswer(error: GatewayError, ex: Exchange): ErrorAnswer {
  const { [NEEDED_SCOPE]: needed, ...headers } = error.headers
  const given = { ...headers, ...challenge(error, ex, needed) }
  return {
    contentType: 'application/json',
    headers: [...Object.entries(given).flat(), ...limitHeaders(error, ex), ...corsHeaders(ex)],
    body: JSON.stringify(rpcBody(error)),
  }
}

/** Absent where the refusal of the rate limit has them. */
const limitHeaders = (error: GatewayError, ex: Exchange): readonly string[] =>
  'ratelimit' in error.headers ? [] : ex.answer.headers

function challenge({ status, headers, message }: GatewayError, ex: Exchange, needed?: string): Record<string, string> {
  if (status !== 401 && needed === undefined) return {}
  const base = siteBase(ex) ?? ''
  const parts = [
    `resource_metadata="${base}/.well-known/oauth-protected-resource${PATH}"`,
    `scope="${needed ?? allScopes}"`,
  ]
  const isInvalid = headers['www-authenticate']?.includes('invalid_token') ?? false
  if (needed) parts.unshift('error="insufficient_scope"')
  else if (isInvalid) parts.unshift('error="invalid_token"', `error_description="${message.replace(/["\\]/g, '')}"`)
  return { 'www-authenticate': `Bearer ${parts.join(', ')}`, 'cache-control': 'no-store' }
}

function corsHeaders(ex: Exchange): string[] {
  const origin = ex.header('origin')
  if (origin === undefined || !isOwnOrigin(ex.snapshot.mcp.site, origin, ex.http.port)) return []
  return ['access-control-allow-origin', origin, 'vary', 'Origin', 'access-control-expose-headers', EXPOSED_HEADERS]
}

function withCors(reply: Reply, ex: Exchange): Reply {
  reply.headers.push(...corsHeaders(ex))
  if (reply.status !== 200) reply.headers.push(...ex.answer.headers)
  return reply
}

const nothing = (status: number, ex: Exchange): Reply => withCors(value(undefined, status), ex)

async function preflight(ex: Exchange): Promise<Reply> {
  const reply = nothing(204, ex)
  if (ex.header('origin') !== undefined) {
    reply.headers.push('access-control-allow-methods', METHODS, 'access-control-allow-headers', ALLOWED_HEADERS)
  }
  return reply
}

/** Which of four answers a GET gets: a stream of the current or the older transport, the page, or the facts as JSON. */
function viewOf(ex: Exchange): 'stream' | 'older stream' | 'page' | 'facts' {
  const accept = ex.header('accept')?.toLowerCase() ?? ''
  if (accept.includes('text/event-stream')) {
    const isCurrent =
      accept.includes('application/json') ||
      ['mcp-protocol-version', 'mcp-session-id', 'last-event-id'].some(name => ex.header(name) !== undefined)
    return isCurrent || ex.http.method === 'HEAD' ? 'stream' : 'older stream'
  }
  return accept.includes('text/html') || ex.header('sec-fetch-mode') === 'navigate' ? 'page' : 'facts'
}

async function show(ex: Exchange, services: Services): Promise<Reply> {
  const base = siteBase(ex)!
  switch (viewOf(ex)) {
    case 'stream':
      throw rpcError(
        405,
        'There is no standalone stream: answers are JSON.',
        { code: codes.server, id: null },
        {
          allow: 'POST',
        },
      )
    case 'older stream':
      callerOf(ex)
      return withCors(openStream(ex, services, PATH), ex)
    case 'page': {
      const { html, headers } = setupPage(base)
      const bytes = Buffer.from(html)
      const events = only({ type: 'bytes', bytes, contentType: 'text/html; charset=utf-8' } as const)
      return withCors({ status: 200, headers: [...headers, 'vary', 'Accept, Sec-Fetch-Mode'], events }, ex)
    }
    case 'facts': {
      const address = `${base}${PATH}`
      const reply = value({
        ...infoOf(services.version),
        description: 'Calls models as tools, and shows what they cost.',
        protocolVersion: LEGACY[0],
        protocolVersions: VERSIONS,
        transport: 'streamable-http',
        endpoint: address,
        documentation: address,
        capabilities: { tools: {} },
      })
      reply.headers.push('vary', 'Accept, Sec-Fetch-Mode')
      return withCors(reply, ex)
    }
  }
}

const JSON_BODY = /^application\/json\b/i

/** Throws 401 without a caller, and 403 for a publishable key. */
function callerOf({ caller: { principal } }: Exchange): Principal {
  if (!principal) throw errors.noCredentials()
  if (principal.kind === 'publishable') throw errors.forbidden('Publishable keys cannot call the MCP server.')
  return principal
}

async function post(ex: Exchange, services: Services): Promise<Reply> {
  const principal = callerOf(ex)
  const stream = streamOf(ex, principal, services)
  const accept = ex.header('accept')
  const isWanted = stream !== undefined || accept === undefined || /application\/(?:json|\*)|\*\/\*/i.test(accept)
  if (!isWanted && JSON_BODY.test(ex.header('content-type') ?? '')) {
    throw rpcError(406, 'Accept must hold application/json.', { code: codes.server, id: null })
  }
  const lease = services.memory.lease(principal.orgId)
  const models = (wanted: Parameters<typeof listedModels>[1]) => listedModels(ex, wanted)
  try {
    const made = await answer(await ex.input.read(), { ex, services, catalog: catalogOf(ex), lease, models })
    if (made) stream?.send(JSON.stringify(made.answer))
    return made && !stream ? withCors(value(made.answer, made.status), ex) : nothing(202, ex)
  } finally {
    lease.release()
  }
}

const block = (title: string, ...lines: string[]): string =>
  `<section><h2>${escaped(title)}</h2><pre tabindex="0"><code>${escaped(lines.join('\n'))}</code></pre></section>`

/** The page for browsers: how to connect, without personal data. `base` is a name of this server. */
function setupPage(base: string): Page {
  const url = `${base}/mcp`
  const json = (value: object) => JSON.stringify(value, null, 2)
  const header = 'Authorization: Bearer YOUR_API_KEY'
  const body = `<p>This is the address of an MCP server: programs call models through it as tools, and see what they spend.</p>
<pre tabindex="0"><code>${escaped(url)}</code></pre>
<p>Your program opens a page here on which you paste an API key, or the one-time code that your operator gave you.</p>
${block('Claude Code', `claude mcp add --transport http gateway ${url}`)}
${block('Codex', `codex mcp add gateway --url ${url}`)}
${block('opencode (opencode.json)', json({ mcp: { gateway: { type: 'remote', url } } }))}
${block('Cursor (.cursor/mcp.json)', json({ mcpServers: { gateway: { url } } }))}
${block('VS Code (.vscode/mcp.json)', json({ servers: { gateway: { type: 'http', url } } }))}
${block('With an API key, without a page', `URL: ${url}`, `Header: ${header}`)}
${block('Older clients', `npx mcp-remote ${url}`)}
<section><h2>Scopes</h2><dl>
<dt>mcp:tools</dt><dd>Call models. This spends money, within the limits of the API key.</dd>
<dt>usage:read</dt><dd>Read account, usage and costs.</dd></dl></section>`
  return page('Connect to Model Gateway', body)
}
