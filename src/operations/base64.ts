/** Decodes base64 that all decoders read alike: others pass over odd characters, or go on behind padding. */
import { withoutSpace } from '../core/wire.ts'

/** Undefined where decoders may read other bytes. */
export function exactBytes(base64: string): Buffer | undefined {
  const text = withoutSpace(base64)
  const bytes = Buffer.from(text, 'base64')
  // `startsWith` takes six times as long.
  return bytes.toString('base64').slice(0, text.length) === standard(text) ? bytes : undefined
}

/** The same of the first bytes, a multiple of three; undefined also where it is not known which these are. */
export function exactHead(base64: string, bytes: number): Buffer | undefined {
  const length = Math.floor(bytes / 3) * 4
  const begin = base64.slice(0, 2 * length)
  const text = withoutSpace(begin).slice(0, length)
  return text.length < length && begin.length < base64.length ? undefined : exactBytes(text)
}

/** In the first alphabet of RFC 4648, which decoders of the other one read as well. */
const standard = (text: string): string =>
  text.includes('-') || text.includes('_') ? text.replaceAll('-', '+').replaceAll('_', '/') : text
