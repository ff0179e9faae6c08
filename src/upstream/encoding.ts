/** Undoes a content coding that a provider applied in spite of `identity` (docs/edge-cases.md#framing S21). */
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { errors } from '../core/error.ts'

/** Where chunks come from: all that are there, or undefined at the end. */
export interface Source {
  take(): Promise<Buffer[] | undefined>
}

/** No answer is larger, whatever it was packed to. */
const MAX_BYTES = 64 * 1024 * 1024
const flush = constants.Z_SYNC_FLUSH

const codings: Readonly<Record<string, () => ReturnType<typeof createGunzip>>> = {
  gzip: () => createGunzip({ flush, finishFlush: flush }),
  'x-gzip': () => createGunzip({ flush, finishFlush: flush }),
  deflate: () => createInflate({ flush, finishFlush: flush }),
  br: () => createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH }),
}

/** `source` as plain bytes. Throws a GatewayError for a coding that is not known. */
export function decoded(source: Source, given: string | undefined): Source {
  const coding = given?.toLowerCase()
  if (coding === undefined || coding === '' || coding === 'identity') return source
  const make = Object.hasOwn(codings, coding) ? codings[coding] : undefined
  if (!make) throw errors.invalidAnswer(`its content coding is ${JSON.stringify(coding.slice(0, 30))}`)
  return new Decompressed(source, make())
}

class Decompressed implements Source {
  readonly #source: Source
  readonly #stream: ReturnType<typeof createGunzip>
  #out: Buffer[] = []
  #size = 0
  #error: Error | undefined

  constructor(source: Source, stream: ReturnType<typeof createGunzip>) {
    this.#source = source
    this.#stream = stream
    stream.on('data', (chunk: Buffer) => {
      this.#size += chunk.length
      if (this.#size > MAX_BYTES) stream.destroy(new Error('too large'))
      else this.#out.push(chunk)
    })
    stream.on('error', error => {
      this.#error = error
    })
  }

  async take(): Promise<Buffer[] | undefined> {
    for (;;) {
      const chunks = await this.#source.take()
      if (!chunks) return undefined
      for (const chunk of chunks) await this.#write(chunk)
      if (this.#error) throw errors.invalidAnswer(`it cannot be decompressed: ${this.#error.message}`)
      if (this.#out.length === 0) continue
      const out = this.#out
      this.#out = []
      return out
    }
  }

  /** Resolves when all that the chunk gives has come out; a stream that failed takes no more. */
  #write(chunk: Buffer): Promise<void> {
    if (this.#stream.destroyed) return Promise.resolve()
    return new Promise(resolve => {
      this.#stream.once('close', resolve)
      this.#stream.write(chunk, () => {
        this.#stream.off('close', resolve)
        resolve()
      })
    })
  }
}
