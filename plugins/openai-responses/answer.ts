/** What the items of one answer share while it is read: the counts that make indexes and places, and the target. */
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

export class Answer {
  readonly target: Target
  /** The client has the same wire. */
  readonly isNative: boolean
  /** Of the values in all calls. */
  readonly count = new Count()
  /** Calls that the client must make; the index of a tool event counts these, not the provider's items. */
  calls = 0
  #blocks = 0
  /** Searches that the provider charges for. */
  searches = 0
  /** Characters of text so far, of all messages. */
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

  /** Throws the failure of an answer with more calls than any has. */
  call(): number {
    if (this.calls === MAX_CALLS) throw tooManyCalls()
    this.#spoken++
    return this.calls++
  }

  /** The number of a block of reasoning. Throws the failure of an answer with more than any has. */
  block(): number {
    if (this.#blocks === MAX_REASONING_BLOCKS) throw tooManyBlocks()
    return this.#blocks++
  }

  /** A message begins to speak. Without phases a client joins all text, so only the first counts. */
  speak(phased: boolean): void {
    if (phased || this.#wordless) this.#spoken++
    this.#wordless = false
  }

  /** A citation in a text that begins at `start` of the answer's text; other kinds of annotation have no chat form. */
  cite(annotation: unknown, start: number, out: Event[]): void {
    if (!isObject(annotation) || annotation.type !== 'url_citation') return
    const { url, title, start_index: from, end_index: to } = annotation
    if (textIn(url) === undefined) return
    this.#citations.add(String(url), textIn(title), placeIn(from, to, start), out)
  }
}
