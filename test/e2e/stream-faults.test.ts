/** Streams that are silent, broken, endless or strange: what a client sees of them, and what they cost. */

import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import t from 'tap'
import type { Json } from '../../src/json/json.ts'
import { callAiSdk, fold, type Part } from '../helpers/ai-sdk-chat.ts'
import { groupsOf, openBooks } from '../helpers/books.ts'
import { TIMINGS, timing } from '../helpers/figure.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { metric } from '../helpers/invariants.ts'
import { runs } from '../helpers/runs.ts'
import { type ChatChunk, readEvents, textOf } from '../helpers/sse.ts'
import { type Piece, type Step, startUpstream } from '../helpers/upstream.ts'

const HEARTBEAT_MS = 100
const HOLD_MS = 300
const TOTAL_MS = 3000
/** Longer than the tests may take: what comes all the same has waited for none of it. */
const NEVER = '1h'
const timeouts = { connect: NEVER, first_event: NEVER, idle: NEVER, total: NEVER }
const question = 'What comes out?'
const chunks = ['One ', 'two ', 'six ', 'ten ', 'and ', 'more', ' of ', 'it. ']
const WAITING = /waiting/

const upstream = await startUpstream(t)
/** A process of its own: while it is busy, the other one is not. */
const flood = await startUpstream(t)
const serve = (id: string, model: string, more: Json = {}) => ({
  [id]: { base_url: upstream.url(id), timeouts, models: [{ ...testMapping, model, id: `${id}-1`, max_n: 8 }], ...more },
})
const gateway = await startGateway(t, {
  providers: {
    ...serve('a', 'a'),
    ...serve('slow', 'slow'),
    ...serve('late', 'late', { timeouts: { ...timeouts, first_event: '1500ms' } }),
    ...serve('silent', 'silent', { timeouts: { ...timeouts, idle: '1500ms' } }),
    ...serve('finished', 'finished'),
    ...serve('endless', 'endless', { timeouts: { ...timeouts, total: `${TOTAL_MS}ms` } }),
    ...serve('first', 'pair', { priority: 2, timeouts: { ...timeouts, first_event: '1500ms' } }),
    ...serve('second', 'pair'),
    ...serve('flood', 'flood', { base_url: flood.url('flood') }),
    ...serve('mute', 'left', { priority: 2 }),
    ...serve('spare', 'left'),
  },
  config: {
    server: { heartbeat: `${HEARTBEAT_MS}ms`, hold: `${HOLD_MS}ms` },
    // A machine that is busy with other things is not judged here.
    endpoints: { chat: { ratelimit: { rpm: 100_000 }, admission: { lag: '60s' } } },
  },
})
const books = openBooks(t, gateway)

const group = groupsOf(t, { gateway, upstream, books })
const play = (prefix: string, ...steps: Step[]) => upstream.script(prefix, steps)
const ask = (model: string, more: Json = {}, headers = {}) =>
  gateway.chat({ model, stream: true, messages: [{ role: 'user', content: question }], ...more }, headers)
const message = (model: string) =>
  gateway.post('/v1/messages', { model, stream: true, max_tokens: 50, messages: [{ role: 'user', content: question }] })

const contents = [{ role: 'user', parts: [{ text: question }] }]
const generate = (model: string, alt = '?alt=sse') =>
  gateway.post(`/v1beta/models/${model}:streamGenerateContent${alt}`, { contents })
interface Generated extends Json {
  candidates?: { content?: { parts?: { text?: string }[] }; finishReason?: string }[]
}
/** What a client of Google's API has in the end: the text, why it ended, and the failure. */
function generated(data: readonly Json[]) {
  const chunks = data as readonly Generated[]
  const parts = chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
  return {
    text: parts.map(({ text = '' }) => text).join(''),
    finishes: chunks.flatMap(({ candidates }) => candidates?.[0]?.finishReason ?? []),
    error: chunks.at(-1)!.error,
  }
}

