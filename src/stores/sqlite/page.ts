/** Pages of long lists: rows in insertion order, after the one with the id `@after`. */
import type { Page } from '../../core/ports.ts'

/** SQLite's value for no limit. */
export const ALL = -1

/** Parameters of a statement that reads a page. */
export interface PageRow {
  after: string | null
  limit: number
}
/** All rows where the caller gives no page or no limit. */
export const pageOf = ({ after = undefined, limit = ALL }: Page = {}): PageRow => ({ after: after ?? null, limit })
