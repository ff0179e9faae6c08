/** One limit as it is counted for one subject. */

import { type OnLimit, type RateKind, type RateLimits, rateKinds, windowKinds } from '../../limits/kinds.ts'
import { type RatePolicy, ratePolicy } from './headers.ts'

/** Whom a limit counts for. */
export interface Subject {
  /** Words for its kind, such as `key` or `org-model`. */
  readonly kind: string
  /** Distinguishes it from all others, and stays the same across reloads. */
  readonly id: string
  /** Completes «The limit of …». */
  readonly label: string
}

/** A limit of a subject. */
export interface Limit {
  readonly kind: RateKind
  readonly limit: number
  readonly subject: Subject
  /** Key of its counter. */
  readonly key: string
  readonly onLimit: OnLimit
  /** Undefined for one of requests at a time, whose state no header shows. */
  readonly policy: RatePolicy | undefined
}

/** The limits of a subject that a rule or a command sets. */
export function limitsOf(limits: RateLimits, subject: Subject): Limit[] {
  const { on_limit: onLimit = 'refuse' } = limits
  return rateKinds.flatMap(kind => {
    const limit = limits[kind]
    if (limit === undefined) return []
    const policy = kind === 'concurrency' ? undefined : ratePolicy(`${subject.kind}-${kind}`, limit, windowKinds[kind])
    return [{ kind, limit, subject, key: `${subject.id} ${kind}`, onLimit, policy }]
  })
}

/** Whether it can be checked before the request is read: it counts requests, and names no other model. */
export const isEarly = ({ kind, onLimit }: Limit): boolean =>
  typeof onLimit === 'string' && (kind === 'concurrency' || windowKinds[kind].counts === 'requests')

/** Describes the limit for people: `60 requests per minute (rpm)`. */
export function described({ kind, limit }: Pick<Limit, 'kind' | 'limit'>): string {
  if (kind === 'concurrency') return `${limit} requests at a time (concurrency)`
  const { counts, span } = windowKinds[kind]
  return `${limit} ${counts} per ${span} (${kind})`
}
