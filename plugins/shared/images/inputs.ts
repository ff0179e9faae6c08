/** Images of a request as wires send them, and sizes in the words of wires (docs/contract.md#image-wires). */
import {
  aspectOf,
  errors,
  type ImageInput,
  type ImageRequest,
  nearestAspect,
  parseDataUrl,
  perObject,
  type WireRequest,
} from '../../../src/plugin.ts'

type FilePart = NonNullable<WireRequest['files']>[number]

/** Holds the decoded parts of a data URL. */
interface ImageData {
  readonly base64: string
  pieces?: readonly Buffer[]
}

/**
 * To read a large image takes tens of milliseconds, and its memory: requests that stand for one share it. Addresses were
 * fetched before: a wire that sends images as data has `inlineMedia`.
 */
const dataOf = perObject((input: ImageInput): ImageData => {
  const data = parseDataUrl(input.url ?? '')
  if (!data) throw errors.internal(new Error('an image was not fetched'))
  return data
})

/** Without its type. */
export const base64Of = (input: ImageInput): string => input.file?.base64() ?? dataOf(input).base64

/** Characters that hold the type of a data URL. */
const HEAD_CHARACTERS = 1024

/** `image/png`, as its first bytes prove. */
export const typeOf = ({ type, url = '' }: ImageInput): string =>
  type ?? parseDataUrl(url.slice(0, HEAD_CHARACTERS))?.mime ?? 'image/png'

/** As a data URL, or the address that it has. */
export const urlOf = (input: ImageInput): string => input.url ?? input.file!.base64(`data:${typeOf(input)};base64,`)

/** As a file of a form, without its client's name. */
export function fileOf(input: ImageInput, name: string, basename: string): FilePart {
  const contentType = typeOf(input)
  const extension = contentType === 'image/jpeg' ? 'jpg' : contentType.slice('image/'.length)
  const pieces = input.file?.pieces ?? piecesOf(dataOf(input))
  return { name, filename: `${basename}.${extension}`, contentType, pieces }
}

const piecesOf = (data: ImageData): readonly Buffer[] => {
  data.pieces ??= [Buffer.from(data.base64, 'base64')]
  return data.pieces
}

/** The nearest of `ratios`; undefined where the request leaves it to the provider. */
export function ratioFor(
  { aspect_ratio, size }: Readonly<ImageRequest>,
  ratios: readonly string[],
): string | undefined {
  const aspect = aspectOf(aspect_ratio, size)
  return aspect === undefined ? undefined : nearestAspect(ratios, aspect)
}

/** So many pixels in these proportions, with sides that are multiples of `step`. */
export function pixelsFor(aspect: number, pixels: number, step: number): { width: number; height: number } {
  const side = (length: number) => Math.max(step, Math.round(length / step) * step)
  const height = Math.sqrt(pixels / aspect)
  return { width: side(height * aspect), height: side(height) }
}
