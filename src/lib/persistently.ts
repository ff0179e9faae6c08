/** Writes that must not be lost because a store cannot be written for a moment. */

const FIRST_GAP_MS = 100

/** Tries again for so long, with growing gaps. Rejects with the last error. */
export async function persistently<T>(write: () => Promise<T>, forMs: number): Promise<T> {
  const start = performance.now()
  for (let gap = FIRST_GAP_MS; ; gap *= 2) {
    try {
      return await write()
    } catch (thrown) {
      if (performance.now() - start + gap > forMs) throw thrown
    }
    await new Promise<void>(resolve => setTimeout(resolve, gap).unref())
  }
}
