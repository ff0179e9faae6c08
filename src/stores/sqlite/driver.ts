/**
 * The SQLite driver. npm installs one of two: better-sqlite3 13 on Node 22 and later, which contains binaries, and 12
 * below that, which is compiled. On Node 24.19 and later, version 12 aborts the process when a statement is collected
 * while no JavaScript runs (an assertion in its cleanup hook).
 */
import { createRequire } from 'node:module'
import type BetterSqlite3 from 'better-sqlite3'

/** An open database, of whichever driver is installed. */
export type Sqlite = BetterSqlite3.Database
type Driver = typeof BetterSqlite3

/** Names in `package.json`; newer driver first. */
const PACKAGES = ['better-sqlite3-napi', 'better-sqlite3']

const load = createRequire(import.meta.url) as (name: string) => Driver

/** The class of the installed driver; loading this module throws where there is none. */
export const Database = driver()

function driver(): Driver {
  for (const name of PACKAGES) {
    try {
      return load(name)
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'MODULE_NOT_FOUND') throw error
    }
  }
  throw new Error(
    'no SQLite driver is installed. Install the package with Node 22 or newer; or, with Node 20, where npm may run ' +
      'install scripts and finds python3, make and a C++ compiler.',
  )
}
