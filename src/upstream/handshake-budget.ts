/**
 * Time of the event loop that TLS handshakes with servers that others name may take, for each tenant: a server chooses its
 * certificates, and a chain of 60 takes 400 ms in one turn, trusted or not.
 */
import { TLSSocket } from 'node:tls'
import { LRUCache } from 'lru-cache'
import type { buildConnector } from 'undici'
import { TokenBucket } from '../lib/token-bucket.ts'

/** Of the timer, which runs while handshakes are open. */
const PERIOD_MS = 5
/** A turn of the loop that is no longer costs nothing. */
const FREE_MS = 20
const BURST_MS = 500
const MS_PER_SECOND = 50
/** Handshakes of a tenant that are read from at a time: one until one has succeeded, or after a debt. */
const MOST = 4
/** A handshake that waits for its server gives way to others of its tenant. */
const SLICE_MS = 10
const MAX_TENANTS = 10_000

/** Both ascend, in milliseconds. */
interface Clocks {
  readonly now: () => number
  /** CPU time of the process: time in which the machine runs others is not charged. */
  readonly cpu: () => number
}

/** The connection of a handshake. */
export interface HandshakeSocket {
  /** Bytes that came from the server; undefined where they are not counted. */
  readonly received: () => number | undefined
  /** Nothing is read until `resume`: what the server sends stays with the kernel. */
  readonly pause: () => void
  readonly resume: () => void
}

/** Time that was charged to a payer; given back when all handshakes that may have taken it have succeeded. */
interface Charge {
  readonly ms: number
  suspects: number
}

/** A tenant. */
interface Payer {
  readonly bucket: TokenBucket
  most: number
  readonly reading: Set<Handshake>
  readonly waiting: Handshake[]
}

/** One that has begun; its parts are the budget's own. */
export interface Handshake {
  readonly payer: Payer
  readonly socket: HandshakeSocket
  readonly charges: Charge[]
  received: number | undefined
  readSince: number
}

/**
 * Finds turns that were long, and charges them to the tenants of handshakes that got bytes in them. No authority signs
 * chains that are made to be dear: a handshake that succeeds costs nothing. Those of a tenant that owes time wait for it.
 */
export class HandshakeBudget {
  readonly #clocks: Clocks
  readonly #payers = new LRUCache<string, Payer>({ max: MAX_TENANTS })
  /** Those with an open handshake. */
  readonly #active = new Set<Payer>()
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
    const payer = this.#payerOf(tenant)
    const handshake: Handshake = { payer, socket, charges: [], received: undefined, readSince: 0 }
    this.#active.add(payer)
    if (!this.#timer) {
      this.#timer = setInterval(this.tick, PERIOD_MS).unref()
      this.#restart()
    }
    this.#serve(payer)
    if (mayRead(payer)) this.#read(handshake)
    else {
      socket.pause()
      payer.waiting.push(handshake)
    }
    return handshake
  }

  /** In the turn in which it ended. `succeeded`: the server's chain is trusted. */
  end(handshake: Handshake, succeeded: boolean): void {
    const { payer, charges } = handshake
    if (payer.reading.has(handshake)) this.#look(handshake)
    if (!payer.reading.delete(handshake)) {
      const at = payer.waiting.indexOf(handshake)
      if (at >= 0) payer.waiting.splice(at, 1)
    }
    if (succeeded) {
      payer.most = MOST
      for (const charge of charges) if (--charge.suspects === 0) payer.bucket.give(charge.ms)
    }
    this.#serve(payer)
  }

  /** By the timer: before anything is read in this turn of the loop. */
  readonly tick = (): void => {
    if (!this.#look()) this.#restart()
    for (const payer of this.#active) {
      if (payer.waiting.length > 0) this.#takeTurns(payer)
      this.#serve(payer)
      if (payer.reading.size + payer.waiting.length === 0) this.#active.delete(payer)
    }
    if (this.#active.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #payerOf(tenant: string): Payer {
    let payer = this.#payers.get(tenant)
    if (!payer) {
      const bucket = new TokenBucket(BURST_MS, MS_PER_SECOND)
      payer = { bucket, most: 1, reading: new Set(), waiting: [] }
      this.#payers.set(tenant, payer)
    }
    return payer
  }

  /**
   * Charges the time since the last look, if that is long, to those that read in it. `ended` has no count of bytes any more.
   * Short ends do not begin anew: many of them together may be long.
   */
  #look(ended?: Handshake): boolean {
    const now = this.#clocks.now()
    const wall = now - this.#lookedAt - PERIOD_MS
    if (wall <= FREE_MS) return false
    const ms = Math.min(wall, this.#clocks.cpu() - this.#cpuThen)
    if (ms > FREE_MS) for (const payer of this.#active) charge(payer, ms, now, ended)
    this.#restart()
    return true
  }

  #restart(): void {
    this.#lookedAt = this.#clocks.now()
    this.#cpuThen = this.#clocks.cpu()
    for (const { reading } of this.#active)
      for (const handshake of reading) handshake.received = handshake.socket.received()
  }

  #takeTurns({ reading, waiting }: Payer): void {
    const now = this.#clocks.now()
    for (const handshake of reading) {
      if (now - handshake.readSince < SLICE_MS) continue
      handshake.socket.pause()
      reading.delete(handshake)
      waiting.push(handshake)
    }
  }

  #serve(payer: Payer): void {
    const { bucket, reading, waiting } = payer
    bucket.take(0, this.#clocks.now())
    if (bucket.owedMs > 0) {
      payer.most = 1
      for (const handshake of reading) handshake.socket.pause()
      waiting.unshift(...reading)
      reading.clear()
    }
    while (waiting.length > 0 && mayRead(payer)) {
      const handshake = waiting.shift()!
      this.#read(handshake)
      handshake.socket.resume()
    }
  }

  #read(handshake: Handshake): void {
    handshake.received = handshake.socket.received()
    handshake.readSince = this.#clocks.now()
    handshake.payer.reading.add(handshake)
  }
}

