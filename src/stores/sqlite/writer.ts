/** Group commit: whatever asks to write within one tick becomes one transaction, durable before anyone is told. */
import type { Statement } from 'better-sqlite3'
import { BUSY_TIMEOUT_MS, type Sqlite, StoreError } from './open.ts'

interface Job {
  run(): void
  done(): void
  fail(error: unknown): void
  /** When to give up waiting for another process, on the monotonic clock. */
  readonly until: number
}

/** How long a write waits for the lock of another process. */
const PATIENCE_MS = 500
/** On average. Asking costs microseconds, and a busy process leaves the lock free for hardly longer. */
const RETRY_MS = 3
/** Bounds how long one transaction blocks the event loop; the rest follows in the next turn. */
const MAX_JOBS = 512

/** SQLite's results that speak of the file, not of the statement: they concern every job alike. */
const STORAGE_FAULT = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CORRUPT|NOTADB|READONLY|CANTOPEN|NOMEM|PROTOCOL)/

const codeOf = (error: unknown): string => {
  const { code } = error as { code?: unknown }
  return error instanceof Error && typeof code === 'string' ? code : ''
}

/** All writes of this process. Jobs run in the order in which they were asked for. */
export class Writer {
  readonly #db: Sqlite
  readonly #waitNever: Statement
  readonly #waitBriefly: Statement
  readonly #begin: Statement
  readonly #commit: Statement
  readonly #rollback: Statement
  readonly #savepoint: Statement
  readonly #release: Statement
  readonly #rollbackToSavepoint: Statement
  readonly #queue: Job[] = []
  #scheduled = false
  /** Another process writes. */
  #locked = false
  #fault: unknown

  constructor(db: Sqlite) {
    this.#db = db
    this.#waitNever = db.prepare('PRAGMA busy_timeout = 0')
    this.#waitBriefly = db.prepare(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#rollback = db.prepare('ROLLBACK')
    this.#savepoint = db.prepare('SAVEPOINT job')
    this.#release = db.prepare('RELEASE job')
    this.#rollbackToSavepoint = db.prepare('ROLLBACK TO job')
  }

  /** Why the last transaction failed; undefined when it was committed. */
  get fault(): unknown {
    return this.#fault
  }

  /**
   * Runs `work` in the next transaction; resolves with its result once that is on disk. When `work` throws, its
   * own writes are undone and the promise rejects with what was thrown. Rejects with SQLite's error when the file
   * fails, and with a StoreError when another process keeps it locked for 500 ms.
   */
  run<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let result: T
      this.#queue.push({
        run: () => {
          result = work()
        },
        done: () => resolve(result),
        fail: reject,
        until: performance.now() + PATIENCE_MS,
      })
      this.#schedule()
    })
  }

  /** Resolves when everything that was asked before is done; each caller has been told whether it succeeded. */
  async flush(): Promise<void> {
    if (this.#queue.length > 0) await this.run(() => {}).catch(() => {})
  }

  #schedule(): void {
    if (this.#scheduled || this.#queue.length === 0) return
    this.#scheduled = true
    const drain = () => {
      this.#scheduled = false
      this.#drain()
      this.#schedule()
    }
    if (this.#locked) setTimeout(drain, RETRY_MS * (0.5 + Math.random()))
    else setImmediate(drain)
  }

  #drain(): void {
    try {
      this.#locked = !this.#tryBegin()
    } catch (error) {
      this.#fail(this.#queue.splice(0), error)
      return
    }
    if (this.#locked) {
      this.#giveUp()
      return
    }
    const jobs = this.#queue.splice(0, MAX_JOBS)
    try {
      const outcomes = jobs.map(job => this.#attempt(job))
      this.#commit.run()
      this.#fault = undefined
      for (const tell of outcomes) tell()
    } catch (error) {
      if (this.#db.inTransaction) this.#rollback.run()
      this.#fail(jobs, error)
    }
  }

  /** One job, undone alone when it throws; returns how to tell its caller. Throws when all jobs are concerned. */
  #attempt(job: Job): () => void {
    this.#savepoint.run()
    try {
      job.run()
    } catch (error) {
      if (!this.#db.inTransaction || STORAGE_FAULT.test(codeOf(error))) throw error
      this.#rollbackToSavepoint.run()
      this.#release.run()
      return () => job.fail(error)
    }
    this.#release.run()
    return job.done
  }

  #fail(jobs: readonly Job[], error: unknown): void {
    this.#fault = error
    for (const job of jobs) job.fail(error)
  }

  /** Takes the write lock unless another process has it; SQLite's own waiting would block the event loop. */
  #tryBegin(): boolean {
    this.#waitNever.get()
    try {
      this.#begin.run()
      return true
    } catch (error) {
      if (codeOf(error).startsWith('SQLITE_BUSY')) return false
      throw error
    } finally {
      this.#waitBriefly.get()
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
