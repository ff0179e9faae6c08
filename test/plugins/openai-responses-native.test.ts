/**
 * A client's own Responses body on `openai.responses`: rows hold a body and the fields in which the sent one differs from
 * it, null for those that are left out.
 */
import t from 'tap'
import { plugin } from '../../plugins/openai-responses.ts'
import { carry } from '../../src/codecs/carried-reasoning.ts'
import { openAiResponses } from '../../src/codecs/openai-responses.ts'
import type { Target } from '../../src/core/translator.ts'
import { responses } from '../../src/endpoints/inference.ts'
import type { Json } from '../../src/json/json.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { exchange, thrown } from '../core/kit.ts'
import { decodeAll, deepFreeze, target } from './wire-kit.ts'

const wire = plugin.wires[0]!
const frameOf = (output: Json[]) => [
  { name: '', data: JSON.stringify({ object: 'response', status: 'completed', output }) },
]
const supports = new Set(['reasoning', 'tools', 'web_search'] as const)
const to = (mapping: object = {}, more: object = {}): Target =>
  target({ mapping: { externalId: 'gpt-x', supports, reasoningEfforts: ['low', 'high'], ...mapping }, ...more })
const own: Target = { ...to(), credential: { secret: 's', fingerprint: 'f', source: 'byok', id: 'k' } }

/** What a provider of the wire gets of a body. */
function sent(given: Json, at = to(), stream = false): Json {
  const ex = exchange({ endpoint: responses })
  const body = deepFreeze({ model: 'm', input: 'Hi', ...given })
  const request = openAiResponses.decode(body, ex)
  return wire.native!.encode(ex.input.native!.body, request, at, stream).body
}
const ENCRYPTED = ['reasoning.encrypted_content']
const ALWAYS = { model: 'gpt-x', store: false, include: ENCRYPTED }
const user = { role: 'user', content: [{ type: 'input_text', text: 'Hi', extra: 1 }] }
const called = { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', namespace: 'n', arguments: '{}' }
const answered = { type: 'function_call_output', call_id: 'c', output: 'ok' }
const f = { type: 'function', name: 'f', parameters: { type: 'object' }, anything: true }

t.test('of a body only what must change is changed', t => {
  const rows: [body: Json, differs?: Json, at?: Target][] = [
    [{ instructions: 'Be brief', metadata: { a: 'b' }, truncation: 'auto', client_metadata: { c: 'd' } }],
    [{ store: true, web_search: false }, { web_search: null }],
    [{ input: [user, called, answered], user: 'u', safety_identifier: 's' }],
    [{ tools: [{ type: 'namespace', name: 'n', description: 'N', tools: [f] }, { type: 'custom', name: 'g' }, f] }],
    [{ tools: [{ type: 'web_search', search_context_size: 'low', new: 1 }], tool_choice: { type: 'web_search' } }],
    [{ include: ['message.output_text.logprobs'] }, { include: ['message.output_text.logprobs', ...ENCRYPTED] }],
    [{ include: ENCRYPTED }],
    [{ tools: [{ type: 'shell', environment: { type: 'local' } }, { type: 'shell' }] }],
    [{ tools: [{ type: 'shell', environment: { type: 'container_auto' } }] }, {}, own],
    [{ reasoning: { effort: 'low', summary: 'detailed' } }],
    [{ reasoning: { effort: 'none' } }, { reasoning: null, include: null }, to({ supports: new Set(['tools']) })],
    [{ service_tier: 'flex', temperature: 0.5, top_p: 0.9, max_output_tokens: 99, prompt_cache_key: 'k' }],
    [{ service_tier: 'scale' }, { service_tier: null }],
    [{ new: true, input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] }] }, {}, own],
    [{ input: [user, { type: 'web_search_call', id: 'ws_1' }, { type: 'image_generation_call', id: 'ig' }, user] }],
    [
      {
        input: [
          { type: 'additional_tools', tools: [f] },
          user,
          { type: 'agent_message', content: [] },
          { type: 'new' },
        ],
      },
    ],
    [
      { tools: [{ type: 'mcp', server_label: 's' }, { type: 'file_search' }], tool_choice: { type: 'file_search' } },
      {},
      own,
    ],
    [{ input: [user, { ...called, parsed_arguments: {} }, answered] }, { input: [user, called, answered] }],
    [
      { input: [user, { role: 'assistant', content: [{ type: 'output_text', text: 'a', parsed: 1 }] }, user] },
      { input: [user, { role: 'assistant', content: [{ type: 'output_text', text: 'a' }] }, user] },
    ],
  ]
  for (const [given, differs, at] of rows) {
    const expected: Json = { input: 'Hi', ...given, ...ALWAYS, ...differs }
    for (const name of Object.keys(expected)) if (expected[name] === null) delete expected[name]
    t.strictSame(sent(given, at), expected, JSON.stringify(given))
  }
  t.equal(sent({ stream: true }, to(), true).stream, true)
  t.equal(sent({ stream: false }).stream, false)
  for (const stream of [true, null, undefined]) t.notOk('stream' in sent({ stream }), `${stream}`)
  t.end()
})

