/** Bounds of the sums of end users and tags, which callers make up: for one organization and one UTC day. */

/** Keys of tags; further ones have no sums. */
export const MAX_KEYS_OF_DAY = 64
/** Sums of one key, or of end users: further values count as `other`. */
export const MAX_VALUES_OF_DAY = 1000
