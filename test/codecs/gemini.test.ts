/**
 * The client wire of Google's API: what becomes of a body, and of an answer's events. `test/golden/gemini-client` holds a
 * body with the chat request that it becomes, and events with what is written of them.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { carry } from '../../src/codecs/carried-reasoning.ts'
import { partOf } from '../../src/codecs/gemini/history.ts'
import { normalized } from '../../src/codecs/gemini/names.ts'
import { generateContent, streamGenerateContent } from '../../src/codecs/gemini-generate.ts'
import { Cancellation } from '../../src/core/cancel.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Codec } from '../../src/core/codec.ts'
import type { Event } from '../../src/core/event.ts'
import { Exchange } from '../../src/core/exchange.ts'
import type { Snapshot } from '../../src/core/snapshot.ts'
import { gemini } from '../../src/endpoints/gemini.ts'
import { parseBody } from '../../src/json/lossless.ts'
import { errors, type GatewayError } from '../../src/lib/error.ts'
import { meters } from '../../src/metering/meter.ts'
import { thrown } from '../core/kit.ts'
import { cpuMs, inProportion, leastOf } from '../helpers/cpu.ts'
import { deepFreeze } from '../plugins/wire-kit.ts'

type Json = Record<string, unknown>
const golden = (name: string) =>
  JSON.parse(readFileSync(new URL(`../golden/gemini-client/${name}.json`, import.meta.url), 'utf8'))

function exchange(codec: Codec<'chat'>, query = ''): Exchange {
  const endpoint = gemini.find(row => row.codec === codec)!
  const snapshot = {} as Snapshot
  const body = () => Promise.reject(new Error('is not read here'))
  const params = { model: 'm' }
  return new Exchange({ meters, snapshot, endpoint, headers: {}, query, params, signal: new Cancellation(), body })
}
const decode = (body: unknown): ChatRequest => generateContent.decode(deepFreeze(body), exchange(generateContent))
const hi = [{ parts: [{ text: 'Hi' }] }]
const asked = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }

t.test('a golden body becomes its chat request', async t => {
  t.strictSame(decode(golden('agent.body')), golden('agent.request'))
})

/** Fields of a body, and what they become beside the message. */
const fields: [given: Json, becomes: Json][] = [
  [{ systemInstruction: 'Be brief' }, { messages: [{ role: 'system', content: 'Be brief' }, ...asked.messages] }],
  [
    { system_instruction: { parts: [{ text: 'a' }, { text: 'b' }] } },
    { messages: [{ role: 'system', content: 'a\n\nb' }, ...asked.messages] },
  ],
  [
    {
      generationConfig: { temperature: 0, topP: 0.5, topK: 40, maxOutputTokens: 9, stopSequences: ['x', ''], seed: 7 },
    },
    { temperature: 0, top_p: 0.5, top_k: 40, max_tokens: 9, stop: ['x'], seed: 7 },
  ],
  [{ generation_config: { candidate_count: 2, presence_penalty: 1 } }, { n: 2, presence_penalty: 1 }],
  [{ generationConfig: { responseMimeType: 'application/json' } }, { response_format: { type: 'json_object' } }],
  [{ generationConfig: { thinkingConfig: { thinkingBudget: -1 } } }, {}],
  [
    { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
    { reasoning_effort: 'none', lenient_reasoning: true },
  ],
  [
    { generationConfig: { thinkingConfig: { thinkingBudget: 99 } } },
    { reasoning: { max_tokens: 99 }, lenient_reasoning: true },
  ],
  [
    { generationConfig: { thinkingConfig: { thinkingLevel: 'HIGH' } } },
    { reasoning_effort: 'high', lenient_reasoning: true },
  ],
  [{ serviceTier: 'FLEX' }, { service_tier: 'flex' }],
  [{ safetySettings: [{ category: 'X' }], labels: { a: 'b' }, unknown: 1 }, {}],
  [{ tools: [{ googleSearch: {} }] }, { tools: [{ type: 'web_search' }] }],
  [{ tools: { function_declarations: { name: 'f' } } }, { tools: [{ type: 'function', function: { name: 'f' } }] }],
]

t.test('each field has its chat form', async t => {
  for (const [given, becomes] of fields) {
    t.strictSame(decode({ contents: hi, ...given }), { ...asked, ...becomes }, JSON.stringify(given))
  }
})

t.test('a choice among tools', async t => {
  const tools = [{ functionDeclarations: [{ name: 'a' }, { name: 'b' }] }]
  const choice = (functionCallingConfig: Json) => {
    const { tools: left, tool_choice } = decode({ contents: hi, tools, toolConfig: { functionCallingConfig } })
    return [left?.map(tool => (tool.type === 'function' ? tool.function.name : tool.type)), tool_choice]
  }
  t.strictSame(choice({ mode: 'AUTO' }), [['a', 'b'], 'auto'])
  t.strictSame(choice({ mode: 'NONE' }), [['a', 'b'], 'none'])
  t.strictSame(choice({ mode: 'ANY' }), [['a', 'b'], 'required'])
  t.strictSame(choice({ mode: 'ANY', allowedFunctionNames: ['b'] }), [
    ['a', 'b'],
    { type: 'function', function: { name: 'b' } },
  ])
  t.strictSame(choice({ mode: 'VALIDATED', allowedFunctionNames: ['b'] }), [['b'], 'auto'])
  const unknown = thrown(() => choice({ mode: 'ANY', allowedFunctionNames: ['c'] })) as GatewayError
  t.equal(unknown.param, 'toolConfig.functionCallingConfig.allowedFunctionNames[0]')
})

t.test('tools that are allowed by many names take time in proportion to both', t => {
  const timed = (count: number) => {
    const declarations = Array.from({ length: count }, (_, at) => ({ name: `f${at}` }))
    const allowedFunctionNames = Array.from({ length: 4 * count }, () => `f${count - 1}`)
    const toolConfig = { functionCallingConfig: { mode: 'AUTO', allowedFunctionNames } }
    const body = deepFreeze({ contents: hi, tools: [{ functionDeclarations: declarations }], toolConfig })
    return () => cpuMs(() => void generateContent.decode(body, exchange(generateContent)))
  }
  timed(100)()
  const [one = 0, four = 0] = leastOf([timed(2000), timed(8000)], inProportion)
  t.ok(inProportion(one, four), `${one} ms, and ${four} ms for four times as many`)
  t.end()
})

t.test('responses find their calls by id, or by name and order', async t => {
  const call = (name: string, id?: string) => ({ functionCall: { name, args: {}, ...(id && { id }) } })
  const response = (name: string, output: string, id?: string) => ({
    functionResponse: { name, response: { output }, ...(id && { id }) },
  })
  const { messages } = decode({
    contents: [
      ...hi,
      { role: 'model', parts: [call('a', 'x'), call('b'), call('b'), call('a')] },
      { parts: [response('b', '1'), response('a', '2'), response('b', '3'), response('a', '0', 'x'), { text: 'so?' }] },
    ],
  })
  const results = messages.filter(({ role }) => role === 'tool')
  t.strictSame(
    results.map(({ tool_call_id, content }) => [tool_call_id, content]),
    [
      ['call_1_1', '1'],
      ['x', '2'],
      ['call_1_2', '3'],
      ['call_1_3', '0'],
    ],
  )
  t.equal(messages.at(-1)?.content, 'so?', 'behind the results')
})

t.test('responses that come twice with the ids of their calls count once', t => {
  const call = (id: string) => ({ functionCall: { name: 'read', args: {}, id } })
  const response = (id: string) => ({ functionResponse: { name: 'read', id, response: { output: id } } })
  const { messages } = decode({
    contents: [
      ...hi,
      { role: 'model', parts: [call('x'), call('y'), call('z')] },
      { parts: [response('x'), response('y')] },
      { parts: [response('x'), response('y'), response('z'), { text: 'Go on.' }] },
    ],
  })
  const results = messages.filter(({ role }) => role === 'tool')
  t.strictSame(
    results.map(({ tool_call_id, content }) => [tool_call_id, content]),
    ['x', 'y', 'z'].map(id => [id, id]),
  )
  t.equal(messages.at(-1)?.content, 'Go on.')
  t.end()
})

t.test('a tool or an option that no other wire has names itself', t => {
  const only = (body: Json) => {
    const ex = exchange(generateContent)
    generateContent.decode(deepFreeze({ contents: hi, ...body }), ex)
    return ex.input.native?.only
  }
  const f = { functionDeclarations: [{ name: 'f' }] }
  const rows: [body: Json, only: string | undefined][] = [
    [{ tools: [f, { codeExecution: {} }] }, 'tools[1].codeExecution'],
    [{ tools: [{ ...f, url_context: {} }] }, 'tools[0].urlContext'],
    [{ tools: { google_maps: {} } }, 'tools[0].googleMaps'],
    [
      { tools: [{ google_search: { time_range_filter: { start_time: 'a' } } }] },
      'tools[0].googleSearch.timeRangeFilter',
    ],
    [
      { tools: [f, { googleSearchRetrieval: { dynamicRetrievalConfig: { mode: 'MODE_DYNAMIC' } } }] },
      'tools[1].googleSearchRetrieval.dynamicRetrievalConfig',
    ],
    [{ tools: [f], toolConfig: { retrievalConfig: { languageCode: 'en' } } }, 'toolConfig.retrievalConfig'],
    [{ tools: [f, { googleSearch: { excludeDomains: ['a.example'], timeRangeFilter: null } }] }, undefined],
    [{ tools: [f, { googleSearch: {} }], toolConfig: { includeServerSideToolInvocations: true } }, undefined],
    [{ tools: [{ codeExecution: null }] }, undefined],
  ]
  for (const [body, path] of rows) t.equal(only(body), path, JSON.stringify(body))
  const search = { type: 'web_search', blocked_domains: ['a.example'] }
  const { tools } = decode({ contents: hi, tools: [f, { google_search: { exclude_domains: ['a.example'] } }] })
  t.strictSame(tools, [{ type: 'function', function: { name: 'f' } }, search], 'other wires have this option')
  t.end()
})

t.test('files at addresses are what their types say', t => {
  const uri = 'https://a.example/b'
  const rows: [mimeType: string | undefined, part: Json][] = [
    ['audio/mpeg', { type: 'input_audio', input_audio: { data: uri, format: 'mp3' } }],
    ['AUDIO/WAV', { type: 'input_audio', input_audio: { data: uri, format: 'wav' } }],
    ['image/png', { type: 'image_url', image_url: { url: uri } }],
    ['application/pdf', { type: 'file', file: { filename: 'document.pdf', file_data: uri } }],
    ['video/mp4', { type: 'file', file: { filename: 'file', file_data: uri } }],
    ['audio/x-new', { type: 'file', file: { filename: 'file', file_data: uri } }],
    [undefined, { type: 'file', file: { filename: 'file', file_data: uri } }],
  ]
  for (const [mimeType, part] of rows) {
    const { messages } = decode({ contents: [{ parts: [{ fileData: { mimeType, fileUri: uri } }] }] })
    t.strictSame(messages[0]!.content, [part], mimeType ?? 'none')
  }
  t.end()
})

t.test('media of a model stand beside its words, and fail no wire', t => {
  const png = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }
  const sound = { inlineData: { mimeType: 'audio/wav', data: 'UklGRg==' } }
  const parts = [{ text: 'Here' }, png, sound, { fileData: { mimeType: 'video/mp4', fileUri: 'gs://a/b' } }]
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
  const audio = { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } }
  const film = { type: 'file', file: { file_id: 'gs://a/b' } }
  for (const [said, content, images] of [
    [parts, 'Here', [image, audio, film]],
    [[png], '', [image]],
  ] as const) {
    const { messages } = decode({ contents: [...hi, { role: 'model', parts: said }, ...hi] })
    t.strictSame(messages[1], { role: 'assistant', content, images })
  }
  t.end()
})