const respond = (model: string) => gateway.post('/v1/responses', { model, stream: true, input: question })
/** What a client of the Responses API has in the end: the text, and the last event. */
function responded(data: readonly Json[]) {
  const events = data as readonly (Json & { type: string; delta?: string })[]
  const texts = events.filter(({ type }) => type === 'response.output_text.delta')
  return { text: texts.map(({ delta }) => delta).join(''), last: events.at(-1)! }
}

const askParts = (model: string) =>
  callAiSdk(gateway, model, { prompt: [{ role: 'user', content: [{ type: 'text', text: question }] }] }, 'stream')
/** What a client of the AI SDK has in the end: the text, and why it ended. */
function folded(data: readonly Json[]) {
  const { content = [], finishReason, error } = fold(data as readonly Part[])
  return { text: content.map(({ text = '' }) => text).join(''), finish: finishReason!.unified, error }
}

interface Seen {
  text: string
  finishes: string[]
  ended: boolean
  error: string | null | undefined
  comments: number
  cost: number
  ids: number
  routing: { provider: string; succeeded: boolean }[]
}
async function read(response: Response): Promise<Seen> {
  const { data, comments, terminator, after } = await readEvents(response)
  const last = data.at(-1) as { usage?: { cost: number }; metadata?: { routing: Seen['routing'] } }
  return {
    text: textOf(data),
    finishes: data.flatMap(({ choices = [] }) => choices.flatMap(({ finish_reason }) => finish_reason ?? [])),
    ended: terminator === '[DONE]' && after === 0,
    error: data.find(({ error }) => error)?.error?.code,
    comments: comments.filter(comment => WAITING.test(comment)).length,
    cost: last.usage?.cost ?? Number.NaN,
    ids: new Set(data.filter(({ error }) => !error).map(({ id }) => id)).size,
    routing: last.metadata?.routing ?? [],
  }
}
const whole = chunks.join('')
/** Resolves with a stream, of which nothing is lost, once so many beats of it have come. */
async function beaten(response: Response, beats: number, beat: RegExp): Promise<Response> {
  const [mine, others] = response.body!.tee()
  const reader = mine.pipeThrough(new TextDecoderStream()).getReader()
  for (let text = ''; [...text.matchAll(beat)].length < beats; ) {
    const step = await reader.read()
    if (step.done) throw new Error(`it ended before its beats: ${text}`)
    text += step.value
  }
  // Waiting for it would wait for the other half too.
  void reader.cancel()
  return new Response(others, response)
}
const BEAT = new RegExp(`^:.*${WAITING.source}`, 'gm')
/** Resolves when no request is served any more. */
async function quiet(): Promise<void> {
  while (metric(await gateway.metrics(), 'gateway_requests_in_flight') !== 0) await sleep(5)
}

group('SF-03 a stream that falls silent is kept alive, and ended at its limit', async t => {
  await play('slow', { chunks, hold: 5 })
  const start = performance.now()
  const response = await ask('slow')
  const beating = await beaten(response, 5, BEAT)
  await upstream.release('slow')
  const kept = await read(beating)
  t.match(kept, { text: whole, finishes: ['stop'], ended: true, error: undefined })
  const most = (performance.now() - start) / (HEARTBEAT_MS - 1)
  t.ok(kept.comments >= 5 && kept.comments <= most, `${kept.comments} heartbeats, and no more than their time allows`)

  await play('silent', { chunks, fault: 'stall', afterChunks: 5 })
  const silent = await read(await ask('silent'))
  t.match(silent, { text: chunks.slice(0, 5).join(''), finishes: [], ended: true, error: 'timeout' })
  t.ok(silent.comments >= 2, `${silent.comments} heartbeats`)
  const [entry] = await upstream.record('silent', { ended: 1 })
  t.equal(entry!.outcome, 'aborted')
})

