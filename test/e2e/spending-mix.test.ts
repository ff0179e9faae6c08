/**
 * Random mixes of organizations, client wires, operations, lengths, faults and clients that leave: each organization is
 * charged what its provider bills at least, but for what only an estimate tells, and no balance passes its bound.
 */
import { randomInt } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { wavHead } from '../../src/lib/wav.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { random } from '../helpers/random.ts'
import { unlimited } from '../helpers/rates.ts'
import { RealtimeClient } from '../helpers/realtime-client.ts'
import { realtimeProvider, respond, usualTake } from '../helpers/realtime-provider.ts'
import { runs } from '../helpers/runs.ts'

type Tree = Record<string, unknown>

const SEED = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31))
const REQUESTS = runs(900)
const AT_ONCE = 16
/** Tokens that a stream is held for at a time. */
const EXTENSION = 256
/** USD per token, image, character, second, request and page. */
const PRICE = {
  ...{ prompt: 10e-6, completion: 50e-6, image: 0.004, character: 15e-6, second: 0.36 / 3600 },
  ...{ moderation: 0.0005, search: 0.001, page: 0.002, film: 0.001 },
}
/** USD of a response in a realtime session: ten tokens read, five written. */
const TALK = 10 * PRICE.prompt + 5 * PRICE.completion
/** Of what was not reported: that an estimate may be lower by. */
const ESTIMATE_ERROR = 0.2
const TOKEN = 'abc '
/** Tokens of a piece, and milliseconds between two: some thousand tokens a second, which no provider writes. */
const PIECE = 4
const PACE_MS = 2
const DEFAULT_LIMIT = 300

/** What one request is to be answered with; its number stands in its prompt, and finds it. */
interface Plan {
  readonly org: number
  readonly tokens: number
  readonly reports: boolean
  readonly fault: 'none' | 'refused' | 'cut'
  billed: number
  /** Billed without a report that the gateway can have read. */
  unreported: number
  /** Its client has left: it was charged what was seen, and never more than was held by then. */
  left: boolean
  /** Its client was told that it ended for want of money: the provider may have been further. */
  stopped: boolean
  /** Its stream was given up before its end: it has written on while it did not notice. */
  early: boolean
  /** Of the answer; 0 for none. */
  status: number
}
const plans: Plan[] = []

/**
 * What a balance may be below zero by: for each request of its organization that a provider has at the same time the
 * estimate error of its prompt and, of a stream, one extension. `most` is what that came to.
 */
class Exposure {
  #now = 0
  most = 0

  begin(share: number): () => void {
    this.#now += share
    this.most = Math.max(this.most, this.#now)
    return () => {
      this.#now -= share
    }
  }
}
const exposures: Exposure[] = []

/** Says `${number}` once so many pieces of that answer are on their way. */
const sent = new EventEmitter()
sent.setMaxListeners(0)

const secondsOf = (tokens: number) => (tokens % 2 === 0 ? 4 : 8)
const quarter = (text: string) => Math.ceil(text.length / 4)
const planOf = (body: string): [number, Plan] => {
  const number = Number(/request-(\d+)/.exec(body)?.[1])
  return [number, plans[number]!]
}

async function bytesOf(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('latin1')
}

/** A provider that bills for what it was sent and what it has written, whoever is there to read it. */
async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const raw = await bytesOf(req)
  if (/\/videos\/film-/.test(req.url!)) {
    res.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"completed","progress":100}')
    return
  }
  const [number, plan] = planOf(raw)
  res.on('error', () => undefined)
  const isStream = raw.includes('"stream":true')
  const prompt = ESTIMATE_ERROR * quarter(raw) * PRICE.prompt
  res.on('close', exposures[plan.org]!.begin(prompt + (isStream ? EXTENSION * PRICE.completion : 0)))
  if (plan.fault === 'refused') {
    res.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}')
    return
  }
  const bill = (usd: number, reported: boolean) => {
    plan.billed += usd
    if (!reported) plan.unreported += usd
  }
  if (req.url!.endsWith('/images/generations')) {
    const { n = 1 } = JSON.parse(raw) as { n?: number }
    bill(n * PRICE.image, true)
    const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(24, 7)])
    sent.emit(`${number}`)
    res.writeHead(200, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ data: Array.from({ length: n }, () => ({ b64_json: png.toString('base64') })) }))
  } else if (req.url!.endsWith('/audio/speech')) {
    bill((JSON.parse(raw) as { input: string }).input.length * PRICE.character, true)
    sent.emit(`${number}`)
    res.writeHead(200, { 'content-type': 'audio/wav' }).end(Buffer.concat([wavHead(24_000, 480), Buffer.alloc(480)]))
  } else if (req.url!.endsWith('/audio/transcriptions')) {
    bill(plan.tokens * PRICE.second, true)
    sent.emit(`${number}`)
    res.writeHead(200, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ text: 'a', duration: plan.tokens, usage: { type: 'duration', seconds: plan.tokens } }))
  } else if (!/\/(?:completions|messages)$/.test(req.url!)) {
    const [usd, answer] = small(req.url!.split('/').at(-1)!, raw)
    bill(usd, true)
    sent.emit(`${number}`)
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  } else await talk(req.url!, raw, res, number, plan, bill)
}

