/** One side of a session: takes its messages one by one, and no faster than the other side takes what they become. */
import { setImmediate as turn } from 'node:timers/promises'
import type { Message, MessageSocket } from '../core/message-socket.ts'
import { guarded } from '../lib/guarded.ts'
import { TokenBucket } from '../limits/rate.ts'

/** Messages that one turn of the loop takes: others go on in between. */
const PER_TURN = 50
/** Bytes of them. */
const READ_PER_TURN = 256 * 1024
/** Messages that wait here before no more are read. */
const MAX_QUEUED_MESSAGES = 64
/** Bytes that wait on the other side before no more is read on this one. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024
/** How long the other side may take nothing of what waits. */
const STALL_MS = 30_000
/** Frames that carry nothing at once: programs send a few in a minute, so that connections stay open. */
const BARE_FRAMES = 60
const BARE_FRAMES_PER_SECOND = 2

type Take = (message: Message) => void | Promise<void>

/** Callbacks of a channel. */
interface ChannelEvents {
  take: Take
  /** Receives an error thrown by `take`. None is expected. */
  failed(cause: unknown): void
  closed(code: number): void
  /** The other side has taken nothing for too long. */
  stalled(): void
  /** This side sends too many frames that carry nothing. */
  flooded(): void
}

/** Two channels are linked: each stops reading while too many bytes wait in the other. */
export class Channel {
  readonly socket: MessageSocket
  readonly #events: ChannelEvents
  readonly #readRate: TokenBucket
  /** More has been read than may be; undefined while it is read. */
  #rest: NodeJS.Timeout | undefined
  /** Not read, since others must catch up. */
  #paused = false
  #queue: { readonly message: Message; readonly bytes: number }[] = []
  /** Bytes of the queue and of the message that is being taken. */
  #bytes = 0
  #taken = 0
  #working = false
  #ended = false
  /** Pings, pongs that no ping awaits, and empty messages. */
  #bareFrames = bareFrames()
  #flooded = false
  #other: Channel | undefined
  /** Wait until what was sent here has been taken. */
  #waiters: (() => void)[] = []
  #waitingSince = 0
  /** Bytes that had come with the last whole message. */
  #seen = 0
  /** When the last message came, as `performance.now`. */
  lastAt = performance.now()
  /** A ping has not been answered. */
  awaitsPong = false

  /** `readRate`: what bounds how fast it is read, with others. */
  constructor(socket: MessageSocket, events: ChannelEvents, readRate: TokenBucket) {
    this.socket = socket
    this.#events = events
    this.#readRate = readRate
  }

