/** One chat turn over HTTP, whole or streamed, in one form: the final state of a client. */
import type { Json } from '../../src/json/json.ts'
import type { Gateway } from './gateway.ts'
import { type ChatChunk, readEvents } from './sse.ts'

export type Mode = 'whole' | 'stream'

export interface Call {
  id: string
  type: 'function'
  function: { name: string; arguments: string }
  extra_content?: unknown
}
/** The assistant's message, as a client sends it back. */
export interface Message extends Json {
  role: 'assistant'
  content: string | null
  reasoning?: string
  reasoning_details?: unknown[]
  refusal?: string
  tool_calls?: Call[]
}
export interface Turn {
  status: number
  message: Message
  finish: string | null
  usage: Json | null
  metadata: Json | null
  error: ChatChunk['error'] | null
}

/** Sends one request and reads its answer to the end. Throws for a malformed stream (docs/contract.md#chat-answers). */
export async function chat(gateway: Gateway, mode: Mode, body: Json): Promise<Turn> {
  const response = await gateway.chat({ ...body, ...(mode === 'stream' && { stream: true }) })
  if (mode === 'stream' && response.status === 200) return streamed(response)
  const answer = (await response.json()) as {
    choices?: { message: Message; finish_reason: string }[]
    usage?: Json
    metadata?: Json
    error?: Turn['error']
  }
  return {
    status: response.status,
    message: answer.choices?.[0]?.message ?? { role: 'assistant', content: null },
    finish: answer.choices?.[0]?.finish_reason ?? null,
    usage: answer.usage ?? null,
    metadata: answer.metadata ?? null,
    error: answer.error ?? null,
  }
}

async function streamed(response: Response): Promise<Turn> {
  const { data, terminator, after, broken } = await readEvents<ChatChunk>(response)
  const must = (holds: boolean, what: string) => {
    if (!holds) throw new Error(`a stream ${what}:\n${data.map(chunk => JSON.stringify(chunk)).join('\n')}`)
  }
  must(terminator === '[DONE]' && after === 0 && !broken, 'ends with [DONE] and nothing behind it')
  const message: Message = { role: 'assistant', content: null }
  const turn: Turn = { status: 200, message, finish: null, usage: null, metadata: null, error: null }
  let roles = 0
  let finishes = 0
  for (const chunk of data) {
    must(turn.usage === null, 'has its usage at the end')
    turn.error = chunk.error ?? turn.error
    turn.usage = chunk.usage ?? turn.usage
    turn.metadata = chunk.metadata ?? turn.metadata
    for (const { delta, finish_reason: finish } of chunk.choices ?? []) {
      must(finishes === 0, 'ends with its finish reason')
      if (delta.role !== undefined) roles += 1
      if (finish != null) finishes += 1
      turn.finish ??= finish ?? null
      grow(message, delta)
    }
  }
  must(roles <= 1, 'tells the role once')
  must(turn.error !== null || finishes === 1, 'has one finish reason')
  const calls = message.tool_calls ?? []
  must(Object.keys(calls).length === calls.length, 'numbers its calls from 0')
  return turn
}

export type Delta = NonNullable<ChatChunk['choices']>[number]['delta'] & { reasoning_details?: unknown[] }

/** Adds a chunk to the message that a client assembles. */
export function grow(message: Message, delta: Delta): void {
  if (typeof delta.content === 'string') message.content = (message.content ?? '') + delta.content
  if (delta.reasoning) message.reasoning = (message.reasoning ?? '') + delta.reasoning
  if (delta.refusal) message.refusal = (message.refusal ?? '') + delta.refusal
  if (delta.reasoning_details) {
    message.reasoning_details ??= []
    message.reasoning_details.push(...delta.reasoning_details)
  }
  for (const { index, id, function: called, ...rest } of delta.tool_calls ?? []) {
    message.tool_calls ??= []
    message.tool_calls[index] ??= { id: '', type: 'function', function: { name: '', arguments: '' } }
    const call = message.tool_calls[index]
    call.id += id ?? ''
    call.function.name += called?.name ?? ''
    call.function.arguments += called?.arguments ?? ''
    if ('extra_content' in rest) call.extra_content = rest.extra_content
  }
}
