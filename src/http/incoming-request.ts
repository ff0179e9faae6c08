/** A request as the public listener receives it. */
import { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { ChunkCoalescer } from '../lib/chunk-coalescer.ts'
import { chunkTurns, type WaitingBody } from './chunk-turns.ts'

/** So many chunks of a body are not counted in turns, and passed on as they are: most bodies come in fewer. */
const FEW = 16
/** Bytes from which a chunk costs less than what is done with its bytes. */
const SMALL = 4096
/**
 * Chunks above which a body is refused where they have fewer bytes than `AVERAGE`. A JSON encoder that sends each token as
 * a chunk, as Python's `iterencode` does, has 5 to 10 bytes in each: a request with 50 tools makes 15,000 of them.
 */
export const MANY = 16_384
export const AVERAGE = 16
/** Bytes below which the frame of a chunk costs more than its bytes do. */
const TINY = 64
/** Of those, so many are parsed after the last answer of a connection. */
const LINGERING = 1024
/** Bytes that are dropped unparsed behind those, before the socket is not read any more. */
const DROPPED = 1024 * 1024

/**
 * Counts its body as it arrives, whether it is read or not, and puts small chunks together: what is not read yet takes
 * about its size. A body that comes in many small chunks is read in turns with others (`ChunkTurns`).
 */
export class IncomingRequest extends IncomingMessage {
  #chunks = 0
  #bytes = 0
  #later: LaterChunks | undefined
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
    return this.#chunks > MANY && this.#bytes < this.#chunks * AVERAGE
  }

  /**
   * Discards what comes from now on: the last answer of the connection has been given. Its bytes are parsed as long as
   * that is cheap, so that the end of the request is seen; after many tiny chunks they are dropped.
   */
  linger(): void {
    this.#lingering = LINGERING
    this.removeAllListeners('data').resume()
  }

  /** Called by the parser of `node:http`, which stops reading the socket where it returns false. */
  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk === null) {
      this.#later?.end()
      return super.push(null)
    }
    this.#bytes += chunk.length
    if (++this.#chunks <= FEW) return super.push(chunk, encoding)
    if (this.#lingering !== undefined) return this.#discard(chunk, this.#lingering)
    this.#later ??= new LaterChunks(this, {
      push: piece => super.push(piece),
      read: () => super._read(0),
    })
    return this.#later.add(chunk)
  }

  /** Called when what came has been read. */
  override _read(size: number): void {
    if (this.#lingering !== undefined && this.#lingering < 0) return
    if (this.#later) this.#later.read()
    else super._read(size)
  }

  #discard({ length }: Buffer, left: number): boolean {
    if (length >= TINY) return left >= 0
    this.#lingering = left - 1
    chunkTurns.take(this.socket)
    if (left === 0) setImmediate(dropBytes, this.socket)
    return left > 0
  }
}

/** Parses nothing that a connection receives from now on: `node:http` leaves the bytes to whatever listens for them. */
function dropBytes(socket: Socket): void {
  let left = DROPPED
  socket.removeAllListeners('data')
  socket.on('data', ({ length }: Buffer) => {
    left -= length
    if (left < 0) socket.pause()
  })
  socket.resume()
}

/** What of the stream they need. */
interface Stream {
  /** Gives a piece to its reader. False when that has to read what came before. */
  push(piece: Buffer): boolean
  /** Goes on to read the socket. */
  read(): void
}

/** The chunks of a body behind the first ones. */
class LaterChunks implements WaitingBody {
  readonly #req: IncomingRequest
  readonly #stream: Stream
  readonly #coalescer: ChunkCoalescer
  #hasRoom = true
  #isPlanned = false
  #waits = false
  /** Chunks of the body when its socket was last read. */
  #before = 0

  constructor(req: IncomingRequest, stream: Stream) {
    this.#req = req
    this.#stream = stream
    this.#coalescer = new ChunkCoalescer(piece => {
      this.#hasRoom = stream.push(piece)
    })
  }

  /** False where the socket must not be read on. */
  add(chunk: Buffer): boolean {
    this.#coalescer.add(chunk)
    if (chunk.length < SMALL) {
      if (!chunkTurns.take(this.#req.socket) && !this.#waits) {
        this.#waits = true
        chunkTurns.wait(this)
      }
      if (!this.#isPlanned) {
        this.#isPlanned = true
        setImmediate(this.#pass)
      }
    }
    return this.#hasRoom && !this.#waits
  }

  /** The reader has read all. */
  read(): void {
    this.#coalescer.pass()
    if (!this.#waits) this.#stream.read()
  }

  get socket(): Socket {
    return this.#req.socket
  }

  /** What is not read yet stays in one place, and its socket unread. */
  resume(): number {
    const { chunks } = this.#req
    const came = chunks - this.#before
    this.#before = chunks
    this.#waits = false
    if (!this.#req.readableFlowing) return 0
    this.read()
    return came
  }

  /** The body is whole. */
  end(): void {
    this.#waits = false
    chunkTurns.leave(this)
    this.#coalescer.pass()
  }

  readonly #pass = (): void => {
    this.#isPlanned = false
    if (this.#req.readableFlowing) this.#coalescer.pass()
  }
}
