/** What one choice cites, in any form that providers have for it, and where in its text. */
import { Citations, type Event, isObject, type Json, type Place, placeIn, textIn } from '../../../src/plugin.ts'
import { Markers } from './markers.ts'

export class Cited {
  readonly #choice: number
  #citations: Citations | undefined = undefined
  /** Characters of content that the provider gave, and of those that were told. */
  #given = 0
  #told = 0
  #markers: Markers | undefined = undefined
  /** Where the text begins that the next reference stands behind. */
  #passage = 0
  #referred = false

  constructor(choice: number) {
    this.#choice = choice
  }

  get any(): boolean {
    return this.#citations !== undefined
  }

  /** Characters of content so far, as the provider counts them. */
  get given(): number {
    return this.#given
  }

  /** There are or may be lists to whose entries the text refers from here on. */
  expectLists(): void {
    this.#markers ??= new Markers()
  }

  /** A piece of content, before any of it is told. */
  give({ length }: string): void {
    this.#given += length
    if (!this.#referred) return
    this.#referred = false
    this.#passage = this.#told
  }

  /** A piece of text that is told: less than was given when a `<think>` block is taken out. */
  tell(piece: string): void {
    this.#markers?.read(piece, this.#told)
    this.#told += piece.length
  }

  /** An annotation, whose place the provider counts in what it gave. */
  annotate(note: unknown, out: Event[]): void {
    const source = isObject(note) && isObject(note.url_citation) ? note.url_citation : note
    const { start_index: start, end_index: end } = isObject(source) ? source : {}
    this.#cite(sourceIn(source), placeIn(start, end, this.#told - this.#given), out)
  }

  /** A reference that stands behind the text which it is about. */
  refer(part: Json, out: Event[]): void {
    this.#referred = true
    this.#cite(sourceIn(part), placeIn(this.#passage, this.#told), out)
  }

  /** Lists of sources beside the text, which refers to the entries of the first by their numbers. */
  list(lists: readonly (readonly unknown[])[], out: Event[]): void {
    const [numbered] = lists
    if (!numbered) return
    const all = lists.flat().map(sourceIn)
    const titles = new Map(all.flatMap(({ url, title }) => (url && title ? [[url, title]] : [])))
    const cite = ({ url, title }: Source, place?: Place) => {
      this.#cite({ url, title: title ?? (url && titles.get(url)) }, place, out)
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
