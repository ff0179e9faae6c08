/** Ids of tool calls, which are nine letters and digits on this wire. */
import { createHash } from 'node:crypto'

const LENGTH = 9
const OWN = /^[a-zA-Z0-9]{9}$/
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * An id as this wire takes it: its own stand, others become a hash of themselves, so that a call and its result agree
 * in every request. `copy` tells calls of one message apart that have the same id; 0 for the first.
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
