/** Small pieces that several wires share. */

import type { FunctionCall, Message } from '../core/chat-request.ts'
import { parseAnswer } from '../json/answer-bounds.ts'
import { isObject, type Json } from '../json/json.ts'
import { parseLossless } from '../json/lossless.ts'
import { textKey } from '../json/text-key.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import { IMAGE_HEAD_BYTES, type ImageType, imageType, MEDIA_HEAD_BYTES, mediaTypeOf } from '../media/type.ts'

/** Base64 characters of an image's head: four characters hold three bytes. */
const IMAGE_HEAD_CHARACTERS = (IMAGE_HEAD_BYTES / 3) * 4

/** The text of a message: its string, or its text parts joined. */
export function textOf(content: Message['content']): string {
  if (typeof content === 'string') return content
  let text = ''
  for (const part of content ?? []) if (part.type === 'text') text += part.text
  return text
}

/** Longest head of a data URL, up to its comma, in characters. */
export const MAX_DATA_HEAD_CHARACTERS = 256

/** As `/\s/`, of what may stand in base64, and five times as fast. */
const hasSpace = (text: string): boolean => SPACES.some(space => text.includes(space))
const SPACES = [' ', '\n', '\r', '\t']

/** `text` without white space. Through bytes: to replace alternating characters takes ten times as long. */
export function withoutSpace(text: string): string {
  if (!hasSpace(text)) return text
  const bytes = Buffer.from(text)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    bytes[length] = byte
    if (SPACE[byte] === 0) length++
  }
  return bytes.toString('utf8', 0, length)
}
const SPACE = new Uint8Array(256)
for (const space of SPACES) SPACE[space.charCodeAt(0)] = 1

/**
 * Base64 of either alphabet (RFC 4648), with white space, as plain base64. Through bytes: to replace characters takes far
 * more time and memory. Text with padding before its end is no base64 and stays as it is.
 */
export function plainBase64(text: string): string {
  const padding = text.indexOf('=')
  if (padding >= 0 && !/^[=\s]+$/.test(text.slice(padding))) return text
  return Buffer.from(text, 'base64').toString('base64')
}

/**
 * Whether a text begins like base64, in either alphabet and in lines or not. What is none may be an address or a path
 * to some reader: parsers of addresses skip spaces and line breaks.
 */
export const isBase64 = (text: string): boolean => BASE64_HEAD.test(text.slice(0, BASE64_LOOK))
const BASE64_HEAD = /^(?:(?:[a-z0-9+/_=-](?:\r?\n)?){64}|(?:[a-z0-9+/_=-](?:\r?\n)?)*$)/i
/** Holds 64 characters even where a line break is behind each. */
const BASE64_LOOK = 192

/** Characters of data that is no base64: to read 30 million of them takes 100 ms. */
const MAX_PLAIN_DATA_CHARACTERS = 4 * 1024 * 1024

/** Where the data of a URL begins, and in which form. */
interface DataHead {
  readonly mime: string
  readonly isBase64: boolean
  readonly at: number
}

/** Returns the part of a data URL before its data; undefined for any other URL. */
export function dataHeadOf(url: string): DataHead | undefined {
  const match = /^data:([^;,]*)((?:;[^;,]*)*),/i.exec(url.slice(0, MAX_DATA_HEAD_CHARACTERS))
  if (!match) return undefined
  const mime = match[1]!.trim().toLowerCase() || 'text/plain'
  return { mime, isBase64: /;base64$/i.test(match[2]!), at: match[0].length }
}

/** `data:image/png;charset=utf-8;base64,AAAA` → its parts, base64 without line breaks; undefined for any other URL. */
export function parseDataUrl(url: string): { mime: string; base64: string } | undefined {
  const head = dataHeadOf(url)
  if (!head) return undefined
  const { mime } = head
  const data = url.slice(head.at)
  if (head.isBase64) return { mime, base64: hasSpace(data) ? plainBase64(data) : data }
  if (data.length > MAX_PLAIN_DATA_CHARACTERS) return undefined
  try {
    return { mime, base64: Buffer.from(decodeURIComponent(data), 'utf8').toString('base64') }
  } catch {
    return undefined
  }
}

/**
 * A file of a chat request: the same, of the type by which it is held for and by which every wire sends it
 * (../media/type.ts). `name` may say it where neither bytes nor the URL do.
 */
export function parseFile(url: string, name?: string): { mime: string; base64: string } | undefined {
  const data = parseDataUrl(url)
  return data && { mime: typeOfBase64(data.base64, data.mime, name), base64: data.base64 }
}

/** The type that the first bytes of base64 prove; `declared` where that fits them, or they prove none. */
export const typeOfBase64 = (base64: string, declared: string, name?: string): string =>
  mediaTypeOf(mediaHead(base64), declared, name)

const mediaHead = (base64: string): Buffer => Buffer.from(base64.slice(0, (MEDIA_HEAD_BYTES / 3) * 4), 'base64')

/**
 * A tool call's arguments as JSON text, whatever a provider made of them: an object, an empty string, null, or
 * text encoded twice (docs/contributing/edge-cases.md#chat-chunks C17 to C19).
 */
