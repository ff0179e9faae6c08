/** What a model has thought of an answer since the last report: what it shows of that, and how long it took. */
import { estimateTokens } from '../core/usage.ts'

/**
 * A model may think out of sight as long as nothing but reasoning and native blocks comes of it: from the moment that it
 * has its request until the first text, call or refusal, and again where reasoning follows. Moments are milliseconds on
 * the monotonic clock.
 */
export class Thought {
  /** Of the reasoning that was shown. */
  bytes = 0
  /** Nothing else has come since the last reasoning, or the beginning. */
  #isOpen = true
  /** When something else came last, or a report; 0 where that is when the request was sent. */
  #from = 0
  /** Milliseconds of what has ended. */
  #ended = 0
  /** Tokens of the last report. */
  #reported = 0

  goesOn(): void {
    this.#isOpen = true
  }

  /** Something else came. */
  ends(now: number, sent: number): void {
    if (this.#isOpen) this.#ended += this.#since(now, sent)
    this.#isOpen = false
    this.#from = now
  }

  /** All so far was reported, as so many tokens. */
  reported(tokens: number, now: number): void {
    this.bytes = 0
    this.#ended = 0
    this.#from = now
    this.#reported = tokens
  }

  /** Milliseconds. */
  time(now: number, sent: number): number {
    return this.#ended + (this.#isOpen ? this.#since(now, sent) : 0)
  }

  /** As reported, and since then as shown or as `unseen`, whichever is more. */
  tokens(unseen: number): number {
    return this.#reported + Math.max(unseen, estimateTokens(this.bytes))
  }

  #since(now: number, sent: number): number {
    return now - (this.#from || sent || now)
  }
}
