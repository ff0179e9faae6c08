/**
 * A Messages client's own body on the wire `anthropic.messages`, and the wire `anthropic.vertex`. Rows of
 * `native.table.json` hold a body and the fields in which the sent one differs from it, null for those that are left
 * out.
 */

import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { plugin } from '../../plugins/anthropic.ts'
import { anthropicMessages } from '../../src/codecs/anthropic-messages.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Event } from '../../src/core/event.ts'
import type { Target } from '../../src/core/translator.ts'
import type { Json } from '../../src/json/json.ts'
import { chat as chatOperation } from '../../src/operations/chat/index.ts'
import { exchange } from '../core/kit.ts'
import { base, flat } from '../core/prices.ts'
import { cpuMs, inProportion, leastOf } from '../helpers/cpu.ts'
import { policyOf } from '../policy/kit.ts'
import { decodeAll, deepFreeze, target } from './wire-kit.ts'

const [wire, vertex] = plugin.wires
const golden = new URL('../golden/anthropic/', import.meta.url)
const read = (name: string) => JSON.parse(readFileSync(new URL(name, golden), 'utf8'))

interface Row {
  name: string
  mapping?: { parameters?: string[] }
  headers?: Record<string, string>
  body: Json
  sent: Json
}
const version = { 'anthropic-version': '2023-06-01' }
const to = ({ mapping, headers = version }: Partial<Row> = {}): Target =>
  target({
    provider: { headers },
    mapping: {
      parameters: mapping?.parameters && new Set(mapping.parameters),
      reasoningEfforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
    },
  })
const hi = { role: 'user', content: 'Hi' }
const bodyOf = (fields: Json): Json => ({ model: 'acme-large', max_tokens: 9, messages: [hi], ...fields })
const native = (body: Json, at = to(), stream = false, headers?: Record<string, string>) =>
  wire!.native!.encode(deepFreeze(body), {} as ChatRequest, at, stream, headers)
const own: Target = { ...to(), credential: { secret: 's', fingerprint: 'f', source: 'byok', id: 'k' } }

t.test('of a body only what must change is changed', async t => {
  for (const { name, body, sent, ...facts } of read('native.table.json') as Row[]) {
    const given = bodyOf(body)
    const expected: Json = { ...given, model: 'acme-large-2026', ...sent }
    for (const [field, value] of Object.entries(sent)) if (value === null) delete expected[field]
    const { path, body: made } = native(given, to(facts))
    t.strictSame({ path, made }, { path: '/messages', made: expected }, name)
    t.strictSame(Object.keys(made), Object.keys(expected), `${name}: in the order of the client`)
  }
  t.equal(native(bodyOf({}), to(), true).body.stream, true)
  t.equal(native(bodyOf({ stream: true }), to(), true).body.stream, true)
  t.equal(native(bodyOf({ stream: false })).body.stream, false)
  t.notOk('stream' in native(bodyOf({ stream: true })).body, 'a mapping that does not stream')
})

t.test('with an own key metadata stays as written', async t => {
  const metadata = { user_id: 'u', team: 'blue' }
  t.strictSame(native(bodyOf({ metadata }), own).body.metadata, metadata)
})

t.test('beta tokens follow from the body, and the manifest keeps its own', async t => {
  const cases: [fields: Json, token: string | undefined][] = [
    [{}, undefined],
    [{ context_management: { edits: [] } }, 'context-management-2025-06-27'],
    [{ context_management: { edits: [{ type: 'compact_20260112' }] } }, 'compact-2026-01-12'],
    [
      { context_management: { edits: [{ type: 'clear_tool_uses_20250919' }, { type: 'compact_20260112' }] } },
      'context-management-2025-06-27,compact-2026-01-12',
    ],
    [{ mcp_servers: [{}] }, 'mcp-client-2025-04-04'],
    [{ container: 'c1' }, undefined],
    [{ container: { skills: [] } }, 'skills-2025-10-02'],
    [{ speed: 'standard' }, undefined],
    [{ output_config: { effort: 'low' } }, undefined],
    [{ output_config: { task_budget: {} } }, 'task-budgets-2026-03-13'],
    [{ tools: [{ name: 'f', input_schema: {}, input_examples: [] }] }, 'advanced-tool-use-2025-11-20'],
    [{ tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] }, 'web-fetch-2025-09-10'],
    [{ tools: [{ type: 'web_search_20260209', name: 'web_search' }] }, 'code-execution-web-tools-2026-02-09'],
    [
      { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file', file_id: 'f' } }] }] },
      'files-api-2025-04-14',
    ],
  ]
  for (const [fields, token] of cases) {
    t.strictSame(
      native(bodyOf(fields), own).headers,
      token === undefined ? undefined : { 'anthropic-beta': token },
      token ?? 'none',
    )
  }
  const configured = { ...to({ headers: { ...version, 'Anthropic-Beta': 'x-1' } }), credential: own.credential }
  const skilled = bodyOf({ container: { skills: [] } })
  t.strictSame(native(skilled, configured).headers, { 'Anthropic-Beta': 'x-1,skills-2025-10-02' })
})

