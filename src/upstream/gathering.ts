/**
 * Many small pieces of an answer in few reads and writes. A piece by itself wakes the process, is read, decoded, encoded
 * and written, most of which costs the same for ten.
 */
import type { Socket } from 'node:net'
import type { Taken } from './arrivals.ts'

/** So much at a time has been gathered already, and should not wait. */
const LARGE = 8 * 1024
/** So many deliveries in a tick's time cost next to nothing: a process that has little to do keeps nothing waiting. */
const FEW = 16

/**
 * Keeps sockets from reading until the next tick, which lets all of them go on at once. Ticks come only while a socket
 * rests.
 */
export class Gathering {
  readonly #ms: number
  #resting = new Set<Socket>()
  #nextTick: NodeJS.Timeout | undefined
  /** Deliveries since then. */
  #count = 0
  #since = 0

  /** `ms` is the longest rest; with 0 nothing is gathered. */
  constructor(ms: number) {
    this.#ms = ms
  }

  /**
   * Call it when a reader has taken what had come over this socket, `silenceMs` after what it took before. Lets the
   * socket rest if more is likely to come meanwhile: what comes after a silence, and by itself, has no companions.
   */
  delivered(socket: Socket, { pieces, bytes }: Taken, silenceMs: number, now: number): void {
    if (now - this.#since > this.#ms) {
      this.#since = now
      this.#count = 0
    }
    if (++this.#count <= FEW || bytes > LARGE) return
    if (pieces === 1 && silenceMs >= this.#ms) return
    this.#nextTick ??= setTimeout(this.#tick, this.#ms)
    this.#resting.add(socket)
    socket.pause()
  }

  /** Nobody waits for more of this socket's pieces: it may read on. */
  wake(socket: Socket): void {
    if (this.#resting.delete(socket)) socket.resume()
  }

  readonly #tick = (): void => {
    this.#nextTick = undefined
    const rested = this.#resting
    this.#resting = new Set()
    for (const socket of rested) socket.resume()
  }
}
