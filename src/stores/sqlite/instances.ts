/** The processes that use the database and own holds: shows that this one lives, and which others do. */

import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Statement } from 'better-sqlite3'
import { shortId } from '../../lib/id.ts'
import { atStart, type Sqlite } from './open.ts'
import type { Writer } from './writer.ts'

const HEARTBEAT_MS = 10_000

/** The clock of heartbeats, and where their failures go. */
export interface InstanceOptions {
  /** Wall clock, Unix milliseconds. */
  readonly now: () => number
  /** Receives the error of a failed heartbeat. */
  readonly warn: (error: unknown) => void
}

/** The row of this process in `owners`, kept fresh until `leave`, and those of processes that still live. */
export class Instances {
  readonly #self: Instance = thisProcess()
  readonly #now: () => number
  readonly #beat: Statement
  readonly #all: Statement<[], Instance & { seen_at: number }>
  readonly #forgetAllBut: Statement<[string]>
  readonly #forget: Statement<[string]>
  readonly #heartbeat: NodeJS.Timeout
  #left = false

  /** Closes the database and throws a StoreError when it cannot be written. */
  constructor(db: Sqlite, writer: Writer, { now, warn }: InstanceOptions) {
    this.#now = now
    this.#beat = db.prepare(`
      INSERT INTO owners (id, pid, started, host, seen_at) VALUES (@id, @pid, @started, @host, @now)
      ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`)
    this.#all = db.prepare('SELECT id, pid, started, host, seen_at FROM owners')
    this.#forgetAllBut = db.prepare('DELETE FROM owners WHERE id NOT IN (SELECT value FROM json_each(?))')
    this.#forget = db.prepare('DELETE FROM owners WHERE id = ?')
    const beat = () => this.#beat.run({ ...this.#self, now: now() })
    atStart(db, beat)
    this.#heartbeat = setInterval(() => void writer.run(beat).catch(warn), HEARTBEAT_MS)
    this.#heartbeat.unref()
  }

  /** Id of this process. */
  get id(): string {
    return this.#self.id
  }

  /** Ids of living processes, including this one. */
  living(): string[] {
    const now = this.#now()
    const others = this.#all.all().filter(owner => owner.id !== this.id && isAlive(owner, now))
    return [this.id, ...others.map(owner => owner.id)]
  }

  /** Within a transaction: shows that this process lives, so that a later sweep does not take it for dead. */
  beat(): void {
    if (!this.#left) this.#beat.run({ ...this.#self, now: this.#now() })
  }

  /** Within a transaction. */
  keepOnly(living: readonly string[]): void {
    this.#forgetAllBut.run(JSON.stringify(living))
  }

  stop(): void {
    clearInterval(this.#heartbeat)
  }

  /** Within a transaction: gives up the holds of this process. */
  leave(): void {
    this.#left = true
    this.#forget.run(this.id)
  }
}

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
