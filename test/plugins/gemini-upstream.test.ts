/** The wires `gemini.generate` and `gemini.vertex` against a provider that refuses what the real one refuses. */

import t from 'tap'
import { plugin } from '../../plugins/gemini.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Event } from '../../src/core/event.ts'
import type { Target } from '../../src/core/translator.ts'
import { mergeUsage, type Usage } from '../../src/core/usage.ts'
import type { Json } from '../../src/json/json.ts'
import { framingFor } from '../../src/upstream/framing/index.ts'
import { Fold } from '../../src/wire/fold.ts'
import { type Step, startUpstream, type Upstream } from '../helpers/upstream.ts'
import { target } from './wire-kit.ts'

interface Answer {
  status: number
  type: string | null
  events: Event[]
}

const [studio, vertex] = plugin.wires
const hi = { role: 'user', content: 'hello there' }

/** An offer of a model that does all that the wire can carry. */
function offer(externalId = 'gemini-3.6-flash', provider = 'acme'): Target {
  const supports = ['tools', 'reasoning', 'vision', 'web_search', 'structured_outputs'] as const
  const reasoningEfforts = externalId.startsWith('gemini-3') ? ['minimal', 'low', 'medium', 'high'] : []
  return target({ provider: { id: provider }, mapping: { externalId, supports: new Set(supports), reasoningEfforts } })
}

/** Sends a request as production does, and reads the answer to its end. */
async function ask(base: string, request: Json, to = offer(), wire = studio): Promise<Answer> {
  const streams = request.stream === true
  const sent = wire!.encode({ model: 'm', messages: [hi], ...request } as ChatRequest, to, streams)
  const credential = wire === studio ? { 'x-goog-api-key': 'key-1' } : { authorization: 'Bearer key-1' }
  const headers = { 'content-type': 'application/json', ...credential, ...sent.headers }
  const response = await fetch(base + sent.path, { method: 'POST', headers, body: JSON.stringify(sent.body) })
  const type = response.headers.get('content-type')
  if (response.status !== 200) {
    const error = wire!.error(response.status, await response.text(), to)
    return { status: response.status, type, events: [{ type: 'error', error }] }
  }
  const { framing, mode } = framingFor(type ?? undefined, streams)
  const decoder = wire!.decoder(mode, to)
  const frames = [...framing.push(Buffer.from(await response.arrayBuffer())), ...framing.end()]
  return { status: 200, type, events: [...frames.flatMap(frame => decoder.frame(frame)), ...decoder.end()] }
}

const foldOf = (events: readonly Event[]) => {
  const fold = new Fold()
  fold.add(events)
  return fold.choices[0]!
}
const usageOf = (events: readonly Event[]) => {
  const usage: Usage = {}
  for (const event of events) if (event.type === 'usage') mergeUsage(usage, event.usage)
  return usage
}
const errorOf = ({ events }: Answer) => {
  const last = events.at(-1)
  return last?.type === 'error' ? last.error : undefined
}

/** The message that a client sends back of an answer. */
function messageOf(events: readonly Event[]): Json {
  const { text, details, tools } = foldOf(events)
  return {
    role: 'assistant',
    content: text || null,
    reasoning_details: details,
    tool_calls: tools.map(({ id, name, args, signature }) => ({
      id,
      type: 'function',
      function: { name, arguments: args },
      ...(signature && { extra_content: { vendor: { thought_signature: signature } } }),
    })),
  }
}

const parallel: Step = {
  reasoning: ['think', 'ing'],
  toolCalls: [
    { name: 'weather', args: { city: 'Zürich' } },
    { name: 'weather', args: { city: 'Rome' } },
  ],
  usage: { prompt: 20, completion: 12, cached: 5, reasoning: 7 },
}
const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }]

