/** A vector as numbers, or as base64 of little-endian float32 (docs/contract.md#embeddings). */

import type { Embeddings } from '../operations/embeddings/request.ts'
import type { Result } from './whole.ts'

/** Numbers, or their base64. */
export type Vector = readonly number[] | string

/** The vectors in the provider's encoding, and in the order of the inputs. */
export function givenVectors({ value, bytes }: Result): readonly Vector[] {
  const { vectors } = value as Embeddings
  if (vectors) return vectors
  const data = JSON.parse(String(bytes)) as { embedding: Vector }[]
  return data.map(({ embedding }) => embedding)
}

const FLOAT_BYTES = 4

/** Rounds each number to float32. */
export function toBase64(vector: readonly number[]): string {
  const bytes = Buffer.allocUnsafe(vector.length * FLOAT_BYTES)
  for (let at = 0; at < vector.length; at++) bytes.writeFloatLE(vector[at]!, at * FLOAT_BYTES)
  return bytes.toString('base64')
}

/** Ignores bytes after the last whole number. */
export function toNumbers(base64: string): number[] {
  const bytes = Buffer.from(base64, 'base64')
  const numbers: number[] = []
  for (let at = 0; at + FLOAT_BYTES <= bytes.length; at += FLOAT_BYTES) numbers.push(bytes.readFloatLE(at))
  return numbers
}
