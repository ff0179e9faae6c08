/** A client of the AI SDK's protocol, in plain code. */
import { Draft, type Finish, type Raw } from '../support/answer.ts'
import { type Client, parameters, piecesOf, seen, usageOf, words } from '../support/client.ts'

const AI_SDK: Record<string, Finish> = {
  ...{ stop: 'stop', length: 'length', 'tool-calls': 'tool_calls', 'content-filter': 'content_filter' },
}

export const aiSdk: Client = {
  name: 'AI SDK',
  async ask(gateway, { model, isStream, tools, searches, schema }) {
    const offered: object[] = tools.map(name => ({ type: 'function', name, inputSchema: parameters }))
    if (searches) offered.push({ type: 'provider', id: 'openai.web_search', name: 'web_search', args: {} })
    const body = {
      prompt: [{ role: 'user', content: [{ type: 'text', text: words }] }],
      ...(schema ? { responseFormat: { type: 'json', name: 'answer', schema } } : { reasoning: 'high' }),
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