t.test('a conversation with tools goes on over turns, on both surfaces, whole and streamed', async t => {
  const upstream = await startUpstream(t, { key: 'key-1' })
  const rows = [
    { prefix: 'a', wire: studio, stream: false },
    { prefix: 'b', wire: studio, stream: true },
    { prefix: 'c', wire: vertex, stream: false },
    { prefix: 'd', wire: vertex, stream: true },
  ]
  for (const { prefix, wire, stream } of rows) {
    const name = `${wire!.wire} ${stream ? 'streamed' : 'whole'}`
    const base = upstream.url(prefix)
    await upstream.script(prefix, [parallel, { toolCalls: 'offered' }, { text: 'Sunny 🙂', reasoning: 'hm' }, {}])
    const messages: Json[] = [hi]
    const say = (to = offer()) => ask(base, { messages, tools, stream }, to, wire)

    const { events } = await say()
    t.match(foldOf(events), { reasoning: 'thinking', tools: [{ args: '{"city":"Zürich"}' }, {}], finish: 'tool_calls' })
    t.same(usageOf(events), { prompt: 20, completion: 12, input_cache_read: 5, internal_reasoning: 7 }, name)
    const called = messageOf(events)
    const calls = called.tool_calls as { id: string }[]
    t.match(calls[0], { extra_content: { vendor: { thought_signature: /^acme:/ } } }, name)
    messages.push(
      called,
      ...[...calls].reverse().map(({ id }, i) => ({ role: 'tool', tool_call_id: id, content: `${i}` })),
    )

    const answered = await say()
    t.match(foldOf(answered.events), { text: 'tool said: 0', finish: 'stop' }, `${name}: in the order of the calls`)
    messages.push(messageOf(answered.events), { role: 'user', content: 'and now?' })
    const spoken = await say()
    t.match(foldOf(spoken.events), { text: 'Sunny 🙂', finish: 'stop' }, name)
    messages.push(messageOf(spoken.events), { role: 'user', content: 'bye' })
    const last = await say()
    t.match(foldOf(last.events), { text: 'echo: bye' }, `${name}: every signature is accepted`)
    t.equal(last.type, stream ? 'text/event-stream; charset=utf-8' : 'application/json')

    const elsewhere = await say(offer('gemini-3.1-pro', 'other'))
    t.equal(elsewhere.status, 200, `${name}: another provider gets no signature of the first`)
  }
  const entries = await upstream.record()
  t.same(
    entries.filter(entry => entry.refused).map(entry => entry.refused),
    [],
  )
  t.match(entries[0], { model: 'gemini-3.6-flash', prefix: '/a', usage: { reasoning: 7 } })
})

t.test('what the wire can carry is accepted', async t => {
  const upstream = await startUpstream(t)
  const picture = { type: 'image_url', image_url: { url: 'data:image/jpeg;base64,iVBORw0KGgo=' } }
  const linked = { type: 'image_url', image_url: { url: 'https://example.com/a' } }
  const calls = [{ id: 'c', type: 'function', function: { name: '3d', arguments: '' } }]
  const format = { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } }
  const system = [
    { role: 'system', content: 'Be brief.' },
    { role: 'assistant', content: 'x' },
  ]
  const rows: [name: string, request: Json, model?: string][] = [
    ['R1 media', { messages: [{ role: 'user', content: [picture, linked, { type: 'text', text: 'a\ud83d' }] }] }],
    ['R3 R14 a foreign call without its result', { messages: [hi, { role: 'assistant', tool_calls: calls }] }],
    ['R5 R15 the assistant first and last', { messages: system }],
    ['a schema and several choices', { response_format: format, n: 3, temperature: 2, service_tier: 'default' }],
    ['a budget', { reasoning_effort: 'high', user: 'Ann B' }, 'gemini-2.5-pro'],
    ['no thinking', { reasoning_effort: 'none' }, 'gemini-2.5-flash'],
    ['little thinking', { reasoning_effort: 'none' }],
    ['a search beside functions', { tools: [...tools, { type: 'web_search' }], tool_choice: 'auto', web_search: true }],
    ['functions and a search for an older model', { tools, web_search: true }, 'gemini-2.5-flash'],
    ['a named function', { tools, tool_choice: { type: 'function', function: { name: 'weather' } } }],
    ['R7 a Gemma model with instructions', { messages: [...system, hi] }, 'gemma-3-27b-it'],
  ]
  for (const wire of [studio, vertex]) {
    for (const [name, request, model] of rows) {
      const answer = await ask(upstream.url(), request, offer(model), wire)
      t.equal(answer.status, 200, `${wire!.wire}: ${name}: ${errorOf(answer)?.message}`)
    }
  }
  const base = `http://127.0.0.1:${upstream.port}/p/v1beta1/projects/x/locations/eu`
  t.match(foldOf((await ask(base, { stream: true }, offer(), vertex)).events), { text: 'echo: hello there' })
  t.match((await upstream.record('p'))[0], { model: 'gemini-3.6-flash' })
})

