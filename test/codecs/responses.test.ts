/** The client wire of the Responses API: what events become, in whatever order a provider sends them. */
import t, { type Test } from 'tap'
import { openAiResponses } from '../../src/codecs/openai-responses.ts'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Event } from '../../src/core/event.ts'
import { Exchange } from '../../src/core/exchange.ts'
import type { Snapshot } from '../../src/core/snapshot.ts'
import { responses } from '../../src/endpoints/inference.ts'
import { meters } from '../../src/metering/meter.ts'
import { thrown } from '../core/kit.ts'

type Json = Record<string, unknown>

const asked = { model: 'm', input: 'Hi', stream: true }
function exchange(): Exchange {
  const snapshot = {} as Snapshot
  const body = () => Promise.reject(new Error('is not read here'))
  const signal = new Cancellation()
  return new Exchange({ meters, snapshot, endpoint: responses, headers: {}, query: '', params: {}, signal, body })
}
const decode = (given: Json) => openAiResponses.decode({ ...asked, ...given }, exchange())

/** The items of a streamed answer; also that its events agree with each other. */
function outputOf(t: Test, events: readonly Event[], given: Json = {}): Json[] {
  const ex = exchange()
  ex.request = openAiResponses.decode({ ...asked, ...given }, ex)
  const encoder = openAiResponses.encoder(ex)
  const text = events.map(event => String(encoder.write([event]) ?? '')).join('') + String(encoder.end())
  const sent = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!) as Json & { item: Json })
  t.strictSame(
    sent.map(event => event.sequence_number),
    sent.map((_, place) => place),
  )
  const done = sent.filter(({ type }) => type === 'response.output_item.done')
  const begun = sent.filter(({ type }) => /^response\.output_item\./.test(String(type)))
  t.strictSame(
    begun.map(({ type, output_index: index }) => [index, type]),
    done.flatMap((_, index) => ['added', 'done'].map(what => [index, `response.output_item.${what}`])),
    'items do not overlap',
  )
  const { output } = sent.at(-1)!.response as { output: Json[] }
  t.strictSame(
    done.map(({ item }) => item),
    output,
  )
  return output
}

/** The words of an item, or what is called with. */
const said = (item: Json): unknown => {
  const parts = (item.summary ?? item.content) as { text: string }[] | undefined
  return parts ? parts.map(part => part.text).join('|') : item.arguments
}

const text = (said: string): Event => ({ type: 'text', choice: 0, text: said })
const thought = (said: string): Event => ({ type: 'reasoning', choice: 0, text: said })
const source = (url: string): Event => ({ type: 'source', choice: 0, url })
const call = (index: number, args?: string, name?: string): Event => ({
  type: 'tool',
  choice: 0,
  index,
  ...(name !== undefined && { name, id: `call_${index}` }),
  ...(args !== undefined && { args }),
})

t.test('a source that comes before the text that it is of is cited by that text', t => {
  const output = outputOf(t, [thought('Hm'), source('https://a.example'), thought('m'), text('Yes'), text('.')])
  t.strictSame(output.map(said), ['Hmm', 'Yes.'])
  t.match(output[1], { content: [{ annotations: [{ type: 'url_citation', url: 'https://a.example' }] }] })
  t.end()
})

t.test('a source that comes at the end stands on the message that it is of', t => {
  const seal: Event = { type: 'reasoning', choice: 0, text: '', format: 'f-v1', block: 1, signature: 'acme:s' }
  const cited = (url: string, start: number): Event => Object.assign(source(url), { start, end: start + 1 })
  const ex = exchange()
  ex.request = openAiResponses.decode({ ...asked, stream: false }, ex)
  const encoder = openAiResponses.encoder(ex)
  encoder.write([text('ab'), seal, text('c'), call(0, '{}', 'f'), cited('u:c', 2), cited('u:b', 1), source('u:end')])
  const { output } = JSON.parse(String(encoder.end())) as { output: (Json & { content?: { annotations: Json[] }[] })[] }
  const notes = output.flatMap(({ content }) => (content ? [content[0]!.annotations] : []))
  const note = (url: string, start: number) => ({
    type: 'url_citation',
    url,
    title: '',
    start_index: start,
    end_index: start + 1,
  })
  t.strictSame(notes, [[note('u:b', 1)], [note('u:c', 0), note('u:end', 0)]])
  t.end()
})

t.test('what comes for a call that is whole belongs to no other one', t => {
  const events = [call(0, '{}', 'a'), call(1, '{"b":1}', 'b'), call(0, '{"late":1}'), text('x'), call(1, 'y'), call(7)]
  t.strictSame(outputOf(t, events).map(said), ['{}', '{"b":1}', 'x'])
  t.end()
})

