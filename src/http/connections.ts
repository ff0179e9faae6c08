/** Open connections of a listener, and how many there may be: by memory, and by descriptors of the process. */

import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { guarded } from '../lib/guarded.ts'
import { Hysteresis } from '../lib/hysteresis.ts'
import { isClosing } from './closing.ts'
import { Connection } from './connection.ts'

/** Shares of the heap limit above which connections are closed after an answer, and above which none is accepted. */
const HEAP_SHARES = { keepAlive: 0.92, accept: 0.98, slack: 0.05 }

/** Counts connections. When memory is short it closes, and then refuses, connections. */
export class Connections {
  readonly #open = new Map<Socket, Connection>()
  readonly #most: number
  readonly #onClose: (socket: Socket) => void
  readonly #failed: (thrown: unknown, socket: Socket) => void
  readonly #closesConnections = new Hysteresis(HEAP_SHARES.keepAlive, HEAP_SHARES.keepAlive - HEAP_SHARES.slack)
  readonly #refusesConnections = new Hysteresis(HEAP_SHARES.accept, HEAP_SHARES.accept - HEAP_SHARES.slack)
  /** Whether every answer closes its connection: memory is short. */
  areLast = false
  /** Instead of the server's own limit, beyond which a primary would offer a connection to its workers repeatedly. */
  #limit: number

  /** `failed` is called with what a listener of a socket throws. */
  constructor(most: number, onClose: (socket: Socket) => void, failed: (thrown: unknown, socket: Socket) => void) {
    this.#most = most
    this.#limit = most
    this.#onClose = onClose
    this.#failed = failed
  }

  get size(): number {
    return this.#open.size
  }

  /** Destroys a connection beyond the limit. May be called again with one that was accepted. */
  accept(socket: Socket): void {
    if (this.#open.has(socket)) return
    if (this.#open.size >= this.#limit) {
      socket.destroy()
      return
    }
    this.#open.set(socket, new Connection(socket, this.#failed))
    const closed = () => {
      this.#open.delete(socket)
      this.#onClose(socket)
    }
    socket.once(
      'close',
      guarded(closed, thrown => this.#failed(thrown, socket)),
    )
  }

  /** Returns the connection of an open socket. A socket that was not accepted gets a new one each time. */
  of(socket: Socket): Connection {
    return this.#open.get(socket) ?? new Connection(socket, this.#failed)
  }

  /** `memory`: share of the heap limit in use. */
  adapt(memory: number): void {
    this.areLast = this.#closesConnections.isOver(memory)
    this.#limit = this.#refusesConnections.isOver(memory) ? 0 : this.#most
  }

  /** Connections that carry none of these requests: idle, unused, or with an incomplete head. */
  *idle(requests: readonly { readonly sink: { readonly socket: Socket } }[]): Iterable<Socket> {
    const busy = new Set(requests.map(({ sink }) => sink.socket))
    for (const socket of this.#open.keys()) if (!busy.has(socket) && !isClosing(socket)) yield socket
  }

  destroyAll(): void {
    for (const socket of this.#open.keys()) socket.destroy()
  }
}

/** File descriptors besides connections: files, libraries, listeners. */
const RESERVED_FILES = 64
/** To providers: of requests that are admitted at the same time, and idle ones. */
const UPSTREAM_SOCKETS = 2000

/**
 * Connections that fit, when each request needs one more descriptor for its provider. A worker that has none left cannot
 * be handed a connection, and Node's primary never offers it one again.
 */
export function connectionsWithin(files: number): number {
  const free = files - RESERVED_FILES
  return Math.max(1, Math.floor(free / 2), free - UPSTREAM_SOCKETS)
}

/** Limit of open files of this process; Node raises the soft limit to the hard one. Known on Linux only. */
export function openFiles(): number {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
