/** What holds for every wire: of streams that are cut, and of requests that nobody thought of. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import t from 'tap'
import { plugin as anthropic } from '../../plugins/anthropic.ts'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { plugin as cohere } from '../../plugins/cohere.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as mistral } from '../../plugins/mistral.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import { plugin as responses } from '../../plugins/openai-responses.ts'
import { canonical } from '../../src/codecs/openai-chat.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Event } from '../../src/core/event.ts'
import type { Translator } from '../../src/core/translator.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { SseFraming } from '../../src/upstream/framing/sse.ts'
import { runs } from '../helpers/runs.ts'
import { deepFreeze, target } from './wire-kit.ts'

const SEED = 20261121
/** Of each recorded stream; a cut decodes it from its beginning. */
const MOST_CUTS = runs(1500)
const golden = fileURLToPath(new URL('../golden', import.meta.url))
const wires = [anthropic, bedrock, cohere, gemini, mistral, openai, responses].flatMap(
  ({ wires }) => wires.filter(({ op }) => op === 'chat') as unknown as Translator<'chat'>[],
)

/** Which wire the recorded streams of a folder are of. */
const recorded: Record<string, string> = {
  anthropic: 'anthropic.messages',
  gemini: 'gemini.generate',
  mistral: 'mistral.chat',
  cohere: 'cohere.chat',
  'openai-responses': 'openai.responses',
}

/** The events of the first `end` bytes, and of the end of all bytes behind them. */
function cut(wire: Translator<'chat'>, bytes: Buffer, end: number): Event[] {
  const framing = new SseFraming()
  const decoder = wire.decoder('stream', target({ translator: wire as Translator }))
  const events: Event[] = []
  for (const frame of [...framing.push(bytes.subarray(0, end)), ...framing.end()]) {
    if (!decoder.done) events.push(...decoder.frame(frame))
  }
  events.push(...decoder.end())
  return events
}
const textOf = (events: Event[]) => events.map(event => (event.type === 'text' ? event.text : '')).join('')

for (const [folder, name] of Object.entries(recorded)) {
  const wire = wires.find(({ wire }) => wire === name)!
  const files = readdirSync(join(golden, folder)).filter(file => file.endsWith('.sse'))
  t.test(`SF-16 ${name}: a stream that is cut at any byte is a beginning of it, and never looks whole`, async t => {
    for (const file of files) {
      const bytes = readFileSync(join(golden, folder, file))
      const all = cut(wire, bytes, bytes.length)
      const wrong: number[] = []
      const step = Math.ceil(bytes.length / MOST_CUTS)
      for (let end = 0; end < bytes.length; end += step) {
        const events = cut(wire, bytes, end)
        const failed = events.some(({ type }) => type === 'error')
        const complete = JSON.stringify(events) === JSON.stringify(all)
        if (!textOf(all).startsWith(textOf(events)) || !(failed || complete)) wrong.push(end)
      }
      t.strictSame(wrong.slice(0, 3), [], file)
    }
    t.ok(files.length > 0)
  })
}

