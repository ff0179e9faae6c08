/** Tokens of a conversation so far: as its provider last reported them, and our estimate of what came since. */
import { type ImageTokens, imageTokensOf } from '../core/media.ts'
import { estimateTokens, textSize, type Usage } from '../core/usage.ts'
import { isObject, type Json, listIn } from '../json/json.ts'
import { heardTokens } from '../metering/audio.ts'

/** Plain PCM of 24 kHz, and telephone codecs. */
const PCM_BYTES_PER_SECOND = 48_000
const TELEPHONE_BYTES_PER_SECOND = 8000

/** Returns the seconds of base64 audio; `rate` is its bytes per second. */
export const secondsOf = (base64: unknown, rate: number): number =>
  typeof base64 === 'string' ? Math.floor((base64.length * 3) / 4) / rate : 0

/** Members that hold a word or an id, at any length up to `MAX_WORD_CHARACTERS`: no model reads these as text. */
const WORDS: ReadonlySet<string> = new Set(['id', 'object', 'type', 'role', 'status', 'call_id', 'phase', 'detail'])
const MAX_WORD_CHARACTERS = 128
/** Members of an item that may list its parts. */
const PART_LISTS = ['content', 'output'] as const
/** Bytes of the quotes and signs around each entry of a list or an object. */
const ENTRY_BYTES = 3

/** Bytes of a value as its provider reads it: of a text itself, of any other value about as JSON. */
function sizeOf(value: unknown): number {
  if (value == null) return 0
  if (typeof value === 'string') return textSize(value)
  if (typeof value !== 'object') return String(value).length
  let size = 0
  for (const [name, member] of Object.entries(value)) {
    size += ENTRY_BYTES + sizeOf(member) + (Array.isArray(value) ? 0 : textSize(name))
  }
  return size
}

/** Tokens of what an object holds beside words, and beside the members that are counted as something else. */
function tokensBeside(value: Readonly<Json>, counted: readonly string[]): number {
  let size = 0
  for (const [name, member] of Object.entries(value)) {
    const isWord = WORDS.has(name) && typeof member === 'string' && member.length <= MAX_WORD_CHARACTERS
    if (!isWord && !counted.includes(name)) size += sizeOf(member)
  }
  return estimateTokens(size)
}

/** Tokens of instructions and tools, as a session or a response sets them. */
const settingsTokens = ({ instructions, tools }: Readonly<Json>): number =>
  estimateTokens(sizeOf(instructions)) + (tools == null ? 0 : estimateTokens(textSize(JSON.stringify(tools))))

/** Returns the bytes per second of an audio format, as sessions name it. */
export const bytesPerSecond = (format: unknown): number =>
  isObject(format) && typeof format.type === 'string' && /pcm[ua]/.test(format.type)
    ? TELEPHONE_BYTES_PER_SECOND
    : PCM_BYTES_PER_SECOND

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

  /** All of an item counts as text, but for its audio and images. `rate`: bytes of a second of its audio. */
  item(item: unknown, rate: number): void {
    if (!isObject(item)) return
    const lists = PART_LISTS.filter(name => Array.isArray(item[name]))
    this.#text += tokensBeside(item, lists)
    for (const name of lists) for (const part of listIn(item[name])) this.#part(part, rate)
  }

  #part(part: unknown, rate: number): void {
    if (!isObject(part)) {
      this.#text += estimateTokens(sizeOf(part))
      return
    }
    const isImage = part.type === 'input_image'
    if (isImage) this.#images += this.#tokensOfImage
    this.addAudio(secondsOf(part.audio, rate))
    const media = typeof part.audio === 'string' ? ['audio'] : []
    if (isImage) media.push('image_url')
    this.#text += tokensBeside(part, media)
  }

  /** An item of so many seconds of audio. */
  addAudio(seconds: number): void {
    this.#audio += heardTokens(seconds)
  }

  /** Removes audio that the provider refused. */
  removeAudio(seconds: number): void {
    this.#audio = Math.max(0, this.#audio - heardTokens(seconds))
  }

  /**
   * A response with these settings of its own begins. What its provider reports to the result is what the next one reads, with
   * what has come meanwhile. One with input of its own adds its output only, and one beside the conversation nothing.
   */
  begin(own: Readonly<Json>): (report: Usage) => void {
    const before = { text: this.#text, audio: this.#audio, images: this.#images }
    // Instructions and tools of its own take the place of the session's, which the next one reads again.
    const leastText = own.instructions == null && own.tools == null ? 0 : before.text
    const ownText = settingsTokens(own)
    const isBeside = own.conversation === 'none'
    const readsIt = own.input == null
    // It is kept as long as the response runs, without `own`, which has up to a message.
    return ({ prompt = 0, completion = 0, input_audio = 0, output_audio = 0, image_input = 0 }) => {
      if (isBeside) return
      if (readsIt && prompt > 0) {
        this.#text += Math.max(leastText, prompt - input_audio - image_input - ownText) - before.text
        this.#audio += input_audio - before.audio
        this.#images += image_input - before.images
      }
      this.#text += Math.max(0, completion - output_audio)
      this.#audio += output_audio
    }
  }

  /**
   * Returns the expected usage of a response with these settings and `output` tokens. All of them may be audio when
   * `hasAudio` is set. `rate`: bytes per second of its own input.
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
