/** The length of audio that is frames only. Decoders play what the frames hold, whatever the rest of the file says. */
import { type Frame, frameOf, HEAD } from './audio-frame.ts'
import type { ByteReader } from './byte-reader.ts'

/**
 * Seconds of `size` bytes, the first of which begin a frame; undefined where they do not, and where frames of the first one's
 * mark follow one another behind a gap: decoders may have begun elsewhere. What is behind a gap, and beyond the steps of
 * `budget`, counts as the slowest frames would, with those that stand there alone: the result is no less than what is played.
 */
export function frameSeconds(reader: ByteReader, size: number, budget: { steps: number }): number | undefined {
  let first: Frame | undefined
  let samples = 0
  let uncovered = size
  let at = 0
  let isGap = false
  const endsBehindGap = new Set<number>()
  // The four bytes at which a frame may begin, and the three behind them.
  let head = 0
  let rest = 0
  let missing = HEAD
  while (budget.steps-- > 0) {
    let byte = 0
    for (; missing > 0 && byte >= 0; missing--) {
      byte = reader.byte()
      head = ((head << 8) | (rest >>> 16)) >>> 0
      rest = ((rest << 8) | byte) & 0xff_ffff
    }
    if (byte < 0) break
    const frame = frameOf(head, rest)
    first ??= frame
    if (!first) return undefined
    if (frame?.mark === first.mark) {
      samples += frame.samples
      if (!isGap) {
        uncovered -= frame.bytes
        at += frame.bytes
        if (!reader.skip(frame.bytes - HEAD)) break
        missing = HEAD
        continue
      }
      if (endsBehindGap.has(at)) return undefined
      endsBehindGap.add(at + frame.bytes)
    }
    isGap = true
    at++
    missing = 1
  }
  return first && samples / first.rate + Math.max(0, uncovered) / first.slowest
}

/**
 * Whether frames of one mark follow one another from the first `within` bytes on: as many as prove it, or at least two to
 * the end of `bytes`.
 */
export function holdsFrames(bytes: Buffer, within: number): boolean {
  for (let at = bytes.indexOf(SYNC_BYTE); at >= 0 && at < within; at = bytes.indexOf(SYNC_BYTE, at + 1)) {
    if (isProven(bytes, at)) return true
  }
  return false
}

function isProven(bytes: Buffer, begin: number): boolean {
  const first = frameAt(bytes, begin)
  let frames = 0
  let at = begin
  for (let frame = first; frame && frame.mark === first?.mark; frame = frameAt(bytes, at)) {
    frames++
    at += frame.bytes
    if (frames === frame.proof) return true
  }
  return frames > 1 && at + HEAD > bytes.length
}

const frameAt = (bytes: Buffer, at: number): Frame | undefined =>
  at + HEAD <= bytes.length ? frameOf(bytes.readUInt32BE(at), bytes.readUIntBE(at + 4, HEAD - 4)) : undefined

const SYNC_BYTE = 0xff
