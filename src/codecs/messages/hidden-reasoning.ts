/**
 * Reasoning that the client did not request. No block shows it, because such a client reads the first block as text.
 */

import type { ReasoningEvent } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import { catalogOf } from '../../core/policy.ts'
import { nativeFormOf } from '../../core/translator.ts'

/** Providers of the client's own wire got the client's own body: their answers are not modified. */
export function hidesReasoning(ex: Exchange): boolean {
  if (ex.answer.showsReasoning) return false
  const translator = ex.answer.cached ? firstTranslator(ex, ex.answer.cached) : ex.target?.translator
  return !(translator && nativeFormOf(translator, ex.input.native))
}

/** The wire of the original answer of a replay. */
function firstTranslator(ex: Exchange, { model, provider, externalId }: NonNullable<Exchange['answer']['cached']>) {
  const offers = catalogOf(ex).models.get(model)?.mappings
  return offers?.find(offer => offer.provider.id === provider && offer.externalId === externalId)?.wires.get('chat')
}

const MAX_WAITING_SEALS_CHARACTERS = 4 * 1024 * 1024

/** Keeps reasoning that providers require back after tool calls; clients store it beside the call. */
export class HiddenReasoning {
  #seals: ReasoningEvent[] = []
  #size = 0
  /** The last piece whose text was dropped: the signature of its block is useless without it. */
  #textual: ReasoningEvent | undefined

  add(event: ReasoningEvent): void {
    if (event.text !== '') this.#textual = event
    const { format, block, signature, data } = event
    const isTextual = this.#textual !== undefined && this.#textual.format === format && this.#textual.block === block
    const sealed = data ?? (isTextual ? undefined : signature)
    if (sealed === undefined || this.#size + sealed.length > MAX_WAITING_SEALS_CHARACTERS) return
    this.#size += sealed.length
    this.#seals.push(event.text === '' ? event : { ...event, text: '' })
  }

  /** The seals since the last call, each once. */
  take(): readonly ReasoningEvent[] {
    const seals = this.#seals
    if (seals.length > 0) this.#seals = []
    this.#size = 0
    return seals
  }
}
