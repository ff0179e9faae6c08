/** One connection: how many of its requests are served at once, and when those behind them are. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isClosing } from './closing.ts'

const MAX_REQUESTS = 1_000
const MAX_CONCURRENT_REQUESTS = 8
/** Requests without an answer, those that wait included. */
export const MAX_UNANSWERED_REQUESTS = 128
/** Maximum pipelined requests behind the last one. `node:http` keeps 1.7 kB for each until the connection closes. */
const MAX_EXCESS_REQUESTS = 256

/** Counts its requests and their answers. */
export class Connection {
  readonly #socket: Socket
  readonly #failed: (thrown: unknown, socket: Socket) => void
  readonly #waiting: { readonly res: ServerResponse; readonly serve: () => void }[] = []
  /** The first of those that wait is served in the next iteration of the event loop. */
  #isPlanned = false
  #carried = 0
  #serving = 0
  #whenAnswered: (() => void)[] = []
  #ended = false
  #behind = 0

  /** `failed` is called with what serving a request throws. */
  constructor(socket: Socket, failed: (thrown: unknown, socket: Socket) => void) {
    this.#socket = socket
    this.#failed = failed
  }

  /** Its last request is here, or what is none. */
  end(): void {
    this.#ended = true
  }

  /** To be called for whatever comes: whether it comes behind the end. Of so much the socket is destroyed. */
  isOver(): boolean {
    if (!this.#ended && !isClosing(this.#socket)) return false
    if (++this.#behind > MAX_EXCESS_REQUESTS) this.#socket.destroy()
    return true
  }

  /** Counts a request. True for the last that there may be. */
  carry(): boolean {
    const isLast = ++this.#carried === MAX_REQUESTS
    if (isLast) this.end()
    return isLast
  }

  /** Requests whose answers have not left. */
  get unanswered(): number {
    return this.#serving + this.#waiting.length
  }

  /**
   * Calls `serve`, which answers with `res`: at once, or when enough answers before it have left.
   */
  take(res: ServerResponse, serve: () => void): void {
    if (this.unanswered === 0) this.#serve(res, serve)
    else {
      this.#waiting.push({ res, serve })
      if (!this.#isPlanned) this.#serveMore()
    }
  }

  /** Calls back when all requests that are here have been answered. */
  afterAnswers(then: () => void): void {
    if (this.unanswered === 0) then()
    else this.#whenAnswered.push(then)
  }

  #serve(res: ServerResponse, serve: () => void): void {
    this.#serving++
    res.once('close', this.#answered)
    this.#guarded(serve)
  }

  #guarded(run: () => void): void {
    try {
      run()
    } catch (thrown) {
      this.#failed(thrown, this.#socket)
    }
  }

  readonly #answered = (): void => {
    this.#serving--
    if (this.#waiting.length === 0) {
      if (this.#serving === 0) for (const then of this.#whenAnswered.splice(0)) this.#guarded(then)
    } else if (!this.#isPlanned) {
      this.#isPlanned = true
      setImmediate(this.#serveMore)
    }
  }

  readonly #serveMore = (): void => {
    this.#isPlanned = false
    while (this.#mayServe) {
      const { res, serve } = this.#waiting.shift()!
      this.#serve(res, serve)
    }
  }

  /** An answer that ends the connection leaves those behind it unserved. */
  get #mayServe(): boolean {
    const { destroyed } = this.#socket
    return this.#waiting.length > 0 && this.#serving < MAX_CONCURRENT_REQUESTS && !destroyed && !isClosing(this.#socket)
  }
}
