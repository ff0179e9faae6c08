/** One chat turn over the Responses API, in the form of `chat.ts`: the final state of a client of that wire. */
import type OpenAI from 'openai'
import type { Call, Message, Mode, Turn } from './chat.ts'
import type { Gateway } from './gateway.ts'
import { readEvents } from './sse.ts'

type Json = Record<string, unknown>
type Item = OpenAI.Responses.ResponseOutputItem
interface Answer {
  readonly status?: 'completed' | 'incomplete' | 'failed'
  readonly output?: readonly Item[]
  readonly usage?: OpenAI.Responses.ResponseUsage & { cost?: number }
  readonly incomplete_details?: { reason: string } | null
  readonly error?: { message: string; type?: string; code: string } | null
  readonly gateway?: Json
}
/** A turn as its client stores and resends it. */
type Kept = Message & { items: readonly Item[] }
interface Given extends Json {
  role: string
  content?: unknown
  tool_calls?: Call[]
  tool_call_id?: string
  items?: readonly Item[]
}

const FINISHES: Readonly<Record<string, string>> = { max_output_tokens: 'length', content_filter: 'content_filter' }

/** Sends a chat request as a Responses request and reads its answer to the end. Throws for a malformed stream. */
export async function responsesChat(gateway: Gateway, mode: Mode, body: Json): Promise<Turn> {
  const response = await gateway.post('/v1/responses', {
    ...requestOf(body),
    ...(mode === 'stream' && { stream: true }),
  })
  const { status } = response
  const isStream = mode === 'stream' && status === 200
  return turnOf(status, isStream ? await streamed(response) : ((await response.json()) as Answer))
}

async function streamed(response: Response): Promise<Answer> {
  const { data, names } = await readEvents<{ type: string; sequence_number: number; response?: Answer }>(response)
  const isNumbered = data.every(({ type, sequence_number: number }, i) => number === i && names[i] === type)
  const { type, response: last } = data.at(-1)!
  if (!isNumbered || type !== `response.${last?.status}`)
    throw new Error(`a stream is malformed: ${JSON.stringify(data)}`)
  return last!
}

function turnOf(status: number, { output = [], status: ended, incomplete_details: cut, ...answer }: Answer): Turn {
  const message: Kept = { role: 'assistant', content: null, items: output }
  for (const item of output) read(item, message)
  const reason = ended === 'incomplete' ? FINISHES[cut!.reason]! : message.tool_calls ? 'tool_calls' : 'stop'
  return {
    status,
    message,
    finish: ended === undefined || ended === 'failed' ? null : reason,
    usage: answer.usage ? usageOf(answer.usage) : null,
    metadata: answer.gateway ?? null,
    error: (answer.error ?? null) as Turn['error'],
  }
}

function read(item: Item, message: Kept): void {
  if (item.type === 'function_call') {
    message.tool_calls ??= []
    const called = { name: item.name, arguments: item.arguments }
    message.tool_calls.push({ id: item.call_id, type: 'function', function: called })
  } else if (item.type === 'reasoning') {
    for (const { text } of item.summary) message.reasoning = (message.reasoning ?? '') + text
  } else if (item.type === 'message') {
    for (const part of item.content) {
      if (part.type === 'refusal') message.refusal = (message.refusal ?? '') + part.refusal
      else message.content = (message.content ?? '') + part.text
    }
  }
}

function usageOf({ input_tokens, output_tokens, total_tokens, cost, ...details }: NonNullable<Answer['usage']>): Json {
  return {
    prompt_tokens: input_tokens,
    completion_tokens: output_tokens,
    total_tokens,
    prompt_tokens_details: details.input_tokens_details,
    completion_tokens_details: details.output_tokens_details,
    cost,
  }
}

function requestOf({
  model,
  messages,
  tools,
  reasoning_effort: effort,
  response_format: format,
  max_tokens,
}: Json): Json {
  const schema = (format as { json_schema?: Json } | undefined)?.json_schema
  return {
    model,
    input: (messages as Given[]).flatMap(itemsOf),
    ...(tools !== undefined && { tools: (tools as Json[]).map(toolOf) }),
    ...(max_tokens !== undefined && { max_output_tokens: max_tokens }),
    ...(effort !== undefined && { reasoning: { effort, summary: 'auto' } }),
    ...(schema && { text: { format: { type: 'json_schema', ...schema } } }),
  }
}

const toolOf = ({ function: called }: Json): Json => ({ type: 'function', strict: false, ...(called as Json) })

function itemsOf({ role, content, tool_calls: calls = [], tool_call_id: id, items }: Given): unknown[] {
  if (items) return [...items]
  if (role === 'tool') return [{ type: 'function_call_output', call_id: id, output: partsOf(content) }]
  const called = calls.map(({ id, function: f }) => ({ type: 'function_call', call_id: id, ...f }))
  return [...(content == null ? [] : [{ type: 'message', role, content: partsOf(content) }]), ...called]
}

function partsOf(content: unknown): unknown {
  if (typeof content === 'string') return content
  return (content as { text?: string; image_url?: { url: string } }[]).map(({ text, image_url: image }) =>
    image ? { type: 'input_image', image_url: image.url } : { type: 'input_text', text },
  )
}
