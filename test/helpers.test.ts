/** The simulated provider itself: a check that relies on a fault which does not happen proves nothing. */
import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import t from 'tap'
import { raw } from './helpers/raw.ts'
import { type ChatChunk, readEvents, textOf } from './helpers/sse.ts'
import { type Entry, fingerprint, readRecord, type Step, startUpstream } from './helpers/upstream.ts'

type Tree = Record<string, unknown>

const chat = { model: 'm-1', messages: [{ role: 'user', content: 'hello there' }] }
const messages = { ...chat, max_tokens: 64 }
const openaiHeaders = { authorization: 'Bearer sk-secret' }
const anthropicHeaders = { 'x-api-key': 'sk-secret', 'anthropic-version': '2023-06-01' }

function send(url: string, body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal) {
  const own = url.endsWith('/messages') ? anthropicHeaders : openaiHeaders
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...own, ...headers },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  })
}

/** The same request as bytes. */
function bytesOf(path: string, body: unknown, headers: Record<string, string> = {}): string {
  const text = JSON.stringify(body)
  const own = path.endsWith('/messages') ? anthropicHeaders : openaiHeaders
  const all = { host: 'x', 'content-type': 'application/json', 'content-length': text.length, ...own, ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`
}

const only = (entries: Entry[]): Entry => {
  if (entries.length !== 1) throw new Error(`expected one entry, got ${entries.length}`)
  return entries[0]!
}

t.test('the upstream echoes the last user text on both wires, whole and streamed alike', async t => {
  const upstream = await startUpstream(t)
  const usage = { prompt: 3, completion: 4, cached: 0, written: 0, written1h: 0, reasoning: 0 }

  const whole = await (await send(`${upstream.url()}/chat/completions`, chat)).json()
  t.match(whole, {
    object: 'chat.completion',
    model: 'm-1',
    choices: [{ index: 0, message: { role: 'assistant', content: 'echo: hello there' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
  })

  const told = { ...chat, stream: true, stream_options: { include_usage: true } }
  const stream = await readEvents(await send(`${upstream.url('a')}/chat/completions`, told))
  t.equal(textOf(stream.data), 'echo: hello there')
  t.equal(stream.data.flatMap(chunk => chunk.choices ?? []).filter(choice => choice.delta.content).length, 4)
  t.equal(stream.data[0]?.usage, null, 'usage is null on every chunk but the last')
  t.match(stream.data.at(-1), { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } })
  t.equal(stream.terminator, '[DONE]')

  const silent = await readEvents(await send(`${upstream.url('b')}/chat/completions`, { ...chat, stream: true }))
  t.notOk(
    silent.data.some(chunk => 'usage' in chunk),
    'usage is told only to who asks',
  )

  const message = (await (await send(`${upstream.url('c')}/messages`, messages)).json()) as Tree
  t.match(message, {
    type: 'message',
    content: [{ type: 'text', text: 'echo: hello there' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 3, output_tokens: 4 },
  })
  const events = await readEvents<{ delta?: { text?: string } }>(
    await send(`${upstream.url('c')}/messages`, { ...messages, stream: true }),
  )
  t.equal(events.data.map(event => event.delta?.text ?? '').join(''), 'echo: hello there')
  t.equal(events.terminator, 'message_stop')

  const entries = await upstream.record()
  t.same(
    entries.map(entry => [entry.prefix, entry.wire, entry.usage, entry.tokens]),
    [
      ['/', 'openai', usage, { prompt: 3, completion: 4 }],
      ['/a', 'openai', usage, { prompt: 3, completion: 4 }],
      ['/b', 'openai', null, { prompt: 3, completion: 4 }],
      ['/c', 'anthropic', usage, { prompt: 3, completion: 4 }],
      ['/c', 'anthropic', usage, { prompt: 3, completion: 4 }],
    ],
  )
})

t.test('a step sets text, reasoning, tool calls, usage and finish on both wires', async t => {
  const upstream = await startUpstream(t)
  const step: Step = {
    reasoning: ['think', 'ing'],
    chunks: ['a', 'b'],
    toolCalls: [{ name: 'f', args: { k: 1 } }],
    usage: { prompt: 100, completion: 20, cached: 30, written: 40, written1h: 10, reasoning: 5 },
  }
  await upstream.script('/', [step])

  t.match(await (await send(`${upstream.url()}/chat/completions`, { ...chat, n: 2 })).json(), {
    choices: [
      {
        message: {
          content: 'ab',
          reasoning_content: 'thinking',
          tool_calls: [{ id: 'call_1_0_0', type: 'function', function: { name: 'f', arguments: '{"k":1}' } }],
        },
        finish_reason: 'tool_calls',
      },
      { index: 1, message: { content: 'ab' } },
    ],
    usage: {
      prompt_tokens: 100,
      prompt_tokens_details: { cached_tokens: 30, cache_write_tokens: 40 },
      completion_tokens_details: { reasoning_tokens: 5 },
    },
  })
  const stream = await readEvents(await send(`${upstream.url()}/chat/completions`, { ...chat, n: 2, stream: true }))
  t.same([textOf(stream.data, 0), textOf(stream.data, 1)], ['ab', 'ab'])
  const deltas = stream.data.flatMap(chunk => chunk.choices ?? []).filter(choice => choice.index === 1)
  const calls = deltas.flatMap(choice => choice.delta.tool_calls ?? [])
  t.equal(calls.map(call => call.function?.arguments).join(''), '{"k":1}')

  const whole = (await (await send(`${upstream.url()}/messages`, messages)).json()) as { content: Tree[] }
  t.match(whole, {
    content: [
      { type: 'thinking', thinking: 'thinking', signature: String },
      { type: 'text', text: 'ab' },
      { type: 'tool_use', name: 'f', input: { k: 1 } },
    ],
    stop_reason: 'tool_use',
    usage: {
      input_tokens: 30,
      cache_read_input_tokens: 30,
      cache_creation: { ephemeral_5m_input_tokens: 30, ephemeral_1h_input_tokens: 10 },
      output_tokens_details: { thinking_tokens: 5 },
    },
  })
  const result = { type: 'tool_result', tool_use_id: 'toolu_3_0', content: 'fine' }
  const turns = (content: unknown) => ({
    ...messages,
    max_tokens: 4096,
    thinking: { type: 'enabled', budget_tokens: 1024 },
    messages: [...chat.messages, { role: 'assistant', content }, { role: 'user', content: [result] }],
  })
  t.equal((await send(`${upstream.url()}/messages`, turns(whole.content))).status, 200, 'its own turn comes back')
  const forged = [{ ...whole.content[0], thinking: 'forged' }, ...whole.content.slice(1)]
  t.equal((await send(`${upstream.url()}/messages`, turns(forged))).status, 400, 'a forged signature is refused')
})

t.test('tool calls that are scripted as offered end when the result is there', async t => {
  const upstream = await startUpstream(t)
  await upstream.script('/', [{ toolCalls: 'offered' }])
  const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }]
  const url = `${upstream.url()}/chat/completions`
  const first = (await (await send(url, { ...chat, tools })).json()) as { choices: { message: Tree }[] }
  const call = first.choices[0]!.message
  t.match(call, { tool_calls: [{ function: { name: 'weather', arguments: '{}' } }] })
  const history = [...chat.messages, call, { role: 'tool', tool_call_id: 'call_1_0_0', content: 'sunny' }]
  const second = { ...chat, tools, messages: history.map(({ annotations: _, ...kept }: Tree) => kept) }
  t.match(await (await send(url, second)).json(), { choices: [{ message: { content: 'tool said: sunny' } }] })
  t.match(await (await send(url, chat)).json(), { choices: [{ message: { content: 'echo: hello there' } }] })
})

t.test('the upstream refuses what the real provider refuses', async t => {
  const upstream = await startUpstream(t, { key: 'sk-secret' })
  const user = { role: 'user', content: 'hi' }
  const called = { role: 'assistant', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f' } }] }
  const use = { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'f', input: {} }] }
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'x' }] }
  const marked = (ttl: string) => ({ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl } })
  const cases: [path: string, patch: Tree, headers: Record<string, string>, status: number, message: RegExp][] = [
    ['chat/completions', { routing: 'price' }, {}, 400, /Unknown parameter: 'routing'/],
    ['chat/completions', { free_models_only: true }, {}, 400, /free_models_only/],
    ['chat/completions', { messages: [{ ...user, phase: 'x' }] }, {}, 400, /messages\[0\]\.phase/],
    ['chat/completions', { messages: [] }, {}, 400, /empty array/],
    ['chat/completions', { stream_options: {} }, {}, 400, /'stream_options' is only allowed/],
    ['chat/completions', { model: 'gpt-5', max_tokens: 5 }, {}, 400, /Use 'max_completion_tokens' instead/],
    ['chat/completions', { model: 'o3', temperature: 1 }, {}, 400, /'temperature' is not supported/],
    ['chat/completions', { temperature: 3 }, {}, 400, /expected 0 to 2/],
    ['chat/completions', { tool_choice: 'auto' }, {}, 400, /only allowed when 'tools'/],
    [
      'chat/completions',
      { messages: [user, { role: 'tool', tool_call_id: 'c1', content: 'x' }] },
      {},
      400,
      /preceding/,
    ],
    ['chat/completions', { messages: [user, called, user] }, {}, 400, /must be followed by tool messages: c1/],
    ['chat/completions', {}, { authorization: 'Bearer wrong' }, 401, /Incorrect API key/],
    ['chat/completions', {}, { authorization: '' }, 401, /Incorrect API key/],
    ['chat/completions', {}, { cookie: 'a=b' }, 400, /cookie/],
    ['chat/completions', {}, { 'x-forwarded-for': '10.0.0.1' }, 400, /x-forwarded-for/],
    ['chat/completions', {}, { authorization: 'Bearer mgw_abc' }, 400, /authorization/],
    ['chat/completions', {}, { 'x-api-key': 'sk-secret' }, 400, /authorization \+ x-api-key/],
    ['messages', { max_tokens: undefined }, {}, 400, /max_tokens: Field required/],
    ['messages', { routing: 'price' }, {}, 400, /routing: Extra inputs/],
    ['messages', {}, { 'anthropic-version': '2020-01-01' }, 400, /anthropic-version/],
    ['messages', {}, { 'anthropic-beta': 'files-api-2025-04-14,nonsense' }, 400, /`nonsense`/],
    ['messages', { temperature: 1 }, { 'anthropic-version': '2026-10-21' }, 400, /`temperature` is not supported/],
    ['messages', { model: 'claude-opus-5-5', top_k: 3 }, {}, 400, /`top_k` is not supported/],
    ['messages', { thinking: { type: 'enabled', budget_tokens: 2048 } }, {}, 400, /must be greater than/],
    ['messages', { messages: [user, user] }, {}, 400, /roles must alternate/],
    ['messages', { messages: [{ ...user, role: 'assistant' }] }, {}, 400, /roles must alternate/],
    ['messages', { messages: [{ ...user, content: '' }] }, {}, 400, /non-empty/],
    ['messages', { messages: [result] }, {}, 400, /corresponding `tool_use`/],
    ['messages', { messages: [user, use, user] }, {}, 400, /without `tool_result`/],
    [
      'messages',
      { messages: [user, use, { role: 'user', content: [marked('5m'), ...result.content] }] },
      {},
      400,
      /must come first/,
    ],
    ['messages', { system: Array.from({ length: 5 }, () => marked('5m')) }, {}, 400, /maximum of 4 .* Found 5/],
    ['messages', { system: [marked('5m'), marked('1h')] }, {}, 400, /must not come after/],
    ['messages', {}, { 'x-api-key': 'wrong' }, 401, /invalid x-api-key/],
    ['nothing', {}, {}, 404, /No POST \/v1\/nothing/],
  ]
  for (const [path, patch, headers, status, message] of cases) {
    const base = path === 'messages' ? messages : chat
    const response = await send(`${upstream.url()}/${path}`, { ...base, ...patch }, headers)
    t.equal(response.status, status, `${path} ${JSON.stringify({ ...patch, ...headers })}`)
    t.match(await response.json(), { error: { message } })
  }
  const unversioned = { 'content-type': 'application/json', 'x-api-key': 'sk-secret' }
  const init = { method: 'POST', headers: unversioned, body: JSON.stringify(messages) }
  t.match(await (await fetch(`${upstream.url()}/messages`, init)).json(), { error: { message: /header is required/ } })

  const entries = await upstream.record()
  t.equal(entries.length, cases.length + 1)
  t.ok(
    entries.every(entry => entry.refused !== null && entry.tokens.prompt === 0),
    'refusals are recorded and cost nothing',
  )
  t.same(entries.find(entry => entry.headers.cookie)?.violations, ['cookie'])
  t.equal((await send(`${upstream.url()}/chat/completions`, chat)).status, 200, 'the right key is accepted')
})

/** What the raw client and the record say: status, how the peer closed, whether the body is whole, outcome, chunks. */
type Seen = `${number} ${'fin' | 'reset' | 'open'} ${'whole' | 'part'} ${'completed' | 'cut' | 'aborted'} ${number}`
type FaultCase = [step: Step, seen: Seen, body?: RegExp, not?: RegExp]
const unfinished = /finish_reason":"|DONE/

const streamedFaults: FaultCase[] = [
  [{ fault: 'refuse' }, '0 fin part cut 0'],
  [{ fault: 'reset' }, '0 reset part cut 0'],
  [{ fault: 'stall' }, '0 open part aborted 0'],
  [{ fault: 'fin', afterChunks: 2 }, '200 fin part cut 2', /": he"/, /"llo "/],
  [{ fault: 'fin', afterChunks: 2, unframed: true }, '200 fin whole cut 2', /": he"/, unfinished],
  [{ fault: 'reset', afterChunks: 2 }, '200 reset part cut 2', /": he"/, /"llo "/],
  [{ fault: 'stall', afterChunks: 3 }, '200 open part aborted 3', /"llo "/, /"there"/],
  [{ fault: 'stall', afterChunks: 0 }, '200 open part aborted 0', /^$/],
  [{ fault: 'error-in-200' }, '200 fin whole completed 0', /^{"error":{"message":"Simulated failure 500/],
  [{ fault: 'error-first-event' }, '200 fin whole completed 0', /^data: {"error":/, unfinished],
  [
    { fault: 'error-event', afterChunks: 2 },
    '200 fin whole completed 2',
    /": he".*\n\ndata: {"error":.*\n\n$/s,
    /"llo "/,
  ],
  [{ fault: 'html' }, '200 fin whole completed 0', /^<!DOCTYPE html>/],
  [{ fault: 'empty' }, '200 fin whole completed 0', /^$/],
  [{ fault: 'truncate' }, '200 fin whole completed 4', /"there"/, unfinished],
  [{ fault: 'wrong-type' }, '200 fin whole completed 4', /DONE/],
  [{ status: 429, headers: { 'retry-after': '7' } }, '429 fin whole completed 0', /rate_limit_exceeded/],
  [{ status: 502, body: '<h1>no</h1>' }, '502 fin whole completed 0', /^<h1>no<\/h1>$/],
  [{ status: 204 }, '204 fin whole completed 0', /^$/],
  [{ raw: ['a', { base64: 'Cgo=' }, { text: 'x', times: 3, pauseMs: 1 }] }, '200 fin whole completed 5', /^a\n\nxxx$/],
  [{ socket: ['SSH-2.0-OpenSSH_9.2\r\n'] }, '0 fin part cut 1'],
]
const wholeFaults: FaultCase[] = [
  [{ fault: 'fin', afterChunks: 1 }, '200 fin part cut 0', /^{"id"/],
  [{ fault: 'error-in-200', body: { detail: 'no' } }, '200 fin whole completed 0', /^{"detail":"no"}$/],
  [{ fault: 'truncate' }, '200 fin whole completed 0', /^{"id"/, /}$/],
  [{ fault: 'early' }, '413 fin whole completed 0', /Simulated failure 413/],
  [{ headers: { 'content-length': '9999' } }, '200 fin part completed 4', /}$/],
]

/** What writes a request, and resolves `shown` when the answer so far shows `sign`. */
function awaiting(request: string, sign: RegExp) {
  let show = () => {}
  const shown = new Promise<void>(resolve => {
    show = resolve
  })
  const input = (socket: Socket) => {
    let text = ''
    socket.on('data', piece => {
      text += piece
      if (sign.test(text)) show()
    })
    socket.write(request)
  }
  return { input, shown }
}

t.test('every fault does on the wire what its name says', async t => {
  const upstream = await startUpstream(t)
  const cases = [streamedFaults.map(row => [true, ...row] as const), wholeFaults.map(row => [false, ...row] as const)]
  for (const [i, [stream, step, seen, wanted, not]] of cases.flat().entries()) {
    const name = `${JSON.stringify(step)} ${stream ? 'streamed' : 'whole'}`
    await upstream.script(`${i}`, [step])
    const request = bytesOf(`/${i}/v1/chat/completions`, { ...chat, stream }, { connection: 'close' })
    const silent = seen.startsWith('0 open')
    // The client leaves when it has got all that was to come before the silence.
    const { input, shown } = awaiting(request, step.afterChunks ? wanted! : /\r\n\r\n/)
    const until = silent ? upstream.record(`${i}`, { requests: 1 }) : seen.includes('open') ? shown : undefined
    const { status, closed, complete, body } = await raw(upstream.port, input, until && { until })
    const { outcome, chunksSent } = only(await upstream.record(`${i}`, { ended: 1 }))
    // A reset that comes together with data may be read as the end of the stream: what was cut off is the same.
    const end = step.fault === 'reset' && step.afterChunks && closed === 'fin' ? 'reset' : closed
    t.equal(`${status} ${end ?? 'open'} ${complete ? 'whole' : 'part'} ${outcome} ${chunksSent}`, seen, name)
    if (wanted) t.match(body, wanted, `${name}: body`)
    if (not) t.notMatch(body, not, `${name}: body`)
  }

  await upstream.script('t', [{ fault: 'trickle', chunkDelayMs: 5 }])
  const request = bytesOf('/t/v1/chat/completions', { ...chat, stream: true })
  const drops = awaiting(request, /("there".*){6}/s)
  const trickle = await raw(upstream.port, drops.input, { until: drops.shown })
  t.match(trickle, { status: 200, closed: null, body: /("there".*){6}/s })
  t.ok(only(await upstream.record('t', { ended: 1 })).chunksSent > 6)

  await upstream.script('f', [{ fault: 'flood103', chunkDelayMs: 5 }])
  const interim = awaiting(bytesOf('/f/v1/chat/completions', chat), /(?:HTTP\/1\.1 103.*?\r\n\r\n){3}/s)
  const flood = await raw(upstream.port, interim.input, { until: interim.shown })
  t.ok(flood.responses.length > 2 && flood.responses.every(response => response.status === 103))
  t.equal(only(await upstream.record('f', { ended: 1 })).outcome, 'aborted')

  await upstream.script('m', [{ fault: 'error-event', afterChunks: 2 }])
  const stream = await readEvents<ChatChunk>(await send(`${upstream.url('m')}/messages`, { ...messages, stream: true }))
  t.equal(stream.names.at(-1), 'error', 'the Messages wire names its error event')
  t.equal(stream.terminator, null)
})

t.test('scripts are run per prefix, one step per request, and the last step stays', async t => {
  const upstream = await startUpstream(t)
  await upstream.script('a', [{ status: 500 }, { text: 'two' }])
  await upstream.script('/deep/path', [{ status: 503 }])
  const status = async (prefix: string) => (await send(`${upstream.url(prefix)}/chat/completions`, chat)).status
  t.same(
    [await status('a'), await status('deep/path'), await status('a'), await status('a'), await status('')],
    [500, 503, 200, 200, 200],
  )
  t.equal((await send(`${upstream.url('a')}/messages`, messages)).status, 200, 'a prefix speaks both wires')
  t.equal((await upstream.record('a')).length, 4)
  await upstream.reset()
  t.same(await upstream.record(), [])
  t.equal(await status('deep/path'), 200, 'a reset forgets the scripts')
  await t.rejects(upstream.script('a', [{ fualt: 'reset' } as Step]), /unknown field "fualt" in a step; known are/)
  await t.rejects(upstream.script('a', [{ fault: 'burn' as 'reset' }]), /unknown fault "burn"; known are/)
})

t.test('the record is on disk before the last byte of the answer', async t => {
  const upstream = await startUpstream(t)
  const url = `${upstream.url()}/chat/completions`
  await upstream.script('/', [{ hold: 2 }])
  const response = send(url, { ...chat, stream: true }, { authorization: 'Bearer sk-very-secret' })
  await upstream.record('/', { chunks: 2 })
  const begun = only(await readRecord(upstream.recordFile))
  t.match(begun, {
    model: 'm-1',
    outcome: null,
    body: { stream: true },
    headers: { authorization: `Bearer ${fingerprint('sk-very-secret')}` },
  })
  await upstream.release()
  const reader = (await response).body!.getReader()
  for (let text = ''; !text.includes('[DONE]'); ) text += Buffer.from((await reader.read()).value!).toString()
  t.match(only(await readRecord(upstream.recordFile)), { outcome: 'completed', chunksSent: 4 }, 'streamed')
  await reader.cancel()

  await upstream.script('/', [{}])
  await (await send(url, chat)).text()
  t.match((await readRecord(upstream.recordFile))[1], { outcome: 'completed', usage: { completion: 4 } }, 'whole')
  t.same(await readRecord(upstream.recordFile), await upstream.record(), 'file and memory tell the same')
  t.notMatch(await readFile(upstream.recordFile, 'utf8'), 'sk-very-secret')
})

t.test('a caller that leaves is recorded with what it was sent', async t => {
  const upstream = await startUpstream(t)
  const url = `${upstream.url()}/chat/completions`
  const leave = async (step: Step, body: Tree, until: { requests?: number; chunks?: number }) => {
    await upstream.reset()
    await upstream.script('/', [step])
    const caller = new AbortController()
    const answer = send(url, { ...chat, ...body }, {}, caller.signal).catch(() => 'left')
    await upstream.record('/', until)
    caller.abort()
    await answer
    const entry = only(await upstream.record('/', { ended: 1 }))
    t.match(entry, { aborted: true, abortedAt: Number })
    return entry
  }
  const streamed = await leave({ hold: 3, usage: { completion: 8 } }, { stream: true }, { chunks: 3 })
  t.match(streamed, { outcome: 'aborted', chunksSent: 3, tokens: { prompt: 3, completion: 6 }, usage: null })
  const whole = await leave({ hold: 0 }, {}, { requests: 1 })
  t.match(whole, { outcome: 'aborted', chunksSent: 0, tokens: { prompt: 3, completion: 0 } })

  await upstream.script('w', [{ raw: [{ text: 'x'.repeat(65536), times: 10_000 }] }])
  const writing = upstream.record('w', { chunks: 1 })
  await raw(upstream.port, bytesOf('/w/v1/chat/completions', chat), { until: writing })
  t.match(only(await upstream.record('w', { ended: 1 })), { outcome: 'aborted' }, 'in the middle of a write')

  const uploading = bytesOf('/u/v1/chat/completions', chat, { expect: '100-continue' }).slice(0, -5)
  const begun = awaiting(uploading, /^HTTP\/1\.1 100/)
  await raw(upstream.port, begun.input, { until: begun.shown })
  t.match(only(await upstream.record('u', { ended: 1 })), { outcome: 'aborted', body: null })
  await t.rejects(upstream.record('/', { requests: 9, timeoutMs: 20 }), /not reached in time: .*"requests":9/)
})

t.test('the upstream ends on SIGTERM and when its standard input closes', async t => {
  for (const signal of [undefined, 'SIGTERM'] as const) {
    const upstream = await startUpstream(t)
    await upstream.script('/', [{ fault: 'stall' }])
    const stalled = t.rejects(
      send(`${upstream.url()}/chat/completions`, chat),
      'a stalled answer does not keep it alive',
    )
    await upstream.record('/', { requests: 1 })
    t.equal(await upstream.stop(signal), 0)
    await stalled
  }
})
