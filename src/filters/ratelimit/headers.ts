/** Headers that show the state of rate limits: the fields of the IETF's draft, and those of the field. */

import type { Quota } from '../../core/ports.ts'
import type { WindowKind } from '../../limits/kinds.ts'

/** A limit with the texts of its headers. */
export interface RatePolicy {
  readonly name: string
  readonly unit: 'requests' | 'tokens'
  readonly limit: number
  readonly windowMs: number
  readonly limitText: string
  readonly text: string
}

export function ratePolicy(name: string, limit: number, { counts, windowMs }: WindowKind): RatePolicy {
  const unit = counts === 'requests' ? counts : 'tokens'
  const text = `"${name}";q=${limit};w=${windowMs / 1000}`
  return { name, unit, limit, windowMs, limitText: String(limit), text }
}

/** One limit with its state. */
export interface Shown {
  readonly policy: RatePolicy
  readonly quota: Quota
}

/** Whether `one` has less of its limit left than `other`. */
const isNearer = (one: Shown, other: Shown): boolean =>
  one.quota.remaining * other.policy.limit < other.quota.remaining * one.policy.limit

const nearest = (all: readonly Shown[]): Shown | undefined =>
  all.reduce<Shown | undefined>((near, one) => (near && !isNearer(one, near) ? near : one), undefined)

const resetOf = ({ windowMs }: RatePolicy, { resetMs }: Quota): number =>
  Math.min(windowMs / 1000, Math.max(1, Math.ceil(resetMs / 1000)))

/** Headers of one limit. */
export function headersOf(policy: RatePolicy, quota: Quota, now: number): string[] {
  const { name, limitText, text } = policy
  const reset = resetOf(policy, quota)
  const remaining = String(quota.remaining)
  return [
    'ratelimit-policy',
    text,
    'ratelimit',
    `"${name}";r=${remaining};t=${reset}`,
    'ratelimit-limit',
    limitText,
    'ratelimit-remaining',
    remaining,
    'ratelimit-reset',
    String(reset),
    'x-ratelimit-limit',
    limitText,
    'x-ratelimit-remaining',
    remaining,
    'x-ratelimit-reset',
    String(Math.ceil(now / 1000) + reset),
  ]
}

/** Headers of the nearest limit, and, under the names that OpenAI has, of the nearest ones of requests and of tokens. */
export function headersOfAll(all: readonly Shown[], now: number): string[] {
  const first = nearest(all)
  if (!first) return []
  const headers = headersOf(first.policy, first.quota, now)
  for (const unit of ['requests', 'tokens'] as const) {
    const shown = nearest(all.filter(({ policy }) => policy.unit === unit))
    if (!shown) continue
    headers.push(`x-ratelimit-limit-${unit}`, shown.policy.limitText)
    headers.push(`x-ratelimit-remaining-${unit}`, String(shown.quota.remaining))
    headers.push(`x-ratelimit-reset-${unit}`, `${resetOf(shown.policy, shown.quota)}s`)
  }
  return headers
}

/** The pairs of a list of headers. */
export function asRecord(pairs: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {}
  for (let at = 0; at < pairs.length; at += 2) record[pairs[at]!] = pairs[at + 1]!
  return record
}
