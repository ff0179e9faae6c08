/** Requests that no provider takes as they are, on every wire (docs/contributing/edge-cases.md#requests R1 to R20). */

import t from 'tap'
import type { Json } from '../../src/json/json.ts'
import { chat } from '../helpers/chat.ts'
import { commandsOf } from '../helpers/commands.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { readEvents } from '../helpers/sse.ts'
import { everyWire } from './matrix/gateway.ts'
import { wires } from './matrix/wires.ts'

const { upstream, gateway } = await everyWire()

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const user = (content: unknown): Json => ({ role: 'user', content })
const said = (content: unknown): Json => ({ role: 'assistant', content })
const told = (role: string, content: string): Json => ({ role, content })
const call = (id: string, name = 'f', args = '{}') => ({ id, type: 'function', function: { name, arguments: args } })
const calls = (...all: object[]): Json => ({ role: 'assistant', content: null, tool_calls: all })
const result = (id: string, content: unknown = 'ok'): Json => ({ role: 'tool', tool_call_id: id, content })
const fn = (name: string, parameters?: object) => ({
  type: 'function',
  function: { name, ...(parameters && { parameters }) },
})
const tools = [fn('f', { type: 'object', properties: {} })]
const see = (url: string): Json => ({ messages: [user([{ type: 'image_url', image_url: { url } }])] })
const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }
const hi = [user('Hi')]
const rich = {
  $defs: { node: { type: 'object', properties: { next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } } } },
  type: 'object',
  properties: {
    a: { oneOf: [{ const: 'x' }, { type: ['integer', 'null'], minimum: 0 }] },
    b: { allOf: [{ $ref: '#/$defs/node' }] },
    c: { type: 'string', format: 'date-time', pattern: '^.*$', default: 'now' },
  },
  required: ['a'],
  additionalProperties: false,
}

const requests: readonly [name: string, body: Json][] = [
  ['R1 a data URL with parameters', see(`data:image/png;charset=utf-8;base64,${png}`)],
  ['R1 a media type in capitals', see(`data:IMAGE/PNG;base64,${png}`)],
  ['R1 base64 in lines', see(`data:image/png;base64,${png.slice(0, 40)}\r\n${png.slice(40)}`)],
  ['R1 a wrong media type', see(`data:image/jpeg;base64,${png}`)],
  [
    'R3 a call without its result',
    { tools, messages: [user('a'), calls(call('1'), call('2')), result('1'), user('b')] },
  ],
  ['R3 results out of order', { tools, messages: [user('a'), calls(call('1'), call('2')), result('2'), result('1')] }],
  [
    'R3 a result twice',
    { tools, messages: [user('a'), calls(call('1')), result('1'), result('1', 'again'), user('b')] },
  ],
  ['R3 a result behind what the user said', { tools, messages: [user('a'), calls(call('1')), user('b'), result('1')] }],
  [
    'R3 an id that is used again',
    {
      tools,
      messages: [user('a'), calls(call('1')), result('1'), said('b'), user('c'), calls(call('1')), result('1')],
    },
  ],
  [
    'R3 pictures and a failure in results',
    {
      tools,
      messages: [
        user('a'),
        calls(call('1'), call('2')),
        result('1', [{ type: 'text', text: 'See' }, picture]),
        { ...result('2', [picture]), is_error: true },
        said('b'),
        user('c'),
      ],
    },
  ],
  ['R4 an id in a foreign alphabet', { tools, messages: [user('a'), calls(call('call|fc.é')), result('call|fc.é')] }],
  ['R4 a long id', { tools, messages: [user('a'), calls(call('c'.repeat(90))), result('c'.repeat(90))] }],
  ['R5 users in a row', { messages: [user('a'), user('b')] }],
  ['R5 assistants in a row', { messages: [user('a'), said('b'), said('c'), user('d')] }],
  ['R5 an assistant first', { messages: [said('a'), user('b')] }],
  ['R5 an empty answer', { messages: [user('a'), said(''), user('b')] }],
  [
    'R5 an empty text part',
    {
      messages: [
        user([
          { type: 'text', text: '' },
          { type: 'text', text: 'a' },
        ]),
      ],
    },
  ],
  ['R5, R15 a last message that says nothing', { messages: [user('a'), said('b'), user('')] }],
  ['R5 only a system message', { messages: [told('system', 'a')] }],
  ['R6 a developer', { messages: [told('developer', 'a'), user('b')] }],
  ['R7 a system message in the middle', { messages: [user('a'), said('b'), told('system', 'c'), user('d')] }],
  [
    'R7 a system message between a call and its result',
    {
      tools,
      messages: [user('a'), calls(call('1')), told('system', 'c'), result('1')],
    },
  ],
  ['R8 both limits', { messages: hi, max_tokens: 50, max_completion_tokens: 40 }],
  ['R9 fields that are null', { messages: hi, top_p: null, stop: '', tools: null, response_format: null, user: null }],
  ['R10 no tools in the list, and a choice', { messages: hi, tools: [], tool_choice: 'auto' }],
  ['R11 a choice without tools', { messages: hi, tool_choice: 'auto', parallel_tool_calls: false }],
  ['R12 a schema with everything', { messages: hi, tools: [fn('f', rich)] }],
  ['R13 a function without parameters', { messages: hi, tools: [fn('f')] }],
  [
    'R14 thinking of somebody else',
    {
      tools,
      messages: [
        user('a'),
        {
          ...calls({ ...call('1'), extra_content: { vendor: { thought_signature: 'other:sig' } } }),
          reasoning_details: ['anthropic-claude-v1', 'openai-responses-v1', 'mistral-thinking-v1'].map(format => ({
            type: 'reasoning.text',
            text: 'a secret',
            signature: 'other:sig',
            format,
          })),
        },
        result('1'),
      ],
    },
  ],
  ['R15 an answer that shall go on', { messages: [user('a'), said('Once upon ')] }],
  [
    'allowed tools',
    {
      messages: hi,
      tools: [fn('secret', { type: 'object', properties: { a: { const: 'a secret' } } }), fn('f')],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'f' } }] },
      },
    },
  ],
  ['R16 JSON, and nobody says so', { messages: hi, response_format: { type: 'json_object' } }],
  ['R19 a tool in another alphabet', { messages: hi, tools: [fn('météo.today')] }],
  ['R20 half a character', { messages: [user('a \ud83d b'), said('\ude00'), user('c')] }],
]

