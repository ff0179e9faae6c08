/** Reads raw answers of Mistral: content is text or a list of parts, and a call may lack its number. */
import { type Answer, Draft, type Finish, type Raw, type Usage } from '../support/answer.ts'
import { eventsIn } from '../support/sse.ts'

const FINISHES: Record<string, Finish> = {
  ...{ stop: 'stop', length: 'length', model_length: 'length', tool_calls: 'tool_calls' },
}

export function readMistralChat(body: string, isStream: boolean): Answer {
  const draft = new Draft()
  const chunks: Raw[] = isStream
    ? eventsIn(body).flatMap(({ data }) => (data === '[DONE]' ? [] : [JSON.parse(data)]))
    : [JSON.parse(body)]
  for (const chunk of chunks) {
    const choice = chunk.choices?.[0]
    if (!choice || choice.finish_reason === 'error') draft.failed = true
    else read(choice.delta ?? choice.message, draft)
    draft.finish ??= FINISHES[choice?.finish_reason] ?? null
    if (chunk.usage) draft.usage = usageOf(chunk.usage)
  }
  return draft.answer()
}

function read({ content, tool_calls: calls }: Raw, draft: Draft): void {
  if (typeof content === 'string') draft.text += content
  else
    for (const part of content ?? []) {
      if (part.type === 'text') draft.text += part.text
      else if (part.type === 'thinking') for (const { text } of part.thinking) draft.reasoning += text
      else if (part.type === 'tool_reference') draft.urls.add(part.url)
    }
  for (const { id, function: made } of calls ?? []) {
    const known = draft.calls.find(call => id === 'null' || call.id === id)
    if (known) known.json += made.arguments
    else draft.call(id, made.name, made.arguments)
  }
}

const usageOf = (usage: Raw): Usage => ({
  input: usage.prompt_tokens,
  output: usage.completion_tokens,
  cached: usage.num_cached_tokens ?? (usage.prompt_tokens_details ?? usage.prompt_token_details)?.cached_tokens ?? 0,
  written: 0,
  written1h: 0,
  reasoning: 0,
})
