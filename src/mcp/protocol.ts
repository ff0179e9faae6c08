/** Dispatch by the SDK's low-level server: one for each request, because ids of clients collide. Loaded when it is needed. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import { codes } from '../codecs/json-rpc.ts'
import { isObject } from '../json/json.ts'
import { INSTRUCTIONS, type ServerInfo } from './eras.ts'
import { failure, type Params, type RpcAnswer, type RpcRequest } from './message.ts'

/**
 * Handlers by method. An error with a `code` becomes the error of the answer. Any other is reported, and shown as
 * internal.
 */
export type Handlers = Readonly<Record<string, (params: Params) => Params | Promise<Params>>>

/** Disables the SDK's validator: tools validate their arguments. */
const jsonSchemaValidator = {
  getValidator: () => () => {
    throw new Error('the SDK validates no schemas here')
  },
}

/** The answer to one request of the revisions that begin with `initialize`. Never rejects. */
export async function dispatch(
  request: RpcRequest,
  info: ServerInfo,
  handlers: Handlers,
  failed: (thrown: unknown) => string,
): Promise<RpcAnswer> {
  const params = checkedParams(request)
  if (params instanceof Error)
    return { jsonrpc: '2.0', id: request.id, error: { code: codes.invalidParams, message: params.message } }
  const server = new Server(info, { capabilities: { tools: {} }, instructions: INSTRUCTIONS, jsonSchemaValidator })
  server.fallbackRequestHandler = async ({ method }) => {
    const handler = Object.hasOwn(handlers, method) ? handlers[method] : undefined
    if (!handler) throw failure(codes.methodNotFound, 'Method not found')
    try {
      return await handler(params)
    } catch (thrown) {
      if (thrown instanceof Error && 'code' in thrown && Number.isSafeInteger(thrown.code)) throw thrown
      throw failure(codes.internal, failed(thrown))
    }
  }
  const { id, method } = request
  const transport: Transport = {
    start: async () => undefined,
    close: async () => undefined,
    send: async () => undefined,
  }
  const answered = new Promise<RpcAnswer>(resolve => {
    transport.send = async message => resolve(message as RpcAnswer)
    server.onerror = thrown => resolve({ jsonrpc: '2.0', id, error: { code: codes.internal, message: failed(thrown) } })
  })
  await server.connect(transport)
  // The SDK reads `params` of `initialize` alone; handlers get them directly.
  transport.onmessage?.({ jsonrpc: '2.0', id, method, ...(method === 'initialize' && { params }) } as JSONRPCMessage)
  const answer = await answered
  await server.close()
  return answer
}

/** Checks the parameters that the SDK parses, whose own errors are dumps of its schemas. */
function checkedParams({ method, params = {} }: RpcRequest): Params | Error {
  if (method === 'initialize') {
    const { protocolVersion, clientInfo, capabilities } = params
    if (typeof protocolVersion !== 'string') return new Error('protocolVersion must be a string')
    if (!isObject(capabilities)) return new Error('capabilities must be an object')
    if (!isObject(clientInfo)) return new Error('clientInfo must be an object')
    const { name, version } = clientInfo
    if (typeof name !== 'string' || typeof version !== 'string') {
      return new Error('clientInfo must have a name and a version')
    }
    return { protocolVersion, capabilities: {}, clientInfo: { name, version } }
  }
  if (method === 'tools/call') {
    if (typeof params.name !== 'string') return new Error('name must be a string')
    if (params.arguments !== undefined && !isObject(params.arguments)) return new Error('arguments must be an object')
  }
  return params
}
