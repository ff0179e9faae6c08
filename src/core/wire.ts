/** Small pieces that several wires share. */
import type { Message } from './ops.ts'

/** The text of a message: its string, or its text parts joined. */
export function textOf(content: Message['content']): string {
  if (typeof content === 'string') return content
  let text = ''
  for (const part of content ?? []) if (part.type === 'text') text += part.text
  return text
}

/** `data:image/png;charset=utf-8;base64,AAAA` → its parts, base64 without line breaks; undefined for any other URL. */
export function parseDataUrl(url: string): { mime: string; base64: string } | undefined {
  const match = /^data:([^;,]*)((?:;[^;,]*)*),/i.exec(url)
  if (!match) return undefined
  const mime = match[1]!.trim().toLowerCase() || 'text/plain'
  const data = url.slice(match[0].length)
  if (/;base64$/i.test(match[2]!)) return { mime, base64: /\s/.test(data) ? data.replace(/\s+/g, '') : data }
  try {
    return { mime, base64: Buffer.from(decodeURIComponent(data), 'utf8').toString('base64') }
  } catch {
    return undefined
  }
}

/**
 * A tool call's arguments as JSON text, whatever a provider made of them: an object, an empty string, null, or
 * text encoded twice (edge cases C17 to C19).
 */
export function toolArguments(value: unknown): string {
  if (value === undefined || value === null || value === '' || value === 'null') return '{}'
  if (typeof value !== 'string') return JSON.stringify(value)
  if (!value.startsWith('"')) return value
  try {
    const inner: unknown = JSON.parse(value)
    if (typeof inner === 'string' && typeof JSON.parse(inner) === 'object') return inner
  } catch {
    // Not encoded twice: the text stands as it is.
  }
  return value
}

/** A model id as one segment of a URL path; throws a RangeError for names that would leave it. */
export function pathSegment(id: string): string {
  if (id === '' || id === '.' || id === '..' || /[\p{Cc}\p{Cs}\\]/u.test(id)) {
    throw new RangeError(`"${id}" cannot be part of an address`)
  }
  return encodeURIComponent(id)
}
