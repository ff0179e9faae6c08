/** Output formats of transcripts (docs/contract.md#transcript-formats). */
import { textKey } from '../../json/text-key.ts'
import type { Segment, Transcript, TranscriptionRequest, Word } from '../../operations/transcriptions/request.ts'

/** Seconds, rounded to milliseconds. */
const rounded = (seconds: number): number => Math.round(seconds * 1000) / 1000

/** `01:02:03,004`; `mark` precedes the milliseconds, and hours may have more than two digits. */
export function clock(seconds: number, mark: ',' | '.'): string {
  const ms = Math.max(0, Math.round(seconds * 1000))
  const pad = (value: number, places = 2) => String(value).padStart(places, '0')
  const [hours, minutes, rest] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, Math.floor(ms / 1000) % 60]
  return `${pad(hours)}:${pad(minutes)}:${pad(rest)}${mark}${pad(ms % 1000, 3)}`
}

const MAX_GAP_SECONDS = 1
const MAX_CUE_SECONDS = 10

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
      (word.start - last.end > MAX_GAP_SECONDS ||
        word.speaker !== last.speaker ||
        word.end - open[0]!.start > MAX_CUE_SECONDS)
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

/** A transcript as text of its content type. */
interface Written {
  readonly contentType: string
  readonly body: string
}
type TranscriptRequest = Pick<
  TranscriptionRequest,
  'response_format' | 'timestamp_granularities' | 'known_speaker_names'
>

/** `usage`: the client's usage object; `task`: the endpoint. */
export function written(
  transcript: Transcript,
  request: TranscriptRequest,
  usage: object,
  task: 'transcribe' | 'translate' = 'transcribe',
): Written {
  const json = (body: object): Written => ({ contentType: 'application/json', body: JSON.stringify(body) })
  switch (request.response_format) {
    case 'text':
      return { contentType: 'text/plain; charset=utf-8', body: `${transcript.text}\n` }
    case 'srt':
      return { contentType: 'application/x-subrip; charset=utf-8', body: srt(segmentsOf(transcript)) }
    case 'vtt':
      return { contentType: 'text/vtt; charset=utf-8', body: vtt(segmentsOf(transcript)) }
    case 'verbose_json':
      return json(verbose(transcript, request, usage, task))
    case 'diarized_json':
      return json({
        task,
        duration: rounded(transcript.duration ?? 0),
        text: transcript.text,
        segments: diarized(transcript, request.known_speaker_names),
        usage,
      })
    default: {
      const { text, language, duration, words, logprobs } = transcript
      return json({ text, language, duration: duration && rounded(duration), words, logprobs, usage })
    }
  }
}

function srt(segments: readonly Segment[]): string {
  const cues = cuesOf(segments, ',')
  return cues.map((cue, at) => `${at + 1}\n${cue}`).join('')
}

const vtt = (segments: readonly Segment[]): string => `WEBVTT\n\n${cuesOf(segments, '.').join('')}`

/** Times and text of each non-empty segment. A blank line would end the text, an arrow would be read as times. */
function cuesOf(segments: readonly Segment[], mark: ',' | '.'): string[] {
  return segments.flatMap(({ start, end, text }) => {
    const lines = text.split(/[\r\n]+/).map(line => line.trim())
    const caption = lines
      .filter(line => line !== '')
      .join('\n')
      .replaceAll('-->', '->')
    return caption === '' ? [] : [`${clock(start, mark)} --> ${clock(end, mark)}\n${caption}\n\n`]
  })
}

/** An absent or mistyped number is 0. */
const numberIn = (value: unknown): number => (typeof value === 'number' ? value : 0)
const numbersIn = (value: unknown): number[] =>
  Array.isArray(value) && value.every(item => typeof item === 'number') ? value : []

function verbose(transcript: Transcript, request: TranscriptRequest, usage: object, task: string): object {
  const { text, language = '', duration = 0, words } = transcript
  const segments = segmentsOf(transcript).map(({ start, end, text, more }, id) => ({
    id,
    seek: numberIn(more?.seek),
    start: rounded(start),
    end: rounded(end),
    text,
    tokens: numbersIn(more?.tokens),
    temperature: numberIn(more?.temperature),
    avg_logprob: numberIn(more?.avg_logprob),
    compression_ratio: numberIn(more?.compression_ratio),
    no_speech_prob: numberIn(more?.no_speech_prob),
  }))
  const isWorded = request.timestamp_granularities.includes('word')
  const timed = words?.map(({ word, start, end }) => ({ word, start: rounded(start), end: rounded(end) }))
  return {
    task,
    language,
    duration: rounded(duration),
    text,
    segments,
    words: isWorded ? (timed ?? []) : undefined,
    usage,
  }
}

/** Speakers are A, B, … by first appearance, or their known names. */
export function diarized(transcript: Transcript, names: readonly string[]): object[] {
  const known = new Map<string | undefined, string>()
  return segmentsOf(transcript).map(({ start, end, text, speaker }, at) => {
    const key = speaker === undefined ? speaker : textKey(speaker)
    let name = known.get(key)
    if (name === undefined) {
      name = names[known.size] ?? letters(known.size)
      known.set(key, name)
    }
    const times = { start: rounded(start), end: rounded(end) }
    return { type: 'transcript.text.segment', id: `seg_${at}`, ...times, speaker: name, text: text.trim() }
  })
}

const LETTERS = 26
/** A to Z, then AA, AB, … */
const letters = (at: number): string =>
  (at >= LETTERS ? letters(Math.floor(at / LETTERS) - 1) : '') + String.fromCharCode(65 + (at % LETTERS))
