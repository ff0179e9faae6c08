/**
 * Cuts the `data` array out of an answer in OpenAI's form without parsing its numbers, nearly all of its bytes. The
 * rest is parsed and compared, so that the cut part is a `data` array (docs/contract.md#embeddings); unusual answers
 * are left to the caller for parsing.
 */
import { isObject, type Json, jsonIn } from '../../../src/plugin.ts'
import { afterSpace } from '../answer.ts'

interface Slice {
  /** The array's bytes, a view of the answer's. */
  readonly data: Buffer
  readonly encoding: 'float' | 'base64'
  /** Number of entries. */
  readonly count: number
  /** The answer with an empty array in place of its data. */
  readonly envelope: Json
}

/** Maximum bytes before and after the array, and of each entry besides its vector. */
const MAX_HEAD_BYTES = 4096
const MAX_TAIL_BYTES = 4096
const MAX_ENTRY_BYTES = 256

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_ENTRY = 0x7b
const CLOSE_ENTRY = 0x7d

/** Undefined for an answer that deviates from the form, entry by entry and in order. */
export function sliceOf(bytes: Buffer): Slice | undefined {
  const open = dataOf(bytes)
  if (open === undefined) return undefined
  let encoding: Slice['encoding'] | undefined
  let at = open
  let count = 0
  for (let index = 0; index === 0 || bytes[at] === COMMA; index++) {
    count++
    const begin = afterSpace(bytes, at + 1)
    const end = bytes.indexOf(CLOSE_ENTRY, begin)
    if (bytes[begin] !== OPEN_ENTRY || end < 0) return undefined
    const written = encodingOf(bytes.subarray(begin, end + 1), index)
    if (written === undefined || (encoding ?? written) !== written) return undefined
    encoding = written
    at = afterSpace(bytes, end + 1)
  }
  if (encoding === undefined || bytes[at] !== CLOSE_LIST || bytes.length - at > MAX_TAIL_BYTES) return undefined
  const envelope = jsonIn(`${bytes.toString('utf8', 0, open)}[]${bytes.toString('utf8', at + 1)}`)
  return isObject(envelope) && Array.isArray(envelope.data) && envelope.data.length === 0
    ? { data: bytes.subarray(open, at + 1), encoding, count, envelope }
    : undefined
}

/** Start of the outermost object's `data` array. */
function dataOf(bytes: Buffer): number | undefined {
  const end = Math.min(bytes.length, MAX_HEAD_BYTES)
  let depth = 0
  for (let at = 0; at < end; at++) {
    const byte = bytes[at]
    if (byte === OPEN_ENTRY || byte === OPEN_LIST) depth++
    else if (byte === CLOSE_ENTRY || byte === CLOSE_LIST) depth--
    else if (byte === QUOTE) {
      const begin = at + 1
      for (at++; at < end && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++
      if (depth !== 1 || bytes.toString('latin1', begin, at) !== 'data') continue
      const colon = afterSpace(bytes, at + 1)
      if (bytes[colon] !== COLON) continue
      const value = afterSpace(bytes, colon + 1)
      return bytes[value] === OPEN_LIST ? value : undefined
    }
  }
  return undefined
}

/** The encoding of an entry's vector; undefined for an entry with other fields, or another index. */
function encodingOf(entry: Buffer, index: number): Slice['encoding'] | undefined {
  const list = entry.indexOf(OPEN_LIST)
  const [from, to] = list < 0 ? longText(entry) : numbers(entry, list)
  if (to <= from + 1 || entry.length - (to - from) > MAX_ENTRY_BYTES) return undefined
  const rest = jsonIn(`${entry.toString('utf8', 0, from)}0${entry.toString('utf8', to + 1)}`)
  const isUsual =
    isObject(rest) &&
    rest.object === 'embedding' &&
    rest.index === index &&
    rest.embedding === 0 &&
    Object.keys(rest).length === 3
  if (!isUsual) return undefined
  return list < 0 ? 'base64' : 'float'
}

const NOWHERE: readonly [number, number] = [0, 0]

/** The brackets of the only list, unless it certainly contains a non-number. */
function numbers(entry: Buffer, from: number): readonly [number, number] {
  const to = entry.indexOf(CLOSE_LIST, from)
  if (to < 0 || entry.indexOf(OPEN_LIST, from + 1) >= 0) return NOWHERE
  const inside = entry.subarray(from + 1, to)
  return STRANGE.some(byte => inside.includes(byte)) ? NOWHERE : [from, to]
}

/** A character of each non-number: null, nan and Infinity, NaN, strings, objects. */
const STRANGE = [0x6e, 0x4e, QUOTE, OPEN_ENTRY]

/** The quotes of the first string longer than any name, unless it contains an escape. */
function longText(entry: Buffer): readonly [number, number] {
  for (let from = entry.indexOf(QUOTE); from >= 0; ) {
    const to = entry.indexOf(QUOTE, from + 1)
    if (to < 0) break
    if (to - from > NAME_BYTES) return entry.includes(BACKSLASH) ? NOWHERE : [from, to]
    from = entry.indexOf(QUOTE, to + 1)
  }
  return NOWHERE
}

/** `embedding`, with its quotes. */
const NAME_BYTES = 11
