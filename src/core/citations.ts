/** Collects what an answer cites: every place of every address once. */
import type { Event, SourceEvent } from './event.ts'

/** A part of a choice's text, in UTF-16 units; `end` is exclusive. */
export interface Place {
  readonly start: number
  readonly end: number
}

/** What is cited beyond this was made up by a broken provider. */
const MAX_PLACES = 1000

/** The place between two indexes of a provider, moved by `offset`; undefined for an empty or invalid range. */
export function placeIn(start: unknown, end: unknown, offset = 0): Place | undefined {
  if (!Number.isSafeInteger(start) || !Number.isSafeInteger(end)) return undefined
  const place = { start: (start as number) + offset, end: (end as number) + offset }
  return place.start >= 0 && place.start < place.end ? place : undefined
}

/** The citations of one choice. */
export class Citations {
  readonly #choice: number
  readonly #emitted = new Set<string>()

  constructor(choice: number) {
    this.#choice = choice
  }

  /** Emits an address without a place once, and only if no place of it was emitted before. */
  add(url: string, title: string | undefined, place: Place | undefined, out: Event[]): void {
    const key = place ? `${place.start} ${place.end} ${url}` : url
    if (this.#emitted.has(key) || this.#emitted.size >= 2 * MAX_PLACES) return
    this.#emitted.add(key)
    if (place) this.#emitted.add(url)
    const event: SourceEvent = { type: 'source', choice: this.#choice, url }
    if (title !== undefined) event.title = title
    if (place) {
      event.start = place.start
      event.end = place.end
    }
    out.push(event)
  }
}
