/** The canonical request and answer of transcriptions and translations (docs/contract.md#transcriptions). */

import { type Infer, s } from '../../core/schema.ts'
import type { Upload } from '../../lib/body.ts'

/** The values of `response_format`. */
export const transcriptFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'] as const
type TranscriptFormat = (typeof transcriptFormats)[number]

const text = s.string({ minLength: 1 })
const optional = { text: s.maybe(text), flag: s.maybe(s.boolean()) }
const few = (maxItems: number, maxLength: number) =>
  s.maybe(s.array(s.string({ minLength: 1, maxLength }), { maxItems }))

/** The fields of a form, or a JSON body, which has an address in place of a file. */
export const transcriptionBody = s.open({
  model: s.string({ minLength: 1, maxLength: 256 }),
  url: optional.text,
  language: s.maybe(s.string({ pattern: '^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$', description: 'a code such as "en"' })),
  prompt: s.maybe(s.string()),
  response_format: s.maybe(s.enum(...transcriptFormats)),
  temperature: s.maybe(s.number({ minimum: 0, maximum: 1 })),
  timestamp_granularities: s.maybe(s.array(s.enum('word', 'segment'))),
  include: s.maybe(s.array(s.enum('logprobs'))),
  chunking_strategy: s.maybe(s.either(s.enum('auto'), s.open({ type: s.string() }))),
  known_speaker_names: few(4, 200),
  known_speaker_references: few(4, 20_000_000),
  stream: optional.flag,
  diarize: optional.flag,
  filler_words: optional.flag,
  keyterm: few(100, 100),
})
/** A valid body of `/v1/audio/transcriptions`. */
export type TranscriptionBody = Infer<typeof transcriptionBody>

/** Translations have no speaker labels and no streams, and their language is English. */
const translationFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt'] as const
/** The fields of a form, or a JSON body, for `/v1/audio/translations`. */
export const translationBody = s.open({
  model: s.string({ minLength: 1, maxLength: 256 }),
  url: optional.text,
  prompt: s.maybe(s.string()),
  response_format: s.maybe(s.enum(...translationFormats)),
  temperature: s.maybe(s.number({ minimum: 0, maximum: 1 })),
})

/** The canonical request of both. */
export interface TranscriptionRequest {
  readonly model: string
  /** One of `file` and `url`. */
  readonly file: Upload | undefined
  /** Type of the file by its first bytes, else as the client declares. */
  readonly fileType: { readonly extension: string; readonly contentType: string } | undefined
  readonly url: string | undefined
  /** The length that the file says, once it was looked into. */
  seconds: number | undefined
  readonly language: string | undefined
  readonly prompt: string | undefined
  readonly response_format: TranscriptFormat
  readonly temperature: number | undefined
  readonly timestamp_granularities: readonly ('word' | 'segment')[]
  readonly include: readonly 'logprobs'[]
  readonly chunking_strategy: string | object | undefined
  readonly known_speaker_names: readonly string[]
  readonly known_speaker_references: readonly string[]
  readonly stream: boolean
  readonly diarize: boolean
  readonly filler_words: boolean
  readonly keyterm: readonly string[]
}

/** Seconds. */
export interface Word {
  readonly word: string
  readonly start: number
  readonly end: number
  readonly speaker?: string | undefined
}
/** A stretch of speech; times in seconds. */
export interface Segment {
  readonly start: number
  readonly end: number
  readonly text: string
  readonly speaker?: string | undefined
  /** Additional fields of the provider's answer, named as in `verbose_json`. */
  readonly more?: Readonly<Record<string, unknown>> | undefined
}

/** The value of a transcriptions `result`. */
export interface Transcript {
  readonly text: string
  readonly language?: string | undefined
  readonly duration?: number | undefined
  readonly segments?: readonly Segment[] | undefined
  readonly words?: readonly Word[] | undefined
  readonly logprobs?: unknown
}

/** Formats that say when something was said. */
const TIMED: readonly TranscriptFormat[] = ['srt', 'vtt', 'verbose_json']
/** True where the answer's format shows when words were said. */
export const needsTimes = ({ response_format }: Pick<TranscriptionRequest, 'response_format'>): boolean =>
  TIMED.includes(response_format)
/** True where the answer shows who speaks. */
export const needsSpeakers = (request: Pick<TranscriptionRequest, 'response_format' | 'diarize'>): boolean =>
  request.diarize || request.response_format === 'diarized_json'

/** Bytes per second of a file with unknown length (docs/money.md#length-of-audio). */
const BYTES_PER_SECOND = 8000
/** Assumed seconds of audio at an address. */
const UNKNOWN_SECONDS = 600
/** Seconds of the longest audio that providers take. */
const MAX_AUDIO_SECONDS = 10 * 3600
/** The length of the audio in seconds, estimated where the request does not say it. At least a millisecond, which has a price. */
export const likelySeconds = ({ seconds, file }: Readonly<TranscriptionRequest>): number =>
  Math.max(0.001, seconds ?? (file ? file.size / BYTES_PER_SECOND : UNKNOWN_SECONDS))
/** Returns the seconds by which audio at an address may exceed the assumed length. */
export function unmeasuredSeconds(request: Readonly<TranscriptionRequest>): number {
  return request.file ? 0 : MAX_AUDIO_SECONDS - UNKNOWN_SECONDS
}

declare module '../../core/ops.ts' {
  interface Ops {
    transcriptions: TranscriptionRequest
    translations: TranscriptionRequest
  }
}
