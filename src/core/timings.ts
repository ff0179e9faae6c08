/** The moments of one exchange that are measured. */

/** Milliseconds on the monotonic clock; 0 until it happened. */
export interface Timings {
  readonly start: number
  /** All of the request was here, however slowly it came; until then as `start`. */
  read: number
  sent: number
  /** The upstream's first event of the attempt that answered. */
  answered: number
  firstToken: number
  end: number
  /** A duration: how long reading from the provider was paused for a slow client. */
  stalled: number
}
