/** Emits a process warning for a failure without a caller or a log to report it to. */
export const warn = (thrown: unknown): void => process.emitWarning(thrown instanceof Error ? thrown : String(thrown))
