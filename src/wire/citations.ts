/** Collects what an answer cites: every place of every address once. */
import type { Event, SourceEvent } from '../core/event.ts'

/** A part of a choice's text, in UTF-16 units; `end` is exclusive. */
export interface Place {
  readonly start: number
  readonly end: number
}

/** Maximum citations of an answer; more of them come from a broken provider. */
const MAX_CITATIONS = 1000
/** In characters. A longer address is left out, a longer title cut. */
const MAX_ADDRESS = 8192
const MAX_TITLE_CHARACTERS = 1024

/** The place between two indexes of a provider, moved by `offset`; undefined for an empty or invalid range. */
export function placeIn(start: unknown, end: unknown, offset = 0): Place | undefined {
  if (!Number.isSafeInteger(start) || !Number.isSafeInteger(end)) return undefined
  const place = { start: (start as number) + offset, end: (end as number) + offset }
  return place.start >= 0 && place.start < place.end ? place : undefined
}

/** The citations of one choice. */
export class Citations {
  readonly #choice: number
  /**
   * Places emitted for each address; none for an address alone. Addresses are not copied, because each may have many
   * places.
   */
  readonly #emitted = new Map<string, Set<string>>()
  #count = 0

  constructor(choice: number) {
    this.#choice = choice
  }

  /** Emits an address without a place once, and only if no place of it was emitted before. */
  add(url: string, title: string | undefined, place: Place | undefined, out: Event[]): void {
    if (this.#count === MAX_CITATIONS || url.length > MAX_ADDRESS || !this.#isNew(url, place)) return
    this.#count++
    const event: SourceEvent = { type: 'source', choice: this.#choice, url }
    if (title !== undefined) event.title = title.slice(0, MAX_TITLE_CHARACTERS)
    if (place) {
      event.start = place.start
      event.end = place.end
    }
    out.push(event)
  }

  #isNew(url: string, place: Place | undefined): boolean {
    const places = this.#emitted.get(url)
    if (!place && places) return false
    const key = place && `${place.start} ${place.end}`
    if (places) {
      if (places.has(key!)) return false
      places.add(key!)
    } else this.#emitted.set(url, new Set(key === undefined ? [] : [key]))
    return true
  }
}
