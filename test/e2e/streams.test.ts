/** Streams that are poisoned, cut short, or left by their client, and what each of them costs. */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { callAiSdk, fold, type Part } from '../helpers/ai-sdk-chat.ts'
import { cachingKey, groupsOf, openBooks } from '../helpers/books.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { isErrorBody, metric } from '../helpers/invariants.ts'
import { type ChatChunk, readEvents, textOf } from '../helpers/sse.ts'
import { type Piece, type Step, startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>
interface Metadata {
  log_id: string
  routing: { provider: string; status_code: number; succeeded: boolean }[]
}

/** Nano-USD per token. */
const rates = { prompt: 1000, completion: 2000, cached: 100, reasoning: 3000 }
const pricing = { prompt: '1', completion: '2', input_cache_read: '0.1', internal_reasoning: '3' }
const question = 'What comes out of the other end?'
const promptTokens = Math.ceil(question.length / 4)
/** Four characters, which is a token as the gateway estimates. */
const chunks = ['One ', 'two ', 'six ', 'ten ', 'and ', 'more', ' of ', 'it. ']
const told = chunks.slice(0, 5).join('')
const priceOf = (completion: number) => promptTokens * rates.prompt + completion * rates.completion

const upstream = await startUpstream(t)
const serve = (id: string, model: string, more: Tree = {}) => ({
  [id]: { base_url: upstream.url(id), models: [{ ...testMapping, model, id: `${id}-1`, pricing }], ...more },
})
const anthropic = { wires: { chat: 'anthropic.messages' }, headers: { 'anthropic-version': '2023-06-01' } }
const gateway = await startGateway(t, {
  providers: {
    ...serve('plain', 'plain'),
    ...serve('claude', 'claude', anthropic),
    // Without reasoning: nothing of an answer is out of sight.
    ...serve('left', 'left', {
      models: [{ ...testMapping, model: 'left', id: 'left-1', pricing, supports: ['streaming'] }],
    }),
    ...serve('endless', 'endless', {
      models: [
        { ...testMapping, model: 'endless', id: 'endless-1', pricing, cancellable: false, max_output: 1_000_000 },
      ],
    }),
    ...serve('first', 'pair', { priority: 2 }),
    ...serve('second', 'pair'),
  },
})
const books = openBooks(t, gateway, { writable: true })
const caching = { authorization: `Bearer ${cachingKey(books)}` }
const group = groupsOf(t, { gateway, upstream, books })

const play = (prefix: string, ...steps: Step[]) => upstream.script(prefix, steps)
const hits = async (prefix: string) => (await upstream.record(prefix)).length
const request = (model: string, stream: boolean) => ({ model, stream, messages: [{ role: 'user', content: question }] })
const ask = (model: string, stream = true, headers = {}, signal?: AbortSignal) =>
  gateway.chat(request(model, stream), headers, signal)

/** Resolves when no request is served any more: rows are kept after the client has left. */
async function quiet(): Promise<void> {
  while (metric(await gateway.metrics(), 'gateway_requests_in_flight') !== 0) await sleep(5)
}

/** Reads a stream to its end; `seen` is what tells success from failure. */
async function read(response: Response) {
  const { data, terminator, after, names, raw } = await readEvents(response)
  const last = data.at(-1) as ChatChunk & { metadata: Metadata; usage: Tree }
  return {
    data,
    raw,
    seen: {
      text: textOf(data),
      finishes: data.flatMap(({ choices = [] }) => choices.flatMap(({ finish_reason }) => finish_reason ?? [])),
      ended: terminator === '[DONE]' && after === 0 && names.every(name => name === undefined),
    },
    error: data.find(({ error }) => error)?.error,
    usage: last.usage,
    metadata: last.metadata,
  }
}
/** The same by a client of Google's API: as events, or as one array. */
async function generated(headers: Record<string, string>, alt = '?alt=sse') {
  const body = { contents: [{ role: 'user', parts: [{ text: question }] }] }
  const response = await gateway.post(`/v1beta/models/plain:streamGenerateContent${alt}`, body, headers)
  const data = (alt ? (await readEvents<Tree>(response)).data : await response.json()) as (Tree & {
    candidates?: { content?: { parts?: { text?: string }[] }; finishReason?: string }[]
    error?: { code: number }
    gateway?: Metadata
  })[]
  const parts = data.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
  return {
    text: parts.map(({ text = '' }) => text).join(''),
    finishes: data.flatMap(({ candidates }) => candidates?.[0]?.finishReason ?? []),
    error: data.at(-1)!.error,
    id: data[0]!.responseId,
    metadata: data.at(-1)!.gateway as Metadata,
  }
}
/** The same by a client of the Responses API. */
async function responded(headers: Record<string, string>) {
  const response = await gateway.post('/v1/responses', { model: 'plain', input: question, stream: true }, headers)
  const { data } = await readEvents<Tree & { type: string; delta?: string }>(response)
  const texts = data.filter(({ type }) => type === 'response.output_text.delta')
  const { type, response: last } = data.at(-1) as { type: string; response: Tree & { gateway: Metadata } }
  return {
    text: texts.map(({ delta }) => delta).join(''),
    type,
    id: last.id,
    error: last.error,
    metadata: last.gateway,
  }
}
/** The same by a client of the AI SDK. */
async function folded(headers: Record<string, string>) {
  const prompt = [{ role: 'user', content: [{ type: 'text', text: question }] }]
  const response = await callAiSdk(gateway, 'plain', { prompt }, 'stream', headers)
  const { data } = await readEvents<Part>(response)
  const { content = [], finishReason, error, providerMetadata } = fold(data)
  const text = content.map(({ text = '' }) => text).join('')
  return { text, finish: finishReason!.unified, error, own: providerMetadata!.gateway }
}
const chargeOf = (logId: string) =>
  books.prepare("SELECT -amount FROM ledger WHERE request_id = ? AND kind = 'charge'").pluck().get(logId)
const rowOf = (logId: string) => books.prepare('SELECT * FROM requests WHERE id = ?').get(logId) as Tree

/** What ends an event, a line or a string somewhere between a provider and a client. */
const poison = [
  '\n\ndata: [DONE]\n\n',
  '\r',
  '\r\n\r\n',
  'event: error\n',
  ': x\n\n',
  '\u2028\u2029',
  '\0',
  '"}]}\\',
  '\ud83d',
]

group('SI-10 what a provider writes cannot end, split or forge an event', async t => {
  const text = poison.join('')
  await play('plain', { chunks: poison, reasoning: poison })
  const answer = await read(await ask('plain'))
  t.equal(answer.data.map(({ choices }) => choices?.[0]?.delta.reasoning ?? '').join(''), text)
  t.strictSame(answer.seen, { text, finishes: ['stop'], ended: true })
  t.equal(answer.error, undefined)

  await play('plain', { toolCalls: [{ name: 'write', args: { text } }] })
  const call = await read(
    await gateway.chat({ ...request('plain', true), tools: [{ type: 'function', function: { name: 'write' } }] }),
  )
  const args = call.data.map(({ choices }) => choices?.[0]?.delta.tool_calls?.[0]?.function?.arguments ?? '').join('')
  t.strictSame(JSON.parse(args), { text })
  t.strictSame(call.seen, { text: '', finishes: ['tool_calls'], ended: true })

  await play('plain', {
    chunks,
    fault: 'error-event',
    afterChunks: 5,
    body: { error: { message: text, code: text, type: 'invalid_request_error' } },
  })
  const failed = await read(await ask('plain'))
  t.strictSame(failed.seen, { text: told, finishes: [], ended: true })
  t.equal(failed.error?.message, text)
  for (const { raw } of [answer, call, failed]) {
    t.equal(raw.split('data: [DONE]\n\n').length, 2, 'there is one terminator')
    t.ok(
      [...raw].every(character => character >= ' ' || character === '\n'),
      'and no control character but line feeds',
    )
  }
})

const cuts: { says: string; step: Step }[] = [
  { says: 'in chunks, without the last of them', step: { chunks, fault: 'fin', afterChunks: 5 } },
  {
    says: 'without a length, so that it looks complete',
    step: { chunks, fault: 'fin', afterChunks: 5, unframed: true },
  },
  { says: 'in good order, without a finish reason', step: { chunks: chunks.slice(0, 5), fault: 'truncate' } },
]
group('SF-01 a stream that ends too early never looks like success, and is charged for what was delivered', async t => {
  for (const { says, step } of cuts) {
    await t.test(says, async t => {
      await play('plain', step)
      const before = await hits('plain')
      for (const round of [1, 2]) {
        const response = await ask('plain', true, caching)
        t.match([response.status, response.headers.get('x-gateway-cache')], [200, 'MISS'], 'it is not cached')
        const { seen, error, usage, metadata } = await read(response)
        t.strictSame(seen, { text: told, finishes: [], ended: true })
        t.match(error, { type: 'upstream_error', code: /^(upstream_stream_truncated|fetch_failed)$/ })
        t.match(usage, { prompt_tokens: promptTokens, completion_tokens: 5, cost: priceOf(5) / 1e9 })
        t.equal(metadata.routing.length, 1)
        t.match(metadata.routing, [{ provider: 'plain', succeeded: false }])
        t.equal(chargeOf(metadata.log_id), priceOf(5))
        t.match(rowOf(metadata.log_id), { outcome: 'error', estimated: 1, error_code: error!.code })
        t.equal(await hits('plain'), before + round)
      }
      const whole = await ask('plain', false, caching)
      t.equal(whole.status, 502, 'the same answer in one piece is none')
      t.ok(isErrorBody(await whole.json()))
    })
  }
  await play('plain', { chunks })
  for (const cache of ['MISS', 'HIT']) {
    const response = await ask('plain', true, caching)
    t.equal(response.headers.get('x-gateway-cache'), cache, 'the first that is complete is kept')
    t.strictSame((await read(response)).seen, { text: chunks.join(''), finishes: ['stop'], ended: true })
  }
})

group('a replay is the first answer again, to another request', async t => {
  const identity = ({ id, object, created, model, provider }: Tree) => ({ id, object, created, model, provider })
  const { data, metadata } = await read(await ask('claude', true, caching))
  const first = data[0] as Tree
  t.match(first, { id: `chatcmpl-${metadata.log_id}`, provider: 'claude' })
  for (const stream of [true, false]) {
    const response = await ask('claude', stream, { ...caching, 'x-request-id': `again-${stream}` })
    t.equal(response.headers.get('x-gateway-cache'), 'HIT')
    t.equal(response.headers.get('x-request-id'), `again-${stream}`)
    const again = (stream ? (await read(response)).data.at(-1) : await response.json()) as Tree & { metadata: Metadata }
    t.strictSame(identity(again), { ...identity(first), ...(!stream && { object: 'chat.completion' }) })
    t.match(again.metadata, { request_id: `again-${stream}`, cached: true })
    t.not(again.metadata.log_id, metadata.log_id)
  }
  const body = { model: 'plain', max_tokens: 64, messages: [{ role: 'user', content: question }] }
  const message = async () =>
    (await (await gateway.post('/v1/messages', body, caching)).json()) as Tree & { metadata: Metadata }
  const [one, two] = [await message(), await message()]
  t.equal(one.id, `msg_${one.metadata.log_id}`)
  t.match(two, { id: one.id, metadata: { cached: true } })
  t.not(two.metadata.log_id, one.metadata.log_id)
  const again = await generated(caching)
  const replayed = await generated(caching)
  t.match(replayed, { text: again.text, id: again.id, finishes: ['STOP'], metadata: { cached: true } })
  t.not(replayed.metadata.log_id, again.metadata.log_id)
  const third = await responded(caching)
  const fourth = await responded(caching)
  t.match(fourth, { text: third.text, id: third.id, type: 'response.completed', metadata: { cached: true } })
  t.not(fourth.metadata.log_id, third.metadata.log_id)
  const fifth = await folded(caching)
  const sixth = await folded(caching)
  const { generationId } = fifth.own
  t.match(sixth, { text: fifth.text, finish: 'stop', own: { cached: true, cost: '0', generationId } })
  t.not(sixth.own.requestId, fifth.own.requestId)
})

group('SF-01, SF-06 a client of the AI SDK sees no success in a stream that broke, and pays the same', async t => {
  for (const { says, step } of [
    ...cuts,
    { says: 'by an error', step: { chunks, fault: 'error-event', afterChunks: 5 } satisfies Step },
  ]) {
    await play('plain', step)
    const id = `ai-sdk-${says}`.replaceAll(/\W/g, '-')
    const { text, finish, error } = await folded({ 'x-request-id': id })
    const failure = { type: 'internal_server_error', statusCode: 502, isRetryable: true }
    t.match({ text, finish, error }, { text: told, finish: 'error', error: failure }, says)
    await quiet()
    const row = books.prepare('SELECT * FROM requests WHERE request_id = ?').get(id) as Tree
    t.match(row, { endpoint: 'ai-sdk', outcome: 'error', estimated: 1, cost: priceOf(5) }, says)
    t.equal(chargeOf(row.id as string), priceOf(5))
  }
})

group(
  'SF-01, SF-06 a client of the Responses API sees no success in a stream that broke, and pays the same',
  async t => {
    for (const { says, step } of [
      ...cuts,
      { says: 'by an error', step: { chunks, fault: 'error-event', afterChunks: 5 } satisfies Step },
    ]) {
      await play('plain', step)
      const id = `responses-${says}`.replaceAll(/\W/g, '-')
      const { text, type, error } = await responded({ 'x-request-id': id })
      t.match({ text, type, error }, { text: told, type: 'response.failed', error: { code: 'server_error' } }, says)
      await quiet()
      const row = books.prepare('SELECT * FROM requests WHERE request_id = ?').get(id) as Tree
      t.match(row, { endpoint: 'responses', outcome: 'error', estimated: 1, cost: priceOf(5) }, says)
      t.equal(chargeOf(row.id as string), priceOf(5))
    }
  },
)

group("SF-01, SF-06 a client of Google's API sees no success in a stream that broke, and pays the same", async t => {
  for (const { says, step } of [
    ...cuts,
    { says: 'by an error', step: { chunks, fault: 'error-event', afterChunks: 5 } satisfies Step },
  ]) {
    for (const alt of ['?alt=sse', '']) {
      await play('plain', step)
      const id = `${says}${alt}`.replaceAll(/\W/g, '-')
      const { text, finishes, error } = await generated({ 'x-request-id': id }, alt)
      t.match({ text, finishes, error }, { text: told, finishes: [], error: { code: 502 } }, `${says} ${alt}`)
      await quiet()
      const row = books.prepare('SELECT * FROM requests WHERE request_id = ?').get(id) as Tree
      t.match(row, { endpoint: 'gemini', outcome: 'error', estimated: 1, cost: priceOf(5) }, says)
      t.equal(chargeOf(row.id as string), priceOf(5))
    }
  }
})

group('SF-06 an error in the middle of a stream is passed on, and nobody begins again', async t => {
  await play('first', { chunks, fault: 'error-event', afterChunks: 5 })
  const { seen, metadata, error } = await read(await ask('pair'))
  t.strictSame(seen, { text: told, finishes: [], ended: true })
  t.match(error, { type: 'upstream_error', message: 'The provider failed.' })
  t.match(metadata.routing, [{ provider: 'first', succeeded: false }])
  t.equal(metadata.routing.length, 1)
  t.equal(chargeOf(metadata.log_id), priceOf(5))
  t.strictSame([await hits('first'), await hits('second')], [1, 0])
})

const usage = {
  prompt_tokens: 100,
  completion_tokens: 20,
  total_tokens: 120,
  prompt_tokens_details: { cached_tokens: 40 },
  completion_tokens_details: { reasoning_tokens: 5 },
}
const partly = (completion_tokens: number) => ({
  ...usage,
  completion_tokens,
  completion_tokens_details: { reasoning_tokens: 1 },
})
const delta = (content: string) => ({ choices: [{ index: 0, delta: { content } }] })
const finish = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
const streamOf = (...events: object[]): Piece[] => [
  ...events.map(event => `data: ${JSON.stringify(event)}\n\n`),
  'data: [DONE]\n\n',
]
const reports: [says: string, events: object[]][] = [
  ['in a chunk of its own', [delta('Hello'), finish, { choices: [], usage }]],
  ['in the chunk that finishes', [delta('Hello'), { ...finish, usage }]],
  ['in a chunk with text', [{ ...delta('Hello'), usage }, finish]],
  ['before the chunk that finishes', [delta('Hello'), { choices: [], usage }, finish]],
  ['twice', [delta('Hello'), { ...finish, usage }, { choices: [], usage }]],
  [
    'in every chunk, as a running sum',
    [
      { ...delta('Hel'), usage: partly(3) },
      { ...delta('lo'), usage: partly(9) },
      { ...finish, usage },
    ],
  ],
  [
    'after many that say null',
    [
      { ...delta('Hello'), usage: null },
      { ...finish, usage: null },
      { choices: [], usage },
    ],
  ],
]
group('SF-08 a stream costs what the same usage costs in one piece, wherever it is reported', async t => {
  const full = 60 * rates.prompt + 40 * rates.cached + 15 * rates.completion + 5 * rates.reasoning
  const costs = async (t: Test, model: string, stream: boolean, cost: number, info?: RegExp) => {
    const response = await ask(model, stream)
    const answer = (stream ? await read(response) : await response.json()) as { usage: Tree; metadata: Metadata }
    t.equal(answer.usage.cost, cost / 1e9)
    t.equal(chargeOf(answer.metadata.log_id), cost)
    if (info) t.match(answer.usage.info, info)
    else t.notOk('info' in answer.usage)
    t.equal(rowOf(answer.metadata.log_id).estimated, info ? 1 : 0)
  }
  const message = { role: 'assistant', content: 'Hello' }
  await play('plain', { body: { choices: [{ index: 0, message, finish_reason: 'stop' }], usage } })
  await costs(t, 'plain', false, full)
  for (const [says, events] of reports) {
    await play('plain', { raw: streamOf(...events) })
    await t.test(says, t => costs(t, 'plain', true, full))
  }
  const anthropicCost = 60 * rates.prompt + 40 * rates.cached + 20 * rates.completion
  await play('claude', { text: 'Hello', usage: { prompt: 100, completion: 20, cached: 40 } })
  await play('plain', { text: chunks.join(''), usage: null })
  for (const stream of [false, true]) {
    await t.test(`on another wire, stream: ${stream}`, t => costs(t, 'claude', stream, anthropicCost))
    await t.test(`not at all, stream: ${stream}`, t => costs(t, 'plain', stream, priceOf(chunks.length), /estimated/))
  }
})

const all = [
  ...chunks.map(delta),
  finish,
  { choices: [], usage: { prompt_tokens: promptTokens, completion_tokens: 8 } },
]
const departures: { says: string; step: Step; reads: number; cost: number }[] = [
  { says: 'before the first byte', step: { chunks, hold: 0 }, reads: 0, cost: priceOf(0) },
  { says: 'after five chunks', step: { chunks, hold: 5 }, reads: 5, cost: priceOf(5) },
  {
    says: 'between the last chunk and the end',
    step: { raw: streamOf(...all), hold: all.length },
    reads: 8,
    cost: priceOf(8),
  },
]
group('SF-10 E11 a client that leaves ends the work for it soon, and pays for what was done', async t => {
  for (const { says, step, reads, cost } of departures) {
    await t.test(says, async t => {
      for (let round = 1; round <= 2; round++) {
        await upstream.reset()
        await play('left', step)
        const client = new AbortController()
        const id = `${says.replaceAll(' ', '-')}-${round}`
        const response = ask('left', true, { 'x-request-id': id }, client.signal)
        const reader = reads > 0 ? (await response).body!.pipeThrough(new TextDecoderStream()).getReader() : undefined
        let got = ''
        while (got.split('"content"').length <= reads) {
          const { value, done } = await reader!.read()
          if (done) return t.fail('the stream ends before the client leaves')
          got += value
        }
        await upstream.record('left', { requests: 1, chunks: step.hold! })
        client.abort()
        const rest: Promise<unknown> = reader ? reader.read() : response
        await t.rejects(rest)
        const [entry] = await upstream.record('left', { ended: 1 })
        t.equal(entry!.outcome, 'aborted')
        await quiet()
        const row = books.prepare('SELECT * FROM requests WHERE request_id = ?').get(id) as Tree
        t.match(row, { outcome: 'aborted', error_code: 'request_cancelled', cost })
        t.equal(chargeOf(row.id as string), cost)
      }
    })
  }
  await upstream.reset()
  await play('left', { chunks })
  const client = new AbortController()
  const reader = (await ask('left', true, { 'x-request-id': 'whole' }, client.signal)).body!.getReader()
  for (let end = ''; !end.includes('[DONE]'); end += Buffer.from((await reader.read()).value!).toString());
  client.abort()
  const [entry] = await upstream.record('left', { ended: 1 })
  t.match(entry, { outcome: 'completed', aborted: false }, 'who leaves after the end interrupts nothing')
  const row = books.prepare("SELECT * FROM requests WHERE request_id = 'whole'").get()
  t.match(row, { outcome: 'ok', cost: priceOf(chunks.length) })
  const attempts = await gateway.metrics()
  for (const outcome of ['network_error', 'timeout', 'upstream_error', 'rate_limited']) {
    t.equal(
      metric(attempts, 'gateway_attempts_total', { outcome, provider: 'left' }),
      0,
      `no ${outcome} of the provider`,
    )
  }
})

group('SF-10 an answer that its provider does not cancel is read to its end, and paid for whole', async t => {
  for (const stream of [true, false]) {
    await upstream.reset()
    const long = Array.from({ length: 6 }, () => 'x'.repeat(512 * 1024))
    await play('endless', { chunks: ['One ', ...long], hold: stream ? 1 : 0, usage: { prompt: 10, completion: 50 } })
    const client = new AbortController()
    const id = `endless-${stream}`
    const response = ask('endless', stream, { 'x-request-id': id }, client.signal)
    if (stream) await (await response).body!.getReader().read()
    await upstream.record('endless', { requests: 1 })
    client.abort()
    if (!stream) await t.rejects(response)
    while (metric(await gateway.metrics(), 'gateway_requests_in_flight') === 0) await sleep(5)
    await upstream.release('endless')
    const [entry] = await upstream.record('endless', { ended: 1 })
    t.equal(entry!.outcome, 'completed', `stream: ${stream}`)
    await quiet()
    const row = books.prepare('SELECT * FROM requests WHERE request_id = ?').get(id) as Tree
    t.match(row, { outcome: 'aborted', cost: 10 * rates.prompt + 50 * rates.completion, estimated: 0 })
    t.equal(chargeOf(row.id as string), row.cost)
  }
})

group('SF-10 a client that leaves ends the streams that wait behind another one, too', async t => {
  // Of the second, the connection has more to send than is kept for it.
  await play('left', { chunks, hold: 1 }, { chunks: ['x'.repeat(100_000), 'y'], hold: 1 }, { chunks, hold: 1 })
  const body = JSON.stringify(request('left', true))
  const lines = ['POST /v1/chat/completions HTTP/1.1', 'Host: gateway', `Authorization: Bearer ${gateway.key}`]
  lines.push('Content-Type: application/json', `Content-Length: ${body.length}`, '', body)
  const socket = connect(gateway.port, '127.0.0.1').on('error', () => undefined)
  socket.resume().write(lines.join('\r\n').repeat(3))
  await upstream.record('left', { requests: 3, chunks: 1 })
  socket.destroy()
  const entries = await upstream.record('left', { ended: 3 })
  t.match(entries, [{ outcome: 'aborted' }, { outcome: 'aborted' }, { outcome: 'aborted' }])
  await quiet()
  const rows = books.prepare('SELECT outcome FROM requests ORDER BY at DESC LIMIT 3').pluck()
  t.strictSame(rows.all(), ['aborted', 'aborted', 'aborted'])
})
