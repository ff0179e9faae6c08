/** The gateway's end of a simulated WebSocket. */
import type { MessageListener, MessageSocket } from '../core/message-socket.ts'

/** Bytes of one message that the demo reads; a larger one ends the session. */
const MAX_MESSAGE_BYTES = 1024 * 1024
/** Characters of events that wait for the gateway; where more would, the session ends. */
const MAX_WAITING_CHARACTERS = 4 * 1024 * 1024
/** RFC 6455 section 7.4.1. */
const ABNORMAL = 1006
const TOO_LARGE = 1009
const FAILED = 1011

/** Gets what sends an event to the gateway; returns what takes a text of the gateway. */
type Session = (send: (event: object) => void) => (text: string) => void

/** Gives events to its listener in their own iteration of the event loop, as a socket does, and none while it is paused. */
export class SimulatedSocket implements MessageSocket {
  readonly waiting = 0
  received = 0
  #listener: MessageListener | undefined
  #isPaused = true
  #isOver = false
  #events: string[] = []
  /** Characters of `#events`. */
  #waitingSize = 0
  readonly #take: (text: string) => void

  constructor(session: Session) {
    this.#take = session(event => {
      const text = JSON.stringify(event)
      this.#waitingSize += text.length
      if (this.#waitingSize > MAX_WAITING_CHARACTERS) {
        this.close(TOO_LARGE)
        return
      }
      this.#events.push(text)
      this.#plan()
    })
  }

  open(listener: MessageListener): void {
    this.#listener = listener
    this.resume()
  }

  /** Never throws: an emitter's callback calls it. A simulation that fails ends its session. */
  send(text: string): void {
    if (this.#isOver) return
    try {
      if (text.length > MAX_MESSAGE_BYTES) this.close(TOO_LARGE)
      else this.#take(text)
    } catch {
      this.close(FAILED)
    }
  }

  ping(): void {
    setImmediate(() => this.#listener?.pong())
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#plan()
  }

  close(code: number): void {
    if (this.#isOver) return
    this.#isOver = true
    setImmediate(() => this.#listener?.closed(code))
  }

  destroy(): void {
    this.close(ABNORMAL)
  }

  #plan(): void {
    if (!this.#isPaused && this.#events.length > 0) setImmediate(this.#give)
  }

  readonly #give = (): void => {
    if (this.#isPaused || this.#isOver || !this.#listener) return
    const text = this.#events.shift()
    if (text === undefined) return
    this.#waitingSize -= text.length
    const bytes = Buffer.byteLength(text)
    this.received += bytes
    this.#listener.read(bytes)
    this.#listener.message(text, bytes)
    this.#plan()
  }
}
