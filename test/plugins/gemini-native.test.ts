/**
 * A client's own generateContent body on `gemini.generate` and `gemini.vertex`: rows hold a body and the fields in which
 * the sent one differs from it, null for those that are left out.
 */
import t from 'tap'
import { plugin } from '../../plugins/gemini.ts'
import { carry } from '../../src/codecs/carried-reasoning.ts'
import { generateContent } from '../../src/codecs/gemini-generate.ts'
import type { Target } from '../../src/core/translator.ts'
import { gemini } from '../../src/endpoints/gemini.ts'
import type { Json } from '../../src/json/json.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { exchange, thrown } from '../core/kit.ts'
import { decodeAll, deepFreeze, target } from './wire-kit.ts'

const [studio, vertex] = plugin.wires
const supports = new Set(['reasoning', 'tools', 'web_search'] as const)
const to = (mapping: object = {}, more: object = {}): Target =>
  target({ mapping: { externalId: 'gemini-3-pro', supports, reasoningEfforts: ['low', 'high'], ...mapping }, ...more })
const own: Target = { ...to(), credential: { secret: 's', fingerprint: 'f', source: 'byok', id: 'k' } }
const endpoint = gemini.find(({ codec }) => codec === generateContent)!

/** What a provider of the wire gets of a body. */
function sent(body: Json, at = to(), wire: typeof studio = studio): Json {
  const ex = exchange({ endpoint })
  const request = generateContent.decode(deepFreeze(body), ex)
  return wire.native!.encode(ex.input.native!.body, request, at, false).body
}
const hi = { role: 'user', parts: [{ text: 'Hi' }] }
const OFF = { safetySettings: sent({ contents: [hi] }).safetySettings }
const f = { functionDeclarations: [{ name: 'f', parameters: { type: 'OBJECT', nullable: true } }] }

t.test('of a body only what must change is changed', t => {
  const rows: [body: Json, differs: Json, at?: Target][] = [
    [{ contents: [hi] }, OFF],
    [{ safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }] }, {}],
    [
      { system_instruction: 'Be brief' },
      { system_instruction: null, systemInstruction: { parts: [{ text: 'Be brief' }] }, ...OFF },
    ],
    [{ systemInstruction: { role: 'user', parts: [{ text: 'a' }, { text: 'b' }] } }, OFF],
    [{ tools: [f], toolConfig: { functionCallingConfig: { mode: 'AUTO' } } }, OFF],
    [{ tools: [{ codeExecution: {} }, { urlContext: {} }] }, OFF],
    [
      { tools: [f, { googleSearch: {} }] },
      {
        ...OFF,
        toolConfig: { functionCallingConfig: { mode: 'VALIDATED' }, includeServerSideToolInvocations: true },
      },
    ],
    [{ generationConfig: { mediaResolution: 'MEDIA_RESOLUTION_LOW', responseLogprobs: true, logprobs: 3 } }, OFF],
    [{ generationConfig: { responseMimeType: 'application/json', responseSchema: { type: 'STRING' } } }, OFF],
    [{ generationConfig: { thinkingConfig: { thinkingBudget: -1, includeThoughts: true } } }, OFF],
    [{ generationConfig: { thinkingConfig: { includeThoughts: false } } }, OFF],
    [
      { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
      { ...OFF, generationConfig: { thinkingConfig: { thinkingLevel: 'LOW' } } },
    ],
    [
      { generationConfig: { topP: 1, thinkingConfig: { thinkingLevel: 'LOW' } } },
      { ...OFF, generationConfig: { topP: 1 } },
      to({ supports: new Set() }),
    ],
    [{ labels: { team: 'a' } }, OFF],
    [{ metadata: { team: 'a' } }, { metadata: null, ...OFF }],
    [{ generationConfig: { candidateCount: 1, topK: 3 } }, OFF],
    [{ generationConfig: { candidateCount: 2 } }, OFF],
    [
      { cachedContent: null, store: null },
      { cachedContent: null, store: null, ...OFF },
    ],
  ]
  for (const [body, differs, at] of rows) {
    const given: Json = { contents: [hi], ...body }
    const expected: Json = { ...given, ...differs }
    for (const [name, value] of Object.entries(differs)) if (value === null) delete expected[name]
    t.strictSame(sent(given, at), expected, JSON.stringify(body))
  }
  t.end()
})

