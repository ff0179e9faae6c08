/** Realtime sessions: what configuration and wires say of them, and how each of their responses is paid for. */

import type { GatewayError } from '../lib/error.ts'
import type { Money } from './money.ts'
import type { Mapping } from './translator.ts'
import type { Usage } from './usage.ts'

/** `realtime` of gateway.yaml. Times in milliseconds. */
export interface RealtimeOptions {
  readonly enabled: boolean
  /** How long a session may last, and how long without a message of either side. */
  readonly session: number
  readonly idle: number
  /** Maximum cost of one session. */
  readonly spend: Money
  /** Sessions that are open at once: of an organization, of a key, and in one process. */
  readonly perOrganization: number
  readonly perKey: number
  readonly perProcess: number
  /** Bytes of a message. */
  readonly message: number
  /** Bytes a second that are read of the clients of an organization's sessions in one process, and of their providers. */
  readonly rate: number
}

/** Usage of one part of a session: a response of the model, or the transcript of a user's audio. */
export interface SessionPart {
  /** Unique within the session. */
  readonly id: string
  readonly usage: Usage
  /** `usage` is our estimate. */
  readonly estimated: boolean
  readonly outcome: 'ok' | 'error' | 'aborted'
  readonly failure?: GatewayError | undefined
  /** When it began, Unix milliseconds, and milliseconds until the first of its output. */
  readonly at: number
  readonly firstMs?: number | undefined
}

/** Sets the output tokens of a usage. Where audio is possible, all of them may be audio. */
export const withOutput = (usage: Usage, tokens: number): Usage =>
  usage.output_audio === undefined
    ? { ...usage, completion: tokens }
    : { ...usage, completion: tokens, output_audio: tokens }

/** Money that is held for one part of a session. */
export interface PartHold {
  /** Tokens of output that it paid for when it was made. */
  readonly output: number
  /** Holds more, as `usage` is now expected to be. False when there is no money for it. Rejects when the ledger fails. */
  extend(usage: Usage): Promise<boolean>
  /** Notes what the part has come to: that is charged when the process ends before it settles. */
  note(usage: Usage): void
  /** Charges what it came to, durably; returns that, null where its price is unknown. */
  settle(part: SessionPart): Promise<Money | null>
  release(): void
}

/** How the parts of one session are paid for. */
export interface SessionCharges {
  /**
   * Holds what a part is expected to cost, at the price of the session's mapping or of another one of its provider. Throws
   * the refusal: no money, a limit, a key that has ended.
   */
  hold(expected: Usage, mapping?: Mapping): Promise<PartHold>
  /** Holds money for a response. With less money, the output of the response is limited to it. */
  holdResponse(expected: Usage): Promise<PartHold>
}
