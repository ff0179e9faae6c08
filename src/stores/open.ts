/** Opens the configured stores. Nothing outside this folder imports an implementation. */
import { statSync } from 'node:fs'
import { StoreError, type Stores } from '../core/ports/stores.ts'
import type { Keyring } from './keyring.ts'
import type { Maintenance } from './maintenance.ts'
import type { RedisOptions, RedisStores } from './redis/index.ts'

/** Location of the stores. */
interface StoresPlace {
  /** Path of a database file; files of this machine stand beside it, whatever the stores are in. */
  readonly sqlite: string
  /** Address of a PostgreSQL database, which takes the place of the file. */
  readonly postgres?: string | undefined
}

interface OpenOptions {
  /** Receives failures of background work, which is retried. */
  readonly warn: (error: unknown) => void
  /** Called after a change of keys or policies by this process. */
  readonly changed: () => void
  /** Returns the master keys; called when they are first needed. */
  readonly keyring: () => Keyring
  /** Version of this program. */
  readonly version: string
  /** Required `identity` of the stores; any when absent. */
  readonly identity?: string | undefined
}

/** Rejects with a StoreError and leaves nothing open. */
export async function openStores({ sqlite, postgres }: StoresPlace, options: OpenOptions): Promise<Stores> {
  const { warn, changed, keyring, version, identity } = options
  if (postgres !== undefined) {
    const { openPostgres } = await import('./postgres/index.ts')
    return openPostgres(postgres, { warn, changed, keyring, version, identity, spool: sqlite })
  }
  // Loaded here: commands that open no stores need no driver.
  const { openSqlite, sqliteIdentity } = await import('./sqlite/index.ts')
  // Compare before opening, which creates a missing file.
  if (identity !== undefined && sqliteIdentity(sqlite) !== identity) {
    throw new StoreError(`The database ${sqlite} was removed or replaced. Restart the gateway.`)
  }
  return openSqlite(sqlite, { warn, changed, keyring })
}

/** Opens nothing until a method is called. Rejects with a StoreError without a driver. */
export async function maintenanceOf({ sqlite, postgres }: StoresPlace): Promise<Maintenance> {
  if (postgres !== undefined) return (await import('./postgres/index.ts')).postgresMaintenance(postgres)
  const { sqliteMaintenance } = await import('./sqlite/maintenance.ts')
  return sqliteMaintenance(sqlite)
}

/** Rejects with a StoreError where no store can be at a place. Asks no server, and changes no file. */
export async function checkPlace(option: 'sqlite' | 'postgres' | 'redis', place: string): Promise<void> {
  if (option === 'redis') (await import('./redis/address.ts')).readRedisAddress(place)
  else if (option === 'postgres') (await import('./postgres/migrate.ts')).checkAddress(place)
  else if (statSync(place, { throwIfNoEntry: false })?.isFile() === false) throw new StoreError(`${place} is no file.`)
}

export type { RedisStores } from './redis/index.ts'

/** Opens what nodes share. Loaded here: gateways of one node need no driver. */
export const openRedis = async (address: string, options: RedisOptions): Promise<RedisStores> =>
  (await import('./redis/index.ts')).openRedis(address, options)

/** Rejects with the reason where the Redis at `address` cannot be used. */
export const pingRedis = async (address: string): Promise<void> => (await import('./redis/index.ts')).pingRedis(address)

/** Copies a SQLite database into an empty PostgreSQL database. Rejects with a StoreError, and has copied nothing then. */
export async function copyStores(
  from: { readonly sqlite: string },
  to: { readonly postgres: string },
  progress: (table: string, rows: number, all: number) => void,
): Promise<Readonly<Record<string, number>>> {
  const { copyToPostgres } = await import('./postgres/copy.ts')
  return copyToPostgres({ from: from.sqlite, to: to.postgres, progress })
}

/** Says why no stores can be opened with the installed packages; undefined when they can. */
export const driverProblem = (): Promise<string | undefined> =>
  import('./sqlite/driver.ts').then(
    () => undefined,
    (error: Error) => error.message,
  )
