/** UTC hours and days, by which usage is summed. */
export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS
/** Start of the hour of `at`, Unix milliseconds. */
export const hourOf = (at: number): number => Math.floor(at / HOUR_MS) * HOUR_MS
