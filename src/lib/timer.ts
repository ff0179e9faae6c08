/** The longest time that a timer of Node knows, some 24 days: one that is set to more goes off at once. */
const LONGEST_MS = 2 ** 31 - 1

export const timerMs = (ms: number): number => Math.min(ms, LONGEST_MS)

/**
 * Aborts `signal` after so many milliseconds, or with `other`. Its timer holds the controller: a signal of
 * `AbortSignal.timeout` that only `AbortSignal.any` refers to can be collected as garbage before its time.
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

  /** The work is over, in time or not. Must be called. */
  end(): void {
    clearTimeout(this.#timer)
    this.#other?.removeEventListener('abort', this.#follow)
  }
}
