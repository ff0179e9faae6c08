/** Credentials in requests of Google's clients. */
import type { Headers } from '../../core/http-request.ts'

const HEADER = 'x-goog-api-key'

/** Whether a request comes from such a client, at a path shared with other clients. */
export const isGeminiClient = (headers: Headers): boolean => headers[HEADER] !== undefined

/** Their own header, and the query parameter `key`, which is never logged. */
export function credentials(headers: Headers, query: string): readonly string[] {
  const header = headers[HEADER]
  const given = query.includes('key=') ? new URLSearchParams(query).getAll('key') : []
  if (typeof header === 'string') given.push(header.trim())
  return given.filter(key => key !== '')
}
