/** Citations of one choice in all providers' forms, with their places in its text. */
import {
  Citations,
  type Event,
  isObject,
  type Json,
  objectIn,
  type Place,
  placeIn,
  textIn,
  textKey,
} from '../../../src/plugin.ts'

const MARKER = /\[(?:ref_)?(\d{1,3})\]/g
/** A longer start is not a marker. */
const MAX_MARK_CHARACTERS = '[ref_123]'.length
/** Text with more markers is code, not citations. */
const MAX_MARKERS = 1000

interface Marker extends Place {
  /** Counted from 1. */
  readonly entry: number
}

/** Finds markers in text that arrives in pieces. */
class Markers {
  readonly found: Marker[] = []
  /** The end of the text so far, which may begin a marker. */
  #open = ''

  /** `before`: characters of text before the piece. */
  read(piece: string, before: number): void {
    if (this.#open === '' && !piece.includes('[')) return
    const text = this.#open + piece
    const start = before - this.#open.length
    for (const { 0: marker, 1: entry, index } of text.matchAll(MARKER)) {
      if (this.found.length === MAX_MARKERS) break
      this.found.push({ entry: Number(entry), start: start + index, end: start + index + marker.length })
    }
    const end = text.slice(1 - MAX_MARK_CHARACTERS)
    const at = end.lastIndexOf('[')
    this.#open = at >= 0 && !end.includes(']', at) ? end.slice(at) : ''
  }
}

/** Gathers citations and emits them with places that count UTF-16 units of the emitted text. */
export class Cited {
  readonly #choice: number
  #citations: Citations | undefined = undefined
  /** Characters of content received, and of those emitted. */
  #received = 0
  #emitted = 0
  #markers: Markers | undefined = undefined
  /** Start of the text before the next reference. */
  #passage = 0
  #referred = false

  constructor(choice: number) {
    this.#choice = choice
  }

  get any(): boolean {
    return this.#citations !== undefined
  }

  /** Characters of content so far, as the provider counts them. */
  get received(): number {
    return this.#received
  }

  /** Lists exist, or may follow, to whose entries the following text refers. */
  expectLists(): void {
    this.#markers ??= new Markers()
  }

  /** A piece of content, before it is emitted. */
  receive({ length }: string): void {
    this.#received += length
    if (!this.#referred) return
    this.#referred = false
    this.#passage = this.#emitted
  }

  /** An emitted piece of text: shorter than the content when a `<think>` block was removed. */
  emitted(piece: string): void {
    this.#markers?.read(piece, this.#emitted)
    this.#emitted += piece.length
  }

  /** An annotation, whose place counts received characters. */
  annotate(note: unknown, out: Event[]): void {
    const source = isObject(note) && isObject(note.url_citation) ? note.url_citation : note
    const { start_index: start, end_index: end } = objectIn(source)
    this.#cite(sourceIn(source), placeIn(start, end, this.#emitted - this.#received), out)
  }

  /** A reference after the text that it supports. */
  refer(part: Json, out: Event[]): void {
    this.#referred = true
    this.#cite(sourceIn(part), placeIn(this.#passage, this.#emitted), out)
  }

  /** Lists of sources beside the text, which refers to entries of the first by number. */
  list(lists: readonly (readonly unknown[])[], out: Event[]): void {
    const [numbered] = lists
    if (!numbered) return
    const all = lists.flat().map(sourceIn)
    const titles = new Map(all.flatMap(({ url, title }) => (url && title ? [[textKey(url), title]] : [])))
    const cite = ({ url, title }: Source, place?: Place) => {
      this.#cite({ url, title: title ?? (url && titles.get(textKey(url))) }, place, out)
    }
    for (const marker of this.#markers?.found ?? []) {
      const entry = numbered[marker.entry - 1]
      if (entry !== undefined) cite(sourceIn(entry), marker)
    }
    for (const source of all) cite(source)
  }

  #cite({ url, title }: Source, place: Place | undefined, out: Event[]): void {
    if (url === undefined) return
    this.#citations ??= new Citations(this.#choice)
    this.#citations.add(url, title, place, out)
  }
}

interface Source {
  readonly url: string | undefined
  readonly title?: string | undefined
}

/** An address, `{url, title}` or `{link, title}`. */
function sourceIn(source: unknown): Source {
  if (!isObject(source)) return { url: textIn(source) }
  return { url: textIn(source.url) ?? textIn(source.link), title: textIn(source.title) }
}
