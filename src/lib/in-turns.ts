/** Long work that yields wherever others may go on. */

/** A step in each turn of the event loop. */
export async function inTurns<T>(steps: Generator<undefined, T>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    await new Promise(resolve => setImmediate(resolve))
  }
}

/** All steps in this turn: of work that is short. */
export function atOnce<T>(steps: Generator<undefined, T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}
