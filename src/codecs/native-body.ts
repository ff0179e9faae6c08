/** A client's own body: where its addresses stand, and what of it the canonical request lacks. */

import type { ChatRequest } from '../core/chat-request.ts'
import type { Exchange } from '../core/exchange.ts'
import { textSize, valueSize } from '../core/usage.ts'
import { isObject, type Json } from '../json/json.ts'
import { isAddress } from '../lib/url.ts'

/** Members with words, and with what is meant for tools: nothing is fetched from there. */
const PROSE: ReadonlySet<string> = new Set(['text', 'args', 'arguments', 'input', 'response', 'title'])
/** Members that may be words, or a list of parts. */
const WORDS: ReadonlySet<string> = new Set(['content', 'output', 'value'])

/**
 * `path` of the canonical `request` as the client of `body` calls it: the first place of the address in `body[root]`.
 * Undefined where `path` holds no address, or the body has none like it.
 */
export function addressField(path: string, request: unknown, body: Readonly<Json>, root: string): string | undefined {
  if (!path.startsWith('messages[')) return undefined
  const address = valueAt(request, path)
  return typeof address === 'string' && isAddress(address) ? placeOf(address, body[root], root) : undefined
}

/** `fieldOf` of a codec whose own bodies are kept for providers of its wire. */
export const nativeField =
  (root: string) =>
  (path: string, ex: Exchange): string =>
    addressField(path, ex.request, ex.input.native?.body ?? {}, root) ?? path

function valueAt(value: unknown, path: string): unknown {
  let at = value
  for (const [step] of path.matchAll(/[^.[\]]+/g)) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return undefined
    at = (at as Json)[step]
  }
  return at
}

function placeOf(address: string, value: unknown, at: string): string | undefined {
  if (value === address) return at
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const found = placeOf(address, value[index], `${at}[${index}]`)
      if (found !== undefined) return found
    }
  } else if (isObject(value)) {
    for (const name in value) {
      const inner = value[name]
      if (PROSE.has(name) || (typeof inner === 'string' && WORDS.has(name))) continue
      const found = placeOf(address, inner, `${at}.${name}`)
      if (found !== undefined) return found
    }
  }
  return undefined
}

/** Bytes of tools and formats, in the words of a wire, beyond those that stand for them in the canonical request. */
export function nativeSettings(settings: readonly unknown[], { tools, response_format: format }: ChatRequest): number {
  const held = valueSize(tools) + (format?.type === 'json_schema' ? valueSize(format.json_schema) : 0)
  return Math.max(0, valueSize(settings) - held)
}

/** Bytes of all members but those of the names in `read`. */
export function sizeBeside(members: Readonly<Record<string, unknown>>, read: ReadonlySet<string>): number {
  let sum = 0
  for (const name in members) if (!read.has(name)) sum += textSize(name) + valueSize(members[name])
  return sum
}
