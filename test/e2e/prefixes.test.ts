/** Providers cache what requests begin with, so that nothing of it may ever change: not between two, not as they grow. */

import t from 'tap'
import type { Json } from '../../src/json/json.ts'
import { chat, type Message } from '../helpers/chat.ts'
import { commandsOf } from '../helpers/commands.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { runs } from '../helpers/runs.ts'
import { everyWire } from './matrix/gateway.ts'
import { type ChatWire, wires } from './matrix/wires.ts'

const { upstream, gateway } = await everyWire()

const LANES = 4
/** Of each lane as many. */
const requestsOf = (full: number) => LANES * Math.ceil(runs(full) / LANES)
const cache_control = { type: 'ephemeral' }
const text = (text: string, marked = false) => ({ type: 'text', text, ...(marked && { cache_control }) })
const parameters = (...names: string[]) => ({
  type: 'object',
  properties: Object.fromEntries(names.map(name => [name, { type: 'string', description: `The ${name}` }])),
  required: names,
})
const tool = (name: string, marked: boolean) => ({
  type: 'function',
  function: { name, description: `Tells the ${name}`, parameters: parameters('city', 'unit', '10', '2') },
  ...(marked && { cache_control }),
})

/** Breakpoints wherever a client may set them, and fields that a careless encoder makes anew for each request. */
const opening: Json = {
  messages: [
    { role: 'system', content: [text('You are a guide.'), text('Be brief.', true)] },
    { role: 'user', content: [text('Here is a long book. '.repeat(50), true), text('What is it about?')] },
    { role: 'assistant', content: null, tool_calls: [call('call|1', 'time'), call('call|2', 'météo.today')] },
    { role: 'tool', tool_call_id: 'call|2', content: 'cold', tool_result_cache_control: cache_control },
    { role: 'tool', tool_call_id: 'call|1', content: [text('noon')] },
    { role: 'user', content: 'And now?' },
  ],
  tools: [tool('time', false), tool('weather', true)],
  user: 'someone',
  prompt_cache_key: 'guide',
  max_tokens: 2000,
}

function call(id: string, name: string) {
  return {
    id,
    type: 'function',
    function: { name: name.replace(/[^a-z]/g, '_'), arguments: '{"city":"Oslo","2":"b"}' },
  }
}

for (const [endpoint, path, body, requests] of [
  ['chat', '/v1/chat/completions', opening, requestsOf(100)],
  ['messages', '/v1/messages', messagesForm(), requestsOf(20)],
] as const) {
  t.test(`${endpoint}: ${requests} equal requests are equal bytes, on every wire`, async t => {
    await upstream.reset()
    await Promise.all(
      wires.map(async wire => {
        await upstream.script(wire.id, [{ text: 'ok' }])
        const lane = async () => {
          for (let i = 0; i < requests / LANES; i++) {
            const answer = await gateway.post(path, { model: wire.id, ...body })
            if (answer.status !== 200) throw new Error(`${wire.wire}: ${await answer.text()}`)
            await answer.arrayBuffer()
          }
        }
        await Promise.all(Array.from({ length: LANES }, lane))
        const seen = await upstream.record(wire.id)
        t.equal(seen.length, requests, `${wire.wire}: nothing answers in the upstream's place`)
        const bodies = new Set(seen.map(({ sha256 }) => sha256))
        t.same([...bodies].map(Boolean), [true], `${wire.wire}: one body`)
      }),
    )
  })
}

t.test('a longer conversation begins with the bytes of the shorter one, on every wire', async t => {
  await upstream.reset()
  await Promise.all(
    wires.map(async wire => {
      const reasoning = 'Let me think'
      const weather = (city: string) => ({ name: 'weather', args: { city } })
      await upstream.script(wire.id, [
        { reasoning, toolCalls: [weather('Oslo'), weather('Rome')] },
        { reasoning: 'once more', toolCalls: [weather('Łódź')] },
        { reasoning: 'enough', text: 'Cold' },
        { text: 'You are welcome' },
      ])
      const messages = [...(opening.messages as Json[])]
      for (let turn = 0; turn < 4; turn++) {
        const body = { ...opening, model: wire.id, reasoning_effort: 'high', messages }
        const { status, error, message } = await chat(gateway, turn % 2 === 0 ? 'stream' : 'whole', body)
        t.equal(status, 200, `${wire.wire}: ${error?.message}`)
        messages.push(message, ...next(message))
      }
      const bodies = (await upstream.record(wire.id)).map(({ body }) => body as Json)
      t.equal(bodies.length, 4, wire.wire)
      for (const [i, longer] of bodies.entries()) {
        if (i > 0)
          t.strictSame(beginning(wire, longer, bodies[i - 1]!), whole(wire, bodies[i - 1]!), `${wire.wire} ${i}`)
      }
    }),
  )
})

