/** Reads raw answers of chat completions and its dialects. */
import { type Answer, Draft, type Finish, type Raw, type Usage } from '../support/answer.ts'
import { eventsIn } from '../support/sse.ts'

const FINISHES: Record<string, Finish | 'failed'> = {
  ...{ stop: 'stop', eos: 'stop', end_turn: 'stop', length: 'length', model_context_window_exceeded: 'length' },
  ...{ tool_calls: 'tool_calls', function_call: 'tool_calls', content_filter: 'content_filter' },
  ...{ sensitive: 'content_filter', error: 'failed', network_error: 'failed' },
  insufficient_system_resource: 'failed',
}

export function readOpenAiChat(body: string, isStream: boolean): Answer {
  const draft = new Draft()
  if (!isStream) {
    const answer: Raw = JSON.parse(body)
    read(answer, answer.choices?.[0]?.message, draft)
    if (!answer.choices?.length) draft.failed = true
  } else {
    let isDone = false
    for (const { data } of eventsIn(body)) {
      if (data === '[DONE]') isDone = true
      if (isDone) break
      const chunk: Raw = JSON.parse(data)
      if (!draft.failed) read(chunk, chunk.choices?.[0]?.delta, draft)
    }
    if (isDone && !draft.finish) draft.finish = 'stop'
  }
  const [whole, thought] = /^\s*<think>(.*?)<\/think>\s*/s.exec(draft.text) ?? []
  if (whole !== undefined) {
    draft.reasoning += thought
    draft.text = draft.text.slice(whole.length)
  }
  return draft.answer()
}

/** A chunk, or a whole answer, whose message is `said`. */
function read(chunk: Raw, said: Raw, draft: Draft): void {
  const choice = chunk.choices?.[0]
  if (chunk.error || choice?.error || chunk.base_resp?.status_code) draft.failed = true
  think(said ?? {}, draft)
  for (const part of typeof said?.content === 'string' ? [{ text: said.content }] : (said?.content ?? []))
    draft.text += part.text ?? ''
  draft.text += said?.refusal ?? ''
  for (const call of said?.tool_calls ?? (said?.function_call ? [{ function: said.function_call }] : []))
    grow(call, draft)
  for (const { url_citation: cited } of said?.annotations ?? []) if (cited) draft.urls.add(cited.url)
  for (const url of chunk.citations ?? []) draft.urls.add(url)
  for (const { url } of chunk.search_results ?? []) draft.urls.add(url)
  const finish = FINISHES[choice?.finish_reason ?? '']
  if (finish === 'failed') draft.failed = true
  else draft.finish ??= finish ?? null
  const usage = chunk.usage ?? chunk.x_groq?.usage ?? choice?.usage
  if (usage?.prompt_tokens) draft.usage = usageOf(usage)
}

/** Members beside each other say the same; details that begin with all that was said repeat it. */
function think(
  { reasoning_content: content, reasoning = content, reasoning_details: details }: Raw,
  draft: Draft,
): void {
  const detailed = (details ?? []).map(({ text, summary }: Raw) => text ?? summary ?? '').join('')
  if (detailed !== '' && detailed.startsWith(draft.reasoning)) draft.reasoning = detailed
  else draft.reasoning += reasoning ?? detailed
}

/** A call goes on where its number repeats without another id. */
function grow({ index, id, function: made }: Raw, draft: Draft): void {
  const known: Raw = draft.calls.find((call: Raw) => (id ? call.id === id : call.index === index))
  if (known) known.json += typeof made.arguments === 'string' ? made.arguments : ''
  else {
    draft.call(id ?? '', made.name, made.arguments ?? '')
    Object.assign(draft.calls.at(-1)!, { index })
  }
}

function usageOf(usage: Raw): Usage {
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = usage
  const reasoning = usage.completion_tokens_details?.reasoning_tokens ?? usage.reasoning_tokens ?? 0
  const details = usage.prompt_tokens_details
  const cached = details?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens ?? 0
  const written = details?.cache_write_tokens ?? details?.cache_creation_input_tokens ?? 0
  const isBeside = reasoning > 0 && total === prompt + completion + reasoning
  return {
    input: cached > prompt ? prompt + cached : prompt,
    output: isBeside ? completion + reasoning : completion,
    cached,
    // Tokens that were read are not written too.
    written: Math.min(written, Math.max(prompt, cached) - cached),
    written1h: 0,
    reasoning,
  }
}
