/** The answer of an exchange: how it is shown, and how it ended. Its events are not kept; what it used is metered. */
import type { GatewayError } from '../lib/error.ts'
import type { Money } from './money.ts'
import type { StoppedBy } from './outbound.ts'
import type { Replayed } from './ports/cache.ts'
import type { HealingSkipped } from './ports/telemetry.ts'

/** `aborted`: the caller left before the end. */
export type Outcome = 'ok' | 'error' | 'aborted'

export class Answer {
  /** Status that the client got; 0 until the answer begins. */
  status = 0
  outcome: Outcome | undefined = undefined
  /** The failure, before or after the first byte. */
  failure: GatewayError | undefined = undefined
  /** Headers of a 200 that are independent of the provider: a stream may begin before the provider is known. */
  headers: readonly string[] = []
  /** False when the client's wire shows reasoning only on request and it was not requested. Set by the codec. */
  showsReasoning = true
  /** The answer ends only when its client closes it: a drain does not wait for it. */
  endsOnDrain = false
  /** Origin of an answer replayed from the response cache. */
  cached: Replayed | undefined = undefined
  servedTier: string | undefined = undefined
  /** The provider's identification of the answering system. */
  fingerprint: string | undefined = undefined
  /** Why healing was requested but skipped; undefined when the answer was checked. */
  healingSkipped: HealingSkipped | undefined = undefined
  /** The gateway ended the answer before its model did. */
  isCut = false
  /** The limit that ended the answer, or bounded it. */
  stoppedBy: StoppedBy | undefined = undefined
  /** Part of a failed answer that is charged: all of it, or the answered parts of its request. */
  billedFailure: 'whole' | 'parts' | undefined = undefined
  /** `Exchange.count` gets the answer before `Exchange.observe` does. */
  isCounted = false
  /** Charge for storing request and answer; undefined when nothing is stored. */
  storage: Money | undefined = undefined
}
