/** All stores of one node, in one database file. */
import type { Stores } from '../../core/ports.ts'
import { warn as emitWarning } from '../../lib/warn.ts'
import { Keyring, keyFile } from '../keyring.ts'
import { UsageDays } from '../sql/days.ts'
import { sqlStores } from '../sql/index.ts'
import { sqlJobs } from '../sql/jobs/index.ts'
import { SqliteSql } from '../sql/sqlite.ts'
import { SqlUsage } from '../sql/usage.ts'
import { checkBooks } from './books.ts'
import { ChangeDetector } from './change-detector.ts'
import { SqliteLedger } from './ledger.ts'
import { openDatabase } from './open.ts'
import { SqliteRetention } from './retention.ts'
import { checkFile, fileOf, LogFile } from './wal-sync.ts'
import { Writer } from './writer.ts'

export { fileOf as sqliteIdentity } from './wal-sync.ts'

interface SqliteOptions {
  /** Wall clock, Unix milliseconds. */
  readonly now?: () => number
  /** Receives failures of background work, which is retried. */
  readonly warn?: (error: unknown) => void
  /** Called after a change of keys or policies by this process. */
  readonly changed?: (() => void) | undefined
  /** Master keys; by default those of `master.key` beside the database, opened when needed. */
  readonly keyring?: () => Keyring
}

/** Throws a StoreError that says what to do when the file cannot be used. */
export function openSqlite(path: string, options: SqliteOptions = {}): Stores {
  const {
    now = Date.now,
    warn = emitWarning,
    changed,
    keyring = () => new Keyring({ given: undefined, file: keyFile(path) }),
  } = options
  const db = openDatabase(path)
  const file = fileOf(path)
  const writer = new Writer(db, path === ':memory:' ? undefined : new LogFile(path))
  const sql = new SqliteSql(db, writer)
  const stores = sqlStores(sql, { now, keyring, changed, changeSource: () => new ChangeDetector(db) })
  const { keys } = stores
  const ledger = new SqliteLedger(db, writer, { now, warn, spool: path === ':memory:' ? undefined : path })
  const read = db.prepare('SELECT count(*) FROM sqlite_schema')
  return {
    ...stores,
    identity: file,
    nodes: undefined,
    ledger,
    jobs: sqlJobs(sql, { ledger: () => ledger.within(), keys, keyring }),
    usage: new SqlUsage(sql, new UsageDays(sql, now), () => checkBooks(db)),
    retention: new SqliteRetention(db, writer),
    living: async () => ledger.living,
    async ping() {
      read.get()
      checkFile(path, file)
      if (writer.fault !== undefined) throw writer.fault
    },
    async close() {
      await ledger.close().catch(warn)
      await writer.flush()
      writer.close()
      db.close()
    },
  }
}
