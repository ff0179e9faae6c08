/** What a worker borrows, and from whom. */

/**
 * A worker asks for units of `limit` per `windowMs`. Time is that of `systemClock`, which all processes of a machine
 * agree on.
 */
export interface Ask {
  readonly key: string
  readonly limit: number
  readonly windowMs: number
  /** For requests that wait; whoever gets none of them is refused. */
  readonly need: number
  /** For requests that will come, as far as there is plenty. */
  readonly more: number
  /** Borrowed before, and not used. */
  readonly unused: Unused | undefined
}
export interface Unused {
  readonly bucket: number
  readonly units: number
}

export interface Lease {
  /** Those that were needed are taken now; what is beyond may be used while the clock is in `bucket`. */
  readonly units: number
  readonly bucket: number
  /** Left to whoever asks next. */
  readonly free: number
  /** When the oldest unit leaves the window: before, a refused worker need not ask again. */
  readonly leavesAt: number
}

/** What one worker calls of the lease server. */
export interface LeaseClient {
  take(ask: Ask): Lease | Promise<Lease>
  giveBack(key: string, windowMs: number, unused: Unused): void
  enter(key: string, limit: number): boolean | Promise<boolean>
  leave(key: string): void
}

const [seconds, nanoseconds] = process.hrtime()
const OFFSET = seconds * 1e3 + nanoseconds / 1e6 - performance.now()

/** Milliseconds of the machine's monotonic clock, the same in all its processes. */
export const systemClock = (): number => performance.now() + OFFSET
