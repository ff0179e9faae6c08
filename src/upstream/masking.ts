/** Keeps the credential of a request out of its answer, whatever part of it the provider repeats it in. */

import type { Event } from '../core/event.ts'
import { isObject, textIn } from '../json/json.ts'
import type { GatewayError } from '../lib/error.ts'
import { mapText } from '../secrets/map-text.ts'
import { type Mask, PiecewiseMasks } from '../secrets/mask.ts'

/** Returns the error without the credential. */
export function maskedError(error: GatewayError, mask: Mask): GatewayError {
  const message = mask.strict(error.message)
  const param = error.param && mask.strict(error.param)
  const code = error.code && mask.strict(error.code)
  const detail = error.detail && mask.strict(error.detail)
  const same = message === error.message && param === error.param && code === error.code && detail === error.detail
  return same ? error : error.with({ message, param, code, detail })
}

/** Kinds of text; a key of pieces holds one in its lowest bits. */
const KINDS = { text: 0, refusal: 1, reasoning: 2, tool: 3, logprobs: 4 }
const KIND_BITS = 8
const INDEXES = 1024

/** Masks the events of one answer, in place. Skips files and numbers. */
export class AnswerMask {
  readonly #mask: Mask
  readonly #pieces: PiecewiseMasks<number>

  constructor(mask: Mask) {
    this.#mask = mask
    this.#pieces = new PiecewiseMasks(mask, Number.POSITIVE_INFINITY)
  }

  apply(event: Event): void {
    switch (event.type) {
      case 'text':
      case 'refusal':
        event.text = this.#next(KINDS[event.type], event.choice, event.text)
        return
      case 'reasoning':
        if (event.text !== '') event.text = this.#next(KINDS.reasoning, event.choice, event.text)
        if (event.signature !== undefined) event.signature = this.#whole(event.signature)
        if (event.data !== undefined) event.data = this.#whole(event.data)
        return
      case 'tool':
        if (event.args !== undefined)
          event.args = this.#next(KINDS.tool, event.choice + event.index * INDEXES, event.args)
        if (event.id !== undefined) event.id = this.#whole(event.id)
        if (event.name !== undefined) event.name = this.#whole(event.name)
        if (event.signature !== undefined) event.signature = this.#whole(event.signature)
        if (event.own) event.own = mapText(event.own, this.#whole)
        return
      case 'error':
        event.error = maskedError(event.error, this.#mask)
        return
      case 'logprobs':
        event.tokens = this.#tokens(event.choice, event.tokens)
        return
      case 'usage':
        return
      default: {
        const clean = mapText(event, this.#whole)
        if (clean !== event) Object.assign(event, clean)
      }
    }
  }

  #next(kind: number, of: number, text: string): string {
    return this.#pieces.next(of * KIND_BITS + kind, text)
  }

  /** Tokens repeat the text in small pieces; where a credential goes through them, none is passed on. */
  #tokens(choice: number, tokens: readonly unknown[]): readonly unknown[] {
    const text = tokens.map(token => (isObject(token) && textIn(token.token)) || '').join('')
    return this.#next(KINDS.logprobs, choice, text) === text ? tokens : []
  }

  readonly #whole = (text: string): string => (isData(text) ? text : this.#mask.answer(text))
}

/** Base64 of a file or a vector: large, and nothing that a provider writes a credential into. */
const isData = (text: string): boolean =>
  text.startsWith('data:') || (text.length > MAX_WORD_CHARACTERS && !text.includes(' '))
const MAX_WORD_CHARACTERS = 16 * 1024
