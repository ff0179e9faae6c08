/** One request to a provider, signed and ready. */
import type { Cancellation } from '../core/cancel.ts'
import type { Timeouts } from '../core/provider-settings.ts'
import type { Provider } from '../core/translator.ts'
import type { WireRequest } from '../core/wire.ts'
import type { Content } from './content.ts'
import type { CalledProvider } from './in-flight-count.ts'

/** All that `Transport.send` needs of one attempt. */
export interface UpstreamRequest {
  /** Provider whose calls are counted together, with their maximum. */
  readonly provider: CalledProvider & Pick<Provider, 'egress'>
  readonly method: NonNullable<WireRequest['method']>
  readonly baseUrl: string
  /** Added to the path of `baseUrl`. */
  readonly path: string
  /** Names and values in turn. */
  readonly headers: string[]
  readonly body: Content['body']
  readonly timeouts: Pick<Timeouts, 'connect' | 'idle'>
  /** Milliseconds that the first event may take. */
  readonly firstEventMs: number
  /** Milliseconds that remain of the request's total time. */
  readonly remainingMs: number
  readonly signal: Cancellation
  /** Notes that the provider has all of the request. */
  readonly receipt: { atProvider: boolean; connectMs?: number | undefined }
  /**
   * Handling of a client that leaves. False: the answer is read to its end, because its provider charges for all of it.
   * True: the call is cancelled at once. Unset: it is read briefly, to get the provider's usage report.
   */
  readonly cancellable?: boolean | undefined
  /** Organization whose share of open calls, and of calls without a client, is used. */
  readonly tenant: string
  /** On a socket of its own, since one that had been open before was not there any more. */
  readonly fresh?: boolean
}
