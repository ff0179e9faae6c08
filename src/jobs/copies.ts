/** Bytes that running copies of results have written: the store counts a result when its copy has ended. */

/** One copy that runs. */
export interface Copy {
  /** Counts a chunk. False where there is no room for it: then nothing of the copy stays. */
  take(bytes: number): boolean
  /** `kept`: what it wrote stays, and the store counts it from now on. */
  end(kept: boolean): void
}

interface Counted {
  /** Maximum bytes that all copies together may write, including this one. */
  readonly limit: number
  own: number
}

/** Counts the bytes of concurrent copies. */
class Written {
  /** Bytes of running copies, and of copies kept since the first of these began. */
  #bytes = 0
  #unfinished = 0
  /** Copies that use it. */
  running = 0

  /** `room`: bytes that are free by the store's count. */
  begin(room: number): Counted {
    return { limit: this.#bytes + room - this.#unfinished, own: 0 }
  }

  /** Whether it fits. */
  take(copy: Counted, bytes: number): boolean {
    copy.own += bytes
    this.#unfinished += bytes
    this.#bytes += bytes
    return this.#bytes <= copy.limit
  }

  /** Subtracts a copy that was deleted (`kept` false) or has finished. */
  release(copy: Counted, kept: boolean): void {
    this.#unfinished -= copy.own
    if (!kept) this.#bytes -= copy.own
    copy.own = 0
  }
}

/** All copies of this process, and those of each organization. */
export class Copies {
  readonly #all = new Written()
  readonly #own = new Map<string, Written>()

  /** `room`: bytes that are free by the store's count, of everything and of the organization's share. */
  begin(orgId: string, room: { readonly all: number; readonly own: number }): Copy {
    const everything = this.#all
    const share = this.#own.get(orgId) ?? new Written()
    this.#own.set(orgId, share)
    share.running++
    const [ofAll, ofShare] = [everything.begin(room.all), share.begin(room.own)]
    const release = (kept: boolean) => {
      everything.release(ofAll, kept)
      share.release(ofShare, kept)
    }
    return {
      take(bytes) {
        const fits = everything.take(ofAll, bytes)
        if (share.take(ofShare, bytes) && fits) return true
        release(false)
        return false
      },
      end: kept => {
        release(kept)
        share.running--
        if (share.running === 0) this.#own.delete(orgId)
      },
    }
  }
}
