/**
 * Loaded before a gateway (`--require`): strains it. On SIGUSR2 the event loop stalls repeatedly for a while, and the
 * heap appears as full as the file named by `HEAP` says, as a share of its limit; without that file it is not changed.
 */
const { readFileSync } = require('node:fs')
const { syncBuiltinESMExports } = require('node:module')
const v8 = require('node:v8')

const STALL_MS = 600
const STALLS = 4

const { getHeapStatistics } = v8
v8.getHeapStatistics = () => {
  const statistics = getHeapStatistics()
  try {
    const share = Number(readFileSync(process.env.HEAP, 'utf8'))
    return { ...statistics, used_heap_size: share * statistics.heap_size_limit }
  } catch {
    return statistics
  }
}
syncBuiltinESMExports()

/** CPU time: time used by other processes does not count as lag. */
const used = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
function stall(left) {
  const end = used() + STALL_MS
  while (used() < end);
  if (left > 1) setTimeout(stall, 1, left - 1)
}
process.on('SIGUSR2', () => stall(STALLS))
