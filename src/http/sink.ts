/** An exchange's way out over `node:http`. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import type { Sink } from '../core/pump.ts'
import { guarded } from '../lib/guarded.ts'
import { ResponseRate } from '../limits/rate.ts'
import type { BodyGuard } from './body-guard.ts'
import { asChunk, asLastChunk, type BodyData, CRLF, isList, piecesOf, sizeOf } from './chunked.ts'
import { endLast } from './closing.ts'
import type { IncomingRequest } from './incoming-request.ts'

/** An unread body up to this size is cheaper to read past than a new connection. */
const DRAINABLE_BYTES = 64 * 1024
/** Characters from which a text is written as bytes: `node:http` keeps three for each until the client takes them. */
const MAX_STRING_CHARACTERS = 4096
/** Characters from which a whole answer takes several turns of the loop. */
const STEPPED_CHARACTERS = 1024 * 1024
/** Bytes of a whole answer from which its client gets it piece by piece, and those of a piece. */
const PIECE_BYTES = 64 * 1024
const REQUEST_TIMEOUT = 408
/** Statuses of answers without a body: RFC 9110 sections 8.6 and 15.4.5. */
const BODILESS: ReadonlySet<number> = new Set([204, 304])
const EVENT_STREAM = 'text/event-stream'

/** The way out of a request in flight, besides what the pump needs of it. */
export interface ServedSink extends Sink {
  readonly begun: boolean
  readonly socket: Socket
  /** Whether all of the request is here. */
  readonly received: boolean
  /** The connection ends with this answer, unless that has begun already. */
  endConnection(): void
  /** From now on no `write` waits for the client. */
  release(): void
  /** Begins a stream before the first event, with `text`. */
  begin(contentType: string, headers: readonly string[], text: string): void
  /** Cuts off a client that takes too slowly what waits for it. `now` is in milliseconds, of `performance`. */
  check(now: number): void
  /** Says `text` in the `ticks`th tick of silence, unless the client has yet to take what was said before. */
  tick(text: string, ticks: number): void
}

/** How an answer leaves. */
interface AnswerOptions {
  readonly requestId: string
  /** The connection ends after the answer. */
  readonly last: boolean
  /** A client that accepts no byte for so many milliseconds is cut off. */
  readonly stallMs: number
  /** Bytes a second that it takes of what waits for it; it may be late by `stallMs`. */
  readonly minRate: number
  /** Headers that every answer gets. */
  readonly fixed: readonly string[]
  /** Takes memory for what its client has yet to take; undefined where that is kept in any case. */
  readonly guard: BodyGuard | undefined
}

/** The way out of an answer that is not a WebSocket. */
export class HttpSink implements ServedSink {
  readonly #req: IncomingRequest
  readonly #res: ServerResponse
  #status = 200
  #headers: (string | number)[] = []
  /** The connection ends with this answer. */
  #last: boolean
  readonly #requestId: string
  readonly #fixed: readonly string[]
  readonly #stallMs: number
  readonly #minRate: number
  /** Undefined until something has to wait, which most answers do not. */
  #rate: ResponseRate | undefined
  /** Ticks since something was said. */
  #silence = 0
  #wake: (() => void) | undefined
  #released = false
  /** The answer is a stream of chunks (RFC 9112 section 7.1), which are framed here. */
  #chunked = false
  readonly #guard: BodyGuard | undefined

  constructor(req: IncomingRequest, res: ServerResponse, options: AnswerOptions) {
    const { requestId, last, stallMs, minRate, fixed, guard } = options
    this.#req = req
    this.#res = res
    this.#requestId = requestId
    this.#fixed = fixed
    this.#last = last
    this.#stallMs = stallMs
    this.#minRate = minRate
    this.#guard = guard
  }

  /** Whether an answer has begun: from then on its status stands. */
  get begun(): boolean {
    return this.#res.headersSent
  }

  get socket(): Socket {
    return this.#req.socket
  }

  get received(): boolean {
    return this.#req.complete
  }

  endConnection(): void {
    if (!this.begun) this.#last = true
  }

