/** What the generating tools have in common: a call of an endpoint as the caller, and how its failure is told. */
import { type Call, call } from '../../core/call.ts'
import type { GatewayError } from '../../core/error.ts'
import type { Exchange } from '../../core/exchange.ts'
import { type ToolContext, type ToolResult, toolError } from '../tool.ts'

/** What it answered, or the result that tells why not. `told` tells them apart. */
export type Generated =
  | { readonly ex: Exchange; readonly answer: unknown; readonly told?: undefined }
  | { readonly told: ToolResult }

/** Of an endpoint that takes JSON by POST. */
export async function generate(context: ToolContext, path: Call['path'], body: object): Promise<Generated> {
  const { ex, lease, services } = context
  const called = await call(ex, {
    path,
    body,
    lease,
    report: (filter, err) => services.log.error({ filter, err }, 'a filter failed to finish'),
  })
  if ('failure' in called) return { told: refused(called.failure) }
  return { ex: called.ex, answer: JSON.parse(called.body.toString()) }
}

export const refused = ({ status, message }: GatewayError): ToolResult => toolError(`Error: ${status} - ${message}`)
