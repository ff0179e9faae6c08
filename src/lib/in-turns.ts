/** Long work that yields wherever others may go on: a step in each turn of the event loop. */
export async function inTurns<T>(steps: Generator<undefined, T>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    await new Promise(resolve => setImmediate(resolve))
  }
}
