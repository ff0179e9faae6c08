/** Finds a credential in what its provider sends back: as it is, in base64, and with the escapes of addresses, JSON and HTML. */

/** Text that replaces a credential. */
export const MASK = '***'
/** Shorter secrets are treated as words. */
export const MIN_SECRET_CHARACTERS = 8
/** Characters at both ends of a credential that are searched for; a match grows from there. */
const ANCHOR_CHARACTERS = 12
/** Longest credential searched for, in characters: a private key of 8,192 bits has 6,400. */
const MAX_SECRET_CHARACTERS = 8192
/** Longest common prefix of credentials of one kind. */
const MAX_PREFIX_CHARACTERS = 'sk-ant-api03-'.length

/** Secrets that a provider gets besides its credential. */
export interface SentSecrets {
  /** Each is a credential, or several behind spaces. */
  readonly secrets: readonly string[]
  /** Addresses, names, regions: of the operator, but no credentials. */
  readonly values: readonly string[]
  /** Tells these from others. */
  readonly key: string
}

/** A part of a text: from `start` up to `end`, exclusive. */
type Run = readonly [start: number, end: number]

/** Characters of a spelling that are searched for: `text` stands at `at` in `spelling`. */
interface Anchor {
  readonly text: string
  readonly at: number
  readonly spelling: string
}

/** Splits a secret. Of a service account's JSON only the private key is secret: the other fields are public. */
function partsOf(secret: string): string[] {
  if (!secret.startsWith('{')) return secret.slice(0, MAX_SECRET_CHARACTERS).split(/\s+/)
  const key = /"private_key"\s*:\s*"([^"]*)"/.exec(secret)?.[1] ?? ''
  const lines = key.slice(0, MAX_SECRET_CHARACTERS).split(/\\n|\n/)
  return lines.filter(line => line !== '' && !line.startsWith('-----'))
}

/** Characters at the beginning of a secret that are common to many of its kind: words, and no part of a UUID. */
const prefixOf = (secret: string): number =>
  Math.min(/^(?=.{24})(?:[a-z]{1,6}(?:\d\d)?[-_]){1,3}/i.exec(secret)?.[0].length ?? 0, MAX_PREFIX_CHARACTERS)

/** Returns the base64 forms of a secret behind 0, 1 and 2 bytes, limited to characters that it alone determines. */
const base64Of = (secret: string): string[] =>
  [0, 2, 3].flatMap((start, before) => {
    const shifted = '\0'.repeat(before) + secret
    const bytes = Buffer.from(shifted)
    const text = bytes.toString('base64').slice(start, Math.floor((bytes.length * 8) / 6))
    return [text, text.replaceAll('+', '-').replaceAll('/', '_')]
  })

/** As servers in Go and .NET write some characters in JSON. */
const lowerUnicodeOf = (char: string): string => `\\u00${char.charCodeAt(0).toString(16)}`
const unicodeOf = (char: string): string => `\\u00${char.charCodeAt(0).toString(16).toUpperCase()}`

