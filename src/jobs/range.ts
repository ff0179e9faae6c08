/** The part of a file that a client requests (RFC 9110 sections 13.1.5 and 14.2): one range, or everything. */
import { errors } from '../lib/error.ts'

interface Span {
  readonly start: number
  /** Inclusive. */
  readonly end: number
}

/** Whether a part continues what a client has: `If-Range` names one of the validators, strongly. */
export const isCurrent = (ifRange: string | undefined, validators: readonly (string | undefined)[]): boolean =>
  ifRange === undefined || (!ifRange.startsWith('W/') && validators.includes(ifRange))

/** Undefined for the whole file: without a range, with several, and where `If-Range` names another one. Throws a 416. */
export function spanOf(
  { range, ifRange }: { range: string | undefined; ifRange: string | undefined },
  size: number,
  validators: readonly (string | undefined)[],
): Span | undefined {
  if (range === undefined || !isCurrent(ifRange, validators)) return undefined
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range.trim()) ?? []
  if (first === undefined || (first === '' && last === '')) return undefined
  if (first === '') {
    const suffix = Number(last)
    if (suffix === 0 || size === 0) throw errors.rangeNotSatisfiable(size)
    return { start: Math.max(0, size - suffix), end: size - 1 }
  }
  const start = Number(first)
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1)
  // RFC 9110 section 14.1.1: a range that ends before it begins is none.
  if (last !== '' && Number(last) < start) return undefined
  if (start >= size) throw errors.rangeNotSatisfiable(size)
  return { start, end }
}

/** The bytes of a span, of all that come. */
export async function* cut(chunks: AsyncIterable<Buffer>, { start, end }: Span): AsyncGenerator<Buffer> {
  let at = 0
  for await (const chunk of chunks) {
    const from = Math.max(0, start - at)
    const to = Math.min(chunk.length, end + 1 - at)
    if (to > from) yield chunk.subarray(from, to)
    at += chunk.length
    if (at > end) return
  }
}
