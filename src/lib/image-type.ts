/** Recognizes images by their first bytes: declared types may be wrong (docs/edge-cases.md#requests R1). */

const SIGNS = [
  [/^\x89PNG/, 'image/png'],
  [/^\xff\xd8\xff/, 'image/jpeg'],
  [/^GIF8/, 'image/gif'],
  [/^RIFF.{4}WEBP/s, 'image/webp'],
] as const
/** A media type that is recognized. */
export type ImageType = (typeof SIGNS)[number][1]

/** Bytes of the head that identify the type. */
export const IMAGE_HEAD = 12

/** The media type by magic bytes; undefined for anything that is not PNG, JPEG, GIF or WebP. */
export function imageType(head: Buffer): ImageType | undefined {
  const text = head.toString('latin1', 0, IMAGE_HEAD)
  return SIGNS.find(([sign]) => sign.test(text))?.[1]
}