t.test('names are read in either form, and what callers name stays', async t => {
  const schema = { my_prop: { any_of: [] } }
  t.strictSame(normalized({ function_declarations: [{ parameters: schema }], a_b: 1, aB: 2 }), {
    functionDeclarations: [{ parameters: schema }],
    aB: 2,
  })
  const same = { contents: hi }
  t.equal(normalized(same), same)
})

t.test('names that are too long for a field of the wire stay as they are', t => {
  const field = 'include_server_side_tool_invocations'
  t.strictSame(normalized({ [field]: 1 }), { includeServerSideToolInvocations: 1 })
  const names = Array.from({ length: 300 }, (_, at) => `${'_a'.repeat(8000)}${at}`)
  const body = Object.fromEntries(names.map(name => [name, 1]))
  const [took = 0] = leastOf([() => cpuMs(() => t.equal(normalized(body), body))], ms => ms < 60)
  t.ok(took < 60, `${took} ms of CPU`)
  const words = `a${'_b'.repeat(20)}`
  t.strictSame(normalized({ [words]: 1 }), { [words]: 1 })
  t.end()
})

t.test('a signature that was not made here says nothing, and one that is no JSON neither', async t => {
  const forged = [
    carry({}).slice(0, 12),
    carry({ text: 'a' }).replace(/.{8}$/, ''),
    'skip_thought_signature_validator',
    'CiQB',
  ]
  for (const thoughtSignature of forged) {
    const parts = [{ functionCall: { name: 'f' }, thoughtSignature }]
    const { messages } = decode({ contents: [...hi, { role: 'model', parts }] })
    t.strictSame(Object.keys(messages[1]!), ['role', 'content', 'tool_calls'], thoughtSignature)
  }
})

