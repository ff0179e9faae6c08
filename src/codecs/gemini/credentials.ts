/** Where clients of Google's API have their key. */
import type { Headers } from '../../core/exchange.ts'

const HEADER = 'x-goog-api-key'

/** Whether a request is of such a client, at a path that other clients have too. */
export const isGeminiClient = (headers: Headers): boolean => headers[HEADER] !== undefined

/** In their own header, and as `key` of the query, which is written nowhere. */
export function credentials(headers: Headers, query: string): readonly string[] {
  const header = headers[HEADER]
  const given = query.includes('key=') ? new URLSearchParams(query).getAll('key') : []
  if (typeof header === 'string') given.push(header.trim())
  return given.filter(key => key !== '')
}
