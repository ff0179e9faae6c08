/** Small pieces that several wires share. */
import { errors, type GatewayError } from './error.ts'
import { isObject, type Json } from './json.ts'
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

/** The same for wires that take an object. Throws 400 for arguments, found `at` this place, that are none. */
export function objectArguments(value: unknown, at: string): Json {
  let parsed: unknown
  try {
    parsed = JSON.parse(toolArguments(value))
  } catch {
    parsed = undefined
  }
  if (isObject(parsed)) return parsed
  throw errors.invalidParameters(`${at} must be the text of a JSON object.`, at)
}

/** The last of `turns` while `role` stays the same, else a new one: wires whose roles must alternate merge messages. */
export function turnOf<T extends { readonly role: string }>(turns: T[], role: T['role'], begin: () => T): T {
  const last = turns.at(-1)
  if (last?.role === role) return last
  const next = begin()
  turns.push(next)
  return next
}

/** Unlike `push(...)`, safe for lists of any length. */
export function append<T>(into: T[], items: readonly T[]): void {
  for (const item of items) into.push(item)
}

/** 400 for the result of a tool, the message `at` this place, that no earlier call asked for. */
export function unanswerable({ tool_call_id: id }: Message, at: string): GatewayError {
  const param = `${at}.tool_call_id`
  const wrong = id === undefined ? `${param} is missing` : `${param} "${id}" matches no earlier tool call`
  return errors.invalidParameters(`${wrong}; it must be the id of one of the assistant's tool_calls.`, param)
}

/** The media type that the first bytes of a picture prove, whatever its URL declares (edge case R1). */
export function sniffPicture(base64: string): 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp' | undefined {
  const head = Buffer.from(base64.slice(0, 16), 'base64').toString('latin1')
  if (head.startsWith('\x89PNG')) return 'image/png'
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (head.startsWith('GIF8')) return 'image/gif'
  if (head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP') return 'image/webp'
  return undefined
}

/** A model id as one segment of a URL path; throws a RangeError for names that would leave it. */
export function pathSegment(id: string): string {
  if (id === '' || id === '.' || id === '..' || /[\p{Cc}\p{Cs}\\]/u.test(id)) {
    throw new RangeError(`"${id}" cannot be part of an address`)
  }
  return encodeURIComponent(id)
}
