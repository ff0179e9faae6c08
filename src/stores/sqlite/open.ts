/** Opens the database file: rejects foreign files before writing anything, and migrates the schema. */
import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { StoreError } from '../../core/ports.ts'
import { makeFolder } from '../make-folder.ts'
import { Database, type Sqlite } from './driver.ts'
import { APPLICATION_ID } from './migrations/1-start.ts'
import { migrations } from './migrations.ts'

export type { Sqlite } from './driver.ts'

/** SQLite's own waiting would block the event loop: the writer retries asynchronously, and readers never wait. */
const NO_TIMEOUT = 'busy_timeout = 0'
/** Before the first request a blocking wait delays no client. */
const START_TIMEOUT_MS = 5000
const START_RETRY_MS = 5
const MAX_JOURNAL_BYTES = 64 * 1024 * 1024
/** The integrity check reads the whole file, about 100 MB a second; larger files would delay the start. */
const MAX_CHECKED_BYTES = 64 * 1024 * 1024

const MAGIC = 'SQLite format 3\0'

/** Opens `path`, or a database in memory for `:memory:`. Throws a StoreError and leaves the file unchanged. */
export function openDatabase(path: string, steps: readonly string[] = migrations): Sqlite {
  const size = path === ':memory:' ? 0 : prepareFile(path)
  let db: Sqlite | undefined
  try {
    db = new Database(path, { timeout: START_TIMEOUT_MS })
    if (size > 0 && size <= MAX_CHECKED_BYTES) checkPages(db)
    checkOwner(db, path, steps.length)
    enterWal(db)
    db.pragma('synchronous = FULL')
    db.pragma('foreign_keys = ON')
    db.pragma(`journal_size_limit = ${MAX_JOURNAL_BYTES}`)
    migrate(db, steps)
    db.pragma(NO_TIMEOUT)
    return db
  } catch (cause) {
    db?.close()
    if (cause instanceof StoreError) throw cause
    throw new StoreError(`Cannot open the database ${path}: ${reason(cause)}`, { cause })
  }
}

/**
 * Runs `work`, a write at start, waiting longer for other processes. Closes the database and throws a StoreError on
 * failure.
 */
export function atStart<T>(db: Sqlite, work: () => T): T {
  try {
    db.pragma(`busy_timeout = ${START_TIMEOUT_MS}`)
    const result = work()
    db.pragma(NO_TIMEOUT)
    return result
  } catch (cause) {
    db.close()
    throw new StoreError(`Cannot write the database ${db.name}: ${reason(cause)}`, { cause })
  }
}

/** Creates missing folders and file, accessible by their owner only; returns the file's size. */
function prepareFile(path: string): number {
  const folder = dirname(resolve(path))
  try {
    makeFolder(folder, 0o700)
    accessSync(folder, constants.W_OK)
    const file = openSync(path, 'a+', 0o600)
    try {
      const head = Buffer.alloc(MAGIC.length)
      const length = readSync(file, head, 0, head.length, 0)
      if (length > 0 && head.toString('latin1') !== MAGIC) {
        throw new StoreError(
          `${path} is not a SQLite database and was not changed. Move it away, or set stores.sqlite to another path.`,
        )
      }
    } finally {
      closeSync(file)
    }
    return statSync(path).size
  } catch (cause) {
    if (cause instanceof StoreError) throw cause
    throw new StoreError(`Cannot write the database ${path}: ${reason(cause)}. It needs a writable file and folder.`, {
      cause,
    })
  }
}

function checkPages(db: Sqlite): void {
  const found = db.pragma('quick_check(1)', { simple: true })
  if (found !== 'ok') throw new Error(`it is corrupt (${found}). Restore a backup, or move the file away.`)
}

/** When two processes switch to WAL at once, SQLite reports busy to one of them immediately. */
function enterWal(db: Sqlite): void {
  const giveUpAt = performance.now() + START_TIMEOUT_MS
  for (;;) {
    try {
      db.pragma('journal_mode = WAL')
      return
    } catch (error) {
      const busy = error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')
      if (!busy || performance.now() > giveUpAt) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, START_RETRY_MS)
    }
  }
}

/** The number of the last step that the database has. */
export const schemaVersion = (db: Sqlite): number => db.pragma('user_version', { simple: true }) as number

/** Throws a StoreError for the database of another program, and for a newer one. */
export function checkOwner(db: Sqlite, path: string, known: number): void {
  const version = schemaVersion(db)
  const empty = db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get() === 0
  if (!empty && db.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
    throw new StoreError(`${path} is the database of another program. Set stores.sqlite to another path.`)
  }
  if (version > known) {
    throw new StoreError(
      `${path} was written by a newer version: its schema is ${version}, this version knows up to ${known}. ` +
        'Run the newer version, or restore a backup from before the upgrade.',
    )
  }
}

/** In one transaction: a file has the new schema or the old one. Another process may have been first. */
function migrate(db: Sqlite, steps: readonly string[]): void {
  const missing = db.transaction(() => {
    for (const sql of steps.slice(schemaVersion(db))) db.exec(sql)
    db.pragma(`user_version = ${steps.length}`)
  })
  if (schemaVersion(db) < steps.length) missing.immediate()
}

const reason = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))