t.test('parts go as they came, in turns that alternate, with results behind their calls', t => {
  const video = { fileData: { fileUri: 'https://youtu.be/x' }, videoMetadata: { fps: 1, endOffset: '9s' } }
  const call = (name: string, id?: string) => ({ functionCall: { name, args: { n: 1 }, ...(id && { id }) } })
  const result = (name: string, id?: string) => ({
    functionResponse: { name, response: { output: 1 }, ...(id && { id }) },
  })
  const contents = [
    { parts: [video, { text: 'a' }] },
    { role: 'user', parts: [{ text: '' }] },
    { role: 'model', parts: [{ text: 'b' }] },
    { role: 'model', parts: [call('f'), call('g'), call('f', 'own')] },
    { role: 'function', parts: [result('f', 'own'), { text: 'and' }] },
    { role: 'user', parts: [result('g'), result('f')] },
  ]
  const turns = [
    { role: 'user', parts: [video, { text: 'a' }] },
    {
      role: 'model',
      parts: [
        { text: 'b' },
        { ...call('f', 'call_3_0'), thoughtSignature: 'skip_thought_signature_validator' },
        call('g', 'call_3_1'),
        call('f', 'own'),
      ],
    },
    { role: 'user', parts: [result('f', 'call_3_0'), result('g', 'call_3_1'), result('f', 'own'), { text: 'and' }] },
  ]
  t.strictSame(sent({ contents }).contents, turns)
  const bare = JSON.parse(JSON.stringify(turns), (name, value) => (name === 'id' ? undefined : value))
  t.strictSame(sent({ contents }, to(), vertex).contents, bare, 'Vertex AI has no ids')
  t.end()
})

t.test('what a provider needs back reaches that provider and no other', t => {
  const format = 'google-gemini-v1'
  const code = { type: 'executableCode', executableCode: { language: 'PYTHON', code: '1' } }
  const carried = carry({
    details: [
      { type: 'reasoning.text', text: 'Hm', signature: 'acme:thought', format },
      { type: 'reasoning.text', signature: 'acme:text', format },
      { type: 'reasoning.encrypted', data: 'acme:image', format },
      { type: 'reasoning.text', text: 'No', signature: 'acme:claude', format: 'anthropic-claude-v1' },
    ],
    native: [{ ...code, provider: 'acme', thoughtSignature: 'acme:code' }],
    signature: 'acme:call',
  })
  const image = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }
  const model = {
    role: 'model',
    parts: [
      { text: 'shown', thought: true },
      { executableCode: code.executableCode },
      { text: 'Said' },
      image,
      { functionCall: { id: 'c', name: 'f', args: {} }, thoughtSignature: carried },
    ],
  }
  const contents = [hi, model, { role: 'user', parts: [{ functionResponse: { id: 'c', name: 'f', response: {} } }] }]
  const partsAt = (at: Target) => (sent({ contents }, at).contents as { parts: Json[] }[])[1]!.parts
  t.strictSame(partsAt(to()), [
    { executableCode: code.executableCode, thoughtSignature: 'code' },
    { text: 'Said', thoughtSignature: 'text' },
    { ...image, thoughtSignature: 'image' },
    { text: 'Hm', thought: true, thoughtSignature: 'thought' },
    { functionCall: { id: 'c', name: 'f', args: {} }, thoughtSignature: 'call' },
  ])
  t.strictSame(partsAt(to({}, { provider: { id: 'other' } })), [
    { text: 'Said' },
    image,
    { functionCall: { id: 'c', name: 'f', args: {} }, thoughtSignature: 'skip_thought_signature_validator' },
  ])
  const end = {
    text: '',
    thoughtSignature: carry({ details: [{ type: 'reasoning.text', signature: 'acme:text', format }] }),
  }
  const pieces = [hi, { role: 'model', parts: [{ text: 'a' }, { text: 'b' }] }, { role: 'model', parts: [end] }, hi]
  t.strictSame((sent({ contents: pieces }).contents as Json[])[1], {
    role: 'model',
    parts: [{ text: 'ab', thoughtSignature: 'text' }],
  })
  const forged = [hi, { role: 'model', parts: [{ text: 'x', thoughtSignature: 'raw' }] }, hi]
  t.strictSame((sent({ contents: forged }).contents as Json[])[1], { role: 'model', parts: [{ text: 'x' }] })
  const empty = [hi, { role: 'model', parts: [{ text: '', thoughtSignature: carry({ signature: 'acme:x' }) }] }, hi]
  t.strictSame(sent({ contents: empty }).contents, [{ role: 'user', parts: [...hi.parts, ...hi.parts] }])
  t.end()
})

