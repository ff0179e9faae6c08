/** Width and height of an image by `image-size`, which the first request with an image loads. */
import { type MediaBudget, type MediaFile, spend } from './source.ts'
import { IMAGE_HEAD, imageType } from './type.ts'

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

/** Undefined for another type than PNG, JPEG, GIF and WebP, and for a head that does not say its size. */
export async function imageDimensions(file: MediaFile, budget: MediaBudget): Promise<Dimensions | undefined> {
  if (imageType(file.read(0, IMAGE_HEAD)) === undefined) return undefined
  const { imageSize } = await loaded()
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

const READ = ['png', 'jpg', 'gif', 'webp']
let library: Promise<typeof import('image-size')> | undefined

/** Readers of other types are turned off: an image whose head lies reaches none of them. */
function loaded(): Promise<typeof import('image-size')> {
  library ??= import('image-size').then(found => {
    found.disableTypes(found.types.filter(type => !READ.includes(type)))
    return found
  })
  return library
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
