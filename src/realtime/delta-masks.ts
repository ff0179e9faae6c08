/** Keeps the credential of a session out of texts that its provider sends in pieces. */
import type { RealtimeEvent } from './events.ts'

/** Masks the pieces of one text, in turn. */
type Piecewise = (piece: string) => string

/** Texts that are remembered: a response has a few at a time. */
const MAX_TEXTS = 64

/** The texts of one session, each by its type and its item. */
export class DeltaMasks {
  readonly #begin: () => Piecewise
  readonly #texts = new Map<string, Piecewise>()

  /** `begin`: makes what masks one text. */
  constructor(begin: () => Piecewise) {
    this.#begin = begin
  }

  /** `text`, which is the message of `event`, with a masked delta; the same text where nothing is masked. */
  apply(event: RealtimeEvent, text: string): string {
    const { type, item_id: item, delta } = event
    if (typeof delta !== 'string' || type.endsWith('audio.delta')) return text
    const clean = this.#of(`${type} ${typeof item === 'string' ? item : ''}`)(delta)
    return clean === delta ? text : JSON.stringify({ ...event, delta: clean })
  }

  #of(name: string): Piecewise {
    let found = this.#texts.get(name)
    if (!found) {
      found = this.#begin()
      const [oldest] = this.#texts.keys()
      if (this.#texts.size >= MAX_TEXTS) this.#texts.delete(oldest!)
      this.#texts.set(name, found)
    }
    return found
  }
}
