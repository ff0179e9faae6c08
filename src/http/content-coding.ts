/** Unpacks compressed request bodies (docs/contract.md#compressed-bodies). */
import zlib from 'node:zlib'
import { errors } from '../lib/error.ts'
import type { BodyGuard } from './body-guard.ts'
import type { IncomingRequest } from './incoming-request.ts'

type Decoder = ReturnType<typeof zlib.createGunzip>

interface Coding {
  /** Memory of one decoder, in bytes. */
  readonly memory: number
  /** `first` is the first byte of the body. */
  create(first: number): Decoder
}

/** Zstandard as Node 22.15 and newer have it; older types do not list it. */
interface WithZstd {
  createZstdDecompress?(options: { params: Record<number, number> }): Decoder
}

const chunkSize = 64 * 1024
const gzip: Coding = { memory: 128 * 1024, create: () => zlib.createGunzip({ chunkSize }) }
/** Some clients leave out the header of zlib. Its low half byte is 8. */
const deflate: Coding = {
  memory: 128 * 1024,
  create: first => ((first & 0x0f) === 8 ? zlib.createInflate({ chunkSize }) : zlib.createInflateRaw({ chunkSize })),
}

/** `ZSTD_d_windowLogMax`. */
const ZSTD_WINDOW_LOG_MAX = 100
/** RFC 8878 has decoders take windows of 8 MiB. */
const ZSTD_WINDOW_LOG = 23
const { createZstdDecompress } = zlib as typeof zlib & WithZstd
const zstd: Coding | undefined = createZstdDecompress && {
  memory: 2 ** ZSTD_WINDOW_LOG,
  create: () => createZstdDecompress({ params: { [ZSTD_WINDOW_LOG_MAX]: ZSTD_WINDOW_LOG } }),
}

const codings = new Map<string, Coding>([
  ['gzip', gzip],
  ['x-gzip', gzip],
  ['deflate', deflate],
])
if (zstd) codings.set('zstd', zstd)

/** Value of `accept-encoding` in a refusal. */
const ACCEPTED = [...codings.keys()].filter(name => name !== 'x-gzip').join(', ')

/** The coding that a request declares; undefined for a plain body. Throws 415 for an unknown one. */
export function codingOf({ headers }: IncomingRequest): Coding | undefined {
  const given = headers['content-encoding']?.trim().toLowerCase()
  if (!given || given === 'identity') return undefined
  const coding = codings.get(given)
  if (!coding) throw errors.unsupportedEncoding(given, ACCEPTED)
  return coding
}

/** Receives a body. */
interface Receiver {
  chunk(chunk: Buffer): void
  end(): void
  fail(error: unknown): void
}

/**
 * Gives the plain bytes of a body to `to` as they come. `limit` bounds the packed bytes too, which may stand for none.
 * Returns what stops it.
 */
export function unpack(req: IncomingRequest, to: Receiver, guard: BodyGuard, limit: number): () => void {
  const coding = codingOf(req)
  if (!coding) {
    req.on('data', to.chunk)
    req.on('end', to.end)
    return () => req.off('data', to.chunk)
  }
  let received = 0
  let decoder: Decoder | undefined
  let giveBack = () => {}
  const stop = () => {
    giveBack()
    giveBack = () => {}
    req.off('data', packed)
    decoder?.destroy()
  }
  const start = (first: number): Decoder => {
    giveBack = guard.borrow(coding.memory)
    const created = coding.create(first)
    created.on('data', to.chunk)
    created.on('drain', () => req.resume())
    created.on('error', () => to.fail(errors.badRequest('The body cannot be decompressed; it is damaged or cut.')))
    created.on('end', () => {
      stop()
      to.end()
    })
    return created
  }
  const packed = (chunk: Buffer) => {
    received += chunk.length
    try {
      if (received > limit) throw errors.tooLarge(limit)
      decoder ??= start(chunk[0] ?? 0)
      if (!decoder.write(chunk)) req.pause()
    } catch (thrown) {
      to.fail(thrown)
    }
  }
  req.on('data', packed)
  req.on('end', () => {
    if (decoder) decoder.end()
    else to.end()
  })
  return stop
}
