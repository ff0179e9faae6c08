/** Canonical requests and answers of `POST /v1/images/generations` and `/v1/images/edits` (docs/contract.md#images). */

import type { ImageDescription } from '../../core/event.ts'
import { type Infer, s } from '../../core/schema.ts'
import type { Upload } from '../../lib/body.ts'
import type { ImageType } from '../../media/type.ts'

/** Images of one edit request. */
export const MAX_IMAGES = 16

/** `null` counts as absent. */

const common = {
  model: s.maybe(s.string({ minLength: 1, maxLength: 256 })),
  prompt: s.string({ minLength: 1, maxLength: 32_000 }),
  n: s.maybe(s.integer({ minimum: 1, maximum: 10 })),
  size: s.maybe(
    s.string({
      pattern: '^(?:auto|[124][Kk]|512|[1-9]\\d{1,4}x[1-9]\\d{1,4})$',
      description: 'a size such as "1024x1024", "auto", "1K", "2K" or "4K"',
    }),
  ),
  aspect_ratio: s.maybe(
    s.string({ pattern: '^[1-9]\\d{0,2}:[1-9]\\d{0,2}$', description: 'an aspect ratio such as "16:9"' }),
  ),
  response_format: s.maybe(s.enum('b64_json')),
  moderation: s.maybe(s.enum('auto', 'low')),
  service_tier: s.maybe(s.enum('auto', 'default', 'flex', 'priority')),
  background: s.maybe(s.enum('transparent', 'opaque', 'auto')),
  output_format: s.maybe(s.enum('png', 'jpeg', 'webp')),
  output_compression: s.maybe(s.integer({ minimum: 0, maximum: 100 })),
  stream: s.maybe(s.boolean()),
  partial_images: s.maybe(s.integer({ minimum: 0, maximum: 3 })),
  user: s.maybe(s.string()),
}

/** As clients send it (OpenAI's images API); unknown fields are ignored. */
export const imageBody = s.open({
  ...common,
  quality: s.maybe(s.enum('standard', 'hd', 'low', 'medium', 'high', 'xhigh', 'max', 'auto')),
  style: s.maybe(s.enum('vivid', 'natural')),
})
/** A valid body of `/v1/images/generations`. */
export type ImageBody = Infer<typeof imageBody>

const edits = {
  ...common,
  quality: s.maybe(s.enum('low', 'medium', 'high', 'xhigh', 'max', 'auto')),
  input_fidelity: s.maybe(s.enum('high', 'low')),
}
const reference = s.open({ image_url: s.string({ minLength: 1 }) })

/** The JSON body of an edit; see `imageEditForm` for the other one. */
export const imageEditBody = s.open({
  ...edits,
  images: s.array(reference, { minItems: 1, maxItems: MAX_IMAGES }),
  mask: s.maybe(reference),
})
/** A valid JSON body of `/v1/images/edits`. */
export type ImageEditBody = Infer<typeof imageEditBody>

/** The texts of a form. Its images are files, or texts in their place. */
export const imageEditForm = s.open({
  ...edits,
  image: s.optional(s.array(s.string())),
  images: s.optional(s.array(s.string())),
  mask: s.optional(s.string()),
})

/** The canonical request; undefined for what the client left out. */
export interface ImageRequest {
  readonly model: string
  readonly prompt: string
  readonly n: number
  /** `1024x1024`, `512`, `1K`, `2K` or `4K`; undefined for what the provider chooses. */
  readonly size: string | undefined
  /** Wins over `size`. */
  readonly aspect_ratio: string | undefined
  readonly quality: ImageBody['quality'] & (string | undefined)
  readonly style?: 'vivid' | 'natural' | undefined
  readonly moderation: 'auto' | 'low' | undefined
  readonly service_tier: 'auto' | 'default' | 'flex' | 'priority' | undefined
  readonly background: 'transparent' | 'opaque' | 'auto' | undefined
  readonly output_format: 'png' | 'jpeg' | 'webp' | undefined
  readonly output_compression: number | undefined
  readonly stream: boolean
  readonly partial_images: number | undefined
  /** The organization, whatever the caller says of its own users. */
  readonly user: string | undefined
  /** Tokens that there is money for, all of the answer together, where that is less than is sent otherwise. */
  readonly max_output?: number | undefined
}

/** A quality by its level; `standard` and `hd` are what models without levels call two of them. */
export function levelOf(quality: ImageRequest['quality']) {
  if (quality === 'standard') return 'medium'
  return quality === 'hd' ? 'high' : quality
}

/** An image of the request: an address, a data URL, or a file of a form. */
export interface ImageInput {
  readonly url?: string
  readonly file?: Upload
  /** As its first bytes prove; undefined for what is not here yet. */
  readonly type?: ImageType
}

/** An image request with at least one input image. */
export interface ImageEditRequest extends ImageRequest {
  readonly images: readonly ImageInput[]
  /** A PNG. */
  readonly mask: ImageInput | undefined
  readonly input_fidelity: 'high' | 'low' | undefined
}

/** Base64 as it stands in a provider's answer, so that a large image is not copied. */
export class Base64Slice {
  /** Base64 characters (RFC 4648 section 4), without line breaks. */
  readonly bytes: Buffer

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  /** Returns the first `length` characters, or all. */
  text(length?: number): string {
    return this.bytes.toString('latin1', 0, length)
  }

  /** For stores, which keep JSON. */
  toJSON(): string {
    return this.text()
  }
}

/** An image of a `result`; `b64` is base64 without a data URL around it. */
export interface GeneratedImage {
  readonly b64: string | Base64Slice
  /** As the provider reports it. */
  readonly revised_prompt?: string | undefined
}

/** The value of the `result` of an images answer. */
export interface GeneratedImages extends ImageDescription {
  /** Unix seconds, as the provider says. */
  readonly created?: number | undefined
  /** At least one, and no more than were wanted. */
  readonly images: readonly GeneratedImage[]
}

declare module '../../core/ops.ts' {
  interface Ops {
    images: ImageRequest
    image_edits: ImageEditRequest
  }
}
