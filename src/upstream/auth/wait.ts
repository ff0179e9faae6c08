/** Waiting for what several requests share: one of them may be over before it comes. */
import type { Cancellation } from '../../core/cancel.ts'
import { errors, type GatewayError } from '../../lib/error.ts'
import { timerMs } from '../../lib/timer.ts'

/** Returns the result of `promise`. Rejects when the exchange ends earlier, or after `ms` milliseconds. */
export function waitFor<T>(promise: Promise<T>, ms: number, signal: Cancellation): Promise<T> {
  return new Promise((resolve, reject) => {
    const settle = () => {
      clearTimeout(timer)
      signal.ignore(abort)
    }
    const fail = (error: GatewayError) => {
      settle()
      reject(error)
    }
    const timer = setTimeout(() => fail(errors.upstreamTimeout('total time')), timerMs(Math.max(1, ms)))
    const abort = () => fail(signal.reason ?? errors.aborted())
    promise.then(value => {
      settle()
      resolve(value)
    }, fail)
    signal.listen(abort)
  })
}
