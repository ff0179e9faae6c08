/** UTC hours, by which usage is summed. */
const HOUR_MS = 3_600_000
/** Start of the hour of `at`, Unix milliseconds. */
export const hourOf = (at: number): number => Math.floor(at / HOUR_MS) * HOUR_MS
