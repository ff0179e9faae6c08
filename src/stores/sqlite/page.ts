/** Parts of long lists: of rows in the order in which they were made, behind the one with the id `@after`. */
import type { Page } from '../../core/ports.ts'

/** No bound, to SQLite. */
export const ALL = -1

export interface PageRow {
  after: string | null
  limit: number
}
export const pageOf = ({ after = undefined, limit = ALL }: Page = {}): PageRow => ({ after: after ?? null, limit })
