/**
 * Group commit: writes requested until the event loop has been quiet for a few turns, at most ten milliseconds, form
 * one transaction, since a commit costs more than its contents. Under light load one turn suffices. Durable writes
 * resolve when they are on disk, others when they are committed, which survives the process but not the machine.
 */
import type { Statement } from 'better-sqlite3'
import { StoreError } from '../../core/ports.ts'
import type { Sqlite } from './open.ts'
import type { WalSync } from './wal-sync.ts'
import { type Durability, type Explain, LOCK_TIMEOUT_MS, Write, type WriteJob } from './write.ts'

/** Mean delay between attempts. An attempt costs microseconds, and a busy process frees the lock only briefly. */
const RETRY_MS = 3
/** Quiet turns of the event loop that end the gathering. */
const QUIET_TURNS = 3
/** A job that comes so long after a transaction of a single job waits for one turn only: nothing else is written. */
const ALONE_MS = 0.25
/** Maximum time for which a write waits for others. */
const GATHER_MS = 10
/** Bounds the time for which one transaction blocks the event loop; the rest follows in the next turn. */
const MAX_JOBS = 512

/** SQLite results about the file, not the statement: they concern every job alike. */
const STORAGE_FAULT = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CORRUPT|NOTADB|READONLY|CANTOPEN|NOMEM|PROTOCOL)/

const codeOf = (error: unknown): string => {
  const { code } = error as { code?: unknown }
  return error instanceof Error && typeof code === 'string' ? code : ''
}
const isStorageFault = (error: unknown): boolean => STORAGE_FAULT.test(codeOf(error))

/** SQLite results about the values. */
const REFUSAL = /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)/

/** Gathers the changes of a transaction's jobs and writes them once. */
export interface Participant {
  /** Writes the gathered changes: at the end of the transaction, or before a job reads them. */
  beforeCommit(): void
  /** Discards the gathered changes: their jobs run again, or fail. */
  undone(): void
}

/** All writes of this process, in the order of their requests. */
export class Writer {
  readonly #db: Sqlite
  readonly #beginStatement: Statement
  readonly #commitStatement: Statement
  readonly #rollback: Statement
  readonly #changes: Statement<[], number>
  readonly #participants: Participant[] = []
  readonly #queue: WriteJob[] = []
  /** Without it, SQLite flushes each commit itself. */
  readonly #disk: WalSync | undefined
  /** Committed, but possibly not on disk. */
  #unsafe: WriteJob[] = []
  #syncing: Promise<void> | undefined
  #scheduled = false
  #active: Promise<void> | undefined
  /** Latest start of the next transaction, on the monotonic clock. */
  #latest = 0
  /** Quiet turns before the next transaction. */
  #quietTurns = QUIET_TURNS
  /** End of the last transaction, on the monotonic clock, and its jobs. */
  #endedAt = performance.now()
  #jobs = 0
  /** Whether another process is writing. */
  #locked = false
  #fault: unknown
  /** Number of changed rows at the start of the transaction; read only after a fault. */
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

  /** The transaction that waits for a job's promise; undefined while none does. */
  get active(): Promise<void> | undefined {
    return this.#active
  }

  join(participant: Participant): void {
    this.#participants.push(participant)
  }

  /** Why the last write to the file failed; undefined when it succeeded. */
  get fault(): unknown {
    return this.#fault
  }

  /** Whether an error is the write's own, so that it would fail again. */
  refuses(error: unknown): boolean {
    // Errors of the driver itself; for a closed database it throws a TypeError, too.
    if (error instanceof RangeError || error instanceof TypeError) return this.#db.open
    return REFUSAL.test(codeOf(error))
  }

