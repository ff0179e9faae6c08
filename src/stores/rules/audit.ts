/** Lines of the audit log. */
import { formatMoney } from '../../core/money.ts'
import type { Actor } from '../../core/ports.ts'

/** One line: a record before and after a change. */
export interface Note {
  readonly actor: Actor
  readonly action: string
  /** Id; null when all organizations are concerned. */
  readonly organization: string | null
  readonly subject: string
  readonly was: unknown
  readonly became: unknown
}

/** A record as JSON, with amounts as decimal strings of USD; null for an absent one. */
export const auditText = (value: unknown): string | null =>
  value === null || value === undefined
    ? null
    : JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? formatMoney(inner) : inner))

/** What `auditText` has written; null for an absent record. */
export const auditValue = (text: string | null): unknown => (text === null ? null : JSON.parse(text))