for (const [name, body] of requests) {
  t.test(`${name}, on every wire`, async t => {
    await upstream.reset()
    await Promise.all(
      wires.map(async ({ wire, id }) => {
        await upstream.script(id, [{ text: '{"ok":true}' }])
        const { status, message, error } = await chat(gateway, 'whole', { model: id, ...body })
        const [entry] = await upstream.record(id)
        t.equal(status, 200, `${wire}: ${error?.message}`)
        t.equal(entry?.refused, null, `${wire}: the provider takes it`)
        t.equal(message.content, '{"ok":true}', wire)
        t.notMatch(JSON.stringify(entry?.body), /a secret|other:sig/, wire)
      }),
    )
  })
}

t.test('R19 calls have the names of their tools, however long and in whatever alphabet, on every wire', async t => {
  await upstream.reset()
  for (const name of ['météo.today', `mcp__${'server_'.repeat(6)}_${'and_its_tool_'.repeat(4)}`, '日本'.repeat(5)]) {
    const asked = { tools: [fn(name), fn('f')], tool_choice: { type: 'function', function: { name } } }
    for (const { id } of wires) {
      await upstream.script(id, [{ toolCalls: 'offered' }])
      for (const mode of ['whole', 'stream'] as const) {
        const { message, error } = await chat(gateway, mode, { model: id, messages: hi, ...asked })
        const [made] = message.tool_calls ?? []
        t.equal(made?.function.name, name, `${id}, ${mode}: ${error?.message}`)
        const messages = [...hi, message, result(made!.id)]
        const next = await chat(gateway, mode, { model: id, messages, tools: asked.tools })
        t.equal(next.status, 200, `${id}, ${mode}: ${next.error?.message}`)
      }
    }
  }
  t.strictSame((await upstream.record()).map(({ refused }) => refused).filter(Boolean), [], 'no provider refuses it')
})

t.test('long texts arrive as they were sent, on every wire', async t => {
  await upstream.reset()
  const texts = ['a "quoted" line\n', 'é€😀 \\ ', 'plain '].map(text => text.repeat(2000).trim())
  const [rule, question, file] = texts as [string, string, string]
  const messages = [
    told('system', rule),
    user('Hi'),
    said('Hello'),
    user([
      { type: 'text', text: question },
      { type: 'text', text: file },
    ]),
  ]
  await Promise.all(
    wires.map(async ({ wire, id }) => {
      await upstream.script(id, [{ text: 'ok' }])
      const { status, error } = await chat(gateway, 'whole', { model: id, messages })
      t.equal(status, 200, `${wire}: ${error?.message}`)
      const [entry] = await upstream.record(id)
      const got = JSON.stringify(entry?.body)
      for (const text of texts) t.ok(got.includes(JSON.stringify(text).slice(1, -1)), `${wire}: ${text.slice(0, 5)}`)
    }),
  )
})

