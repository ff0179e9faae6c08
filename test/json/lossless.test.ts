/** Whole numbers beyond 2^53: through JSON that is parsed and written, and through the wires whose calls are objects. */
import fc from 'fast-check'
import t from 'tap'
import { plugin as anthropic } from '../../plugins/anthropic.ts'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import { wrappedCalls } from '../../plugins/openai-responses/parallel.ts'
import { plugin as responses } from '../../plugins/openai-responses.ts'
import { anthropicMessages } from '../../src/codecs/anthropic-messages.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Translator } from '../../src/core/translator.ts'
import { parseBody, parseCalls, parseLossless, stringifyLossless } from '../../src/json/lossless.ts'
import { RawStrings } from '../../src/json/raw-strings.ts'
import { exchange } from '../core/kit.ts'
import { cpuMs } from '../helpers/cpu.ts'
import { runs } from '../helpers/runs.ts'
import { decodeAll, target } from '../plugins/wire-kit.ts'

type Value = string | number | bigint | boolean | null | Value[] | { [key: string]: Value }
/** As `JSON.stringify`, for whole numbers of any size. */
const textOf = (value: Value): string => {
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return `[${value.map(textOf).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([key, member]) => `${JSON.stringify(key)}:${textOf(member)}`)
    .join(',')}}`
}
const { tree } = fc.letrec<{ tree: Value; leaf: Value }>(tie => ({
  leaf: fc.oneof(
    fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(number => (number === 0 ? 0 : number)),
    fc.constantFrom('', '"', '\\', '\\"', '12345678901234567890', ':12345678901234567890,', '-1'),
    fc.string({ unit: 'binary' }),
    fc.constantFrom(true, null),
  ),
  tree: fc.oneof(
    { maxDepth: 4 },
    tie('leaf'),
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(
      fc.string().map(name => `k${name}`),
      tie('tree'),
      { maxKeys: 4, noNullPrototype: true },
    ),
  ),
}))

t.test('what is parsed and written again is what it was, to the last digit', async () => {
  fc.assert(
    fc.property(tree, value => {
      const text = textOf(value)
      return stringifyLossless(JSON.stringify(parseLossless(text))) === text
    }),
    { numRuns: runs(2000) },
  )
})

const ID = '12345678901234567890'
const MARK = String(parseLossless(ID)).slice(0, 16)

t.test(
  'a mark makes of a text a number at most, wherever it stands, and is before no number that is written',
  async () => {
    const pieces = [MARK, `"${MARK}`, '"', '\\', '{', '}', ':1,"a":', 'x', '-']
    const joined = (pieces: string[]) =>
      fc.array(fc.constantFrom(...pieces), { maxLength: 5 }).map(some => some.join(''))
    const name = joined(pieces)
    const text = joined([...pieces, `${MARK}${ID}`, ID])
    const { tree } = fc.letrec<{ tree: unknown }>(tie => ({
      tree: fc.oneof(
        { maxDepth: 3 },
        text,
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(name, tie('tree'), { maxKeys: 3, noNullPrototype: true }),
      ),
    }))
    /** With a word in place of each text and number. */
    const shapeOf = (json: string): string =>
      JSON.stringify(JSON.parse(json), (_, value) => (typeof value === 'object' ? value : 'leaf'))
    fc.assert(
      fc.property(tree, value => {
        const json = JSON.stringify(value)
        const written = stringifyLossless(json)
        return !written.includes(`${MARK}1`) && shapeOf(written) === shapeOf(json)
      }),
      { numRuns: runs(5000) },
    )
  },
)

t.test('what is no JSON is none, and small numbers are numbers', async t => {
  for (const text of ['{"a":01234567890123456789}', '[12345678901234567890', '{12345678901234567890:1}', '-', '1"2']) {
    t.throws(() => parseLossless(text), SyntaxError, text)
  }
  t.strictSame(parseLossless('[1e400,12345678901234567890.5,-0,9007199254740991,1e21]'), [
    ...[Number.POSITIVE_INFINITY, 12345678901234567000, -0, 9007199254740991, 1e21],
  ])
})

t.test('a number of millions of digits keeps all of them and does not block the loop', async t => {
  const text = `{"a":${'7'.repeat(5_000_000)}}`
  // Quadratic work took four seconds for each of them.
  const took = cpuMs(() => {
    t.ok(stringifyLossless(JSON.stringify(parseLossless(text))) === text)
    t.strictSame(
      parseBody(text, () => undefined),
      { a: Number.POSITIVE_INFINITY },
    )
  })
  t.ok(took < 2000, `${took} ms of CPU`)
})

