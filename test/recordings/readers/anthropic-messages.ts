/** Reads raw answers of the Messages API: blocks by their number; of each count the last one that is no null. */
import { type Answer, Draft, type Finish, type Raw, type Usage } from '../support/answer.ts'
import { eventsIn } from '../support/sse.ts'

const FINISHES: Record<string, Finish> = {
  ...{ end_turn: 'stop', stop_sequence: 'stop', pause_turn: 'stop', tool_use: 'tool_calls', refusal: 'content_filter' },
  ...{ max_tokens: 'length', model_context_window_exceeded: 'length' },
}

export function readAnthropicMessages(body: string, isStream: boolean): Answer {
  const draft = new Draft()
  if (!isStream) {
    const message: Raw = JSON.parse(body)
    if (message.type !== 'message') draft.failed = true
    else end(message.content, message, message.usage, draft)
    return draft.answer()
  }
  const blocks: Raw[] = []
  const usage: Raw = {}
  let ending: Raw = {}
  for (const { data } of eventsIn(body)) {
    if (data === '[DONE]') break
    const event: Raw = JSON.parse(data)
    if (event.type === 'message_start') count(event.message.usage ?? {}, usage)
    else if (event.type === 'content_block_start') blocks[event.index] = { ...event.content_block, json: '' }
    else if (event.type === 'content_block_delta') grow(blocks[event.index], event.delta)
    else if (event.type === 'message_delta') {
      count(event.usage ?? {}, usage)
      if (event.delta.stop_reason) ending = event.delta
    } else if (event.type === 'error') draft.failed = true
  }
  end(blocks.filter(Boolean), ending, usage, draft)
  return draft.answer()
}

function count(reported: Raw, usage: Raw): void {
  for (const [name, value] of Object.entries(reported)) if (value !== null) usage[name] = value
}

function grow(block: Raw, delta: Raw): void {
  if (delta.type === 'text_delta') block.text += delta.text
  else if (delta.type === 'thinking_delta') block.thinking += delta.thinking
  else if (delta.type === 'input_json_delta') block.json += delta.partial_json
  else if (delta.type === 'citations_delta') block.citations = [...(block.citations ?? []), delta.citation]
}

function end(blocks: Raw[], { stop_reason: reason, stop_details: details }: Raw, usage: Raw, draft: Draft): void {
  for (const block of blocks) {
    draft.part(block.type)
    if (block.type === 'text') draft.text += block.text
    else if (block.type === 'thinking') draft.reasoning += block.thinking
    else if (block.type === 'tool_use') draft.call(block.id, block.name, block.json || (block.input ?? {}))
    for (const { url } of block.citations ?? []) if (url) draft.urls.add(url)
    if (Array.isArray(block.content)) for (const { url } of block.content) if (url) draft.found.add(url)
  }
  draft.refusal = details?.explanation ?? ''
  draft.finish = FINISHES[reason] ?? null
  if (usage) draft.usage = usageOf(usage)
  // A refusal before any output is free.
  if (reason === 'refusal' && blocks.length === 0) draft.billed = usageOf({ input_tokens: 0, output_tokens: 0 })
}

/** The parts of a turn that was compacted are all paid, where it reports them. */
function usageOf({ iterations, ...usage }: Raw): Usage {
  if (iterations) {
    const sum = (name: string) => iterations.reduce((sum: number, part: Raw) => sum + (part[name] ?? 0), 0)
    for (const name of Object.keys(iterations[0])) if (name !== 'type') usage[name] = sum(name)
  }
  const cached = usage.cache_read_input_tokens ?? 0
  const written = usage.cache_creation_input_tokens ?? 0
  return {
    input: usage.input_tokens + cached + written,
    output: usage.output_tokens,
    cached,
    written,
    written1h: usage.cache_creation?.ephemeral_1h_input_tokens ?? 0,
    reasoning: usage.output_tokens_details?.thinking_tokens ?? 0,
  }
}
