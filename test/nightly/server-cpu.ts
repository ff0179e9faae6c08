/** CPU time of a server, such as PostgreSQL or a gateway, as Linux accounts for it. */
import { readdirSync, readFileSync } from 'node:fs'

const TICK_MS = 10

/** CPU time of a process and its children, ended ones too, in milliseconds. */
export function serverMs(server: number): number {
  let ticks = 0
  for (const entry of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
      const fields = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .map(Number)
      if (Number(entry) === server) ticks += fields[11]! + fields[12]! + fields[13]! + fields[14]!
      else if (fields[1] === server) ticks += fields[11]! + fields[12]!
    } catch {
      // It has ended meanwhile.
    }
  }
  return ticks * TICK_MS
}