group('S10 a stream that is silent or reset behind its finish reason ends in order, and nobody is blamed', async t => {
  const part = (delta: Json, finish_reason: string | null = null, more: Json = {}) =>
    `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta, finish_reason }], ...more })}\n\n`
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
  const told = [part({ role: 'assistant', content: 'Hello' }), part({}, 'stop', { usage })]
  const untold = [part({ role: 'assistant', content: 'Hello' }), part({}, 'stop')]
  for (const fault of ['stall', 'reset'] as const) {
    // As many failures would open its circuit.
    for (const raw of [told, untold, told, untold, told, untold]) {
      await play('finished', { raw, fault, afterChunks: raw.length })
      const seen = await read(await ask('finished'))
      const says = `${fault} ${raw === told ? 'with' : 'without'} usage`
      t.match(seen, { text: 'Hello', finishes: ['stop'], ended: true, error: undefined }, says)
      t.ok(seen.cost > 0, says)
    }
  }
  await play('finished', { raw: [...told, { text: ': alive\n\n', pauseMs: 100, times: 1e9 }] })
  t.match(await read(await ask('finished')), { finishes: ['stop'], ended: true, error: undefined }, 'comments')
  const outcomes = books.prepare('SELECT DISTINCT outcome FROM requests WHERE requested_model = ?')
  await quiet()
  t.strictSame(outcomes.all('finished'), [{ outcome: 'ok' }])
})

group('SF-03 a provider that takes long to begin: the stream is begun without it, with all its headers', async t => {
  await play('slow', { chunks, hold: 0 })
  const response = await ask('slow')
  t.match(
    (await upstream.record('slow'))[0],
    { outcome: null, chunksSent: 0 },
    'the head does not wait for the provider',
  )
  t.match(response.headers.get('content-type'), /^text\/event-stream/)
  t.match(response.headers.get('ratelimit'), /^"requests";r=\d+;t=\d+$/)
  t.ok(response.headers.get('x-request-id'))
  const begun = await beaten(response, 1, BEAT)
  await upstream.release('slow')
  const seen = await read(begun)
  t.match(seen, { text: whole, finishes: ['stop'], ended: true, error: undefined, ids: 1 })
  t.ok(seen.comments >= 1)
  t.equal(seen.cost > 0, true)

  const pinged = await beaten(await message('slow'), 1, /event: ping/g)
  await upstream.release('slow')
  const told = await readEvents<Json>(pinged)
  t.equal(told.names[0], 'ping', 'in the words of its client')
  t.strictSame(told.data[0], { type: 'ping' })
  t.strictSame([told.terminator, told.comments], ['message_stop', []])

  const blank = await beaten(await generate('slow'), 1, /^(?:\r\n)+/g)
  await upstream.release('slow')
  const { data, comments } = await readEvents<Json>(blank)
  t.match(generated(data), { text: whole, finishes: ['STOP'], error: undefined })
  t.strictSame(comments, [], 'its client takes each line for data')

  const waiting = await beaten(await respond('slow'), 1, /^(?:: [^\n]*\n\n)+/g)
  await upstream.release('slow')
  t.match(responded((await readEvents<Json>(waiting)).data), { text: whole, last: { type: 'response.completed' } })

  const parts = await beaten(await askParts('slow'), 1, /^(?:: [^\n]*\n\n)+/g)
  await upstream.release('slow')
  t.match(folded((await readEvents<Json>(parts)).data), { text: whole, finish: 'stop', error: undefined })
})

