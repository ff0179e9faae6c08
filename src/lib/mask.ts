/** Finds a credential in what its provider sends back, in every usual encoding. */
import { formsOf, spellingsOf } from './credential-forms.ts'
import { Needles, RUN, type Run } from './needles.ts'

/** What stands in the place of a credential. */
export const MASK = '***'
/** Shorter secrets are treated as words. */
export const SHORTEST = 8
/** Longest credential searched for, in characters. */
const LONGEST = 4096
/** Of a private key: one of 8,192 bits has 6,400. */
const LONGEST_KEY = 8192
/** Short parts of one secret, such as a user and a password. */
const MAX_SHORT = 16
/** Values up to so many characters are found in every encoding, longer ones as they are. */
const LONGEST_SPELT = 256
/** Bytes of an entry beside its tables: of its objects, and of a string. */
const OBJECTS = 1024
const STRING = 32

/** What a provider gets beside its credential. */
export interface SentSecrets {
  /** Each is a credential, or several behind spaces. */
  readonly secrets: readonly string[]
  /** Addresses, names, regions: of the operator, but no credentials. */
  readonly values: readonly string[]
  /** Tells these from others. */
  readonly key: string
}

/** Splits a secret. Of a service account's JSON only the private key is secret: the other fields are public. */
function partsOf(secret: string): string[] {
  if (!secret.startsWith('{')) return secret.slice(0, LONGEST).split(/\s+/)
  const key = /"private_key"\s*:\s*"([^"]*)"/.exec(secret)?.[1] ?? ''
  const lines = key.slice(0, LONGEST_KEY).split(/\\n|\n/)
  return lines.filter(line => line !== '' && !line.startsWith('-----'))
}

/** Matches one credential, or several separated by spaces. */
export class Mask {
  /** Parts too short for a run, matched literally. */
  readonly #short: readonly string[]
  readonly #needles: Needles
  /** Values that are no credentials, in every spelling. */
  readonly #whole: readonly string[]

  constructor(secret: string, sent?: SentSecrets) {
    const parts = [secret, ...(sent?.secrets ?? [])].flatMap(partsOf).filter(part => part.length >= SHORTEST)
    this.#whole = (sent?.values ?? []).flatMap(value =>
      value.length > LONGEST_SPELT ? [value.slice(0, LONGEST)] : spellingsOf(value),
    )
    this.#short = [...new Set(parts.flatMap(part => [part, ...part.split(':')]))]
      .filter(part => part.length >= SHORTEST && part.length < RUN)
      .slice(0, MAX_SHORT)
      .flatMap(spellingsOf)
    this.#needles = new Needles(formsOf(parts))
  }

  /** Memory that this takes, about. */
  get bytes(): number {
    const texts = [...this.#short, ...this.#whole]
    return texts.reduce((sum, text) => sum + STRING + text.length, OBJECTS + this.#needles.bytes)
  }

  /** For messages and headers: masks any 12 consecutive characters, and a short credential as a whole. */
  strict(text: string): string {
    const runs = this.#needles.runsIn(text, true)
    return without([...this.#short, ...this.#whole], runs ? masked(text, runs, 0) : text)
  }

  /** For logs: as an answer, and without values that are no credentials. */
  log(text: string): string {
    return without(this.#whole, this.answer(text))
  }

  /**
   * For answers: a prefix common to all credentials of a kind is no match, and credentials below 12 characters are
   * ignored. `before` is the end of the preceding text. 1,000 characters take about 4 us.
   */
  answer(text: string, before = ''): string {
    const runs = this.#needles.runsIn(before + text, false)
    return runs ? masked(before + text, runs, before.length) : text
  }
}

/**
 * Masks an answer's text that arrives in pieces. Of a credential split between pieces, the first 11 characters may
 * show.
 */
export class PiecewiseMask {
  readonly #mask: Mask
  /** The end of the preceding pieces. */
  #tail = ''

  constructor(mask: Mask) {
    this.#mask = mask
  }

  /** The next piece, masked. Credentials hold no spaces, so most pieces of prose are not searched. */
  next(text: string): string {
    if (text.length < RUN) {
      const space = text.indexOf(' ')
      if (this.#tail.length + (space < 0 ? text.length : space) < RUN) {
        this.#tail = space < 0 ? this.#tail + text : text.slice(text.lastIndexOf(' ') + 1)
        return text
      }
    }
    const clean = this.#mask.answer(text, this.#tail)
    this.#tail = (this.#tail + text).slice(1 - RUN)
    return clean
  }
}

const without = (parts: readonly string[], text: string): string =>
  parts.reduce((clean, part) => clean.replaceAll(part, MASK), text)

/** `text` after its first `shown` characters, with the runs masked. */
function masked(text: string, runs: readonly Run[], shown: number): string {
  let clean = ''
  let at = shown
  for (const [start, end] of runs) {
    if (end <= at) continue
    clean += text.slice(at, Math.max(start, at)) + MASK
    at = end
  }
  return clean + text.slice(at)
}