t.test('beta tokens of the client go along, unless they change what the operator pays or promises', async t => {
  const passing = to()
  const wider = target({
    provider: { headers: version, passHeaders: { 'anthropic-beta': ['context-1m-2025-08-07', 'mcp-*'] } },
  })
  const able = target({ provider: { headers: version, nativeFields: ['mcp_servers'] } })
  const theirs = target({ provider: { headers: version, owner: 'org-1' } })
  const managed = { context_management: { edits: [] } }
  const mcp = { mcp_servers: [{}] }
  const rows: [says: string, at: Target, fields: Json, given: string, sent: string | undefined][] = [
    ['nothing', passing, {}, '', undefined],
    ['one', passing, {}, 'interleaved-thinking-2025-05-14', 'interleaved-thinking-2025-05-14'],
    [
      'the union with what the body needs, each once',
      passing,
      managed,
      'effort-2025-11-24,context-management-2025-06-27, effort-2025-11-24',
      'effort-2025-11-24,context-management-2025-06-27',
    ],
    [
      'what the body needs comes first',
      passing,
      managed,
      'effort-2025-11-24',
      'context-management-2025-06-27,effort-2025-11-24',
    ],
    ['the client’s version of what the body needs', able, mcp, 'mcp-client-2025-11-20', 'mcp-client-2025-11-20'],
    ['but not without that need', passing, {}, 'mcp-client-2025-11-20', undefined],
    [
      'another price, other eyes',
      passing,
      {},
      'context-1m-2025-08-07,fast-mode-2026-02-01,oauth-2025-04-20',
      undefined,
    ],
    ['an unknown one', passing, {}, 'came-later-2027-01-01, Effort-2025-11-24', undefined],
    [
      'what the manifest adds',
      wider,
      {},
      'context-1m-2025-08-07,context-1m-2026-08-07,mcp-x',
      'context-1m-2025-08-07,mcp-x',
    ],
    ['any with a key of their own', own, {}, 'context-1m-2025-08-07,came-later', 'context-1m-2025-08-07,came-later'],
    ['any at a provider of their own', theirs, {}, 'came-later', 'came-later'],
    ['none that is malformed', own, {}, `a b,,${'x'.repeat(65)},"q",é,-x, ok_1.0 `, 'ok_1.0'],
    [
      '32 at most',
      own,
      {},
      Array.from({ length: 99 }, (_, i) => `t${i}`).join(),
      Array.from({ length: 32 }, (_, i) => `t${i}`).join(),
    ],
  ]
  for (const [says, at, fields, given, sent] of rows) {
    const { headers } = native(bodyOf(fields), at, false, { 'anthropic-beta': given })
    t.strictSame(headers, sent === undefined ? undefined : { 'anthropic-beta': sent }, says)
  }
  const configured = to({ headers: { ...version, 'anthropic-beta': 'x-1, effort-2025-11-24' } })
  const given = { 'anthropic-beta': 'effort-2025-11-24' }
  t.equal(native(bodyOf({}), configured, false, given).headers, undefined, 'the manifest says it already')
  t.strictSame(native(bodyOf(managed), configured, false, given).headers, {
    'anthropic-beta': 'x-1,effort-2025-11-24,context-management-2025-06-27',
  })
})

t.test('a manifest that names no API version is served by the one that gateways speak', async t => {
  const silent = to({ headers: {} })
  const request = { model: 'acme-large', messages: [hi], max_tokens: 9 } as ChatRequest
  t.strictSame(native(bodyOf({}), silent).headers, version)
  t.strictSame(wire!.encode(request, silent, false).headers, version)
  t.strictSame(native(bodyOf({ container: { skills: [] } }), { ...silent, credential: own.credential }).headers, {
    ...version,
    'anthropic-beta': 'skills-2025-10-02',
  })
  const named = to({ headers: { 'Anthropic-Version': '2026-10-21' } })
  t.equal(native(bodyOf({}), named).headers, undefined)
  t.equal(wire!.encode(request, named, false).headers, undefined)
  t.equal(vertex!.encode(request, silent, false).headers, undefined, 'at Google it stands in the body')
  t.equal(vertex!.native!.encode(bodyOf({}), request, silent, false).headers, undefined)
})

