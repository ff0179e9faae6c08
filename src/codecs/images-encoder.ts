/** Writes images answers: whole, and as typed events (docs/contract.md#images). */
import type { Event, ImageDescription } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { GatewayError } from '../lib/error.ts'
import { IMAGE_HEAD_BYTES, imageType } from '../media/type.ts'
import type { Base64Slice, GeneratedImage, GeneratedImages } from '../operations/images/request.ts'
import { costDetails, usdOf } from './accounting.ts'
import { type Result, TypedEncoder } from './whole.ts'

/** Consecutive pieces of an answer: large images are inserted without copies. */
class Pieces {
  readonly #pieces: Buffer[] = []
  #text = ''

  add(text: string): void {
    this.#text += text
  }

  /** As the content of a JSON string. */
  base64(data: string | Base64Slice): void {
    this.#pieces.push(Buffer.from(this.#text), typeof data === 'string' ? Buffer.from(data, 'latin1') : data.bytes)
    this.#text = ''
  }

  end(): Buffer[] {
    this.#pieces.push(Buffer.from(this.#text))
    return this.#pieces
  }
}

/** One JSON object with the images in base64, which are not copied. */
export function wholeImages({ value }: Result, ex: Exchange): readonly Buffer[] {
  const { created = now(), images, background, output_format, quality, size } = value as GeneratedImages
  const out = new Pieces()
  out.add(`{"created":${created},"data":[`)
  for (const [index, { b64, revised_prompt }] of images.entries()) {
    out.add(`${index > 0 ? ',' : ''}{"b64_json":"`)
    out.base64(b64)
    out.add(revised_prompt === undefined ? '"}' : `","revised_prompt":${JSON.stringify(revised_prompt)}}`)
  }
  const described =
    'images' in ex.request! ? { background, output_format: output_format ?? formatOf(images[0]!), quality, size } : {}
  const rest = JSON.stringify({ ...described, usage: usageOf(ex) })
  out.add(`],${rest.slice(1)}`)
  return out.end()
}

/** Typed events `<prefix>.partial_image` and `<prefix>.completed`, the last one with usage. */
export class StreamedImages extends TypedEncoder {
  readonly #prefix: 'image_generation' | 'image_edit'
  #answer: GeneratedImages | undefined

  constructor(ex: Exchange, prefix: 'image_generation' | 'image_edit') {
    super(ex)
    this.#prefix = prefix
  }

  write(batch: readonly Event[]): Buffer | undefined {
    let out: Pieces | undefined
    for (const event of batch) {
      if (event.type === 'result') this.#answer = event.value as GeneratedImages
      if (event.type !== 'partial_image') continue
      out ??= new Pieces()
      const { b64, index, description } = event
      this.#event(out, 'partial_image', { b64 }, description, { partial_image_index: index, created_at: now() })
    }
    return out && Buffer.concat(out.end())
  }

  end(): Buffer {
    this.ex.meter.complete(false)
    const answer = this.#answer!
    const { created = now(), images } = answer
    const out = new Pieces()
    for (const [index, image] of images.entries()) {
      const usage = index === images.length - 1 ? { usage: usageOf(this.ex) } : {}
      this.#event(out, 'completed', image, answer, { created_at: created }, usage)
    }
    return Buffer.concat(out.end())
  }

  override fail(error: GatewayError): string {
    this.ex.meter.complete(true)
    return super.fail(error)
  }

  #event(
    out: Pieces,
    kind: 'partial_image' | 'completed',
    image: GeneratedImage,
    { background = 'auto', output_format, quality = 'auto', size = 'auto' }: ImageDescription,
    about: object,
    usage: object = {},
  ): void {
    const type = `${this.#prefix}.${kind}`
    out.add(`event: ${type}\ndata: {"type":"${type}","b64_json":"`)
    out.base64(image.b64)
    const format = output_format ?? formatOf(image)
    const rest = JSON.stringify({ ...about, background, output_format: format, quality, size, ...usage })
    out.add(`",${rest.slice(1)}\n\n`)
  }
}

const now = (): number => Math.floor(Date.now() / 1000)

/** `png`, by the first bytes. Decoders pass only images. */
function formatOf({ b64 }: GeneratedImage): string | undefined {
  const head = typeof b64 === 'string' ? b64.slice(0, HEAD_CHARACTERS) : b64.text(HEAD_CHARACTERS)
  return imageType(Buffer.from(head, 'base64'))?.replace('image/', '')
}
const HEAD_CHARACTERS = (IMAGE_HEAD_BYTES / 3) * 4

/** Unreported counts are 0. */
function usageOf(ex: Exchange): object {
  const { prompt = 0, image_input = 0, completion = 0, image_output = completion } = ex.estimated ? {} : ex.usage
  return {
    input_tokens: prompt,
    input_tokens_details: { image_tokens: image_input, text_tokens: Math.max(0, prompt - image_input) },
    output_tokens: completion,
    output_tokens_details: { image_tokens: image_output, text_tokens: Math.max(0, completion - image_output) },
    total_tokens: prompt + completion,
    cost: usdOf(ex),
    cost_details: costDetails(ex.meter.cost, ex),
  }
}
