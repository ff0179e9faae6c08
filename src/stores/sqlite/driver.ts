/**
 * The SQLite driver. npm installs one of two: better-sqlite3 13 on Node 22 and later, which contains binaries, and 12
 * below that, which is fetched or compiled. On Node 24.19 and later, version 12 aborts the process when a statement is collected
 * while no JavaScript runs (an assertion in its cleanup hook).
 */
import { createRequire } from 'node:module'
import type BetterSqlite3 from 'better-sqlite3'
import { StoreError } from '../../core/ports/stores.ts'

/** An open database, of whichever driver is installed. */
export type Sqlite = BetterSqlite3.Database
type Driver = typeof BetterSqlite3

/** Names in `package.json`; newer driver first. */
const PACKAGES = ['better-sqlite3-napi', 'better-sqlite3']

const load = createRequire(import.meta.url) as (name: string) => Driver

/** The class of the installed driver. Loading this module throws a StoreError when no driver can be used. */
export const Database = driver()

function driver(): Driver {
  for (const name of PACKAGES) {
    try {
      const found = load(name)
      // Its binary is loaded by the first database.
      new found(':memory:').close()
      return found
    } catch (cause) {
      if ((cause as { message?: string }).message?.startsWith(`Cannot find module '${name}'`)) continue
      const [reason] = String((cause as { message?: unknown }).message).split('\n')
      throw unusable(`${name}: ${reason?.replace(/\W+$/, '')}`, cause)
    }
  }
  throw unusable('none is installed')
}

function unusable(reason: string, cause?: unknown): StoreError {
  return new StoreError(
    `No SQLite driver can be used (${reason}). Install the package again with Node 22 or newer, whose driver contains its ` +
      'binary. On Node 20 npm must be allowed to run install scripts. It fetches a binary from github.com; where it ' +
      "cannot, it needs python3, make, a C++ compiler and Node's headers.",
    { cause },
  )
}