t.test(
  'on the operator’s credentials goes only what costs nothing or has a price; the rest is refused by name',
  async t => {
    const block = (fields: Json) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, fields] }] })
    const tool = { name: 'f', input_schema: {} }
    const paid = { type: 'code_execution_20250825', name: 'code_execution' }
    const adds = (definition: Json) => ({ type: 'tool_addition', tool: { type: 'tool_definition', definition } })
    const refused: [fields: Json, param: string][] = [
      [{ inference_geo: 'us' }, 'inference_geo'],
      [{ container: 'c1' }, 'container'],
      [{ container: { skills: [] } }, 'container'],
      [{ mcp_servers: [{ type: 'url', url: 'https://a.example', name: 'a' }] }, 'mcp_servers'],
      [{ billing_policy: { type: 'billing_policy', bill_to: 'user_profile' } }, 'billing_policy'],
      [{ fallback_credit_token: 't' }, 'fallback_credit_token'],
      [{ came_later: false }, 'came_later'],
      [{ tools: [tool, { type: 'code_execution_20250825', name: 'code_execution' }] }, 'tools[1].type'],
      [{ tools: [{ type: 'mcp_toolset', mcp_server_name: 'a' }] }, 'tools[0].type'],
      [{ tools: [{ type: 'came_later_20270101', name: 'x' }] }, 'tools[0].type'],
      [{ tools: [{ ...tool, allowed_callers: ['direct', 'code_execution_20250825'] }] }, 'tools[0].allowed_callers'],
      [block({ type: 'container_upload', file_id: 'f' }), 'messages[0].content[1].type'],
      [block(adds(paid)), 'messages[0].content[1].tool.definition.type'],
      [
        block(adds({ ...tool, allowed_callers: ['code_execution_20250825'] })),
        'messages[0].content[1].tool.definition.allowed_callers',
      ],
      [{ system: [adds(paid)] }, 'system[0].tool.definition.type'],
      [{ messages: [hi, { role: 'assistant', content: [adds(paid)] }] }, 'messages[1].content[0].tool.definition.type'],
      [
        block({ type: 'compaction', content: 'a', tool_changes: [adds(tool), adds(paid)] }),
        'messages[0].content[1].tool_changes[1].tool.definition.type',
      ],
      [
        block({ type: 'tool_result', tool_use_id: 'a', content: [adds(paid)] }),
        'messages[0].content[1].content[0].tool.definition.type',
      ],
    ]
    const platform = { ...to(), credential: { ...own.credential!, source: 'platform' as const } }
    const theirs = target({ provider: { headers: version, owner: 'org-1' } })
    const wider = target({
      provider: {
        headers: version,
        nativeFields: [
          'inference_geo',
          'container*',
          'mcp_servers',
          'billing_policy',
          'fallback_credit_token',
          'came_*',
        ],
        nativeTools: ['code_execution_*', 'mcp_toolset', 'came_later_*'],
      },
    })
    for (const [fields, param] of refused) {
      const says = JSON.stringify(fields)
      const message = `${param}: not available with the gateway's credentials. Use your own key for the provider.`
      const error = { status: 400, code: 'own_key_required', param, message }
      const body = bodyOf(fields)
      t.throws(() => native(body, platform), error, says)
      t.throws(() => vertex!.native!.encode(body, {} as ChatRequest, platform, false), error, `${says}, at Google`)
      for (const at of [own, theirs, wider]) {
        const { body: sent } = native(body, at)
        for (const name of Object.keys(fields)) t.strictSame(sent[name], body[name], says)
      }
    }
    const unread: unknown[] = [
      undefined,
      [paid],
      paid,
      { name: 'f', input_schema: {} },
      { type: 'tool_definition' },
      { type: 'tool_reference', name: 'f', definition: paid },
    ]
    for (const form of unread) {
      const body = bodyOf(block({ type: 'tool_addition', tool: form }))
      const error = { status: 400, code: 'own_key_required', param: 'messages[0].content[1].tool' }
      for (const at of [platform, wider]) t.throws(() => native(body, at), error, JSON.stringify(form))
      t.strictSame(native(body, own).body.messages, body.messages)
    }
    const silent = { mcp_servers: [], container: null, inference_geo: null, came_later: [] }
    t.strictSame(native(bodyOf(silent), platform), native(bodyOf({}), platform), 'what says nothing is left out')
    const free = ['bash_20250124', 'text_editor_20250728', 'web_search_20250305', 'web_fetch_20250910', 'custom', null]
    const tools = free.map(type => ({ ...tool, type, allowed_callers: ['direct'] }))
    const references = [
      { name: 'f' },
      { type: 'tool_reference', name: 'f' },
      { type: 'mcp_tool_reference', name: 'f', server_name: 's' },
      { type: 'mcp_toolset_reference', server_name: 's' },
    ]
    const content = [...tools.map(adds), ...references.map(tool => ({ type: 'tool_addition', tool }))]
    const messages = [hi, { role: 'system', content }]
    t.strictSame(native(bodyOf({ messages }), platform).body.messages, messages)
    t.strictSame(native(bodyOf({ tools }), platform).body.tools, tools)
  },
)

t.test('a speed that has no price is for those who pay the provider themselves', async t => {
  const fast = bodyOf({ speed: 'fast' })
  t.throws(() => native(fast), { status: 402, code: 'billing_error', failover: true })
  t.strictSame(native(fast, own).headers, { 'anthropic-beta': 'fast-mode-2026-02-01' })
})

