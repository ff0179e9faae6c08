/** Measurements of an offer by one organization, or by several together, minute by minute. */
import type { History, Sample } from '../../core/ports.ts'

/** Minutes kept; the longest possible history. */
export const MAX_MINUTES = 120

/** Fields summed per minute and read with the weights of a history. */
export const REQUESTS = 0
/** Judged attempts that failed. */
export const ERRORS = 1
/** Sum of milliseconds to the first token. */
export const FIRST_TOKEN_MS = 2
/** Number of addends of `FIRST_TOKEN_MS`. */
export const FIRST_TOKENS = 3
/** Sum of tokens per second. */
export const SPEED = 4
/** Number of addends of `SPEED`. */
export const SPEEDS = 5
const FIELDS = 6
/** Fields read without weights: judged attempts, and judged and failed attempts of the last two minutes. */
export const ALL_REQUESTS = 6
/** Judged attempts of the last two minutes. */
export const LATE_REQUESTS = 7
/** Failed ones of them. */
export const LATE_ERRORS = 8
const VALUES = 9

/**
 * All minutes but the current one are weighted once a minute, so that a reading costs a few additions. Minute m is in
 * slot m modulo the number of slots. Takes 3 KB.
 */
export class Series {
  readonly #sums = new Float32Array(MAX_MINUTES * FIELDS)
  /** Weighted sums of past minutes, for `#weighedFor`. */
  readonly #past = new Float64Array(FIELDS)
  #pastRequests = 0
  #weighedFor: History | undefined
  #stale = true

  #minute = -1
  /** Minute of the newest sample. */
  sampledAt = -1
  /** Values by field, as of the last `look`. */
  readonly values = new Float64Array(VALUES)

  add(minute: number, { ok, firstTokenMs, tokensPerSecond }: Sample): void {
    this.#advance(minute)
    this.sampledAt = this.#minute
    const sums = this.#sums
    const at = slotOf(this.#minute)
    if (ok !== undefined) sums[at + REQUESTS]! += 1
    if (ok === false) sums[at + ERRORS]! += 1
    if (firstTokenMs !== undefined && firstTokenMs >= 0) {
      sums[at + FIRST_TOKEN_MS]! += firstTokenMs
      sums[at + FIRST_TOKENS]! += 1
    }
    if (isSpeed(tokensPerSecond)) {
      sums[at + SPEED]! += tokensPerSecond
      sums[at + SPEEDS]! += 1
    }
    this.#stale = true
  }

  /** Updates the readable values. */
  look(minute: number, history: History): void {
    this.#advance(minute)
    if (this.#weighedFor !== history) this.#weigh(history)
    if (!this.#stale) return
    this.#stale = false
    const sums = this.#sums
    const at = slotOf(this.#minute)
    const before = slotOf(this.#minute + MAX_MINUTES - 1)
    const weight = weightOf(0, history)
    const { values } = this
    for (let field = 0; field < FIELDS; field++) values[field] = this.#past[field]! + weight * sums[at + field]!
    values[ALL_REQUESTS] = this.#pastRequests + sums[at + REQUESTS]!
    values[LATE_REQUESTS] = sums[at + REQUESTS]! + sums[before + REQUESTS]!
    values[LATE_ERRORS] = sums[at + ERRORS]! + sums[before + ERRORS]!
  }

  /** Adds all samples of `other` and empties it. */
  absorb(other: Series): void {
    this.#advance(other.#minute)
    other.#advance(this.#minute)
    for (const [at, sum] of other.#sums.entries()) this.#sums[at]! += sum
    this.#weighedFor = undefined
    other.#sums.fill(0)
    other.#weighedFor = undefined
  }

  /** Makes `minute` the newest; skipped minutes are empty. */
  #advance(minute: number): void {
    if (minute <= this.#minute) return
    const first = Math.max(this.#minute + 1, minute - MAX_MINUTES + 1)
    for (let at = first; at <= minute; at++) this.#sums.fill(0, slotOf(at), slotOf(at) + FIELDS)
    this.#minute = minute
    this.#weighedFor = undefined
  }

  #weigh(history: History): void {
    const past = this.#past.fill(0)
    this.#pastRequests = 0
    for (let age = 1; age < Math.min(history.minutes, MAX_MINUTES); age++) {
      const at = slotOf(this.#minute + MAX_MINUTES - age)
      const weight = weightOf(age, history)
      for (let field = 0; field < FIELDS; field++) past[field]! += weight * this.#sums[at + field]!
      this.#pastRequests += this.#sums[at + REQUESTS]!
    }
    this.#weighedFor = history
    this.#stale = true
  }
}

const isSpeed = (speed: number | undefined): speed is number =>
  speed !== undefined && speed >= 0 && Number.isFinite(speed)

const slotOf = (minute: number): number => (minute % MAX_MINUTES) * FIELDS

/** Weight of a minute that began `age` whole minutes ago. */
function weightOf(age: number, { newest, recent, newestWeight, recentWeight, restWeight }: History): number {
  if (age < newest) return newestWeight
  return age < recent ? recentWeight : restWeight
}
