/** Cited sources of an answer as grounding metadata, with places in UTF-8 bytes. */
import type { SourceEvent } from '../../core/event.ts'

/** Maximum sources of one answer. */
const MAX_SOURCES = 1000

/** Characters of cited text that one answer, all candidates together, may still repeat. */
export interface RepeatBudget {
  left: number
}

/** Collects the sources of one candidate. */
export class Grounding {
  readonly #sources: SourceEvent[] = []
  readonly #budget: RepeatBudget
  #text = ''

  constructor(budget: RepeatBudget) {
    this.#budget = budget
  }

  /** Text of the answer, in order. */
  say(text: string): void {
    this.#text += text
  }

  add(source: SourceEvent): void {
    if (this.#sources.length < MAX_SOURCES) this.#sources.push(source)
  }

  /** Undefined without citations. A place that exceeds the budget is left out; its source stays. */
  metadata(): object | undefined {
    if (this.#sources.length === 0) return undefined
    const places = new Map<string, number>()
    const chunks: object[] = []
    const supports: object[] = []
    const bytes = bytesAt(
      this.#text,
      this.#sources.flatMap(({ start, end }) => (start === undefined || end === undefined ? [] : [start, end])),
    )
    for (const { url, title, start, end } of this.#sources) {
      let index = places.get(url)
      if (index === undefined) {
        index = chunks.length
        places.set(url, index)
        chunks.push({ web: { uri: url, title: title ?? url } })
      }
      if (start === undefined || end === undefined) continue
      const text = this.#text.slice(start, end)
      if (text.length > this.#budget.left) continue
      this.#budget.left -= text.length
      const segment = {
        ...(start > 0 && { startIndex: bytes.get(start) }),
        endIndex: bytes.get(end),
        text,
      }
      supports.push({ segment, groundingChunkIndices: [index] })
    }
    return { groundingChunks: chunks, ...(supports.length > 0 && { groundingSupports: supports }) }
  }
}

/** Converts offsets in UTF-16 units to UTF-8 bytes, in one pass over the text. */
function bytesAt(text: string, offsets: readonly number[]): ReadonlyMap<number, number> {
  const found = new Map<number, number>()
  let at = 0
  let bytes = 0
  for (const offset of [...new Set(offsets)].sort((a, b) => a - b)) {
    bytes += Buffer.byteLength(text.slice(at, offset))
    at = offset
    found.set(offset, bytes)
  }
  return found
}
