/** A client of the Messages API, in plain code. */
import { Draft, type Finish, type Raw } from '../support/answer.ts'
import { type Client, parameters, piecesOf, seen, usageOf, words } from '../support/client.ts'

const MESSAGES: Record<string, Finish> = {
  ...{ end_turn: 'stop', stop_sequence: 'stop', pause_turn: 'stop', tool_use: 'tool_calls', refusal: 'content_filter' },
  ...{ max_tokens: 'length', model_context_window_exceeded: 'length' },
}

export const messages: Client = {
  name: 'messages',
  async ask(gateway, { model, isStream, tools, searches, schema }) {
    const offered: object[] = tools.map(name => ({ name, input_schema: parameters }))
    if (searches) offered.push({ type: 'web_search_20250305', name: 'web_search' })
    const response = await gateway.post('/v1/messages', {
      model,
      max_tokens: 4000,
      messages: [{ role: 'user', content: words }],
      ...(schema
        ? { output_config: { format: { type: 'json_schema', schema } } }
        : { thinking: { type: 'enabled', budget_tokens: 2000 } }),
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
