/** Keeps the credential of a session out of texts that its provider sends in pieces. */
import { keyWithin } from '../core/text-key.ts'
import { type Mask, PiecewiseMask } from '../lib/mask.ts'
import type { RealtimeEvent } from './events.ts'

/** Texts that are remembered: a response has a few at a time. */
const MAX_TEXTS = 64
/** Characters of a name that is kept as it is, and not as its hash: a provider's may be as long as a message. */
const MAX_NAME = 128

/** The texts of one session, each by its type and its item. */
export class DeltaMasks {
  readonly #mask: Mask | undefined
  readonly #texts = new Map<string, PiecewiseMask>()

  /** Without a mask all stays as it is. */
  constructor(mask: Mask | undefined) {
    this.#mask = mask
  }

  /** `text`, which is the message of `event`, with a masked delta; the same text where nothing is masked. */
  apply(event: RealtimeEvent, text: string): string {
    const { delta } = event
    const pieces = typeof delta === 'string' ? this.#of(event) : undefined
    if (!pieces || typeof delta !== 'string') return text
    const clean = pieces.next(delta)
    return clean === delta ? text : JSON.stringify({ ...event, delta: clean })
  }

  /** What has come before the piece of `event`; undefined for what is not masked. */
  #of({ type, item_id: item }: RealtimeEvent): PiecewiseMask | undefined {
    if (!this.#mask || type.endsWith('audio.delta')) return undefined
    const name = keyWithin(`${type} ${typeof item === 'string' ? item : ''}`, MAX_NAME)
    let found = this.#texts.get(name)
    if (!found) {
      found = new PiecewiseMask(this.#mask)
      const [oldest] = this.#texts.keys()
      if (this.#texts.size >= MAX_TEXTS) this.#texts.delete(oldest!)
      this.#texts.set(name, found)
    }
    return found
  }
}
