/**
 * Time of the event loop that TLS handshakes with servers that others name may take, for each tenant: a server chooses its
 * certificates, and a chain of 60 takes 400 ms in one turn, trusted or not.
 */
import { LRUCache } from 'lru-cache'
import { TokenBucket } from '../lib/token-bucket.ts'

/** Of the timer, which runs while handshakes are open. */
const PERIOD_MS = 5
/** A turn of the loop that is no longer costs nothing. */
const FREE_MS = 20
/** What counts of a turn for one handshake: a chain takes less, and a longer turn has other causes. */
const MOST_MS = 600
const BURST_MS = 500
const MS_PER_SECOND = 50
/** Handshakes of a tenant that are read from at a time, at most: one until one has succeeded, or after a debt. */
const MOST = 4
/** A handshake that waits for its server gives way to others of its tenant. */
const SLICE_MS = 10
const MAX_TENANTS = 10_000

/** Both ascend, in milliseconds. */
interface Clocks {
  readonly now: () => number
  /** CPU time of the process: time in which the machine runs others is not counted. */
  readonly cpu: () => number
}

/** The connection of a handshake. */
export interface HandshakeSocket {
  /** Bytes of the server that TLS has read. */
  readonly received: () => number
  /** Nothing is read until `resume`: what the server sends stays with the kernel. */
  readonly pause: () => void
  readonly resume: () => void
}

/** Time that handshakes of a tenant may have taken; given back when all of them have succeeded. */
interface Taken {
  readonly ms: number
  unproven: number
}

/** The handshakes of a tenant, and the time that they may take. */
interface TenantHandshakes {
  readonly bucket: TokenBucket
  /** That are read from at a time. */
  most: number
  readonly reading: Set<Handshake>
  readonly waiting: Handshake[]
}

/** One that has begun; its parts are the budget's own. */
export interface Handshake {
  readonly group: TenantHandshakes
  readonly socket: HandshakeSocket
  readonly taken: Taken[]
  received: number
  readSince: number
}

/**
 * Finds turns that were long, and takes their time from the tenants of handshakes that got bytes in them. No authority signs
 * chains that are made to be dear: a handshake that succeeds costs nothing. Those of a tenant that owes time wait for it.
 */
export class HandshakeBudget {
  readonly #clocks: Clocks
  readonly #tenants = new LRUCache<string, TenantHandshakes>({ max: MAX_TENANTS })
  /** Those with an open handshake. */
  readonly #active = new Set<TenantHandshakes>()
  #timer: NodeJS.Timeout | undefined
  #lookedAt = 0
  #cpuThen = 0

  constructor(clocks: Clocks = { now: () => performance.now(), cpu: cpuMs }) {
    this.#clocks = clocks
  }

  /** Whether the timer runs. */
  get isActive(): boolean {
    return this.#timer !== undefined
  }

  /** For a socket that has just connected and is being read from. `end` must follow. */
  begin(tenant: string, socket: HandshakeSocket): Handshake {
    const group = this.#handshakesOf(tenant)
    const handshake: Handshake = { group, socket, taken: [], received: 0, readSince: 0 }
    this.#active.add(group)
    if (!this.#timer) {
      this.#timer = setInterval(this.tick, PERIOD_MS).unref()
      this.#restart()
    }
    this.#serve(group)
    if (mayRead(group)) this.#read(handshake)
    else {
      socket.pause()
      group.waiting.push(handshake)
    }
    return handshake
  }

  /** In the turn in which it ended. `succeeded`: the server's chain is trusted. */
  end(handshake: Handshake, succeeded: boolean): void {
    const { group, taken } = handshake
    if (group.reading.has(handshake)) this.#look()
    if (!group.reading.delete(handshake)) {
      const at = group.waiting.indexOf(handshake)
      if (at >= 0) group.waiting.splice(at, 1)
    }
    if (succeeded) {
      group.most = MOST
      for (const time of taken) if (--time.unproven === 0) group.bucket.give(time.ms)
    }
    this.#serve(group)
  }

  /** By the timer: before anything is read in this turn of the loop. */
  readonly tick = (): void => {
    if (!this.#look()) this.#restart()
    for (const group of this.#active) {
      if (group.waiting.length > 0) this.#takeTurns(group)
      this.#serve(group)
      if (group.reading.size + group.waiting.length === 0) this.#active.delete(group)
    }
    if (this.#active.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #handshakesOf(tenant: string): TenantHandshakes {
    let group = this.#tenants.get(tenant)
    if (!group) {
      const bucket = new TokenBucket(BURST_MS, MS_PER_SECOND)
      group = { bucket, most: 1, reading: new Set(), waiting: [] }
      this.#tenants.set(tenant, group)
    }
    return group
  }

  /**
   * Takes the time since the last look, if that is long, from those that read in it. Short ends do not begin anew: many of them together may be long.
   */
  #look(): boolean {
    const now = this.#clocks.now()
    const wall = now - this.#lookedAt - PERIOD_MS
    if (wall <= FREE_MS) return false
    const ms = Math.min(wall, this.#clocks.cpu() - this.#cpuThen)
    if (ms > FREE_MS) for (const group of this.#active) take(group, ms, now)
    this.#restart()
    return true
  }

  #restart(): void {
    this.#lookedAt = this.#clocks.now()
    this.#cpuThen = this.#clocks.cpu()
    for (const { reading } of this.#active)
      for (const handshake of reading) handshake.received = handshake.socket.received()
  }

  #takeTurns({ reading, waiting }: TenantHandshakes): void {
    const now = this.#clocks.now()
    for (const handshake of reading) {
      if (now - handshake.readSince < SLICE_MS) continue
      handshake.socket.pause()
      reading.delete(handshake)
      waiting.push(handshake)
    }
  }

  #serve(group: TenantHandshakes): void {
    const { bucket, reading, waiting } = group
    bucket.take(0, this.#clocks.now())
    if (bucket.owedMs > 0) {
      group.most = 1
      for (const handshake of reading) handshake.socket.pause()
      waiting.unshift(...reading)
      reading.clear()
    }
    while (waiting.length > 0 && mayRead(group)) {
      const handshake = waiting.shift()!
      this.#read(handshake)
      handshake.socket.resume()
    }
  }

  #read(handshake: Handshake): void {
    handshake.received = handshake.socket.received()
    handshake.readSince = this.#clocks.now()
    handshake.group.reading.add(handshake)
  }
}

const mayRead = ({ bucket, most, reading }: TenantHandshakes): boolean => bucket.owedMs === 0 && reading.size < most

function take({ bucket, reading }: TenantHandshakes, ms: number, now: number): void {
  const read = [...reading].filter(({ socket, received }) => socket.received() !== received)
  if (read.length === 0) return
  const time: Taken = { ms: Math.min(ms, read.length * MOST_MS), unproven: read.length }
  for (const { taken } of read) taken.push(time)
  bucket.take(time.ms, now)
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Of this process. */
export const handshakeBudget = new HandshakeBudget()
