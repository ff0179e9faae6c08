/** Pins that the workers of one machine agree on: each tells the others what it has set. */
import { LRUCache } from 'lru-cache'
import type { Pins } from '../../core/ports.ts'

/** Those that were told last are remembered, so that they are not told again with every request. */
const MAX_TOLD = 20_000
/** Pins that were set are told together, so long after the first of them. */
const GATHER_MS = 20

export type Pin = readonly [key: string, offer: string, ttlMs: number]

/**
 * Whoever orders the workers' messages sends each to all of them, its sender included, so that the last one holds for
 * everybody. A pin that is set again, with the same offer, is told when half of its time is over.
 */
export class SharedPins implements Pins {
  readonly #own: Pins
  readonly #tell: (pins: readonly Pin[]) => void
  readonly #now: () => number
  readonly #told = new LRUCache<string, { readonly offer: string; readonly again: number }>({ max: MAX_TOLD })
  #gathered = new Map<string, Pin>()
  #timer: NodeJS.Timeout | undefined

  constructor(own: Pins, tell: (pins: readonly Pin[]) => void, now: () => number = () => performance.now()) {
    this.#own = own
    this.#tell = tell
    this.#now = now
  }

  get(key: string): string | undefined {
    return this.#own.get(key)
  }

  set(key: string, offer: string, ttlMs: number): void {
    this.#own.set(key, offer, ttlMs)
    const told = this.#told.get(key)
    if (told?.offer === offer && this.#now() < told.again) return
    this.#note(key, offer, ttlMs)
    this.#gathered.set(key, [key, offer, ttlMs])
    this.#timer ??= setTimeout(() => this.flush(), GATHER_MS).unref()
  }

  /** What a worker has told. */
  learn(pins: readonly Pin[]): void {
    for (const [key, offer, ttlMs] of pins) {
      this.#own.set(key, offer, ttlMs)
      this.#note(key, offer, ttlMs)
    }
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#gathered.size === 0) return
    const pins = [...this.#gathered.values()]
    this.#gathered = new Map()
    this.#tell(pins)
  }

  #note(key: string, offer: string, ttlMs: number): void {
    this.#told.set(key, { offer, again: this.#now() + ttlMs / 2 })
  }
}

/** What was told of pins, for a worker that comes later. */
export class PinBoard {
  readonly #pins: LRUCache<string, string>

  /** `now` is a clock in milliseconds, monotonic. */
  constructor(now: () => number = () => performance.now()) {
    this.#pins = new LRUCache({ max: MAX_TOLD, ttl: 1, ttlResolution: 0, perf: { now } })
  }

  note(pins: readonly Pin[]): void {
    for (const [key, offer, ttl] of pins) {
      // Of lru-cache's options, a ttl of 0 would mean for ever.
      if (ttl > 0) this.#pins.set(key, offer, { ttl })
      else this.#pins.delete(key)
    }
  }

  /** Those that hold still, for the rest of their time; the one that was told last comes last. */
  all(): Pin[] {
    const pins: Pin[] = []
    for (const key of this.#pins.rkeys()) {
      const offer = this.#pins.peek(key)
      if (offer !== undefined) pins.push([key, offer, this.#pins.getRemainingTTL(key)])
    }
    return pins
  }
}
