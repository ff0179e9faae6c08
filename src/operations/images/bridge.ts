/** Images from chat wires, and chat from images wires (docs/contract.md#bridges). */

import type { ChatRequest, ContentPart } from '../../core/chat-request.ts'
import type { Event } from '../../core/event.ts'
import type { Op } from '../../core/ops.ts'
import type { FanOut, Target, Translator } from '../../core/translator.ts'
import { applyReport, textSize, type Usage } from '../../core/usage.ts'
import type { Decoder, Frame } from '../../core/wire.ts'
import { errors } from '../../lib/error.ts'
import { perObject } from '../../lib/per-object.ts'
import { parseDataUrl, sniffImage, textOf } from '../../wire/wire.ts'
import { commonTier, type FoundImage, ImagesDecoder, imageFanOut } from './decoder.ts'
import { type GeneratedImages, type ImageEditRequest, type ImageInput, type ImageRequest, levelOf } from './request.ts'
import { imageOutput } from './tokens.ts'

type Wires = ReadonlyMap<Op, Translator>
/** Maximum images of one chat request. */
const MAX_N = 10

/** The wire of a mapping for an operation; undefined for none, and for one that is another's itself. */
const ownWire = <O extends Op>(wires: Wires, op: O): Translator<O> | undefined => {
  const wire = wires.get(op) as Translator<O> | undefined
  return wire?.bridged ? undefined : wire
}

/** Images or edits by the mapping's chat wire; undefined where it has none. */
export function imagesOverChat(
  op: 'images' | 'image_edits',
  wires: Wires,
): Translator<'images' | 'image_edits'> | undefined {
  const chat = ownWire(wires, 'chat')
  if (!chat) return undefined
  return {
    op,
    wire: chat.wire,
    bridged: true,
    ...(chat.inlineMedia && { inlineMedia: true }),
    ...(chat.identities && { identities: chat.identities }),
    lacks: LACKS,
    fanOut: imageFanOut(() => 1),
    encode(request, target) {
      const output = imageOutput(request, target.mapping)
      const encoded = chat.encode(chatRequestOf(request, output.limit), target, false)
      // A wire that sends another limit says so.
      return { ...encoded, output: { ...output, ...encoded.output } }
    },
    decoder(mode, target, input) {
      const { limit } = imageOutput(input!, target.mapping)
      return new ChatImagesDecoder(chat.decoder(mode, target, chatRequestOf(input!, limit)), input!.n)
    },
    error: chat.error,
  }
}

const LACKS: ReadonlySet<string> = new Set(['mask', 'background', 'output_format'])

/** One message: the images, and then the prompt. */
function chatRequestOf(request: Readonly<ImageRequest | ImageEditRequest>, limit: number): ChatRequest {
  const { model, prompt, n, size, aspect_ratio, quality, moderation, user, service_tier } = request
  const images = 'images' in request ? request.images : []
  const parts: ContentPart[] = images.map(input => ({ type: 'image_url', image_url: { url: urlOf(input) } }))
  const image_quality = levelOf(quality)
  return {
    model,
    messages: [{ role: 'user', content: parts.length === 0 ? prompt : [...parts, { type: 'text', text: prompt }] }],
    max_tokens: limit,
    image_config: {
      n,
      ...(aspect_ratio !== undefined && { aspect_ratio }),
      ...(size !== undefined && { image_size: size }),
      ...(image_quality !== undefined && { image_quality }),
      ...(moderation !== undefined && { moderation }),
    },
    ...(user !== undefined && { user }),
    ...(service_tier !== undefined && { service_tier }),
  }
}

const urlOf = ({ url, file, type }: ImageInput): string => url ?? file!.base64(`data:${type};base64,`)

/** Images among the events of a chat answer; what it says besides is dropped, but counted. */
class ChatImagesDecoder implements Decoder {
  readonly #chat: Decoder
  readonly #images: FoundImage[] = []
  readonly #decoder: ImagesDecoder
  readonly #usage: Usage = {}
  /** Bytes of what it says besides. */
  #written = 0
  #refused: string | undefined
  #tier: string | undefined
  #ended = false

