/** Large frames of answers are read in steps, between which others may go on. */
import { type AnswerBounds, answerSteps, MAX_ANSWER_BYTES, parseAnswer, tooManyBytes } from './answer-bounds.ts'
import type { Event } from './event.ts'
import { parsedAhead } from './lossless-json.ts'
import type { Decoder, Frame } from './translator.ts'

/** Bytes that are read within fractions of a millisecond. */
export const FEW_BYTES = 4096
/** Size from which a frame is large. */
const LARGE = 256 * 1024
/** Bytes whose text is made in one step: where it is not ASCII a byte takes up to 10 ns. */
const STEP = 1024 * 1024

/** In bytes, where a frame has any, else in characters: to make text of bytes takes long. */
export const sizeOf = (frame: Frame): number => frame.bytes?.length ?? frame.data.length
/** Whether a frame is read in steps: from 256 KiB on, or as many characters, as `sizeOf` counts. */
export const isLarge = (frame: Frame): boolean => sizeOf(frame) >= LARGE

/** The events of a frame. */
export function* decodeSteps(decoder: Decoder, frame: Frame): Generator<undefined, Event[]> {
  if (decoder.steps) return yield* decoder.steps(frame)
  const { name, bytes } = frame
  const data = yield* textOf(frame)
  const parsed = yield* parsedAhead(data)
  yield
  return decoder.frame(bytes ? { data, name, bytes, parsed } : { data, name, parsed })
}

/** What a frame says, as `JSON.parse` reads it. Throws a SyntaxError, or the failure of an answer beyond its bounds. */
export function* valueSteps(frame: Frame, bounds?: AnswerBounds): Generator<undefined, unknown> {
  if (!isLarge(frame)) return parseAnswer(frame.data, bounds)
  return yield* answerSteps(yield* textOf(frame), json => JSON.parse(json), bounds)
}

/** Of larger answers the values are cut out, and the rest is small: to put so much text together would take a step too long. */
function* textOf(frame: Frame): Generator<undefined, string> {
  if (frame.bytes && frame.bytes.length > MAX_ANSWER_BYTES) throw tooManyBytes()
  return frame.bytes ? (yield* textSteps(frame.bytes)).trim() : frame.data
}

/** The text of UTF-8. */
export function* textSteps(bytes: Buffer): Generator<undefined, string> {
  let text = ''
  for (let at = 0; at < bytes.length; ) {
    const end = pieceEnd(bytes, at + STEP)
    text += bytes.toString('utf8', at, end)
    at = end
    yield
  }
  return text
}

/** At `to`, or before the character that goes on there. */
function pieceEnd(bytes: Buffer, to: number): number {
  let end = to
  while (end > to - LONGEST && (bytes[end]! & 0xc0) === 0x80) end--
  return Math.min(end, bytes.length)
}
/** Bytes of a character behind its first one. */
const LONGEST = 3
