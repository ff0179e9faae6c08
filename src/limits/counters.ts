/** The port of what is counted: units of a window, and places. */

/**
 * A sliding-window counter, and a count of what runs. Answers that are in memory are no promises: every request waits for
 * them, and must not wait for a turn of the queue besides.
 */
export interface Counters {
  /** Takes one unit of `limit` per `windowMs`; a refused unit is not counted. */
  take(key: string, limit: number, windowMs: number): Quota | Promise<Quota>
  /** Adds `units`, below 0, to what `take` has counted in `bucket`: another limit refuses the request. Never rejects. */
  correct(key: string, windowMs: number, bucket: number, units: number): void | Promise<void>
  /** The state of the limit; takes nothing. `allowed`: a unit is free. */
  peek(key: string, limit: number, windowMs: number): Quota | Promise<Quota>
  /** Takes one of `limit` permits; false when none is free. The holder returns it with `leave`. */
  enter(key: string, limit: number): boolean | Promise<boolean>
  leave(key: string): void | Promise<void>
  /** Takes all `units` while fewer than `limit` are counted: a window passes its limit by less than one reservation. */
  reserve(key: string, limit: number, windowMs: number, units: number): Reservation | Promise<Reservation>
}

/** The state of a limit after a request was counted or refused. */
export interface Quota {
  readonly allowed: boolean
  readonly remaining: number
  /** At most `windowMs`: the oldest units leave the window then, so that a refused caller finds one free. */
  readonly resetMs: number
  /** Where a unit of `take` was counted. */
  readonly bucket?: number
}

/** Units that were taken by estimate, and the state of their limit. */
export interface Reservation extends Quota {
  /** Makes it `units` that were taken; once, and without effect where none were. Never rejects. */
  correct(units: number): void | Promise<void>
}
