/** The event stream `application/vnd.amazon.eventstream`: one frame per message (docs/contributing/wire-sources.md#bedrock). */
import { crc32 } from 'node:zlib'
import type { Frame } from '../../core/wire.ts'
import { ByteBuffer } from '../../lib/byte-buffer.ts'
import { errors } from '../../lib/error.ts'
import type { Framing } from './framing.ts'

const MAX_MESSAGE_BYTES = 32 * 1024 * 1024
/** Its vendor's own bound. */
const MAX_HEADER_BYTES = 128 * 1024
/** Total length, length of the headers, and the checksum of both. */
const PRELUDE_BYTES = 12
/** Behind the payload stands the checksum of all before. */
const CHECKSUM_BYTES = 4

/** Bytes of a header's value by its type; -1 for values that say their length first. */
const VALUE_BYTES: Readonly<Record<number, number>> = { 0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 6: -1, 7: -1, 8: 8, 9: 16 }
const STRING = 7

/**
 * A frame's name is the message's `:event-type`, or the `:exception-type` of an exception, and its data the payload.
 * A message of type `error` has the name `error` and the data `{"code","message"}`.
 */
export class EventStreamFraming implements Framing {
  readonly #kept = new ByteBuffer()
  /** Bytes that must be there before there is something to read. */
  #needed = PRELUDE_BYTES
  /** Fault behind the last returned frames. */
  #broken: unknown

  get pending(): number {
    return this.#kept.size
  }

  /** Frames before one that is broken are given; the next call throws. */
  push(chunk: Buffer): Frame[] {
    if (this.#broken) throw this.#broken
    this.#kept.add(chunk)
    const frames: Frame[] = []
    if (this.#kept.size < this.#needed) return frames
    let bytes = this.#kept.take()
    try {
      while (bytes.length >= this.#needed) {
        const length = messageLength(bytes)
        this.#needed = length
        if (bytes.length < length) break
        frames.push(frameOf(bytes.subarray(0, length)))
        bytes = bytes.subarray(length)
        this.#needed = PRELUDE_BYTES
      }
    } catch (thrown) {
      if (frames.length === 0) throw thrown
      this.#broken = thrown
    }
    if (bytes.length > 0) this.#kept.add(bytes)
    return frames
  }

  /** Throws when the bytes end within a message. */
  end(): Frame[] {
    if (this.#broken) throw this.#broken
    if (this.#kept.size > 0) throw errors.truncated()
    return []
  }
}

const broken = (what: string) => errors.invalidAnswer(`an event of its stream ${what}`)

function messageLength(bytes: Buffer): number {
  if (crc32(bytes.subarray(0, 8)) !== bytes.readUInt32BE(8)) throw broken('has a wrong checksum')
  const length = bytes.readUInt32BE(0)
  if (length > MAX_MESSAGE_BYTES) throw broken('is larger than 32 MiB')
  if (bytes.readUInt32BE(4) > MAX_HEADER_BYTES) throw broken('has more than 128 KiB of headers')
  if (length < PRELUDE_BYTES + bytes.readUInt32BE(4) + CHECKSUM_BYTES) throw broken('is shorter than its headers')
  return length
}

function frameOf(message: Buffer): Frame {
  const end = message.length - CHECKSUM_BYTES
  if (crc32(message.subarray(0, end)) !== message.readUInt32BE(end)) throw broken('has a wrong checksum')
  const payload = PRELUDE_BYTES + message.readUInt32BE(4)
  const headers = stringHeaders(message.subarray(PRELUDE_BYTES, payload))
  const type = headers.get(':message-type')
  if (type === 'error') {
    const error = { code: headers.get(':error-code') ?? '', message: headers.get(':error-message') ?? '' }
    return { name: 'error', data: JSON.stringify(error) }
  }
  const name = headers.get(type === 'exception' ? ':exception-type' : ':event-type')
  return { name, data: message.toString('utf8', payload, end) }
}

/** The headers that are texts, by name; others are skipped. */
function stringHeaders(bytes: Buffer): Map<string, string> {
  const headers = new Map<string, string>()
  let at = 0
  /** Where `count` bytes start that are read now. */
  const read = (count: number): number => {
    const from = at
    at += count
    if (at > bytes.length) throw broken('has headers that are cut off')
    return from
  }
  while (at < bytes.length) {
    const nameLength = bytes[read(1)]!
    const nameAt = read(nameLength)
    const type = bytes[read(1)]!
    const size = VALUE_BYTES[type]
    if (size === undefined) throw broken(`has a header of the unknown type ${type}`)
    const length = size < 0 ? bytes.readUInt16BE(read(2)) : size
    const from = read(length)
    if (type === STRING) {
      headers.set(bytes.toString('utf8', nameAt, nameAt + nameLength), bytes.toString('utf8', from, from + length))
    }
  }
  return headers
}
