/** Kinds of rate limits, and what happens at one. docs/rate-limits.md has the same table. */

import { DAY_MS, HOUR_MS, MINUTE_MS } from '../lib/period.ts'

/** Units of limits. */
export type Counted = 'requests' | 'tokens' | 'input tokens' | 'output tokens'

/** A limit of what comes within a window. */
export interface WindowKind {
  readonly counts: Counted
  readonly windowMs: number
  /** Completes «60 requests per …». */
  readonly span: 'minute' | 'hour' | 'day'
}

const kind = (counts: Counted, span: WindowKind['span'], windowMs: number): WindowKind => ({ counts, windowMs, span })

/** Limits of what comes within a window, by the names that options and commands have for them. */
export const windowKinds = {
  rpm: kind('requests', 'minute', MINUTE_MS),
  rph: kind('requests', 'hour', HOUR_MS),
  rpd: kind('requests', 'day', DAY_MS),
  tpm: kind('tokens', 'minute', MINUTE_MS),
  tph: kind('tokens', 'hour', HOUR_MS),
  tpd: kind('tokens', 'day', DAY_MS),
  itpm: kind('input tokens', 'minute', MINUTE_MS),
  itph: kind('input tokens', 'hour', HOUR_MS),
  itpd: kind('input tokens', 'day', DAY_MS),
  otpm: kind('output tokens', 'minute', MINUTE_MS),
  otph: kind('output tokens', 'hour', HOUR_MS),
  otpd: kind('output tokens', 'day', DAY_MS),
} as const

/** The name of a kind that counts within a window. */
export type WindowKindName = keyof typeof windowKinds
/** The name of a kind; `concurrency` is of requests at a time. */
export type RateKind = WindowKindName | 'concurrency'

/** All names, in the order in which documents list them. */
export const rateKinds = [...Object.keys(windowKinds), 'concurrency'] as readonly RateKind[]

/** Action at a limit: a 429, nothing but an alert, or another model. */
export type OnLimit = 'refuse' | 'notify' | { readonly use: string }

const USE = 'use:'
/** Reads `refuse`, `notify` or `use:MODEL`. */
export const onLimitOf = (text: string): OnLimit =>
  text.startsWith(USE) ? { use: text.slice(USE.length) } : text === 'notify' ? text : 'refuse'
/** Writes what `onLimitOf` reads. */
export const onLimitText = (action: OnLimit): string => (typeof action === 'string' ? action : USE + action.use)

/** Limits of one subject. */
export type RateLimits = { readonly [K in RateKind]?: number | undefined } & {
  /** `refuse` where it is left out. */
  readonly on_limit?: OnLimit | undefined
}

/** A change of limits: null removes one, undefined leaves it. */
export type RateChange = { readonly [K in RateKind]?: number | null | undefined } & {
  readonly on_limit?: OnLimit | undefined
}

/** Limits that a command has set for a caller, or for what the caller is part of. */
export interface OwnLimits {
  readonly of: 'org' | 'project' | 'member' | 'key'
  readonly id: string
  readonly name: string
  readonly limits: RateLimits
}
