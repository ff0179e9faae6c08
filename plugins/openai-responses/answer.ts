/** State shared by the items of one answer: counts for indexes and places, and the target. */
import {
  Citations,
  Count,
  type Event,
  isObject,
  MAX_CALLS,
  MAX_REASONING_BLOCKS,
  placeIn,
  type Target,
  textIn,
  tooManyBlocks,
  tooManyCalls,
} from '../../src/plugin.ts'
import type { Position } from './replay.ts'

/** One for each answer; its items share it. */
export class Answer {
  readonly target: Target
  /** The client uses the same wire. */
  readonly isNative: boolean
  /** Counts the values in all calls. */
  readonly count = new Count()
  /** Client tool calls; the index of a tool event counts these, not the provider's items. */
  calls = 0
  #blocks = 0
  /** Searches charged by the provider. */
  searches = 0
  /** Characters of text so far, in all messages. */
  written = 0
  #items = 0
  #spoken = 0
  #wordless = true
  readonly #citations = new Citations(0)

  constructor(target: Target, isNative: boolean) {
    this.target = target
    this.isNative = isNative
  }

  /** The place of an item that begins now. */
  place(): Position {
    return [this.#spoken, this.#items++]
  }

  /** Throws the error of an answer with too many calls. */
  call(): number {
    if (this.calls === MAX_CALLS) throw tooManyCalls()
    this.#spoken++
    return this.calls++
  }

  /** The number of a reasoning block. Throws the error of an answer with too many. */
  block(): number {
    if (this.#blocks === MAX_REASONING_BLOCKS) throw tooManyBlocks()
    return this.#blocks++
  }

  /** Begins a message. Without phases, clients join all text, so only the first message counts. */
  speak(phased: boolean): void {
    if (phased || this.#wordless) this.#spoken++
    this.#wordless = false
  }

  /** A citation in a text that begins at `start` of the answer's text; other annotations have no chat form. */
  cite(annotation: unknown, start: number, out: Event[]): void {
    if (!isObject(annotation) || annotation.type !== 'url_citation') return
    const { url, title, start_index: from, end_index: to } = annotation
    const address = textIn(url)
    if (address === undefined) return
    this.#citations.add(address, textIn(title), placeIn(from, to, start), out)
  }
}
