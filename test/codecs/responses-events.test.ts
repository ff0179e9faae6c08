/** The typed events of a streamed response, whatever it holds and however it ends. */
import t, { type Test } from 'tap'
import { openAiResponses } from '../../src/codecs/openai-responses.ts'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Event } from '../../src/core/event.ts'
import { Exchange } from '../../src/core/exchange.ts'
import type { Snapshot } from '../../src/core/snapshot.ts'
import { responses } from '../../src/endpoints/inference.ts'
import { errors, type GatewayError } from '../../src/lib/error.ts'
import { meters } from '../../src/metering/meter.ts'

type Json = Record<string, unknown>
interface Sent extends Json {
  readonly type: string
  readonly item?: Json
  readonly response?: Json
}

const tools = [{ type: 'function', name: 'f', parameters: {} }, { type: 'custom', name: 'c' }, { type: 'web_search' }]

/** The events of a stream; also what holds of all events. */
function stream(t: Test, events: readonly Event[], error?: GatewayError): Sent[] {
  const body = () => Promise.reject(new Error('is not read here'))
  const facts = { snapshot: {} as Snapshot, endpoint: responses, headers: {}, query: '', params: {}, body }
  const ex = new Exchange({ meters, ...facts, signal: new Cancellation() })
  ex.request = openAiResponses.decode({ model: 'm', input: 'Hi', stream: true, tools }, ex)
  Object.assign(ex.usage, { prompt: 9, completion: 4, input_cache_read: 3, input_cache_write: 2 })
  const encoder = openAiResponses.encoder(ex)
  const text =
    events.map(event => String(encoder.write([event]) ?? '')).join('') +
    String(error ? encoder.fail(error) : encoder.end())
  t.notMatch(text, '[DONE]')
  const blocks = text.split('\n\n').filter(Boolean)
  const sent = blocks.map((block, place) => {
    const [, type, data] = /^event: (.+)\ndata: (.+)$/.exec(block) ?? []
    const event = JSON.parse(data!) as Sent
    t.equal(event.type, type, 'the line of the event names its type')
    t.equal(event.sequence_number, place)
    if (type !== 'error') t.notOk(event.error, 'the client throws on any other event with an error')
    return event
  })
  for (const { type, response } of sent.slice(0, 2)) {
    t.match(type, /^response\.(created|in_progress)$/)
    t.match(response, { status: 'in_progress', output: [] })
    t.notOk(response?.usage)
  }
  const added = sent.filter(({ type }) => type === 'response.output_item.added').map(({ item }) => item!)
  const done = sent.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item!)
  const identity = ({ id, type, call_id }: Json) => [id, type, call_id]
  t.strictSame(done.map(identity), added.map(identity), 'id, type and call_id stay')
  t.strictSame(sent.at(-1)!.response!.output, done, 'the last event repeats the items')
  return sent
}

const finish = (reason: Extract<Event, { type: 'finish' }>['reason']): Event => ({ type: 'finish', choice: 0, reason })
const text = (said: string): Event => ({ type: 'text', choice: 0, text: said })
const call = (index: number, name: string, args?: string): Event => ({
  ...{ type: 'tool', choice: 0, index, id: `call_${index}`, name },
  ...(args !== undefined && { args }),
})

