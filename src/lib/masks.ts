/** The masks of the credentials in use, kept for the next answer and for the log. */
import { Mask, type SentSecrets, SHORTEST } from './mask.ts'

const MAX_MASKS = 256
const MAX_BYTES = 32 * 1024 * 1024
/** Of the secrets, which are the key of their mask. */
const BYTES_PER_UNIT = 2

interface Bounds {
  readonly count: number
  readonly bytes: number
}

interface RecentMask {
  readonly mask: Mask
  readonly bytes: number
}

/**
 * Masks by secret, bounded in number and bytes. Beyond the number the one goes that was used least recently; beyond the bytes
 * the least recent of those that take more than their part of them, so that long credentials push out no ordinary ones.
 */
export class RecentMasks {
  /** The most recently used last. */
  readonly #masks = new Map<string, RecentMask>()
  readonly #bounds: Bounds
  #bytes = 0
  #last: RecentMask | undefined = undefined

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The mask of a credential and of what goes with it, made where there is none; undefined when all is too short. */
  of(secret: string, sent?: SentSecrets): Mask | undefined {
    if (secret.length < SHORTEST && sent === undefined) return undefined
    const key = sent === undefined ? secret : `${secret}\0${sent.key}`
    let entry = this.#masks.get(key)
    if (entry) {
      if (entry === this.#last) return entry.mask
      this.#masks.delete(key)
    } else {
      const mask = new Mask(secret, sent)
      entry = { mask, bytes: mask.bytes + key.length * BYTES_PER_UNIT }
      this.#makeRoom(entry.bytes)
      this.#bytes += entry.bytes
    }
    this.#masks.set(key, entry)
    this.#last = entry
    return entry.mask
  }

  /** `text` without any of the credentials. */
  clean(text: string): string {
    let clean = text
    for (const { mask } of this.#masks.values()) clean = mask.log(clean)
    return clean
  }

  #makeRoom(bytes: number): void {
    if (this.#masks.size >= this.#bounds.count) this.#drop(0)
    const part = this.#bounds.bytes / this.#bounds.count
    while (this.#bytes + bytes > this.#bounds.bytes) if (!this.#drop(part) && !this.#drop(0)) return
  }

  /** Drops the least recently used mask of more bytes than that; false when there is none. */
  #drop(above: number): boolean {
    for (const [secret, { bytes }] of this.#masks) {
      if (bytes <= above) continue
      this.#bytes -= bytes
      return this.#masks.delete(secret)
    }
    return false
  }
}

const masks = new RecentMasks({ count: MAX_MASKS, bytes: MAX_BYTES })

/** The cached mask of a credential and of what its provider gets beside it; undefined when all is too short. */
export const maskOf = (secret: string, sent?: SentSecrets): Mask | undefined => masks.of(secret, sent)

/** `text` without any credential in use. Costs one search per cached mask: for the log only. */
export const maskAll = (text: string): string => masks.clean(text)