t.test('a name that the client sent comes back as it was', async t => {
  const names = fc
    .array(fc.constantFrom('_', 'u', '002e', '_u002e_', 'json_answer', '.', 'é', '🙂', 'get', '-', '0'), {
      minLength: 1,
      maxLength: 8,
    })
    .map(parts => parts.join(''))
  const holds = fc.property(names, name => {
    const { body } = native(bodyOf({ tools: [{ name, input_schema: {} }] }))
    const [sent] = body.tools as { name: string }[]
    const answer = { type: 'message', content: [{ type: 'tool_use', id: 't', name: sent!.name, input: {} }] }
    const [called] = decodeAll(wire!.decoder('unary', target()), [JSON.stringify(answer)]).filter(
      event => event.type === 'tool',
    )
    return /^[a-zA-Z0-9_-]+$/.test(sent!.name) && called?.type === 'tool' && called.name === name
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: 1000, seed: 1 }))
})

t.test('more breakpoints than the wire takes are refused, wherever they stand', async t => {
  const mark = { cache_control: { type: 'ephemeral' } }
  const text = { type: 'text', text: 'a', ...mark }
  const found = { type: 'tool_result', tool_use_id: 't', content: [text], ...mark }
  const marked = (content: Json[]) =>
    bodyOf({ tools: [{ name: 'f', input_schema: {}, ...mark }], system: [text], messages: [{ role: 'user', content }] })
  t.doesNotThrow(() => native(marked([found])))
  const refusal = { status: 400, code: 'invalid_parameters', param: 'cache_control', message: /sets 5 .* at most 4/ }
  const definition = { name: 'g', input_schema: {}, ...mark }
  const added = (more: Json) => ({ type: 'tool_addition', tool: { type: 'tool_definition', definition }, ...more })
  t.doesNotThrow(() => native(marked([added(mark)])))
  t.throws(() => native(marked([added({}), added(mark)])), refusal, 'also of tools that turns define')
  t.throws(() => native(marked([text, found])), refusal)
  t.doesNotThrow(() => native(bodyOf({ system: 'text', tools: null, messages: [hi] })))
})

t.test('a mark for an hour lasts five minutes where the hour has no price', t => {
  const hour = { cache_control: { type: 'ephemeral', ttl: '1h' } }
  const text = { type: 'text', text: 'a', ...hour }
  const written = { ...base, input_cache_write: '3.125' }
  const schema = { type: 'object', properties: { cache_control: { ttl: '1h' } } }
  const tools = [{ name: 'f', input_schema: schema, ...hour }]
  const body = bodyOf({ ...hour, tools, system: [text], messages: [{ role: 'user', content: [text] }] })
  const messages = [{ role: 'user', content: [text] }] as unknown[] as ChatRequest['messages']
  for (const [price, mark, marks] of [
    [flat(written), '5m', 0],
    [flat({ ...written, input_cache_write_1h: '5' }), '1h', 4],
    [undefined, '1h', 4],
    [flat(base), '1h', 4],
  ] as const) {
    const priced = target({ provider: { headers: version }, mapping: { price } })
    const sent = native(body, priced)
    const asked = wire!.encode({ model: 'm', messages }, priced, false)
    t.strictSame([sent.cacheMark, asked.cacheMark], [mark, mark])
    const found = JSON.stringify(sent.body).match(/"ephemeral","ttl":"1h"/g) ?? []
    t.equal(found.length, marks)
    t.match(JSON.stringify(sent.body), '"properties":{"cache_control":{"ttl":"1h"}}', 'a schema stays as it is')
    t.equal(JSON.stringify(asked.body).includes('"1h"'), marks > 0)
  }
  t.end()
})

t.test('an encoded body has the longest of its marks beside it, wherever that stands', t => {
  const marked = (ttl?: string) => ({ cache_control: { type: 'ephemeral', ...(ttl && { ttl }) } })
  const [short, hour] = [marked(), marked('1h')]
  const said = (...content: Json[]) => ({ messages: [{ role: 'user', content }] })
  const text = { type: 'text', text: 'a' }
  const definition = { name: 'g', input_schema: {}, ...hour }
  const schema = { type: 'object', properties: { cache_control: hour.cache_control } }
  const rows: [says: string, fields: Json, mark: string | undefined][] = [
    ['none', { cache_control: null, system: [text] }, undefined],
    ['the whole body', short, '5m'],
    ['the whole body for an hour', hour, '1h'],
    ['a lifetime that is not known', marked('24h'), '1h'],
    ['a system', { system: [{ ...text, ...marked('5m') }] }, '5m'],
    ['a tool of the client', { tools: [{ name: 'f', input_schema: {}, ...hour }] }, '1h'],
    ["a tool of the wire's own", { tools: [{ type: 'bash_20250124', name: 'bash', ...hour }] }, '1h'],
    ['a tool of the provider', { tools: [{ type: 'web_search_20250305', name: 'web_search', ...hour }] }, '1h'],
    [
      'a tool that a turn defines',
      said({ type: 'tool_addition', tool: { type: 'tool_definition', definition } }),
      '1h',
    ],
    [
      'a call',
      { messages: [{ role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {}, ...hour }] }] },
      '1h',
    ],
    [
      'content of a result',
      said({ type: 'tool_result', tool_use_id: 't', content: [{ ...text, ...hour }, text], ...short }),
      '1h',
    ],
    [
      'content of a file',
      said({ type: 'document', source: { type: 'content', content: [{ ...text, ...hour }] } }),
      '1h',
    ],
    ['the longest of several', said({ ...text, ...hour }, { ...text, ...short }), '1h'],
    [
      'what a client names so itself',
      { tools: [{ name: 'f', input_schema: schema }], output_config: { format: { type: 'json_schema', schema } } },
      undefined,
    ],
  ]
  for (const [says, fields, mark] of rows) t.equal(native(bodyOf(fields)).cacheMark, mark, says)
  const sent = vertex!.native!.encode(deepFreeze(bodyOf(hour)), {} as ChatRequest, to(), false)
  t.equal(sent.cacheMark, '1h', 'on the other wire, too')
  const messages: ChatRequest['messages'] = [{ role: 'user', content: [{ type: 'text', text: 'a', ...hour }] } as never]
  for (const wire of plugin.wires) t.equal(wire.encode({ model: 'm', messages }, to(), false).cacheMark, '1h')
  t.end()
})

