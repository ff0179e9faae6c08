/** How many small chunks of request bodies a turn of the event loop parses: `node:http` calls back for each, up to 2 µs. */
import type { Socket } from 'node:net'

/** Chunks of one turn, of all connections, beyond which bodies that come in small ones wait for later turns. */
const FULL = 4096
/** Pausing a connection and going on with it takes as long as so many chunks. */
const PAUSED = 4

/** What of a socket stops and continues its reading. */
export type PausableSocket = Pick<Socket, 'pause' | 'resume' | 'isPaused' | 'destroyed'>

/** A body whose socket is not read. */
export interface WaitingBody {
  readonly socket: PausableSocket
  /** Goes on, and returns how many chunks came when it was last read. */
  resume(): number
}

/**
 * Those of an event loop. One read of a socket brings up to 64 KiB, which are 10,900 chunks of one byte, and cannot be
 * stopped; what else the same poll would read can be.
 */
export class ChunkTurns {
  readonly #open = new Set<PausableSocket>()
  readonly #waiting = new Set<WaitingBody>()
  /** Open sockets that have filled a turn: whatever their next bodies bring, others are read before them. */
  readonly #fillers = new Set<PausableSocket>()
  /** Open sockets that are not read in this turn any more. */
  #paused: PausableSocket[] = []
  #count = 0
  #isPlanned = false
  #havePaused = false
  /** The last turn was left to those that had been paused: the next one takes waiting bodies in any case. */
  #wereOthersFirst = false

  /** `socket` may be paused in a turn that is full, until it ends. */
  open(socket: PausableSocket): void {
    this.#open.add(socket)
  }

  /** It is closed, or no requests are read from it any more. */
  close(socket: PausableSocket): void {
    this.#open.delete(socket)
    this.#fillers.delete(socket)
  }

  /** Counts a chunk that `socket` brought. False where the turn is full: its body has to `wait`. */
  take(socket: PausableSocket): boolean {
    this.#plan()
    if (++this.#count <= FULL) return true
    if (!this.#havePaused && this.#count > FULL + PAUSED * this.#open.size) this.#pauseOthers(socket)
    return false
  }

  /**
   * Bodies go on in the order in which they came, in a turn as many as have chunks for one. A poll may always read the same
   * socket first, which fills its turn again and again. So where others were paused they are read in a turn of their own,
   * and then, before a body goes on again, those that went on and were not read.
   */
  wait(body: WaitingBody): void {
    this.#waiting.add(body)
    if (this.#open.has(body.socket)) this.#fillers.add(body.socket)
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
    const fillers = this.#paused.filter(socket => this.#fillers.has(socket))
    const others = this.#paused.filter(socket => !this.#fillers.has(socket))
    this.#isPlanned = false
    this.#havePaused = false
    this.#count = 0
    resumeAll(others)
    const haveBodies = fillers.length > 0 || this.#waiting.size > 0
    this.#wereOthersFirst = others.length > 0 && haveBodies && !this.#wereOthersFirst
    if (this.#wereOthersFirst) {
      this.#paused = fillers
      this.#plan()
      return
    }
    this.#paused = []
    resumeAll(fillers)
    let room = fillers.length > 0 ? 0 : FULL
    for (const body of this.#waiting) {
      if (room <= 0) break
      this.#waiting.delete(body)
      room -= body.resume()
    }
    if (this.#waiting.size > 0) this.#plan()
  }
}

function resumeAll(sockets: readonly PausableSocket[]): void {
  for (const socket of sockets) if (!socket.destroyed) socket.resume()
}

/** Of this thread. */
export const chunkTurns = new ChunkTurns()