/** What a client says to an answer. */
function next({ tool_calls: calls }: Message): Json[] {
  if (!calls) return [{ role: 'user', content: 'Thank you' }]
  return calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'cold' }))
}

/** Turns and all other fields, as text; whether it streams is nothing that a provider caches by. */
function whole(wire: ChatWire, body: Json) {
  const { [wire.turns]: turns, stream: _, stream_options: __, ...rest } = body
  return { turns: (turns as unknown[]).map(turn => JSON.stringify(turn)), rest: JSON.stringify(rest) }
}

/** The same of as many turns as the shorter body has. */
function beginning(wire: ChatWire, longer: Json, shorter: Json) {
  const { turns, rest } = whole(wire, longer)
  return { turns: turns.slice(0, (shorter[wire.turns] as unknown[]).length), rest }
}

/** The same kind of request as a client of the Messages form sends it. */
function messagesForm(): Json {
  const use = (id: string) => ({ type: 'tool_use', id, name: 'weather', input: { city: 'Oslo', 2: 'b' } })
  const result = (id: string, more: Json = {}) => ({ type: 'tool_result', tool_use_id: id, content: 'cold', ...more })
  return {
    max_tokens: 2000,
    system: [text('You are a guide.'), text('Be brief.', true)],
    tools: [{ name: 'weather', description: 'Tells it', input_schema: parameters('city', '2'), cache_control }],
    messages: [
      { role: 'user', content: [text('Here is a long book. '.repeat(50), true)] },
      { role: 'assistant', content: [text('I look.'), use('toolu_1'), use('toolu_2')] },
      { role: 'user', content: [result('toolu_1'), result('toolu_2', { cache_control }), text('And now?')] },
    ],
    metadata: { user_id: 'someone' },
  }
}

/** How many marks a body has, wherever they stand. */
const marksOf = (body: unknown) => JSON.stringify(body).split('"cache_control"').length - 1

t.test('a prompt that its client does not mark is marked where a mapping or a project says so', async t => {
  const { id: project } = await commandsOf(gateway)<{ id: string }>('projects.create', {
    ...{ organization: 'default', name: 'marking', promptCache: 'auto' },
  })
  const { key } = await commandsOf(gateway)<{ key: string }>('keys.create', { project, name: 'k' })
  const as = { authorization: `Bearer ${key}` }
  const tools = [{ type: 'function', function: { name: 'time', description: 'x '.repeat(4000) } }]
  const messages = [
    { role: 'system', content: 'Be brief. '.repeat(1000) },
    { role: 'user', content: 'One' },
    { role: 'assistant', content: 'Two' },
    { role: 'user', content: 'Three' },
  ]
  const body = { tools, messages, max_tokens: 99 }
  const usage = { prompt: 5000, cached: 4000, written: 900, completion: 10 }
  for (const [model, headers, marked] of [
    ['marking', {}, true],
    ['claude', as, true],
    ['claude', {}, false],
    ['chat', as, false],
  ] as const) {
    await upstream.reset()
    await upstream.script(model, [{ text: 'ok', usage }])
    const says = `${model} ${JSON.stringify(headers) === '{}' ? 'by itself' : 'of the project'}`
    const response = await gateway.chat({ model, ...body }, headers)
    const { usage: told } = (await response.json()) as { usage: { cost_details: Json } }
    const [entry] = await upstream.record(model)
    t.equal(entry?.refused, null, says)
    t.equal(marksOf(entry!.body), marked ? 4 : 0, says)
    // Read at 0.31 and written at 2.9 instead of 2.3: 4000 × 1.99 less, 900 × 0.6 more.
    t.equal(told.cost_details.cache_saving, marked ? 0.00742 : undefined, says)
  }
  await upstream.reset()
  const own = {
    ...body,
    messages: [{ role: 'system', content: [text('Be brief. '.repeat(1000), true)] }, ...messages.slice(1)],
  }
  await gateway.chat({ model: 'marking', ...own })
  t.equal(marksOf((await upstream.record('marking'))[0]!.body), 1, 'a client that marks is left as it is')
  const message = { model: 'marking', max_tokens: 99, system: 'Be brief. '.repeat(1000), messages: messages.slice(1) }
  await gateway.post('/v1/messages', message)
  t.ok(marksOf((await upstream.record('marking'))[1]!.body) > 0, "a Messages client's own body is marked too")
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
