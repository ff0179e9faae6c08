/** The length of audio that is frames only. Decoders play what the frames hold, whatever the rest of the file says. */
import { type Frame, frameOf, HEAD } from './audio-frame.ts'
import type { ByteReader } from './byte-reader.ts'
import { HeadWindow, isId3, tagIn } from './frame-tags.ts'

/**
 * Seconds of `size` bytes, the first of which begin a frame; undefined where they do not, and where frames of the first one's
 * mark follow one another behind a gap: decoders may have begun elsewhere. What is behind a gap, and beyond the steps of
 * `budget`, counts as the slowest frames would, with those that stand there alone: the result is no less than what is played.
 *
 * Tags between frames are no gap. Decoders that do not step over them play each frame in them, which counts; undefined where
 * such a frame, or a tag in a tag, leads them into the body of a frame behind it.
 */
export function frameSeconds(reader: ByteReader, size: number, budget: { steps: number }): number | undefined {
  const window = new HeadWindow(reader)
  let first: Frame | undefined
  let samples = 0
  let inTags = 0
  let uncovered = size
  let at = 0
  let isGap = false
  let tagEnd = 0
  let isClosed = true
  const endsBehindGap = new Set<number>()
  let missing = HEAD
  while (budget.steps-- > 0) {
    if (!window.shift(missing)) {
      // The last bytes of a tag at the end of the file.
      uncovered -= Math.max(0, Math.min(tagEnd - at, HEAD))
      break
    }
    if (first && !isGap && at >= tagEnd) {
      const tag = tagIn(window)
      if (tag?.bytes) {
        tagEnd = at + tag.bytes
        if (tagEnd > size) break
        isClosed = tag.isClosed
        uncovered -= tag.passed
      } else if (tag) isGap = true
      at += tag?.passed ?? 0
    }
    const frame = frameOf(window.head, window.rest)
    first ??= frame
    if (!first) return undefined
    if (at < tagEnd) {
      if (frame && at + frame.bytes > tagEnd) return undefined
      if (!isClosed && isId3(window.head)) return undefined
      if (frame) inTags += frame.samples / frame.rate
      let passed = 1
      if (isClosed && tagEnd - at > HEAD && !window.mayHoldFrame) {
        passed = HEAD + reader.passTo(SYNC_BYTE, tagEnd - at - HEAD)
        budget.steps -= STEPS_OF_SEARCH + (passed >>> BYTES_OF_STEP)
      }
      missing = Math.min(passed, HEAD)
      at += passed
      uncovered -= passed
      continue
    }
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
  return first && samples / first.rate + inTags + Math.max(0, uncovered) / first.slowest
}

/** Of tags: a search takes as long as some frames, and as one more for each 64 bytes. */
const STEPS_OF_SEARCH = 6
const BYTES_OF_STEP = 6

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
