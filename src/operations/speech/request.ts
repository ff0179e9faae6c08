/** The canonical request of `POST /v1/audio/speech` (docs/contract.md#speech). */
import { type Infer, s } from '../../core/schema.ts'

/** Formats by the media types that clients get them under. */
export const speechFormats = {
  mp3: 'audio/mpeg',
  opus: 'audio/opus',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
} as const
/** A key of `speechFormats`. */
export type SpeechFormat = keyof typeof speechFormats

/** The key of a mapping's `voices` by which every name that is no key goes on unchanged. */
export const ANY_VOICE = '*'

const voice = s.string({ minLength: 1, maxLength: 200 })

/** As clients send it (OpenAI's speech API). */
export const speechBody = s.open({
  model: s.string({ minLength: 1, maxLength: 256 }),
  input: s.string({ minLength: 1, maxLength: 100_000 }),
  voice: s.optional(s.either(voice, s.open({ id: voice }), s.nullable(voice))),
  response_format: s.maybe(s.enum('mp3', 'opus', 'aac', 'flac', 'wav', 'pcm')),
  speed: s.maybe(s.number({ minimum: 0.25, maximum: 4 })),
  instructions: s.maybe(s.string({ maxLength: 4096 })),
  stream_format: s.maybe(s.enum('audio', 'sse')),
})
/** A valid body of `/v1/audio/speech`. */
export type SpeechBody = Infer<typeof speechBody>

/** The canonical request. */
export interface SpeechRequest {
  readonly model: string
  readonly input: string
  /** Length of `input` in code points, which some prices and limits count. */
  readonly characters: number
  /** As clients say it; undefined for the mapping's own. */
  readonly voice: string | undefined
  /** Set where clients say it as `{ id }`: a voice of their own account. */
  readonly own_voice?: boolean
  /** Undefined for the wire's own. */
  readonly response_format: SpeechFormat | undefined
  readonly speed: number | undefined
  readonly instructions: string | undefined
  readonly stream_format: 'audio' | 'sse'
  /** Tokens that there is money for, where that is less than is sent otherwise. */
  readonly max_output?: number | undefined
  /** Audio passes on as it comes. */
  readonly stream: true
}

declare module '../../core/ops.ts' {
  interface Ops {
    speech: SpeechRequest
  }
}
