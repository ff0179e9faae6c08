/** A client of chat completions, in plain code. */
import { Draft, type Raw } from '../support/answer.ts'
import { type Client, parameters, piecesOf, seen, usageOf, words } from '../support/client.ts'

export const chat: Client = {
  name: 'chat completions',
  async ask(gateway, { model, isStream, tools, searches, schema }) {
    const response = await gateway.post('/v1/chat/completions', {
      model,
      messages: [{ role: 'user', content: words }],
      ...(schema
        ? { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } }
        : { reasoning_effort: 'high' }),
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
