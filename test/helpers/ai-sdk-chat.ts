/** One chat turn over the AI SDK's protocol, in the form of `chat.ts`: the final state of a client of that wire. */
import type { Call, Message, Mode, Turn } from './chat.ts'
import type { Gateway } from './gateway.ts'
import { readEvents } from './sse.ts'

type Json = Record<string, unknown>
/** A part of an answer, of a stream, or of a prompt. */
export interface Part extends Json {
  type: string
  id?: string
  text?: string
  delta?: string
  toolCallId?: string
  toolName?: string
  input?: unknown
  providerMetadata?: Json
  providerOptions?: Json
}
interface Usage {
  inputTokens: { total: number; noCache: number; cacheRead: number; cacheWrite: number }
  outputTokens: { total: number; text: number; reasoning: number }
  raw: { cost?: number; info?: string }
}
interface Answer {
  readonly content?: readonly Part[]
  readonly finishReason?: { unified: string; raw?: string }
  readonly usage?: Usage
  readonly providerMetadata?: { gateway: Json }
  readonly error?: { message: string; type: string; code: string }
}
/** A turn as its client stores and resends it. */
type Kept = Message & { parts: readonly Part[] }
interface Given extends Json {
  role: string
  content?: unknown
  tool_calls?: Call[]
  tool_call_id?: string
  parts?: readonly Part[]
}

const FINISHES: Readonly<Record<string, string>> = { 'tool-calls': 'tool_calls', 'content-filter': 'content_filter' }
const TYPES: Readonly<Record<string, string>> = { internal_server_error: 'upstream_error' }

/** Sends a body of version 4 of the protocol. */
export function callAiSdk(
  gateway: Gateway,
  model: string,
  body: Json,
  mode: Mode,
  headers: Record<string, string> = {},
) {
  return gateway.post('/v4/ai/language-model', body, {
    'ai-language-model-id': model,
    'ai-language-model-specification-version': '4',
    'ai-language-model-streaming': String(mode === 'stream'),
    ...headers,
  })
}

/** Sends a chat request as call options and reads its answer to the end. Throws for a malformed stream. */
export async function aiSdkChat(gateway: Gateway, mode: Mode, { model, ...body }: Json): Promise<Turn> {
  const response = await callAiSdk(gateway, String(model), requestOf(body), mode)
  const isStream = mode === 'stream' && response.status === 200
  const answer = isStream ? await streamed(response) : ((await response.json()) as Answer)
  const { content = [], finishReason, usage, providerMetadata, error } = answer
  const message: Kept = { role: 'assistant', content: null, parts: content.flatMap(keptOf) }
  for (const part of content) read(part, message)
  // A signature without visible text is in a block without text.
  if (message.reasoning === '') delete message.reasoning
  const unified = finishReason?.unified
  const finish = unified === undefined || unified === 'error' ? null : (FINISHES[unified] ?? unified)
  if (finish === 'content_filter') {
    if (message.content !== null) message.refusal = message.content
    message.content = null
  }
  return {
    status: response.status,
    message,
    finish,
    usage: usage ? usageOf(usage) : null,
    metadata: providerMetadata?.gateway ?? null,
    error: error ? ({ ...error, type: TYPES[error.type] ?? error.type } as Turn['error']) : null,
  }
}

/** Reads a stream as the SDK does, and throws where the SDK would: at the order of its parts. */
async function streamed(response: Response): Promise<Answer> {
  return fold((await readEvents<Part>(response)).data)
}