t.test("a hosted tool without a price is refused on the operator's credentials, wherever it stands", t => {
  const mcp = { type: 'mcp', server_label: 's' }
  const container = { type: 'shell', environment: { type: 'container_auto' } }
  const rows: [body: Json, param: string][] = [
    [{ tools: [f, mcp] }, 'tools[1].type'],
    [{ input: [{ type: 'additional_tools', tools: [mcp] }, user] }, 'input[0].tools[0].type'],
    [{ tools: [f, container] }, 'tools[1].environment'],
    [{ input: [user, { type: 'additional_tools', tools: [container] }] }, 'input[1].tools[0].environment'],
    [{ tools: [{ type: 'web_searches' }] }, 'tools[0].type'],
    [
      { input: [{ type: 'additional_tools', tools: [{ type: 'namespace', tools: [mcp] }] }, user] },
      'input[0].tools[0].tools[0].type',
    ],
  ]
  for (const [body, param] of rows)
    t.match(
      thrown(() => sent(body)),
      { status: 400, code: 'own_key_required', param },
    )
  t.end()
})

t.test(
  "reasoning goes back to its own provider, with that provider's items behind it, and before an answer only",
  t => {
    const summary = [{ type: 'summary_text', text: 'Hm' }]
    const thought = { id: 'rs_p', summary, encrypted_content: 'secret' }
    const events = decodeAll(wire.native!.decoder!('unary', to()), frameOf([{ type: 'reasoning', ...thought }]))
    const data = events.flatMap(event => (event.type === 'reasoning' && event.data ? [event.data] : [])).join('')
    const search = { type: 'web_search_call', id: 'ws_p', status: 'completed', action: { type: 'search', query: 'q' } }
    const format = 'openai-responses-v1'
    const provider = to().provider.id
    const kept = carry({
      details: [{ type: 'reasoning.encrypted', format, data }],
      native: [
        { ...search, provider, position: [0, 1] },
        { type: 'other', provider: 'another' },
      ],
    })
    const item = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: kept }
    const replayed = [{ type: 'reasoning', ...thought }, search]
    t.strictSame(sent({ input: [user, item, called, answered] }).input, [user, ...replayed, called, answered])
    const shown = { type: 'web_search_call', id: 'ws_1', status: 'completed' }
    const repeated = sent({ input: [user, item, shown, called, answered] }).input
    t.strictSame(repeated, [user, ...replayed, called, answered], 'reasoning brings the search back')
    const elsewhere = to({}, { provider: { ...to().provider, id: 'another' } })
    const other = sent({ input: [user, item, called, answered] }, elsewhere).input
    t.strictSame(other, [user, { type: 'other' }, called, answered])
    const alone = carry({ details: [{ type: 'reasoning.encrypted', format, data }] })
    t.strictSame(sent({ input: [user, { ...item, encrypted_content: alone }, user] }).input, [user, user])
    for (const forged of [{ carried: { details: [{ format, data }] } }, { encrypted_content: 'secret' }, {}]) {
      t.strictSame(sent({ input: [user, { type: 'reasoning', ...forged }, called, answered] }).input, [
        user,
        called,
        answered,
      ])
    }
    t.end()
  },
)

