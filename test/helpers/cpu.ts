/** CPU time of work, for tests of its growth: wall time depends on the load of the machine. */

/** CPU time of `run` in this process, in milliseconds. `run` must be synchronous. */
export function cpuMs(run: () => void): number {
  const used = cpuMeter()
  run()
  return used()
}

const TRIES = [3, 8] as const

/**
 * The least of what each of `timings` returns: tried by turns, three times at least, until they are `fine`, eight times at
 * most. What the compiler and the garbage collector do beside them comes into some tries, not all.
 */
export function leastOf(timings: readonly (() => number)[], fine: (...least: number[]) => boolean): number[] {
  const least = timings.map(() => Number.POSITIVE_INFINITY)
  for (let tries = 0; tries < TRIES[0] || (tries < TRIES[1] && !fine(...least)); tries++) {
    for (const [at, timing] of timings.entries()) least[at] = Math.min(least[at]!, timing())
  }
  return least
}

/** Whether four times as many things took time in proportion to their number, rather than to its square. */
export const inProportion = (one: number, four: number): boolean => four < 9 * one

/** CPU time of this process since the call, in milliseconds, including everything else that runs in it. */
export function cpuMeter(): () => number {
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }
}

/** Whether `promise` settles within `turns` of the event loop: a promise that waits for a timer of seconds does not. */
export async function settlesInTurns(promise: Promise<unknown>, turns = 1000): Promise<boolean> {
  let settled = false
  const settle = () => {
    settled = true
  }
  promise.then(settle, settle)
  for (let turn = 0; turn < turns && !settled; turn++) await new Promise(resolve => setImmediate(resolve))
  return settled
}
