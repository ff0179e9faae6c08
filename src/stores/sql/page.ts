/** Pages of long lists: rows in insertion order, after the one with a given id. */
import type { Page } from '../../core/ports.ts'

/** A limit above every number of rows: PostgreSQL takes no negative one, SQLite no NULL. */
export const ALL = Number.MAX_SAFE_INTEGER

/** Values of a page for a statement. */
interface PageValues {
  readonly after: string | null
  readonly limit: number
}
/** All rows where the caller gives no page or no limit. */
export const pageOf = ({ after = undefined, limit = ALL }: Page = {}): PageValues => ({ after: after ?? null, limit })

/** SQL: rows of `table` after the one whose id is parameter `position`: all where it is NULL, none where no row has it. */
export const isAfter = (table: string, position: number): string =>
  `${table}.rowid > CASE WHEN CAST($${position} AS text) IS NULL THEN 0
    ELSE (SELECT rowid FROM ${table} WHERE id = $${position}) END`
