/** A call of a tool that no provider answers, and what the floor is given in its place. */
import { checkWhole, request } from './sample.mjs'

export const toolCall = () =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get-account', arguments: {} } })

/** Throws when an answer holds no account. */
export function checkToolCall(body) {
  const { result } = JSON.parse(body.toString())
  if (result?.isError || !result?.structuredContent?.apiKey) throw new Error(`no account: ${body}`)
}

/** The floor serves no tools: a chat request. */
export const unary = {
  path: '/v1/chat/completions',
  body: Buffer.from(request({ model: 'bench' })),
  check: checkWhole,
}