  constructor(chat: Decoder, wanted: number) {
    this.#chat = chat
    this.#decoder = new ImagesDecoder(wanted, () => {
      throw errors.invalidAnswer('it continues after its end')
    })
  }

  get done(): boolean {
    return this.#ended ? this.#decoder.done : this.#chat.done
  }

  frame(frame: Frame): Event[] {
    return this.#ended ? this.#decoder.frame(frame) : this.#collect(this.#chat.frame(frame))
  }

  end(): Event[] {
    if (this.#ended) return this.#decoder.end()
    const failures = this.#collect(this.#chat.end())
    this.#ended = true
    if (failures.length > 0) return failures
    return this.#decoder.found({
      images: this.#images,
      refused: this.#refused,
      usage: this.#usage,
      tier: this.#tier,
      written: this.#written,
    })
  }

  /** Keeps images and usage for the end; only failures are passed on, with the usage before them. */
  #collect(events: readonly Event[]): Event[] {
    for (const event of events) {
      switch (event.type) {
        case 'image':
          this.#images.push(imageOf(event.url))
          break
        case 'usage':
          applyReport(this.#usage, event.usage)
          break
        case 'tier':
          this.#tier = event.tier
          break
        case 'text':
        case 'reasoning':
          this.#written += textSize(event.text)
          break
        case 'refusal':
          this.#refused = event.text
          this.#written += textSize(event.text)
          break
        case 'finish':
          if (event.reason === 'content_filter') {
            this.#refused ??= 'The provider refused to make the image because of its content.'
          }
          break
        case 'error':
          return [{ type: 'usage', usage: this.#usage }, event]
      }
    }
    return []
  }
}

function imageOf(url: string): FoundImage {
  const data = parseDataUrl(url)
  return data ? { b64: data.base64 } : { url }
}

/** Chat by the mapping's images wires; undefined where it has none. */
export function chatOverImages(wires: Wires): Translator<'chat'> | undefined {
  const images = ownWire(wires, 'images')
  const edits = ownWire(wires, 'image_edits')
  if (!images && !edits) return undefined
  const callOf = (request: Readonly<ChatRequest>): ImageCall => {
    const input = imageRequestOf(request)
    const translator = input.images.length > 0 ? edits : images
    if (translator) return { input, translator }
    const what = input.images.length > 0 ? 'takes no images' : 'needs an input image'
    throw errors.unsupported(`"${request.model}" ${what} here.`, 'messages')
  }
  return {
    op: 'chat',
    wire: (images ?? edits)!.wire,
    bridged: true,
    ...((images?.inlineMedia || edits?.inlineMedia) && { inlineMedia: true }),
    fanOut: fanOut(callOf, images ?? edits!),
    encode(request, target) {
      refuse(request)
      const { input, translator } = callOf(request)
      return translator.encode(input, target, false)
    },
    decoder(mode, target, request) {
      const { input, translator } = callOf(request!)
      return new ImagesChatDecoder(translator.decoder(mode, target, input))
    },
    error: (images ?? edits)!.error,
  }
}

/** The image request of a chat request, and the wire that carries it. */
interface ImageCall {
  readonly input: ImageEditRequest
  readonly translator: Translator<'images' | 'image_edits'>
}

/** Rejects chat features that a pure image model lacks. */
function refuse({ model, tools, response_format: format }: Readonly<ChatRequest>): void {
  const param = tools?.length ? 'tools' : format && format.type !== 'text' ? 'response_format' : undefined
  if (param) throw errors.unsupported(`"${model}" makes only images. Leave out "${param}".`, param)
}

type ImagePart = Extract<ContentPart, { type: 'image_url' }>

/** Returns the same input for the same part, so that several requests read its image once. */
const inputOf = perObject((part: ImagePart): ImageInput => ({ url: part.image_url.url }))

const imagesOf = (config: ChatRequest['image_config']): number => Math.min(MAX_N, Math.floor(config?.n ?? 1))

/** The last user message: its text is the prompt. */
function imageRequestOf({
  model,
  messages,
  image_config: config,
  user,
  service_tier,
  max_tokens,
}: Readonly<ChatRequest>): ImageEditRequest {
  const content = messages.findLast(({ role }) => role === 'user')?.content
  const prompt = textOf(content)
  if (prompt === '') throw errors.invalidField('messages', 'the last user message must say what to draw')
  const parts = Array.isArray(content) ? content : []
  return {
    model,
    prompt,
    n: imagesOf(config),
    size: config?.image_size === 'auto' ? undefined : config?.image_size,
    aspect_ratio: config?.aspect_ratio,
    quality: config?.image_quality,
    moderation: config?.moderation,
    service_tier: service_tier ?? undefined,
    background: undefined,
    output_format: undefined,
    output_compression: undefined,
    stream: false,
    partial_images: undefined,
    user: user ?? undefined,
    max_output: max_tokens ?? undefined,
    images: parts.flatMap(part => (part.type === 'image_url' ? [inputOf(part)] : [])),
    mask: undefined,
    input_fidelity: undefined,
  }
}

/** Splits by images, as the wire itself does. A single end of all answers is kept. */
const fanOut = (
  callOf: (request: Readonly<ChatRequest>) => ImageCall,
  { fanOut: own }: Translator<'images' | 'image_edits'>,
): FanOut<'chat'> => ({
  repeats: true,
  count: ({ image_config: config }, target) => own?.count({ n: imagesOf(config) } as ImageRequest, target) ?? 1,
  split(request, target: Target) {
    const { input, translator } = callOf(request)
    const parts = translator.fanOut?.split(input, target) ?? [input]
    return parts.map(({ n }) => ({ ...request, image_config: { ...request.image_config, n } }))
  },
  join: answers => [...commonTier(answers), ...answers.flat().filter(({ type }) => type === 'image'), FINISH],
})
const FINISH: Event = { type: 'finish', choice: 0, reason: 'stop' }

/** Images as those of a chat answer. */
class ImagesChatDecoder implements Decoder {
  readonly #images: Decoder

  constructor(images: Decoder) {
    this.#images = images
  }

  get done(): boolean {
    return this.#images.done
  }

  frame(frame: Frame): Event[] {
    return this.#images.frame(frame).flatMap(chatEvents)
  }

  end(): Event[] {
    return this.#images.end().flatMap(chatEvents)
  }
}

/** One event of an images answer, in the terms of chat. */
function chatEvents(event: Event): Event[] {
  if (event.type === 'partial_image') return []
  if (event.type !== 'result') return [event]
  const images = (event.value as GeneratedImages).images.map(({ b64 }): Event => {
    const base64 = typeof b64 === 'string' ? b64 : b64.text()
    return { type: 'image', choice: 0, url: `data:${sniffImage(base64)};base64,${base64}` }
  })
  return [...images, FINISH]
}
