/** The five wires of clients: what each asks, and what it reads of the answer, in plain code. */
import type { Gateway } from '../../helpers/gateway.ts'
import { type Answer, Draft, type Finish, type Raw, type Usage } from './answer.ts'
import { eventsIn } from './sse.ts'

export interface Asked {
  readonly model: string
  readonly isStream: boolean
  readonly tools: readonly string[]
  readonly searches: boolean
}
export interface Seen {
  readonly status: number
  readonly answer: Answer
  /** Whether it says that it failed. */
  readonly failed: boolean
  /** Of its row; undefined where the answer failed. */
  readonly requestId: string | undefined
}
export interface Client {
  readonly name: string
  ask(gateway: Gateway, asked: Asked): Promise<Seen>
}

const parameters = { type: 'object', additionalProperties: true }
const words = 'Please answer as the recording does.'

/** What the answer is, whole or as events; `[DONE]` is left out. */
async function piecesOf(response: Response): Promise<Raw[]> {
  const text = await response.text()
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return [JSON.parse(text)]
  return eventsIn(text).flatMap(({ data }) => (data === '[DONE]' ? [] : [JSON.parse(data)]))
}

const usageOf = (input: number, output: number, rest: Partial<Usage>): Usage => {
  const { cached = 0, written = 0, written1h = 0, reasoning = 0 } = rest
  return { input, output, cached, written, written1h, reasoning }
}

const seen = (response: Response, draft: Draft, metadata: Raw): Seen => {
  const answer = draft.answer()
  const requestId = answer.finish ? (metadata?.request_id ?? metadata?.requestId) : undefined
  return { status: response.status, answer, failed: draft.failed, requestId }
}

const chat: Client = {
  name: 'chat completions',
  async ask(gateway, { model, isStream, tools, searches }) {
    const response = await gateway.post('/v1/chat/completions', {
      model,
      messages: [{ role: 'user', content: words }],
      reasoning_effort: 'high',
      ...(isStream && { stream: true }),
      ...(tools.length > 0 && { tools: tools.map(name => ({ type: 'function', function: { name, parameters } })) }),
      ...(searches && { web_search: true }),
    })
    const draft = new Draft()
    let metadata: Raw
    let details = ''
    for (const piece of await piecesOf(response)) {
      if (piece.error) draft.failed = true
      const choice = piece.choices?.[0]
      const said = choice?.delta ?? choice?.message ?? {}
      draft.reasoning += said.reasoning ?? ''
      for (const { text, summary } of said.reasoning_details ?? []) details += text ?? summary ?? ''
      draft.text += (said.content ?? '') + (said.refusal ?? '')
      for (const { index = draft.calls.length, id, function: made } of said.tool_calls ?? []) {
        if (draft.calls[index]) draft.calls[index].json += made.arguments
        else draft.call(id, made.name, made.arguments)
      }
      for (const { url_citation: cited } of said.annotations ?? []) draft.urls.add(cited.url)
      draft.finish ??= choice?.finish_reason ?? null
      metadata = piece.metadata ?? metadata
      if (!piece.usage) continue
      const { prompt_tokens: input, completion_tokens: output, prompt_tokens_details: read } = piece.usage
      draft.usage = usageOf(input, output, {
        cached: read.cached_tokens,
        written: read.cache_write_tokens,
        written1h: read.cache_creation?.ephemeral_1h_input_tokens,
        reasoning: piece.usage.completion_tokens_details.reasoning_tokens,
      })
    }
    if (details && details !== draft.reasoning) throw new Error(`its details say "${details}"`)
    return seen(response, draft, metadata)
  },
}

const MESSAGES: Record<string, Finish> = {
  ...{ end_turn: 'stop', stop_sequence: 'stop', pause_turn: 'stop', tool_use: 'tool_calls', refusal: 'content_filter' },
  ...{ max_tokens: 'length', model_context_window_exceeded: 'length' },
}