/** Batches of events with the chunks that become of them, without what only the gateway's own fields say. */
const written = (
  codec: Codec<'chat'>,
  batches: Event[][],
  { query = '', shows = true, fails = false } = {},
): string[] => {
  const ex = exchange(codec, query)
  ex.request = { ...asked, stream: codec === streamGenerateContent } as ChatRequest
  ex.answer.showsReasoning = shows
  const encoder = codec.encoder(ex)
  const out = batches.map(batch => String(encoder.write(batch) ?? ''))
  return [...out, String(fails ? encoder.fail(errors.truncated()) : encoder.end())]
}
const bare = (text: string): unknown => {
  const { usageMetadata: _u, modelVersion: _m, responseId: _r, gateway: _g, ...rest } = JSON.parse(text)
  return rest
}

t.test('golden events become their answer, whole and streamed', async t => {
  for (const { says, batches, shows, whole, chunks } of golden('answers')) {
    t.strictSame(bare(written(generateContent, batches, { shows })[batches.length]!), whole, `${says}, whole`)
    const streamed = written(streamGenerateContent, batches, { query: 'alt=sse', shows })
    const seen = streamed.filter(Boolean).map(chunk => {
      t.match(chunk, /^data: .*\r\n\r\n$/s)
      return bare(chunk.slice('data: '.length))
    })
    t.strictSame(seen, chunks, `${says}, streamed`)
    const list = JSON.parse(written(streamGenerateContent, batches, { shows }).join(''))
    t.strictSame(
      list.map((chunk: unknown) => bare(JSON.stringify(chunk))),
      chunks,
      `${says}, as a list`,
    )
  }
})