  /** Begins to read; what it becomes is sent to `other`. `earlier`: messages that have come already. */
  open(other: Channel, earlier: readonly Message[] = []): void {
    this.#other = other
    for (const message of earlier) this.#add(message, message?.length ?? 0)
    const safe = <A extends unknown[]>(listener: (...args: A) => void) =>
      guarded(listener, (thrown, ..._: A) => this.#events.failed(thrown))
    this.socket.open({
      message: safe((message: Message, bytes: number) => this.#add(message, bytes)),
      pinged: safe(() => this.#bareFrame()),
      pong: safe(() => {
        if (!this.awaitsPong) this.#bareFrame()
        this.awaitsPong = false
      }),
      read: safe((bytes: number) => this.#read(bytes)),
      drained: safe(() => this.#drained()),
      closed: safe((code: number) => {
        clearTimeout(this.#rest)
        this.#ended = true
        this.#drained()
        this.#events.closed(code)
      }),
    })
  }

  send(text: string): void {
    this.socket.send(text)
  }

  /** It is closed or stopped: nothing more of it counts. */
  get ended(): boolean {
    return this.#ended
  }

  /** Bytes that are kept for it: what waits to be taken or sent, and a message that is not whole yet. */
  get held(): number {
    return this.#bytes + this.socket.waiting + Math.max(0, this.socket.received - this.#seen)
  }

  ping(): void {
    this.awaitsPong = true
    this.socket.ping()
  }

  /** No message is taken any more. */
  stop(): void {
    clearTimeout(this.#rest)
    this.#ended = true
    this.#queue = []
    this.#bytes = this.#taken
    // Drops later frames, so that the close of the other end is read.
    this.socket.resume()
    this.#drained()
  }

  /** To be called now and then: whether what was sent here has not been taken for too long. */
  check(now: number): void {
    if (this.#waitingSince > 0 && now - this.#waitingSince > STALL_MS) this.#events.stalled()
  }

  /** Reports too many of them once; ends the socket where too many come again, or after its end. */
  #bareFrame(): void {
    this.#bareFrames.take(1, performance.now())
    if (this.#bareFrames.owedMs === 0) return
    if (this.#flooded || this.#ended) this.socket.destroy()
    else {
      this.#flooded = true
      this.#bareFrames = bareFrames()
      this.#events.flooded()
    }
  }

  #add(message: Message, bytes: number): void {
    this.lastAt = performance.now()
    this.#seen = this.socket.received
    if (bytes === 0) this.#bareFrame()
    if (this.#ended) return
    this.#queue.push({ message, bytes })
    this.#bytes += bytes
    if (this.#queue.length >= MAX_QUEUED_MESSAGES || this.#bytes > MAX_WAITING_BYTES) this.#pause()
    if (!this.#working) void this.#work()
  }

  async #work(): Promise<void> {
    this.#working = true
    let read = 0
    try {
      for (let taken = 1; this.#queue.length > 0 && !this.#ended; taken++) {
        // A refused message is answered with an error.
        if (this.#isFull) await this.#room(this)
        if (this.#other!.#isFull) await this.#room(this.#other!)
        if (this.#ended) break
        const { message, bytes } = this.#queue.shift()!
        this.#taken = bytes
        const pending = this.#events.take(message)
        if (pending) {
          this.#pause()
          await pending
        }
        this.#taken = 0
        this.#bytes -= bytes
        read += bytes
        if (taken % PER_TURN !== 0 && read < READ_PER_TURN) continue
        read = 0
        await turn()
      }
    } catch (thrown) {
      this.#events.failed(thrown)
    }
    this.#working = false
    this.#resume()
  }

  #pause(): void {
    this.#paused = true
    this.socket.pause()
  }

  #resume(): void {
    this.#paused = false
    if (!this.#ended && !this.#rest) this.socket.resume()
  }

  #read(bytes: number): void {
    this.#readRate.take(bytes, performance.now())
    const restMs = this.#readRate.owedMs
    if (this.#ended || this.#rest || restMs < 1) return
    this.socket.pause()
    this.#rest = setTimeout(() => {
      this.#rest = undefined
      if (!this.#paused && !this.#ended) this.socket.resume()
    }, restMs)
  }

  /** More waits here than may. What waits for an end that has left is never taken. */
  get #isFull(): boolean {
    return !this.#ended && this.socket.waiting > MAX_WAITING_BYTES
  }

  /** Resolves when `side` has taken what waits for it, or has ended. */
  async #room(side: Channel): Promise<void> {
    this.#pause()
    if (side.#waiters.length === 0) side.#waitingSince = performance.now()
    await new Promise<void>(resolve => {
      side.#waiters.push(resolve)
    })
  }

  #drained(): void {
    this.#waitingSince = 0
    for (const resolve of this.#waiters.splice(0)) resolve()
  }
}

const bareFrames = (): TokenBucket => new TokenBucket(BARE_FRAMES, BARE_FRAMES_PER_SECOND)

/** Bytes of both sides of an organization's sessions. */
export interface ReadRates {
  readonly client: TokenBucket
  readonly provider: TokenBucket
}

/** Rates of organizations with sessions in this process. */
const ofTenants = new Map<string, ReadRates & { readonly rate: number; sessions: number }>()

/**
 * Returns the rates of an organization at `rate` bytes per second. Call `leave` when the session has ended. A session that
 * begins after a change of `rate` shares the new one.
 */
export function enterReadRates(tenant: string, rate: number): ReadRates & { readonly leave: () => void } {
  const made = () => ({ client: new TokenBucket(rate, rate), provider: new TokenBucket(rate, rate), rate, sessions: 0 })
  const known = ofTenants.get(tenant)
  const readRates = known?.rate === rate ? known : made()
  readRates.sessions++
  ofTenants.set(tenant, readRates)
  const leave = () => {
    if (--readRates.sessions === 0 && ofTenants.get(tenant) === readRates) ofTenants.delete(tenant)
  }
  return { client: readRates.client, provider: readRates.provider, leave }
}
