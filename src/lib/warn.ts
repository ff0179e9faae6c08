/** Tells the process of what failed where nobody waits for it and no log is at hand. */
export const warn = (thrown: unknown): void => process.emitWarning(thrown instanceof Error ? thrown : String(thrown))
