/** What work costs, for tests of how it grows: time on the wall depends on what else the machine does. */

/** CPU time that this process takes for `run`, in milliseconds. `run` must be synchronous. */
export function cpuMs(run: () => void): number {
  const used = cpuMeter()
  run()
  return used()
}

/** CPU time of this process since this call, in milliseconds: of all that runs in it meanwhile. */
export function cpuMeter(): () => number {
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }
}

/** Whether `promise` settles within so many turns of the event loop: one that waits for a timer of seconds does not. */
export async function settlesInTurns(promise: Promise<unknown>, turns = 1000): Promise<boolean> {
  let settled = false
  const settle = () => {
    settled = true
  }
  promise.then(settle, settle)
  for (let turn = 0; turn < turns && !settled; turn++) await new Promise(resolve => setImmediate(resolve))
  return settled
}
