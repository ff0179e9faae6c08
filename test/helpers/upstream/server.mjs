/**
 * A simulated provider as a process of its own, scripted per request:
 *
 *     node server.mjs --record FILE [--port 0] [--key K]…
 *
 * prints `{"port":N}` and serves until SIGTERM or until its standard input closes. It speaks each wire at
 * `<prefix>/v1/…`; a prefix is one provider, with its own script and its own part of the record.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { parseArgs } from 'node:util'
import { compose } from './answer.mjs'
import { anthropic } from './anthropic.mjs'
import { anthropicVertex } from './anthropic-vertex.mjs'
import { bedrock } from './bedrock.mjs'
import { cohere } from './cohere.mjs'
import { embeddings } from './embeddings.mjs'
import { program } from './faults.mjs'
import { gemini } from './gemini.mjs'
import { mistral } from './mistral.mjs'
import { openai } from './openai.mjs'
import { openaiResponses } from './openai-responses.mjs'
import { play } from './play.mjs'
import { Record } from './record.mjs'
import { Refusal, violationsOf } from './rules.mjs'
import { Script } from './script.mjs'

/**
 * @typedef {object} Wire
 * @property {string} name
 * @property {string | RegExp} path below the prefix; the named groups of an expression go into the body that all but
 *   `check` see, so that `stream` and `model` may stand in an address
 * @property {(headers: import('node:http').IncomingHttpHeaders, body: any, keys: string[], url: URL) => void} check throws a
 *   Refusal for what the real provider refuses
 * @property {(body: any) => import('./answer.mjs').Asked} read
 * @property {(answer: import('./answer.mjs').Answer, body: any) => boolean} claims whether the answer tells its usage
 * @property {(answer: import('./answer.mjs').Answer, body: any) => object} whole
 * @property {(answer: import('./answer.mjs').Answer, body: any) => import('./faults.mjs').Frame[]} frames
 * @property {(status: number) => object} error
 * @property {(payload: object) => string | Buffer} errorEvent
 * @property {string} [streamType] content type of a stream, when it is not `text/event-stream`
 */

const wires = [openai, anthropic, anthropicVertex, mistral, cohere, gemini, openaiResponses, bedrock, ...embeddings]

const { values: options } = parseArgs({
  options: {
    record: { type: 'string' },
    port: { type: 'string', default: '0' },
    key: { type: 'string', multiple: true, default: [] },
  },
})
if (!options.record) throw new Error('usage: server.mjs --record FILE [--port N] [--key K]…')

const record = new Record(options.record)
const script = new Script()

/** Answers `<prefix><wire path>`; anything else is 404. */
async function serve(req, res) {
  const gone = new AbortController()
  res.once('close', () => gone.abort())
  const url = new URL(req.url, 'http://upstream')
  const { pathname } = url
  const { wire, prefix, given } = spoken(pathname)
  const violations = violationsOf(req.headers)
  const arrival = { prefix, path: req.url, wire: wire?.name ?? null, rawHeaders: req.rawHeaders, violations }
  const counted = req.method === 'POST' && counters.find(({ path }) => path.test(pathname))
  if (counted) return count(req, res, counted, pathname, arrival)
  if (!wire || req.method !== 'POST') {
    const refused = { status: 404, message: `No ${req.method} ${pathname} here.` }
    return finish(res, record.begin({ ...arrival, refused }), 404, { error: refused })
  }
  if (script.peek(prefix).fault === 'early') {
    const { status = 413, body = wire.error(status) } = script.next(prefix)
    res.setHeader('connection', 'close')
    return finish(res, record.begin(arrival), status, body)
  }
  const text = await textOf(req).catch(() => null)
  if (text === null) return record.end(record.begin(arrival), 'aborted')
  const sent = parsed(text)
  const refusal = refusalOf(wire, req.headers, sent, violations, url)
  const body = typeof sent === 'object' && sent !== null ? { ...sent, ...given } : sent
  if (refusal) {
    const refused = { status: refusal.status, message: refusal.message }
    return finish(res, record.begin({ ...arrival, text, body, refused }), refusal.status, refusal.body)
  }
  await answer(res, gone.signal, record.begin({ ...arrival, text, body }), wire, body, script.next(prefix))
}

/** What counts the tokens of a prompt, and refuses what only an answer has. */
const counters = [
  {
    path: /\/v1\/messages\/count_tokens$/,
    not: ['max_tokens', 'stream'],
    answer: tokens => ({ input_tokens: tokens }),
  },
  { path: /\/v1beta\/models\/[^/]+:countTokens$/, not: ['contents'], answer: tokens => ({ totalTokens: tokens }) },
  {
    path: /\/v1\/projects\/[^:]+:countTokens$/,
    not: ['generateContentRequest', 'safetySettings'],
    answer: tokens => ({ totalTokens: tokens }),
  },
]

