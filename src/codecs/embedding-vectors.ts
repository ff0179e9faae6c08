/** The vectors of an embeddings answer. */
import type { Event } from '../core/event.ts'
import type { Embeddings } from '../operations/embeddings/request.ts'
import { toNumbers } from './vectors.ts'

type Result = Extract<Event, { type: 'result' }>

/** In the provider's encoding: numbers, or base64; in the order of the inputs. */
export const givenVectors = ({ value, bytes }: Result): readonly (readonly number[] | string)[] =>
  (value as Embeddings).vectors ??
  (JSON.parse(bytes!.toString()) as { embedding: number[] | string }[]).map(one => one.embedding)

/** As numbers. */
export const vectorsOf = (result: Result): readonly (readonly number[])[] =>
  givenVectors(result).map(vector => (typeof vector === 'string' ? toNumbers(vector) : vector))