group('SF-03 a stream that was begun without its provider fails in band, and costs nothing', async t => {
  await play('late', { fault: 'stall' })
  const response = await ask('late')
  t.equal(response.status, 200)
  const { data, terminator } = await readEvents(response)
  t.match(data, [{ error: { code: 'timeout' } }, { choices: [], usage: { total_tokens: 0, cost: 0 } }])
  t.equal(terminator, '[DONE]')
  const { metadata } = data[1] as { metadata: { log_id: string } }
  // What costs nothing is kept behind the answer.
  await quiet()
  const row = books.prepare('SELECT outcome, cost, status FROM requests WHERE id = ?').get(metadata.log_id)
  t.match(row, { outcome: 'error', cost: 0, status: 504 })
  const told = await readEvents<Json>(await message('late'))
  t.match(told.data.at(-1), { type: 'error', error: { type: 'timeout_error' } })
  t.equal(told.terminator, null)
  const ended = generated((await readEvents<Json>(await generate('late'))).data)
  t.match(ended, { text: '', finishes: [], error: { code: 504, status: 'DEADLINE_EXCEEDED' } })
  const failed = responded((await readEvents<Json>(await respond('late'))).data)
  t.match(failed, { text: '', last: { type: 'response.failed', response: { status: 'failed', output: [] } } })
  const parts = folded((await readEvents<Json>(await askParts('late'))).data)
  t.match(parts, { text: '', finish: 'error', error: { type: 'internal_server_error', statusCode: 504 } })
})

group('SF-04 another provider may still answer a stream that was begun without the first', async t => {
  await play('first', { fault: 'stall' })
  await play('second', { chunks })
  const seen = await read(await ask('pair'))
  t.match(seen, { text: whole, finishes: ['stop'], ended: true, error: undefined, ids: 1 })
  t.match(seen.routing, [
    { provider: 'first', succeeded: false },
    { provider: 'second', succeeded: true },
  ])
})

group('OB-08 a provider that falls silent is left before its deadline, after ten attempts at most', async t => {
  await play('mute', { chunks })
  await play('spare', { chunks })
  // What it usually takes is known then.
  t.match(await read(await ask('left')), { text: whole, routing: [{ provider: 'mute' }] })
  await play('mute', { chunks, hold: 0 })
  const answers = [ask('left').then(read)]
  await upstream.record('mute', { requests: 2 })
  // Its deadline is an hour away. Four in a second, of which the first is the one that is late.
  while ((await upstream.record('spare')).length === 0) {
    answers.push(ask('left').then(read))
    await sleep(250)
  }
  const tried = (await upstream.record('mute')).length - 1
  t.ok(tried >= 5 && tried <= 10, `${tried} of ${answers.length}`)
  await upstream.release('mute')
  for (const seen of await Promise.all(answers)) t.match(seen, { text: whole, ended: true, error: undefined })
})

group('SF-03 the clients of others read streams with heartbeats as they read all streams', async t => {
  await play('slow', { chunks, delayMs: HOLD_MS * 2, chunkDelayMs: HEARTBEAT_MS * 1.5 })
  const openai = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 })
  let text = ''
  const messages = [{ role: 'user' as const, content: question }]
  for await (const chunk of await openai.chat.completions.create({ model: 'slow', messages, stream: true })) {
    text += chunk.choices[0]?.delta.content ?? ''
  }
  t.equal(text, whole)
  const anthropic = new Anthropic({ apiKey: gateway.key, authToken: null, baseURL: gateway.url, maxRetries: 0 })
  const stream = anthropic.messages.stream({ model: 'slow', max_tokens: 50, messages })
  t.equal(await stream.finalText(), whole)
  const google = new GoogleGenAI({ apiKey: gateway.key, httpOptions: { baseUrl: gateway.url } })
  let generated = ''
  for await (const chunk of await google.models.generateContentStream({ model: 'slow', contents: question })) {
    generated += chunk.text ?? ''
  }
  t.equal(generated, whole)
  const response = await openai.responses.stream({ model: 'slow', input: question }).finalResponse()
  t.equal(response.output_text, whole)
})

const delta = (content: string, index = 0) => ({ choices: [{ index, delta: { content } }] })
const finish = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
const done = 'data: [DONE]\n\n'
const event = (payload: object) => `data: ${JSON.stringify(payload)}\n\n`
const clean = [...chunks.map(chunk => event(delta(chunk))), event(finish), done].join('')