t.test('an answer repeats a bounded length of its text as cited text, over all its candidates', async t => {
  const most = 1024 * 1024
  const cited = (choice: number, text: string): Event[] => [
    { type: 'text', choice, text },
    ...Array.from(
      { length: 100 },
      (_, start): Event => ({ type: 'source', choice, url: `https://a/${start}`, start, end: 2 * text.length }),
    ),
  ]
  const rows: [says: string, events: Event[]][] = [
    ['one candidate', cited(0, 'a'.repeat(most))],
    ['many candidates', Array.from({ length: 64 }, (_, choice) => cited(choice, 'a'.repeat(most / 64))).flat()],
  ]
  for (const [says, events] of rows) {
    for (const codec of [generateContent, streamGenerateContent]) {
      const last = written(codec, [events], { query: 'alt=sse' }).at(-1)!
      t.ok(last.length < 8 * most, `${says}, ${last.length} characters`)
      t.match(last, '"groundingSupports"', says)
    }
    t.match(written(generateContent, [events]).at(-1)!, 'https://a/99', `${says}: each source is named`)
  }
})

t.test('a stream that breaks ends with its error, as an event and in a list', async t => {
  const batches: Event[][] = [[{ type: 'text', choice: 0, text: 'a' }]]
  const error = { error: { code: 502, status: 'UNAVAILABLE' } }
  const event = written(streamGenerateContent, batches, { query: 'alt=sse', fails: true }).at(-1)!
  const [inEvent, bare] = event.slice('data: '.length).split('\r\n\r\n')
  t.match(JSON.parse(inEvent!), error)
  t.same(JSON.parse(bare!), JSON.parse(inEvent!), 'and bare, for clients that read no errors in events')
  t.match(JSON.parse(written(streamGenerateContent, batches, { fails: true }).join('')).at(-1), error)
  t.match(JSON.parse(written(streamGenerateContent, [], { fails: true }).join('')), [error])
})