t.test('what the wire of the turn cannot say as it came changes, and nothing beside it', t => {
  const more = { tools: [{ codeExecution: {} }], generationConfig: { mediaResolution: 'MEDIA_RESOLUTION_LOW' } }
  const gemma = to({ externalId: 'gemma-3' })
  for (const systemInstruction of ['Be brief', { parts: [{ text: 'Be brief' }] }]) {
    t.strictSame(sent({ contents: [hi], systemInstruction, ...more }, gemma), {
      contents: [{ role: 'user', parts: [{ text: 'Be brief\n\n' }, ...hi.parts] }],
      ...more,
      ...OFF,
    })
  }
  const spelt = (name: string) => ({
    contents: [
      hi,
      { role: 'model', parts: [{ functionCall: { id: 'c', name, args: { name: 'a b' } } }] },
      { role: 'user', parts: [{ functionResponse: { id: 'c', name, response: { name: 'a b' } } }] },
    ],
    tools: [{ functionDeclarations: [{ name, description: 'a b', behavior: 'BLOCKING' }, { name: 'f' }] }],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [name, 'f'] } },
    ...OFF,
  })
  const plain = to({ supports: new Set() })
  t.strictSame(sent(spelt('a b'), plain), spelt('a_u0020_b'))
  const picture = { fileData: { fileUri: 'https://x.example/a.png', mimeType: 'image/png' } }
  t.strictSame(sent({ contents: [{ parts: [picture] }, { role: 'system', parts: [{ text: 'x' }] }] }).contents, [
    { role: 'user', parts: [picture, { text: '<system-reminder>x</system-reminder>' }] },
  ])
  t.end()
})

t.test("a provider's tools stand beside functions as they came, or are refused by name", t => {
  const functions = { functionDeclarations: [{ name: 'f', parameters: { type: 'OBJECT' } }] }
  const hosted: Json[] = [
    { codeExecution: {} },
    { urlContext: {} },
    { googleSearch: { timeRangeFilter: { startTime: 'a', endTime: 'b' }, excludeDomains: ['a.example'] } },
    { googleSearchRetrieval: { dynamicRetrievalConfig: { mode: 'MODE_DYNAMIC', dynamicThreshold: 0.3 } } },
    { codeExecution: {}, urlContext: {}, googleSearch: {} },
  ]
  const config = { retrievalConfig: { languageCode: 'en' } }
  for (const tool of hosted) {
    for (const tools of [[functions, tool], [tool, functions], [{ ...functions, ...tool }]]) {
      for (const [wire, announced] of [
        [studio, { includeServerSideToolInvocations: true }],
        [vertex, {}],
      ] as const) {
        for (const mode of [undefined, 'AUTO', 'auto', 'MODE_UNSPECIFIED', 'ANY', 'none', 'VALIDATED']) {
          const calling = mode && { functionCallingConfig: { mode } }
          const made = sent({ contents: [hi], tools, toolConfig: { ...config, ...calling } }, to(), wire)
          t.strictSame(made.tools, tools, JSON.stringify(tools))
          const own = mode === 'ANY' || mode === 'none' ? mode.toUpperCase() : 'VALIDATED'
          t.strictSame(made.toolConfig, { ...config, functionCallingConfig: { mode: own }, ...announced }, `${mode}`)
        }
        const alone = sent({ contents: [hi], tools: [tool], toolConfig: config }, to(), wire)
        t.match(alone, { tools: [tool], toolConfig: config }, 'alone')
        const old = to({ externalId: 'gemini-2.5-flash', reasoningEfforts: [] })
        t.strictSame(sent({ contents: [hi], tools: [tool] }, old, wire).tools, [tool], 'alone, on an older model')
        const name = Object.keys(tool)[0]!
        const at = tools[0] === tool || tools.length === 1 ? 0 : 1
        t.match(
          thrown(() => sent({ contents: [hi], tools }, old, wire)),
          { status: 400, param: `tools[${at}].${name}`, message: /either functions or tools of its provider/ },
          `${name} beside functions on an older model`,
        )
      }
    }
  }
  t.end()
})