/** What is billed for a request of an operation that answers once, and its answer. */
function small(operation: string, raw: string): [usd: number, answer: object] {
  const body = (operation === 'videos' ? {} : JSON.parse(raw)) as Tree
  switch (operation) {
    case 'embeddings': {
      const prompt_tokens = quarter(body.input as string)
      const data = [{ index: 0, object: 'embedding', embedding: [0.1] }]
      return [prompt_tokens * PRICE.prompt, { data, usage: { prompt_tokens } }]
    }
    case 'moderations':
      return [PRICE.moderation, { results: [{ flagged: false, categories: {}, category_scores: {} }] }]
    case 'rerank': {
      const meta = { billed_units: { search_units: 1 } }
      return [PRICE.search, { results: [{ index: 0, relevance_score: 1 }], meta }]
    }
    case 'ocr': {
      const { length } = body.pages as unknown[]
      const pages = Array.from({ length }, (_, index) => ({ index, markdown: 'a', images: [] }))
      return [length * PRICE.page, { pages, usage_info: { pages_processed: length } }]
    }
    case 'videos': {
      const [number, { tokens }] = planOf(raw)
      return [secondsOf(tokens) * PRICE.film, { id: `film-${number}`, status: 'queued', progress: 0 }]
    }
    default: {
      const input_tokens = quarter(body.state as string)
      return [input_tokens * PRICE.prompt, { answers: { q: { type: 'noul', noul: 0 } }, usage: { input_tokens } }]
    }
  }
}

