/** Answers in the form of OpenAI's images, whole and as events, which others give too (docs/contract.md#images). */
import {
  countIn,
  type Decoder,
  type Event,
  errors,
  type FoundImage,
  type FoundImages,
  type Frame,
  GatewayError,
  type GeneratedImage,
  type ImageDescription,
  type ImageRequest,
  ImagesDecoder,
  imageEvents,
  isObject,
  type Json,
  objectIn,
  readProviderError,
  type Target,
  textIn,
  type Usage,
} from '../../../src/plugin.ts'
import { errorIn } from '../answer.ts'
import { imageAnswer, imageIn, parsedImages } from './base64.ts'

const FILTERED = 'The provider refused every image because of its content.'

/** The decoder of one answer; a stream ends when as many images as requested have come. */
export const openAiImages = (mode: 'stream' | 'unary', target: Target, input?: Readonly<ImageRequest>): Decoder =>
  mode === 'stream' ? new EventDecoder(target, input!.n) : new ImagesDecoder(input!.n, frame => read(frame, target))

function read(frame: Frame, target: Target): FoundImages {
  const { answer, slices } = imageAnswer(frame, 'b64_json')
  if (!isObject(answer) || !Array.isArray(answer.data)) {
    throw errorIn(answer, 'list of images', target)
  }
  const images: FoundImage[] = []
  let refused: string | undefined
  for (const entry of answer.data.filter(isObject)) {
    const url = textIn(entry.url)
    const b64 = textIn(entry.b64_json) ?? (url?.startsWith('data:') ? url : undefined)
    const revised_prompt = textIn(entry.revised_prompt)
    if (entry.respect_moderation === false) refused = FILTERED
    else if (b64 !== undefined) images.push({ b64: imageIn(b64, slices), revised_prompt })
    else if (url !== undefined) images.push({ url, revised_prompt })
  }
  const created = Number.isInteger(answer.created) ? (answer.created as number) : undefined
  return { created, images, refused, usage: usageIn(answer.usage), ...descriptionOf(answer) }
}

/** Tokens as reported; output tokens without details count as image tokens (docs/contract.md#image-wires). */
function usageIn(usage: unknown): Usage {
  if (!isObject(usage)) return {}
  const { input_tokens_details, output_tokens_details } = usage
  const prompt = countIn(usage.input_tokens)
  const completion = countIn(usage.output_tokens)
  if (prompt === undefined && completion === undefined) return {}
  const input = objectIn(input_tokens_details)
  const output = objectIn(output_tokens_details)
  return {
    prompt: prompt ?? 0,
    image_input: countIn(input.image_tokens) ?? 0,
    completion: completion ?? 0,
    image_output: countIn(output.image_tokens) ?? completion ?? 0,
  }
}

const descriptionOf = ({ background, output_format, quality, size }: Json): ImageDescription => ({
  background: textIn(background),
  output_format: textIn(output_format),
  quality: textIn(quality),
  size: textIn(size),
})

/** `image_generation.*` or `image_edit.*`; ends by itself when all images are there. */
class EventDecoder implements Decoder {
  readonly #target: Target
  readonly #wanted: number
  readonly #images: GeneratedImage[] = []
  readonly #usage: Usage = {}
  #about: ImageDescription & { created?: number } = {}
  #failed = false

  constructor(target: Target, wanted: number) {
    this.#target = target
    this.#wanted = wanted
  }

  get done(): boolean {
    return this.#failed || this.#images.length >= this.#wanted
  }

  frame(frame: Frame): Event[] {
    if (frame.data === '[DONE]') return []
    try {
      return this.#read(parsedImages(frame))
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      this.#failed = true
      return [{ type: 'error', error: thrown }]
    }
  }

  end(): Event[] {
    if (this.#failed) return []
    if (this.#images.length === 0) return [{ type: 'error', error: errors.truncated() }]
    return imageEvents({ ...this.#about, images: this.#images.slice(0, this.#wanted), usage: this.#usage })
  }

  #read(event: unknown): Event[] {
    const { type = '', b64_json: b64, partial_image_index: index, created_at: created } = objectIn(event)
    const kind = typeof type === 'string' ? type.split('.')[1] : undefined
    if (!isObject(event) || (kind !== 'partial_image' && kind !== 'completed')) {
      if (readProviderError(event)) throw errorIn(event, 'image', this.#target)
      return []
    }
    const image = imageIn(textIn(b64) ?? '') as string
    const description = descriptionOf(event)
    if (kind === 'partial_image') {
      // None of it counts as an image, whatever becomes of the answer.
      return [
        { type: 'usage', usage: { output_images: 0 } },
        { type: 'partial_image', index: countIn(index) ?? 0, b64: image, description },
      ]
    }
    this.#images.push({ b64: image })
    const usage = usageIn(event.usage)
    for (const axis of Object.keys(usage) as (keyof Usage)[]) {
      this.#usage[axis] = (this.#usage[axis] ?? 0) + usage[axis]!
    }
    this.#about = { ...description, ...(Number.isInteger(created) && { created: created as number }) }
    return []
  }
}
