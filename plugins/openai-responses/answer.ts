/** What the items of one answer share while it is read: the counts that make indexes and places, and the target. */
import { type Event, isObject, type Target, textIn } from '../../src/plugin.ts'
import type { Position } from './replay.ts'

export class Answer {
  readonly target: Target
  /** Calls that the client must make; the index of a tool event counts these, not the provider's items. */
  calls = 0
  /** Reasoning items; the block of a reasoning event. */
  blocks = 0
  /** Searches that the provider charges for. */
  searches = 0
  #items = 0
  #spoken = 0
  #wordless = true
  readonly #cited = new Set<string>()

  constructor(target: Target) {
    this.target = target
  }

  /** The place of an item that begins now. */
  place(): Position {
    return [this.#spoken, this.#items++]
  }

  call(): number {
    this.#spoken++
    return this.calls++
  }

  /** A message begins to speak. Without phases a client joins all text, so only the first counts. */
  speak(phased: boolean): void {
    if (phased || this.#wordless) this.#spoken++
    this.#wordless = false
  }

  /** A citation as an event, once for each address; other kinds of annotation have no chat form. */
  cite(annotation: unknown, out: Event[]): void {
    if (!isObject(annotation) || annotation.type !== 'url_citation') return
    const url = textIn(annotation.url)
    if (url === undefined || this.#cited.has(url)) return
    this.#cited.add(url)
    const title = textIn(annotation.title)
    out.push({ type: 'source', choice: 0, url, ...(title !== undefined && { title }) })
  }
}
