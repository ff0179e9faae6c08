/** Signals that an exchange is over. An AbortSignal costs a tenth of a small request; this nothing. */
import type { GatewayError } from '../lib/error.ts'

/** The state of one exchange: alive, or over for a reason. It holds one listener and one who waits at a time. */
export class Cancellation {
  /** Why; undefined while the exchange lives. */
  reason: GatewayError | undefined = undefined
  #listener: (() => void) | undefined = undefined
  #waiting: (() => void) | undefined = undefined

  get aborted(): boolean {
    return this.reason !== undefined
  }

  /** The first reason stays. */
  abort(reason: GatewayError): void {
    if (this.reason) return
    this.reason = reason
    this.#listener?.()
    this.#waiting?.()
  }

  /** Resolves when `ready` does, or as soon as the exchange is over. `ready` must not reject. */
  async until(ready: Promise<void>): Promise<void> {
    if (this.reason) return
    const over = new Promise<void>(resolve => {
      this.#waiting = resolve
    })
    await Promise.race([ready, over])
    this.#waiting = undefined
  }

  /** One listener at a time: the attempt that runs. It is called at once when the exchange is over already. */
  listen(listener: () => void): void {
    this.#listener = listener
    if (this.reason) listener()
  }

  /** Ends the attempt that runs, but not the exchange. */
  cut(): void {
    this.#listener?.()
  }

  ignore(listener: () => void): void {
    if (this.#listener === listener) this.#listener = undefined
  }
}