/** The same stream as others write it. */
const dialects: [says: string, bytes: string][] = [
  ['CRLF', clean.replaceAll('\n', '\r\n')],
  ['CR', clean.replaceAll('\n', '\r')],
  ['a byte order mark', `\ufeff${clean}`],
  ['comments', clean.replaceAll('data:', ': ping\n\n:\n\ndata:')],
  ['no space after the colon', clean.replaceAll('data: ', 'data:')],
  ['other fields', clean.replaceAll('data:', 'id: 7\nretry: 10\nx: y\nevent: message\ndata:')],
  ['events over two lines', clean.replaceAll('"choices":', '"choices":\ndata: ')],
  ['no blank line at the end', clean.slice(0, -2)],
  ['events without data', clean.replaceAll('data:', 'event: x\n\ndata:')],
]
group('SF-07 a stream says the same in every dialect, in one piece or byte by byte', async t => {
  for (const [says, bytes] of dialects) {
    const pieces: Piece[][] = [
      [bytes],
      [...Buffer.from(bytes)].map(byte => ({ base64: Buffer.from([byte]).toString('base64') })),
    ]
    for (const raw of pieces) {
      await play('a', { raw })
      t.match(await read(await ask('a')), { text: whole, finishes: ['stop'], ended: true, error: undefined }, says)
    }
  }
  const before = await gateway.rss()
  await play('a', {
    raw: [event(delta('One ')), 'data: {"x":"', { text: 'x'.repeat(1_000_000), times: 40 }, `"}\n\n${clean}`],
  })
  const long = await read(await ask('a'))
  t.match(
    long,
    { text: 'One ', finishes: [], ended: true, error: 'upstream_invalid_response' },
    'a line of 40 MB is none',
  )
  t.ok((await gateway.rss()) - before < 200 * 2 ** 20, 'and is not kept')
  await play('a', { raw: [event(delta('One ')), 'data: {bad\n\n', clean] })
  t.match(await read(await ask('a')), { text: 'One ', finishes: [], ended: true, error: 'upstream_invalid_response' })
})

group('SF-09 the gateway asks for usage whether or not its client does, and tells it', async t => {
  for (const stream_options of [undefined, { include_usage: false }, { include_usage: true }]) {
    const { data } = await readEvents(await ask('a', stream_options && { stream_options }))
    t.match(data.at(-1), { choices: [], usage: { prompt_tokens: 4 } })
  }
  for (const { body } of await upstream.record('a')) t.match(body, { stream_options: { include_usage: true } })
})

group('SI-11 no header of a provider reaches a client', async t => {
  const headers = {
    'set-cookie': 'a=b',
    server: 'nginx',
    location: 'https://evil.example/',
    'retry-after': '7',
    'access-control-allow-origin': 'https://evil.example',
    'access-control-expose-headers': 'x-evil',
    'access-control-allow-credentials': 'true',
    'openai-organization': 'org-of-the-operator',
    'x-ratelimit-remaining-requests': '1',
    'x-request-id': 'of-the-provider',
    'x-gateway-cache': 'HIT',
    'keep-alive': 'timeout=1',
    'content-disposition': 'attachment',
  }
  for (const stream of [true, false]) {
    const answer = async (step: Step) => {
      await play('a', step)
      const response = await ask('a', { stream })
      await response.text()
      return response.headers
    }
    const plain = await answer({ chunks })
    const given = await answer({ chunks, headers })
    t.strictSame([...given.keys()], [...plain.keys()], `stream: ${stream}`)
    for (const [name, value] of Object.entries(headers)) t.not(given.get(name), value, name)
  }
})

