/** Protocol revisions: those that begin with `initialize`, and 2026-07-28, whose requests are self-contained. */
import { codes } from '../codecs/json-rpc.ts'
import type { Exchange } from '../core/exchange.ts'
import { isObject, objectIn } from '../json/json.ts'
import { HOUR_MS } from '../lib/period.ts'
import { type Id, type Params, type RpcAnswer, type RpcRequest, rpcError } from './message.ts'

/** The revision without a handshake. */
const MODERN = '2026-07-28'
/** The revisions with `initialize`, the newest first. */
export const LEGACY = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const
/** All supported revisions, the newest first. */
export const VERSIONS: readonly string[] = [MODERN, ...LEGACY]

const META = 'io.modelcontextprotocol/'

/** `serverInfo` of the protocol. */
export interface ServerInfo {
  readonly name: string
  readonly title: string
  readonly version: string
}
/** `version` is that of the gateway. */
export const infoOf = (version: string): ServerInfo => ({ name: 'model-gateway', title: 'Model Gateway', version })

/** Instructions about this server, which clients show to their model. */
export const INSTRUCTIONS =
  'Call models with chat, generate-image and generate-nano-banana: they spend money within the limits of the API key. ' +
  'list-models and list-image-models say what there is. get-account, get-usage and get-usage-breakdown show the ' +
  'account and what was spent, and cost nothing.'

/** Whether a request is one of the revision 2026-07-28. Throws 400 for an unsupported version, or contradicting headers. */
export function isModern(ex: Exchange, request: RpcRequest | undefined): boolean {
  const header = ex.header('mcp-protocol-version')
  const id = request?.id ?? null
  const meta = isObject(request?.params?._meta) ? request.params._meta : undefined
  const stated = meta?.[`${META}protocolVersion`]
  if (!request || (stated === undefined && header !== MODERN)) {
    if (header !== undefined && request?.method !== 'initialize' && !VERSIONS.includes(header)) {
      throw unsupported(header, id)
    }
    return header === MODERN
  }
  if (header !== undefined && stated !== undefined && header !== stated) {
    throw mismatch('The header MCP-Protocol-Version and _meta name different versions.', id)
  }
  if (typeof stated !== 'string' || !isObject(meta?.[`${META}clientCapabilities`])) {
    const names = `${META}protocolVersion and ${META}clientCapabilities`
    throw rpcError(400, `params._meta must hold ${names}.`, { code: codes.invalidParams, id })
  }
  if (stated !== MODERN) throw unsupported(stated, id)
  checkHeaders(ex, request, header)
  return true
}

function checkHeaders(ex: Exchange, { id, method, params }: RpcRequest, version: string | undefined): void {
  if (version === undefined) throw mismatch('The header MCP-Protocol-Version is missing.', id)
  if (ex.header('mcp-method')?.trim() !== method) throw mismatch('The header Mcp-Method must be the method.', id)
  if (method === 'tools/call' && decoded(ex.header('mcp-name')?.trim()) !== params?.name) {
    throw mismatch('The header Mcp-Name must be the name of the tool.', id)
  }
}

const ENCODED = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/

function decoded(text: string | undefined): string | undefined {
  const base64 = text === undefined ? undefined : ENCODED.exec(text)?.[1]
  return base64 === undefined ? text : Buffer.from(base64, 'base64').toString()
}

const mismatch = (message: string, id: Id | null) => rpcError(400, message, { code: codes.headerMismatch, id })

const unsupported = (requested: string, id: Id | null) =>
  rpcError(400, 'Unsupported protocol version', {
    code: codes.unsupportedVersion,
    id,
    data: { supported: VERSIONS, requested: requested.slice(0, 64) },
  })

/** Whether the revision 2026-07-28 has a method, besides `server/discover`. */
export const isModernMethod = (method: string): boolean => method === 'tools/list' || method === 'tools/call'

/** The result of `server/discover`. */
export const discovery = (info: ServerInfo): Params =>
  completed(
    {
      supportedVersions: VERSIONS,
      capabilities: { tools: {} },
      instructions: INSTRUCTIONS,
      ttlMs: HOUR_MS,
      cacheScope: 'public',
    },
    info,
  )

/** An answer in the form of the revision 2026-07-28. */
export function modernAnswer(answer: RpcAnswer, { method }: RpcRequest, info: ServerInfo): RpcAnswer {
  if ('error' in answer) return answer
  const cached = method === 'tools/list' ? { ttlMs: HOUR_MS, cacheScope: 'public' } : {}
  return { jsonrpc: '2.0', id: answer.id, result: completed({ ...answer.result, ...cached }, info) }
}

const completed = (result: Params, info: ServerInfo): Params => {
  const meta = objectIn(result._meta)
  return { resultType: 'complete', ...result, _meta: { ...meta, [`${META}serverInfo`]: info } }
}
