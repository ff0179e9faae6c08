/** Counts what a running response comes to, and extends its hold before that is used up (docs/realtime.md#money). */
import { type PartHold, withOutput } from '../core/realtime.ts'
import { estimateTokens, mergeUsage, textSize, type Usage } from '../core/usage.ts'
import { Thought } from '../metering/thought.ts'
import { usuallyWritten } from '../metering/unseen.ts'

/** Tokens that are held at first for the output of a response that has no limit, and that its hold grows by. */
export const HELD_OUTPUT = 4096
/** docs/money.md#media-prices. */
const OUTPUT_TOKENS_PER_SECOND = 21
/** A hold grows when so much of its output is used. */
const GROWS_AT = 3 / 4

interface MeteredResponse {
  readonly hold: PartHold
  readonly expected: Usage
  /** Tokens that it may have at most, seen or not. */
  readonly most: number
  /** Bytes of a second of audio in its output. */
  readonly outputRate: number
  /** Tokens per second that its model usually writes; undefined where that does not think. */
  readonly thinkingSpeed: (() => number) | undefined
}

/** One running response. Nothing else may extend its hold. */
export class ResponseMeter {
  readonly hold: PartHold
  /** Milliseconds until the first of its output. */
  firstMs: number | undefined
  readonly #began = performance.now()
  readonly #expected: Usage
  readonly #most: number
  readonly #thinkingSpeed: (() => number) | undefined
  readonly #outputRate: number
  #textBytes = 0
  #audioBytes = 0
  /** No event shows what a model thinks: it may, but while an item of its output comes. */
  readonly #thought = new Thought()
  /** Tokens that are held for: all of them, and those that deltas show, which may be audio. */
  #covered: number
  #coveredSeen: number
  /** There was no money for more than that: more is wanted when all of it is used, not before. */
  #isShort: boolean
  #growing: Promise<boolean> | undefined

  constructor({ hold, expected, most, outputRate, thinkingSpeed }: MeteredResponse) {
    this.hold = hold
    this.#expected = expected
    this.#most = most
    this.#thinkingSpeed = thinkingSpeed
    this.#outputRate = outputRate
    this.#covered = hold.output
    this.#coveredSeen = hold.output
    this.#isShort = hold.output < (expected.completion ?? 0)
  }

  /** No output was seen. */
  get isEmpty(): boolean {
    return this.#textBytes === 0 && this.#audioBytes === 0
  }

  add(type: string, delta: string): void {
    if (delta === '') return
    const now = performance.now()
    this.firstMs ??= Math.round(now - this.#began)
    this.#thought.ends(now, this.#began)
    if (type.endsWith('audio.delta')) this.#audioBytes += Math.floor((delta.length * 3) / 4)
    else this.#textBytes += textSize(delta)
  }

  /** What follows an item of the output may have been thought about. */
  itemEnded(): void {
    this.#thought.goesOn()
  }

  /** With the prompt that is expected: what the response is charged for where its provider reports nothing. */
  get usage(): Usage {
    const completion = this.#seen + this.#thoughtTokens(performance.now())
    return { ...this.#expected, completion, output_audio: this.#audioTokens }
  }

  /** What is held for: charged where the provider's report cannot be true. At least what was seen. */
  get bound(): Usage {
    const { usage } = this
    const bound = { ...withOutput(this.#expected, this.#coveredSeen), completion: this.#covered }
    mergeUsage(bound, usage)
    return bound
  }

  /**
   * Whether the response may go on; a promise where the ledger must be waited for, which rejects when that fails. `now`:
   * milliseconds on the monotonic clock.
   */
  mayGoOn(now = performance.now()): boolean | Promise<boolean> {
    if (this.#growing) return this.#growing
    if (this.#isWithin(now, this.#isShort ? 1 : GROWS_AT)) return true
    this.#growing = this.#grow(now).finally(() => {
      this.#growing = undefined
    })
    return this.#growing
  }

  async #grow(now: number): Promise<boolean> {
    const seen = this.#seen
    const used = seen + this.#thoughtTokens(now)
    const covered = this.#next(used)
    // Thoughts are text: their price is that of the rest.
    const coveredSeen = Math.min(this.#next(seen), covered)
    const usage = { ...withOutput(this.#expected, coveredSeen), completion: covered }
    if (await this.hold.extend(usage)) {
      this.#covered = covered
      this.#coveredSeen = coveredSeen
      this.#isShort = false
      return true
    }
    this.#isShort = true
    // What was held before may cover some still.
    return this.#isWithin(now, 1)
  }

  /** Tokens that are held for next where so many are used: a provider that passes the limit is not bound by it. */
  #next(used: number): number {
    return used <= this.#most ? Math.min(used + HELD_OUTPUT, this.#most) : used + HELD_OUTPUT
  }

  /** Within `share` of what is held for; or all of it, where a response may have no more. */
  #isWithin(now: number, share: number): boolean {
    const seen = this.#seen
    const bound = (covered: number) => (covered < this.#most ? covered * share : covered)
    return seen <= bound(this.#coveredSeen) && seen + this.#thoughtTokens(now) <= bound(this.#covered)
  }

  get #audioTokens(): number {
    return Math.ceil((this.#audioBytes / this.#outputRate) * OUTPUT_TOKENS_PER_SECOND)
  }

  /** Tokens of the output so far, without what was thought out of sight. */
  get #seen(): number {
    return estimateTokens(this.#textBytes) + this.#audioTokens
  }

  #thoughtTokens(now: number): number {
    if (!this.#thinkingSpeed) return 0
    const tokens = Math.floor(usuallyWritten(this.#thought.time(now, this.#began), this.#thinkingSpeed()))
    return Math.max(0, Math.min(tokens, this.#most - this.#seen))
  }
}
