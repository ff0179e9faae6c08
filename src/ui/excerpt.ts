/** The lines of a configuration file around an error, without the secrets that stand in them. */
import { isSecretName, redactText } from '../secrets/redact.ts'

const MASK = ' ***'
const AROUND = 6
const MAX_COLUMNS = 500

/** One line, numbered from 1. */
interface Line {
  readonly number: number
  readonly text: string
  readonly isMarked: boolean
}

/** Whether all that stands below a name may be secret. */
const isSecretPlace = (name: string): boolean => /^(?:headers|secrets|env|cookies)$/i.test(name) || isSecretName(name)

/** Returns the lines around `line`. What stands behind or below a name that may hold a secret is masked. */
export function excerpt(file: string, line: number): Line[] {
  /** Depth of the entry below which lines are masked. */
  let hidden = Number.POSITIVE_INFINITY
  const lines = file.split(/\r?\n/, line + AROUND).map(whole => {
    const text = whole.slice(0, MAX_COLUMNS)
    const depth = /^[ -]*/.exec(text)![0].length
    if (text.trim() === '') return text
    if (depth > hidden) return text.slice(0, depth) + entryMasked(text.slice(depth))
    const colon = secretColon(text)
    hidden = colon === undefined ? Number.POSITIVE_INFINITY : depth
    return redactText(colon === undefined ? text : text.slice(0, colon) + valueMasked(text.slice(colon)))
  })
  const first = Math.max(0, line - 1 - AROUND)
  return lines
    .slice(first)
    .map((text, index) => ({ number: first + index + 1, text, isMarked: first + index + 1 === line }))
}

/** Position behind the colon of the first name whose value may be secret. */
function secretColon(text: string): number | undefined {
  for (const { 0: name, index } of text.matchAll(/[\w.-]+/g)) {
    const colon = colonBehind(text, index + name.length)
    if (colon !== undefined && isSecretPlace(name)) return colon
  }
  return undefined
}

/** Position behind a colon that follows at `at`, after a quote or blanks. */
function colonBehind(text: string, at: number): number | undefined {
  let place = at
  while (text[place] === '"' || text[place] === "'" || text[place] === ' ') place++
  return text[place] === ':' ? place + 1 : undefined
}

/** A line below a secret name keeps its own name. */
function entryMasked(text: string): string {
  const name = /^["']?[\w.-]+/.exec(text)?.[0] ?? ''
  const colon = colonBehind(text, name.length)
  return colon === undefined ? MASK.trim() : text.slice(0, colon) + valueMasked(text.slice(colon))
}

/** References to variables are no secrets. */
const valueMasked = (value: string): string =>
  value.trim() === '' || /^\s*["']?\$\{\w{1,100}(?::?-)?\}["'\s}\],]*$/.test(value) ? value : MASK
