/** Reads raw answers of Cohere: the plan before its calls is text, and `tokens` counts what was read and written. */
import { type Answer, Draft, type Finish, type Raw, type Usage } from '../support/answer.ts'
import { eventsIn } from '../support/sse.ts'

const FINISHES: Record<string, Finish> = {
  ...{ COMPLETE: 'stop', STOP_SEQUENCE: 'stop', MAX_TOKENS: 'length', TOOL_CALL: 'tool_calls' },
}

export function readCohereChat(body: string, isStream: boolean): Answer {
  const draft = new Draft()
  if (!isStream) {
    const answer: Raw = JSON.parse(body)
    const { message } = answer
    if (typeof message !== 'object') return draft.answer()
    draft.text += message.tool_plan ?? ''
    for (const block of message.content ?? []) say(block, draft)
    for (const { id, function: made } of message.tool_calls ?? []) draft.call(id, made.name, argsOf(made.arguments))
    cite(message.citations, draft)
    end(answer, draft)
    return draft.answer()
  }
  for (const { data } of eventsIn(body)) {
    if (data === '[DONE]') break
    const { type, delta, ...rest }: Raw = JSON.parse(data)
    const { content, tool_plan: plan, tool_calls: call, citations } = delta?.message ?? {}
    if (type === 'tool-plan-delta') draft.text += plan
    else if (type === 'content-start' || type === 'content-delta') say(content ?? {}, draft)
    else if (type === 'tool-call-start') draft.call(call.id, call.function.name, argsOf(call.function.arguments))
    else if (type === 'tool-call-delta') draft.calls.at(-1)!.json += argsOf(call.function.arguments)
    else if (type === 'citation-start') cite([citations], draft)
    else if (type === 'message-end') end(delta, draft)
    else if (!type && rest.message) draft.failed = true
  }
  return draft.answer()
}

const argsOf = (text: string): string => (text === 'null' ? '' : text)

function say({ text, thinking }: Raw, draft: Draft): void {
  draft.text += text ?? ''
  draft.reasoning += thinking ?? ''
}

function cite(citations: Raw[] | undefined, draft: Draft): void {
  for (const { sources } of citations ?? [])
    for (const { document, tool_output: output } of sources) {
      const url = (document ?? output)?.url
      if (url) draft.urls.add(url)
    }
}

function end({ finish_reason: reason, usage }: Raw, draft: Draft): void {
  draft.finish = FINISHES[reason] ?? null
  const { tokens, billed_units: billed, cached_tokens: cached = 0 } = usage ?? {}
  if (tokens ?? billed) draft.usage = usageOf(tokens ?? billed, cached)
  // The cache begins with the provider's own instructions, which nobody pays.
  if (tokens && billed)
    draft.billed = usageOf(billed, Math.max(0, cached - (tokens.input_tokens - billed.input_tokens)))
}

const usageOf = (counts: Raw, cached: number): Usage => ({
  input: counts.input_tokens,
  output: counts.output_tokens,
  cached,
  written: 0,
  written1h: 0,
  reasoning: 0,
})
