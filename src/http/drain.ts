/** The end of a listener: clients that still send are served, and a request that is cut off gets an error. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { atMost } from '../lib/timer.ts'

/** Milliseconds. */
export interface DrainTimes {
  /** It still accepts, so that a balancer can see that it is not ready any more. */
  readonly delay: number
  /** Milliseconds for which running requests may continue. */
  readonly drain: number
}

/** The parts of a listener that `drain` uses. */
interface Drained {
  readonly server: Server
  idleSockets(): Iterable<Socket>
  /** Makes each answer from now on the last of its connection. */
  endConnections(): void
  /** Resolves when nothing is served any more. */
  finished(): Promise<void>
  /** Ends all that is served with an error in band. */
  abortAll(): void
  /** Ends every connection at once, also those that are none of HTTP any more. */
  destroyAll(): void
}

const SWEEP_MS = 100
/** Time after the delay for connections that wait to be accepted. A balancer that sends on would otherwise never let it end. */
const ACCEPT_MS = 5_000
/** Time for aborted requests to write their end and to be charged and stored. */
const HARD_MS = 10_000
/** For clients to take the last that was said to them. */
const LINGER_MS = 1_000

/** Resolves when every connection is closed. Once `aborted` has resolved it waits for nothing but what must be kept. */
export async function drain(listener: Drained, times: DrainTimes, aborted: Promise<void>): Promise<void> {
  const { server } = listener
  let idle = idleSince(listener, new Map())
  const watch = setInterval(() => {
    idle = idleSince(listener, idle)
  }, SWEEP_MS)
  // Without a delay no client has time to use its connection again.
  if (times.delay === 0) listener.endConnections()
  await atMost(times.delay, aborted, undefined)
  clearInterval(watch)
  // Requests that have come are read first: a connection that carries one is not idle.
  await acceptWaiting(server)
  // `close` would call it, and cut off answers that are complete but not taken yet.
  server.closeIdleConnections = () => {}
  const closed = new Promise<void>(resolve => server.close(() => resolve()))
  // Earlier, a client that asks again would open a connection, and a turn of the event loop accepts one.
  listener.endConnections()
  // Sockets that never sent a byte, or went idle after close(), keep a server open.
  const closeIdle = (forMs: number) => {
    idle = idleSince(listener, idle)
    const since = performance.now() - forMs
    // One that was ended goes by itself once its client has taken what was said.
    for (const [socket, at] of idle) if (at <= since && !socket.writableEnded) socket.destroySoon()
  }
  // The first sweep lets a request come that its client has just sent, on a new connection most of all.
  // A client may use a connection again whose answer did not say that it ends: it has the delay for that.
  let leastMs = times.delay
  const sweep = setInterval(() => setImmediate(() => closeIdle(leastMs)), SWEEP_MS)
  const finished = listener.finished()
  void aborted.then(() => {
    leastMs = 0
  })
  await atMost(times.drain, Promise.race([Promise.all([finished, closed]), aborted]), undefined)
  listener.abortAll()
  await atMost(HARD_MS, finished, undefined)
  leastMs = 0
  closeIdle(leastMs)
  await atMost(LINGER_MS, closed, undefined)
  clearInterval(sweep)
  listener.destroyAll()
  await closed
}

/**
 * Resolves when no connection waits to be accepted, for `close` would reset it. An iteration of the event loop accepts one.
 */
async function acceptWaiting(server: Server): Promise<void> {
  let accepted = 0
  const count = () => accepted++
  server.on('connection', count)
  const end = performance.now() + ACCEPT_MS
  for (let idle = 0; idle < 3 && performance.now() < end; ) {
    const before = accepted
    await turn()
    idle = accepted === before ? idle + 1 : 0
  }
  server.off('connection', count)
}

/** Returns since when each idle socket is idle, by `performance`; `before` is what was returned last. */
function idleSince(listener: Drained, before: ReadonlyMap<Socket, number>): ReadonlyMap<Socket, number> {
  const now = performance.now()
  return new Map([...listener.idleSockets()].map(socket => [socket, before.get(socket) ?? now]))
}
