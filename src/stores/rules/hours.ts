/** Hours as UTC has them, by which usage is summed. */
export const HOUR_MS = 3_600_000
/** When the hour that holds `at` begins, Unix milliseconds. */
export const hourOf = (at: number): number => Math.floor(at / HOUR_MS) * HOUR_MS