  /** Kept until the first bytes, so that a whole answer gets its length and goes out in one write. */
  head(status: number, contentType: string, headers: readonly string[]): void {
    this.#status = status
    this.#headers = ['content-type', contentType, ...headers, ...this.#fixed, 'x-request-id', this.#requestId]
    if (contentType.startsWith(EVENT_STREAM)) {
      this.#headers.push('cache-control', 'no-cache, no-transform', 'x-accel-buffering', 'no')
    }
    if (!this.#req.complete && (status === REQUEST_TIMEOUT || !this.#drainable())) this.#last = true
    if (this.#last) this.#headers.push('connection', 'close')
  }

  begin(contentType: string, headers: readonly string[], text: string): void {
    this.head(200, contentType, headers)
    this.#begin()
    this.#say(text)
  }

  tick(text: string, ticks: number): void {
    if (++this.#silence < ticks) return
    this.#silence = 0
    const { destroyed, writableEnded, writableNeedDrain } = this.#res
    if (!destroyed && !writableEnded && !writableNeedDrain && !this.#wake) this.#say(text)
  }

  write(chunk: BodyData): Promise<void> | undefined {
    this.#silence = 0
    // A chunk of nothing would end the answer.
    if ((isList(chunk) ? sizeOf(chunk) : chunk.length) === 0) return undefined
    if (!this.#res.headersSent) this.#begin()
    if (this.#say(chunk) || this.#res.destroyed || this.#released) return undefined
    return new Promise((resolve, reject) => {
      const unbound = this.#bound()
      this.#rate ??= new ResponseRate(this.#minRate, this.#stallMs)
      const rate = this.#rate
      rate.begin(this.#res.writableLength, performance.now())
      const go = guarded(() => {
        this.#wake = undefined
        rate.end(performance.now())
        unbound()
        this.#res.off('drain', go)
        this.#res.off('close', go)
        resolve()
      }, reject)
      this.#wake = go
      this.#res.on('drain', go)
      this.#res.on('close', go)
    })
  }

  release(): void {
    this.#released = true
    this.#wake?.()
  }

  end(last: BodyData = ''): Promise<void> | undefined {
    if (typeof last === 'string' && last.length > STEPPED_CHARACTERS) return this.#endLarge(last)
    const length = isList(last) ? sizeOf(last) : Buffer.byteLength(last)
    const isWhole = !this.begun
    if (isWhole) {
      if (!BODILESS.has(this.#status)) this.#headers.push('content-length', length)
      this.#res.writeHead(this.#status, this.#headers)
    }
    if (length > PIECE_BYTES) {
      // A whole answer had room until now, and goes soonest when it is sent; the end of a stream repeats what was said.
      const hasRoom = this.#guard?.holds(length) ?? true
      if (hasRoom || isWhole) return this.#endPaced(piecesOf(last))
      this.destroy()
      return undefined
    }
    this.#end(isList(last) ? Buffer.concat(last) : last)
    return undefined
  }

  check(now: number): void {
    if (!this.#wake) return
    // Behind another answer it has no socket yet.
    if (!this.#res.socket) this.#rate?.postpone(now)
    else if (this.#rate?.isSlow(now)) this.destroy()
  }

  /** Sends a large body in steps. Creating, encoding and sending it each take long, so other work runs in between. */
  async #endLarge(text: string): Promise<void> {
    await setImmediate()
    const bytes = Buffer.from(text)
    await setImmediate()
    await this.end(bytes)
  }

  /** The client gets a piece when it has taken the one before. */
  async #endPaced(pieces: readonly Buffer[]): Promise<void> {
    for (const piece of pieces) {
      for (let at = 0; at < piece.length && !this.#res.destroyed; at += PIECE_BYTES) {
        const drained = this.write(piece.subarray(at, at + PIECE_BYTES))
        if (drained) await drained
      }
    }
    if (!this.#res.destroyed) this.#end('')
  }

  #end(last: string | Buffer): void {
    const bytes = this.#chunked ? asLastChunk(last) : last
    if (this.#last) endLast(this.#req, this.#res, bytes)
    else this.#res.end(bytes)
    // Bytes that the kernel has taken, nearly always all, need no clock.
    if (this.#res.socket?.writableLength === 0) return
    // `node:http` then gives the connection the time of an idle one.
    this.#res.prependOnceListener('finish', this.#bound())
  }

  /**
   * Counts the time in which the client takes nothing of what was said; `node:http` then destroys the socket. Behind
   * another answer it begins with this one's turn. Returns what ends it.
   */
  #bound(): () => void {
    const { socket } = this.#res
    const begin = (socket: Socket) => socket.setTimeout(this.#stallMs)
    if (socket) begin(socket)
    else this.#res.once('socket', begin)
    return () => {
      this.#res.off('socket', begin)
      this.#res.socket?.setTimeout(0)
    }
  }

  destroy(): void {
    this.#res.destroy()
  }

  #begin(): void {
    this.#res.writeHead(this.#status, this.#headers)
    // `node:http` would give each chunk to the socket in four pieces.
    this.#chunked = this.#res.chunkedEncoding
    this.#res.chunkedEncoding = false
    this.#sendHead()
  }

  /**
   * In one write with what is said next. By itself, because `node:http` keeps it for as long as the answer lasts, in
   * some sixty pieces unless it is sent as it is; and no head is needed here any more.
   */
  #sendHead(): void {
    this.#headers = []
    this.#res.cork()
    this.#res.flushHeaders()
    process.nextTick(() => this.#res.uncork())
  }

  /** False when the client has to take what was said before. */
  #say(chunk: BodyData): boolean {
    if (isList(chunk)) return this.#sayPieces(chunk)
    if (typeof chunk !== 'string' && chunk.length > MAX_STRING_CHARACTERS) return this.#sayPieces([chunk])
    const framed = this.#chunked ? asChunk(chunk) : chunk
    return this.#res.write(
      typeof framed === 'string' && framed.length > MAX_STRING_CHARACTERS ? Buffer.from(framed) : framed,
    )
  }

  /** As one chunk in one write, without a copy of them. */
  #sayPieces(pieces: readonly Buffer[]): boolean {
    const res = this.#res
    res.cork()
    if (this.#chunked) res.write(`${sizeOf(pieces).toString(16)}\r\n`, 'latin1')
    let taken = true
    for (const piece of pieces) taken = res.write(piece)
    if (this.#chunked) taken = res.write(CRLF)
    res.uncork()
    return taken
  }

  #drainable(): boolean {
    const { 'content-length': length, 'transfer-encoding': coding } = this.#req.headers
    return coding === undefined && Number(length ?? 0) <= DRAINABLE_BYTES
  }
}
