/**
 * Group commit: whatever asks to write before a few turns of the event loop pass in which nobody does becomes one
 * transaction, within ten milliseconds: committing costs more than what is written. Who must not lose what was written
 * is told when it is on disk, the others when it is committed: that outlives the process, but not the machine.
 */
import type { Statement } from 'better-sqlite3'
import { StoreError } from '../../core/ports.ts'
import type { Sqlite } from './open.ts'
import type { WalSync } from './wal-sync.ts'
import { type Durability, type Explain, PATIENCE_MS, Write, type WriteJob } from './write.ts'

/** On average. Asking costs microseconds, and a busy process leaves the lock free for hardly longer. */
const RETRY_MS = 3
/** So many turns of the event loop in which nobody asks to write end the gathering. */
const QUIET_TURNS = 3
/** No write waits longer for others, however many come. */
const GATHER_MS = 10
/** Bounds how long one transaction blocks the event loop; the rest follows in the next turn. */
const MAX_JOBS = 512

/** SQLite's results that speak of the file, not of the statement: they concern every job alike. */
const STORAGE_FAULT = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CORRUPT|NOTADB|READONLY|CANTOPEN|NOMEM|PROTOCOL)/

const codeOf = (error: unknown): string => {
  const { code } = error as { code?: unknown }
  return error instanceof Error && typeof code === 'string' ? code : ''
}
const isStorageFault = (error: unknown): boolean => STORAGE_FAULT.test(codeOf(error))

/** SQLite's results that speak of the values. */
const REFUSAL = /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)/

/** Gathers what the jobs of a transaction change together, and writes it once. */
export interface Participant {
  /** Writes what was gathered: at the end of the transaction, or sooner when a job reads it. */
  beforeCommit(): void
  /** What was gathered is void: its jobs run again, or fail. */
  undone(): void
}

/** All writes of this process. Jobs run in the order in which they were asked for. */
export class Writer {
  readonly #db: Sqlite
  readonly #beginStatement: Statement
  readonly #commitStatement: Statement
  readonly #rollback: Statement
  readonly #changes: Statement<[], number>
  readonly #participants: Participant[] = []
  readonly #queue: WriteJob[] = []
  /** Without one, SQLite itself brings each commit to the disk. */
  readonly #disk: WalSync | undefined
  /** Committed, and not known to be on disk. */
  #unsafe: WriteJob[] = []
  #syncing: Promise<void> | undefined
  #scheduled = false
  /** When the next transaction begins at the latest, on the monotonic clock. */
  #latest = 0
  /** Another process writes. */
  #locked = false
  #fault: unknown
  /** Rows changed so far, when the transaction began; looked at only while there is a fault. */
  #before = 0

  constructor(db: Sqlite, disk?: WalSync) {
    this.#db = db
    this.#disk = disk
    if (disk) db.pragma('synchronous = NORMAL')
    this.#beginStatement = db.prepare('BEGIN IMMEDIATE')
    this.#commitStatement = db.prepare('COMMIT')
    this.#rollback = db.prepare('ROLLBACK')
    this.#changes = db.prepare<[], number>('SELECT total_changes()').pluck()
  }

  join(participant: Participant): void {
    this.#participants.push(participant)
  }

  /** Why the file could not be written the last time; undefined when it could. */
  get fault(): unknown {
    return this.#fault
  }

  /** Whether what a write failed with is its own fault, so that it would fail again. */
  refuses(error: unknown): boolean {
    // The driver's own errors; of a closed database it throws a TypeError, too.
    if (error instanceof RangeError || error instanceof TypeError) return this.#db.open
    return REFUSAL.test(codeOf(error))
  }