async function talk(
  url: string,
  raw: string,
  res: ServerResponse,
  number: number,
  plan: Plan,
  bill: (usd: number, reported: boolean) => void,
): Promise<void> {
  const body = JSON.parse(raw) as { stream?: boolean; max_tokens?: number; messages: { content: unknown }[] }
  const isClaude = url.endsWith('/messages')
  const prompt = body.messages.reduce((sum, { content }) => sum + quarter(textOf(content)), 0)
  const tokens = Math.min(plan.tokens, body.max_tokens ?? Number.POSITIVE_INFINITY)
  const usage = isClaude
    ? { input_tokens: prompt, output_tokens: tokens }
    : { prompt_tokens: prompt, completion_tokens: tokens }
  if (!body.stream) {
    bill(prompt * PRICE.prompt + tokens * PRICE.completion, plan.reports)
    const text = TOKEN.repeat(tokens)
    const report = plan.reports ? { usage } : {}
    const answer = isClaude
      ? { type: 'message', role: 'assistant', content: [{ type: 'text', text }], stop_reason: 'end_turn', ...report }
      : { choices: [{ message: { role: 'assistant', content: text }, finish_reason: 'stop' }], ...report }
    sent.emit(`${number}`)
    res.writeHead(200, { 'content-type': 'application/json' })
    // Of a body that is cut the gateway knows nothing, and its provider has failed.
    if (plan.fault === 'cut') {
      plan.billed = 0
      res.write(JSON.stringify(answer).slice(0, 40), () => res.destroy())
    } else res.end(JSON.stringify(answer))
    return
  }
  bill(prompt * PRICE.prompt, plan.reports)
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  const event = (type: string, fields: object) => {
    if (!res.destroyed)
      res.write(
        `${isClaude ? `event: ${type}\n` : ''}data: ${JSON.stringify({ ...(isClaude && { type }), ...fields })}\n\n`,
      )
  }
  if (isClaude) {
    event('message_start', {
      message: {
        id: 'm',
        role: 'assistant',
        ...(plan.reports && { usage: { input_tokens: prompt, output_tokens: 1 } }),
      },
    })
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
  }
  for (let said = 0; said < tokens && !res.destroyed; said += PIECE) {
    const count = Math.min(PIECE, tokens - said)
    const text = TOKEN.repeat(count)
    if (isClaude) event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
    else event('', { choices: [{ index: 0, delta: { content: text } }] })
    bill(count * PRICE.completion, false)
    if (plan.fault === 'cut' && said > tokens / 2) {
      // A provider that fails is owed nothing.
      plan.billed = 0
      plan.unreported = 0
      res.destroy()
      return
    }
    sent.emit(`${number}`)
    await sleep(PACE_MS)
  }
  plan.early = res.destroyed
  if (plan.reports && !plan.early) plan.unreported = 0
  if (isClaude) {
    event('content_block_stop', { index: 0 })
    event('message_delta', {
      delta: { stop_reason: 'end_turn' },
      ...(plan.reports && { usage: { output_tokens: tokens } }),
    })
    event('message_stop', {})
  } else {
    event('', { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
    if (plan.reports) event('', { choices: [], usage })
    if (!res.destroyed) res.write('data: [DONE]\n\n')
  }
  res.end()
}
const textOf = (content: unknown): string =>
  typeof content === 'string' ? content : (content as { text: string }[]).map(({ text }) => text).join('')

const server = createServer((req, res) => void serve(req, res).catch(() => res.destroy())).listen(0, '127.0.0.1')
await once(server, 'listening')
t.teardown(() => {
  server.closeAllConnections()
  server.close()
})
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
const supports = testMapping.supports.filter(name => name !== 'reasoning')
const priced = { supports, pricing: { prompt: '10', completion: '50' } }
const held = { billing: { stream_hold: EXTENSION } }
const limits = unlimited(
  ...['chat', 'messages', 'responses', 'gemini', 'ai-sdk', 'embeddings', 'moderations', 'rerank', 'ocr', 'systemone'],
  ...['images', 'speech', 'transcriptions', 'videos', 'realtime'],
)
const voices = await realtimeProvider(t)
voices.take = (session, event) => {
  if (event.type !== 'response.create') return usualTake(session, event)
  const [, plan] = planOf(JSON.stringify(event))
  session.ws.once('close', exposures[plan.org]!.begin(TALK))
  if (plan.fault === 'refused') return session.ws.close(1011)
  plan.billed += TALK
  respond(session)
}
const gateway = await startGateway(t, {
  providers: {
    a: {
      base_url: url,
      wires: {
        chat: 'openai.chat',
        images: 'openai.images',
        speech: 'openai.speech',
        transcriptions: 'openai.transcriptions',
        embeddings: 'openai.embeddings',
        moderations: 'openai.moderations',
        rerank: 'cohere.rerank',
        ocr: 'mistral.ocr',
        decisions: 'typesafe.decisions',
        videos: 'openai.videos',
      },
      models: [
        { ...priced, model: 'chat', id: 'chat-1' },
        { model: 'image', id: 'image-1', pricing: { per_image: { default: '0.004' } }, supports: [], max_n: 4 },
        { model: 'speech', id: 'speech-1', pricing: { prompt: '15' }, supports: [] },
        { model: 'text', id: 'text-1', pricing: { input_audio_hour: '0.36' }, supports: ['timestamps'] },
        { model: 'vector', id: 'vector-1', pricing: { prompt: '10' }, supports: [] },
        { model: 'judge', id: 'judge-1', pricing: { request: '0.0005' }, supports: [] },
        { model: 'order', id: 'order-1', pricing: { request: '0.001' }, supports: [] },
        { model: 'read', id: 'read-1', pricing: { ocr_page: '0.002' }, supports: [] },
        {
          model: 'film',
          id: 'film-1',
          pricing: { per_second: { default: '0.001' } },
          video_seconds: [4, 8],
          supports: [],
        },
        { model: 'decide', id: 'decide-1', pricing: { prompt: '10' }, supports: [] },
      ],
    },
    b: {
      base_url: url,
      wires: { chat: 'anthropic.messages' },
      models: [{ ...priced, model: 'claude', id: 'claude-1' }],
    },
    c: {
      base_url: voices.url,
      wires: { realtime: 'openai.realtime' },
      models: [{ model: 'voice', id: 'rt-1', pricing: { prompt: '10', completion: '50' }, supports: ['realtime'] }],
    },
  },
  models: [
    ...['chat', 'claude'].map(id => ({ id, input: ['text'], output: ['text'], context_length: 1e6, max_output: 8000 })),
    { id: 'image', input: ['text'], output: ['image'] },
    { id: 'speech', input: ['text'], output: ['audio'], tokenizer: 'characters' },
    { id: 'text', input: ['audio'], output: ['text'], operations: ['transcriptions'] },
    { id: 'vector', input: ['text'], output: ['embedding'] },
    { id: 'judge', input: ['text'], output: ['moderation'] },
    { id: 'order', input: ['text'], output: ['rerank'] },
    { id: 'read', input: ['file'], output: ['text'], operations: ['ocr'] },
    { id: 'film', input: ['text'], output: ['video'] },
    { id: 'voice', input: ['text'], output: ['text'], operations: ['realtime'] },
    { id: 'decide', input: ['text'], output: ['decision'] },
  ].map(entry => ({ ...entry, name: entry.id, family: 'test', stability: 'stable' })),
  config: {
    endpoints: {
      ...limits,
      chat: { ...limits.chat, ...held },
      messages: { ...limits.messages, ...held },
      responses: { ...limits.responses, ...held },
    },
    jobs: { poll: '10ms', poll_max: '20ms', results: 'proxy' },
  },
})
const command = commandsOf(gateway)

interface Org {
  readonly credits: number
  readonly key: string
  show(): Promise<{ balance: string; held: string }>
}
async function orgOf(credits: string): Promise<Org> {
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: `org-${credits}` })
  await command('credits.add', { organization, amount: credits })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
  const { key } = await command<{ key: string }>('keys.create', { project, name: 'k' })
  return { credits: Number(credits), key, show: () => command('credits.show', { organization }) }
}

