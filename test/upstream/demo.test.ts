/** The demo provider's answers: derived from the request, whatever it holds. */
import t from 'tap'
import { answer, type DemoRequest, sample } from '../../src/operations/chat/demo.ts'
import { cpuMs } from '../helpers/cpu.ts'

type Message = DemoRequest['messages'][number]
const user = (content: NonNullable<Message['content']>): Message => ({ role: 'user', content })
const tools = ['weather', 'clock'].map(name => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: { city: { type: 'string' } } } },
}))

t.test('an answer follows from the request', async t => {
  const hi = [user('Hi')]
  const said = 'This is a simulated answer from the demo provider. You said: Hi'
  const called = { role: 'assistant', content: null }
  const json_schema = { schema: { type: 'object', properties: { name: { type: 'string' }, age: { type: 'integer' } } } }
  const rows: [says: string, request: Partial<DemoRequest>, expected: object][] = [
    ['text', {}, { text: said, reasoning: '', tool: undefined, finish: 'stop' }],
    [
      'parts',
      { messages: [user([{ type: 'text', text: 'Hi ' }, { type: 'image_url' }])] },
      { text: said.replace('Hi', 'Hi [image_url]') },
    ],
    ['no user', { messages: [{ role: 'system', content: 'x' }] }, { text: /You said: $/ }],
    [
      'the first tool',
      { tools },
      { text: '', tool: { name: 'weather', arguments: '{"city":"Hi"}' }, finish: 'tool_calls' },
    ],
    [
      'the tool that is asked for',
      { tools, tool_choice: { function: { name: 'clock' } } },
      { tool: { name: 'clock' } },
    ],
    [
      'a tool that takes any text',
      { tools: [{ type: 'custom', custom: { name: 'note' } }], tool_choice: { custom: { name: 'note' } } },
      { text: '', tool: { name: 'note', input: 'Hi' }, finish: 'tool_calls' },
    ],
    ['no tool', { tools, tool_choice: 'none' }, { tool: undefined, text: said }],
    [
      'a result',
      { tools, messages: [...hi, called, { role: 'tool', content: '21°' }] },
      { tool: undefined, text: `${said} The tool said: 21°` },
    ],
    [
      'a result, and a reminder behind it',
      { tools, messages: [...hi, called, { role: 'tool', content: '21°' }, user('Go on')] },
      { tool: undefined, text: `${said.replace('Hi', 'Go on')} The tool said: 21°` },
    ],
    ['JSON', { response_format: { type: 'json_object' } }, { text: '{"simulated":true,"prompt":"Hi"}' }],
    ['JSON of a schema', { response_format: { type: 'json_schema', json_schema } }, { text: '{"name":"Hi","age":1}' }],
    ['reasoning', { reasoning_effort: 'low' }, { text: said, reasoning: /wrote 2 characters/ }],
    ['no reasoning', { reasoning_effort: 'none' }, { reasoning: '' }],
    ['a search', { web_search_options: {} }, { source: { url: 'https://example.com/demo' } }],
    ['a limit', { max_tokens: 2 }, { text: said.slice(0, 8), finish: 'length', usage: { completion: 2 } }],
  ]
  for (const [says, request, expected] of rows) t.match(answer({ messages: hi, ...request }), expected, says)
  t.strictSame(answer({ messages: hi }), answer({ messages: hi }), 'and from nothing else')
})

t.test('a sample fits its schema', async t => {
  const $defs = { name: { type: 'string' } }
  const rows: [schema: unknown, value: unknown][] = [
    [{ type: 'string' }, 'seed'],
    [{ type: 'integer', minimum: 5 }, 5],
    [{ type: 'number' }, 1],
    [{ type: 'boolean' }, true],
    [{ type: 'null' }, null],
    [{ type: ['string', 'null'] }, 'seed'],
    [{ type: 'array', items: { type: 'number' } }, [1]],
    [{ type: 'array' }, ['seed']],
    [{ const: false }, false],
    [{ enum: ['a', 'b'] }, 'a'],
    [{ anyOf: [{ type: 'number' }, { type: 'string' }] }, 1],
    [{ type: 'object', properties: { a: { $ref: '#/$defs/name' } }, $defs }, { a: 'seed' }],
    [{ $ref: '#/$defs/missing', $defs }, null],
    [{ $ref: 'https://acme.example/schema.json' }, null],
    [{ $ref: '#/constructor/name' }, null],
    [{}, {}],
    [null, null],
    ['x', null],
  ]
  for (const [schema, value] of rows) t.strictSame(sample(schema, 'seed'), value, JSON.stringify(schema))
})

t.test('a schema that refers to itself is sampled in bounds of depth and size', async t => {
  const recursive = (width: number) => {
    const properties = Array.from({ length: width }, (_, at) => [`p${at}`, { $ref: '#/$defs/x' }])
    return { $ref: '#/$defs/x', $defs: { x: { properties: Object.fromEntries(properties) } } }
  }
  t.match(sample(recursive(1), 'x'), { p0: { p0: { p0: {} } } })
  const took = cpuMs(() => t.ok(JSON.stringify(sample(recursive(100), 'x')).length < 1_000_000))
  t.ok(took < 1000, `${took} ms of CPU`)
  t.equal(sample({ $ref: '#/$defs/x', $defs: { x: { $ref: '#/$defs/x' } } }, 'x'), null)
})
