/** CPU time of a PostgreSQL server, as Linux accounts for it. */
import { readdirSync, readFileSync } from 'node:fs'

const TICK_MS = 10

/** CPU time of a server's processes, ended ones too, in milliseconds. */
export function serverMs(postmaster: number): number {
  let ticks = 0
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      const fields = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .map(Number)
      if (Number(pid) === postmaster) ticks += fields[11]! + fields[12]! + fields[13]! + fields[14]!
      else if (fields[1] === postmaster) ticks += fields[11]! + fields[12]!
    } catch {
      // It has ended meanwhile.
    }
  }
  return ticks * TICK_MS
}