/** A request of each client wire and operation; `text` is its prompt. */
const kinds: ((text: string, plan: Plan, stream: boolean) => { path: string; body: Tree | FormData })[] = [
  (content, _, stream) => ({
    path: '/v1/chat/completions',
    body: { model: 'chat', stream, max_tokens: DEFAULT_LIMIT * 2, messages: [{ role: 'user', content }] },
  }),
  (content, _, stream) => ({
    path: '/v1/chat/completions',
    body: { model: 'claude', stream, messages: [{ role: 'user', content }] },
  }),
  (content, _, stream) => ({
    path: '/v1/messages',
    body: { model: 'claude', stream, max_tokens: DEFAULT_LIMIT * 4, messages: [{ role: 'user', content }] },
  }),
  (content, _, stream) => ({
    path: '/v1/messages',
    body: { model: 'chat', stream, max_tokens: DEFAULT_LIMIT, messages: [{ role: 'user', content }] },
  }),
  (input, _, stream) => ({ path: '/v1/responses', body: { model: 'chat', stream, input, max_output_tokens: 900 } }),
  input => ({ path: '/v1/embeddings', body: { model: 'vector', input } }),
  input => ({ path: '/v1/moderations', body: { model: 'judge', input } }),
  query => ({ path: '/v1/rerank', body: { model: 'order', query, documents: ['a'] } }),
  (name, { tokens }) => ({
    path: '/v1/ocr',
    body: {
      model: 'read',
      pages: Array.from({ length: 1 + (tokens % 4) }, (_, page) => page),
      document: { type: 'document_url', document_url: `https://a.example/${name.split(' ')[0]}.pdf` },
    },
  }),
  state => ({
    path: '/v1/systemone',
    body: { model: 'decide', state, questions: { q: { type: 'noul', instructions: 'a' } } },
  }),
  text => ({
    path: '/v1beta/models/chat:generateContent',
    body: { contents: [{ role: 'user', parts: [{ text }] }], generationConfig: { maxOutputTokens: DEFAULT_LIMIT } },
  }),
  (prompt, { tokens }) => ({ path: '/v1/videos', body: { model: 'film', prompt, seconds: secondsOf(tokens) } }),
  instructions => ({ path: '/v1/realtime', body: { type: 'response.create', response: { instructions } } }),
  (prompt, { tokens }) => ({ path: '/v1/images/generations', body: { model: 'image', prompt, n: 1 + (tokens % 4) } }),
  input => ({ path: '/v1/audio/speech', body: { model: 'speech', input, voice: 'alloy', response_format: 'wav' } }),
  (prompt, { tokens: seconds }) => {
    const body = new FormData()
    const size = seconds * 16_000
    body.append('file', new Blob([wavHead(8000, size), Buffer.alloc(size)]), 'a.wav')
    body.append('model', 'text')
    body.append('prompt', prompt)
    return { path: '/v1/audio/transcriptions', body }
  },
]

/** One response in a session of its own; resolves with the status of its opening, 0 for a session that ends before. */
async function talks(key: string, event: object): Promise<number> {
  const client = new RealtimeClient(gateway, '?model=voice', { key })
  let status = 0
  client.ws.once('unexpected-response', (_, answer: IncomingMessage) => {
    status = answer.statusCode!
    client.ws.terminate()
  })
  client.ws.on('message', data => {
    const { type } = JSON.parse(String(data)) as { type: string }
    if (type === 'session.created') client.send(event)
    if (type === 'response.done') status = 200
    if (type === 'response.done' || type === 'error') client.ws.close()
  })
  await client.closed
  return status
}