/** Folds the parts of a stream. */
export function fold(parts: readonly Part[]): Answer {
  const must = (holds: boolean, what: string) => {
    if (!holds) throw new Error(`a stream ${what}:\n${parts.map(part => JSON.stringify(part)).join('\n')}`)
  }
  const content: Part[] = []
  const open = new Map<string, Part>()
  const inputs = new Map<string, string>()
  let error: Answer['error']
  must(parts[0]?.type === 'stream-start', 'begins with stream-start')
  for (const part of parts) {
    const { type, id = '', delta = '', providerMetadata } = part
    const block = open.get(id)
    switch (type) {
      case 'text-start':
      case 'reasoning-start': {
        must(!block, 'begins a block once')
        const begun: Part = { type: type.slice(0, -'-start'.length), text: '' }
        if (providerMetadata) begun.providerMetadata = providerMetadata
        open.set(id, begun)
        content.push(begun)
        break
      }
      case 'text-delta':
      case 'reasoning-delta':
      case 'text-end':
      case 'reasoning-end':
        must(block !== undefined && type.startsWith(block.type), 'says nothing of a block that is not open')
        block!.text += delta
        if (providerMetadata) block!.providerMetadata = providerMetadata
        if (type.endsWith('-end')) open.delete(id)
        break
      case 'tool-input-start':
        must(!inputs.has(id), 'begins an input once')
        inputs.set(id, '')
        break
      case 'tool-input-delta':
        must(inputs.has(id), 'begins an input before it goes on')
        inputs.set(id, inputs.get(id)! + delta)
        break
      case 'tool-input-end':
        must(inputs.has(id), 'begins an input before it ends')
        break
      case 'tool-call':
        must((inputs.get(part.toolCallId!) || '{}') === part.input, 'has the inputs that it streamed')
        content.push(part)
        break
      case 'error':
        error = part.error as Answer['error']
        break
      case 'source':
      case 'file':
      case 'tool-result':
        content.push(part)
    }
  }
  const last = parts.at(-1) as Part & Answer
  must(last.type === 'finish' && parts.filter(({ type }) => type === 'finish').length === 1, 'ends with finish')
  must(open.size === 0, 'ends its blocks')
  const { finishReason, usage, providerMetadata } = last
  return { content, finishReason, usage, providerMetadata, error } as Answer
}

/** A part as the SDK sends it back: metadata as options, inputs as values. */
function keptOf({ providerMetadata, ...part }: Part): Part[] {
  if (part.type === 'source') return []
  const kept: Part = providerMetadata ? { ...part, providerOptions: providerMetadata } : part
  if (part.type === 'tool-call') kept.input = JSON.parse(String(part.input))
  return [kept]
}

function read({ type, text = '', toolCallId, toolName, input }: Part, message: Kept): void {
  if (type === 'text') message.content = (message.content ?? '') + text
  else if (type === 'reasoning') message.reasoning = (message.reasoning ?? '') + text
  else if (type === 'tool-call') {
    message.tool_calls ??= []
    const called = { name: toolName!, arguments: String(input) }
    message.tool_calls.push({ id: toolCallId!, type: 'function', function: called })
  }
}

const usageOf = ({ inputTokens, outputTokens, raw }: Usage): Json => ({
  prompt_tokens: inputTokens.total,
  completion_tokens: outputTokens.total,
  total_tokens: inputTokens.total + outputTokens.total,
  prompt_tokens_details: { cached_tokens: inputTokens.cacheRead, cache_write_tokens: inputTokens.cacheWrite },
  completion_tokens_details: { reasoning_tokens: outputTokens.reasoning },
  cost: raw.cost,
  info: raw.info,
})

function requestOf({ messages, tools, reasoning_effort: reasoning, response_format: format, max_tokens }: Json): Json {
  const schema = (format as { json_schema?: { name: string; schema: object } } | undefined)?.json_schema
  return {
    prompt: (messages as Given[]).map(messageOf),
    tools: (tools as { function: Json }[] | undefined)?.map(({ function: { name, description, parameters } }) => {
      return { type: 'function', name, description, inputSchema: parameters }
    }),
    maxOutputTokens: max_tokens,
    reasoning,
    responseFormat: schema && { type: 'json', name: schema.name, schema: schema.schema },
  }
}

function messageOf({ role, content, tool_calls: calls = [], tool_call_id: toolCallId, parts }: Given): Json {
  if (parts) return { role, content: parts }
  if (role === 'tool') {
    const value = partsOf(content)
    const output = typeof content === 'string' ? { type: 'text', value: content } : { type: 'content', value }
    return { role, content: [{ type: 'tool-result', toolCallId, toolName: 'weather', output }] }
  }
  const called = calls.map(({ id, function: f }) => {
    return { type: 'tool-call', toolCallId: id, toolName: f.name, input: JSON.parse(f.arguments) }
  })
  return { role, content: [...partsOf(content), ...called] }
}

function partsOf(content: unknown): Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return ((content ?? []) as { text?: string; image_url?: { url: string } }[]).map(({ text, image_url: image }) => {
    const [, mediaType, data] = /^data:([^;]+);base64,(.*)$/s.exec(image?.url ?? '') ?? []
    return data ? { type: 'file', mediaType, data: { type: 'data', data } } : { type: 'text', text: text! }
  })
}