/** The content of the client's answer that the codec makes of events. */
function contentOf(events: readonly Event[]): Json[] {
  const encoder = anthropicMessages.encoder(exchange({ request: { messages: [] }, target: target() }))
  encoder.write(events)
  return JSON.parse(String(encoder.end())).content
}

t.test('what an answer cites comes to a client of the wire as it was', async t => {
  const place = { type: 'char_location', cited_text: 'r', document_index: 0, start_char_index: 0, end_char_index: 1 }
  const blocks: Json[] = [
    { type: 'text', text: 'It is ' },
    { type: 'text', text: 'rain', citations: [place, { ...place, start_char_index: 4 }] },
    { type: 'text', text: ', and ' },
    { type: 'text', text: 'wind' },
  ]
  const answer = JSON.stringify({ type: 'message', content: blocks, stop_reason: 'end_turn' })
  t.strictSame(contentOf(decodeAll(wire!.decoder('unary', target()), [answer])), blocks)
  const frames = blocks.flatMap(({ text, citations = [] }, index) => [
    { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index, delta: { type: 'text_delta', text } },
    ...(citations as Json[]).map(citation => ({
      type: 'content_block_delta',
      index,
      delta: { type: 'citations_delta', citation },
    })),
    { type: 'content_block_stop', index },
  ])
  const stream = [
    { type: 'message_start', message: { type: 'message', id: 'm' } },
    ...frames,
    { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
    { type: 'message_stop' },
  ]
  const events = decodeAll(
    wire!.decoder('stream', target()),
    stream.map(event => JSON.stringify(event)),
  )
  t.strictSame(contentOf(events), blocks)
})

/** What a provider gets of a body by a client of an organization. */
function sentOf(body: Json, at: Target): Json {
  const ex = exchange()
  ex.caller.policy = policyOf()
  const request = anthropicMessages.decode(structuredClone(body), ex)
  return wire!.native!.encode(deepFreeze(ex.input.native!.body as Json), request, at, false).body as Json
}

t.test('citations come back to the provider that made them as they were, and to no other one', async t => {
  const place = { type: 'web_search_result_location', url: 'https://a', title: 'A', encrypted_index: 'Eo8:=|é' }
  const blocks: Json[] = [
    { type: 'text', text: 'It is ' },
    { type: 'text', text: 'cold', citations: [place, { type: 'char_location', document_index: 0 }, place] },
    { type: 'text', text: 'wet', citations: [{ ...place, encrypted_index: 'other', encrypted_came_later: 'x' }] },
  ]
  const answer = JSON.stringify({ type: 'message', content: blocks, stop_reason: 'end_turn' })
  const events = decodeAll(wire!.decoder('unary', target()), [answer])
  const seals = policyOf().seals.answer()
  for (const event of events) seals.apply(event)
  const content = contentOf(events)
  t.notMatch(JSON.stringify(content), '"Eo8', 'the client sees them sealed')
  const ask = (held: Json[], at = to()) =>
    (sentOf(bodyOf({ messages: [hi, { role: 'assistant', content: held }, hi] }), at).messages as Json[])[1]!.content
  t.strictSame(ask(content), blocks)
  t.strictSame(ask(content, own), blocks)

  const [said, cold] = blocks as [Json, Json]
  const without = [said, { ...cold, citations: [(cold.citations as Json[])[1]] }, { type: 'text', text: 'wet' }]
  const changed = (change: (text: string) => string): Json[] => JSON.parse(change(JSON.stringify(content)))
  const rows: [says: string, held: Json[], at?: Target][] = [
    ['made up', blocks],
    ['without its mark', changed(text => text.replace(/mgs1\.\w{8}\.[\w-]{22}\./g, ''))],
    ['with a false mark', changed(text => text.replace(/(mgs1\.\w{8}\.)..../g, '$1AAAA'))],
    ['of another provider', content, target({ provider: { id: 'other' } })],
    ['of no known form', changed(text => text.replace(/"mgs1[^"]*"/g, '{"encrypted_index":["x"]}'))],
  ]
  for (const [says, held, at] of rows) t.strictSame(ask(held, at), without, says)
  t.strictSame(ask(blocks, own), blocks, 'who pays the provider itself sends what it has')
  t.strictSame(ask(rows[2]![1], own), without, 'but no false marks')
})

t.test('what a client wrote itself cites nothing that is encrypted, unless it pays the provider', async t => {
  const cited = { type: 'text', text: 'a', citations: [{ type: 'web_search_result_location', encrypted_index: 'i' }] }
  const place = { type: 'text', text: 'b', citations: [{ type: 'char_location' }, ...cited.citations] }
  const contents = (text: Json) => ({
    system: [text],
    messages: [
      {
        role: 'user',
        content: [
          text,
          { type: 'tool_result', tool_use_id: 't', content: [text, { type: 'image' }] },
          { type: 'document', source: { type: 'content', content: [text] }, citations: { enabled: true } },
          { type: 'search_result', source: 's', title: 't', content: [text] },
        ],
      },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'u', name: 'f', input: text }] },
      { role: 'user', content: 'Hi' },
      { role: 'system', content: [text] },
    ],
  })
  const rows: [given: Json, sent: Json][] = [
    [cited, { type: 'text', text: 'a' }],
    [place, { type: 'text', text: 'b', citations: [{ type: 'char_location' }] }],
    [
      { type: 'text', text: 'c', citations: null },
      { type: 'text', text: 'c', citations: null },
    ],
    [
      { type: 'text', text: 'd', citations: [] },
      { type: 'text', text: 'd', citations: [] },
    ],
  ]
  for (const [given, sent] of rows) {
    const expected = contents(sent)
    expected.messages[1] = contents(given).messages[1]!
    t.match(native(bodyOf(contents(given))).body, expected)
    t.strictSame(native(bodyOf(contents(given))).body.system, expected.system)
    t.strictSame(native(bodyOf(contents(given))).body.messages, expected.messages)
    t.strictSame(native(bodyOf(contents(given)), own).body.messages, contents(given).messages)
  }
})

