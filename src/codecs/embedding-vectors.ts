/** The vectors of an embeddings answer. */
import type { Event } from '../core/event.ts'
import { textSteps } from '../core/frame-steps.ts'
import { parseSteps } from '../core/json-steps.ts'
import type { Embeddings } from '../operations/embeddings/request.ts'

type Result = Extract<Event, { type: 'result' }>
/** Numbers, or their base64. */
export type Vector = readonly number[] | string

/** In the provider's encoding, and in the order of the inputs; in steps where they must be parsed. */
export function* givenVectors({ value, bytes }: Result): Generator<undefined, readonly Vector[]> {
  const { vectors } = value as Embeddings
  if (vectors) return vectors
  const text = typeof bytes === 'string' ? bytes : yield* textSteps(bytes!)
  const data = yield* parseSteps(text, json => JSON.parse(json))
  return (data as { embedding: Vector }[]).map(({ embedding }) => embedding)
}
