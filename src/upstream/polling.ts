/** Ends the polls of a job. A client that leaves does not end them, because a job cannot be cancelled. */
import { Cancellation } from '../core/cancel.ts'
import { CLIENT_CLOSED, errors, type GatewayError } from '../lib/error.ts'
import type { UpstreamRequest } from './upstream-request.ts'

/** From `begin` to `end` it listens to the signal of an exchange, in the place of what is read for it. */
export class Polling {
  /** Signal for reading. */
  readonly signal = new Cancellation()
  /** The job is polled on though its client has left. */
  hasLeft = false
  /** A job runs that has not made its answer yet. */
  runs = false
  readonly #outer: Cancellation
  readonly #cancellable: UpstreamRequest['cancellable']

  /** `cancellable`: true where the provider charges no more once it is left, so that nothing is polled on. */
  constructor(outer: Cancellation, cancellable: UpstreamRequest['cancellable']) {
    this.#outer = outer
    this.#cancellable = cancellable
  }

  begin(): void {
    this.#outer.listen(this.#ended)
  }

  end(): void {
    this.#outer.ignore(this.#ended)
  }

  /**
   * Returns the error to report for `thrown`. Once the client has left, only the provider's own answers count as its
   * failure.
   */
  failure(thrown: GatewayError): GatewayError {
    const isUnseen = thrown.upstreamStatus === undefined || thrown.code === 'timeout'
    return this.hasLeft && isUnseen ? this.#reason : thrown
  }

  get #reason(): GatewayError {
    return this.#outer.reason ?? errors.aborted()
  }

  readonly #ended = (): void => {
    const isLeft = this.#outer.reason?.status === CLIENT_CLOSED
    // The second time the gateway is to give up.
    if (isLeft && this.runs && !this.hasLeft && this.#cancellable !== true) this.hasLeft = true
    else this.signal.abort(this.#reason)
  }
}