t.test('thinking survives three turns byte for byte, for the provider that signed it alone', async t => {
  const messages: Json[] = [hi]
  const made: Json[][] = []
  const elsewhere = target({ provider: { id: 'other' } })
  let prefix = ''
  for (let turn = 0; turn < 3; turn++) {
    const blocks: Json[] = [
      { type: 'thinking', thinking: `Think 🙂 ${turn}`, signature: `Eq${turn}+/==:|é` },
      { type: 'redacted_thinking', data: `enc${turn}==` },
      { type: 'text', text: 'I look.' },
      { type: 'thinking', thinking: '', signature: `omitted${turn}` },
      { type: 'tool_use', id: `t${turn}`, name: 'f', input: { turn } },
    ]
    const answer = JSON.stringify({ type: 'message', content: blocks, stop_reason: 'tool_use' })
    const content = contentOf(decodeAll(wire!.decoder('unary', target()), [answer]))
    t.notMatch(JSON.stringify(content), `"Eq${turn}`, 'the client sees it sealed')
    made.push(blocks)
    messages.push({ role: 'assistant', content })
    messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: `t${turn}`, content: 'ok' }] })
    const body = bodyOf({ messages: [...messages] })
    const request = anthropicMessages.decode(body, exchange())

    const sent = native(body).body.messages as { role: string; content: Json[] }[]
    const replayed = sent.filter(({ role }) => role === 'assistant').map(({ content }) => content)
    t.equal(JSON.stringify(replayed), JSON.stringify(made))
    const text = JSON.stringify(sent).slice(0, -1)
    t.ok(text.startsWith(prefix), 'a longer conversation begins with the bytes of the shorter one')
    prefix = text

    // The canonical reading of the same body holds what opens each turn.
    const adaptive = target({ mapping: { reasoningEfforts: ['none', 'low'] } })
    const encoded = JSON.stringify(wire!.encode(request, adaptive, false).body)
    t.match(encoded, JSON.stringify(blocks.slice(0, 2)).slice(1, -1))
    const foreign = [native(body, elsewhere).body, wire!.encode(request, elsewhere, false).body]
    for (const other of foreign) t.notMatch(JSON.stringify(other), /thinking|Eq0|enc0|omitted0/)
  }
  const all = new Set(Array.from({ length: 100 }, () => JSON.stringify(native(bodyOf({ messages })).body)))
  t.equal(all.size, 1, 'the same body always becomes the same bytes')
})

