/**
 * What a TLS client reads from a server that others name, record by record. OpenSSL answers what a server says beside its
 * data within the read that brings it, up to 2 MiB in one turn of the loop, and gives nothing to what reads above it: 660 KB
 * of HelloRequest (RFC 5246 section 7.4.1.1) took 4 s, 540 KB of KeyUpdate (RFC 8446 section 4.6.3) 160 ms.
 */
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net'
import { Duplex } from 'node:stream'
import { turnBudget } from '../lib/turn-budget.ts'

/** All connections read to one place: what came is copied before the next read. */
const READ = Buffer.allocUnsafeSlow(64 * 1024)
/** Silence after which TCP probes the other end, as undici sets it. */
const TCP_KEEP_ALIVE_MS = 60_000
/** Type, version and length (RFC 8446 section 5.1). */
const HEADER = 5
/** Of a record with its cipher's expansion (RFC 5246 section 6.2.3); what says more is no TLS. */
const MAX_LENGTH = 16 * 1024 + 2048
/** Records of a handshake: a chain of 100 kB comes in 50 of 2 kB. */
const MAX_HANDSHAKE = 256
/** Records without data once the handshake has ended: servers send one to four tickets. */
const MAX_EMPTY = 16
/** So much data brings another one: keys are updated every some gigabytes. */
const BYTES_PER_EMPTY = 1024 * 1024

/** The TLS client above, as far as it has read. */
export interface TlsProgress {
  readonly handshakeEnded: boolean
  /** Bytes of data. */
  readonly bytes: number
}

const NONE = Buffer.alloc(0)

/** The connection below a TLS client: writes pass; of what comes, each record waits for a turn of the tenant. */
export class TlsRecords extends Duplex {
  readonly #below: Socket
  readonly #tenant: string
  /** That of the client which reads this. */
  progress: TlsProgress | undefined = undefined
  /** What came and was not read. */
  #unread: Buffer = NONE
  #hasEnded = false
  #isWanted = false
  #isStopped = false
  #isFeeding = false
  /** Bytes of the last record's data are not counted yet. */
  #hasGiven = false
  #bytes = 0
  #handshake = 0
  #empty = 0
  /** Bytes that the client has got. */
  received = 0

  /** Connects. `options` as for `net.connect`, with a host and a port. */
  constructor(options: TcpNetConnectOpts, tenant: string) {
    // A record is given when the one before has been read.
    super({ readableHighWaterMark: 1, autoDestroy: true, allowHalfOpen: true })
    this.#tenant = tenant
    const callback = (length: number, bytes: Uint8Array) => this.#came(bytes.subarray(0, length))
    // What a TLS client sets on its own socket does not come here.
    const live = { keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE_MS }
    // Only sockets that read this way stop on `pause` within a turn.
    this.#below = connect({
      ...options,
      ...live,
      allowHalfOpen: true,
      noDelay: true,
      onread: { buffer: READ, callback },
    })
    this.#below.on('end', () => {
      this.#hasEnded = true
      this.#feed()
    })
    this.#below.on('error', error => this.destroy(error))
    this.#below.on('close', () => this.#hasEnded || this.destroy())
  }

  /** The TCP connection, which is not to be read from or written to. */
  get below(): Socket {
    return this.#below
  }

  /** Nothing is given from now on, until `go`: what the server sends stays with the kernel. */
  stop(): void {
    this.#isStopped = true
  }

  go(): void {
    this.#isStopped = false
    this.#feed()
  }

  override _read(): void {
    this.#isWanted = true
    // Not within the call that reads: what is given then would wait.
    queueMicrotask(this.#feed)
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#below.write(chunk, done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#below.end(done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#unread = NONE
    this.#below.destroy()
    done(error)
  }

  /** Returns whether more may be read in this turn. */
  #came(bytes: Uint8Array): boolean {
    this.#unread = this.#unread.length > 0 ? Buffer.concat([this.#unread, bytes]) : Buffer.from(bytes)
    this.#feed()
    return this.#isIdle
  }

  /** All whole records have been given. */
  get #isIdle(): boolean {
    return !this.#isFeeding && this.#isOpen
  }

  /** Gives records for as long as they are wanted, each in a turn that has room. */
  readonly #feed = (): void => {
    if (this.#isFeeding) return
    this.#isFeeding = true
    while (this.#isOpen) {
      const length = recordLength(this.#unread)
      if (length === undefined) break
      const turn = turnBudget.next(this.#tenant)
      if (turn) {
        void turn.then(this.#goOn)
        return
      }
      this.#give(length)
    }
    this.#isFeeding = false
    if (!this.#isOpen) return
    if (this.#hasEnded) this.#end()
    else this.#below.resume()
  }

  /** The first record after a wait, which is not begun anew. */
  readonly #goOn = (): void => {
    const length = this.#isOpen ? recordLength(this.#unread) : undefined
    if (length !== undefined) this.#give(length)
    this.#isFeeding = false
    this.#feed()
  }

  get #isOpen(): boolean {
    return this.#isWanted && !this.#isStopped && !this.destroyed
  }

  #give(length: number): void {
    if (!this.#isBearable()) return
    const record = this.#unread.subarray(0, length)
    this.#unread = this.#unread.subarray(length)
    this.#hasGiven = true
    this.received += length
    if (!this.push(record)) this.#isWanted = false
  }

  #end(): void {
    // What was cut off is for the client to judge.
    if (this.#unread.length > 0) this.push(this.#unread)
    this.#unread = NONE
    this.#isWanted = false
    this.push(null)
  }

  /** Counts the record before, now that it has been read; false, and destroyed, where there were too many without data. */
  #isBearable(): boolean {
    if (!this.#hasGiven || !this.progress) return true
    const { handshakeEnded, bytes } = this.progress
    if (!handshakeEnded) {
      if (++this.#handshake <= MAX_HANDSHAKE) return true
    } else {
      if (bytes === this.#bytes) this.#empty++
      this.#bytes = bytes
      if (this.#empty <= MAX_EMPTY + Math.floor(bytes / BYTES_PER_EMPTY)) return true
    }
    this.destroy(new Error('the server sends too many TLS records without data'))
    return false
  }
}

/** Bytes of the first record with its header; undefined where it is not here whole. What is no TLS is one record. */
function recordLength(bytes: Buffer): number | undefined {
  if (bytes.length < HEADER) return undefined
  const length = bytes.readUInt16BE(3)
  if (length > MAX_LENGTH) return bytes.length
  return bytes.length < HEADER + length ? undefined : HEADER + length
}
