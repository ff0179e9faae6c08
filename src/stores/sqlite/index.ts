/** All stores of one node, on one database file. */
import type { AccountStore, KeyStore, Ledger, Probe, UsageStore } from '../../core/ports.ts'
import { SqliteAccounts } from './accounts.ts'
import { SqliteKeys } from './keys.ts'
import { SqliteLedger } from './ledger.ts'
import { openDatabase } from './open.ts'
import { SqliteUsage } from './usage.ts'
import { Writer } from './writer.ts'

export { StoreError } from './open.ts'

export interface Stores extends Probe {
  readonly keys: KeyStore
  readonly ledger: Ledger
  readonly accounts: AccountStore
  readonly usage: UsageStore
  /** Throws when the database cannot be read, or could not be written the last time. */
  ping(): void
  /** Resolves when all that was asked before is durable and the file is closed. */
  close(): Promise<void>
}

export interface StoreOptions {
  /** Wall clock, Unix milliseconds. */
  readonly now?: () => number
  /** Told of background work that failed and will be tried again. */
  readonly warn?: (error: unknown) => void
}

const emit = (error: unknown): void => process.emitWarning(error instanceof Error ? error : String(error))

/** Throws a StoreError, which says what to do, when the file cannot be used. */
export function openStores(path: string, { now = Date.now, warn = emit }: StoreOptions = {}): Stores {
  const db = openDatabase(path)
  const writer = new Writer(db)
  const keys = new SqliteKeys(db)
  const ledger = new SqliteLedger(db, writer, { now, warn })
  const read = db.prepare('SELECT count(*) FROM sqlite_schema')
  return {
    keys,
    ledger,
    accounts: new SqliteAccounts(db, writer, { now, onKeyChange: () => keys.clear() }),
    usage: new SqliteUsage(db),
    ping() {
      read.get()
      if (writer.fault !== undefined) throw writer.fault
    },
    async close() {
      await ledger.close().catch(warn)
      db.close()
    },
  }
}