t.test('calls whose pieces are interleaved stand one behind another, with what was said between them', t => {
  const events = [call(0, '{"a":', 'a'), text('x'), call(1, '{"b"', 'b'), text('y'), text('z'), call(2, '{', 'c')]
  const rest = [call(1, ':2}'), call(0, '1}'), thought('Hm'), call(2, '}')]
  const whole = outputOf(t, [...events, ...rest])
  t.strictSame(whole.map(said), ['{"a":1}', 'x', '{"b":2}', 'yz', '{}', 'Hm'])
  const cut = outputOf(t, [...events, { type: 'finish', choice: 0, reason: 'length' }])
  t.strictSame(cut.map(said), ['{"a":', 'x', '{"b"', 'yz', '{'])
  t.equal(cut.filter(({ status }) => status === 'incomplete').length, 1)
  t.end()
})

t.test('R3 what stands between calls and their outputs follows the outputs, as far as these come', t => {
  const called = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' })
  const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: `of ${id}` })
  const say = (role: string, content: string) => ({ role, content })
  const orderOf = (input: Json[]) =>
    decode({ input }).messages.map(({ role, content, tool_calls: calls }) =>
      calls ? calls.map(({ id }) => id).join('+') : `${role} ${content}`,
    )
  const rows: [says: string, input: Json[], order: string[]][] = [
    [
      'instructions and words',
      [called('a'), called('b'), say('developer', 's'), output('b'), say('user', 'u'), output('a'), say('user', 'v')],
      ['a+b', 'tool of b', 'tool of a', 'developer s', 'user u', 'user v'],
    ],
    [
      'an output that does not come',
      [called('a'), say('user', 'u'), called('b'), output('b'), say('user', 'v')],
      ['a', 'user u', 'b', 'tool of b', 'user v'],
    ],
    ['none at the end', [called('a'), say('user', 'u')], ['a', 'user u']],
    [
      'an output that comes again',
      [called('a'), output('a'), say('user', 'u'), output('a')],
      ['a', 'tool of a', 'user u', 'tool of a'],
    ],
  ]
  for (const [says, input, order] of rows) t.strictSame(orderOf(input), order, says)
  t.end()
})

t.test('the reasoning of an answer that was cut does not go back beside that of the one that replaced it', t => {
  const block = (at: number, text: string): Event => ({ type: 'reasoning', choice: 0, text, format: 'f-v1', block: at })
  const sealed = (at: number, text: string): Event => Object.assign(block(at, text), { signature: `acme:${text}` })
  const turnOf = (...answers: Event[][]) =>
    decode({ input: answers.flatMap(events => outputOf(t, events)) }).messages[0]
  const whole = [sealed(0, 'Hm.'), call(0, '{}', 'f')]
  for (const cut of [[block(0, 'H')], [sealed(0, 'Hm.'), text('We')], [sealed(0, 'Hm.'), sealed(1, 'So.')]]) {
    const detail = { type: 'reasoning.text', text: 'Hm.', format: 'f-v1', block_index: 0, signature: 'acme:Hm.' }
    t.match(turnOf(cut, whole), { reasoning: 'Hm.', reasoning_details: [detail] })
  }
  t.match(turnOf([sealed(0, 'Hm.'), sealed(1, 'So.')]), { reasoning: 'Hm.So.', reasoning_details: { length: 2 } })
  t.end()
})

t.test('the choice among some tools names a search by any of its types', t => {
  const tools = [{ type: 'web_search_preview' }, { type: 'function', name: 'f', parameters: {} }]
  const choice = { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'web_search_preview' }] }
  t.strictSame(decode({ tools, tool_choice: choice }).tools, [{ type: 'web_search' }])
  const other = { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'g' }] }
  t.match(
    thrown(() => decode({ tools, tool_choice: other })),
    { status: 400, param: 'tool_choice.tools' },
  )
  t.end()
})

t.test('the response repeats settings of its request, and not at any length', t => {
  const repeatedOf = (given: Json) => {
    const ex = exchange()
    ex.request = openAiResponses.decode({ ...asked, ...given }, ex)
    const encoder = openAiResponses.encoder(ex)
    const written = `${encoder.write([{ type: 'text', choice: 0, text: 'Hi' }])}${encoder.end()}`
    const all = [...written.matchAll(/"response":(\{.*\})\}$/gm)].map(([, json]) => JSON.parse(json!) as Json)
    t.equal(all.length, 3)
    return all.map(({ instructions, tools, temperature }) => ({ instructions, tools, temperature }))
  }
  const tools = [{ type: 'function', name: 'f', parameters: {} }]
  const given = { instructions: 'Be brief', tools, temperature: 0 }
  for (const repeated of repeatedOf(given)) t.strictSame(repeated, given)
  const defaults = { instructions: null, tools: [], temperature: 1 }
  const long = 'a'.repeat(256 * 1024 + 1)
  for (const most of [{ instructions: long }, { tools: [{ type: 'function', name: 'f', description: long }] }]) {
    for (const repeated of repeatedOf({ ...given, ...most })) t.strictSame(repeated, defaults)
  }
  t.end()
})
