/** Width and height of an image by `image-size`, which the first request with one loads, and sizes as requests name them. */
import { type MediaBudget, type MediaFile, spend } from './source.ts'

/** In pixels. */
export interface Dimensions {
  readonly width: number
  readonly height: number
}

/** Bytes that are looked through, one number after the other: metadata may stand before the pixels. */
const HEADS = [1024, 64 * 1024]
/** Work for each of these bytes, and for each step that the library takes in them. */
const BYTE_WORK = 1 / 50
const STEP_WORK = 1.5

/**
 * Whole signs of what is read, by which the library finds its reader at once. On any other file it tries those of all types:
 * of that for SVG, a text of 1,000 characters takes a millisecond.
 */
const PNG = '\x89PNG\r\n\x1a\n'
const OTHERS = /^(?:\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBPVP8)/s
const SIGN_CHARACTERS = 15

/** Undefined for another type than PNG, JPEG, GIF and WebP, and for a head that does not say its size. */
export async function imageDimensions(file: MediaFile, budget: MediaBudget): Promise<Dimensions | undefined> {
  const begin = file.read(0, SIGN_CHARACTERS).toString('latin1')
  if (!begin.startsWith(PNG) && !OTHERS.test(begin)) return undefined
  const { imageSize } = await import('image-size')
  for (const bytes of HEADS) {
    if (!spend(budget, BYTE_WORK * Math.min(bytes, file.size))) return undefined
    try {
      SteppedBytes.budget = budget
      const { width, height } = imageSize(new SteppedBytes(file.read(0, bytes)))
      return width > 0 && height > 0 ? { width, height } : undefined
    } catch {
      // The size may stand behind these bytes.
      if (file.size <= bytes) return undefined
    }
  }
  return undefined
}

/** Bytes that end a reader which goes through them one by one: each step is work. */
class SteppedBytes extends Uint8Array {
  /** The budget of the image that is read, which takes one step of the event loop. */
  static budget: MediaBudget = { work: 0 }

  override subarray(begin?: number, end?: number): Uint8Array<ArrayBuffer> {
    if (!spend(SteppedBytes.budget, STEP_WORK)) throw new Error('the budget of media is spent')
    return super.subarray(begin, end) as Uint8Array<ArrayBuffer>
  }

  override slice(begin?: number, end?: number): Uint8Array<ArrayBuffer> {
    if (!spend(SteppedBytes.budget, STEP_WORK)) throw new Error('the budget of media is spent')
    return super.slice(begin, end) as Uint8Array<ArrayBuffer>
  }
}

/** Pixels up to which an image is of the class. */
const CLASS_1K = 1_600_000
const CLASS_2K = 5_000_000

/** `1024x1536` → its pixels; undefined for a class and for none. */
export function imageSizeOf(size: string | undefined): Dimensions | undefined {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(size ?? '') ?? []
  return width === undefined ? undefined : { width: Number(width), height: Number(height) }
}

/** Returns the price class of a size: `1k` for small or unstated sizes. */
export function imageClassOf(size: string | undefined): '1k' | '2k' | '4k' {
  if (/^[24]k$/i.test(size ?? '')) return size!.toLowerCase() as '2k' | '4k'
  const { width, height } = imageSizeOf(size) ?? { width: 0, height: 0 }
  const pixels = width * height
  return pixels <= CLASS_1K ? '1k' : pixels <= CLASS_2K ? '2k' : '4k'
}

/** Requested width over height: of `aspect_ratio`, else of `size`. Undefined when the request sets neither. */
export function aspectOf(ratio: string | undefined, size: string | undefined): number | undefined {
  const { width, height } = imageSizeOf(ratio?.replace(':', 'x') ?? size) ?? { width: 0, height: 0 }
  return height === 0 ? undefined : width / height
}

/** Returns the entry of `names` (`16:9` or `1536x1024`) closest to `aspect`. Undefined for an empty list. */
export function nearestAspect(names: readonly string[], aspect: number): string | undefined {
  const distance = (name: string) => {
    const { width, height } = imageSizeOf(name.replace(':', 'x')) ?? { width: 0, height: 0 }
    return width * height === 0 ? Number.POSITIVE_INFINITY : Math.abs(Math.log(width / height / aspect))
  }
  let best: string | undefined
  for (const name of names) if (best === undefined || distance(name) < distance(best)) best = name
  return best
}
