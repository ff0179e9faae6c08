/** Finds a credential in what its provider sends back, in every usual encoding. */
import { formsOf } from './credential-forms.ts'
import { type Form, Needles, RUN, type Run } from './needles.ts'

/** What stands in the place of a credential. */
export const MASK = '***'
/** Shorter secrets are treated as words. */
const SHORTEST = 8
/** Longest credential searched for, in characters. */
const LONGEST = 4096
/** Credentials whose masks are cached. */
const MAX_MASKS = 256

/** Splits a secret. Of a service account's JSON only the private key is secret: the other fields are public. */
function partsOf(secret: string): string[] {
  if (!secret.startsWith('{')) return secret.slice(0, LONGEST).split(/\s+/)
  const key = /"private_key"\s*:\s*"([^"]*)"/.exec(secret)?.[1] ?? ''
  return key.split(/\\n|\n/).filter(line => line !== '' && !line.startsWith('-----'))
}

/** Matches one credential, or several separated by spaces. */
export class Mask {
  readonly #forms: readonly Form[]
  /** Parts too short for a run, matched literally. */
  readonly #short: readonly string[]
  readonly #needles: Needles
  #strict: Needles | undefined

  constructor(secret: string) {
    const parts = partsOf(secret)
    this.#forms = parts.flatMap(formsOf)
    this.#short = parts
      .flatMap(part => [part, ...part.split(':')])
      .filter(part => part.length >= SHORTEST && part.length < RUN)
      .flatMap(part => formsOf(part).map(({ text }) => text))
      .filter(text => text.length >= SHORTEST)
    this.#needles = new Needles(this.#forms)
  }

  /** For messages and headers: masks any 12 consecutive characters, and a short credential as a whole. */
  strict(text: string): string {
    this.#strict ??= new Needles(this.#forms.map(({ text }) => ({ text, skip: 0 })))
    const runs = this.#strict.runsIn(text)
    return this.#short.reduce((clean, part) => clean.replaceAll(part, MASK), runs ? masked(text, runs, 0) : text)
  }

  /**
   * For answers: a prefix common to all credentials of a kind is no match, and credentials below 12 characters are
   * ignored. `before` is the end of the preceding text. 1,000 characters take about 4 us.
   */
  answer(text: string, before = ''): string {
    const runs = this.#needles.runsIn(before + text)
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

const masks = new Map<string, Mask>()

/** The cached mask of a credential; undefined when it is too short to be one. */
export function maskOf(secret: string): Mask | undefined {
  if (secret.length < SHORTEST) return undefined
  let mask = masks.get(secret)
  if (!mask) {
    mask = new Mask(secret)
    if (masks.size >= MAX_MASKS) masks.delete(masks.keys().next().value!)
    masks.set(secret, mask)
  }
  return mask
}

/** `text` without any credential in use. Costs one search per cached mask: for the log only. */
export function maskAll(text: string): string {
  let clean = text
  for (const mask of masks.values()) clean = mask.answer(clean)
  return clean
}