t.test('reasoning whose text the client holds goes back as it came, and sealed text to its own provider', t => {
  const content = [{ type: 'reasoning_text', text: 'Hm' }]
  const thought = { type: 'reasoning', id: 'rs_1', summary: [], content }
  const back = (item: Json, at = to()) => sent({ input: [user, item, called, answered] }, at).input
  t.strictSame(back({ ...thought, status: 'completed' }), [user, { ...thought, status: 'completed' }, called, answered])
  for (const more of [{ encrypted_content: null }, { encrypted_content: 'of others' }, { carried: { native: [{}] } }]) {
    t.strictSame(back({ ...thought, ...more }), [user, thought, called, answered], JSON.stringify(more))
  }
  for (const nothing of [{ content: [] }, { content: null }, { content: 'Hm' }, { content: undefined }]) {
    t.strictSame(back({ ...thought, ...nothing }), [user, called, answered], JSON.stringify(nothing))
  }
  const events = decodeAll(wire.native!.decoder!('unary', to()), frameOf([thought, called]))
  const data = events.flatMap(event => (event.type === 'reasoning' && event.data ? [event.data] : [])).join('')
  const kept = carry({ details: [{ type: 'reasoning.encrypted', format: 'openai-responses-v1', data }] })
  const sealed = {
    type: 'reasoning',
    id: 'rs_2',
    summary: [{ type: 'summary_text', text: 'Hm' }],
    encrypted_content: kept,
  }
  t.strictSame(back(sealed), [user, thought, called, answered])
  const elsewhere = to({}, { provider: { ...to().provider, id: 'another' } })
  t.strictSame(back({ ...sealed, content }, elsewhere), [user, called, answered])
  t.end()
})

t.test("a call of a namespace's tool keeps the client's own names", t => {
  const call = { type: 'function_call', call_id: 'c', name: 'f', namespace: 'n', arguments: '{}' }
  t.match(decodeAll(wire.native!.decoder!('unary', to()), frameOf([call])), [
    { type: 'start' },
    { type: 'tool', name: 'f', namespace: 'n', signature: undefined },
  ])
  t.match(decodeAll(wire.decoder('unary', to()), frameOf([call])), [
    { type: 'start' },
    { type: 'tool', name: 'f', namespace: undefined, signature: String },
  ])
  t.end()
})

t.test("what the operator's credentials do not pay for is refused by name, unless the manifest allows it", t => {
  const file = [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'a' },
        { type: 'input_file', file_id: 'f-1' },
      ],
    },
  ]
  const output = [user, called, { ...answered, output: [{ type: 'input_image', file_id: 'f-1' }] }]
  const screenshot = { type: 'computer_screenshot', file_id: 'f-1' }
  const screen = [user, { type: 'computer_call_output', call_id: 'c', output: screenshot }]
  const rows: [body: Json, param: string, field: string][] = [
    [{ new: { a: 1 } }, 'new', 'new'],
    [{ input: file }, 'input[0].content[1].file_id', 'file_id'],
    [{ input: output }, 'input[2].output[0].file_id', 'file_id'],
    [{ input: screen }, 'input[1].output.file_id', 'file_id'],
  ]
  for (const [body, param, field] of rows) {
    const refused = thrown(() => sent(body)) as GatewayError
    t.match(refused, { status: 400, code: 'own_key_required', param })
    const allowed = to({}, { provider: { ...to().provider, nativeFields: [field] } })
    t.doesNotThrow(() => sent(body, allowed))
  }
  t.end()
})
