/** Addresses of images, for wires that take both URLs and data (edge case R1). */
import { errors, parseDataUrl, sniffImage } from '../../../src/plugin.ts'

const IMAGES = 'a JPEG, PNG, GIF or WebP image'

/**
 * An http(s) address unchanged; a data URL in plain form, with the media type of its first bytes. Throws 400 for any
 * other address and for data that is not an image.
 */
export function imageUrl(url: string, at: string): string {
  if (/^https?:\/\//i.test(url)) return url
  const parsed = parseDataUrl(url)
  if (!parsed) throw errors.invalidParameters(`${at} must be an https URL, or a data URL of ${IMAGES}.`, at)
  const mime = sniffImage(parsed.base64)
  if (!mime) throw errors.invalidParameters(`${at} does not hold ${IMAGES}.`, at)
  return `data:${mime};base64,${parsed.base64}`
}