t.test('events have the members that the client reads without asking', async t => {
  const source: Event = { type: 'source', choice: 0, url: 'https://a.example', start: 0, end: 3 }
  const thought: Event = { type: 'reasoning', choice: 0, text: 'Hm', signature: 'acme:s' }
  const sent = stream(t, [
    thought,
    text('Yes'),
    source,
    call(0, 'f'),
    call(1, 'c', '{"input":"x"}'),
    finish('tool_calls'),
  ])
  const of = (type: string) => sent.filter(event => event.type === `response.${type}`)
  for (const type of ['output_text.delta', 'output_text.done']) t.match(of(type), [{ logprobs: [] }], type)
  t.match(of('function_call_arguments.done'), [{ name: 'f', arguments: '{}' }])
  t.match(of('custom_tool_call_input.done'), [{ input: 'x' }])
  const items = of('output_item.done').map(({ item }) => item!)
  t.strictSame(
    items.map(({ id }) => String(id).split('_')[0]),
    ['rs', 'msg', 'fc', 'ctc'],
  )
  t.match(items[1], { content: [{ annotations: [{ type: 'url_citation', start_index: 0, end_index: 3 }] }] })
  t.match(items[0]!.encrypted_content, /./, 'a reasoning item is done with what it is sealed with')
  t.match(sent.at(-1), {
    type: 'response.completed',
    response: { id: /^resp_/, usage: { input_tokens_details: { cached_tokens: 3, cache_write_tokens: 2 } } },
  })
})

t.test('sources that come after a signed text stand on its message', async t => {
  const seal: Event = { type: 'reasoning', choice: 0, text: '', format: 'f-v1', block: 1, signature: 'acme:s' }
  const source = (place = {}): Event => ({ type: 'source', choice: 0, url: 'https://a.example', ...place })
  const cited = { type: 'url_citation', url: 'https://a.example' }
  const rows: [says: string, events: Event[], items: Json[]][] = [
    [
      'with a place',
      [text('Cold'), seal, source({ start: 0, end: 4 })],
      [{ content: [{ annotations: [cited] }] }, { type: 'reasoning' }],
    ],
    ['without one', [text('Cold'), seal, source()], [{ content: [{ annotations: [cited] }] }, { type: 'reasoning' }]],
    [
      'before a call',
      [text('Cold'), seal, source(), call(0, 'f', '{}')],
      [{ content: [{ annotations: [cited] }] }, { type: 'reasoning' }, { type: 'function_call' }],
    ],
  ]
  for (const [says, events, items] of rows) {
    const sent = stream(t, [...events, finish('stop')])
    t.match(sent.at(-1)!.response!.output, items, says)
    t.equal(sent.filter(({ type }) => type === 'response.output_text.annotation.added').length, 1, says)
  }
})

t.test('an answer ends as its finish reason says', async t => {
  const rows: [events: Event[], type: string, response: Json][] = [
    [[text('a'), finish('stop')], 'completed', { status: 'completed', incomplete_details: null }],
    [[text('a'), finish('length')], 'incomplete', { incomplete_details: { reason: 'max_output_tokens' } }],
    [[text('a'), finish('content_filter')], 'incomplete', { incomplete_details: { reason: 'content_filter' } }],
    [
      [{ type: 'refusal', choice: 0, text: 'No' }, finish('stop')],
      'completed',
      { output: [{ content: [{ type: 'refusal', refusal: 'No' }] }] },
    ],
  ]
  for (const [events, type, response] of rows) {
    t.match(stream(t, events).at(-1), { type: `response.${type}`, response })
  }
})

t.test('after the first event every failure is response.failed, with a code of the client', async t => {
  const rows: [error: GatewayError, code: string][] = [
    [errors.overloaded(), 'server_error'],
    [errors.rateLimited('/v1/responses', 1), 'rate_limit_exceeded'],
    [errors.invalidParameters('input: is wrong', 'input'), 'invalid_prompt'],
    [errors.storeUnavailable(new Error('disk')), 'server_error'],
  ]
  for (const [error, code] of rows) {
    const sent = stream(t, [text('Hello ')], error)
    const last = sent.at(-1)
    t.match(last, { type: 'response.failed', response: { status: 'failed', error: { code, message: /./ } } })
    t.match(last!.response!.output, [{ type: 'message', content: [{ text: 'Hello ' }] }], 'what was sent stays')
    for (const { type, code, message } of sent.filter(({ type }) => type === 'error')) {
      t.match({ type, code, message }, { code: /./, message: /./ })
    }
    t.ok(sent.findIndex(({ type }) => type === 'error') <= sent.length - 2)
  }
})