const mayRead = ({ bucket, most, reading }: Payer): boolean => bucket.owedMs === 0 && reading.size < most

function charge({ bucket, reading }: Payer, ms: number, now: number, ended: Handshake | undefined): void {
  const suspects = [...reading].filter(handshake => handshake === ended || mayHaveRead(handshake))
  if (suspects.length === 0) return
  const charge: Charge = { ms, suspects: suspects.length }
  for (const { charges } of suspects) charges.push(charge)
  bucket.take(ms, now)
}

function mayHaveRead({ socket, received }: Handshake): boolean {
  const now = socket.received()
  return now === undefined || now !== received
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Of this process. */
export const handshakeBudget = new HandshakeBudget()

/** A connector whose https handshakes `tenant` pays for. Its sockets must stop reading on `pause`, as those with `onread` do. */
export function withBudget(
  connect: buildConnector.connector,
  tenant: string,
  budget: HandshakeBudget = handshakeBudget,
): buildConnector.connector {
  return (options, callback) => {
    let handshake: Handshake | undefined
    let hasEnded = false
    // The types of undici leave out that it returns the socket.
    const connecting: unknown = connect(options, (...result) => {
      const [, socket] = result
      hasEnded = true
      if (handshake) budget.end(handshake, socket instanceof TLSSocket && socket.authorized)
      callback(...result)
    })
    if (!(connecting instanceof TLSSocket)) return
    // Reading begins in this turn, after all listeners.
    const begin = () => {
      if (!hasEnded) handshake = budget.begin(tenant, handshakeSocket(connecting))
    }
    connecting.once('connect', () => process.nextTick(begin))
  }
}

const handshakeSocket = (socket: TLSSocket): HandshakeSocket => ({
  received: () => receivedBy(socket),
  pause: () => socket.pause(),
  resume: () => socket.resume(),
})

/** `bytesRead` of a TLS socket counts what it deciphered; that of the connection below it is private. */
function receivedBy(socket: TLSSocket): number | undefined {
  const handle: unknown = Reflect.get(socket, '_handle')
  const parent: unknown = isObject(handle) ? Reflect.get(handle, '_parent') : undefined
  const bytes: unknown = isObject(parent) ? Reflect.get(parent, 'bytesRead') : undefined
  return typeof bytes === 'number' ? bytes : undefined
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
