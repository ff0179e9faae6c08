/** Places such as `[2]` at which a text refers to the entries of a list beside it. */
import type { Place } from '../../../src/plugin.ts'

const MARKER = /\[(?:ref_)?(\d{1,3})\]/g
/** A longer beginning is none of a marker. */
const LONGEST = '[ref_123]'.length
/** Text that holds more is code, not citations. */
const MAX_MARKERS = 1000

export interface Marker extends Place {
  /** Counts from 1. */
  readonly entry: number
}

/** Finds markers in a text that comes in pieces. */
export class Markers {
  readonly found: Marker[] = []
  /** The end of the text so far, which the next piece may make a marker. */
  #open = ''

  /** `before` characters of text came before the piece. */
  read(piece: string, before: number): void {
    if (this.#open === '' && !piece.includes('[')) return
    const text = this.#open + piece
    const start = before - this.#open.length
    for (const { 0: marker, 1: entry, index } of text.matchAll(MARKER)) {
      if (this.found.length === MAX_MARKERS) break
      this.found.push({ entry: Number(entry), start: start + index, end: start + index + marker.length })
    }
    const end = text.slice(1 - LONGEST)
    const at = end.lastIndexOf('[')
    this.#open = at >= 0 && !end.includes(']', at) ? end.slice(at) : ''
  }
}
