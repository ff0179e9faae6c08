/** Tool call ids of nine letters and digits. */
import { createHash } from 'node:crypto'

const LENGTH = 9
const OWN = /^[a-zA-Z0-9]{9}$/
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * An id in the wire's form: a valid one unchanged, others as their hash, so that calls and results match in every
 * request. `copy` distinguishes calls of one message with the same id; 0 for the first.
 */
export function wireId(id: string, copy: number): string {
  if (copy === 0 && OWN.test(id)) return id
  const hash = createHash('sha256').update(copy === 0 ? id : `${id}\n${copy}`)
  let rest = hash.digest().readBigUInt64BE()
  let out = ''
  while (out.length < LENGTH) {
    out += DIGITS[Number(rest % 62n)]
    rest /= 62n
  }
  return out
}