t.test('of an answer only the arguments of calls are kept as text; all else is rounded as it always was', async t => {
  const json = '{"id":12345678901234567890,"call":{"args":{"id":12345678901234567890},"n":[12345678901234567890]}}'
  const place = (_: object, name: string) => (name === 'call' ? 'args' : undefined)
  t.strictSame(parseCalls(json, place), {
    id: 12345678901234567000,
    call: { args: '{"id":12345678901234567890}', n: [12345678901234567000] },
  })
  t.strictSame(parseCalls('{"call":{"args":{"id":1}}}', place), { call: { args: { id: 1 } } })
  const body = parseBody('{"seed":12345678901234567890,"call":{"args":{"id":12345678901234567890}}}', place)
  t.match(body, { seed: 12345678901234567000 })
  t.equal(
    stringifyLossless(JSON.stringify(body)),
    '{"seed":12345678901234567000,"call":{"args":{"id":12345678901234567890}}}',
  )
  const proto = parseBody('{"n":12345678901234567890,"__proto__":{"a":1}}', place) as object
  t.equal(Object.getPrototypeOf(proto), Object.prototype, 'a name reaches no prototype')
})

const args = `{"id":${ID},"sub":[-${ID},1]}`
const answers: [Translator<'chat'>, string][] = [
  [
    anthropic.wires[0] as Translator<'chat'>,
    `{"type":"message","id":"m","content":[{"type":"tool_use","id":"c","name":"f","input":${args}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`,
  ],
  [
    gemini.wires.find(({ wire }) => wire === 'gemini.generate') as Translator<'chat'>,
    `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${args}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1}}`,
  ],
  [
    bedrock.wires[0] as Translator<'chat'>,
    `{"output":{"message":{"content":[{"toolUse":{"toolUseId":"c","name":"f","input":${args}}}]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":1}}`,
  ],
]

for (const [wire, answer] of answers) {
  t.test(`${wire.wire}: arguments of a call keep their numbers, in an answer and in a history`, async t => {
    const to = target({ translator: wire as Translator })
    const events = decodeAll(wire.decoder('unary', to), [answer])
    t.equal(events.map(event => (event.type === 'tool' ? (event.args ?? '') : '')).join(''), args)
    const request: ChatRequest = {
      model: 'acme-large',
      messages: [
        { role: 'user', content: 'go' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: args } }],
        },
        { role: 'tool', tool_call_id: 'c', content: 'ok' },
      ],
    }
    const { body } = wire.encode(request, to, false)
    t.match(stringifyLossless(JSON.stringify(body)), args)
    const long = 'x'.repeat(2000)
    const rawStrings = new RawStrings()
    rawStrings.add(long, Buffer.from(JSON.stringify(long)))
    t.match(String(rawStrings.stringify({ before: body, long, after: body })), new RegExp(`${ID}.*x{2000}.*${ID}`))
  })
}

t.test('a schema that shows a call holds no marks: some wires write it as text', async t => {
  const shown = `{"type":"tool_use","input":{"id":${ID}}}`
  const json = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"output_config":{"format":{"type":"json_schema","schema":{"type":"object","default":${shown}}}}}`
  const request = anthropicMessages.decode(parseBody(json, anthropicMessages.exact), exchange())
  const [wire] = bedrock.wires
  const { body } = wire.encode(request, target({ translator: wire as Translator }), false)
  t.match(JSON.stringify(body), '12345678901234567000')
  t.notOk(JSON.stringify(body).includes(MARK))
})

t.test('arguments that a provider makes an object of keep their digits on the wires of text, too', async t => {
  const cases: [Translator<'chat'>, string][] = [
    [
      openai.wires[0] as Translator<'chat'>,
      `{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${args}}}]},"finish_reason":"tool_calls"}]}`,
    ],
    [
      responses.wires[0] as Translator<'chat'>,
      `{"id":"r","status":"completed","output":[{"type":"function_call","call_id":"c","name":"f","arguments":${args}}]}`,
    ],
  ]
  for (const [wire, answer] of cases) {
    const events = decodeAll(wire.decoder('unary', target({ translator: wire as Translator })), [answer])
    t.equal(events.map(event => (event.type === 'tool' ? (event.args ?? '') : '')).join(''), args, wire.wire)
  }
})

t.test('a stream keeps the digits of arguments that come whole at the start of a call', async t => {
  const [wire] = anthropic.wires as [Translator<'chat'>]
  const events = decodeAll(wire.decoder('stream', target({ translator: wire as Translator })), [
    '{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1,"output_tokens":1}}}',
    `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":${args}}}`,
    '{"type":"content_block_stop","index":0}',
    '{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}',
    '{"type":"message_stop"}',
  ])
  t.equal(events.map(event => (event.type === 'tool' ? (event.args ?? '') : '')).join(''), args)
})

t.test('what is wrapped in one call is an object', async t => {
  const wrapped = (given: string) =>
    wrappedCalls(`{"tool_uses":[{"recipient_name":"functions.f","parameters":${given}}]}`)
  t.strictSame(wrapped(args), [{ name: 'f', args }])
  t.strictSame(wrapped('{"a":1}'), [{ name: 'f', args: '{"a":1}' }])
  for (const text of ['"{broken"', `"{${ID}"`, '[1]']) t.equal(wrapped(text), undefined, text)
})
