/** Counts what a running response comes to, and extends its hold before that is used up (docs/realtime.md#money). */
import { type PartHold, withOutput } from '../core/realtime.ts'
import { estimateTokens, mergeUsage, textSize, type Usage } from '../core/usage.ts'
import { speechTokens } from '../metering/audio.ts'

/** Tokens that are held at first for the output of a response that has no limit, and that its hold grows by. */
export const HELD_OUTPUT_TOKENS = 4096
/** A hold grows when so much of its output is used. */
const GROWS_AT = 3 / 4

interface MeteredResponse {
  readonly hold: PartHold
  readonly expected: Usage
  /** Tokens that it may have at most. */
  readonly most: number
  /** Bytes of a second of audio in its output. */
  readonly outputRate: number
}

/** One running response. Nothing else may extend its hold. */
export class ResponseMeter {
  readonly hold: PartHold
  /** Milliseconds until the first of its output. */
  firstMs: number | undefined
  readonly #began = performance.now()
  readonly #expected: Usage
  readonly #most: number
  readonly #outputRate: number
  #textBytes = 0
  #audioBytes = 0
  /** Tokens that are held for. */
  #covered: number
  /** There was no money for more than that: more is wanted when all of it is used, not before. */
  #isShort: boolean
  #growing: Promise<boolean> | undefined

  constructor({ hold, expected, most, outputRate }: MeteredResponse) {
    this.hold = hold
    this.#expected = expected
    this.#most = most
    this.#outputRate = outputRate
    this.#covered = hold.output
    this.#isShort = hold.output < (expected.completion ?? 0)
  }

  /** No output was seen. */
  get isEmpty(): boolean {
    return this.#textBytes === 0 && this.#audioBytes === 0
  }

  add(type: string, delta: string): void {
    if (delta === '') return
    this.firstMs ??= Math.round(performance.now() - this.#began)
    if (type.endsWith('audio.delta')) this.#audioBytes += Math.floor((delta.length * 3) / 4)
    else this.#textBytes += textSize(delta)
  }

  /** With the prompt that is expected: what the response is charged for where its provider reports nothing. */
  get usage(): Usage {
    return { ...this.#expected, completion: this.#tokens, output_audio: this.#audioTokens }
  }

  /** Held usage, at least the seen usage. It is charged when the provider's report is not plausible. */
  get bound(): Usage {
    const bound = withOutput(this.#expected, this.#covered)
    mergeUsage(bound, this.usage)
    return bound
  }

  /** Whether the response may go on; a promise where the ledger must be waited for, which rejects when that fails. */
  mayGoOn(): boolean | Promise<boolean> {
    if (this.#growing) return this.#growing
    if (this.#isWithin(this.#isShort ? 1 : GROWS_AT)) return true
    this.#growing = this.#grow().finally(() => {
      this.#growing = undefined
    })
    return this.#growing
  }

  async #grow(): Promise<boolean> {
    const tokens = this.#tokens
    const next = tokens + HELD_OUTPUT_TOKENS
    // A provider that passes the limit is not bound by it.
    const covered = tokens <= this.#most ? Math.min(next, this.#most) : next
    const hasGrown = await this.hold.extend(withOutput(this.#expected, covered))
    this.#isShort = !hasGrown
    if (hasGrown) this.#covered = covered
    // The earlier hold may still cover a part.
    return hasGrown || this.#isWithin(1)
  }

  /** Within `share` of what is held for; or all of it, where a response may have no more. */
  #isWithin(share: number): boolean {
    return this.#tokens <= (this.#covered < this.#most ? this.#covered * share : this.#covered)
  }

  get #audioTokens(): number {
    return speechTokens(this.#audioBytes / this.#outputRate)
  }

  /** Tokens of the output so far. */
  get #tokens(): number {
    return estimateTokens(this.#textBytes) + this.#audioTokens
  }
}
