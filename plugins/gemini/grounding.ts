/** Citations of one candidate, with their places in its text. */
import {
  Citations,
  countIn,
  type Event,
  entriesIn,
  isObject,
  type Json,
  objectIn,
  type Place,
  placeIn,
  textIn,
  textKey,
  weigh,
} from '../../src/plugin.ts'

/** Searches of the whole text for segments: a distant or missing one costs a search. */
const MAX_LOOKS = 4

/** Characters of text in which places may still be looked for, of all candidates of an answer. */
export interface TextRoom {
  left: number
}

/** Collects `groundingMetadata` and `citationMetadata` of a candidate. */
export class Grounding {
  readonly #citations: Citations
  readonly #room: TextRoom | undefined
  /** The candidate's text so far; undefined when places are not needed, or would take too long to find. */
  #text: string | undefined
  readonly #queries = new Set<string>()
  /** Sources in the order of the answer's lists, to which supports refer. */
  readonly #chunks: unknown[] = []
  readonly #supports: Json[] = []
  readonly #cited: Json[] = []
  /** Characters searched. */
  #looked = 0
  /** Characters of all that is kept until `close`. */
  kept = 0

  /** `room`: where places in the text are needed. */
  constructor(choice: number, room: TextRoom | undefined) {
    this.#citations = new Citations(choice)
    this.#room = room
    this.#text = room ? '' : undefined
  }

  /** Web searches made for the candidate. */
  get searches(): number {
    return Math.max(this.#queries.size, this.#chunks.some(isWeb) ? 1 : 0)
  }

  say(text: string): void {
    if (this.#text === undefined) return
    this.#room!.left -= text.length
    if (this.#room!.left < 0) {
      this.kept -= this.#text.length
      this.#text = undefined
      return
    }
    this.#text += text
    this.kept += text.length
  }

  /** Grounding arrives late and repeatedly, extended or complete each time. */
  ground({ groundingChunks: chunks, groundingSupports: supports, webSearchQueries: queries }: Json): void {
    for (const query of entriesIn(queries)) {
      const words = textIn(query)
      const key = words && textKey(words)
      if (key === undefined || this.#queries.has(key)) continue
      this.#queries.add(key)
      this.kept += weigh(words)
    }
    const found = entriesIn(chunks)
    const known = this.#chunks.length
    const isAll = found.length >= known && this.#chunks.every((chunk, at) => addressOf(chunk) === addressOf(found[at]))
    for (const chunk of isAll ? found.slice(known) : found) this.#keep(chunk, this.#chunks)
    for (const support of entriesIn(supports)) if (isObject(support)) this.#keep(support, this.#supports)
  }

  /** Sources that the text repeats; the surfaces name this field differently. */
  cite({ citations, citationSources }: Json): void {
    for (const citation of entriesIn(citations ?? citationSources))
      if (isObject(citation)) this.#keep(citation, this.#cited)
  }

  #keep<T>(entry: T, list: T[]): void {
    list.push(entry)
    this.kept += weigh(entry)
  }

  /** Emits all citations: first those with a place. */
  close(out: Event[]): void {
    const segments = [...this.#supports.map(({ segment }) => objectIn(segment)), ...this.#cited]
    const placeOf = this.#places(segments)
    for (const [at, segment] of segments.entries()) {
      const place = placeOf(segment)
      if (!place) continue
      const support = this.#supports[at]
      if (!support) this.#add(segment, place, out)
      for (const index of entriesIn(support?.groundingChunkIndices)) {
        this.#add(webOf(this.#chunks[countIn(index) ?? -1]), place, out)
      }
    }
    for (const source of [...this.#chunks.map(webOf), ...this.#cited]) this.#add(source, undefined, out)
  }

  #add(source: unknown, place: Place | undefined, out: Event[]): void {
    const url = isObject(source) ? textIn(source.uri) : undefined
    if (url !== undefined) this.#citations.add(url, textIn((source as Json).title), place, out)
  }

  /** Places of segments: their indexes count the bytes of a part, which is usually, but not always, the whole text. */
  #places(segments: readonly Json[]): (segment: Json) => Place | undefined {
    const text = this.#text
    if (text === undefined || segments.length === 0) return () => undefined
    const units = unitsOf(
      text,
      segments.flatMap(segment => [startOf(segment), endOf(segment)]),
    )
    let behind = 0
    return segment => {
      const reported = placeIn(units.get(startOf(segment)), units.get(endOf(segment)))
      const words = textIn(segment.text)
      if (words === undefined) return countIn(segment.partIndex) ? undefined : reported
      if (reported && text.slice(reported.start, reported.end) === words) return reported
      if (this.#looked > MAX_LOOKS * text.length) return undefined
      let start = text.indexOf(words, behind)
      this.#looked += (start < 0 ? text.length : start) - behind
      if (start < 0) {
        start = text.indexOf(words)
        this.#looked += start < 0 ? text.length : start
      }
      if (start >= 0) behind = start + words.length
      return placeIn(start, start + words.length)
    }
  }
}

const startOf = ({ startIndex }: Json): number => countIn(startIndex) ?? 0
const endOf = ({ endIndex }: Json): number => countIn(endIndex) ?? 0

const webOf = (chunk: unknown): unknown => objectIn(chunk).web
const isWeb = (chunk: unknown): boolean => isObject(webOf(chunk))

function addressOf(chunk: unknown): unknown {
  const web = webOf(chunk)
  return objectIn(web).uri
}

/** Maps byte offsets to UTF-16 units in one pass. Omits offsets inside a character or beyond the text. */
export function unitsOf(text: string, offsets: Iterable<number>): ReadonlyMap<number, number> {
  const sorted = [...new Set(offsets)].sort((a, b) => a - b)
  const units = new Map<number, number>()
  let next = 0
  let bytes = 0
  for (let at = 0; next < sorted.length; at++) {
    while (sorted[next]! < bytes) next++
    if (sorted[next] === bytes) units.set(sorted[next++]!, at)
    if (at === text.length) break
    const code = text.charCodeAt(at)
    if (code < 0x80) bytes += 1
    else if (code < 0x800) bytes += 2
    else if (isPair(text, at)) {
      bytes += 4
      at++
    } else bytes += 3
  }
  return units
}

/** A lone surrogate is encoded as a replacement character of three bytes. */
const isPair = (text: string, at: number): boolean => text.codePointAt(at)! > 0xffff
