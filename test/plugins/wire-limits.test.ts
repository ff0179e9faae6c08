/** What models of these wires refuse, and what is sent in its place. */
import t from 'tap'
import { plugin as anthropic } from '../../plugins/anthropic.ts'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { plugin as cohere } from '../../plugins/cohere.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as mistral } from '../../plugins/mistral.ts'
import { plugin as responses } from '../../plugins/openai-responses.ts'
import type { Translator } from '../../src/core/translator.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { cpuMs, inProportion, leastOf } from '../helpers/cpu.ts'
import { decodePieces, decodeWith, encodeWith, errorsOf, type Json, offer } from './golden-kit.ts'

const chatOf = (plugin: { wires: readonly unknown[] }) => plugin.wires[0] as Translator<'chat'>
const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }]

t.test('of a turn that holds thoughts, the first block is one', async t => {
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'said elsewhere' },
    {
      role: 'assistant',
      content: 'b',
      reasoning_details: [
        { type: 'reasoning.text', text: 'T', signature: 'acme:S', format: 'anthropic-claude-v1', block_index: 0 },
      ],
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c', content: 'ok' },
  ]
  const turn = (plugin: { wires: readonly unknown[] }, externalId: string) => {
    const to = offer({ externalId, supports: ['tools', 'reasoning'] })
    const { body } = encodeWith(chatOf(plugin), { messages, tools, reasoning_effort: 'high' }, to)
    return (body.messages as { content: Json[] }[])[1]!.content
  }
  const ofBedrock = turn(bedrock, 'anthropic.claude-haiku-4-5-20251001-v1:0')
  t.same(
    ofBedrock.map(block => Object.keys(block)[0]),
    ['reasoningContent', 'text', 'text', 'toolUse'],
  )
  const ofAnthropic = turn(anthropic, 'claude-haiku-4-5')
  t.same(
    ofAnthropic.map(({ type }) => type),
    ['thinking', 'text', 'text', 'tool_use'],
  )
})

t.test('no budget is larger or smaller than the model takes', async t => {
  const budget = (reasoning_effort: string, externalId: string) => sent({ reasoning_effort }, externalId)
  const sent = (request: Json, externalId: string) => {
    const { body } = encodeWith(chatOf(gemini), request, offer({ externalId, supports: ['reasoning'] }))
    return ((body.generationConfig as Json).thinkingConfig as Json).thinkingBudget
  }
  t.equal(budget('max', 'gemini-2.5-pro'), 32_768)
  t.equal(budget('xhigh', 'gemini-2.5-flash'), 24_576)
  t.equal(budget('xhigh', 'gemini-2.5-flash-lite'), 24_576)
  t.equal(budget('low', 'gemini-2.5-pro'), 2048)
  for (const [asked, externalId, tokens] of [
    [31_999, 'gemini-2.5-flash', 24_576],
    [31_999, 'gemini-2.5-pro', 31_999],
    [31_999, 'gemini-3.6-flash', 24_576],
    [100, 'gemini-2.5-flash-lite', 512],
    [100, 'gemini-2.5-pro', 128],
    [100, 'gemini-2.5-flash', 100],
  ] as const) {
    t.equal(sent({ reasoning: { max_tokens: asked } }, externalId), tokens, externalId)
  }
})

t.test('models before the third generation take no answer format beside tools', async t => {
  const schema = { type: 'object' }
  const request = { tools, response_format: { type: 'json_schema', json_schema: { name: 'r', schema } } }
  const old = encodeWith(chatOf(gemini), request, offer({ externalId: 'gemini-2.5-flash' })).body
  t.notMatch(old, { generationConfig: { responseMimeType: /./ } })
  t.match(old, { systemInstruction: { parts: [{ text: /JSON Schema/ }] } })
  const gemma = encodeWith(chatOf(gemini), request, offer({ externalId: 'gemma-4-31b-it' })).body
  t.notOk(gemma.systemInstruction)
  const third = offer({ externalId: 'gemini-3.6-flash', reasoningEfforts: ['low'] })
  t.match(encodeWith(chatOf(gemini), request, third).body, {
    generationConfig: { responseMimeType: 'application/json' },
  })
})

t.test('an error among events that comes as bare JSON', async t => {
  const error = { error: { code: 429, message: 'Slow down', status: 'RESOURCE_EXHAUSTED' } }
  const chunk = `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: 'a' }] } }] })}\r\n\r\n`
  for (const text of [JSON.stringify(error), JSON.stringify(error, null, 2), chunk + JSON.stringify(error, null, 2)]) {
    const bytes = Buffer.from(text)
    for (let cut = 0; cut < bytes.length; cut++) {
      const decoder = chatOf(gemini).decoder('stream', offer())
      const [found] = errorsOf(decodePieces(decoder, [bytes.subarray(0, cut), bytes.subarray(cut)]))
      t.match(found, { code: 'upstream_rate_limited', message: 'Slow down' })
    }
  }
})

