/** Sizes for wires that have proportions and classes in their place (docs/contract.md#image-wires). */
import { aspectOf, type ImageRequest, nearestAspect } from '../../../src/plugin.ts'

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
