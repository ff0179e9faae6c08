/** A request as the public listener receives it. */
import { IncomingMessage } from 'node:http'

/** Chunks above which a body is refused where they have fewer bytes than `MIN_CHUNK_BYTES` on average. */
export const MAX_BODY_CHUNKS = 16_384
/** A chunk takes about 150 bytes beside its own, and the parser of `node:http` calls back for each. */
export const MIN_CHUNK_BYTES = 512
/** Bytes below which the frame of a chunk costs more than its bytes do. */
const TINY_BYTES = 64
/** Tiny chunks that are parsed after the last answer of a connection. */
const MAX_LINGERING_CHUNKS = 1024

/** Counts its body as it arrives, whether it is read or not. */
export class IncomingRequest extends IncomingMessage {
  #chunks = 0
  #bytes = 0
  /** Tiny chunks that may still come; undefined before the connection's last answer. */
  #lingering: number | undefined

  /** Chunks of the body that have come. */
  get chunks(): number {
    return this.#chunks
  }

  /** Bytes of the body that have come. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether the body comes in so many small chunks that it is refused. */
  get isFragmented(): boolean {
    return this.#chunks > MAX_BODY_CHUNKS && this.#bytes < this.#chunks * MIN_CHUNK_BYTES
  }

  /**
   * Discards what comes from now on: the last answer of the connection has been given. Its bytes are parsed as long as that
   * is cheap, so that the end of the request is seen; after many tiny chunks nothing more is read.
   */
  linger(): void {
    this.#lingering = MAX_LINGERING_CHUNKS
    this.removeAllListeners('data').resume()
  }

  /** Called by the parser of `node:http`, which stops reading the socket where it returns false. */
  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk === null) return super.push(null)
    this.#chunks++
    this.#bytes += chunk.length
    if (this.#lingering === undefined) return super.push(chunk, encoding)
    return chunk.length >= TINY_BYTES || --this.#lingering >= 0
  }
}
