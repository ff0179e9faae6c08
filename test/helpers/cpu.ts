/** CPU time of work, for tests of its growth: wall time depends on the load of the machine. */

/** CPU time of `run` in this process, in milliseconds. `run` must be synchronous. */
export function cpuMs(run: () => void): number {
  const used = cpuMeter()
  run()
  return used()
}

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
