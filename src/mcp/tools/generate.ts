/** Shared by the generating tools: calls an endpoint as the caller, and makes its failure a tool error. */

import type { Exchange } from '../../core/exchange.ts'
import type { GatewayError } from '../../lib/error.ts'
import { type Call, call } from '../call.ts'
import { type ToolContext, type ToolResult, toolError } from '../tool.ts'

/** The answer, or the tool error of a failed call. */
type Generated =
  | { readonly ex: Exchange; readonly answer: unknown; readonly error?: undefined }
  | { readonly error: ToolResult }

/** Calls an endpoint that takes JSON by POST. */
export async function generate(context: ToolContext, path: Call['path'], body: object): Promise<Generated> {
  const { ex, lease, services } = context
  const called = await call(ex, {
    path,
    body,
    lease,
    report: (filter, err) => services.log.error({ filter, err }, 'filter finish failed'),
  })
  if ('failure' in called) return { error: failed(called.failure) }
  return called
}

/** The tool error of a failed call. */
const failed = ({ status, message }: GatewayError): ToolResult => toolError(`Error: ${status} - ${message}`)
