/** The database of a gateway, read by tests from outside, and groups of checks that verify it afterwards. */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Database, type Sqlite } from '../../src/stores/sqlite/driver.ts'
import { commandsOf } from './commands.ts'
import type { Gateway } from './gateway.ts'
import { checkInvariants } from './invariants.ts'
import type { Upstream } from './upstream.ts'

type Home = Pick<Gateway, 'dir'>

const pathOf = ({ dir }: Home) => join(dir, 'data/gateway.db')

/** Opens a gateway's database beside it, to read unless `writable`; it is closed when the test ends. */
export function openBooks(t: Pick<Test, 'teardown'>, gateway: Home, { writable = false } = {}): Sqlite {
  const books = new Database(pathOf(gateway), { readonly: !writable })
  t.teardown(() => books.close())
  return books
}

/** Reads the database from disk and closes it: a connection kept open would spare the gateway its recovery. */
export function readBooks<T>(gateway: Home, read: (books: Sqlite) => T): T {
  const books = new Database(pathOf(gateway), { readonly: true })
  try {
    return read(books)
  } finally {
    books.close()
  }
}

const { resolve } = createRequire(import.meta.url)
/** Arguments: the driver, the database. */
const LOCK = `const [driver, path] = process.argv.slice(1); const db = new (require(driver))(path)
  db.exec('BEGIN IMMEDIATE'); console.log('locked'); process.stdin.resume().once('close', () => db.exec('COMMIT'))`

/** Resolves once another process holds the write lock, with a function that releases it. */
export async function lockBooks(gateway: Home): Promise<() => Promise<void>> {
  const args = ['-e', LOCK, installedDriver(), pathOf(gateway)]
  const other = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(other, 'exit')
  await once(other.stdout, 'data')
  return async () => {
    other.stdin.end()
    await exited
  }
}

/** The driver chosen by `src/stores/sqlite/driver.ts`. */
function installedDriver(): string {
  try {
    return resolve('better-sqlite3-napi')
  } catch {
    return resolve('better-sqlite3')
  }
}

/** Adds a project with response caching, the only one of its name, and returns a key of it. */
export function cachingKey(books: Sqlite): string {
  const key = `mgw_${randomBytes(32).toString('base64url')}`
  books.exec(
    `INSERT INTO projects (id, org_id, name, cache_ttl_ms, created_at)
      SELECT 'caching', id, 'caching', 60000, 0 FROM organizations`,
  )
  books
    .prepare(
      `INSERT INTO keys (id, project_id, name, kind, hash, preview, created_at)
        VALUES ('caching', 'caching', '', 'key', ?, '', 0)`,
    )
    .run(createHash('sha256').update(key).digest('hex'))
  return key
}

/** Options of groups of checks, and the additions of their file. */
export interface GroupOptions {
  gateway: Gateway
  upstream: Upstream
  books: Sqlite
  /** Additional secrets that must not leak. */
  secrets?: string[]
  /** Runs before each group, after the upstream was reset. */
  before?: () => unknown
  /** Additional checks after each group. */
  after?: (t: Test) => unknown
}

/** A group of checks, followed by the invariants. */
export type Group = (name: string, run: (t: Test) => Promise<unknown>) => Promise<unknown>

/** Creates `group`, which verifies after its checks that the invariants hold, the sums agree, and no hold is left. */
export function groupsOf(t: Pick<Test, 'test'>, options: GroupOptions): Group {
  const { gateway, upstream, books, secrets = [], before, after } = options
  const command = commandsOf(gateway)
  return (name, run) =>
    t.test(name, async t => {
      await upstream.reset()
      await before?.()
      await run(t)
      await checkInvariants(t, gateway, upstream, { secrets })
      t.strictSame(await command('usage.check'), { differences: [] })
      t.strictSame(books.prepare('SELECT * FROM holds').all(), [], 'INV-3: nothing is held')
      await after?.(t)
    })
}