  /**
   * Runs `work` in the next transaction, and again in one of its own when another job of that one throws; resolves
   * with its result once it is as safe as is asked for. When `work` throws, its writes are undone and the promise
   * rejects with what was thrown. Rejects with SQLite's error when the file fails, and with a StoreError when another
   * process keeps it locked for 500 ms; with `explain` of it, where that is given.
   */
  run<T>(work: () => T, safety: Durability = 'durable', explain?: Explain): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push(new Write(work, safety, explain, resolve, reject))
      this.#schedule()
    })
  }

  /** Within a job: what participants gathered so far is in the database, for statements that read it there. */
  sync(): void {
    for (const participant of this.#participants) participant.beforeCommit()
  }

  /** Resolves when everything that was asked before is done; each caller has been told whether it succeeded. */
  async flush(): Promise<void> {
    if (this.#queue.length > 0) await this.run(() => {}).catch(() => {})
    await this.#syncing
  }

  /** Nothing is written any more. */
  close(): void {
    this.#disk?.close()
  }

  #schedule(): void {
    if (this.#scheduled || this.#queue.length === 0) return
    this.#scheduled = true
    this.#latest = performance.now() + GATHER_MS
    if (this.#locked) setTimeout(this.#transact, RETRY_MS * (0.5 + Math.random()))
    else setImmediate(this.#gather, this.#queue.length, 0)
  }

  /** One turn later: `known` jobs were there before it, and for `quiet` turns no others have come. */
  readonly #gather = (known: number, quiet: number): void => {
    const { length } = this.#queue
    const turns = length > known ? 0 : quiet + 1
    if (turns < QUIET_TURNS && performance.now() < this.#latest) setImmediate(this.#gather, length, turns)
    else this.#transact()
  }

  readonly #transact = (): void => {
    this.#scheduled = false
    this.#drain()
    this.#schedule()
  }

  #drain(): void {
    if (!this.#begin()) return
    const jobs = this.#queue.splice(0, MAX_JOBS)
    try {
      for (const job of jobs) job.run()
      this.#commit()
      this.#committed(jobs)
    } catch (error) {
      this.#undo()
      if (isStorageFault(error)) this.#fail(jobs, error)
      else if (jobs.length === 1) jobs[0]!.fail(error)
      else this.#singly(jobs)
    }
  }

  /** One of these jobs throws: each gets a transaction of its own, so that only that one fails. */
  #singly(jobs: readonly WriteJob[]): void {
    for (const [index, job] of jobs.entries()) {
      if (!this.#begin()) {
        this.#queue.unshift(...jobs.slice(index))
        return
      }
      try {
        job.run()
        this.#commit()
        this.#committed([job])
      } catch (error) {
        this.#undo()
        if (isStorageFault(error)) this.#fail([job], error)
        else job.fail(error)
      }
    }
  }

  /** Takes the write lock; false when another process has it, or when that failed and everybody was told. */
  #begin(): boolean {
    try {
      this.#disk?.check()
      this.#locked = !this.#tryBegin()
    } catch (error) {
      this.#fail(this.#queue.splice(0), error)
      return false
    }
    if (this.#fault !== undefined && !this.#locked) this.#before = this.#changes.get()!
    if (this.#locked) this.#giveUp()
    return !this.#locked
  }

  #commit(): void {
    this.sync()
    this.#commitStatement.run()
    // A transaction that wrote nothing does not show that the file can be written.
    if (this.#fault !== undefined && this.#changes.get() !== this.#before) this.#fault = undefined
  }

  #committed(jobs: readonly WriteJob[]): void {
    for (const job of jobs) {
      if (this.#disk && job.safety === 'durable') this.#unsafe.push(job)
      else job.done()
    }
    if (this.#disk && this.#unsafe.length > 0) this.#syncing ??= this.#sync(this.#disk)
  }

  /** Never rejects: every job is told by itself. */
  async #sync(disk: WalSync): Promise<void> {
    while (this.#unsafe.length > 0) {
      const jobs = this.#unsafe
      this.#unsafe = []
      try {
        await disk.sync()
        for (const job of jobs) job.done()
      } catch (error) {
        this.#fail(jobs, error)
      }
    }
    this.#syncing = undefined
  }

  #undo(): void {
    if (this.#db.inTransaction) this.#rollback.run()
    for (const participant of this.#participants) participant.undone()
  }

  #fail(jobs: readonly WriteJob[], error: unknown): void {
    this.#fault = error
    for (const job of jobs) job.fail(error)
  }

  /** Takes the write lock unless another process has it. */
  #tryBegin(): boolean {
    try {
      this.#beginStatement.run()
      return true
    } catch (error) {
      if (codeOf(error).startsWith('SQLITE_BUSY')) return false
      throw error
    }
  }

  /** Fails the jobs whose time is over; they stand first. */
  #giveUp(): void {
    const now = performance.now()
    const patient = this.#queue.findIndex(job => job.until > now)
    const late = this.#queue.splice(0, patient < 0 ? this.#queue.length : patient)
    if (late.length === 0) return
    const message = `Another process has kept the database ${this.#db.name} locked for ${PATIENCE_MS} ms.`
    this.#fail(late, new StoreError(message))
  }
}
