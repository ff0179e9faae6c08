/** Limits on money: their terms, and a hold for which one has no room. Money is nano-USD. */

import type { Period } from '../lib/period.ts'
import type { OnLimit } from './kinds.ts'

/** Terms of a limit. */
export interface LimitTerms {
  readonly id: string
  /** Kind of its subject, such as `key`. */
  readonly of: string
  readonly limit: bigint
  readonly period: Period | 'total'
  /** IANA time zone in which its periods begin. */
  readonly zone: string
  /** `refuse` where it is left out. */
  readonly onLimit?: OnLimit | undefined
}

/** A limit, the credits or the plan, without room for a hold. */
export interface Shortage {
  readonly exhausted: string
  /** Undefined for credits and plans. */
  readonly limitId?: string | undefined
  readonly period: Period | 'total'
  /** Amount that could still be held; never below 0. */
  readonly room: bigint
  /** Additional amount that would be available without the holds of other requests. */
  readonly held: bigint
}
