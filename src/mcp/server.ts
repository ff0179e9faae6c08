/** Answers a POST to `/mcp`: versions, methods, tools. */
import { codes } from '../codecs/json-rpc.ts'
import { validator } from '../codecs/validate.ts'
import type { Exchange } from '../core/exchange.ts'
import { isObject } from '../json/json.ts'
import { asError, GatewayError } from '../lib/error.ts'
import { discovery, infoOf, isModern, isModernMethod, modernAnswer } from './eras.ts'
import { failure, type Params, type RpcAnswer, type RpcRequest, requestOf, rpcError } from './message.ts'
import type { Handlers } from './protocol.ts'
import { type Scope, scopes, type Tool, type ToolContext, type ToolResult, toolError } from './tool.ts'
import { tools } from './tools/index.ts'

/** An answer and its status; undefined for what is only taken note of. */
interface Answered {
  readonly status: number
  readonly answer: RpcAnswer
}

const byName = new Map(tools.map(tool => [tool.name, { tool, validate: validator(tool.input) }]))

const listing: Params = {
  tools: tools.map(({ name, title, description, scope, input, output }) => ({
    name,
    title,
    description,
    inputSchema: input.json,
    ...(output && { outputSchema: output }),
    annotations: annotationsOf(title, scope),
  })),
}

/** Programs ask their user before they call a tool that is not read-only. */
function annotationsOf(title: string, scope: Scope | undefined): object {
  const isReading = scope !== 'mcp:tools'
  return {
    title,
    readOnlyHint: isReading,
    destructiveHint: false,
    idempotentHint: isReading,
    openWorldHint: !isReading,
  }
}

/** Compiles the schemas of all arguments. */
export function prepare(): void {
  for (const { validate } of byName.values()) validate.prepare()
}

/** Answers a request; undefined for other messages. Throws a GatewayError for a refusal by HTTP status. */
export async function answer(message: unknown, context: ToolContext): Promise<Answered | undefined> {
  const { ex, services } = context
  const request = requestOf(message)
  const modern = isModern(ex, request)
  if (!request) return undefined
  const info = infoOf(services.version)
  const { id, method } = request
  if (modern && method === 'server/discover') {
    return { status: 200, answer: { jsonrpc: '2.0', id, result: discovery(info) } }
  }
  if (modern && !isModernMethod(method)) {
    const error = { code: codes.methodNotFound, message: 'Method not found' }
    return { status: 404, answer: { jsonrpc: '2.0', id, error } }
  }
  checkScope(ex, request)
  const handlers: Handlers = { 'tools/list': () => listing, 'tools/call': params => called(params, context) }
  const { dispatch } = await import('./protocol.ts')
  const made = await dispatch(request, info, handlers, err => {
    services.log.error({ err, request_id: ex.id, method }, 'MCP request failed')
    return `Internal error (request ${ex.id})`
  })
  return { status: 200, answer: modern ? modernAnswer(made, request, info) : made }
}

async function called({ name, arguments: given = {} }: Params, context: ToolContext): Promise<Params> {
  const found = byName.get(String(name))
  if (!found) throw failure(codes.invalidParams, `Unknown tool: ${String(name).slice(0, 100)}`)
  const { tool, validate } = found
  const issue = validate.issue(given)
  const result = issue
    ? toolError(`Invalid arguments for ${tool.name}: ${issue.path} ${issue.message}`.replace(':  ', ': '))
    : await run(tool, given, context)
  context.services.metrics.mcpCall(tool.name, result.isError ? 'error' : 'ok')
  return { ...result }
}

async function run(tool: Tool, args: unknown, context: ToolContext): Promise<ToolResult> {
  try {
    return await tool.run(args, context)
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown
    return toolError(asError(thrown).message)
  }
}

/** Throws the 403 for a token that was not granted what a tool needs; API keys are granted all. */
function checkScope({ caller: { principal } }: Exchange, { id, method, params }: RpcRequest): void {
  if (method !== 'tools/call' || !isObject(params) || !principal?.token) return
  // `dispatch` refuses any other name.
  const needed = typeof params.name === 'string' ? byName.get(params.name)?.tool.scope : undefined
  if (!needed || principal.token.scopes.includes(needed)) return
  throw rpcError(
    403,
    `The access token lacks the scope ${needed}.`,
    { code: codes.unauthorized, id, data: undefined },
    {
      [NEEDED_SCOPE]: needed,
    },
  )
}

/** An internal header of a refusal: the scope for its challenge. It is removed before the refusal is sent. */
export const NEEDED_SCOPE = 'needed-scope'
/** The scopes of a challenge without a tool. */
export const allScopes = scopes.join(' ')
