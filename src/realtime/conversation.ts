/** Tokens of a conversation so far: as its provider last reported them, and our estimate of what came since. */
import { type ImageTokens, imageTokensOf } from '../core/image-tokens.ts'
import { isObject, type Json, listIn } from '../core/json.ts'
import { estimateTokens, textSize, type Usage } from '../core/usage.ts'

/** docs/contract.md#media-prices. */
const INPUT_TOKENS_PER_SECOND = 10
/** Plain PCM of 24 kHz, and telephone codecs. */
const PCM_BYTES_PER_SECOND = 48_000
const TELEPHONE_BYTES_PER_SECOND = 8000

/** Of audio in base64; `rate`: bytes of a second of it. */
export const secondsOf = (base64: unknown, rate: number): number =>
  typeof base64 === 'string' ? Math.floor((base64.length * 3) / 4) / rate : 0

const tokensOf = (seconds: number): number => Math.ceil(seconds * INPUT_TOKENS_PER_SECOND)

/** Tokens of instructions and tools, as a session or a response sets them. */
const settingsTokens = ({ instructions, tools }: Readonly<Json>): number =>
  (typeof instructions === 'string' ? estimateTokens(textSize(instructions)) : 0) +
  (tools == null ? 0 : estimateTokens(textSize(JSON.stringify(tools))))

/** Of an audio format as sessions name it. */
export const bytesPerSecond = (format: unknown): number =>
  isObject(format) && typeof format.type === 'string' && /pcm[ua]/.test(format.type)
    ? TELEPHONE_BYTES_PER_SECOND
    : PCM_BYTES_PER_SECOND

/** Whether a response with this setting may read less of its conversation than fits into the context of the model. */
export const mayTruncate = (truncation: unknown): boolean =>
  truncation != null && truncation !== 'auto' && truncation !== 'disabled'

/** Estimates the prompt of the next response, in tokens by kind. */
export class Conversation {
  #text = 0
  #audio = 0
  #images = 0
  readonly #most: number
  readonly #tokensOfImage: number

  /** `contextLength`: no prompt is longer. `imageTokens`: an image counts as the largest. */
  constructor(contextLength: number | undefined, imageTokens?: ImageTokens) {
    this.#most = contextLength ?? Number.POSITIVE_INFINITY
    this.#tokensOfImage = imageTokensOf([undefined], imageTokens)
  }

  /** Instructions and tools count with every response. */
  settings(settings: Readonly<Json>): void {
    this.#text += settingsTokens(settings)
  }

  /** `rate`: bytes of a second of its audio. */
  item(item: unknown, rate: number): void {
    if (!isObject(item)) return
    for (const text of [item.output, item.arguments]) {
      if (typeof text === 'string') this.#text += estimateTokens(textSize(text))
    }
    for (const part of listIn(item.content)) {
      if (!isObject(part)) continue
      if (part.type === 'input_image') this.#images += this.#tokensOfImage
      this.addAudio(secondsOf(part.audio, rate))
      for (const text of [part.text, part.transcript]) {
        if (typeof text === 'string') this.#text += estimateTokens(textSize(text))
      }
    }
  }

  /** An item of so many seconds of audio. */
  addAudio(seconds: number): void {
    this.#audio += tokensOf(seconds)
  }

  /** The same was refused. */
  removeAudio(seconds: number): void {
    this.#audio = Math.max(0, this.#audio - tokensOf(seconds))
  }

  /**
   * A response with these settings of its own begins; `truncates`: those of its session may leave a part of the conversation
   * unread, which a later one reads again. To the result goes what its provider reports: what it read and wrote is what the
   * next one reads, with what has come meanwhile. One that may not have read all only raises the estimate; one with input of
   * its own adds its output only, and one beside the conversation nothing.
   */
  begin(own: Readonly<Json>, truncates: boolean): (report: Usage) => void {
    const before = { text: this.#text, audio: this.#audio, images: this.#images }
    const least = truncates || mayTruncate(own.truncation) ? before : { text: 0, audio: 0, images: 0 }
    // Instructions and tools of its own take the place of the session's, which the next one reads again.
    const leastText = own.instructions == null && own.tools == null ? least.text : before.text
    const ownText = settingsTokens(own)
    const isBeside = own.conversation === 'none'
    const readsIt = own.input == null
    // It is kept as long as the response runs, without `own`, which has up to a message.
    return ({ prompt = 0, completion = 0, input_audio = 0, output_audio = 0, image_input = 0 }) => {
      if (isBeside) return
      if (readsIt && prompt > 0) {
        this.#text += Math.max(leastText, prompt - input_audio - image_input - ownText) - before.text
        this.#audio += Math.max(least.audio, input_audio) - before.audio
        this.#images += Math.max(least.images, image_input) - before.images
      }
      this.#text += Math.max(0, completion - output_audio)
      this.#audio += output_audio
    }
  }

  /**
   * Of a response with so many tokens, all of which may be audio where `hasAudio`, and with these settings of its own; `rate` is
   * of its own input.
   */
  expected(output: number, hasAudio: boolean, own: Readonly<Json>, rate: number): Usage {
    const extra = new Conversation(undefined)
    extra.settings(own)
    for (const item of listIn(own.input)) extra.item(item, rate)
    const audio = this.#audio + extra.#audio
    const images = this.#images + extra.#images
    const prompt = Math.min(this.#most, this.#text + extra.#text + audio + images)
    return {
      prompt,
      input_audio: Math.min(prompt, audio),
      image_input: Math.min(Math.max(0, prompt - audio), images),
      completion: output,
      ...(hasAudio && { output_audio: output }),
    }
  }
}

/** What a transcript of so many seconds, and a prompt, is expected to use, by what its model is charged for. */
export const speechUsage = (seconds: number, isByHour: boolean, prompt: number): Usage =>
  isByHour
    ? { input_audio_hour: seconds / 3600 }
    : {
        prompt: tokensOf(seconds) + prompt,
        input_audio: tokensOf(seconds),
        completion: Math.ceil(seconds * TRANSCRIPT_TOKENS_PER_SECOND),
      }
const TRANSCRIPT_TOKENS_PER_SECOND = 4
