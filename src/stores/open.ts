/** Opens the stores that the configuration names. Nothing outside of this folder imports an implementation of them. */
import { StoreError, type Stores } from '../core/ports/stores.ts'
import type { Keyring } from './keyring.ts'
import { openSqlite, sqliteIdentity } from './sqlite/index.ts'

/** Where the stores are kept. */
export interface StoresPlace {
  /** Path of a database file. */
  readonly sqlite: string
}

export interface OpenOptions {
  /** Called with what background work failed with; the work is tried again. */
  readonly warn: (error: unknown) => void
  /** Returns the master keys; called when they are first needed. */
  readonly keyring: () => Keyring
  /** The `identity` that the stores must have; any where it is left out. */
  readonly identity?: string | undefined
}

/** Rejects with a StoreError, and then nothing is left open. */
export async function openStores({ sqlite }: StoresPlace, options: OpenOptions): Promise<Stores> {
  const { warn, keyring, identity } = options
  // Compared first: opening makes the file that is missing.
  if (identity !== undefined && sqliteIdentity(sqlite) !== identity) {
    throw new StoreError(`The database ${sqlite} was removed or replaced. Restart the gateway.`)
  }
  return openSqlite(sqlite, { warn, keyring })
}
