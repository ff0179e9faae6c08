/** Reads the bytes of a request body, up to a limit. */
import { errors } from '../lib/error.ts'
import type { BodyGuard } from './body-guard.ts'
import { unpack } from './content-coding.ts'
import { type IncomingRequest, MAX_BODY_CHUNKS, MIN_CHUNK_BYTES } from './incoming-request.ts'

/** From this length on a body is put together in one place from the start, not twice. */
const MIN_PREALLOCATED_BYTES = 64 * 1024

/**
 * `declared` is the length that the client announced. Rejects with 400, 408, 413, 499 or 529 as a GatewayError.
 */
export function readBytes(
  req: IncomingRequest,
  limit: number,
  guard: BodyGuard,
  declared: number | undefined,
): Promise<Buffer> {
  const pieces = new Pieces(declared)
  return readPieces(req, limit, guard, pieces).then(() => pieces.joined())
}

/**
 * Gives the plain bytes to `pieces`; `limit` counts them. Resolves with nothing: the promise lives as long as the request, and would keep the body.
 */
export function readPieces(
  req: IncomingRequest,
  limit: number,
  guard: BodyGuard,
  pieces: { add(chunk: Buffer): void },
): Promise<void> {
  return new Promise((resolve, reject) => {
    let size = 0
    let stop = () => {}
    const fail = (error: unknown) => {
      guard.end()
      req.pause()
      stop()
      req.removeAllListeners('data')
      reject(error)
    }
    guard.begin(performance.now(), fail)
    const chunk = (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) return fail(errors.tooLarge(limit))
      if (req.isFragmented) return fail(fragmented())
      try {
        guard.got(chunk.length)
        pieces.add(chunk)
      } catch (full) {
        fail(full)
      }
    }
    const end = () => {
      guard.end()
      resolve()
    }
    stop = unpack(req, { chunk, end, fail }, guard, limit)
    const gone = () => {
      if (!req.complete && !req.readableEnded) fail(errors.aborted())
    }
    req.on('error', gone)
    req.on('close', gone)
  })
}

const fragmented = () =>
  errors.badRequest(
    `The body has more than ${MAX_BODY_CHUNKS} chunks with fewer than ${MIN_CHUNK_BYTES} bytes on average. Send larger chunks.`,
  )

/** Buffers the received part of a body. */
class Pieces {
  #chunks: Buffer[] = []
  #whole: Buffer | undefined
  #size = 0

  constructor(declared: number | undefined) {
    if (declared !== undefined && declared > MIN_PREALLOCATED_BYTES) this.#whole = Buffer.allocUnsafe(declared)
  }

  add(chunk: Buffer): void {
    if (this.#whole) this.#size += chunk.copy(this.#whole, this.#size)
    else this.#chunks.push(chunk)
  }

  /** Gives it away: a reference to the request must not keep its body. */
  joined(): Buffer {
    const [first = Buffer.alloc(0)] = this.#chunks
    const joined = this.#whole ?? (this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : first)
    this.#chunks = []
    this.#whole = undefined
    return joined
  }
}
