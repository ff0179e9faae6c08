/** Messages to the MCP server, as clients send them. */
import type { Gateway } from './gateway.ts'

type Tree = Record<string, unknown>

export interface Block {
  type: string
  text?: string
  data?: string
  mimeType?: string
}
export interface Told {
  isError?: boolean
  content: Block[]
  structuredContent?: Tree
  _meta?: Tree
}

/** Sends one message; adds `jsonrpc` to an object without it. */
export const rpc = (gateway: Pick<Gateway, 'post'>, message: unknown, headers: Record<string, string | null> = {}) =>
  gateway.post('/mcp', message, { accept: 'application/json, text/event-stream', ...headers })

/** Calls a tool and returns its result; throws for any other answer. */
export async function callTool(
  gateway: Pick<Gateway, 'post'>,
  name: string,
  args: Tree = {},
  headers: Record<string, string | null> = {},
): Promise<Told> {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
  const response = await rpc(gateway, message, headers)
  const { result, error } = (await response.json()) as { result?: Told; error?: Tree }
  if (!result) throw new Error(`${name}: ${response.status} ${JSON.stringify(error)}`)
  return result
}