t.test('an effort that the model lacks is the provider’s to refuse', async t => {
  const upstream = await startUpstream(t)
  const effort = (reasoning_effort: string, model?: string) =>
    ask(upstream.url(), { reasoning_effort }, offer(model)).then(errorOf)
  t.match(await effort('xhigh'), { status: 400, failover: false, message: /XHIGH is not supported/ })
  t.match(await effort('minimal', 'gemini-3.1-pro'), { status: 400, message: /MINIMAL is not supported/ })
  t.equal(await effort('none', 'gemini-2.5-pro'), undefined, 'it thinks as little as it can')
})

t.test('failures of the provider keep their meaning', async t => {
  const upstream = await startUpstream(t, { key: 'another' })
  const refused = await ask(upstream.url(), {})
  t.match([refused.status, errorOf(refused)], [400, { code: 'upstream_credential', failover: true }], 'E7')
  t.equal((await ask(upstream.url(), {}, offer(), vertex)).status, 401)

  const open = await startUpstream(t)
  const blocked: Step = { finish: 'content_filter', text: '' }
  const thought: Step = { finish: 'length', reasoning: 'hm', text: '', usage: { completion: 9, reasoning: 9 } }
  const malformed: Step = { finish: 'MALFORMED_FUNCTION_CALL', text: '' }
  const listed = { body: [{ error: { code: 503, message: 'm', status: 'UNAVAILABLE' } }] }
  const rows: [step: Step, error: Json | undefined, finish: string | null | undefined][] = [
    [blocked, undefined, 'content_filter'],
    [thought, undefined, 'length'],
    [{ status: 429 }, { code: 'upstream_rate_limited', retryAfterMs: 1500 }, undefined],
    [{ status: 503, ...listed }, { code: 'upstream_overloaded' }, undefined],
    [{ fault: 'error-first-event', ...listed }, { code: 'upstream_overloaded' }, undefined],
    [{ fault: 'error-event', afterChunks: 2 }, { code: 'upstream_error' }, null],
    [{ fault: 'error-in-200', status: 200, ...listed }, { code: 'upstream_overloaded' }, undefined],
    [{ fault: 'truncate' }, { code: 'upstream_stream_truncated' }, null],
    [malformed, { failover: true }, undefined],
    [{ ...malformed, usage: { prompt: 32_000, completion: 700 } }, { failover: true, billed: false }, undefined],
    [{ ...malformed, usage: { prompt: 32_000, completion: 800 } }, { failover: false, billed: true }, undefined],
    [{ ...malformed, usage: { prompt: 1, completion: 4097 } }, { failover: false, billed: true }, undefined],
    [{ finish: 'MALFORMED_FUNCTION_CALL', text: 'a' }, undefined, 'stop'],
  ]
  for (const [i, [step, error, finish]] of rows.entries()) {
    const name = JSON.stringify(step)
    const answer = await scripted(open, `${i}`, step)
    if (error) t.match(errorOf(answer), error, name)
    else t.notOk(errorOf(answer), name)
    t.equal(foldOf([...answer.events])?.finish, finish, name)
  }
})

async function scripted(upstream: Upstream, prefix: string, step: Step): Promise<Answer> {
  await upstream.script(prefix, [step])
  return ask(upstream.url(prefix), { stream: true })
}

const parts = (...parts: Json[]) => ({ role: 'user', parts })
const said = (...parts: Json[]) => ({ role: 'model', parts })
const hello = parts({ text: 'hi' })
const used = (id?: string) => ({ functionCall: { name: 'f', args: {}, ...(id && { id }) } })
const result = { functionResponse: { name: 'f', response: {} } }
const declared = [{ functionDeclarations: [{ name: 'f' }] }]
const searching = [...declared, { googleSearch: {} }]
const mode = (mode: string, rest: Json = {}) => ({ functionCallingConfig: { mode, ...rest } })
const gen = (generationConfig: Json) => ({ generationConfig })
const think = (thinkingConfig: Json) => gen({ thinkingConfig })