async function count(req, res, { path, not, answer }, pathname, arrival) {
  const prefix = pathname.replace(path, '')
  const text = await textOf(req)
  const body = parsed(text)
  const step = script.next(prefix)
  const wrong = not.find(name => body[name] !== undefined)
  const status = wrong ? 400 : (step.status ?? 200)
  const message = wrong ? `${wrong} is not counted` : `Simulated failure ${status}.`
  const refused = wrong ? { status, message } : undefined
  const entry = record.begin({ ...arrival, prefix, text, body, ...(refused && { refused }) })
  return finish(res, entry, status, status === 200 ? answer(step.usage?.prompt ?? 42) : { error: { message } })
}

/** Plays the step's program; the entry ends before the last byte leaves, or when the caller does. */
async function answer(res, gone, entry, wire, body, step) {
  const composed = compose(entry.id, step, wire.read(body))
  const plan = program(step, wire, composed, body)
  const account = outcome => {
    const usage = outcome === 'completed' && plan.claims ? composed.meter : null
    const works = entry.chunksSent > 0 || outcome === 'aborted' || usage !== null
    const share = plan.total === 0 ? 0 : entry.chunksSent / plan.total
    const completion = Math.ceil(composed.meter.completion * share)
    return { usage, tokens: { prompt: works ? composed.meter.prompt : 0, completion } }
  }
  const ending = outcome => record.end(entry, outcome, account(outcome))
  gone.addEventListener('abort', () => ending('aborted'))
  if (gone.aborted) return ending('aborted')
  const gate = () => script.held(entry.prefix, gone)
  const sent = chunks => record.sent(entry, chunks)
  try {
    await play(plan, { res, gone, step, gate, sent, ending })
  } catch (error) {
    if (!gone.aborted) throw error
  }
}

/** Ends an answer that is whole at once. */
async function finish(res, entry, status, body) {
  await record.end(entry, 'completed')
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** The wire that is spoken at a path, what stands before it, and what the path itself says. */
function spoken(pathname) {
  for (const wire of wires) {
    const { path } = wire
    const pattern = typeof path === 'string' ? new RegExp(`${path.replaceAll('.', '\\.')}$`) : path
    const match = pattern.exec(pathname)
    if (!match) continue
    const { stream, model } = match.groups ?? {}
    const given = {
      ...(match.groups && { stream: stream !== undefined }),
      ...(model && { model: decodeURIComponent(model) }),
    }
    return { wire, prefix: pathname.slice(0, match.index) || '/', given }
  }
  return { wire: undefined, prefix: pathname, given: {} }
}

function refusalOf(wire, headers, body, violations, url) {
  try {
    if (violations.length > 0) {
      throw new Refusal(400, { error: { message: `Headers that were not meant for me: ${violations.join(', ')}` } })
    }
    wire.check(headers, body, options.key, url)
    return null
  } catch (error) {
    if (error instanceof Refusal) return error
    if (error instanceof TypeError)
      return new Refusal(400, { error: { message: `Malformed request: ${error.message}` } })
    throw error
  }
}

async function textOf(req) {
  const chunks = []
  for await (const chunk of req) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** The body as JSON, or as text when it is none; the wires refuse text. */
function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const controls = {
  'PUT /__script': async req => script.set(JSON.parse(await textOf(req))),
  'POST /__release': async (_, query) => script.release(query.get('prefix')),
  'POST /__reset': async () => {
    script.clear()
    record.clear()
  },
  'GET /__record': async (_, query, signal) => {
    const prefix = query.get('prefix')
    const count = name => Number(query.get(name) ?? 0)
    const wanted = { requests: count('requests'), ended: count('ended'), chunks: count('chunks') }
    const limit = AbortSignal.timeout(count('timeoutMs') || 30_000)
    await record.reached(prefix, wanted, AbortSignal.any([signal, limit])).catch(() => {
      if (limit.aborted) throw new Error(`not reached in time: ${JSON.stringify({ prefix, ...wanted })}`)
    })
    return record.entries(prefix)
  },
}

async function control(req, res) {
  const { pathname, searchParams } = new URL(req.url, 'http://upstream')
  const gone = new AbortController()
  res.once('close', () => gone.abort())
  const respond = (status, value) =>
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value ?? null))
  try {
    const run = controls[`${req.method} ${pathname}`]
    if (run) respond(200, await run(req, searchParams, gone.signal))
    else respond(404, { error: `no control ${req.method} ${pathname}` })
  } catch (error) {
    respond(400, { error: error.message })
  }
}

const server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => {
  const handle = req.url.startsWith('/__') ? control : serve
  handle(req, res)
})

function stop() {
  server.close()
  server.closeAllConnections()
  process.exit(0)
}
process.once('SIGTERM', stop)
process.stdin.resume().once('close', stop)

server.listen(Number(options.port), '127.0.0.1')
await once(server, 'listening')
console.log(JSON.stringify({ port: server.address().port }))