t.test(`charges and balances of random mixes (seed ${SEED})`, async t => {
  const next = random(SEED)
  const below = (count: number) => Math.floor(next() * count)
  const orgs = await Promise.all(['0.004', '0.03', '0.3', '50'].map(orgOf))
  exposures.push(...orgs.map(() => new Exposure()))
  const statuses = new Map<number, number>()
  async function ask(): Promise<void> {
    const number = plans.length
    const org = below(orgs.length)
    const kind = kinds[below(kinds.length)]!
    const fault = below(10) === 0 ? 'refused' : below(10) === 0 ? 'cut' : 'none'
    const isFile = kind === kinds.at(-1)
    const plan: Plan = {
      org,
      // Seconds of a file: one of an hour takes longer to make than all else.
      tokens: isFile ? 1 + below(40) : 1 + Math.floor(below(40) ** 2 / 2),
      reports: below(4) > 0,
      fault,
      billed: 0,
      unreported: 0,
      early: false,
      left: false,
      stopped: false,
      status: 0,
    }
    plans.push(plan)
    const { path, body } = kind(`request-${number} ${'word '.repeat(below(400))}`, plan, below(3) > 0)
    const controller = new AbortController()
    if (below(3) === 0) {
      // Leaves when so many pieces of the answer are on their way, if there are as many.
      let left = 1 + below(20)
      sent.on(`${number}`, () => {
        if (--left > 0) return
        plan.left = true
        controller.abort()
      })
    }
    const isForm = body instanceof FormData
    if (path === '/v1/realtime') {
      plan.status = await talks(orgs[org]!.key, body)
      statuses.set(plan.status, (statuses.get(plan.status) ?? 0) + 1)
      return
    }
    try {
      const response = await fetch(gateway.url + path, {
        method: 'POST',
        signal: controller.signal,
        headers: {
          authorization: `Bearer ${orgs[org]!.key}`,
          ...(!isForm && { 'content-type': 'application/json' }),
        },
        body: isForm ? body : JSON.stringify(body),
      })
      plan.status = response.status
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
      const answer = Buffer.from(await response.arrayBuffer()).toString('latin1')
      plan.stopped = /"(?:length|max_tokens|MAX_TOKENS|incomplete)"/.test(answer)
    } catch {
      statuses.set(0, (statuses.get(0) ?? 0) + 1)
    }
    sent.removeAllListeners(`${number}`)
  }
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (plans.length < REQUESTS) await ask()
    }),
  )
  t.comment(JSON.stringify(Object.fromEntries([...statuses].sort())))
  t.ok(
    (statuses.get(200) ?? 0) > REQUESTS / 5 && (statuses.get(402) ?? 0) > 0,
    'some are served, some are not paid for',
  )
  // The last one has what its requests cost, whatever the others do.
  const able = plans.filter(({ org, fault, left }) => org === orgs.length - 1 && fault === 'none' && !left)
  t.strictSame(new Set(able.map(({ status }) => status)), new Set([200]), 'who can pay is served')
  for (const [index, org] of orgs.entries()) {
    let shown = await org.show()
    // What was left is read on for two seconds at most.
    while (Number(shown.held) > 0) {
      await sleep(50)
      shown = await org.show()
    }
    const own = plans.filter(plan => plan.org === index)
    const sum = (of: (plan: Plan) => number) => own.reduce((total, plan) => total + of(plan), 0)
    const charged = org.credits - Number(shown.balance)
    const billed = sum(plan => plan.billed)
    const unnoticed = sum(({ early, left, stopped, reports, unreported }) => {
      const extension = EXTENSION * PRICE.completion
      if (!left) return early || stopped ? extension : 0
      // Who has less than an extension holds what there is of it, and the provider is left when that is used up.
      return reports ? extension : Math.max(extension, unreported - (org.credits > 1 ? extension : 0))
    })
    const least = billed - ESTIMATE_ERROR * sum(plan => plan.unreported) - unnoticed - 1e-8
    const says = `of ${org.credits}: charged ${charged.toFixed(6)}, billed ${billed.toFixed(6)}`
    t.ok(charged >= least, `${says}, ${least.toFixed(6)} at least`)
    const bound = exposures[index]!.most
    t.ok(Number(shown.balance) >= -bound, `left ${shown.balance} of ${org.credits}, -${bound.toFixed(6)} at most`)
  }
  t.strictSame(await command('usage.check'), { differences: [] })
})
