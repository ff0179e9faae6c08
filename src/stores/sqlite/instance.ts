/** Which process a hold belongs to, and whether that process is still there. */
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { shortId } from '../../lib/id.ts'

/** One opened store of one process. */
export interface Instance {
  readonly id: string
  readonly pid: number
  /** When the process started, in the kernel's clock ticks since boot; '' where the system does not tell. */
  readonly started: string
  readonly host: string
}

/** An owner that has not been seen for so long is dead where nothing tells better. */
const SILENCE_MS = 60_000

export const thisProcess = (): Instance => ({
  id: shortId(),
  pid: process.pid,
  started: startOf(process.pid) ?? '',
  host: here(),
})

/** Host name, and the namespace that process numbers are of: containers may share the one and not the other. */
const here = (): string => {
  try {
    return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return hostname()
  }
}

/**
 * The system's processes tell, however long the database could not be written. Of those on other hosts only the
 * heartbeat is known; and where a start is not told, a silent one's number may be another process's by now.
 */
export function isAlive(owner: Instance & { readonly seen_at: number }, now: number): boolean {
  const silent = now - owner.seen_at > SILENCE_MS
  if (owner.host !== here()) return !silent
  const started = startOf(owner.pid)
  return started === undefined ? !silent && isRunning(owner.pid) : started === owner.started
}

/**
 * Field 22 of proc_pid_stat(5); the second field is a name in parentheses, which may itself hold spaces and `)`. '-' for
 * one that has ended and that its parent has not asked about yet.
 */
function startOf(pid: number): string | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' ? '-' : fields[19]
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
