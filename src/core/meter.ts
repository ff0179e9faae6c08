/** Measures an exchange: its prompt before it is sent, and its answer as it arrives. */
import type { Event } from './event.ts'
import type { Cost, Money, Requests } from './money.ts'
import type { Usage } from './usage.ts'

/** Estimates a prompt; what it comes to may change with the target. */
export interface PromptMeter {
  /** Tokens of the texts; 0 until the body is read. */
  readonly tokens: number
  /** With the media, and what of all may be written to the target's cache. */
  readonly usage: Usage
}

/** Measures an answer; merges reports into the `usage` of its exchange. */
export interface AnswerMeter {
  /** Something has come that a client can see. */
  readonly hasContent: boolean
  /** Tokens of all choices so far: reported, and delivered since then. */
  readonly tokens: number
  /** The requests that the usage is the sum of; undefined for one. */
  readonly requests: Requests | undefined
  /** Cost of the usage so far at the target's price; null while the price is unknown. */
  readonly cost: Cost | null
  /** Usage and cost if the answer were cut short now. */
  readonly soFar: { readonly usage: Usage; readonly cost: Cost | null }
  count(batch: readonly Event[]): void
  /**
   * Fills usage that the upstream did not report from the sent and delivered content, and marks it as estimated. For an
   * answer that was `cut`, adds the content delivered since the last report. Without delivered content there is no
   * usage, unless the provider charges for it. `most`: where given, an estimate costs no more from then on.
   */
  complete(cut: boolean, most?: Money): void
}