t.test('functions, their calls and their results are translated on every wire', async t => {
  await upstream.reset()
  const functions = [{ name: 'f', description: 'd', parameters: { type: 'object', properties: { k: {} } } }]
  const asked = { functions, function_call: { name: 'f' } }
  for (const { wire, id } of wires) {
    const step = { toolCalls: [{ name: 'f', args: { k: 1 } }] }
    await upstream.script(id, [step, step, { text: 'Done' }])
    const first = await chat(gateway, 'whole', { model: id, messages: hi, ...asked })
    const { message, finish, error } = first
    t.match(
      message,
      { content: null, function_call: { name: 'f', arguments: '{"k":1}' } },
      `${wire}: ${error?.message}`,
    )
    t.strictSame([message.tool_calls, finish], [undefined, 'function_call'], wire)
    const stream = await gateway.chat({ model: id, messages: hi, stream: true, ...asked })
    type Chunk = {
      choices: { delta: { function_call?: { name?: string; arguments: string } }; finish_reason: unknown }[]
    }
    const choices = (await readEvents<Chunk>(stream)).data.flatMap(({ choices }) => choices)
    const deltas = choices.flatMap(({ delta }) => delta.function_call ?? [])
    t.equal(deltas[0]?.name, 'f', wire)
    t.strictSame(JSON.parse(deltas.map(delta => delta.arguments).join('')), { k: 1 }, wire)
    t.equal(choices.at(-1)?.finish_reason, 'function_call', wire)
    const messages = [...hi, message, { role: 'function', name: 'f', content: 'ok' }]
    const next = await chat(gateway, 'whole', { model: id, messages, functions })
    t.match(next, { status: 200, finish: 'stop', message: { content: 'Done' } }, wire)
  }
  t.strictSame((await upstream.record()).map(({ refused }) => refused).filter(Boolean), [], 'no provider refuses it')
})

t.test('custom tools pass to the wires that have them, both ways, and are refused on all others', async t => {
  await upstream.reset()
  const custom = { type: 'custom', custom: { name: 'note', format: { type: 'text' } } }
  const asked = { tools: [...tools, custom], tool_choice: { type: 'custom', custom: { name: 'note' } } }
  const called = (id: unknown) => ({ id, type: 'custom', custom: { name: 'note', input: 'no "json"' } })
  for (const { wire, id } of wires) {
    const note = { toolCalls: [{ name: 'note', input: 'no "json"' }] }
    await upstream.script(id, [note, note, { text: 'Done' }])
    const { status, message, error, finish } = await chat(gateway, 'whole', { model: id, messages: hi, ...asked })
    if (!wire.startsWith('openai.')) {
      t.match({ status, error }, { status: 400, error: { param: 'tools', message: /type "custom"/ } }, wire)
      continue
    }
    const [call] = message.tool_calls ?? []
    t.strictSame({ call, finish }, { call: called(call?.id), finish: 'tool_calls' }, `${wire}: ${error?.message}`)
    const stream = await gateway.chat({ model: id, messages: hi, stream: true, ...asked })
    const { data } = await readEvents<{ choices: { delta: { tool_calls?: Json[] } }[] }>(stream)
    const deltas = data.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.tool_calls ?? []))
    t.match(deltas[0], { index: 0, id: String, type: 'custom', custom: { name: 'note', input: '' } }, wire)
    t.equal(deltas.map(({ custom }) => (custom as Json).input).join(''), 'no "json"', wire)
    const next = await chat(gateway, 'whole', { model: id, messages: [...hi, message, result(call!.id)], ...asked })
    t.match({ status: next.status, content: next.message.content }, { status: 200, content: 'Done' }, wire)
  }
  t.strictSame((await upstream.record()).map(({ refused }) => refused).filter(Boolean), [], 'no provider refuses it')
})

t.test(
  'parameters that the interface does not list reach the wires that have them, once the project says so',
  async t => {
    await upstream.reset()
    const command = commandsOf(gateway)
    const asked = { messages: hi, stop: ['a stop'], seed: 5, logprobs: true, top_logprobs: 1, logit_bias: { 5: 1 } }
    const sent = async (wire: string, id: string) => {
      await upstream.script(id, [{ text: 'ok' }])
      // Newer models of Claude refuse it, as they refuse a temperature.
      const k = wire.startsWith('anthropic.') ? {} : { top_k: 7 }
      const { status, error } = await chat(gateway, 'whole', { model: id, ...asked, ...k })
      t.equal(status, 200, `${wire}: ${error?.message}`)
      const entry = (await upstream.record(id)).at(-1)
      t.equal(entry?.refused, null, wire)
      return JSON.stringify(entry?.body)
    }
    for (const { wire, id } of wires) t.notMatch(await sent(wire, id), /a stop|seed|logprobs|logit_bias/, wire)
    await command('projects.update', { project: 'default', passParameters: 'on' })
    t.teardown(() => command('projects.update', { project: 'default', passParameters: 'off' }))
    const seen = await Promise.all(wires.map(async ({ wire, id }) => [wire, await sent(wire, id)] as const))
    const withStop = seen.flatMap(([wire, body]) => (body.includes('a stop') ? [wire] : []))
    const all = wires.map(({ wire }) => wire)
    t.strictSame(
      withStop,
      all.filter(wire => wire !== 'openai.responses'),
      'only Responses has no stop',
    )
  },
)

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