  /**
   * Runs `work` in the next transaction, and again in its own when another job of that transaction throws; resolves
   * with its result once it is as safe as requested. A promise of `work` must not wait for a turn of the event loop. When `work` throws, undoes its writes and rejects with that error.
   * Rejects with SQLite's error when the file fails, and with a StoreError when another process keeps it locked for 500
   * ms; each converted by `explain`, if given.
   */
  run<T>(work: () => T | Promise<T>, safety: Durability = 'durable', explain?: Explain): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push(new Write(work, safety, explain, resolve, reject))
      this.#schedule()
    })
  }

  /** Within a job: writes what participants have gathered, for statements that read it. */
  sync(): void {
    for (const participant of this.#participants) participant.beforeCommit()
  }

  /** Resolves when all earlier writes are done; their callers have the results. */
  async flush(): Promise<void> {
    await this.#active
    if (this.#queue.length > 0) await this.run(() => {}).catch(() => {})
    await this.#syncing
  }

  /** Accepts no more writes. */
  close(): void {
    this.#disk?.close()
  }

  #schedule(): void {
    if (this.#scheduled || this.#queue.length === 0) return
    this.#scheduled = true
    const now = performance.now()
    this.#latest = now + GATHER_MS
    this.#quietTurns = this.#jobs > 1 || now - this.#endedAt < ALONE_MS ? QUIET_TURNS : 1
    if (this.#locked) setTimeout(this.#transact, RETRY_MS * (0.5 + Math.random()))
    else setImmediate(this.#gather, this.#queue.length, 0)
  }

  /** One turn later: `known` jobs existed before it; no others have come for `quiet` turns. */
  readonly #gather = (known: number, quiet: number): void => {
    const { length } = this.#queue
    const turns = length > known ? 0 : quiet + 1
    if (turns < this.#quietTurns && performance.now() < this.#latest) setImmediate(this.#gather, length, turns)
    else this.#transact()
  }

  readonly #transact = (): void => {
    this.#active = this.#drain()
  }

  /** Never rejects: each job has its own promise. */
  async #drain(): Promise<void> {
    await this.#transaction()
    this.#active = undefined
    this.#scheduled = false
    this.#endedAt = performance.now()
    this.#schedule()
  }

  async #transaction(): Promise<void> {
    if (!this.#begin()) return
    const jobs = this.#queue.splice(0, MAX_JOBS)
    this.#jobs = jobs.length
    try {
      for (const job of jobs) {
        const pending = job.run()
        if (pending) await pending
      }
      this.#commit()
      this.#committed(jobs)
    } catch (error) {
      this.#undo()
      if (isStorageFault(error)) this.#fail(jobs, error)
      else if (jobs.length === 1) jobs[0]!.fail(error)
      else await this.#singly(jobs)
    }
  }

  /** One of these jobs throws: runs each in its own transaction, so that only that one fails. */
  async #singly(jobs: readonly WriteJob[]): Promise<void> {
    for (const [index, job] of jobs.entries()) {
      if (!this.#begin()) {
        this.#queue.unshift(...jobs.slice(index))
        return
      }
      try {
        await job.run()
        this.#commit()
        this.#committed([job])
      } catch (error) {
        this.#undo()
        if (isStorageFault(error)) this.#fail([job], error)
        else job.fail(error)
      }
    }
  }

  /** Takes the write lock; false when another process has it, or when taking it failed and all jobs were failed. */
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
    // A transaction without changes does not prove that the file is writable.
    if (this.#fault !== undefined && this.#changes.get() !== this.#before) this.#fault = undefined
  }

  #committed(jobs: readonly WriteJob[]): void {
    for (const job of jobs) {
      if (this.#disk && job.safety === 'durable') this.#unsafe.push(job)
      else job.done()
    }
    if (this.#disk && this.#unsafe.length > 0) this.#syncing ??= this.#sync(this.#disk)
  }

  /** Never rejects: each job has its own promise. */
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

  /** Fails the jobs whose deadline has passed; they come first. */
  #giveUp(): void {
    const now = performance.now()
    const onTime = this.#queue.findIndex(job => job.until > now)
    const late = this.#queue.splice(0, onTime < 0 ? this.#queue.length : onTime)
    if (late.length === 0) return
    const message = `Another process has kept the database ${this.#db.name} locked for ${LOCK_TIMEOUT_MS} ms.`
    this.#fail(late, new StoreError(message))
  }
}
