/** Images of a request that stand at addresses, for targets that take them as data only. */

import type { ChatRequest, ContentPart, Message } from '../../core/chat-request.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { Op, Ops } from '../../core/ops.ts'
import type { Services as AllServices, MediaFetcher } from '../../core/ports.ts'
import type { LoadedMedia, MediaByAddress } from '../../core/wire.ts'
import { isObject } from '../../json/json.ts'
import { errors } from '../../lib/error.ts'
import { isAddress } from '../../lib/url.ts'
import { type Addressed, addPlace, addressesOf } from './addresses.ts'
import { MediaLease } from './media-lease.ts'

/** Different addresses in one request. */
const MAX_ADDRESSES = 20
/** Maximum bytes of an image over all places that refer to it: each place gets a copy. */
const MAX_IMAGE_BYTES = 32 * 1024 * 1024
/** Base64 has four characters for three bytes. */
const EXPANSION = 4 / 3

type ImagePart = Extract<ContentPart, { type: 'image_url' }>
type Edit = Ops['image_edits']
type Input = Edit['images'][number]
/** A request beside chat, whose images are inputs of its own. */
type WithInputs = { readonly model: string } & {
  readonly [field in (typeof INPUTS)[number]]?: Input | readonly Input[]
}

/** The fields of edits and videos that hold images. */
const INPUTS = ['images', 'mask', 'image', 'last_frame', 'reference_images'] as const
type Services = Pick<AllServices, 'media' | 'memory'>

/** Fetches every address once for all attempts of a request, and keeps what is there until the request ends. */
export class Images {
  readonly #services: Services
  readonly #fetched = new WeakMap<Exchange, Fetched>()

  constructor(services: Services) {
    this.#services = services
  }

  /**
   * A copy of `request` with data URLs in place of addresses, or itself when it has none. Rejects with the 400 that
   * names the first part whose image cannot be had.
   */
  inlined(ex: Exchange, request: Ops[Op]): Ops[Op] | Promise<Ops[Op]> {
    const addresses = addressesIn(request)
    if (addresses.size === 0) return request
    let fetched = this.#fetched.get(ex)
    if (!fetched) {
      fetched = new Fetched(ex, addresses, this.#services)
      this.#fetched.set(ex, fetched)
    }
    return fetched.images.then(images => withImages(request, images))
  }

  /** Returns the images that were fetched for the request. */
  loaded(ex: Exchange): MediaByAddress {
    return this.#fetched.get(ex)?.loaded ?? NO_MEDIA
  }

  /** The request has ended. */
  release(ex: Exchange): void {
    this.#fetched.get(ex)?.release()
  }
}

const NO_MEDIA: MediaByAddress = new Map()

/** The images of one request, on their way or here. */
class Fetched {
  /** Data URLs by address. */
  readonly images: Promise<ReadonlyMap<string, string>>
  /** The images, once they are loaded. */
  loaded: MediaByAddress | undefined
  readonly #lease: MediaLease
  #bytes = 0

  constructor(ex: Exchange, addresses: ReadonlyMap<string, Addressed>, { media, memory }: Services) {
    this.#lease = new MediaLease(ex, memory)
    this.images = this.#lease.during(ex, () => this.#all(addresses, media))
  }

  release(): void {
    this.#lease.release()
  }

  /** One that fails ends the others. */
  async #all(addresses: ReadonlyMap<string, Addressed>, media: MediaFetcher): Promise<ReadonlyMap<string, string>> {
    const [, { param: last }] = [...addresses].at(-1)!
    if (addresses.size > MAX_ADDRESSES) {
      throw errors.invalidField(last, `at most ${MAX_ADDRESSES} images of a request are fetched.`)
    }
    const { tenant, signal } = this.#lease
    const one = async ([url, { param, count }]: [string, Addressed]) => {
      const take = (bytes: number) => this.#take(bytes * count, param)
      return [url, await media.image({ url, param, tenant, signal, take })] as const
    }
    const images = await Promise.all([...addresses].map(one))
    this.loaded = new Map(images.map(([url, image]) => [url, mediaOf(image)]))
    return new Map(images)
  }

  #take(bytes: number, param: string): void {
    this.#bytes += bytes
    if (this.#bytes > MAX_IMAGE_BYTES) throw errors.imageTooLarge(MAX_IMAGE_BYTES, param)
    this.#lease.take(Math.ceil(bytes * EXPANSION))
  }
}

