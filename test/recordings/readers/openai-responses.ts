/** Reads raw answers of the Responses API: an item is its place in the output, and its last form is the item. */
import { type Answer, Draft, type Raw, type Usage } from '../support/answer.ts'
import { eventsIn } from '../support/sse.ts'

export function readOpenAiResponses(body: string, isStream: boolean): Answer {
  const draft = new Draft()
  if (!isStream) {
    const response: Raw = JSON.parse(body)
    if (response.error) draft.failed = true
    else end(response, response.output ?? [], draft)
    return draft.answer()
  }
  const items: Raw[] = []
  const partial: { text: string; reasoning: string }[] = []
  for (const { data } of eventsIn(body)) {
    if (data === '[DONE]') break
    const event: Raw = JSON.parse(data)
    const { output_index: at = 0 } = event
    partial[at] ??= { text: '', reasoning: '' }
    if (event.type === 'response.output_item.done') items[at] = event.item
    else if (event.type === 'response.output_text.delta') partial[at].text += event.delta
    else if (event.type === 'response.refusal.delta') partial[at].text += event.delta
    else if (/^response\.reasoning_(summary_)?text\.delta$/.test(event.type)) partial[at].reasoning += event.delta
    else if (event.type === 'error' || event.type === 'response.failed') draft.failed = true
    else if (event.type === 'response.completed' || event.type === 'response.incomplete')
      end(event.response, event.response.output?.length ? event.response.output : items.filter(Boolean), draft)
  }
  if (draft.failed || draft.finish === null) {
    draft.text = partial.map(({ text }) => text).join('')
    draft.reasoning = partial.map(({ reasoning }) => reasoning).join('')
  }
  return draft.answer()
}

function end({ status, incomplete_details: cut, usage }: Raw, items: Raw[], draft: Draft): void {
  for (const item of items) read(item, draft)
  if (status === 'completed') draft.finish = 'stop'
  else if (status === 'incomplete') draft.finish = cut?.reason === 'content_filter' ? 'content_filter' : 'length'
  if (usage) draft.usage = usageOf(usage)
}

function read(item: Raw, draft: Draft): void {
  draft.part(item.type)
  if (item.type === 'function_call' && item.name === 'parallel')
    for (const { recipient_name: name, parameters } of JSON.parse(item.arguments).tool_uses)
      draft.call(item.call_id, name.replace('functions.', ''), parameters)
  else if (item.type === 'function_call') draft.call(item.call_id, item.name, item.arguments)
  if (item.type === 'reasoning') {
    const parts: Raw[] = item.summary?.length ? item.summary : (item.content ?? [])
    draft.reasoning += parts.map(({ text }) => text).join('\n\n')
  }
  if (item.type !== 'message') return
  for (const part of item.content) {
    draft.text += part.text ?? part.refusal ?? ''
    for (const note of part.annotations ?? []) if (note.type === 'url_citation') draft.urls.add(note.url)
  }
}

const usageOf = (usage: Raw): Usage => ({
  input: usage.input_tokens,
  output: usage.output_tokens,
  cached: usage.input_tokens_details?.cached_tokens ?? 0,
  // Tokens that were read are not written too.
  written: Math.min(
    usage.input_tokens_details?.cache_write_tokens ?? 0,
    usage.input_tokens - (usage.input_tokens_details?.cached_tokens ?? 0),
  ),
  written1h: 0,
  reasoning: usage.output_tokens_details?.reasoning_tokens ?? 0,
})
