/** How a text becomes JSON. Of a text that must be repaired, 4,000 characters can take two seconds. */
import { jsonrepair } from 'jsonrepair'
import { jsonIn } from '../../json/json.ts'

/**
 * Valid JSON as it is; else what stands between the first bracket and its end, freed of a Markdown fence and of words
 * around it, and repaired (commas, quotes, keys, a missing end). A text that holds no JSON stays as it is.
 */
export function heal(text: string): string {
  const sound = soundJson(text)
  if (sound !== undefined) return sound
  const fenced = unfenced(text)
  const body = fenced.slice(Math.max(fenced.search(BRACKET), fenced.search(JSON_START)))
  const end = Math.max(body.lastIndexOf('}'), body.lastIndexOf(']'))
  const whole = end < 0 ? body : body.slice(0, end + 1)
  // A text that was cut off has more behind its last bracket than words.
  for (const candidate of closing(whole, 0) < 0 ? [body, whole] : [whole, body]) {
    const repaired = repair(candidate)
    if (repaired !== undefined) return repaired
  }
  return text
}

/** Returns the text when it needs no repair; undefined for any other. Scans the text a few times. */
export function soundJson(text: string): string | undefined {
  if (isJson(text)) return text
  const fenced = unfenced(text)
  const start = fenced.search(BRACKET)
  return start < 0 ? text : soundIn(fenced, start)
}

const BRACKET = /[{[]/
/** A bracket that begins JSON, however broken, and not words. */
const JSON_START = /[{[]\s*(?:["'{[]|-?\d|(?:true|false|null|True|False|None)\b|[\w$-]+\s*:)/
/** A fence that opens on a bracket, whatever language it names. */
const FENCE = /```[\w-]*\s*(?=[{[])/g
/** One that says what it holds, though a comment may come first. */
const NAMED = /```json\s*\n/i

/** The text inside a code fence, or all of the text. Fences within strings of the JSON do not count. */
function unfenced(text: string): string {
  const open = fenceOf(text)
  if (!open || isOpen(text.slice(0, open.index))) return text
  const inner = text.slice(open.index + open[0].length)
  let end = inner.indexOf('```')
  for (let looks = 0; end >= 0 && looks < MAX_STARTS && closing(inner.slice(0, end), 0) < 0; looks++) {
    end = inner.indexOf('```', end + 3)
  }
  if (end < 0) end = inner.lastIndexOf('```')
  return end < 0 ? inner : inner.slice(0, end)
}

/** The fence that opens on JSON, else on a bracket, else one that is named so. */
function fenceOf(text: string): RegExpExecArray | null {
  let first: RegExpExecArray | undefined
  let looks = 0
  for (const fence of text.matchAll(FENCE)) {
    if (text.slice(fence.index + fence[0].length).search(JSON_START) === 0) return fence
    first ??= fence
    if (++looks === MAX_STARTS) break
  }
  return first ?? NAMED.exec(text)
}

/** Whether JSON has begun and not ended; what is closed, such as a citation `[1]`, is but words. */
function isOpen(text: string): boolean {
  let rest = text
  for (let starts = 0; starts < MAX_STARTS; starts++) {
    const start = rest.search(JSON_START)
    if (start < 0) return false
    const end = closing(rest, start)
    if (end < 0) return true
    rest = rest.slice(end + 1)
  }
  return false
}

/** Brackets and fences before the JSON that are tried; each is scanned to its end. */
const MAX_STARTS = 32

/** Matches characters of JSON that are not found in plain words in brackets. */
const JSON_LIKE = /["':]/

/**
 * The longest JSON that stands whole among words, or the text itself when its brackets hold but words; undefined when
 * there is some that is broken.
 */
function soundIn(text: string, from: number): string | undefined {
  let best: string | undefined
  let at = from
  for (let starts = 0; at >= 0 && starts < MAX_STARTS; starts++) {
    const end = closing(text, at)
    const part = end < 0 ? '' : text.slice(at, end + 1)
    if (isJson(part)) {
      if (part.length > (best?.length ?? 0)) best = part
    } else if (end < 0 || JSON_LIKE.test(part)) return undefined
    const next = text.slice(end + 1).search(/[{[]/)
    at = next < 0 ? -1 : end + 1 + next
  }
  const areWords = at < 0 && text.slice(0, from).trim() !== ''
  return best ?? (areWords ? text : undefined)
}

/** Where the bracket at `from` closes; -1 when it does not. */
function closing(text: string, from: number): number {
  let depth = 0
  let quoted = false
  for (let at = from; at < text.length; at++) {
    const char = text[at]
    if (quoted) {
      if (char === '\\') at++
      else if (char === '"') quoted = false
    } else if (char === '"') quoted = true
    else if (char === '{' || char === '[') depth++
    else if ((char === '}' || char === ']') && --depth === 0) return at
  }
  return -1
}

/** Whether `text` is one JSON value and nothing else. */
export const isJson = (text: string): boolean => jsonIn(text) !== undefined

function repair(text: string): string | undefined {
  try {
    const repaired = jsonrepair(text)
    return isJson(repaired) ? repaired : undefined
  } catch {
    // Text that cannot be repaired is passed on unchanged.
    return undefined
  }
}