export function toolArguments(value: unknown): string {
  if (value === undefined || value === null || value === '' || value === 'null') return '{}'
  if (typeof value !== 'string') return JSON.stringify(value)
  if (!value.startsWith('"')) return value
  try {
    const inner: unknown = JSON.parse(value)
    if (inner === '' || inner === 'null') return '{}'
    if (typeof inner === 'string' && isObject(parseAnswer(inner))) return inner
  } catch {
    // Not encoded twice, or more than anything parses: the text stands as it is.
  }
  return value
}

/**
 * Returns arguments as an object, for wires that take one. Long numbers become marks (lossless-json.ts). Text that is no
 * object was written by a model and stands in the history for ever: it is named as Anthropic's documentation proposes.
 */
export function objectArguments(value: unknown): Json {
  const text = toolArguments(value)
  try {
    const parsed = parseLossless(text)
    if (isObject(parsed)) return parsed
  } catch {
    // Cut off, or no JSON.
  }
  return { INVALID_JSON: text }
}

/** The calls of a turn, the message `at` this place. Throws 400 for one of a custom tool, which the wire does not have. */
export function functionCalls({ tool_calls: calls }: Message, at: string): readonly FunctionCall[] {
  return (calls ?? []).map((call, i) => {
    if (call.type === 'function') return call
    const where = `${at}.tool_calls[${i}].type`
    throw errors.unsupported(`${where} is "custom"; this provider takes calls of type "function" only.`, where)
  })
}

/** The last of `turns` while `role` stays the same, else a new one: wires whose roles must alternate merge messages. */
export function turnOf<T extends { readonly role: string }>(turns: T[], role: T['role'], begin: () => T): T {
  const last = turns.at(-1)
  if (last?.role === role) return last
  const next = begin()
  turns.push(next)
  return next
}

/**
 * Whether the model is to continue the assistant's last turn. False for a last message without content, which wires
 * drop.
 */
export const endsInAnswer = (messages: readonly Message[]): boolean => messages.at(-1)?.role === 'assistant'

/** Unlike `push(...)`, safe for lists of any length. */
export function append<T>(into: T[], items: readonly T[]): void {
  for (const item of items) into.push(item)
}

const SHOWN_ID = 64
const shownId = (id: string): string => (id.length > SHOWN_ID ? `${id.slice(0, SHOWN_ID)}…` : id)

/** 400 for a tool result, the message `at` this place, that belongs to no earlier call. */
function unanswerable({ tool_call_id: id }: Message, at: string): GatewayError {
  const param = `${at}.tool_call_id`
  const wrong = id === undefined ? `${param} is missing` : `${param} "${shownId(id)}" matches no earlier tool call`
  return errors.invalidParameters(`${wrong}; it must be the id of one of the assistant's tool_calls.`, param)
}

/** The media type by the first bytes, whatever the URL declares; undefined for what is not an image. */
export const sniffImage = (base64: string): ImageType | undefined =>
  imageType(Buffer.from(base64.slice(0, IMAGE_HEAD_CHARACTERS), 'base64'))

/** Whether a name can be one segment of a URL path. */
export const isPathSegment = (id: string): boolean =>
  id !== '' && id !== '.' && id !== '..' && !/[\p{Cc}\p{Cs}\\]/u.test(id)

/** A name as one segment of a URL path; throws a RangeError for one that would leave it. */
export function pathSegment(id: string): string {
  if (!isPathSegment(id)) throw new RangeError(`"${id}" cannot be part of an address`)
  return encodeURIComponent(id)
}

/** An id for a call that came without one (C15): no other answer has it. */
export const newCallId = (): string => `call_${crypto.randomUUID().replaceAll('-', '')}`

/** An instruction to follow a schema, for wires that cannot enforce it. */
export const schemaInstruction = (schema: Json): string =>
  `Respond with one JSON value that is valid under this JSON Schema, and with nothing else:\n${JSON.stringify(schema)}`

/**
 * Calls that wait for their results. An id may come again, also within a turn: a result goes to the latest turn that
 * calls by its id, and there to the first call without one; the last takes what comes after them all (R3, R4).
 */
export class PendingToolCalls<Call> {
  readonly #isAnswered: (call: Call) => boolean
  readonly #latest = new Map<string, { turn: object; calls: Call[]; next: number }>()

  constructor(isAnswered: (call: Call) => boolean) {
    this.#isAnswered = isAnswered
  }

  /** `turn` is an object that only the calls of one turn share. Returns how many of them had the same id before. */
  add(id: string, call: Call, turn: object): number {
    const key = textKey(id)
    const latest = this.#latest.get(key)
    if (latest?.turn === turn) return latest.calls.push(call) - 1
    this.#latest.set(key, { turn, calls: [call], next: 0 })
    return 0
  }

  /** Throws 400 for a result, the message `at` this place, that belongs to no call. */
  answeredBy(message: Message, at: string): Call {
    const latest = this.#latest.get(textKey(message.tool_call_id ?? ''))
    if (!latest) throw unanswerable(message, at)
    const { calls } = latest
    while (latest.next < calls.length - 1 && this.#isAnswered(calls[latest.next]!)) latest.next++
    return calls[latest.next]!
  }
}
