/** A Messages request for providers of the same wire. */
import type { Exchange } from '../../core/exchange.ts'
import { pagesOf } from '../../core/media.ts'
import type { NativeRequest } from '../../core/wire.ts'
import { isObject, type Json, listIn, textIn } from '../../json/json.ts'
import { nativeOnly } from './native-only.ts'
import { WIRE } from './sink.ts'
import { type PlacedTool, toolsIn } from './tools-in.ts'

/** Header of features that a client turns on. */
const BETA = 'anthropic-beta'

/** `body` has passed the endpoint's schema. */
export function nativeOf(body: Json, ex: Exchange, size: number): NativeRequest {
  const beta = ex.header(BETA)
  const tools = toolsIn(body)
  return {
    wire: WIRE,
    body: current(body),
    headers: beta === undefined ? undefined : { [BETA]: beta },
    only: nativeOnly(body, tools),
    pages: pagesIn(tools),
    loops: isPresent(body.mcp_servers) || tools.some(isHosted),
    size,
  }
}

/** Tools that the client runs; the provider runs all others. */
const CLIENT = /^(?:custom$|(?:bash|browser|computer|memory|text_editor)_)/

const isHosted = ({ tool }: PlacedTool): boolean => isObject(tool) && !CLIENT.test(textIn(tool.type) ?? 'custom')

const isPresent = (servers: unknown): boolean => listIn(servers).length > 0

function pagesIn(tools: readonly PlacedTool[]): number {
  let pages = 0
  for (const { tool } of tools) {
    if (!isObject(tool) || typeof tool.type !== 'string' || !tool.type.startsWith('web_fetch_')) continue
    pages += pagesOf(tool.max_uses)
  }
  return pages
}

/** The body without fields that need a beta: the answer format has a stable name. */
function current(body: Json): Json {
  if (!Object.hasOwn(body, 'output_format') && !Object.hasOwn(body, 'thread')) return body
  const { output_format: format, thread: _, ...rest } = body
  if (format == null) return rest
  return { ...rest, output_config: { ...(rest.output_config as Json | null | undefined), format } }
}
