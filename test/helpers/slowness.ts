/** How busy the machine is with other things, for tests of how long something takes. */

const SPIN_MS = 10

/** How many times longer than alone a process takes at the moment; 1 on a machine with nothing else to do. */
export function slowness(): number {
  const start = performance.now()
  const before = process.cpuUsage()
  let used = 0
  while (used < SPIN_MS * 1000) {
    const { user, system } = process.cpuUsage(before)
    used = user + system
  }
  return Math.max(1, (performance.now() - start) / SPIN_MS)
}