t.test('parts of tools keep their places among the words of the model', t => {
  const code = (n: number) => ({ executableCode: { language: 'PYTHON', code: `print(${n})` } })
  const result = (n: number) => ({ codeExecutionResult: { outcome: 'OUTCOME_OK', output: `${n}` } })
  const search = { toolCall: { toolType: 'GOOGLE_SEARCH_WEB', args: { queries: ['q'] }, id: 't' } }
  const found = { toolResponse: { toolType: 'GOOGLE_SEARCH_WEB', response: {}, id: 't' } }
  const answers: Json[][] = [
    [{ text: 'A' }, code(1), result(1), { text: 'B' }],
    [code(1), result(1), { text: 'A' }, code(2), result(2), { text: 'B' }],
    [code(1), result(1), code(1), result(1), { text: 'B' }],
    [
      { text: 'A' },
      search,
      found,
      { text: 'B' },
      { functionCall: { id: 'c', name: 'f', args: {} }, thoughtSignature: 's' },
    ],
    [{ text: 'Hm', thought: true, thoughtSignature: 't' }, search, found, { text: 'B' }, code(1), result(1)],
    [{ text: 'A', thoughtSignature: 'a' }, { ...code(1), thoughtSignature: 'c' }, result(1), { text: 'B' }],
  ]
  for (const parts of answers) {
    for (const mode of ['unary', 'stream'] as const) {
      const frames = mode === 'unary' ? [parts] : parts.map(part => [part])
      const chunks = frames.map((parts, at) =>
        JSON.stringify({
          candidates: [
            { content: { role: 'model', parts }, ...(at === frames.length - 1 && { finishReason: 'STOP' }) },
          ],
        }),
      )
      const events = decodeAll(studio.native!.decoder!(mode, to()), chunks)
      const ex = exchange({ endpoint })
      generateContent.decode({ contents: [hi] }, ex)
      ex.target = to()
      ex.answer.showsReasoning = true
      const encoder = generateContent.encoder(ex)
      encoder.write(events)
      const { candidates } = JSON.parse(String(encoder.end()))
      const contents = [hi, candidates[0].content, hi]
      const says = `${mode}: ${JSON.stringify(parts)}`
      const back = (contents: Json[], at = to()) => (sent({ contents }, at).contents as { parts: Json[] }[])[1]!.parts
      t.strictSame(back(contents), parts, says)
      const elsewhere = back(contents, to({}, { provider: { id: 'other' } }))
      t.notMatch(JSON.stringify(elsewhere), /executableCode|codeExecutionResult|toolCall|toolResponse/, says)
    }
  }
  const written = [{ text: 'A' }, code(1), result(1), search, found, { text: 'B' }]
  const [, turn] = sent({ contents: [hi, { role: 'model', parts: written }, hi] }).contents as { parts: Json[] }[]
  const plain = [{ text: 'A' }, code(1), result(1), { text: 'B' }]
  t.strictSame(turn!.parts, plain, 'code that the client writes; what is of a provider alone needs its seal')
  t.end()
})

t.test('a text without words is filled, and left out beside others', t => {
  const empty = { text: '' }
  const rows: [contents: Json[], becomes: Json[]][] = [
    [[{ parts: [empty] }], [{ role: 'user', parts: [{ text: '.' }] }]],
    [[{ role: 'user', parts: [empty, empty] }], [{ role: 'user', parts: [{ text: '.' }] }]],
    [[{ parts: [empty, ...hi.parts] }], [hi]],
    [
      [hi, { role: 'model', parts: [{ text: 'a' }] }, { role: 'user', parts: [empty] }],
      [hi, { role: 'model', parts: [{ text: 'a' }] }, { role: 'user', parts: [{ text: '.' }] }],
    ],
  ]
  for (const [contents, becomes] of rows) {
    for (const wire of [studio, vertex]) t.strictSame(sent({ contents }, to(), wire).contents, becomes)
    const request = generateContent.decode(contents && { contents }, exchange({ endpoint }))
    t.match(studio.encode(request, to(), false).body, { contents: becomes }, 'in its chat form')
  }
  t.end()
})

t.test('enums are read in any case', t => {
  const body = (change: (word: string) => string) => ({
    contents: [{ ...hi, role: change('user') }],
    tools: [{ functionDeclarations: [{ name: 'f', behavior: change('BLOCKING') }] }],
    toolConfig: { functionCallingConfig: { mode: change('ANY'), allowedFunctionNames: ['f'] } },
    safetySettings: [{ category: change('HARM_CATEGORY_HARASSMENT'), threshold: change('BLOCK_NONE') }],
    generationConfig: {
      mediaResolution: change('MEDIA_RESOLUTION_LOW'),
      responseModalities: [change('TEXT')],
      thinkingConfig: { thinkingLevel: change('HIGH'), includeThoughts: true },
    },
  })
  const lower = body(word => word.toLowerCase())
  const expected = { ...body(word => word), contents: [hi] }
  t.strictSame(sent(lower), expected)
  t.strictSame(sent(body(word => `${word[0]}${word.slice(1).toLowerCase()}`)), expected)
  const decoded = (given: Json) => generateContent.decode(deepFreeze(given), exchange({ endpoint }))
  t.strictSame(decoded(lower), decoded(expected), 'also for other wires')
  t.match(decoded(lower), { tool_choice: { type: 'function', function: { name: 'f' } }, reasoning_effort: 'high' })
  t.end()
})

