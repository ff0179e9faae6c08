/** Images of a request as wires send them. */
import { errors, type ImageInput, parseDataUrl, type WireRequest } from '../../../src/plugin.ts'

type FilePart = NonNullable<WireRequest['files']>[number]

/** Without its type. Addresses were fetched before: a wire that sends images as data has `inlineMedia`. */
export function base64Of({ file, url = '' }: ImageInput): string {
  if (file) return file.base64()
  const data = parseDataUrl(url)
  if (!data) throw errors.internal(new Error('an image was not fetched'))
  return data.base64
}

/** `image/png`, as its first bytes prove. */
export const typeOf = ({ type, url = '' }: ImageInput): string => type ?? parseDataUrl(url)?.mime ?? 'image/png'

/** As a data URL, or the address that it has. */
export const urlOf = (input: ImageInput): string => input.url ?? input.file!.base64(`data:${typeOf(input)};base64,`)

/** As a file of a form, without its client's name. */
export function fileOf(input: ImageInput, name: string, basename: string): FilePart {
  const contentType = typeOf(input)
  const extension = contentType === 'image/jpeg' ? 'jpg' : contentType.slice('image/'.length)
  const pieces = input.file?.pieces ?? [Buffer.from(base64Of(input), 'base64')]
  return { name, filename: `${basename}.${extension}`, contentType, pieces }
}
