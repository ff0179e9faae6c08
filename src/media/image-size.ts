/** Sizes of images as requests name them: `1024x1536`, or a class such as `2K` (docs/money.md#media-prices). */

/** In pixels. */
interface ImageSize {
  readonly width: number
  readonly height: number
}

/** Pixels up to which an image is of the class. */
const CLASS_1K = 1_600_000
const CLASS_2K = 5_000_000

/** `1024x1536` → its pixels; undefined for a class and for none. */
export function imageSizeOf(size: string | undefined): ImageSize | undefined {
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
