/** One connection: how many of its requests are served at once, and when those behind them are. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { addressKey, clientAddress } from '../core/address.ts'
import { turnBudget } from '../lib/turn-budget.ts'
import { isClosing } from './closing.ts'

const MAX_REQUESTS = 1_000
/** Requests that are served at once. */
const AT_ONCE = 8
/** Requests without an answer, those that wait included. */
export const MAX_UNANSWERED = 128
/** What may come behind the last request: `node:http` keeps 1.7 kB for each, until the connection is closed. */
const MAX_BEHIND = 256

/** Counts its requests and their answers. */
export class Connection {
  readonly #socket: Socket
  readonly #budget: Pick<typeof turnBudget, 'next'>
  readonly #waiting: { readonly res: ServerResponse; readonly serve: () => void }[] = []
  /** The first of those that wait is served in a later turn of the loop. */
  #isPlanned = false
  #carried = 0
  #serving = 0
  #whenAnswered: (() => void)[] = []
  #ended = false
  #behind = 0
  /** Who shares turns of the loop: no tenant is known before a request is served. */
  #client: string | undefined

  constructor(socket: Socket, budget = turnBudget) {
    this.#socket = socket
    this.#budget = budget
  }

  /** Its last request is here, or what is none. */
  end(): void {
    this.#ended = true
  }

  /** To be called for whatever comes: whether it comes behind the end. Of so much the socket is destroyed. */
  isOver(): boolean {
    if (!this.#ended && !isClosing(this.#socket)) return false
    if (++this.#behind > MAX_BEHIND) this.#socket.destroy()
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
   * Calls `serve`, which answers with `res`: at once, or when enough answers before it have left. One read of the socket may
   * bring very many requests: those behind the first one wait where a turn of the loop is full.
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
    serve()
  }

  readonly #answered = (): void => {
    this.#serving--
    if (this.#waiting.length === 0) {
      if (this.#serving === 0) for (const then of this.#whenAnswered.splice(0)) then()
    } else if (!this.#isPlanned) {
      this.#isPlanned = true
      setImmediate(this.#serveMore)
    }
  }

  /** As many as may be, where this turn of the loop has room. */
  readonly #serveMore = (): void => {
    this.#isPlanned = false
    while (this.#mayServe) {
      this.#client ??= addressKey(clientAddress(this.#socket.remoteAddress ?? '', undefined, []))
      const turn = this.#budget.next(this.#client)
      if (turn) {
        this.#isPlanned = true
        void turn.then(this.#serveInTurn)
        return
      }
      this.#serveNext()
    }
  }

  readonly #serveInTurn = (): void => {
    if (this.#mayServe) this.#serveNext()
    this.#serveMore()
  }

  /** An answer that ends the connection leaves those behind it unserved. */
  get #mayServe(): boolean {
    const { destroyed } = this.#socket
    return this.#waiting.length > 0 && this.#serving < AT_ONCE && !destroyed && !isClosing(this.#socket)
  }

  #serveNext(): void {
    const { res, serve } = this.#waiting.shift()!
    this.#serve(res, serve)
  }
}