const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).map(text => `<${text}>`)
const part = fc.oneof(
  word.map(text => ({ type: 'text', text })),
  fc.constant({ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==' } }),
)
const user = fc.record({
  role: fc.constantFrom('user', 'developer', 'system'),
  content: fc.oneof(
    word,
    fc.array(
      word.map(text => ({ type: 'text', text })),
      { minLength: 1, maxLength: 3 },
    ),
  ),
})
const pictured = fc.record({ role: fc.constant('user'), content: fc.array(part, { minLength: 1, maxLength: 3 }) })
/** A turn of the assistant with its calls, and what they gave. */
const called = fc
  .record({ content: fc.option(word), calls: fc.array(word, { minLength: 1, maxLength: 3 }) })
  .map(({ content, calls }) => [
    {
      role: 'assistant',
      content,
      tool_calls: calls.map((args, n) => ({
        id: `call_${n}`,
        type: 'function',
        function: { name: `tool_${n}`, arguments: JSON.stringify({ value: args }) },
      })),
    },
    ...calls.map((result, n) => ({ role: 'tool', tool_call_id: `call_${n}`, content: result })),
  ])
const answered = word.map(content => [{ role: 'assistant', content }])
const turn = fc.oneof(
  user.map(message => [message]),
  pictured.map(message => [message]),
  called,
  answered,
)
const tools = [0, 1, 2].map(n => ({
  type: 'function',
  function: { name: `tool_${n}`, parameters: { type: 'object', properties: { value: { type: 'string' } } } },
}))
const request = fc.record(
  {
    model: fc.constant('acme-large'),
    messages: fc
      .tuple(fc.array(turn, { maxLength: 4 }), word)
      .map(([turns, last]) => [{ role: 'user', content: '<first>' }, ...turns.flat(), { role: 'user', content: last }]),
    tools: fc.constant(tools),
    temperature: fc.double({ min: 0, max: 1, noNaN: true }),
    max_tokens: fc.integer({ min: 1, max: 4096 }),
    reasoning_effort: fc.constantFrom('low', 'high'),
    response_format: fc.constant({ type: 'json_object' }),
    user: word,
  },
  { requiredKeys: ['model', 'messages', 'tools'] },
)

/** All texts of a value, wherever they stand, texts in texts among them. */
function textsIn(value: unknown): string {
  if (typeof value === 'string') return /^[[{]/.test(value) ? value + textsIn(parsed(value)) : value
  if (typeof value !== 'object' || value === null) return ''
  return Object.values(value).map(textsIn).join('\n')
}
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
const words = (messages: ChatRequest['messages']) =>
  messages.flatMap(({ content, tool_calls: calls }) => [
    ...(typeof content === 'string' ? [content] : (content ?? []).map(part => (part.type === 'text' ? part.text : ''))),
    ...(calls ?? []).map(call =>
      call.type === 'function' ? (JSON.parse(call.function.arguments) as { value: string }).value : call.custom.input,
    ),
  ])

/** Instructions may stand before all else on a wire; everybody else speaks in turn. */
const isTurn = ({ role }: ChatRequest['messages'][number]) => role !== 'system' && role !== 'developer'

for (const wire of wires) {
  t.test(`MF-17 ${wire.wire}: of any request nothing is lost or out of turn, or it is refused by name`, async t => {
    const tried = runs(300)
    const place = target({
      translator: wire as Translator,
      mapping: {
        supports: new Set(['streaming', 'tools', 'vision', 'reasoning', 'json_output']),
        reasoningEfforts: ['low', 'high'],
      },
    })
    let encoded = 0
    const holds = fc.property(request, given => {
      const asked = deepFreeze(canonical(given as unknown as ChatRequest))
      let sent: unknown
      try {
        sent = wire.encode(asked, place, true).body
      } catch (error) {
        if (error instanceof GatewayError && error.status === 400) return
        throw error
      }
      encoded++
      const texts = textsIn(JSON.parse(JSON.stringify(sent)))
      for (const word of words(asked.messages)) {
        if (!texts.includes(word)) throw new Error(`${JSON.stringify(word)} is not in ${JSON.stringify(sent)}`)
      }
      let at = 0
      for (const word of words(asked.messages.filter(isTurn))) {
        at = texts.indexOf(word, at)
        if (at < 0) throw new Error(`${JSON.stringify(word)} is out of turn in ${JSON.stringify(sent)}`)
        at += word.length
      }
    })
    t.doesNotThrow(() => fc.assert(holds, { numRuns: tried, seed: SEED }))
    t.ok(encoded > tried / 6, `${encoded} of ${tried} are sent`)
  })
}

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk'
const place = (wire: Translator<'chat'>) =>
  target({ translator: wire as Translator, mapping: { supports: new Set(['vision', 'tools', 'reasoning'] as const) } })
const sentTo = (wire: Translator<'chat'>, messages: object[]): string => {
  const asked = canonical({ model: 'acme-large', messages } as unknown as ChatRequest)
  return JSON.stringify(wire.encode(deepFreeze(asked), place(wire), false).body)
}

for (const wire of wires) {
  t.test(`${wire.wire}: a picture in a turn of the model fails no later turn`, async t => {
    const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }
    const said = { type: 'text', text: 'Here' }
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
    const ask = { role: 'user', content: 'Draw' }
    const rows: [says: string, answer: { content: object[]; [field: string]: unknown }, more: object[]][] = [
      ['with words', { content: [said, picture] }, []],
      ['alone', { content: [picture] }, []],
      [
        'before a call',
        { content: [picture], tool_calls: [call] },
        [{ role: 'tool', tool_call_id: 'c', content: 'a' }],
      ],
      ['beside images', { content: [picture, said], images: [picture] }, []],
      ['at an address', { content: [{ ...picture, image_url: { url: 'https://a.example/b.png' } }] }, []],
    ]
    for (const [says, answer, more] of rows) {
      const messages = [ask, { role: 'assistant', ...answer }, ...more, { role: 'user', content: 'Thanks' }]
      const sent = sentTo(wire, messages)
      t.match(sent, /Draw.*Thanks/, says)
      if (answer.content.includes(said)) t.match(sent, /Here/, says)
      // Only Google's models have pictures among their own words.
      t.equal(
        /"(?:image|input_image|image_url|inlineData)"/.test(sent),
        wire.wire.startsWith('gemini') && says !== 'at an address',
        says,
      )
    }
  })

  t.test(`R12 ${wire.wire}: a schema of a tool has one object at its root, and items in its arrays`, async t => {
    const schemaIn = (value: unknown): unknown => {
      for (const [name, member] of typeof value === 'object' ? Object.entries(value ?? {}) : []) {
        if (/^(?:parameters|input_schema|parametersJsonSchema|json)$/.test(name)) return member
        const found = schemaIn(member)
        if (found !== undefined) return found
      }
      return undefined
    }
    const sent = (parameters: object) => {
      const tools = [{ type: 'function', function: { name: 'f', parameters } }]
      const asked = canonical({
        model: 'm',
        messages: [{ role: 'user', content: 'hi' }],
        tools,
      } as unknown as ChatRequest)
      return schemaIn(wire.encode(deepFreeze(asked), place(wire), false).body)
    }
    const a = { type: 'string', description: 'of a' }
    const b = { type: 'number' }
    t.strictSame(
      sent({ type: 'object', properties: { a } }),
      { type: 'object', properties: { a } },
      'nothing to change',
    )
    t.strictSame(sent({ type: 'object' }), { type: 'object', properties: {} })
    t.strictSame(
      sent({ properties: { a, b }, anyOf: [{ required: ['a'] }, { required: ['b'] }], title: 'T' }),
      {
        type: 'object',
        properties: { a, b },
        description: '(anyOf: [{"required":["a"]},{"required":["b"]}])',
        title: 'T',
      },
      'alternatives that only require',
    )
    t.strictSame(
      sent({
        type: 'object',
        oneOf: [{ $ref: '#/$defs/A' }, { properties: { kind: { const: 'b' }, b }, required: ['kind'] }],
        $defs: { A: { type: 'object', properties: { kind: { const: 'a' }, a }, required: ['kind', 'a'] } },
      }),
      {
        type: 'object',
        properties: { kind: { anyOf: [{ const: 'a' }, { const: 'b' }] }, a, b },
        required: ['kind'],
        description: '(oneOf: [{"required":["kind","a"]},{"required":["kind"]}])',
        $defs: { A: { type: 'object', properties: { kind: { const: 'a' }, a }, required: ['kind', 'a'] } },
      },
      'a union',
    )
    t.strictSame(
      sent({
        allOf: [{ properties: { a }, required: ['a'] }, { $ref: '#' }],
        $ref: '#/definitions/B',
        definitions: { B: { properties: { b } } },
      }),
      { type: 'object', properties: { b, a }, required: ['a'], definitions: { B: { properties: { b } } } },
      'parts that all hold',
    )
    const list = { type: ['array', 'null'], default: { type: 'array' } }
    t.strictSame(
      sent({
        type: 'object',
        properties: { list, items: { anyOf: [a, { type: 'array', items: { type: 'array' } }] } },
      }),
      {
        type: 'object',
        properties: {
          list: { ...list, items: {} },
          items: { anyOf: [a, { type: 'array', items: { type: 'array', items: {} } }] },
        },
      },
      'arrays',
    )
  })

  t.test(`${wire.wire}: a list, or another value, is asked for as an answer`, async t => {
    for (const type of ['array', 'string', ['object', 'null']]) {
      const schema = { type, description: 'Names' }
      const format = { type: 'json_schema' as const, json_schema: { name: 'a', schema } }
      const asked = {
        ...canonical({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] }),
        response_format: format,
      }
      const { body } = wire.encode(deepFreeze(asked), place(wire), false)
      t.match(JSON.stringify(body).replaceAll('\\"', '"'), JSON.stringify(schema), 'the schema, or an instruction')
      const { response_format, text, tools } = body as Record<string, unknown>
      if (/cohere|responses/.test(wire.wire))
        t.strictSame({ response_format, text }, { response_format: undefined, text: undefined })
      t.equal(tools, undefined)
    }
  })

  t.test(`R21 ${wire.wire}: a call whose arguments are no object fails no later turn`, async t => {
    for (const text of ['{"path":"a', '[1]', '"a"', '{"a":1}{"a":2}', '['.repeat(5000)]) {
      const call = { id: 'c', type: 'function', function: { name: 'f', arguments: text } }
      const results = [{ role: 'tool', tool_call_id: 'c', content: 'no JSON' }]
      const sent = sentTo(wire, [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', tool_calls: [call] },
        ...results,
      ])
      t.ok(sent.includes(JSON.stringify(text)), text.slice(0, 20))
      t.equal(sent.includes('INVALID_JSON'), /anthropic|bedrock|gemini/.test(wire.wire))
    }
  })

  t.test(`${wire.wire}: a message without words is filled where the wire takes none`, async t => {
    for (const content of ['', [{ type: 'text', text: '' }]]) {
      const sent = sentTo(wire, [{ role: 'user', content }])
      if (wire.wire !== 'openai.chat') t.match(sent, '"."', JSON.stringify(content))
    }
  })
}
