/** Speech over generateContent, `gemini.speech` and `gemini.vertex-speech` (docs/contributing/wire-sources.md#gemini). */
import {
  CHARACTERS,
  type Decoder,
  type Event,
  errors,
  type GatewayError,
  isObject,
  type Json,
  listIn,
  type Mapping,
  objectIn,
  pathSegment,
  type SpeechRequest,
  speechOutput,
  type Target,
  type Translator,
  textIn,
  type Usage,
  type WireRequest,
  wavHead,
} from '../../src/plugin.ts'
import { malformed, parsed } from '../shared/answer.ts'
import { audioBytes, countedOf, voiceOf } from '../shared/speech.ts'
import { blockedBy, error, errorOf, filteredBy } from './error.ts'
import type { Surface } from './surface.ts'
import { UsageMeter } from './usage.ts'

const USUAL_VOICE = 'Kore'
const SAMPLE_RATE = 24_000
/** Tokens of an answer of its models so far, where a mapping names none: Vertex AI refuses a higher limit. */
const MAX_SPEECH_TOKENS = 16_384

function outputOf(request: Readonly<SpeechRequest>, mapping: Mapping) {
  const { limit, least } = speechOutput(request, mapping)
  const { maxOutput: most = MAX_SPEECH_TOKENS } = mapping
  return { limit: Math.min(limit, most), least: Math.min(least, most) }
}

function encode(
  request: Readonly<SpeechRequest>,
  { mapping }: Target,
  stream: boolean,
  { models }: Surface,
): WireRequest {
  const { input, instructions } = request
  const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
  const voiceName = voiceOf(request, mapping, USUAL_VOICE)
  const output = outputOf(request, mapping)
  return {
    path: `${models}/${pathSegment(mapping.externalId)}:${method}`,
    body: {
      contents: [{ role: 'user', parts: [{ text: instructions ? `${instructions}: ${input}` : input }] }],
      generationConfig: {
        responseModalities: ['AUDIO'],
        maxOutputTokens: output.limit,
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName } } },
      },
    },
    // A model priced by characters costs no tokens.
    ...(mapping.model.tokenizer !== CHARACTERS && { output }),
  }
}

/** Reads the sample rate from a media type such as `audio/L16;codec=pcm;rate=24000`. */
const rateOf = (mimeType: string): number => Number(/;\s*rate=(\d{4,6})\b/.exec(mimeType)?.[1] ?? SAMPLE_RATE)

/** Without details, all that was answered is audio. */
const asAudio = (usage: Usage): Usage => ({ ...usage, output_audio: usage.output_audio ?? usage.completion ?? 0 })

/** Plain samples in base64, of which a WAV file is made where that is wanted. */
class PartDecoder implements Decoder {
  readonly done = false
  readonly #target: Target
  readonly #isWav: boolean
  readonly #isWhole: boolean
  /** Usage of a model priced by characters. The provider's token counts do not apply to it. */
  readonly #characters: readonly Event[]
  readonly #meter = new UsageMeter()
  #began = false
  #refused: string | undefined
  #finish: string | undefined

  constructor(mode: 'stream' | 'unary', target: Target, request: Readonly<SpeechRequest>) {
    const { response_format: format = 'wav' } = request
    this.#target = target
    this.#isWav = format === 'wav'
    this.#characters = countedOf(request, target)
    this.#isWhole = mode === 'unary'
  }

  frame(frame: Parameters<Decoder['frame']>[0]): Event[] {
    const answer = parsed(frame)
    const reported = errorOf(answer, this.#target)
    if (reported) return [{ type: 'error', error: reported }]
    if (!isObject(answer)) return [{ type: 'error', error: errors.invalidAnswer('it is not an object') }]
    const [first] = listIn(answer.candidates)
    const candidate = objectIn(first)
    this.#refused ??= blockedBy(answer.promptFeedback) ?? filteredBy(candidate)
    this.#finish ??= textIn(candidate.finishReason)
    const counted = this.#counted(answer.usageMetadata)
    // Show nothing of a whole answer that was cut, so that another provider may answer.
    return this.#isWhole && this.#isCut ? [...counted] : [...counted, ...this.#audioIn(candidate)]
  }

  end(): Event[] {
    const error = this.#failure()
    if (error) return [{ type: 'error', error }]
    if (this.#characters.length > 0) return []
    const { total } = this.#meter
    return total ? [{ type: 'usage', usage: asAudio(total) }] : []
  }

  #failure(): GatewayError | undefined {
    if (this.#refused !== undefined) return errors.contentFiltered(this.#refused)
    if (this.#isCut) return malformed(errors.truncated(), this.#meter.total)
    return this.#began ? undefined : errors.invalidAnswer('it holds no audio')
  }

  /** Streams of more than a minute often end with `OTHER`. One without a reason was cut, too. */
  get #isCut(): boolean {
    return this.#finish === undefined ? !this.#isWhole : this.#finish !== 'STOP'
  }

  #counted(report: unknown): readonly Event[] {
    if (this.#characters.length > 0) return this.#began ? [] : this.#characters
    const usage = this.#meter.add(report)
    const progress = this.#meter.progress()
    const events: Event[] = usage ? [{ type: 'usage', usage }] : []
    if (progress) events.push({ type: 'progress', usage: asAudio(progress) })
    return events
  }

  #audioIn({ content }: Json): Event[] {
    const pieces: Buffer[] = []
    let type = ''
    for (const part of listIn(objectIn(content).parts)) {
      const { mimeType = '', data } = objectIn(objectIn(part).inlineData)
      if (typeof data !== 'string' || !/^(?:audio\/|$)/i.test(textIn(mimeType) ?? '')) continue
      type = textIn(mimeType) ?? ''
      pieces.push(audioBytes(data))
    }
    const audio = Buffer.concat(pieces)
    if (audio.length === 0) return []
    if (this.#began) return [{ type: 'bytes', bytes: audio }]
    this.#began = true
    if (!this.#isWav) return [{ type: 'bytes', bytes: audio, contentType: 'audio/pcm' }]
    const bytes = Buffer.concat([wavHead(rateOf(type), this.#isWhole ? audio.length : undefined), audio])
    return [{ type: 'bytes', bytes, contentType: 'audio/wav' }]
  }
}

/** The wire of one surface; audio is PCM, with a WAV header where the client's format is `wav`. */
export const speech = (wire: string, surface: Surface): Translator<'speech'> => ({
  op: 'speech',
  wire,
  outputFormats: ['wav', 'pcm'],
  encode: (request, target, stream) => encode(request, target, stream, surface),
  decoder: (mode, target, input) => new PartDecoder(mode, target, input!),
  error,
})
