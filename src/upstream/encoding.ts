/** Undoes a content coding that a provider applied in spite of `identity` (docs/contributing/edge-cases.md#framing S21). */
import { constants, createGunzip, createInflate } from 'node:zlib'
import { errors } from '../lib/error.ts'

/** Where chunks come from: all that are there, or undefined at the end. */
export interface Source {
  take(): Promise<Buffer[] | undefined>
}

/** A source without a coding. */
export interface PlainSource extends Source {
  /** Frees what unpacking takes, before the collector would; nothing is taken any more. Absent where nothing is packed. */
  readonly free?: () => void
}

/** No answer is larger, whatever it was packed to. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
const flush = constants.Z_SYNC_FLUSH

/** Not brotli: a stream of it keeps a window of up to 16 MiB, which no memory budget counts; these keep 32 KiB. */
const codings: Readonly<Record<string, () => ReturnType<typeof createGunzip>>> = {
  gzip: () => createGunzip({ flush, finishFlush: flush }),
  'x-gzip': () => createGunzip({ flush, finishFlush: flush }),
  deflate: () => createInflate({ flush, finishFlush: flush }),
}

/** Names of no coding. Object stores repeat `aws-chunked`, the framing of an upload, with bytes that are plain. */
const PLAIN: ReadonlySet<string> = new Set(['', 'identity', 'aws-chunked'])

/** Whether a `content-encoding` names a coding. */
export const isCoded = (given: string | undefined): given is string =>
  given !== undefined && !PLAIN.has(given.toLowerCase())

/** `source` as plain bytes. Throws a GatewayError for a coding that is not known. */
export function decoded(source: Source, given: string | undefined): PlainSource {
  if (!isCoded(given)) return source
  const coding = given.toLowerCase()
  const make = Object.hasOwn(codings, coding) ? codings[coding] : undefined
  if (!make) throw errors.invalidAnswer(`its content coding is ${JSON.stringify(coding.slice(0, 30))}`)
  return new Decompressed(source, make())
}

/** Unpacks as far as it is taken: a few bytes may stand for gigabytes. */
class Decompressed implements PlainSource {
  readonly #source: Source
  readonly #stream: ReturnType<typeof createGunzip>
  /** Packed bytes that the stream has not got yet. */
  #packed: Buffer[] = []
  /** The stream still unpacks what it got; it takes no more until then. */
  #isBusy = false
  #size = 0
  #error: Error | undefined
  /** The stream has something new: bytes, an end, or room. */
  #notify: () => void = () => undefined

  constructor(source: Source, stream: ReturnType<typeof createGunzip>) {
    this.#source = source
    this.#stream = stream
    stream.on('readable', () => this.#notify())
    stream.on('close', () => {
      this.#isBusy = false
      this.#notify()
    })
    stream.on('error', error => {
      this.#error = error
      this.#notify()
    })
  }

  async take(): Promise<Buffer[] | undefined> {
    try {
      const chunk = await this.#next()
      if (!chunk) this.free()
      return chunk && [chunk]
    } catch (thrown) {
      this.free()
      throw thrown
    }
  }

  readonly free = (): void => {
    this.#stream.destroy()
  }

  async #next(): Promise<Buffer | undefined> {
    for (;;) {
      const chunk = this.#stream.read() as Buffer | null
      if (chunk) {
        this.#size += chunk.length
        if (this.#size <= MAX_ANSWER_BYTES) return chunk
        throw unreadable('it is too large')
      }
      if (this.#error) throw unreadable(this.#error.message)
      if (this.#isBusy) await new Promise<void>(resolve => (this.#notify = resolve))
      else if (!(await this.#feed())) return undefined
    }
  }

  /** Gives the next packed bytes to the stream; false when none are left. */
  async #feed(): Promise<boolean> {
    if (this.#packed.length === 0) this.#packed = (await this.#source.take()) ?? []
    const next = this.#packed.shift()
    if (!next) return false
    if (this.#stream.destroyed) return true
    this.#isBusy = true
    this.#stream.write(next, () => {
      this.#isBusy = false
      this.#notify()
    })
    return true
  }
}

const unreadable = (why: string) => errors.invalidAnswer(`it cannot be decompressed: ${why}`)
