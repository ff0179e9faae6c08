/** Maintenance of a database file: schema, online backup, restore. */
import { chmodSync, closeSync, copyFileSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { StoreError } from '../../core/ports.ts'
import type { Maintenance, SchemaState } from '../maintenance.ts'
import { makeFolder } from '../make-folder.ts'
import { Database, type Sqlite } from './driver.ts'
import { type Instance, isAlive } from './instances.ts'
import { migrations } from './migrations.ts'
import { checkOwner, openDatabase, schemaVersion } from './open.ts'

const WAIT_MS = 5000
/** All pages in one step: a commit of another process between two steps would start the copy anew. */
const ALL_PAGES = 0x7fffffff

/** For the database at `path`, which may be absent. */
export const sqliteMaintenance = (path: string): Maintenance => ({
  name: path,
  schema: async () => schemaOf(path),
  async migrate() {
    const before = schemaOf(path)
    if (before.present !== undefined && before.present < before.known) checkUnused(path)
    if (before.present !== before.known) openDatabase(path).close()
    return before
  },
  backup: file => backup(path, resolve(file)),
  restore: async file => restore(path, resolve(file)),
})

const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined

/** Runs `work` on an existing file, and closes it. Throws a StoreError for any failure. */
function withDatabase<T>(path: string, options: { readonly readonly: boolean }, work: (db: Sqlite) => T): T {
  let db: Sqlite | undefined
  try {
    db = new Database(path, { fileMustExist: true, timeout: WAIT_MS, ...options })
    return work(db)
  } catch (cause) {
    if (cause instanceof StoreError) throw cause
    throw new StoreError(`Cannot read the database ${path}: ${reason(cause)}.`, { cause })
  } finally {
    db?.close()
  }
}

function schemaOf(path: string): SchemaState {
  const known = migrations.length
  if (!isThere(path)) return { present: undefined, known }
  const present = withDatabase(path, { readonly: true }, db => {
    checkOwner(db, path, known)
    return schemaVersion(db)
  })
  return { present, known }
}

/** Throws while a process has registered itself in the database and lives. */
export function checkUnused(path: string): void {
  const owners = withDatabase(path, { readonly: true }, db =>
    hasOwners(db)
      ? db.prepare<[], Instance & { seen_at: number }>('SELECT id, pid, started, host, seen_at FROM owners').all()
      : [],
  )
  const living = owners.find(owner => isAlive(owner, Date.now()))
  if (!living) return
  const [host] = living.host.split(' ')
  throw new StoreError(`A gateway runs on ${path} (process ${living.pid} on ${host}). Stop it first.`)
}

const hasOwners = (db: Sqlite): boolean =>
  db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'owners'").get() !== undefined

async function backup(path: string, file: string): Promise<number> {
  if (!isThere(path)) throw new StoreError(`There is no database ${path}. Name its configuration with --config.`)
  if (isThere(file)) throw existing(file)
  const part = `${file}.part`
  let source: Sqlite | undefined
  let isOwn = false
  try {
    source = new Database(path, { readonly: true, fileMustExist: true, timeout: WAIT_MS })
    checkOwner(source, path, migrations.length)
    // The mode is set before SQLite writes anything.
    closeSync(openSync(part, 'wx', 0o600))
    isOwn = true
    await source.backup(part, { progress: () => ALL_PAGES })
    withDatabase(part, { readonly: false }, copy => {
      // One file, without a log beside it. No process runs on the copy.
      copy.pragma('journal_mode = DELETE')
      if (hasOwners(copy)) copy.exec('DELETE FROM owners')
    })
    checkCopy(part)
    flush(part)
    // Many shares for backups have no hard links.
    if (isThere(file)) throw existing(file)
    renameSync(part, file)
    flush(dirname(file))
    return statSync(file).size
  } catch (cause) {
    if (cause instanceof StoreError) throw cause
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') throw existing(isThere(file) ? file : part)
    throw new StoreError(`Cannot write the backup ${file}: ${reason(cause)}.`, { cause })
  } finally {
    source?.close()
    if (isOwn) rmSync(part, { force: true })
  }
}

const existing = (file: string): StoreError => new StoreError(`${file} already exists. Name a new file.`)

/** Throws unless the file is a whole database of this program, and no newer one. */
function checkCopy(file: string): void {
  if (!isThere(file)) throw new StoreError(`There is no file ${file}.`)
  withDatabase(file, { readonly: true }, db => {
    const found = db.pragma('integrity_check(1)', { simple: true })
    if (found !== 'ok') throw new StoreError(`${file} is corrupt (${String(found)}). Use another backup.`)
    checkOwner(db, file, migrations.length)
    if (schemaVersion(db) === 0) throw new StoreError(`${file} is empty. Use another backup.`)
  })
}

function restore(path: string, file: string): string | undefined {
  checkCopy(file)
  const wasThere = isThere(path)
  if (wasThere) checkUnused(path)
  const part = `${path}.restore`
  try {
    makeFolder(dirname(resolve(path)), 0o700)
    copyFileSync(file, part)
    chmodSync(part, 0o600)
    checkCopy(part)
    flush(part)
    const aside = wasThere ? moveAside(path) : undefined
    renameSync(part, path)
    flush(dirname(resolve(path)))
    return aside
  } catch (cause) {
    rmSync(part, { force: true })
    if (cause instanceof StoreError) throw cause
    throw new StoreError(`Cannot restore ${path}: ${reason(cause)}.`, { cause })
  }
}

/** The log goes into the database first: a log beside another database would be applied to it. */
function moveAside(path: string): string {
  withDatabase(path, { readonly: false }, db => db.pragma('wal_checkpoint(TRUNCATE)'))
  const aside = `${path}.before-${new Date().toISOString().replace(/[-:]|\.\d+/g, '')}`
  if (isThere(aside)) throw existing(aside)
  renameSync(path, aside)
  for (const end of ['-wal', '-shm']) if (isThere(path + end)) renameSync(path + end, aside + end)
  return aside
}

function flush(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

const reason = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))