const messages: Client = {
  name: 'messages',
  async ask(gateway, { model, isStream, tools, searches }) {
    const offered: object[] = tools.map(name => ({ name, input_schema: parameters }))
    if (searches) offered.push({ type: 'web_search_20250305', name: 'web_search' })
    const response = await gateway.post('/v1/messages', {
      model,
      max_tokens: 4000,
      messages: [{ role: 'user', content: words }],
      thinking: { type: 'enabled', budget_tokens: 2000 },
      ...(isStream && { stream: true }),
      ...(offered.length > 0 && { tools: offered }),
    })
    const draft = new Draft()
    let [message, ...events] = await piecesOf(response)
    const blocks: Raw[] = message.content ?? []
    if (isStream && message.type === 'message_start') {
      message = { ...message.message }
      for (const event of events) {
        if (event.type === 'error') draft.failed = true
        else if (event.type === 'content_block_start') blocks[event.index] = { ...event.content_block, json: '' }
        else if (event.type === 'content_block_delta') grow(blocks[event.index], event.delta)
        else if (event.type === 'message_delta') {
          Object.assign(message, { stop_reason: event.delta.stop_reason, metadata: event.metadata })
          Object.assign(message.usage, event.usage)
        }
      }
    } else if (message.type === 'error') draft.failed = true
    for (const block of blocks) {
      draft.part(block.type)
      draft.text += block.type === 'text' ? block.text : ''
      draft.reasoning += block.type === 'thinking' ? block.thinking : ''
      if (block.type === 'tool_use') draft.call(block.id, block.name, block.json || block.input)
      for (const { url } of block.citations ?? []) if (url) draft.urls.add(url)
      if (block.type === 'web_search_tool_result' && Array.isArray(block.content))
        for (const { url } of block.content) draft.urls.add(url)
    }
    draft.finish = MESSAGES[message.stop_reason] ?? null
    const { input_tokens: input, output_tokens: output, ...rest } = message.usage ?? {}
    const { cache_read_input_tokens: cached = 0, cache_creation_input_tokens: written = 0 } = rest
    draft.usage = usageOf(input + cached + written, output, {
      ...{ cached, written, written1h: rest.cache_creation?.ephemeral_1h_input_tokens },
      reasoning: rest.output_tokens_details?.thinking_tokens,
    })
    return seen(response, draft, message.metadata)
  },
}

function grow(block: Raw, delta: Raw): void {
  block.text += delta.text ?? ''
  block.thinking += delta.thinking ?? ''
  block.json += delta.partial_json ?? ''
  if (delta.citation) block.citations = [...(block.citations ?? []), delta.citation]
}

const responses: Client = {
  name: 'responses',
  async ask(gateway, { model, isStream, tools, searches }) {
    const offered: object[] = tools.map(name => ({ type: 'function', name, parameters, strict: false }))
    if (searches) offered.push({ type: 'web_search' })
    const response = await gateway.post('/v1/responses', {
      model,
      input: words,
      reasoning: { effort: 'high', summary: 'auto' },
      ...(isStream && { stream: true }),
      ...(offered.length > 0 && { tools: offered }),
    })
    const draft = new Draft()
    const pieces = await piecesOf(response)
    const last = isStream && response.status === 200 ? (pieces.at(-1).response ?? {}) : pieces[0]
    for (const item of last.output ?? []) {
      draft.part(item.type)
      if (item.type === 'function_call') draft.call(item.call_id, item.name, item.arguments)
      if (item.type === 'reasoning') {
        const parts: Raw[] = item.summary.length > 0 ? item.summary : (item.content ?? [])
        draft.reasoning += parts.map(({ text }) => text).join('\n\n')
      }
      if (item.type === 'message')
        for (const part of item.content) {
          draft.text += part.text ?? part.refusal
          for (const { url } of part.annotations ?? []) draft.urls.add(url)
        }
    }
    const deltas = pieces.filter(({ type }) => /^response\.(output_text|refusal)\.delta$/.test(type))
    const told = deltas.map(({ delta }) => delta).join('')
    if (isStream && told !== draft.text) throw new Error(`its deltas say "${told}", its items "${draft.text}"`)
    if (last.error || last.status === 'failed') draft.failed = true
    else if (last.status === 'completed') draft.finish = 'stop'
    else if (last.status === 'incomplete')
      draft.finish = last.incomplete_details.reason === 'content_filter' ? 'content_filter' : 'length'
    if (last.usage)
      draft.usage = usageOf(last.usage.input_tokens, last.usage.output_tokens, {
        cached: last.usage.input_tokens_details.cached_tokens,
        written: last.usage.input_tokens_details.cache_write_tokens,
        reasoning: last.usage.output_tokens_details.reasoning_tokens,
      })
    return seen(response, draft, last.gateway)
  },
}

const GEMINI: Record<string, Finish> = { STOP: 'stop', MAX_TOKENS: 'length', MALFORMED_FUNCTION_CALL: 'stop' }

