/** Pieces of an answer that wait for what comes before them: those of one text, or of one thought, become one. */
import type { ChoiceEvent } from '../core/event.ts'

type Piece = Extract<ChoiceEvent, { type: 'text' | 'refusal' | 'reasoning' }>

const isPiece = (event: ChoiceEvent): event is Piece =>
  event.type === 'text' || event.type === 'refusal' || event.type === 'reasoning'

/** An event that may wait, and be joined with others: a copy where they would change it. */
export const waitable = <E extends ChoiceEvent>(event: E): E => (isPiece(event) ? Object.assign({}, event) : event)

/** Whether `event` goes on with `last`, which was made `waitable`, and is a part of it now. */
export function joins(last: ChoiceEvent | undefined, event: ChoiceEvent): boolean {
  if (!last || !isPiece(event) || last.type !== event.type || last.choice !== event.choice) return false
  if (last.type === 'reasoning' && event.type === 'reasoning') {
    const isSealed = last.signature !== undefined || last.data !== undefined || event.data !== undefined
    if (isSealed || last.block !== event.block || last.format !== event.format) return false
    if (event.signature !== undefined) last.signature = event.signature
  }
  last.text += event.text
  return true
}
