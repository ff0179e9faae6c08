/** Markers such as `[2]`, by which text refers to the entries of a list. */
import type { Place } from '../../../src/plugin.ts'

const MARKER = /\[(?:ref_)?(\d{1,3})\]/g
/** A longer start is not a marker. */
const LONGEST = '[ref_123]'.length
/** Text with more markers is code, not citations. */
const MAX_MARKERS = 1000

interface Marker extends Place {
  /** Counted from 1. */
  readonly entry: number
}

/** Finds markers in text that arrives in pieces. */
export class Markers {
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
    const end = text.slice(1 - LONGEST)
    const at = end.lastIndexOf('[')
    this.#open = at >= 0 && !end.includes(']', at) ? end.slice(at) : ''
  }
}
