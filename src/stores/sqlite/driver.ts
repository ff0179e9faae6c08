/**
 * The SQLite driver: better-sqlite3 13 where it is installed, which is from Node 22 on, else 12. From Node 24.19 on, 12
 * ends the process when a statement is collected while no JavaScript runs (an assertion on its cleanup hook).
 */
import { createRequire } from 'node:module'
import type BetterSqlite3 from 'better-sqlite3'

export type Sqlite = BetterSqlite3.Database

const load = createRequire(import.meta.url) as (name: string) => typeof BetterSqlite3

export const Database = driver()

function driver(): typeof BetterSqlite3 {
  try {
    return load('better-sqlite3-napi')
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'MODULE_NOT_FOUND') throw error
    return load('better-sqlite3')
  }
}
