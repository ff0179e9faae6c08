/** Reads raw answers of generateContent: parts in their order, and the last report of usage. */
import { type Answer, Draft, type Finish, type Raw, type Usage } from '../support/answer.ts'
import { eventsIn } from '../support/sse.ts'

const FILTERS = /SAFETY|RECITATION|BLOCKLIST|PROHIBITED|SPII|MODEL_ARMOR|JAILBREAK/

export function readGeminiGenerate(body: string, isStream: boolean): Answer {
  const draft = new Draft()
  for (const chunk of isStream ? eventsIn(body).map(({ data }) => JSON.parse(data)) : [JSON.parse(body)])
    if (!draft.failed) read(Array.isArray(chunk) ? chunk[0] : chunk, draft)
  return draft.answer()
}

function read(chunk: Raw, draft: Draft): void {
  if (chunk.error) draft.failed = true
  const candidate = chunk.candidates?.[0]
  for (const part of candidate?.content?.parts ?? []) {
    if (part.functionCall) draft.call(part.functionCall.id ?? '', part.functionCall.name, part.functionCall.args)
    else if (part.thought) draft.reasoning += part.text ?? ''
    else draft.text += part.text ?? ''
  }
  for (const { web } of candidate?.groundingMetadata?.groundingChunks ?? []) if (web) draft.urls.add(web.uri)
  for (const { uri } of candidate?.citationMetadata?.citations ?? []) if (uri) draft.urls.add(uri)
  draft.finish ??= finishOf(candidate?.finishReason, chunk.promptFeedback?.blockReason)
  if (chunk.usageMetadata?.promptTokenCount !== undefined) draft.usage = usageOf(chunk.usageMetadata)
}

function finishOf(reason: string | undefined, blocked: string | undefined): Finish | null {
  if (blocked || (reason && FILTERS.test(reason))) return 'content_filter'
  if (reason === 'MAX_TOKENS') return 'length'
  return reason ? 'stop' : null
}

function usageOf(usage: Raw): Usage {
  const reasoning = usage.thoughtsTokenCount ?? 0
  return {
    input: usage.promptTokenCount + (usage.toolUsePromptTokenCount ?? 0),
    output: (usage.candidatesTokenCount ?? 0) + reasoning,
    cached: usage.cachedContentTokenCount ?? 0,
    written: 0,
    written1h: 0,
    reasoning,
  }
}
