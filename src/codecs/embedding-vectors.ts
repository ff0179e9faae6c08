/** The vectors of an embeddings answer. */
import type { Event } from '../core/event.ts'
import type { Embeddings } from '../operations/embeddings/request.ts'

type Result = Extract<Event, { type: 'result' }>
/** Numbers, or their base64. */
export type Vector = readonly number[] | string

/** The vectors in the provider's encoding, and in the order of the inputs. */
export function givenVectors({ value, bytes }: Result): readonly Vector[] {
  const { vectors } = value as Embeddings
  if (vectors) return vectors
  const data = JSON.parse(String(bytes)) as { embedding: Vector }[]
  return data.map(({ embedding }) => embedding)
}
