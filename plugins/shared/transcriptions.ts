/** Shared by the transcription wires: the file of a form, times, and usage (docs/contract.md#transcriptions). */
import {
  type Event,
  errors,
  estimateTokens,
  type FilePart,
  heardTokens,
  isObject,
  type Json,
  listIn,
  type Segment,
  type Target,
  type Transcript,
  type TranscriptionRequest,
  type Translator,
  textSize,
  type Usage,
  type Word,
} from '../../src/plugin.ts'
import { parsed, WholeDecoder } from './answer.ts'

const BYTES_PER_SECOND = 8000
const HOUR_SECONDS = 3600

/** Under a made-up name: no client's name reaches a provider. Throws 400 for a request without a file. */
export function fileOf({ file, fileType }: Readonly<TranscriptionRequest>): FilePart {
  if (!file || !fileType) throw errors.unsupported('This provider takes a file, not an address.', 'url')
  const { extension, contentType } = fileType
  return { name: 'file', filename: `audio.${extension}`, contentType, pieces: file.pieces }
}

/** The language of a tag as ISO 639-1 has it, where it does: `de` for `de-CH` and for `deu`. With its region where `regional`. */
export function languageOf({ language }: Readonly<TranscriptionRequest>, regional = false): string | undefined {
  const [first, ...region] = language?.split('-') ?? []
  if (first === undefined) return undefined
  const short = first.length > 2 ? new Intl.Locale(first).language : first.toLowerCase()
  return regional ? [short, ...region].join('-') : short
}

/** No recording is longer: 11 days. */
const MAX_AUDIO_SECONDS = 1e6
/** A time or a length of audio; undefined for what is none. */
export const secondsIn = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 && value <= MAX_AUDIO_SECONDS ? value : undefined

/** A time that ends no sooner than it begins. */
function spanIn({ start, end }: Json): { readonly start: number; readonly end: number } | undefined {
  const [from, to] = [secondsIn(start), secondsIn(end)]
  return from === undefined || to === undefined ? undefined : { start: from, end: Math.max(from, to) }
}

/** Entries with a text and its times, by the names of their fields. */
export function wordsIn(list: unknown, textField: string): Word[] {
  return listIn(list).flatMap(entry => {
    if (!isObject(entry)) return []
    const { speaker, speaker_id } = entry
    const word = entry[textField]
    const span = spanIn(entry)
    if (typeof word !== 'string' || !span) return []
    return [{ word: word.trim(), start: span.start, end: span.end, speaker: speakerOf(speaker ?? speaker_id) }]
  })
}

/** Entries with a text and its times; others are left out. */
export function segmentsIn(list: unknown): Segment[] {
  return listIn(list).flatMap(entry => {
    if (!isObject(entry)) return []
    const { text, transcript, speaker, speaker_id } = entry
    const content = text ?? transcript
    const span = spanIn(entry)
    if (typeof content !== 'string' || !span) return []
    return [{ start: span.start, end: span.end, text: content, speaker: speakerOf(speaker ?? speaker_id), more: entry }]
  })
}

const speakerOf = (speaker: unknown): string | undefined =>
  typeof speaker === 'string' || typeof speaker === 'number' ? String(speaker) : undefined

/**
 * Reports the usage of an answer. A price by the hour needs the length of the audio. The first known one counts: the
 * provider's, the file head's, the end of the last word, an estimate by size (docs/money.md#length-of-audio). Where tokens
 * are priced and the provider counts none, they are estimated by that length and by the text.
 */
function usageEvent(
  transcript: Transcript,
  request: Readonly<TranscriptionRequest>,
  { price }: Target,
  counted: Usage = {},
): Event {
  const { input_audio_hour: hourly, prompt: byToken } = price?.rates ?? {}
  if (hourly === undefined && (byToken === undefined || counted.prompt !== undefined)) {
    return { type: 'usage', usage: counted }
  }
  // A client has written the head of its file: what was said ends no later than the file.
  const said = lastEnd(transcript)
  const known = transcript.duration ?? (request.seconds === undefined ? said : Math.max(request.seconds, said ?? 0))
  const seconds = known ?? (request.file?.size ?? 0) / BYTES_PER_SECOND
  if (hourly === undefined) {
    const audio = heardTokens(seconds)
    const completion = estimateTokens(textSize(transcript.text))
    return { type: 'usage', usage: { prompt: audio, input_audio: audio, completion }, estimated: true }
  }
  const usage = { ...counted, input_audio_hour: seconds / HOUR_SECONDS }
  return known === undefined ? { type: 'usage', usage, estimated: true } : { type: 'usage', usage }
}

/** Undefined without times. By loops: the words of hours come near the arguments that one call can have. */
function lastEnd({ words = [], segments = [] }: Transcript): number | undefined {
  let last = 0
  for (const { end } of words) if (end > last) last = end
  for (const { end } of segments) if (end > last) last = end
  return last > 0 ? last : undefined
}

/** The events of a whole transcript. */
export const transcriptEvents = (
  transcript: Transcript,
  request: Readonly<TranscriptionRequest>,
  target: Target,
  counted: Usage = {},
): Event[] => [usageEvent(transcript, request, target, counted), { type: 'result', value: transcript }]

/** A decoder of answers that are a whole transcript, in any words of a wire. */
export const wholeTranscripts =
  (transcriptOf: (answer: unknown, target: Target) => Transcript): Translator<'transcriptions'>['decoder'] =>
  (_mode, target, input) =>
    new WholeDecoder(frame => transcriptEvents(transcriptOf(parsed(frame), target), input!, target))
