/** A vector as numbers, or as base64 of little-endian float32 (docs/contract.md#embeddings). */

const BYTES = 4

/** Rounds each number to float32. */
export function toBase64(vector: readonly number[]): string {
  const bytes = Buffer.allocUnsafe(vector.length * BYTES)
  for (let at = 0; at < vector.length; at++) bytes.writeFloatLE(vector[at]!, at * BYTES)
  return bytes.toString('base64')
}

/** Ignores bytes after the last whole number. */
export function toNumbers(base64: string): number[] {
  const bytes = Buffer.from(base64, 'base64')
  const numbers: number[] = []
  for (let at = 0; at + BYTES <= bytes.length; at += BYTES) numbers.push(bytes.readFloatLE(at))
  return numbers
}