group('SF-12 a client that closes its half of the connection has left', async t => {
  await play('slow', { chunks, hold: 4 })
  const body = JSON.stringify({ model: 'slow', stream: true, messages: [{ role: 'user', content: question }] })
  const head = ['POST /v1/chat/completions HTTP/1.1', 'Host: g', `Authorization: Bearer ${gateway.key}`]
  head.push('Content-Type: application/json', 'x-request-id: half', `Content-Length: ${body.length}`, '', body)
  const socket = connect({ port: gateway.port, host: '127.0.0.1', allowHalfOpen: true })
  socket.write(head.join('\r\n'))
  await once(socket, 'readable')
  await upstream.record('slow', { requests: 1, chunks: 4 })
  socket.end()
  const [entry] = await upstream.record('slow', { ended: 1 })
  t.equal(entry!.outcome, 'aborted')
  socket.destroy()
  await quiet()
  const row = books.prepare("SELECT outcome, cost > 0 AS paid FROM requests WHERE request_id = 'half'").get()
  t.strictSame(row, { outcome: 'aborted', paid: 1 })
})

group('SF-13 choices that interleave stay apart, and each ends by itself', async t => {
  const events = [
    { choices: [{ index: 2, delta: { role: 'assistant', content: '' } }] },
    ...chunks.flatMap(chunk => [0, 1, 2].map(index => delta(`${index}${chunk}`, index))),
    { choices: [{ index: 1, delta: {}, finish_reason: 'length' }] },
    delta('', 0),
    delta('more', 2),
    { choices: [{ index: 2, delta: {}, finish_reason: 'stop' }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  ]
  await play('a', { raw: [...events.map(event), done] })
  const { data, terminator } = await readEvents(await ask('a', { n: 3 }))
  const ends = (index: number) =>
    data.flatMap(({ choices = [] }) =>
      choices.filter(choice => choice.index === index).flatMap(({ finish_reason }) => finish_reason ?? []),
    )
  for (const [index, text, end] of [
    [0, '', 'stop'],
    [1, '', 'length'],
    [2, 'more', 'stop'],
  ] as const) {
    t.equal(textOf(data, index), chunks.map(chunk => `${index}${chunk}`).join('') + text)
    t.strictSame(ends(index), [end])
  }
  t.equal(terminator, '[DONE]')

  const args = JSON.stringify({ text: 'ünï"\\\n', list: [1, 2, 3] })
  const call = (fields: Json) => ({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...fields }] } }] })
  const calls = [call({ id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } })]
  for (const character of args) calls.push(call({ function: { arguments: character } }))
  const ended = { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }
  await play('a', { raw: [...calls.map(event), event(ended), done] })
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const called = (await readEvents(await ask('a', { tools }))).data
  const told = called.flatMap(({ choices = [] }: ChatChunk) => choices.flatMap(({ delta }) => delta.tool_calls ?? []))
  t.equal(told.map(({ function: f }) => f?.arguments ?? '').join(''), args)
  t.equal(told.filter(({ id }) => id !== undefined).length, 1)

  const many = runs(100_000)
  await play('slow', { raw: [{ text: event(delta('x')), times: many }, event(finish), done] })
  let value = Number.POSITIVE_INFINITY
  for (let n = 0; n < TIMINGS; n++) {
    await gateway.metrics()
    const long = await read(await ask('slow'))
    t.equal(long.text.length, many, 'every piece of one byte')
    const lag = metric(await gateway.metrics(), 'gateway_event_loop_lag_seconds', { quantile: '0.99' })!
    value = Math.min(value, 1000 * lag)
  }
  timing(t, { id: 'SF-13', what: 'others wait for tiny pieces', value, unit: 'ms', atMost: 50 })
  await flood.script('flood', [{ raw: [{ text: event(delta('x')).repeat(1000), pauseMs: 1, times: 1e9 }] }])
  const flooding = (await ask('flood')).body!.getReader()
  let flowing = true
  const taking = (async () => {
    while (flowing && !(await flooding.read()).done);
    await flooding.cancel()
  })()
  for (let n = 0; n < 5; n++) {
    const other = await read(await ask('a'))
    t.match(other, { ended: true, error: undefined }, 'others are served while it goes on')
  }
  t.match(await flood.record('flood'), [{ outcome: null }])
  flowing = false
  await taking
  t.match(await flood.record('flood', { ended: 1 }), [{ outcome: 'aborted' }])
})

