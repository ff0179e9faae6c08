/** Bounds of what is kept of end users and tags, which callers make up. */

import { DAY_MS } from '../../lib/period.ts'
/** Keys of tags of an organization on a UTC day; further ones have no sums. */
export const MAX_KEYS_OF_DAY = 64
/** Sums of one key, or of end users, of an organization on a UTC day: further values count as `other`. */
export const MAX_VALUES_OF_DAY = 1000

/** Longer than any period: limits of end users that began theirs before are over, and begin anew with the next hold. */
const LONGEST_PERIOD_MS = 32 * DAY_MS

/** SQL: drops some limits of end users whose period began long before this time, Unix milliseconds. */
export const dropEndUserLimits = (before: number, most: number): string => `
  DELETE FROM budgets WHERE id IN (
    SELECT id FROM budgets WHERE kind = 'end-user' AND period <> 'total' AND held = 0
      AND period_at < ${Math.floor(before) - LONGEST_PERIOD_MS} LIMIT ${most}
  )`
