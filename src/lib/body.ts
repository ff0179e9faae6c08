/** Types of request bodies, and the form in which each is read. */
import { createHash } from 'node:crypto'

/**
 * `json`: a parsed value. `multipart`: a `Form`. `raw`: a `Buffer`, of any content type. `none`: nothing is read, as of
 * a GET.
 */
export type BodyType = 'json' | 'multipart' | 'raw' | 'none'

/** A file of a form, in the pieces in which it came, so that it is held once. */
export class Upload {
  pieces: readonly Buffer[]
  /** Bytes of all pieces. */
  readonly size: number
  /** As the part says, in lower case and without parameters; '' where it says nothing or `application/octet-stream`. */
  readonly contentType: string
  /** File extension in lower case without the dot; '' for none. The name itself is not kept. */
  readonly extension: string
  readonly #take: (bytes: number) => void
  #sha256: string | undefined
  #encoded: { readonly before: string; readonly text: string } | undefined

  /** `take` throws where there is no memory for so many bytes beside the pieces. */
  constructor(
    pieces: readonly Buffer[],
    contentType: string,
    extension: string,
    take: (bytes: number) => void = () => undefined,
  ) {
    this.pieces = pieces
    this.#take = take
    this.size = pieces.reduce((sum, { length }) => sum + length, 0)
    this.contentType = contentType === 'application/octet-stream' ? '' : contentType
    this.extension = extension
  }

  /** The first bytes, which show the type of a file. */
  head(bytes: number): Buffer {
    // No more than these are put together: the first piece is often small, and the file may be large.
    const first: Buffer[] = []
    let size = 0
    for (const piece of this.pieces) {
      if (size >= bytes) break
      first.push(piece)
      size += piece.length
    }
    return (first.length === 1 ? first[0]! : Buffer.concat(first)).subarray(0, bytes)
  }

  /**
   * The file in base64 behind `before`: one text, however many requests are made of it. Takes memory for that text and
   * for a body that holds it; throws where there is none.
   */
  base64(before = ''): string {
    if (this.#encoded?.before !== before) {
      if (!this.#encoded) this.#take(2 * 4 * Math.ceil(this.size / 3))
      this.#encoded = { before, text: before + Buffer.concat(this.pieces).toString('base64') }
    }
    return this.#encoded.text
  }

  /** No target will be tried again: the bytes are not needed any more. */
  release(): void {
    this.pieces = []
    this.#encoded = undefined
  }

  /** Makes what `toJSON` says. */
  hash(): void {
    const hash = createHash('sha256')
    for (const piece of this.pieces) hash.update(piece)
    this.#sha256 = hash.digest('base64')
  }

  /** Stands for the bytes where a request becomes the key of something. Throws before `hash` was called. */
  toJSON(): object {
    if (this.#sha256 === undefined) throw new Error('A file becomes a part of a key before it is hashed.')
    return { sha256: this.#sha256, size: this.size }
  }
}

/** The parts of a `multipart/form-data` body (RFC 7578), by name, each in the order in which they came. */
export class Form {
  readonly texts = new Map<string, string[]>()
  readonly files = new Map<string, Upload[]>()

  addText(name: string, text: string): void {
    append(this.texts, name, text)
  }

  addFile(name: string, file: Upload): void {
    append(this.files, name, file)
  }

  release(): void {
    for (const files of this.files.values()) for (const file of files) file.release()
  }
}

function append<T>(lists: Map<string, T[]>, name: string, item: T): void {
  const list = lists.get(name)
  if (list) list.push(item)
  else lists.set(name, [item])
}
