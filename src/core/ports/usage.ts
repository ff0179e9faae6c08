/** Usage summed by the hour, which outlives the request rows; and these rows. */
import type { Money } from '../money.ts'
import type { RequestRow } from './ledger.ts'

/** Selects usage by owner and time; an absent id does not narrow the selection. */
export interface UsageQuery {
  readonly orgId?: string | undefined
  readonly projectId?: string | undefined
  readonly keyId?: string | undefined
  /** Unix milliseconds, `from` inclusive, `to` exclusive. */
  readonly from: number
  readonly to: number
}

/** Groups for the usage of one project, and for all usage. */
export const reportGroups = ['provider', 'model', 'app', 'api_key'] as const
export type ReportGroup = (typeof reportGroups)[number]
export const usageGroups = [...reportGroups, 'project', 'member', 'day', 'end_user'] as const
export type UsageGroup = (typeof usageGroups)[number] | `tag:${string}`

/** Sums of a group; days are UTC. Keys, projects and members have a name beside their id. */
export type GroupTotals = UsageTotals & { readonly id: string; readonly name?: string }

/** Sums of requests. */
export interface UsageTotals {
  readonly requests: number
  readonly errors: number
  readonly cached: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
  readonly reasoningTokens: number
  /** Cost of all providers' work, paid by credits or by own keys; storage is beside it. */
  readonly cost: Money
  /** The part of it that credits paid. */
  readonly creditsCost: Money
  /** The part that callers paid to providers, with keys of their own. */
  readonly byokCost: Money
  readonly storageCost: Money
}

/** Returns the sums of both. */
export const addedTotals = (a: UsageTotals, b: UsageTotals): UsageTotals => ({
  requests: a.requests + b.requests,
  errors: a.errors + b.errors,
  cached: a.cached + b.cached,
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  cachedTokens: a.cachedTokens + b.cachedTokens,
  reasoningTokens: a.reasoningTokens + b.reasoningTokens,
  cost: a.cost + b.cost,
  creditsCost: a.creditsCost + b.creditsCost,
  byokCost: a.byokCost + b.byokCost,
  storageCost: a.storageCost + b.storageCost,
})

/** Reads usage from the hourly and daily aggregates. All reject when the store cannot be read. */
export interface UsageStore {
  totals(query: UsageQuery): Promise<UsageTotals>
  /** The costliest first, days in their order; `offset` of them are left out. */
  breakdown(query: UsageQuery, by: UsageGroup, limit?: number, offset?: number): Promise<GroupTotals[]>
  /** Compares request rows, ledger and aggregates; one sentence for each difference. */
  check(): Promise<string[]>
  /** Adds up a part of a day that is over, for queries of many days. Returns its start; undefined when none is left. */
  sumDay(): Promise<number | undefined>
}

/** Selects request rows; an absent member does not narrow the selection. */
export interface RequestFilter {
  readonly orgId?: string | undefined
  readonly projectId?: string | undefined
  readonly keyId?: string | undefined
  /** Canonical model that answered, or the name that the caller wrote. */
  readonly model?: string | undefined
  readonly provider?: string | undefined
  readonly status?: number | undefined
  readonly errorCode?: string | undefined
  /** Milliseconds; only requests that took longer. */
  readonly slower?: number | undefined
  /** Only requests that cost more. */
  readonly dearer?: Money | undefined
  /** Unix milliseconds of arrival, inclusive. */
  readonly since?: number | undefined
  /** Unix milliseconds; only requests that ended at or after it. */
  readonly endedSince?: number | undefined
  readonly endUser?: string | undefined
  /** As `key=value`. */
  readonly tag?: string | undefined
}

/** Some rows, newest first. */
export interface RequestPage {
  readonly rows: readonly RequestRow[]
  /** Position at which the next part begins; undefined behind the last one. A part may be empty and not the last. */
  readonly next: string | undefined
}

/** All reject when the store cannot be read. */
export interface RequestLogStore {
  /** Reads at most `limit` rows older than the position `before`. Looks at a bounded number of rows, whatever the filter. */
  page(filter: RequestFilter, limit: number, before?: string): Promise<RequestPage>
  /** Undefined for a row that is not kept. */
  get(id: string): Promise<RequestRow | undefined>
}
