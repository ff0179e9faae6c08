/** Longest delay of a Node timer, about 24 days: a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** A delay that `setTimeout` takes: at most the longest one. */
export const timerMs = (ms: number): number => Math.min(ms, MAX_TIMER_MS)

/** Resolves or rejects as `work` does; resolves with `late` where that takes longer than so many milliseconds. */
export function atMost<T, L>(ms: number, work: Promise<T>, late: L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined
  const elapsed = new Promise<L>(resolve => {
    timer = setTimeout(resolve, timerMs(ms), late)
  })
  return Promise.race([work, elapsed]).finally(() => clearTimeout(timer))
}

/**
 * Aborts `signal` after a delay in milliseconds, or together with `other`. The timer refers to the controller: a signal
 * of `AbortSignal.timeout` that only `AbortSignal.any` refers to can be collected before its time.
 */
export class Deadline {
  readonly #controller = new AbortController()
  readonly #timer: NodeJS.Timeout
  readonly #other: AbortSignal | undefined
  readonly #follow = () => this.#controller.abort(this.#other?.reason)

  constructor(ms: number, other?: AbortSignal) {
    const late = () => this.#controller.abort(new DOMException('The deadline has passed.', 'TimeoutError'))
    this.#timer = setTimeout(late, timerMs(ms))
    this.#other = other
    if (other?.aborted) this.#follow()
    else other?.addEventListener('abort', this.#follow, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Ends the deadline, whether it passed or not. Must be called. */
  end(): void {
    clearTimeout(this.#timer)
    this.#other?.removeEventListener('abort', this.#follow)
  }
}