t.test('numbers of any length go to tools and back as they are', async t => {
  const text =
    '{"contents":[{"parts":[{"text":"Hi"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"id":12345678901234567890}}}]}]}'
  const { messages } = generateContent.decode(parseBody(text, generateContent.exact), exchange(generateContent))
  const [call] = messages[1]!.tool_calls!
  t.equal(call!.type === 'function' && call!.function.arguments, '{"id":12345678901234567890}')
  for (const name of ['output', 'result', 'error']) {
    const response = `{"${name}":12345678901234567890}`
    const result = text.replace(
      '"functionCall":{"name":"f","args":{"id":12345678901234567890}}',
      '"functionCall":{"name":"f","args":{}}',
    )
    const answered = result.replace(
      /]}$/,
      `,{"role":"user","parts":[{"functionResponse":{"name":"f","response":${response}}}]}]}`,
    )
    const { messages } = generateContent.decode(parseBody(answered, generateContent.exact), exchange(generateContent))
    t.match(messages[2], { role: 'tool', content: response })
  }
  const args = '{"id":12345678901234567890}'
  const events: Event[] = [{ type: 'tool', choice: 0, index: 0, id: 'c', name: 'f', args }]
  t.match(written(generateContent, [events])[1], args)
})

t.test('data in the alphabet of addresses becomes plain base64, and takes no more memory than its length', async t => {
  const dataOf = (data: string) => partOf({ inlineData: { mimeType: 'application/pdf', data } }, 'at')
  const rows: [given: string, base64: string][] = [
    ['-_8', '+/8='],
    ['-_8=', '+/8='],
    ['AB\n-_', 'AB+/'],
    ['AA==-A==', 'AA==-A=='],
  ]
  for (const [given, base64] of rows)
    t.match(dataOf(given), { file: { file_data: `data:application/pdf;base64,${base64}` } }, given)
  const large = 'A-'.repeat(2_000_000)
  const before = process.memoryUsage().heapUsed
  t.ok(dataOf(large))
  const taken = process.memoryUsage().heapUsed - before
  t.ok(taken < 5 * large.length, `${taken} bytes`)
})