const gemini: Client = {
  name: 'generateContent',
  async ask(gateway, { model, isStream, tools, searches }) {
    const method = isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'
    const declared = tools.map(name => ({ name, parametersJsonSchema: parameters }))
    const response = await gateway.post(`/v1beta/models/${model}:${method}`, {
      contents: [{ role: 'user', parts: [{ text: words }] }],
      generationConfig: { thinkingConfig: { includeThoughts: true, thinkingLevel: 'HIGH' } },
      ...((tools.length > 0 || searches) && {
        tools: [
          ...(tools.length > 0 ? [{ functionDeclarations: declared }] : []),
          ...(searches ? [{ googleSearch: {} }] : []),
        ],
      }),
    })
    const draft = new Draft()
    let metadata: Raw
    for (const piece of await piecesOf(response)) {
      if (piece.error) draft.failed = true
      const candidate = piece.candidates?.[0]
      for (const { text, thought, thoughtSignature: _, functionCall: call, ...more } of candidate?.content?.parts ??
        []) {
        if (text !== '') draft.part(thought ? 'thought' : call ? 'functionCall' : (Object.keys(more)[0] ?? 'text'))
        if (call) draft.call(call.id, call.name, call.args)
        else if (thought) draft.reasoning += text ?? ''
        else draft.text += text ?? ''
      }
      for (const { web } of candidate?.groundingMetadata?.groundingChunks ?? []) draft.urls.add(web.uri)
      for (const { uri } of candidate?.citationMetadata?.citations ?? []) if (uri) draft.urls.add(uri)
      const reason = candidate?.finishReason ?? (piece.promptFeedback?.blockReason && 'SAFETY')
      if (reason) draft.finish = GEMINI[reason] ?? 'content_filter'
      metadata = piece.gateway ?? metadata
      if (!piece.usageMetadata) continue
      const { candidatesTokenCount = 0, thoughtsTokenCount: reasoning = 0, ...rest } = piece.usageMetadata
      const input = rest.promptTokenCount + (rest.toolUsePromptTokenCount ?? 0)
      draft.usage = usageOf(input, candidatesTokenCount + reasoning, {
        ...{ cached: rest.cachedContentTokenCount, reasoning },
      })
    }
    return seen(response, draft, metadata)
  },
}

const AI_SDK: Record<string, Finish> = {
  ...{ stop: 'stop', length: 'length', 'tool-calls': 'tool_calls', 'content-filter': 'content_filter' },
}

const aiSdk: Client = {
  name: 'AI SDK',
  async ask(gateway, { model, isStream, tools, searches }) {
    const offered: object[] = tools.map(name => ({ type: 'function', name, inputSchema: parameters }))
    if (searches) offered.push({ type: 'provider', id: 'openai.web_search', name: 'web_search', args: {} })
    const body = {
      prompt: [{ role: 'user', content: [{ type: 'text', text: words }] }],
      reasoning: 'high',
      ...(offered.length > 0 && { tools: offered }),
    }
    const response = await gateway.post('/v4/ai/language-model', body, {
      'ai-language-model-id': model,
      'ai-language-model-specification-version': '4',
      'ai-language-model-streaming': String(isStream),
    })
    const draft = new Draft()
    const pieces = await piecesOf(response)
    const parts: Raw[] = isStream ? pieces : (pieces[0].content ?? [])
    for (const { type, text, delta, providerExecuted, ...part } of parts) {
      if (type === 'text' || type === 'text-delta') draft.text += text ?? delta
      else if (type === 'reasoning' || type === 'reasoning-delta') draft.reasoning += text ?? delta
      else if (type === 'source') draft.urls.add(part.url)
      else if (type === 'error') draft.failed = true
      else if (type === 'tool-call' && !providerExecuted) draft.call(part.toolCallId, part.toolName, part.input)
    }
    const { finishReason, usage, providerMetadata, error } = pieces.at(-1)
    if (error) draft.failed = true
    draft.finish = AI_SDK[finishReason?.unified] ?? null
    if (usage)
      draft.usage = usageOf(usage.inputTokens.total, usage.outputTokens.total, {
        ...{ cached: usage.inputTokens.cacheRead, written: usage.inputTokens.cacheWrite },
        reasoning: usage.outputTokens.reasoning,
      })
    return seen(response, draft, providerMetadata?.gateway)
  },
}

export const clients: readonly Client[] = [chat, messages, responses, gemini, aiSdk]
