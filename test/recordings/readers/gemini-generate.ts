/** Reads raw answers of generateContent: parts in their order, and the last report of usage. */
import { type Answer, Draft, type Finish, type Raw, type Usage } from '../support/answer.ts'
import { eventsIn } from '../support/sse.ts'

const FILTERS = /SAFETY|RECITATION|BLOCKLIST|PROHIBITED|SPII|MODEL_ARMOR|JAILBREAK/

export function readGeminiGenerate(body: string, isStream: boolean): Answer {
  const draft = new Draft()
  const chunks = isStream ? eventsIn(body).map(({ data }) => JSON.parse(data)) : [JSON.parse(body)].flat()
  for (const chunk of chunks) if (!draft.failed) read(chunk, draft)
  return draft.answer()
}

function read(chunk: Raw, draft: Draft): void {
  if (chunk.error) draft.failed = true
  const candidate = chunk.candidates?.[0]
  for (const part of candidate?.content?.parts ?? []) {
    if (part.text !== '') draft.part(part.thought ? 'thought' : Object.keys(part).find(key => !/^thought/.test(key))!)
    const { name, partialArgs } = part.functionCall ?? {}
    if (part.functionCall && !name) fill(draft.calls.at(-1)!, partialArgs ?? [])
    else if (part.functionCall) draft.call(part.functionCall.id ?? '', part.functionCall.name, part.functionCall.args)
    else if (part.thought) draft.reasoning += part.text ?? ''
    else draft.text += part.text ?? ''
  }
  for (const { web } of candidate?.groundingMetadata?.groundingChunks ?? []) if (web) draft.urls.add(web.uri)
  for (const { uri } of candidate?.citationMetadata?.citations ?? []) if (uri) draft.urls.add(uri)
  // A call that cannot be read is a failure, unless some of the answer can be.
  if (candidate?.finishReason === 'MALFORMED_FUNCTION_CALL' && !draft.text) draft.failed = true
  draft.finish ??= finishOf(candidate?.finishReason, chunk.promptFeedback?.blockReason)
  if (chunk.usageMetadata?.promptTokenCount !== undefined) draft.usage = usageOf(chunk.usageMetadata)
}

/** Adds values at their paths, such as `$.a.b[0]`, to the arguments of a call. */
function fill(call: Raw, values: Raw[]): void {
  for (const { jsonPath, willContinue: _, ...value } of values) {
    const names: string[] = jsonPath.match(/[^$.[\]]+/g)
    const last = names.pop()!
    let at = call.args
    for (const [i, name] of names.entries()) at = at[name] ??= /^\d+$/.test(names[i + 1] ?? last) ? [] : {}
    const [[, given]]: Raw = Object.entries(value)
    at[last] = typeof at[last] === 'string' ? at[last] + given : given
  }
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