t.test('a model that does not stream while it has tools answers whole', async t => {
  const to = offer({ externalId: 'meta.llama4-maverick-17b-instruct-v1:0', supports: ['streaming', 'tools'] })
  const path = (request: Json) => encodeWith(chatOf(bedrock), request, to, true).path
  t.match(path({ tools }), /\/converse$/)
  t.match(path({}), /\/converse-stream$/)
})

t.test('a name or an id of any length takes no longer than another', async t => {
  const long = ':'.repeat(4_000_000)
  const call = (id: string, name: string) => [
    { role: 'user', content: 'hi' },
    { role: 'assistant', tool_calls: [{ id, type: 'function', function: { name, arguments: '{}' } }] },
    { role: 'tool', tool_call_id: id, content: 'ok' },
  ]
  const pdf = { filename: `${long}.pdf`, file_data: 'data:application/pdf;base64,JVBERi0=' }
  const requests: Record<string, Json> = {
    'name of a tool': { messages: call('c', long) },
    'id of a call': { messages: call(long, 'f') },
    'id of no call': { messages: [...call('c', 'f'), { role: 'tool', tool_call_id: long, content: 'ok' }] },
    'name of a schema': { response_format: { type: 'json_schema', json_schema: { name: long, schema: {} } } },
    'name of a file': { messages: [{ role: 'user', content: [{ type: 'file', file: pdf }] }] },
    user: { user: long },
  }
  const to = offer({ supports: ['tools', 'structured_outputs', 'file_input'] })
  for (const wire of [anthropic, bedrock, cohere, gemini, mistral].map(chatOf)) {
    for (const [says, request] of Object.entries(requests)) {
      let refused = ''
      const encode = () => {
        try {
          encodeWith(wire, { tools, ...request }, to)
        } catch (thrown) {
          if (!(thrown instanceof GatewayError)) throw thrown
          refused = thrown.message
        }
      }
      const [took = 0] = leastOf([() => cpuMs(encode)], ms => ms < 150)
      t.ok(took < 150, `${wire.wire}, ${says}: ${took} ms of CPU`)
      t.ok(refused.length < 500, `${wire.wire}, ${says}: ${refused.slice(0, 200)}`)
    }
  }
})

t.test('ids of calls that share their beginning stay apart, and go with their results', async t => {
  const ids = ['1', '2'].map(end => `${'a:'.repeat(200)}${end}`)
  const messages = [
    { role: 'user', content: 'hi' },
    {
      role: 'assistant',
      tool_calls: ids.map(id => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })),
    },
    ...ids.map(id => ({ role: 'tool', tool_call_id: id, content: id.slice(-1) })),
  ]
  const { body } = encodeWith(chatOf(anthropic), { messages, tools }, offer({ supports: ['tools'] }))
  const [, calls, results] = body.messages as { content: Json[] }[]
  const sent = calls!.content.map(({ id }) => id)
  t.equal(new Set(sent).size, 2)
  t.strictSame(
    results!.content.map(({ tool_use_id, content }) => [tool_use_id, content]),
    [
      [sent[0], '1'],
      [sent[1], '2'],
    ],
  )
})

const many = <T>(count: number, make: (at: number) => T) => Array.from({ length: count }, (_, at) => make(at))
const alike = (at: number) => `${'P'.repeat(58)}${String(at).padStart(6, '0')}`

