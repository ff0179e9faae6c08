/**
 * The client wire of the Responses API as a whole: `test/golden/responses-client` holds a body with the chat request that it
 * becomes, and events with the items and the typed events that are written of them. Besides: every field, item, tool and
 * event that the types of the official client name stands in docs/responses.md, with what becomes of it.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { openAiResponses } from '../../src/codecs/openai-responses.ts'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Event } from '../../src/core/event.ts'
import { Exchange } from '../../src/core/exchange.ts'
import type { Snapshot } from '../../src/core/snapshot.ts'
import { responses } from '../../src/endpoints/inference.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { meters } from '../../src/metering/meter.ts'
import { thrown } from '../core/kit.ts'
import { textOf } from '../helpers/sources.ts'
import { deepFreeze } from '../plugins/wire-kit.ts'

type Json = Record<string, unknown>

const golden = (name: string) =>
  JSON.parse(readFileSync(new URL(`../golden/responses-client/${name}.json`, import.meta.url), 'utf8'))

function exchange(): Exchange {
  const snapshot = {} as Snapshot
  const body = () => Promise.reject(new Error('is not read here'))
  const signal = new Cancellation()
  return new Exchange({ meters, snapshot, endpoint: responses, headers: {}, query: '', params: {}, signal, body })
}
const decode = (body: unknown) => openAiResponses.decode(deepFreeze(body), exchange())

t.test('a golden body becomes its chat request', async t => {
  t.strictSame(decode(golden('agent.body')), golden('agent.request'))
})

interface Answer {
  readonly says: string
  readonly tools?: readonly Json[]
  readonly events: readonly Event[]
  /** Names of the typed events, without `response.`. */
  readonly stream: readonly string[]
  /** The last event's status and items. */
  readonly status: string
  readonly output: readonly Json[]
}

/** Without what differs from answer to answer. */
const plain = (items: unknown, id: string): unknown =>
  JSON.parse(
    JSON.stringify(items)
      .replaceAll(id, 'ID')
      .replace(/"encrypted_content":"[^"]*"/g, '"encrypted_content":"…"'),
  )

t.test('golden events become their items, whole and as typed events', async t => {
  for (const { says, tools = [], events, stream, status, output } of golden('answers') as Answer[]) {
    for (const streams of [true, false]) {
      const ex = exchange()
      ex.request = openAiResponses.decode({ model: 'm', input: 'Hi', tools, stream: streams }, ex)
      const encoder = openAiResponses.encoder(ex)
      const written = events.map(event => String(encoder.write([event]) ?? '')).join('') + String(encoder.end())
      const sent = [...written.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!) as Json)
      const last = (streams ? sent.at(-1)!.response : JSON.parse(written)) as Json
      t.strictSame(plain(last.output, ex.logId), output, `${says}, ${streams ? 'streamed' : 'whole'}`)
      t.equal(last.status, status, says)
      if (!streams) continue
      const names = [...written.matchAll(/^event: response\.(.*)$/gm)].map(([, name]) => name!)
      t.strictSame(names, stream, says)
      t.strictSame(
        sent.map(({ type }) => type),
        names.map(name => `response.${name}`),
        'every event has its name twice',
      )
    }
  }
})

/** What only providers of this wire can serve. */
const passed: readonly (readonly [given: Json, only: string])[] = [
  ...[
    'file_search',
    'computer',
    'computer_use_preview',
    'mcp',
    'code_interpreter',
    'programmatic_tool_calling',
    'image_generation',
    'local_shell',
    'shell',
    'tool_search',
    'apply_patch',
  ].map(type => [{ tools: [{ type }] }, 'tools[0].type'] as const),
  ...[
    'file_search_call',
    'computer_call',
    'computer_call_output',
    'tool_search_call',
    'tool_search_output',
    'additional_tools',
    'agent_message',
    'agent_reasoning',
    'new_item',
    'compaction',
    'code_interpreter_call',
    'local_shell_call',
    'local_shell_call_output',
    'shell_call',
    'shell_call_output',
    'apply_patch_call',
    'apply_patch_call_output',
    'mcp_list_tools',
    'mcp_approval_request',
    'mcp_approval_response',
    'mcp_call',
    'compaction_trigger',
    'program',
    'program_output',
  ].map(type => [{ input: [{ role: 'user', content: 'Hi' }, { type }] }, 'input[1].type'] as const),
]

const refused: readonly (readonly [given: Json, param: string])[] = [
  [{ prompt: { id: 'p' } }, 'prompt'],
  [{ conversation: 'c' }, 'conversation'],
  [{ background: true }, 'background'],
  [{ truncation: 'middle' }, 'truncation'],
  [{ tools: [{ type: 'function', name: 'f' }], tool_choice: { type: 'mcp', server_label: 's' } }, 'tool_choice'],
  [{ tools: [{ type: 'function', name: 'f' }], tool_choice: { type: 'function', name: 'g' } }, 'tool_choice.name'],
]

