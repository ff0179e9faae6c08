/** Reads lengths with `music-metadata`, within a budget. Loaded by the first request that carries audio or video. */
import { parseFromTokenizer } from 'music-metadata'
import { AbstractTokenizer, EndOfStreamError, type IReadChunkOptions } from 'strtok3'
import { type MediaBudget, type MediaFile, spend } from './source.ts'

/** Bytes that are read at once, for the small reads that follow. */
const WINDOW_BYTES = 1024
/** Larger values are tags and pictures, which take long to read and say no length. */
const MAX_VALUE_BYTES = 1024
/** A table of samples in MP4: an hour has 700 kB. */
const MAX_TABLE_BYTES = 1024 * 1024
/** Work for a read, for a byte of such a table, and for a byte of anything else. */
const WORK = { read: 28, tableByte: 1 / 3, byte: 1.5 }

/** A container, as the library names its readers. */
export type Container = 'audio/wav' | 'audio/flac' | 'audio/aiff' | 'audio/mp4' | 'audio/mpeg' | 'video/webm'

/** Facts from a file's metadata: its length in seconds, else its bits per second. */
export interface Reading {
  readonly duration: number | undefined
  readonly bitrate: number | undefined
}

/** Reads the metadata of `file` from byte `start`, as far as the budget lasts. Never rejects. */
export async function readingOf(
  file: MediaFile,
  start: number,
  container: Container,
  budget: MediaBudget,
): Promise<Reading> {
  let format: Partial<Reading> = {}
  const observer = ({ metadata }: { metadata: { format: Partial<Reading> } }) => {
    format = metadata.format
  }
  try {
    await parseFromTokenizer(new BoundedTokenizer(file, start, container, budget), { skipCovers: true, observer })
  } catch {
    // A broken file, or one beyond the budget: what was read before says as much as there is, else its size counts.
  }
  return { duration: format.duration, bitrate: format.bitrate }
}

/** Gives the library bytes for as long as the budget lasts. */
class BoundedTokenizer extends AbstractTokenizer {
  readonly fileInfo: { readonly size: number; readonly mimeType: Container }
  readonly #file: MediaFile
  readonly #start: number
  readonly #budget: MediaBudget
  readonly #maxRead: number
  readonly #byteWork: number
  #window: Buffer = Buffer.alloc(0)
  #windowAt = 0

  constructor(file: MediaFile, start: number, mimeType: Container, budget: MediaBudget) {
    const hasTables = mimeType === 'audio/mp4'
    const maxRead = hasTables ? MAX_TABLE_BYTES : MAX_VALUE_BYTES
    super({ maxBufferSize: maxRead })
    this.fileInfo = { size: file.size - start, mimeType }
    this.#file = file
    this.#start = start
    this.#budget = budget
    this.#maxRead = maxRead
    this.#byteWork = hasTables ? WORK.tableByte : WORK.byte
  }

  /** Keeps the library from looking for tags at the end. */
  supportsRandomAccess(): boolean {
    return false
  }

  async readBuffer(target: Uint8Array, options?: IReadChunkOptions): Promise<number> {
    const from = options?.position ?? this.position
    const read = await this.peekBuffer(target, options)
    this.position = from + read
    return read
  }

  async peekBuffer(target: Uint8Array, options?: IReadChunkOptions): Promise<number> {
    const { length, position, mayBeLess } = this.normalizeOptions(target, options)
    const bytes = this.#bytes(position, length)
    if (bytes.length < length && !mayBeLess) throw new EndOfStreamError()
    target.set(bytes)
    return bytes.length
  }

  #bytes(from: number, length: number): Buffer {
    if (length > this.#maxRead || !spend(this.#budget, WORK.read)) throw new Error('the budget of media is spent')
    const at = from - this.#windowAt
    if (at < 0 || at + length > this.#window.length) {
      const read = Math.max(length, WINDOW_BYTES)
      if (!spend(this.#budget, read * this.#byteWork)) throw new Error('the budget of media is spent')
      this.#window = this.#file.read(this.#start + from, read)
      this.#windowAt = from
    }
    return this.#window.subarray(from - this.#windowAt, from - this.#windowAt + length)
  }
}