t.test('Claude on Vertex has its model in the address and its version in the body', async t => {
  const schema = { type: 'object', properties: { a: { type: 'string' } } }
  const request: ChatRequest = {
    model: 'acme-large',
    messages: [{ role: 'user', content: 'Hi' }],
    max_tokens: 9,
    tools: [{ type: 'function', function: { name: 'f', parameters: schema, strict: true } }],
    response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
  }
  const at = target({
    mapping: { externalId: 'claude-opus-4-8@default', supports: new Set(['structured_outputs', 'tools']) },
  })
  const sent = vertex!.encode(deepFreeze(request), at, false)
  t.equal(sent.path, '/publishers/anthropic/models/claude-opus-4-8@default:rawPredict')
  t.strictSame(sent.body, {
    anthropic_version: 'vertex-2023-10-16',
    tools: [
      { name: 'f', input_schema: schema },
      {
        name: 'json_answer',
        description: 'Gives the final answer. The answer must be given by calling this tool, never as text.',
        input_schema: schema,
      },
    ],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
    max_tokens: 9,
    tool_choice: { type: 'any', disable_parallel_tool_use: true },
  })
  const streamed = vertex!.encode({ ...request, tools: null, response_format: null }, at, true)
  t.equal(streamed.path, '/publishers/anthropic/models/claude-opus-4-8@default:streamRawPredict')
  t.strictSame(streamed.body, {
    anthropic_version: 'vertex-2023-10-16',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
    max_tokens: 9,
    stream: true,
  })
  t.equal(JSON.stringify(vertex!.encode(request, at, false)), JSON.stringify(sent), 'the same bytes again')
  t.throws(() => vertex!.encode(request, target({ mapping: { externalId: '..' } }), false), RangeError)
})

t.test('thinking has the form that the model takes, whichever its client assumed', t => {
  const efforts = ['none', 'low', 'medium', 'high', 'max'] as const
  const budget = { type: 'enabled', budget_tokens: 4000 }
  const adaptive = { type: 'adaptive' }
  const supports = new Set(['reasoning'] as const)
  const newer = { reasoningEfforts: efforts, supports, parameters: new Set(['effort']) }
  const both = { reasoningEfforts: efforts, supports }
  const older = { reasoningEfforts: [], supports }
  const plain = { reasoningEfforts: [], supports: new Set([] as const) }
  const high = { output_config: { effort: 'high' } }
  const call = { type: 'tool_use', id: 'a', name: 'f', input: {} }
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'ok' }] }
  const loopOf = (...content: object[]) => [hi, { role: 'assistant', content }, result]
  const thoughtOf = (data: string) => loopOf({ type: 'redacted_thinking', data }, call)
  const looped = thoughtOf('acme:x')
  const thoughtless = loopOf(call)
  const rows: [fields: Json, mapping: object, expected: Json][] = [
    [{ thinking: budget }, newer, { thinking: adaptive, ...high }],
    [
      { thinking: budget, output_config: { effort: 'low' } },
      newer,
      { thinking: adaptive, output_config: { effort: 'low' } },
    ],
    [{ thinking: budget }, both, { thinking: budget }],
    [{ output_config: { effort: 'xhigh' } }, both, high],
    [{ thinking: adaptive, ...high }, both, { thinking: adaptive, ...high }],
    [{ thinking: adaptive, ...high }, older, { thinking: budget }],
    [
      { thinking: adaptive, output_config: { effort: 'low', task_budget: 9 } },
      older,
      { thinking: { ...budget, budget_tokens: 1024 }, output_config: { task_budget: 9 } },
    ],
    [{ thinking: adaptive, max_tokens: 1024 }, older, { max_tokens: 1024 }],
    [{ thinking: adaptive, messages: looped }, older, { thinking: budget, messages: thoughtOf('x') }],
    [{ thinking: adaptive, max_tokens: 1024, messages: looped }, older, { max_tokens: 1024, messages: thoughtless }],
    [{ thinking: adaptive, ...high }, plain, {}],
    [{ thinking: budget }, plain, {}],
  ]
  for (const [fields, mapping, expected] of rows) {
    const body = deepFreeze(bodyOf({ max_tokens: 5000, ...fields }))
    const at = target({ provider: { headers: version }, mapping })
    const request = chatOperation.adapted!(anthropicMessages.decode(body, exchange()), at, false)
    const { model: _, ...sent } = wire!.native!.encode(body, request, at, false).body
    t.strictSame(sent, { max_tokens: 5000, messages: [hi], ...expected }, JSON.stringify(fields))
  }
  t.end()
})