t.test('calls, results and items that are alike take time in proportion to their number', t => {
  const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })
  const result = (tool_call_id: string) => ({ role: 'tool', tool_call_id, content: 'a' })
  const asked = { role: 'user', content: 'hi' }
  const thought = (block_index: number) => ({
    type: 'reasoning.text',
    text: 'T',
    signature: `acme:s${block_index}`,
    format: 'anthropic-claude-v1',
    block_index,
  })
  const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
  const to = offer({
    externalId: 'gemini-3.6-flash',
    supports: ['tools', 'vision', 'reasoning'],
    reasoningEfforts: ['low'],
  })
  const rows: [says: string, wire: Translator<'chat'>, few: number, messages: (count: number) => unknown[]][] = [
    [
      'thoughts behind a text',
      chatOf(anthropic),
      10_000,
      count => [
        asked,
        { role: 'assistant', content: 'said' },
        { role: 'assistant', content: 'b', reasoning_details: many(count, thought) },
        asked,
      ],
    ],
    [
      'answers in a row',
      chatOf(anthropic),
      4000,
      count => [asked, ...many(count, () => ({ role: 'assistant', content: 'a' })), asked],
    ],
    [
      'pictures of a result',
      chatOf(gemini),
      10_000,
      count => [
        asked,
        { role: 'assistant', tool_calls: [call('c')] },
        { ...result('c'), content: many(count, () => picture) },
      ],
    ],
    [
      'ids that are cut alike',
      chatOf(bedrock),
      1000,
      count => {
        const ids = many(count, alike).flatMap(id => [id, `${id}x`])
        return [asked, { role: 'assistant', tool_calls: ids.map(call) }, ...ids.map(result)]
      },
    ],
    ...[anthropic, bedrock, cohere, gemini, mistral, responses].map((plugin): (typeof rows)[number] => [
      'ids that are long and alike',
      chatOf(plugin),
      100,
      count => {
        const ids = many(count, at => `${'a'.repeat(16_400)}${alike(at)}`)
        return [asked, { role: 'assistant', tool_calls: ids.map(call) }, ...ids.map(result)]
      },
    ]),
    [
      'calls of one id',
      chatOf(anthropic),
      1000,
      count => [
        asked,
        { role: 'assistant', tool_calls: many(count, () => call('c')) },
        ...many(count, () => result('c')),
      ],
    ],
  ]
  for (const [says, wire, few, messages] of rows) {
    const timed = (count: number) => {
      // Flat texts, as a body has them.
      const request: Json = JSON.parse(JSON.stringify({ messages: messages(count), tools }))
      return () => cpuMs(() => void encodeWith(wire, request, to))
    }
    timed(100)()
    const [one = 0, four = 0] = leastOf([timed(few), timed(4 * few)], inProportion)
    t.ok(inProportion(one, four), `${says}: ${one} ms, and ${four} ms for four times as many`)
  }
  t.end()
})

t.test('schemas of tools take time in proportion to their parts, whatever these are', t => {
  const text = { type: 'string' }
  const members = (count: number, name: (at: number) => string) =>
    Object.fromEntries(many(count, at => [name(at), text] as const))
  const rows: [says: string, schema: (count: number) => Json][] = [
    [
      'names that are spelled alike',
      count => ({ properties: members(count, at => String.fromCodePoint(0x4e00 + at)) }),
    ],
    ['names that are cut alike', count => ({ properties: members(count, at => `${'a'.repeat(70)}${alike(at)}`) })],
    ['alternatives', count => ({ oneOf: many(count, at => ({ properties: { a: { const: at } }, required: ['a'] })) })],
    ['lists', count => ({ properties: { a: { anyOf: many(count, () => ({ type: 'array' })) } } })],
    [
      'properties within more and more alternatives',
      count =>
        many(count / 100, () => 0).reduce<Json>(schema => ({ anyOf: [schema] }), {
          properties: members(count, at => `p${at}`),
        }),
    ],
  ]
  for (const [says, schema] of rows) {
    const timed = (count: number) => () => {
      // A request of its own: what is made of a schema is kept for the request.
      const parameters = JSON.parse(JSON.stringify({ type: 'object', ...schema(count) })) as Json
      const request = {
        messages: [{ role: 'user', content: 'hi' }],
        tools: [{ type: 'function', function: { name: 'f', parameters } }],
      }
      return cpuMs(() => void encodeWith(chatOf(anthropic), request, offer({})))
    }
    timed(100)()
    const [one = 0, four = 0] = leastOf([timed(2000), timed(8000)], inProportion)
    t.ok(inProportion(one, four), `${says}: ${one} ms, and ${four} ms for four times as many`)
  }
  t.end()
})

t.test('citations have places in 4 Mi characters of text, of all candidates together', t => {
  const text = 'ab'.repeat(512 * 1024)
  const cited = (candidates: number, texts: number) => {
    const to = offer({ supports: ['web_search'] })
    const decoder = chatOf(gemini).decoder('stream', to, { model: 'm', messages: [], web_search: true })
    const grounding = {
      groundingChunks: [{ web: { uri: 'https://acme.example' } }],
      groundingSupports: [{ segment: { text: 'baba' }, groundingChunkIndices: [0] }],
    }
    const frames = Array.from({ length: texts }, () =>
      Array.from({ length: candidates }, (_, index) => ({ index, content: { parts: [{ text }] } })),
    )
    const last = Array.from({ length: candidates }, (_, index) => ({
      index,
      content: { parts: [] },
      groundingMetadata: grounding,
      finishReason: 'STOP',
    }))
    const events = decodeWith(
      decoder,
      [...frames, last].map(candidates => ({ candidates })),
    )
    return events.filter(event => event.type === 'source').map(({ start }) => start)
  }
  t.strictSame(cited(1, 4), [1])
  t.strictSame(cited(1, 5), [undefined])
  t.strictSame(cited(2, 3), [undefined, undefined])
  t.end()
})
