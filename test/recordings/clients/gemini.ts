/** A client of Google's API, in plain code. */
import { Draft, type Finish, type Raw } from '../support/answer.ts'
import { type Client, parameters, piecesOf, seen, usageOf, words } from '../support/client.ts'

const GEMINI: Record<string, Finish> = { STOP: 'stop', MAX_TOKENS: 'length', MALFORMED_FUNCTION_CALL: 'stop' }

export const gemini: Client = {
  name: 'generateContent',
  async ask(gateway, { model, isStream, tools, searches, schema }) {
    const method = isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'
    const declared = tools.map(name => ({ name, parametersJsonSchema: parameters }))
    const response = await gateway.post(`/v1beta/models/${model}:${method}`, {
      contents: [{ role: 'user', parts: [{ text: words }] }],
      generationConfig: schema
        ? { responseMimeType: 'application/json', responseJsonSchema: schema }
        : { thinkingConfig: { includeThoughts: true, thinkingLevel: 'HIGH' } },
      ...((tools.length > 0 || searches) && {
        tools: [
          ...(tools.length > 0 ? [{ functionDeclarations: declared }] : []),
          ...(searches ? [{ googleSearch: {} }] : []),
        ],
      }),
    })
    const draft = new Draft()
    let metadata: Raw
    for (const piece of await piecesOf(response)) {
      if (piece.error) draft.failed = true
      const candidate = piece.candidates?.[0]
      for (const { text, thought, thoughtSignature: _, functionCall: call, ...more } of candidate?.content?.parts ??
        []) {
        if (text !== '') draft.part(thought ? 'thought' : call ? 'functionCall' : (Object.keys(more)[0] ?? 'text'))
        if (call) draft.call(call.id, call.name, call.args)
        else if (thought) draft.reasoning += text ?? ''
        else draft.text += text ?? ''
      }
      for (const { web } of candidate?.groundingMetadata?.groundingChunks ?? []) draft.urls.add(web.uri)
      for (const { uri } of candidate?.citationMetadata?.citations ?? []) if (uri) draft.urls.add(uri)
      const reason = candidate?.finishReason ?? (piece.promptFeedback?.blockReason && 'SAFETY')
      if (reason) draft.finish = GEMINI[reason] ?? 'content_filter'
      metadata = piece.gateway ?? metadata
      if (!piece.usageMetadata) continue
      const { candidatesTokenCount = 0, thoughtsTokenCount: reasoning = 0, ...rest } = piece.usageMetadata
      const input = rest.promptTokenCount + (rest.toolUsePromptTokenCount ?? 0)
      draft.usage = usageOf(input, candidatesTokenCount + reasoning, {
        ...{ cached: rest.cachedContentTokenCount, reasoning },
      })
    }
    return seen(response, draft, metadata)
  },
}