t.test('a body for Vertex has neither strict tools nor a form of the answer', async t => {
  const schema = { type: 'object', properties: { a: { type: 'string' } } }
  const tool = { name: 'f', input_schema: schema }
  const answer = {
    name: 'json_answer',
    description: 'Gives the final answer. The answer must be given by calling this tool, never as text.',
    input_schema: schema,
  }
  const format = { type: 'json_schema', schema }
  const chosen = (type: string, name?: string) => ({ type, ...(name && { name }), disable_parallel_tool_use: true })
  const adaptive = ['none', 'low'] as const
  const rows: [name: string, fields: Json, expected: Json, reasoningEfforts?: typeof adaptive][] = [
    ['strict tools', { tools: [{ ...tool, strict: true }] }, { tools: [tool] }],
    ['an effort stays', { output_config: { effort: 'low' } }, { output_config: { effort: 'low' } }],
    [
      'the answer comes by a tool',
      { output_config: { format } },
      { tools: [answer], tool_choice: chosen('tool', 'json_answer') },
    ],
    [
      'beside an effort and tools of its own',
      { output_config: { effort: 'low', format }, tools: [tool] },
      { output_config: { effort: 'low' }, tools: [tool, answer], tool_choice: chosen('any') },
    ],
    [
      'the tool wins over a budget',
      { output_config: { format }, thinking: { type: 'enabled', budget_tokens: 1024 } },
      { tools: [answer], tool_choice: chosen('tool', 'json_answer') },
    ],
    [
      'and over an effort that is refused without thinking',
      { output_config: { format, effort: 'max' }, thinking: { type: 'adaptive' } },
      { thinking: { type: 'disabled' }, tools: [answer], tool_choice: chosen('tool', 'json_answer') },
      adaptive,
    ],
    [
      'it wins where the model may think by default',
      { output_config: { format, effort: 'low' } },
      {
        thinking: { type: 'disabled' },
        output_config: { effort: 'low' },
        tools: [answer],
        tool_choice: chosen('tool', 'json_answer'),
      },
      adaptive,
    ],
    [
      'and where it must not think',
      { output_config: { format }, thinking: { type: 'disabled' } },
      { thinking: { type: 'disabled' }, tools: [answer], tool_choice: chosen('tool', 'json_answer') },
      adaptive,
    ],
  ]
  for (const [name, fields, expected, reasoningEfforts = []] of rows) {
    const body = deepFreeze(bodyOf(fields))
    const at = target({ mapping: { supports: new Set(['structured_outputs', 'effort']), reasoningEfforts } })
    const sent = vertex!.native!.encode(body, anthropicMessages.decode(body, exchange()), at, false)
    const common = { anthropic_version: 'vertex-2023-10-16', max_tokens: 9, messages: [hi] }
    t.strictSame(sent.body, { ...common, ...expected }, name)
  }
  const always = target({ mapping: { supports: new Set(['structured_outputs']), reasoningEfforts: ['low'] } })
  const body = bodyOf({ output_config: { format } })
  const refused = { status: 400, param: 'response_format', message: 'always thinks' }
  t.throws(() => vertex!.native!.encode(body, anthropicMessages.decode(body, exchange()), always, false), refused)
})

t.test('answers and errors of Vertex are those of the wire', async t => {
  const frames = [...readFileSync(new URL('thinking-tool.sse', golden), 'utf8').matchAll(/^data: (.*)$/gm)]
  const payloads = frames.map(([, data = '']) => data)
  t.same(decodeAll(vertex!.decoder('stream', target()), payloads), read('thinking-tool.events.json'))
  const google = JSON.stringify([{ error: { code: 403, message: 'Permission denied', status: 'PERMISSION_DENIED' } }])
  t.match(vertex!.error(403, google, target()), { status: 502, code: 'upstream_credential', failover: true })
  const own = JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: 'prompt is too long' } })
  t.match(vertex!.error(400, own, target()), { status: 400, code: 'context_length_exceeded' })
})

t.test('R4 foreign ids are the same in a call and in its result, of any length', async t => {
  const sentOf = (id: string) => {
    const call = { type: 'tool_use', id, name: 'f', input: {} }
    const result = { type: 'tool_result', tool_use_id: id, content: 'ok' }
    const messages = [hi, { role: 'assistant', content: [call] }, { role: 'user', content: [result] }]
    const [, called, answered] = native(bodyOf({ messages })).body.messages as { content: Json[] }[]
    t.equal(called!.content[0]!.id, answered!.content[0]!.tool_use_id)
    return called!.content[0]!.id as string
  }
  const plain = 'toolu_'.repeat(100)
  t.equal(sentOf(plain), plain, 'an id of the alphabet stays as it is')
  t.equal(sentOf('a:1'), 'a_u3a_1')
  const long = ':'.repeat(2_000_000)
  const spell = () => {
    const [one, other] = [sentOf(long), sentOf(`${long}1`)]
    t.match(one, /^[a-zA-Z0-9_-]{1,128}$/)
    t.not(one, other)
  }
  const [took = 0] = leastOf([() => cpuMs(spell)], ms => ms < 300)
  t.ok(took < 300, `${took} ms of CPU`)
})

t.test('instructions between calls and their results follow the results, in time in proportion to their number', t => {
  const called = { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'f', input: {} }] }
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'ok' }] }
  const said = (content: string) => ({ role: 'system', content })
  const sentOf = (...messages: Json[]) => native(bodyOf({ messages })).body.messages
  t.strictSame(sentOf(hi, called, said('a'), said('b'), result, said('c')), [
    ...[hi, called, result],
    ...[said('a'), said('b'), said('c')],
  ])
  t.strictSame(sentOf(hi, called, said('a')), [hi, called, said('a')], 'results that do not come')
  const timed = (count: number) => {
    const messages = [hi, called, ...Array.from({ length: count }, (_, at) => said(`${at}`)), result]
    return () => cpuMs(() => void sentOf(...messages))
  }
  timed(100)()
  const [one = 0, four = 0] = leastOf([timed(10_000), timed(40_000)], inProportion)
  t.ok(inProportion(one, four), `${one} ms, and ${four} ms for four times as many`)
  t.end()
})