/** Reads a data URL. */
function mediaOf(image: string): LoadedMedia {
  const comma = image.indexOf(',')
  return { type: image.slice('data:'.length, image.indexOf(';')), base64: image.slice(comma + 1) }
}

const NONE: ReadonlyMap<string, Addressed> = new Map()

/** Images of a request that stand at addresses. */
export function addressesIn(request: Ops[Op]): ReadonlyMap<string, Addressed> {
  if ('messages' in request) return request.messages.some(isRemoteMessage) ? addressesOf(request, addressOf) : NONE
  return isJudged(request) ? addressesOfParts(request) : addressesOfInputs(request as WithInputs)
}

function withImages(request: Ops[Op], images: ReadonlyMap<string, string>): Ops[Op] {
  if ('messages' in request) return replaced(request, images)
  return isJudged(request) ? replacedParts(request, images) : replacedInputs(request, images)
}

const isRemote = (part: ContentPart): part is ImagePart => part.type === 'image_url' && isAddress(part.image_url.url)
const isRemoteMessage = ({ content }: Message): boolean => Array.isArray(content) && content.some(isRemote)
const addressOf = (part: ContentPart): string | undefined => (isRemote(part) ? part.image_url.url : undefined)

function replaced(request: ChatRequest, images: ReadonlyMap<string, string>): ChatRequest {
  const inline = (part: ContentPart): ContentPart =>
    isRemote(part) ? { ...part, image_url: { ...part.image_url, url: images.get(part.image_url.url)! } } : part
  const inMessage = (message: Message): Message =>
    Array.isArray(message.content) && message.content.some(isRemote)
      ? { ...message, content: message.content.map(inline) }
      : message
  return { ...request, messages: request.messages.map(inMessage) }
}

/** Every address of inputs, with its fields as a JSON body has them. */
function addressesOfInputs(request: WithInputs): ReadonlyMap<string, Addressed> {
  if (!INPUTS.some(name => request[name] !== undefined)) return NONE
  const addresses = new Map<string, Addressed>()
  const see = ({ url }: Input, param: string) => {
    if (url !== undefined && isAddress(url)) addPlace(addresses, url, param)
  }
  for (const name of INPUTS) {
    const field = request[name]
    if (isList(field)) for (const [index, input] of field.entries()) see(input, `${name}[${index}].image_url`)
    else if (field) see(field, `${name}.image_url`)
  }
  return addresses
}

function replacedInputs<T extends Ops[Op]>(request: T, images: ReadonlyMap<string, string>): T {
  const inline = (input: Input): Input =>
    input.url !== undefined && isAddress(input.url) ? { url: images.get(input.url)! } : input
  const replaced: Partial<Record<(typeof INPUTS)[number], Input | readonly Input[]>> = {}
  for (const name of INPUTS) {
    const field = (request as WithInputs)[name]
    if (field) replaced[name] = isList(field) ? field.map(inline) : inline(field)
  }
  return { ...request, ...replaced }
}

const isList = (field: Input | readonly Input[] | undefined): field is readonly Input[] => Array.isArray(field)

type Judged = Ops['moderations']
type JudgedPart = Extract<Judged['input'][number], object>

/** Tells whether a request is a moderation with parts, which may be images. */
const isJudged = (request: Ops[Op]): request is Judged =>
  'input' in request && Array.isArray(request.input) && isObject(request.input[0])
const isImagePart = (part: unknown): part is Extract<JudgedPart, { type: 'image_url' }> =>
  isObject(part) && part.type === 'image_url'

function addressesOfParts({ input }: Judged): Map<string, Addressed> {
  const addresses = new Map<string, Addressed>()
  for (const [index, part] of (input as readonly JudgedPart[]).entries()) {
    if (isImagePart(part) && isAddress(part.image_url.url)) {
      addPlace(addresses, part.image_url.url, `input[${index}].image_url.url`)
    }
  }
  return addresses
}

const replacedParts = (request: Judged, images: ReadonlyMap<string, string>): Judged => ({
  ...request,
  input: (request.input as readonly JudgedPart[]).map(
    (part): JudgedPart =>
      isImagePart(part) && isAddress(part.image_url.url)
        ? { type: 'image_url', image_url: { url: images.get(part.image_url.url)! } }
        : part,
  ),
})
