/** A client of the Responses API, in plain code. */
import { Draft, type Raw } from '../support/answer.ts'
import { type Client, parameters, piecesOf, seen, usageOf, words } from '../support/client.ts'

export const responses: Client = {
  name: 'responses',
  async ask(gateway, { model, isStream, tools, searches, schema }) {
    const offered: object[] = tools.map(name => ({ type: 'function', name, parameters, strict: false }))
    if (searches) offered.push({ type: 'web_search' })
    const response = await gateway.post('/v1/responses', {
      model,
      input: words,
      ...(schema
        ? { text: { format: { type: 'json_schema', name: 'answer', schema } } }
        : { reasoning: { effort: 'high', summary: 'auto' } }),
      ...(isStream && { stream: true }),
      ...(offered.length > 0 && { tools: offered }),
    })
    const draft = new Draft()
    const pieces = await piecesOf(response)
    const last = isStream && response.status === 200 ? (pieces.at(-1).response ?? {}) : pieces[0]
    for (const item of last.output ?? []) {
      draft.part(item.type)
      if (item.type === 'function_call') draft.call(item.call_id, item.name, item.arguments)
      if (item.type === 'reasoning') {
        const parts: Raw[] = item.summary.length > 0 ? item.summary : (item.content ?? [])
        draft.reasoning += parts.map(({ text }) => text).join('\n\n')
      }
      if (item.type === 'message')
        for (const part of item.content) {
          draft.text += part.text ?? part.refusal
          for (const { url } of part.annotations ?? []) draft.urls.add(url)
        }
    }
    const deltas = pieces.filter(({ type }) => /^response\.(output_text|refusal)\.delta$/.test(type))
    const told = deltas.map(({ delta }) => delta).join('')
    if (isStream && told !== draft.text) throw new Error(`its deltas say "${told}", its items "${draft.text}"`)
    if (last.error || last.status === 'failed') draft.failed = true
    else if (last.status === 'completed') draft.finish = 'stop'
    else if (last.status === 'incomplete')
      draft.finish = last.incomplete_details.reason === 'content_filter' ? 'content_filter' : 'length'
    if (last.usage)
      draft.usage = usageOf(last.usage.input_tokens, last.usage.output_tokens, {
        cached: last.usage.input_tokens_details.cached_tokens,
        written: last.usage.input_tokens_details.cache_write_tokens,
        reasoning: last.usage.output_tokens_details.reasoning_tokens,
      })
    return seen(response, draft, last.gateway)
  },
}