/** A film, with something said of it. */
const filmed = (more: Json): Json => ({
  contents: [{ role: 'user', parts: [{ text: 'Hi' }, { fileData: { fileUri: 'https://youtu.be/x' }, ...more }] }],
})

const film = { mimeType: 'video/mp4', fileUri: 'gs://bucket/film.mp4' }
/** A system instruction of a text, and of another part. */
const instructed = (part: Json): Json => ({ systemInstruction: { parts: [{ text: 'Be brief' }, part] } })

t.test('the operator pays for tokens and searches alone', t => {
  const rows: [body: Json, param: string][] = [
    [{ tools: [f, { googleMaps: {} }] }, 'tools[1].googleMaps'],
    [{ tools: [{ fileSearch: { fileSearchStoreNames: ['x'] } }] }, 'tools[0].fileSearch'],
    [{ store: true }, 'store'],
    [{ generationConfig: { routingConfig: { autoMode: {} } } }, 'generationConfig.routingConfig'],
    [{ generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } }, 'generationConfig.responseModalities'],
    [filmed({ videoMetadata: { fps: 24 } }), 'contents[0].parts[1].videoMetadata.fps'],
    [filmed({ videoMetadata: { fps: '2' } }), 'contents[0].parts[1].videoMetadata.fps'],
    [filmed({ later: { paid: true } }), 'contents[0].parts[1].later'],
    [instructed({ fileData: film }), 'systemInstruction.parts[1].fileData'],
    [instructed({ text: 'a', videoMetadata: { fps: 24 } }), 'systemInstruction.parts[1].videoMetadata'],
    [instructed({ inlineData: { mimeType: 'image/png', data: 'AA==' } }), 'systemInstruction.parts[1].inlineData'],
    [instructed({ text: 'a', mediaResolution: {} }), 'systemInstruction.parts[1].mediaResolution'],
  ]
  for (const [body, param] of rows) {
    const given = { contents: [hi], ...body }
    t.match(thrown(() => sent(given)) as GatewayError, { status: 400, code: 'own_key_required', param })
    t.match(sent(given, own), { ...given, ...OFF }, 'who pays the provider decides alone')
  }
  t.match(sent(filmed({ videoMetadata: { fps: 0.5 } })), { contents: [{}] }, 'fewer images than are held for')
  const silent = instructed({ text: 'a', fileData: null })
  t.match(sent({ contents: [hi], ...silent }), silent, 'what says nothing costs nothing')
  const shown = { contents: [hi], ...instructed({ fileData: film }) }
  t.match(sent(shown, to({}, { provider: { nativeFields: ['systemInstruction.parts.fileData'] } })), shown)
  const fast = filmed({ videoMetadata: { fps: 24 } })
  t.match(sent(fast, to({}, { provider: { nativeFields: ['parts.videoMetadata.*'] } })), fast)
  const allowed = to({}, { provider: { nativeFields: ['store'], nativeTools: ['google*'] } })
  t.match(sent({ contents: [hi], store: true, tools: [{ googleMaps: {} }] }, allowed), { store: true })
  const ex = exchange({ endpoint })
  for (const maxOutputTokens of [900, null]) {
    const request = generateContent.decode({ contents: [hi], generationConfig: { maxOutputTokens } }, ex)
    const { body } = studio.native!.encode(ex.input.native!.body, { ...request, max_tokens: 300 }, to(), false)
    t.match(body.generationConfig, { maxOutputTokens: 300 }, 'no more than is held')
  }
  t.end()
})

t.test('an answer keeps what the provider says of it', t => {
  const said = { finishReason: 'RECITATION', safetyRatings: [{ category: 'c' }], avgLogprobs: -0.1 }
  const answer = { candidates: [{ content: { parts: [{ text: 'x' }] }, index: 0, ...said }], usageMetadata: {} }
  const events = decodeAll(studio.native!.decoder!('unary', to()), [{ name: '', data: JSON.stringify(answer) }])
  t.match(events.at(-1), {
    type: 'finish',
    reason: 'content_filter',
    ending: { wire: 'gemini.generate', fields: said },
  })
  const ex = exchange({ endpoint })
  generateContent.decode({ contents: [hi] }, ex)
  ex.target = to()
  const encoder = generateContent.encoder(ex)
  encoder.write(events)
  t.match(JSON.parse(String(encoder.end())), { candidates: [{ content: { parts: [{ text: 'x' }] }, ...said }] })
  t.end()
})
