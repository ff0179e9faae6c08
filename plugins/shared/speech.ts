/** Shared by the speech wires: voices, formats and streamed audio (docs/contract.md#speech). */
import {
  ANY_VOICE,
  CHARACTERS,
  type Decoder,
  type Event,
  errors,
  type Mapping,
  type SpeechFormat,
  type SpeechRequest,
  speechFormats,
  type Target,
  type Translator,
  type Usage,
  withoutSpace,
} from '../../src/plugin.ts'
import { errorIn, parsed, WholeDecoder } from './answer.ts'

/** The provider's voice for the one that a client names; `usual` where neither the client nor the mapping names one. */
export function voiceOf({ voice }: Readonly<SpeechRequest>, { voices = {} }: Mapping, usual: string): string {
  const name = voice ?? 'default'
  if (name !== ANY_VOICE && Object.hasOwn(voices, name)) return voices[name]!
  return voice ?? usual
}

/** Counts the characters of a model that is priced by them. */
export function countedOf({ characters }: Readonly<SpeechRequest>, { mapping }: Target): Event[] {
  if (mapping.model.tokenizer !== CHARACTERS) return []
  const usage: Usage = { prompt: characters, completion: 0 }
  return [{ type: 'usage', usage }]
}

/** Clients get the type of the format that they named, else the provider's, and MP3 where it has none. */
function typeOf({ response_format: format }: Readonly<SpeechRequest>, said: string): string {
  if (format !== undefined) return speechFormats[format]
  const type = said.replace(/;.*/s, '').trim().toLowerCase()
  return AUDIO_TYPE.test(type) ? type : speechFormats.mp3
}
const AUDIO_TYPE = /^audio\/[a-z0-9.+-]{1,40}$/

/** Audio of an event. Throws for text that is not base64, whose other characters Node would skip. */
export function audioBytes(base64: string): Buffer {
  const bytes = Buffer.from(base64, 'base64')
  const isWhole = (text: string) => bytes.length === Buffer.byteLength(text, 'base64')
  if (isWhole(base64) || isWhole(withoutSpace(base64))) return bytes
  throw errors.invalidAnswer('audio in it is not base64')
}

/** Reads audio as it comes. */
class AudioDecoder implements Decoder {
  readonly done = false
  readonly #contentType: string
  readonly #first: Event[]
  #began = false

  /** `first`: events that stand before the first audio. */
  constructor(contentType: string, first: Event[]) {
    this.#contentType = contentType
    this.#first = first
  }

  frame({ bytes }: Parameters<Decoder['frame']>[0]): Event[] {
    if (!bytes || bytes.length === 0) return []
    if (this.#began) return [{ type: 'bytes', bytes }]
    this.#began = true
    return [...this.#first, { type: 'bytes', bytes, contentType: this.#contentType }]
  }

  end(): Event[] {
    return this.#began ? [] : [{ type: 'error', error: errors.invalidAnswer('it holds no audio') }]
  }
}

/** Answers that are audio. A type without parameters adds nothing to the request's format. */
export const audioForm: NonNullable<Translator<'speech'>['bytes']> = {
  types: ['audio/', 'application/octet-stream'],
  decoder: (contentType, target, input) => new AudioDecoder(typeOf(input!, contentType), countedOf(input!, target)),
}

/** Decodes responses that must be audio. JSON in their place is an error, whatever the status (E1). */
export const noAudio = (target: Target): Decoder =>
  new WholeDecoder(frame => {
    throw errorIn(parsed(frame), 'audio', target)
  })

/** For wires that make every format. */
export const allFormats = Object.keys(speechFormats) as readonly SpeechFormat[]
