/** Times and segments of transcripts (docs/contract.md#transcript-formats). */
import type { Segment, Transcript, Word } from '../../operations/transcriptions/request.ts'

/** Seconds, rounded to milliseconds. */
export const rounded = (seconds: number): number => Math.round(seconds * 1000) / 1000

/** `01:02:03,004`; `mark` precedes the milliseconds, and hours may have more than two digits. */
export function clock(seconds: number, mark: ',' | '.'): string {
  const ms = Math.max(0, Math.round(seconds * 1000))
  const pad = (value: number, places = 2) => String(value).padStart(places, '0')
  const [hours, minutes, rest] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, Math.floor(ms / 1000) % 60]
  return `${pad(hours)}:${pad(minutes)}:${pad(rest)}${mark}${pad(ms % 1000, 3)}`
}

const MAX_GAP = 1
const MAX_LENGTH = 10

/** The provider's segments, else groups of its words, else one segment. None for an empty text. */
export function segmentsOf({ text, segments, words, duration = 0 }: Transcript): readonly Segment[] {
  if (segments && segments.length > 0) return segments
  if (words && words.length > 0) return grouped(words)
  return text.trim() === '' ? [] : [{ start: 0, end: duration, text }]
}

/** A segment ends with a sentence, at a gap, at a change of speaker, or at a maximum length. */
function grouped(words: readonly Word[]): Segment[] {
  const segments: Segment[] = []
  let open: Word[] = []
  const close = () => {
    const [first] = open
    if (first) segments.push({ start: first.start, end: open.at(-1)!.end, text: joined(open), speaker: first.speaker })
    open = []
  }
  for (const word of words) {
    const last = open.at(-1)
    const isOther =
      last !== undefined &&
      (word.start - last.end > MAX_GAP || word.speaker !== last.speaker || word.end - open[0]!.start > MAX_LENGTH)
    if (isOther) close()
    open.push(word)
    if (/[.!?]["')\]]?$/.test(word.word.trim())) close()
  }
  close()
  return segments
}

/** Joined by single spaces, none before punctuation. */
function joined(words: readonly Word[]): string {
  let text = ''
  for (const { word } of words) {
    const piece = word.trim()
    text += text === '' || /^[.,!?;:%)\]]/.test(piece) ? piece : ` ${piece}`
  }
  return text
}
