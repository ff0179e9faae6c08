/** Closes what a process has opened, also when its start fails half-way. */
import { warn } from '../lib/warn.ts'

/** Closes resources in reverse order of their registration. */
export class CleanupStack {
  readonly #closers: (() => unknown)[] = []

  add(close: () => unknown): void {
    this.#closers.push(close)
  }

  /** Closes everything, whatever fails; rejects with the first failure and warns about further ones. */
  async close(): Promise<void> {
    const failures: unknown[] = []
    for (let close = this.#closers.pop(); close; close = this.#closers.pop()) {
      try {
        await close()
      } catch (thrown) {
        failures.push(thrown)
      }
    }
    for (const other of failures.slice(1)) warn(other)
    if (failures.length > 0) throw failures[0]
  }
}

/** Resolves with the result of `assemble`. When it rejects, nothing stays open. */
export async function withCleanup<T>(assemble: (cleanup: CleanupStack) => Promise<T>): Promise<T> {
  const cleanup = new CleanupStack()
  try {
    return await assemble(cleanup)
  } catch (thrown) {
    // The error of the assembly says more than a failure to close.
    await cleanup.close().catch(warn)
    throw thrown
  }
}
