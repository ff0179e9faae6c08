/** How many small chunks of request bodies a turn of the event loop parses: `node:http` calls back for each, up to 2 µs. */
import type { Socket } from 'node:net'

/** Chunks of one turn, of all connections, beyond which bodies that come in small ones wait for later turns. */
const FULL = 4096
/** Pausing a connection and going on with it takes as long as so many chunks. */
const PAUSED = 4

/** What of a socket stops and continues its reading. */
export type PausableSocket = Pick<Socket, 'pause' | 'resume' | 'isPaused' | 'destroyed'>

/** A body whose socket is not read. `resume` goes on, and returns how many chunks came when it was last read. */
export interface WaitingBody {
  resume(): number
}

/**
 * Those of an event loop. One read of a socket brings up to 64 KiB, which are 10,900 chunks of one byte, and cannot be
 * stopped; what else the same poll would read can be.
 */
export class ChunkTurns {
  readonly #open = new Set<PausableSocket>()
  readonly #waiting = new Set<WaitingBody>()
  /** Open sockets that are not read in this turn any more. */
  #paused: PausableSocket[] = []
  #count = 0
  #isPlanned = false
  #havePaused = false
  /** Bodies wait in this turn for connections that the last one has paused. */
  #isForOthers = false

  /** `socket` may be paused in a turn that is full, until it ends. */
  open(socket: PausableSocket): void {
    this.#open.add(socket)
  }

  /** It is closed, or no requests are read from it any more. */
  close(socket: PausableSocket): void {
    this.#open.delete(socket)
  }

  /** Counts a chunk that `socket` brought. False where the turn is full: its body has to `wait`. */
  take(socket: PausableSocket): boolean {
    this.#plan()
    if (++this.#count <= FULL) return true
    if (!this.#havePaused && this.#count > FULL + PAUSED * this.#open.size) this.#pauseOthers(socket)
    return false
  }

  /** Bodies go on in the order in which they came, in a turn as many as have chunks for one. */
  wait(body: WaitingBody): void {
    this.#waiting.add(body)
    this.#plan()
  }

  /** It is whole, or goes on by itself. */
  leave(body: WaitingBody): void {
    this.#waiting.delete(body)
  }

  /** Those that the same poll would read: which of them bring chunks is known only afterwards. */
  #pauseOthers(reading: PausableSocket): void {
    this.#havePaused = true
    for (const socket of this.#open) {
      if (socket === reading || socket.isPaused()) continue
      socket.pause()
      this.#paused.push(socket)
    }
  }

  #plan(): void {
    if (this.#isPlanned) return
    this.#isPlanned = true
    setImmediate(this.#newTurn)
  }

  readonly #newTurn = (): void => {
    const paused = this.#paused
    this.#isPlanned = false
    this.#havePaused = false
    this.#count = 0
    this.#paused = []
    for (const socket of paused) if (!socket.destroyed) socket.resume()
    // A poll reads sockets in the same order each time: a body that went on now would fill its turn before theirs is read.
    this.#isForOthers = paused.length > 0 && this.#waiting.size > 0 && !this.#isForOthers
    if (this.#isForOthers) {
      this.#plan()
      return
    }
    let room = FULL
    for (const body of this.#waiting) {
      if (room <= 0) break
      this.#waiting.delete(body)
      room -= body.resume()
    }
    if (this.#waiting.size > 0) this.#plan()
  }
}

/** Of this thread. */
export const chunkTurns = new ChunkTurns()