function escapesOf(secret: string): string[] {
  const percent = encodeURIComponent(Buffer.from(secret).toString())
  const json = JSON.stringify(secret).slice(1, -1)
  const lower = percent.replace(/%../g, code => code.toLowerCase())
  const html = [10, 16].map(base =>
    secret.replace(
      /[^\w.-]/g,
      char => `&#${base === 16 ? 'x' : ''}${char.charCodeAt(0).toString(base).toUpperCase()};`,
    ),
  )
  const escaped = [unicodeOf, lowerUnicodeOf].map(form => json.replace(/[<>&'+]/g, form))
  return [percent, lower, percent.replaceAll('%2F', '/'), json, json.replaceAll('/', '\\/'), ...html, ...escaped]
}

/** The beginning of a spelling, behind the prefix, which many may write, and its end; none of a short one. */
function anchorsOf(spelling: string, prefix: number): Anchor[] {
  const last = spelling.length - ANCHOR_CHARACTERS
  if (last < 0) return []
  return [...new Set([Math.min(prefix, last), last])].map(at => ({
    text: spelling.slice(at, at + ANCHOR_CHARACTERS),
    at,
    spelling,
  }))
}

function anchorsOfAll(secrets: readonly string[]): Anchor[] {
  const found = new Map<string, Anchor[]>()
  for (const secret of secrets) {
    const prefix = prefixOf(secret)
    for (const text of [secret, ...escapesOf(secret)]) found.set(text, anchorsOf(text, prefix))
    for (const text of base64Of(secret)) found.set(text, anchorsOf(text, Math.ceil((prefix * 4) / 3)))
  }
  return [...found.values()].flat()
}

/** Matches one credential, or several separated by spaces. */
export class Mask {
  readonly #anchors: readonly Anchor[]
  /** Parts below 12 characters and values that are no credentials, in every spelling. */
  readonly #whole: readonly string[]

  constructor(secret: string, sent?: SentSecrets) {
    const parts = [secret, ...(sent?.secrets ?? [])].flatMap(partsOf).flatMap(part => [part, ...part.split(':')])
    const secrets = [...new Set(parts)].filter(part => part.length >= MIN_SECRET_CHARACTERS)
    this.#anchors = anchorsOfAll(secrets)
    const whole = [...secrets.filter(part => part.length < ANCHOR_CHARACTERS), ...(sent?.values ?? [])]
    this.#whole = [...new Set(whole.flatMap(text => [text, ...escapesOf(text), ...base64Of(text)]))]
  }

  /** For messages, headers and logs: masks short parts and other values too, where they stand as wholes. */
  strict(text: string): string {
    return this.#whole.reduce((clean, part) => clean.replaceAll(part, MASK), this.answer(text))
  }

  /** For answers, in which parts of fewer than 12 characters may be words. */
  answer(text: string): string {
    const runs = this.runsIn(text)
    return runs ? withoutRuns(text, runs, 0) : text
  }

  /** The whole credential, or its beginning or end of at least 12 characters, from left to right; undefined for none. */
  runsIn(text: string): readonly Run[] | undefined {
    let runs: Run[] | undefined
    for (const { text: found, at, spelling } of this.#anchors) {
      for (let end = 0, place = text.indexOf(found); place >= 0; place = text.indexOf(found, end)) {
        let start = place
        for (let of = at; start > end && of > 0 && text[start - 1] === spelling[of - 1]; of--) start--
        end = place + found.length
        for (let of = at + found.length; of < spelling.length && text[end] === spelling[of]; of++) end++
        runs ??= []
        runs.push([start, end])
      }
    }
    return runs?.sort(([a], [b]) => a - b)
  }
}

/** `text` behind its first `shown` characters, with the runs masked. */
function withoutRuns(text: string, runs: readonly Run[], shown: number): string {
  let clean = ''
  let at = shown
  for (const [start, end] of runs) {
    if (end <= at) continue
    // Runs of two spellings may overlap.
    if (start >= at || at === shown) clean += text.slice(at, Math.max(start, at)) + MASK
    at = end
  }
  return clean + text.slice(at)
}

/** Masks a text that arrives in pieces. Of a credential split between pieces, the first 11 characters may show. */
class PiecewiseMask {
  readonly #mask: Mask
  /** The end of the preceding pieces: what may begin a credential, or all that is here of one. */
  #tail = ''

  constructor(mask: Mask) {
    this.#mask = mask
  }

  /** The next piece, masked. Credentials hold no spaces, so most pieces of prose are not searched. */
  next(text: string): string {
    const space = text.indexOf(' ')
    if (text.length < ANCHOR_CHARACTERS && this.#tail.length + (space < 0 ? text.length : space) < ANCHOR_CHARACTERS) {
      this.#tail = space < 0 ? this.#tail + text : text.slice(text.lastIndexOf(' ') + 1)
      return text
    }
    const whole = this.#tail + text
    const runs = this.#mask.runsIn(whole)
    const open = runs?.find(([, end]) => end === whole.length)
    const clean = runs ? withoutRuns(whole, runs, this.#tail.length) : text
    this.#tail = whole.slice(open ? open[0] : 1 - ANCHOR_CHARACTERS)
    return clean
  }
}

/** Masks several texts that arrive in pieces, each by its key; beyond `max` of them the oldest is forgotten. */
export class PiecewiseMasks<K> {
  readonly #mask: Mask
  readonly #max: number
  readonly #texts = new Map<K, PiecewiseMask>()

  constructor(mask: Mask, max: number) {
    this.#mask = mask
    this.#max = max
  }

  next(key: K, text: string): string {
    let found = this.#texts.get(key)
    if (!found) {
      const [oldest] = this.#texts.keys()
      if (oldest !== undefined && this.#texts.size >= this.#max) this.#texts.delete(oldest)
      found = new PiecewiseMask(this.#mask)
      this.#texts.set(key, found)
    }
    return found.next(text)
  }
}
