/** The longest time that a timer of Node knows, some 24 days: one that is set to more goes off at once. */
const LONGEST_MS = 2 ** 31 - 1

export const timerMs = (ms: number): number => Math.min(ms, LONGEST_MS)
