/** One chat turn over Google's wire, in the form of `chat.ts`: the final state of a client of that wire. */
import type { Content, FunctionDeclaration, GenerateContentResponse, Part } from '@google/genai'
import type { Call, Message, Mode, Turn } from './chat.ts'
import type { Gateway } from './gateway.ts'
import { readEvents } from './sse.ts'

type Json = Record<string, unknown>
interface Chunk extends GenerateContentResponse {
  error?: { code: number; message: string; status: string; details?: Json[] }
  gateway?: Json
}
/** A turn as its client stores and resends it. */
type Kept = Message & { parts: Part[] }
interface Given extends Json {
  role: string
  content?: unknown
  tool_calls?: Call[]
  tool_call_id?: string
  parts?: Part[]
}

const FINISHES: Readonly<Record<string, string>> = { STOP: 'stop', MAX_TOKENS: 'length', SAFETY: 'content_filter' }
const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  502: 'upstream_error',
  503: 'upstream_error',
}

/** Sends a chat request as generateContent and reads its answer to the end. */
export async function geminiChat(gateway: Gateway, mode: Mode, { model, ...body }: Json): Promise<Turn> {
  const method = mode === 'stream' ? 'streamGenerateContent?alt=sse' : 'generateContent'
  const path = `/v1beta/models/${model}:${method}`
  const response = await gateway.post(path, requestOf(body), { authorization: null, 'x-goog-api-key': gateway.key })
  const isStream = mode === 'stream' && response.status === 200
  const chunks = isStream ? (await readEvents<Chunk>(response)).data : [(await response.json()) as Chunk]
  const message: Kept = { role: 'assistant', content: null, parts: [] }
  const turn: Turn = { status: response.status, message, finish: null, usage: null, metadata: null, error: null }
  for (const { error, candidates, usageMetadata, gateway: metadata } of chunks) {
    if (turn.finish !== null) throw new Error('a stream goes on behind its finish reason')
    if (error) turn.error = errorOf(error)
    if (usageMetadata) turn.usage = usageOf({ ...usageMetadata })
    turn.metadata = metadata ?? null
    const [candidate] = candidates ?? []
    message.parts.push(...(candidate?.content?.parts ?? []))
    if (candidate?.finishReason) turn.finish = FINISHES[candidate.finishReason] ?? candidate.finishReason
  }
  read(message)
  if (turn.finish === 'stop' && message.tool_calls) turn.finish = 'tool_calls'
  if (turn.finish === 'content_filter') {
    if (message.content !== null) message.refusal = message.content
    message.content = null
  }
  return turn
}

function read(message: Kept): void {
  for (const { text, thought, functionCall: call } of message.parts) {
    if (call) {
      message.tool_calls ??= []
      const called = { name: call.name!, arguments: JSON.stringify(call.args) }
      message.tool_calls.push({ id: call.id!, type: 'function', function: called })
    } else if (thought) message.reasoning = (message.reasoning ?? '') + text
    else if (text) message.content = (message.content ?? '') + text
  }
}

function errorOf({ code, message, details = [] }: NonNullable<Chunk['error']>): Turn['error'] {
  const reason = details.find(detail => typeof detail.reason === 'string')?.reason
  return { message, type: TYPES[code] ?? '', code: String(reason ?? '') } as Turn['error']
}

const usageOf = (usage: Record<string, unknown>): Json => {
  const count = (name: string) => (usage[name] as number | undefined) ?? 0
  const thoughts = count('thoughtsTokenCount')
  return {
    prompt_tokens: usage.promptTokenCount,
    completion_tokens: count('candidatesTokenCount') + thoughts,
    total_tokens: usage.totalTokenCount,
    prompt_tokens_details: { cached_tokens: count('cachedContentTokenCount') },
    completion_tokens_details: { reasoning_tokens: thoughts },
    cost: usage.cost,
  }
}

function requestOf({ messages, tools, reasoning_effort: effort, response_format: format, max_tokens }: Json): Json {
  const schema = (format as { json_schema?: { schema: object } } | undefined)?.json_schema?.schema
  return {
    contents: (messages as Given[]).map(contentOf),
    ...(tools !== undefined && { tools: [{ functionDeclarations: (tools as Json[]).map(declaration) }] }),
    generationConfig: {
      ...(max_tokens !== undefined && { maxOutputTokens: max_tokens }),
      ...(effort !== undefined && {
        thinkingConfig: { includeThoughts: true, thinkingLevel: String(effort).toUpperCase() },
      }),
      ...(schema && { responseMimeType: 'application/json', responseJsonSchema: schema }),
    },
  }
}

function declaration({ function: called }: Json): FunctionDeclaration {
  const { name, description, parameters } = called as { name: string; description: string; parameters: object }
  return { name, description, parametersJsonSchema: parameters }
}

function contentOf({ role, content, tool_calls: calls, tool_call_id: id, parts }: Given): Content {
  if (parts) return { role: 'model', parts }
  if (role === 'tool') {
    const shown = partsOf(content)
    const [text] = shown.flatMap(part => part.text ?? [])
    const media = shown.filter(part => part.inlineData)
    return { parts: [{ functionResponse: { id: id!, name: 'weather', response: { output: text }, parts: media } }] }
  }
  const called = (calls ?? []).map(({ id, function: f }): Part => {
    return { functionCall: { id, name: f.name, args: JSON.parse(f.arguments) } }
  })
  return { role: role === 'assistant' ? 'model' : 'user', parts: [...partsOf(content), ...called] }
}

function partsOf(content: unknown): Part[] {
  if (typeof content === 'string') return [{ text: content }]
  return ((content ?? []) as { text?: string; image_url?: { url: string } }[]).map(({ text, image_url: image }) => {
    const [, mimeType, data] = /^data:([^;]+);base64,(.*)$/s.exec(image?.url ?? '') ?? []
    return data ? { inlineData: { mimeType: mimeType!, data } } : { text: text! }
  })
}
