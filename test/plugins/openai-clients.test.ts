/** What the official client of OpenAI needs of a stream, and counts that a provider leaves out. */

import t from 'tap'
import { ResponsesDecoder } from '../../plugins/openai-responses/decode.ts'
import { ChatDecoder } from '../../plugins/shared/chat-completions/decoder.ts'
import { openAiChat } from '../../src/codecs/openai-chat.ts'
import type { Event } from '../../src/core/event.ts'
import type { Json } from '../../src/json/json.ts'
import { exchange, principal, thrown } from '../core/kit.ts'
import { target } from './wire-kit.ts'

const chunk = (delta: Json, finish_reason: string | null = null, more: Json = {}) =>
  JSON.stringify({ id: 'x1', choices: [{ index: 0, delta, finish_reason }], ...more })
const read = (...frames: string[]): Event[] => {
  const decoder = new ChatDecoder('stream', target())
  return [...frames.flatMap(data => decoder.frame({ data })), ...decoder.frame({ data: '[DONE]' }), ...decoder.end()]
}
const call = (index: number, args: string, name?: string) => ({
  index,
  ...(name && { id: `id${index}` }),
  function: { ...(name && { name }), arguments: args },
})
const tools = (events: Event[]) =>
  events.flatMap(event => (event.type === 'tool' ? [`${event.index}${event.name ?? ''} ${event.args ?? ''}`] : []))
const streamed = (events: Event[]): Json[] => {
  const ex = exchange({
    request: { model: 'm', messages: [{ role: 'user', content: 'a' }], stream: true },
    target: target(),
    principal,
  } as never)
  const encoder = openAiChat.encoder(ex)
  return String(encoder.write(events))
    .split('\n\n')
    .filter(Boolean)
    .map(line => JSON.parse(line.slice(6)).choices[0].delta)
}
const refused = (more: Json) =>
  thrown(() => openAiChat.decode({ model: 'm', messages: [{ role: 'user', content: 'a' }], ...more })) as {
    param: string
  }

t.test('C22 a call is complete before the next one begins', async t => {
  t.strictSame(
    tools(
      read(
        chunk({ tool_calls: [call(0, '', 'f'), call(1, '', 'g')] }),
        chunk({ tool_calls: [call(0, '{"a"')] }),
        chunk({ tool_calls: [call(1, '{"b"')] }),
        chunk({ tool_calls: [call(0, ':1}')] }),
        chunk({ tool_calls: [call(1, ':2}')] }),
        chunk({}, 'tool_calls'),
      ),
    ),
    ['0f ', '0 {"a"', '0 :1}', '1g {"b"', '1 :2}'],
  )
  t.strictSame(
    tools(
      read(
        chunk({ tool_calls: [call(0, '', 'f')] }),
        chunk({ tool_calls: [call(1, '{}', 'g')] }),
        chunk({}, 'tool_calls'),
      ),
    ),
    ['0f ', '0 {}', '1g {}'],
    'C18 also one without arguments',
  )
  const cut = new ChatDecoder('stream', target())
  const events = cut.frame({ data: chunk({ tool_calls: [call(0, '', 'f'), call(1, '{"b"', 'g')] }) })
  t.strictSame(tools([...events, ...cut.end()]), ['0f ', '1g {"b"'], 'what waited in a stream that was cut is told')
})

t.test('C5 a choice that says nothing has a role', async t => {
  t.strictSame(streamed(read(chunk({ role: 'assistant', content: '' }), chunk({}, 'length'))), [
    { role: 'assistant', content: null },
  ])
})

t.test('native blocks come at once', async t => {
  const block = (type: string): Event => ({ type: 'native', choice: 0, provider: 'p', block: { type } })
  t.strictSame(streamed([block('a'), block('b'), { type: 'finish', choice: 0, reason: 'stop' }]), [
    { role: 'assistant', content: null },
    {
      provider_native_blocks: [
        { type: 'a', provider: 'p' },
        { type: 'b', provider: 'p' },
      ],
    },
    {},
  ])
})

t.test('an answer begins with the fingerprint of the system that gives it, if there is one', async t => {
  const start = (more: Json) => read(chunk({ content: 'a' }, 'stop', more))[0]
  t.strictSame(start({ system_fingerprint: 'fp_1' }), { type: 'start', id: 'x1', fingerprint: 'fp_1' })
  for (const none of [null, '', 7]) t.strictSame(start({ system_fingerprint: none }), { type: 'start', id: 'x1' })
})

t.test('C4 a count that is null is none', async t => {
  const usage = (report: Json) =>
    read(chunk({ content: 'a' }), chunk({}, 'stop', { usage: report })).find(event => event.type === 'usage')
  t.match(usage({ prompt_tokens: 12, completion_tokens: null }), { usage: { prompt: 12, completion: undefined } })
  t.match(usage({ prompt_tokens: 12, total_tokens: 20 }), { usage: { prompt: 12, completion: 8 } })
  t.match(usage({ prompt_tokens: 12, completion_tokens: 0, total_tokens: 12 }), {
    usage: { prompt: 12, completion: 0 },
  })
})

t.test('a response that says that it is incomplete is not complete', async t => {
  for (const [status, last] of [
    ['incomplete', { type: 'finish', reason: 'length' }],
    ['failed', { type: 'error' }],
  ] as const) {
    const decoder = new ResponsesDecoder('stream', target())
    const item = { type: 'message', content: [{ type: 'output_text', text: 'half' }] }
    const response = { status, incomplete_details: { reason: 'max_output_tokens' }, output: [item] }
    t.match(decoder.frame({ data: JSON.stringify({ type: 'response.completed', response }) }).at(-1), last)
  }
})

t.test('a tool choice that is wrong is refused for what is wrong', async t => {
  const { param } = { param: (tool_choice: unknown) => refused({ tool_choice }).param }
  t.equal(param({ type: 'function' }), 'tool_choice.function')
  t.equal(param({}), 'tool_choice.type')
  t.equal(param({ type: 'web_search' }), 'tool_choice')
})