group('SF-14 what comes behind the end of a stream is not looked at', async t => {
  const rows: [says: string, bytes: string][] = [
    ['data', clean + event(delta('more'))],
    ['another terminator', clean + done],
    ['a second finish', [...chunks.map(chunk => event(delta(chunk))), event(finish), event(finish), done].join('')],
    ['a whole stream', clean + clean],
  ]
  for (const [says, bytes] of rows) {
    await play('a', { raw: [bytes] })
    t.match(await read(await ask('a')), { text: whole, finishes: ['stop'], ended: true, error: undefined }, says)
  }
})

group('SF-15 a stream that trickles for ever ends with the time of all attempts, and costs what came', async t => {
  await play('endless', { chunks: ['One '], fault: 'trickle', chunkDelayMs: 100 })
  const start = performance.now()
  const seen = await read(await ask('endless'))
  const ms = performance.now() - start
  t.ok(ms > TOTAL_MS - 10, `after ${Math.round(ms)} ms`)
  timing(t, { id: 'SF-15', what: 'a stream that trickles ends after', value: ms, unit: 'ms', atMost: TOTAL_MS + 1500 })
  t.match(seen, { finishes: [], ended: true, error: 'timeout' })
  const tokens = seen.text.length / 4
  t.ok(tokens > 3 && Math.abs(seen.cost - (4 * 1000 + tokens * 2000) / 1e9) < 1e-12, `${tokens} tokens: ${seen.cost}`)
})

const forms = [
  ['chat', ask],
  ['messages', message],
  ['gemini', generate],
  ['responses', respond],
  ['ai-sdk', askParts],
] as const
const textIn = {
  chat: (data: Json[]) => textOf(data as Json[] & ChatChunk[]),
  messages: (data: Json[]) => (data as { delta?: { text?: string } }[]).map(({ delta }) => delta?.text ?? '').join(''),
  gemini: (data: Json[]) => generated(data).text,
  responses: (data: Json[]) => responded(data).text,
  'ai-sdk': (data: Json[]) => folded(data).text,
}
group('SF-16, SF-17 a stream that is cut at any byte is a beginning of it, and never looks whole', async t => {
  await play('a', { chunks })
  const body = { model: 'a', stream: true, messages: [{ role: 'user', content: 'Hi' }] }
  const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const bytes = Buffer.from(await (await fetch(`${upstream.url('a')}/chat/completions`, request)).arrayBuffer())
  t.ok(bytes.length > 1000)
  const step = Math.ceil(bytes.length / 60)
  for (let k = 1; k < bytes.length - done.length; k += step) {
    await play('a', { raw: [{ base64: bytes.subarray(0, k).toString('base64') }] })
    for (const [form, ask] of forms) {
      const response = await ask('a')
      if (response.status !== 200) {
        t.equal(response.status, 502, 'before any content it is another status')
        await response.text()
        continue
      }
      const { data, terminator } = await readEvents<Json>(response)
      const text = textIn[form](data)
      t.ok(whole.startsWith(text), `${form}, ${k} bytes: a beginning`)
      const failed = data.some(
        ({ error, type }) => error !== undefined || type === 'error' || type === 'response.failed',
      )
      t.ok(failed || (text === whole && bytes.subarray(0, k).includes('"stop"')), `${form}, ${k} bytes: it fails`)
      if (form === 'messages' && failed) t.equal(terminator, null)
      if (form === 'gemini' && failed) t.strictSame(generated(data).finishes, [])
      if (form === 'ai-sdk' && failed) t.equal(folded(data).finish, 'error')
      if (form === 'responses' && failed) t.equal(responded(data).last.type, 'response.failed')
    }
  }
})
