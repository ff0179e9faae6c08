/** What an image's first bytes prove about its type: whoever declares it may be wrong (edge case R1). */

const SIGNS = [
  [/^\x89PNG/, 'image/png'],
  [/^\xff\xd8\xff/, 'image/jpeg'],
  [/^GIF8/, 'image/gif'],
  [/^RIFF.{4}WEBP/s, 'image/webp'],
] as const
export type ImageType = (typeof SIGNS)[number][1]

/** Bytes that are enough to tell. */
export const IMAGE_HEAD = 12

/** The media type of an image that begins so; undefined for what is none. */
export function imageType(head: Buffer): ImageType | undefined {
  const text = head.toString('latin1', 0, IMAGE_HEAD)
  return SIGNS.find(([sign]) => sign.test(text))?.[1]
}