t.test('items and tools of this wire alone name the place that other wires refuse', async t => {
  for (const [given, only] of passed) {
    const ex = exchange()
    openAiResponses.decode(deepFreeze({ model: 'm', input: 'Hi', ...given }), ex)
    t.equal(ex.input.native?.only, only, JSON.stringify(given))
  }
})

t.test('a search that an item adds counts as one of the request', async t => {
  const search = { type: 'web_search', search_context_size: 'low' }
  const f = { type: 'function', name: 'f' }
  const hi = { role: 'user', content: 'Hi' }
  const added: [says: string, given: Json][] = [
    ['alone', { input: [hi, { type: 'additional_tools', role: 'developer', tools: [search] }] }],
    ['beside functions', { tools: [f], input: [{ type: 'additional_tools', tools: [f, search] }, hi] }],
    ['in a namespace', { input: [{ type: 'additional_tools', tools: [{ type: 'namespace', tools: [search] }] }, hi] }],
    ['by an item of another type', { input: [hi, { type: 'new_item', tools: [search] }] }],
    ['twice', { tools: [search], input: [hi, { type: 'additional_tools', tools: [search] }] }],
  ]
  for (const [says, given] of added) {
    const { tools = [] } = decode({ model: 'm', ...given }) as { tools?: Json[] }
    t.strictSame(
      tools.filter(({ type }) => type === 'web_search'),
      [search],
      says,
    )
  }
  for (const type of [
    'web_search_preview',
    'web_search_preview_2025_03_11',
    'web_search_2025_08_26',
    'web_search_next',
  ]) {
    const given = { input: [hi, { type: 'additional_tools', tools: [{ type }] }] }
    t.match(decode({ model: 'm', ...given }), { tools: [{ type: 'web_search' }] }, type)
  }
})

t.test('a choice among the tools that an item adds goes to providers of this wire as it came', async t => {
  const input = [
    { role: 'user', content: 'Hi' },
    {
      type: 'additional_tools',
      tools: [
        { type: 'function', name: 'g' },
        { type: 'mcp', server_label: 's' },
      ],
    },
  ]
  const choices = [
    { type: 'function', name: 'g' },
    { type: 'custom', name: 'g' },
    { type: 'mcp', server_label: 's' },
    { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'g' }] },
  ]
  for (const tools of [undefined, [{ type: 'function', name: 'f' }]]) {
    for (const tool_choice of choices) {
      const ex = exchange()
      openAiResponses.decode(deepFreeze({ model: 'm', input, tools, tool_choice }), ex)
      t.match(ex.input.native, { only: 'input[1].type', body: { tool_choice } }, JSON.stringify(tool_choice))
    }
  }
})

t.test('what no provider here serves is a 400 that names it', async t => {
  for (const [given, param] of refused) {
    t.match(
      thrown(() => decode({ model: 'm', input: 'Hi', ...given })) as GatewayError,
      { status: 400, param },
      JSON.stringify(given),
    )
  }
})

/** Types of the official client, as text. */
const types = textOf('node_modules/openai/resources/responses/responses.d.ts')
const block = (start: RegExp, end: string): string => {
  const at = types.search(start)
  if (at < 0) throw new Error(`the client has no ${start}`)
  return types.slice(at, types.indexOf(end, at))
}
const literal = (body: string): string[] =>
  [...body.matchAll(/^\s+type\??: ((?:'[a-z_0-9]+'(?: \| )?)+)(?: \| null)?;/gm)].flatMap(([, all]) =>
    [...all!.matchAll(/'([a-z_0-9]+)'/g)].map(([, name]) => name!),
  )
/** The `type` of each member of a union. */
function membersOf(union: string): string[] {
  const text = block(new RegExp(`export type ${union} = `), ';')
  return [...text.matchAll(/(?:= |\| )([\w.]+)/g)].flatMap(([, name]) => {
    const simple = name!.split('.').at(-1)!
    const spaces = name!.includes('.') ? ' {4}' : ''
    const body = block(
      new RegExp(`^${spaces}(?:export )?interface ${simple} \\{`, 'm'),
      name!.includes('.') ? '\n    }' : '\n}',
    )
    return literal(body).slice(0, 2)
  })
}

t.test('the page says what becomes of all that the official client names', async t => {
  const page = textOf('docs/responses.md')
  const body = block(/export interface ResponseCreateParamsBase \{/, '\n}')
  const fields = [...body.matchAll(/^ {4}(\w+)\??:/gm)].map(([, name]) => name!)
  // All but the one that clients send.
  const events = [...types.matchAll(/^ {4}type: 'response\.([a-z_.]+)';/gm)]
    .map(([, name]) => name!)
    .filter(name => name !== 'create')
  const named = new Set([
    ...fields,
    ...membersOf('ResponseInputItem'),
    ...membersOf('Tool'),
    ...[...block(/export type ResponseIncludable = /, ';').matchAll(/'([\w.]+)'/g)].map(([, name]) => name!),
  ])
  t.ok(fields.length >= 30 && events.length >= 40 && named.size > 70, `${fields.length} ${events.length} ${named.size}`)
  t.strictSame(
    [...named, ...events].filter(name => !page.includes(`\`${name}\``)),
    [],
  )
})
