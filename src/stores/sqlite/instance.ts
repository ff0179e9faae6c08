/** The process that owns a hold, and whether it is alive. */
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { shortId } from '../../lib/id.ts'

/** One opened store of one process. */
export interface Instance {
  readonly id: string
  readonly pid: number
  /** Start of the process in kernel clock ticks since boot; '' where the system does not provide it. */
  readonly started: string
  readonly host: string
}

/** Without better evidence, an owner is dead after this time without a heartbeat. */
const SILENCE_MS = 60_000

/** A new instance of this process, for a store that is opened. */
export const thisProcess = (): Instance => ({
  id: shortId(),
  pid: process.pid,
  started: startOf(process.pid) ?? '',
  host: here(),
})

/** Host name and PID namespace: containers may share one without the other. */
const here = (): string => {
  try {
    return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return hostname()
  }
}

/**
 * Decided by the system's process table, however long the database was not writable. For other hosts only the heartbeat
 * counts; without a start time, the pid of a silent process may belong to another one.
 */
export function isAlive(owner: Instance & { readonly seen_at: number }, now: number): boolean {
  const silent = now - owner.seen_at > SILENCE_MS
  if (owner.host !== here()) return !silent
  const started = startOf(owner.pid)
  return started === undefined ? !silent && isRunning(owner.pid) : started === owner.started
}

/**
 * Field 22 of proc_pid_stat(5); the second field is a name in parentheses, which may contain spaces and `)`. '-' for a
 * process that has ended but was not yet reaped.
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
