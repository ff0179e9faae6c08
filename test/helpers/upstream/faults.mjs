/** Turns a scripted step into a program (a head, frames, an end) that `play` puts on the socket. */

/**
 * @typedef {object} Frame
 * @property {string | Buffer} bytes
 * @property {number} chunks how many pieces of the answer it carries
 * @property {number} [pauseMs] wait before it
 * @property {number} [times] written that often; once by default
 *
 * @typedef {object} Content
 * @property {string} type
 * @property {Frame[]} frames
 * @property {number} [length] of a whole body, in bytes; a stream has none
 * @property {number} [total] chunks of the faultless answer
 * @property {boolean} [claims] whether it says what it consumed
 *
 * @typedef {object} Program
 * @property {{ status: number, headers: Record<string, string | null> } | null} head none when it fails before that
 * @property {Frame[]} frames
 * @property {End} end
 * @property {boolean} bare whether frames go to the socket as they are, in place of an HTTP answer
 * @property {number} total
 * @property {boolean} claims
 *
 * @typedef {'finish' | 'fin' | 'reset' | 'stall' | 'flood'} End
 */

const eventStream = 'text/event-stream; charset=utf-8'
const html = '<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>\n'

/** Faults that strike before any byte, unless the step says after how many chunks. */
const headless = { refuse: 'fin', reset: 'reset', stall: 'stall', flood103: 'flood' }

/**
 * @param {object} step
 * @param {import('./server.mjs').Wire} wire
 * @param {import('./answer.mjs').Answer} answer
 * @param {any} body of the request
 * @returns {Program}
 */
export function program(step, wire, answer, body) {
  const nothing = { head: null, frames: [], bare: false, total: answer.chunks, claims: false }
  if (step.socket) return { ...nothing, bare: true, frames: step.socket.map(piece), end: 'fin' }
  if (step.fault in headless && step.afterChunks === undefined) return { ...nothing, end: headless[step.fault] }
  const content = bend(step, wire, contentOf(step, wire, answer, body))
  const headers = { 'content-type': content.type }
  if (content.length !== undefined && !step.unframed) headers['content-length'] = String(content.length)
  for (const [name, value] of Object.entries(step.headers ?? {})) headers[name.toLowerCase()] = value
  const { frames, end = 'finish', total = 0, claims = false } = content
  return { head: { status: step.status ?? 200, headers }, frames, end, bare: false, total, claims }
}

/** @returns {Content} the answer without its fault */
function contentOf(step, wire, answer, body) {
  const type = body.stream ? (wire.streamType ?? eventStream) : 'application/json'
  if (step.raw) return { type, frames: step.raw.map(piece), total: step.raw.length, claims: step.usage != null }
  if (!step.fault && typeof step.body === 'string') return whole('text/plain', step.body)
  if (!step.fault && step.body !== undefined) return json(step.body)
  if (!step.fault && step.status >= 400) return json(wire.error(step.status))
  if (!step.fault && step.status !== undefined && step.status !== 200) return { type: 'text/plain', frames: [] }
  const told = { total: answer.chunks, claims: wire.claims(answer, body) }
  if (!body.stream) return { ...json(wire.whole(answer, body), answer.chunks), ...told }
  const pace = frame => (frame.chunks > 0 ? { ...frame, pauseMs: step.chunkDelayMs } : frame)
  return { type, frames: wire.frames(answer, body).map(pace), ...told }
}

/** @returns {Content & { end?: End }} what the step's fault makes of an answer */
function bend(step, wire, content) {
  const { type, total } = content
  const cut = { type, total, frames: until(content, step.afterChunks ?? 0) }
  const failure = step.body ?? wire.error(step.status ?? 500)
  switch (step.fault) {
    case 'fin':
    case 'reset':
    case 'stall':
      return { ...content, frames: cut.frames, end: step.fault }
    case 'error-event':
      return { ...cut, frames: [...cut.frames, { bytes: wire.errorEvent(failure), chunks: 0 }] }
    case 'error-first-event':
      return { type: wire.streamType ?? eventStream, frames: [{ bytes: wire.errorEvent(failure), chunks: 0 }] }
    case 'truncate':
      return { ...cut, frames: until(content, total) }
    case 'trickle': {
      const sent = until(content, total)
      const again = { ...sent.at(-1), pauseMs: step.chunkDelayMs ?? 50, times: Number.POSITIVE_INFINITY }
      return { ...cut, frames: [...sent, again] }
    }
    case 'error-in-200':
      return json(failure)
    case 'html':
      return whole('text/html', html)
    case 'empty':
      return { type, frames: [], length: 0 }
    case 'wrong-type':
      return { ...content, type: 'application/octet-stream' }
    default:
      return content
  }
}

/** The frames up to the `n`th chunk; of a whole body, its first half. */
function until({ frames, length }, n) {
  if (n === 0) return []
  if (length !== undefined) return frames.slice(0, 1)
  let seen = 0
  const index = frames.findIndex(frame => {
    seen += frame.chunks
    return seen >= n
  })
  return index < 0 ? frames : frames.slice(0, index + 1)
}

const json = (value, chunks) => whole('application/json', JSON.stringify(value), chunks)

/** A body in two frames, so that it can be cut between them. */
function whole(type, text, chunks = 0) {
  const middle = Math.ceil(text.length / 2)
  const frames = [
    { bytes: text.slice(0, middle), chunks: 0 },
    { bytes: text.slice(middle), chunks },
  ]
  return { type, frames, length: Buffer.byteLength(text) }
}

function piece(given) {
  if (typeof given === 'string') return { bytes: given, chunks: 1 }
  const { base64, text = '', pauseMs, times } = given
  return { bytes: base64 === undefined ? text : Buffer.from(base64, 'base64'), chunks: 1, pauseMs, times }
}