t.test('the provider refuses what the real one refuses', async t => {
  const upstream = await startUpstream(t)
  const two = '/models/gemini-2.5-flash:generateContent'
  const three = '/models/gemini-3.6-flash:generateContent'
  const other = '/publishers/google/models/gemini-3.6-flash:generateContent'
  const rows: [path: string, body: Json | string, message: RegExp][] = [
    [two.replace('generate', 'streamGenerate'), {}, /Without alt=sse/],
    [two, '{"contents":', /Unexpected token/],
    [two, { model: 'm' }, /Unknown name "model"/],
    [two, { labels: {} }, /Unknown name "labels"/],
    [other, { serviceTier: 'flex' }, /Unknown name "serviceTier"/],
    [two, { serviceTier: 'default' }, /service_tier/],
    [other, { labels: { user: 'Ann' } }, /label value/],
    [two, { contents: [] }, /contents is not specified/],
    [two, { contents: [hello, hello] }, /roles must alternate/],
    [two, { contents: [said({ text: 'a' })] }, /roles must alternate/],
    [two, { contents: [hello, said({ text: 'a' })] }, /last turn/],
    [two, { contents: [parts()] }, /must not be empty/],
    [two, { contents: [parts({ text: 'a', inlineData: {} })] }, /one initialized field/],
    [two, { contents: [parts({ txt: 'a' })] }, /Unknown name "txt"/],
    [two, { contents: [parts({ text: 'a\ud83d' })] }, /surrogate/],
    [two, { contents: [parts({ inlineData: { mimeType: 'image/png', data: 'a b' } })] }, /base64/],
    [other, { contents: [parts({ fileData: { fileUri: 'gs://a' } })] }, /mime type/],
    [two, { contents: [hello, said(used()), hello] }, /number of function response parts/],
    [two, { contents: [hello, said(used(), used()), parts(result)] }, /number of function response parts/],
    [two, { contents: [hello, said({ text: 'a' }), parts(result)] }, /number of function response parts/],
    [two, { contents: [hello, said(used('x')), parts(result)] }, /number of function response parts/],
    [other, { contents: [hello, said(used('x')), parts(result)] }, /Unknown name "id"/],
    [three, { contents: [hello, said(used()), parts(result)] }, /missing a thought_signature/],
    [three, { contents: [hello, said({ ...used(), thoughtSignature: 'x' }), parts(result)] }, /not valid/],
    [two, { contents: [hello, said({ text: 'a', thoughtSignature: 'x' }), hello] }, /not valid/],
    [two, { tools: [{ functionDeclarations: [{ name: '3d' }] }] }, /function name/],
    [two, { toolConfig: mode('ANY') }, /without function_declarations/],
    [two, { tools: declared, toolConfig: mode('ANY', { allowedFunctionNames: ['g'] }) }, /not declared/],
    [two, { tools: declared, toolConfig: mode('AUTO', { allowedFunctionNames: ['f'] }) }, /needs mode ANY/],
    [two, { tools: searching, toolConfig: mode('VALIDATED') }, /unsupported/],
    [three, { tools: searching }, /need mode VALIDATED/],
    [three, { tools: searching, toolConfig: mode('VALIDATED') }, /include_server_side_tool_invocations/],
    [other, { tools: searching, toolConfig: { includeServerSideToolInvocations: true } }, /Unknown name/],
    [two, { tools: [{ googleSearch: { excludeDomains: ['a'] } }] }, /excludeDomains/],
    [two, gen({ temperature: 3 }), /temperature must be/],
    [two, gen({ candidateCount: 9 }), /candidateCount must be/],
    [two, gen({ responseJsonSchema: {} }), /mime type/],
    [two, gen({ imageConfig: {} }), /imageConfig/],
    [two, gen({ stop: [] }), /Unknown name "stop"/],
    [two, think({ thinkingLevel: 'LOW' }), /not supported for this model/],
    [three, think({ thinkingLevel: 'LOW', thinkingBudget: 1 }), /only one of/],
    [two, think({ thinkingBudget: 65_536 }), /between 1 and 24576/],
    ['/models/gemini-2.5-flash-lite:generateContent', think({ thinkingBudget: 100 }), /between 512/],
    ['/models/gemini-3.7-flash:generateContent', think({ thinkingLevel: 'MINIMAL' }), /not supported/],
    ['/models/gemma-3-27b-it:generateContent', { systemInstruction: parts({ text: 'a' }) }, /not enabled/],
  ]
  for (const [path, patch, message] of rows) {
    const body = typeof patch === 'string' ? patch : JSON.stringify({ contents: [hello], ...patch })
    const headers = { 'content-type': 'application/json', 'x-goog-api-key': 'k' }
    const response = await fetch(upstream.url() + path, { method: 'POST', headers, body })
    t.equal(response.status, 400, `${path} ${body}`)
    t.match(await response.json(), { error: { code: 400, status: 'INVALID_ARGUMENT', message } }, `${path} ${body}`)
  }
  t.equal((await ask(upstream.url(), {})).status, 200, 'and accepts what is right')
})
