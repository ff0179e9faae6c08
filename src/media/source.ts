/** Reads parts of a media file, so that none is decoded whole. */

/** A file whose bytes can be read from any place; fewer come at its end. `size` is in bytes. */
export interface MediaFile {
  readonly size: number
  read(from: number, length: number): Buffer
}

/** Remaining budget for the media of one request. Files beyond it count by their size. */
export interface MediaBudget {
  /** About a third of a microsecond each, in the files that take longest. */
  work: number
}
/** The worst request takes less than 100 ms (test/media/hostile.test.ts). */
export const MEDIA_BUDGET: Readonly<MediaBudget> = { work: 220_000 }

/** Takes `work` from a budget; false where so much is not left. */
export function spend(budget: MediaBudget, work: number): boolean {
  budget.work -= work
  return budget.work >= 0
}

/** A file in base64 without white space. */
export class Base64File implements MediaFile {
  readonly size: number
  readonly #base64: string

  constructor(base64: string) {
    this.#base64 = base64
    const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
    this.size = Math.floor((base64.length * 3) / 4) - padding
  }

  read(from: number, length: number): Buffer {
    const group = Math.floor(from / 3)
    const text = this.#base64.slice(4 * group, 4 * Math.ceil((from + length) / 3))
    return Buffer.from(text, 'base64').subarray(from - 3 * group, from - 3 * group + length)
  }
}

/** A file in the pieces that it came in. */
export class PiecedFile implements MediaFile {
  readonly size: number
  readonly #pieces: readonly Buffer[]

  constructor({ pieces, size }: { readonly pieces: readonly Buffer[]; readonly size: number }) {
    this.#pieces = pieces
    this.size = size
  }

  read(from: number, length: number): Buffer {
    const parts: Buffer[] = []
    let start = 0
    for (const piece of this.#pieces) {
      const end = start + piece.length
      if (end > from) parts.push(piece.subarray(Math.max(0, from - start), Math.max(0, from + length - start)))
      start = end
      if (start >= from + length) break
    }
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
  }
}
