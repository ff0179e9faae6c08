/** Quota leases: what a worker requests, and what the lease server grants. */
import type { Quota } from '../../core/ports.ts'

/**
 * A worker's request for units of `limit` per `windowMs`. Times are of `systemClock`, common to all processes of a
 * machine.
 */
export interface LeaseRequest {
  readonly key: string
  readonly limit: number
  readonly windowMs: number
  /** For waiting requests; those that get no unit are refused. */
  readonly need: number
  /** For future requests, if there is plenty. */
  readonly more: number
  /** Borrowed before and not used. */
  readonly unused: Unused | undefined
}
/** Units of an earlier lease that are given back, and the bucket that they are of. */
export interface Unused {
  readonly bucket: number
  readonly units: number
}

/** The answer to a `LeaseRequest`. */
export interface Lease {
  /** The needed ones count as used now; the rest may be used while the clock is in `bucket`. */
  readonly units: number
  readonly bucket: number
  /** Units left for other workers. */
  readonly free: number
  /** When the oldest unit leaves the window: a refused worker need not try before. */
  readonly leavesAt: number
}

/** Remaining units of a limit, including unused units of all workers when no other is free. */
export interface Remainder {
  readonly free: number
  /** When the oldest unit leaves the window; 0 when there is none. */
  readonly leavesAt: number
}

/** A request for units that are counted one reservation at a time. */
interface ReserveRequest {
  readonly key: string
  readonly limit: number
  readonly windowMs: number
  readonly units: number
}
/** The answer to a `ReserveRequest`: the limit's state, and where its units are counted. */
type Reserved = Quota & { readonly bucket: number }

/** Units to add to a reservation of `bucket`; below 0, to take from it. */
interface Correction {
  readonly key: string
  readonly windowMs: number
  readonly bucket: number
  readonly units: number
}

/** Calls of a worker to the lease server. */
export interface LeaseClient {
  take(request: LeaseRequest): Lease | Promise<Lease>
  peek(request: Pick<LeaseRequest, 'key' | 'limit' | 'windowMs'>): Remainder | Promise<Remainder>
  giveBack(key: string, windowMs: number, unused: Unused): void
  enter(key: string, limit: number): boolean | Promise<boolean>
  leave(key: string): void
  reserve(request: ReserveRequest): Reserved | Promise<Reserved>
  correct(correction: Correction): void
}

/**
 * The machine's monotonic clock in milliseconds, the same in all its processes: a difference of two clocks, read at the
 * start, would be off by whatever came between the readings.
 */
export const systemClock = (): number => {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}
