/** Usage of one project, for its members; from the hourly sums, which outlive the request rows. */
import type { Money } from '../money.ts'
import type { Principal } from './keys.ts'
import type { ReportGroup, UsageTotals } from './usage.ts'

/** Which requests of a project a report covers. */
export interface ReportQuery {
  readonly projectId: string
  /** Keys to report; undefined for all keys of the project. */
  readonly keyIds?: readonly string[] | undefined
  /** Unix milliseconds at the start of an hour, `from` inclusive, `to` exclusive. */
  readonly from: number
  readonly to: number
}

/** Sums of the requests of a report. */
export interface ReportSums extends UsageTotals {
  /** Total of the discounts on the list price. */
  readonly savings: Money
}

/** Sort order of a ranking. */
export type ReportOrder = 'requests' | 'cost' | 'tokens'

/** All reject when the store cannot be read. */
export interface ReportStore {
  /** Sums of the spans of `unitMs`, a divisor of a day or a day, that have any requests, the oldest first; `at` begins each. */
  series(query: ReportQuery, unitMs: number): Promise<(ReportSums & { readonly at: number })[]>
  /** The largest first, equal ones by id; what a request did not name is `unknown`. */
  ranking(
    query: ReportQuery,
    by: ReportGroup,
    order: ReportOrder,
    limit: number,
    offset: number,
  ): Promise<(ReportSums & { readonly id: string })[]>
  /** When any of these sums was last added to, Unix milliseconds; undefined where there are none. */
  updatedAt(query: ReportQuery): Promise<number | undefined>
  /** Name of the project, and address of the member who made the key; null for none. */
  caller(principal: Pick<Principal, 'projectId' | 'member'>): Promise<{ project: string; email: string | null }>
  /** Keys of a project, ended ones too; those that a member has made, or all. */
  keys(projectId: string, memberId?: string): Promise<{ readonly id: string; readonly name: string }[]>
}
