/** A client that writes given bytes and reports the answer, for requests that a regular client cannot send. */
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** One answer, as received. */
export interface RawResponse {
  /** `HTTP/1.1 200 OK` */
  statusLine: string
  status: number
  /** By lower-case name; values of a repeated name are joined by ", ". */
  headers: Record<string, string>
  /** Without its chunk framing. */
  body: string
  /** False when the connection ended, or time ran out, before the end of the body. */
  complete: boolean
}

/**
 * The first final answer's fields (an interim one's if there is no other, empty if none), and the end of the
 * connection.
 */
export interface RawResult extends RawResponse {
  /** Every answer in order, interim ones included. */
  responses: RawResponse[]
  bytes: Buffer
  /** How the peer closed; null when it had not closed by the end of reading. */
  closed: 'fin' | 'reset' | null
  /** From connecting to the last event. */
  ms: number
}

export type RawInput = string | Buffer | (string | Buffer | { pauseMs: number })[] | ((socket: Socket) => unknown)

export interface RawOptions {
  /** Time limit of reading; by default 30,000, more than an answer takes on a busy machine. */
  timeoutMs?: number
  /** Reading stops when it resolves. */
  until?: Promise<unknown>
  /** Stop after this many complete answers, not counting interim ones. */
  responses?: number
}

const none: RawResponse = { statusLine: '', status: 0, headers: {}, body: '', complete: false }

/** Connects, writes, and reads until the peer closes, the answers are complete, or time runs out. */
export async function raw(port: number, input: RawInput, options: RawOptions = {}): Promise<RawResult> {
  const { timeoutMs = 30_000, responses: wanted = Number.POSITIVE_INFINITY, until } = options
  const start = performance.now()
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  let closed: RawResult['closed'] = null
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, timeoutMs)
    const stop = () => {
      clearTimeout(timer)
      resolve()
    }
    until?.then(stop, reject)
    socket.on('data', chunk => {
      chunks.push(chunk)
      const complete = () => parseResponses(Buffer.concat(chunks), false).filter(r => r.complete && r.status >= 200)
      if (wanted < Number.POSITIVE_INFINITY && complete().length >= wanted) stop()
    })
    socket.once('end', () => {
      closed = 'fin'
      stop()
    })
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') reject(error)
      else closed ??= 'reset'
      stop()
    })
    socket.once('connect', () => write(socket, input).catch(reject))
  })
  socket.destroy()
  const bytes = Buffer.concat(chunks)
  const responses = parseResponses(bytes, closed === 'fin')
  const first = responses.find(({ status }) => status >= 200) ?? responses[0] ?? none
  return { ...first, responses, bytes, closed, ms: performance.now() - start }
}

async function write(socket: Socket, input: RawInput): Promise<void> {
  if (typeof input === 'function') {
    await input(socket)
    return
  }
  for (const piece of Array.isArray(input) ? input : [input]) {
    if (typeof piece === 'string' || Buffer.isBuffer(piece)) socket.write(piece)
    else await sleep(piece.pauseMs)
  }
}

/** Splits a connection's bytes into answers; `ended`: a body without a length is complete. */
export function parseResponses(bytes: Buffer, ended: boolean): RawResponse[] {
  const responses: RawResponse[] = []
  let rest = bytes
  while (rest.length > 0) {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) break
    const [statusLine = '', ...lines] = rest.subarray(0, end).toString('latin1').split('\r\n')
    const headers: Record<string, string> = {}
    for (const line of lines) {
      const name = line.slice(0, line.indexOf(':')).toLowerCase()
      const value = line.slice(line.indexOf(':') + 1).trim()
      headers[name] = name in headers ? `${headers[name]}, ${value}` : value
    }
    const status = Number(statusLine.split(' ')[1])
    const { body, length, complete } = bodyOf(status, headers, rest.subarray(end + 4), ended)
    responses.push({ statusLine, status, headers, body, complete })
    if (!complete) break
    rest = rest.subarray(end + 4 + length)
  }
  return responses
}

function bodyOf(status: number, headers: Record<string, string>, rest: Buffer, ended: boolean) {
  if (status < 200 || status === 204 || status === 304) return { body: '', length: 0, complete: true }
  if (headers['transfer-encoding'] === 'chunked') return unchunk(rest)
  const declared = headers['content-length']
  if (declared === undefined) return { body: rest.toString(), length: rest.length, complete: ended }
  const length = Number(declared)
  return { body: rest.subarray(0, length).toString(), length, complete: rest.length >= length }
}

function unchunk(rest: Buffer): { body: string; length: number; complete: boolean } {
  const parts: Buffer[] = []
  let at = 0
  for (;;) {
    const lineEnd = rest.indexOf('\r\n', at)
    const size = lineEnd < 0 ? Number.NaN : Number.parseInt(rest.subarray(at, lineEnd).toString('latin1'), 16)
    const start = lineEnd + 2
    const complete = size === 0 && rest.length >= start + 2
    if (!(size > 0)) return { body: Buffer.concat(parts).toString(), length: start + 2, complete }
    parts.push(rest.subarray(start, start + size))
    at = start + size + 2
  }
}
