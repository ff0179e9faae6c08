/**
 * Many small pieces of an answer in few reads and writes. A piece by itself wakes the process, is read, decoded, encoded
 * and written, most of which costs the same for ten.
 */
import type { Socket } from 'node:net'
import type { Taken } from './chunk-queue.ts'

/** Bytes in a millisecond: a stream that brings more is no trickle, and rests would hold it up and save nothing. */
const MAX_BYTES_PER_MS = 1024
/** So many deliveries in a tick's time cost next to nothing: a process that has little to do keeps nothing waiting. */
const MAX_IMMEDIATE_READS = 8

/**
 * Keeps sockets from reading until the next tick, which lets all of them go on at once. Ticks come only while a socket
 * rests.
 */
export class ReadCoalescer {
  readonly #ms: number
  #resting = new Set<Socket>()
  #nextTick: NodeJS.Timeout | undefined
  #since = 0
  /** Deliveries since then. */
  #count = 0

  /** `ms` is the longest rest; with 0 nothing is gathered. */
  constructor(ms: number) {
    this.#ms = ms
  }

  /** Call it when the reader of a stream has taken what had come over its socket. Lets it rest if that may bring more. */
  delivered(socket: Socket, trickle: Trickle, taken: Taken, now: number): void {
    const goesOn = trickle.goesOn(taken, now, this.#ms)
    if (now - this.#since > this.#ms) {
      this.#since = now
      this.#count = 0
    }
    if (++this.#count <= MAX_IMMEDIATE_READS || !goesOn) return
    this.#nextTick ??= setTimeout(this.#tick, this.#ms)
    this.#resting.add(socket)
    socket.pause()
  }

  /** Resumes reading from a socket whose collected pieces have been taken. */
  wake(socket: Socket): void {
    if (this.#resting.delete(socket)) socket.resume()
  }

  readonly #tick = (): void => {
    this.#nextTick = undefined
    const paused = this.#resting
    this.#resting = new Set()
    for (const socket of paused) socket.resume()
  }
}

/** How the pieces of one stream come. */
export class Trickle {
  #deliveredAt: number
  #since: number
  /** Since then, and in the span of time before. */
  #bytes = 0
  #bytesBefore = 0

  constructor(now: number) {
    this.#deliveredAt = now
    this.#since = now
  }

  /** Whether small pieces are likely to come within `ms`: what comes by itself after a silence has no companions. */
  goesOn({ pieces, bytes }: Taken, now: number, ms: number): boolean {
    const silence = now - this.#deliveredAt
    this.#deliveredAt = now
    if (now - this.#since >= ms) {
      this.#since = now
      this.#bytesBefore = this.#bytes
      this.#bytes = 0
    }
    this.#bytes += bytes
    if (Math.max(this.#bytes, this.#bytesBefore) > MAX_BYTES_PER_MS * ms) return false
    return silence < ms || pieces > 1
  }
}
