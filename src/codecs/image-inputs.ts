/** The images of an edit, in a JSON body or in a form, as official clients send them (docs/contract.md#images). */

import type { Exchange } from '../core/exchange.ts'
import { Form, type Upload } from '../lib/body.ts'
import { errors } from '../lib/error.ts'
import { IMAGE_HEAD_BYTES, imageType } from '../media/type.ts'
import { type ImageEditBody, type ImageInput, imageEditForm, MAX_IMAGES } from '../operations/images/request.ts'
import { withoutSpace } from '../wire/wire.ts'
import { formBody } from './form.ts'
import { assertImageUrl } from './url.ts'
import { type Validator, validator } from './validate.ts'

/** A PNG up to the end of its header chunk (PNG specification, section 5.6). */
const PNG_HEAD_BYTES = 33
const MAX_FILE_BYTES = 50 * 1024 * 1024
/** Base64 characters that hold the head of an image. */
const HEAD_CHARACTERS = (PNG_HEAD_BYTES / 3) * 4

const validateForm = validator(imageEditForm)

interface Edit {
  readonly body: Omit<ImageEditBody, 'images' | 'mask'>
  readonly images: readonly ImageInput[]
  readonly mask: ImageInput | undefined
}

/** Throws a GatewayError that names the field. */
export function editFrom(given: unknown, validate: Validator<ImageEditBody>, ex?: Exchange): Edit {
  const edit = given instanceof Form ? ofForm(given, ex) : ofJson(validate(given))
  checkMask(edit)
  return edit
}

function ofJson(body: ImageEditBody): Edit {
  const images = body.images.map(({ image_url: url }, index) => imageFromUrl(url, `images[${index}].image_url`))
  return { body, images, mask: body.mask ? imageFromUrl(body.mask.image_url, 'mask.image_url') : undefined }
}

function ofForm(form: Form, ex?: Exchange): Edit {
  const { fields, files } = formBody(form, imageEditForm, ex?.input)
  const body = validateForm(fields)
  const images = ['image', 'images'].flatMap(name => [
    ...(files.get(name) ?? []).map(file => imageFromFile(file, name)),
    ...(body[name as 'image' | 'images'] ?? []).map(url => imageFromUrl(url, name)),
  ])
  if (images.length === 0) throw errors.invalidField('image', 'is required')
  if (images.length > MAX_IMAGES) throw errors.invalidField('image', `at most ${MAX_IMAGES} are accepted`)
  const [file, second] = files.get('mask') ?? []
  if (second || (file && body.mask !== undefined))
    throw errors.invalidFormData('"mask" takes one value, but occurs twice')
  const mask = file
    ? imageFromFile(file, 'mask')
    : body.mask === undefined
      ? undefined
      : imageFromUrl(body.mask, 'mask')
  return { body, images, mask }
}

/** Throws a GatewayError for a file that is too large or not an image. */
export function imageFromFile(file: Upload, param: string): ImageInput {
  if (file.size > MAX_FILE_BYTES) throw errors.fileTooLarge(MAX_FILE_BYTES, param)
  const type = imageType(file.head(IMAGE_HEAD_BYTES))
  if (type === undefined) throw errors.fileNotAnImage(param)
  return { file, type }
}

/** Throws a GatewayError for an address that is not public, and for data that is not an image; it loses its line breaks. */
export function imageFromUrl(given: string, param: string): ImageInput {
  assertImageUrl(given, param)
  if (!/^data:/i.test(given)) return { url: given }
  // Once, and not for each request that stands for this one.
  const url = withoutSpace(given)
  const type = imageType(headOf(url))
  if (type === undefined) throw errors.fileNotAnImage(param)
  return { url, type }
}

/** The first bytes of a data URL; its line breaks count as characters. */
function headOf(url: string): Buffer {
  const data = url.indexOf(',') + 1
  const text = url.slice(data, data + 2 * HEAD_CHARACTERS).replace(/\s/g, '')
  return Buffer.from(text.slice(0, HEAD_CHARACTERS), 'base64')
}

/** A mask covers the first image. Compares sizes when both are PNG files. */
function checkMask({ images: [first], mask }: Edit): void {
  if (!mask || mask.type === undefined) return
  const param = 'mask'
  if (mask.type !== 'image/png') throw errors.invalidParameters('mask: must be a PNG', param)
  const [own, wanted] = [sizeOf(mask), sizeOf(first!)]
  if (own === undefined || wanted === undefined || own === wanted) return
  throw errors.invalidParameters(`mask: must have the size of the first image, ${wanted}, but has ${own}`, param)
}

/** Returns the size of a PNG; undefined for other images. */
function sizeOf({ file, url = '', type }: ImageInput): string | undefined {
  if (type !== 'image/png') return undefined
  const head = file ? file.head(PNG_HEAD_BYTES) : headOf(url)
  const isHeader = head.length >= PNG_HEAD_BYTES && head.toString('latin1', 12, 16) === 'IHDR'
  return isHeader ? `${head.readUInt32BE(16)}x${head.readUInt32BE(20)}` : undefined
}
