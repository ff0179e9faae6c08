/** Ten thousand organizations with ten keys each: finding a key stays cheap, and so does starting. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Database, type Sqlite } from '../../src/stores/sqlite/driver.ts'
import { openStores } from '../../src/stores/sqlite/index.ts'
import { SqliteKeys } from '../../src/stores/sqlite/keys.ts'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { cpuMs } from '../helpers/cpu.ts'
import { temporaryFolder } from './subject.ts'

const ORGANIZATIONS = 10_000
const KEYS = 10
/** Ten thousand rows and more: none of these may be read from beginning to end. */
const LARGE = /^(?:SCAN (?:keys|projects|organizations)\b|SEARCH (?:keys|projects|organizations)$)/
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const path = join(temporaryFolder(t), 'gateway.db')
const hashes: string[] = []

t.before(() => {
  const db = openDatabase(path)
  const organization = db.prepare(
    "INSERT INTO organizations (id, name, account, created_at) VALUES (?, ?, 'prepaid', 0)",
  )
  const project = db.prepare("INSERT INTO projects (id, org_id, name, created_at) VALUES (?, ?, 'web', 0)")
  const key = db.prepare(
    "INSERT INTO keys (id, project_id, name, kind, hash, preview, created_at) VALUES (?, ?, 'k', 'key', ?, 'mgw_…', 0)",
  )
  db.transaction(() => {
    for (let org = 0; org < ORGANIZATIONS; org++) {
      organization.run(`org-${org}`, `Organization ${org}`)
      project.run(`project-${org}`, `org-${org}`)
      for (let n = 0; n < KEYS; n++) {
        const hash = sha256(`mgw_${org}-${n}`)
        hashes.push(hash)
        key.run(`key-${org}-${n}`, `project-${org}`, hash)
      }
    }
  })()
  db.close()
})

/** Notes in `executed` the SQL of what statements run that are prepared while `t` does. */
function watch(t: Test, executed: string[]): void {
  const { prepare } = Database.prototype
  const watched = function (this: Sqlite, sql: string) {
    const statement = prepare.call(this, sql)
    for (const name of ['get', 'all', 'run', 'iterate'] as const) {
      const method = statement[name] as (...values: unknown[]) => unknown
      const noting = (...values: unknown[]) => {
        executed.push(sql)
        return method.apply(statement, values)
      }
      Object.defineProperty(statement, name, { value: noting })
    }
    return statement
  }
  t.intercept(Database.prototype, 'prepare', { value: watched })
}

/** What of the plans of these statements reads a large table from beginning to end. */
function scans(statements: Iterable<string>): string[] {
  const db = new Database(path)
  const found: string[] = []
  for (const sql of new Set(statements)) {
    if (!/^\s*(?:SELECT|WITH|UPDATE|DELETE|INSERT)/i.test(sql)) continue
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`)
    const names = [...sql.matchAll(/[@:$](\w+)/g)].map(match => [match[1]!, null])
    const marks = sql.match(/\?/g)?.map(() => null) ?? []
    const rows = plan.all(...marks, ...(names.length > 0 ? [Object.fromEntries(names)] : [])) as { detail: string }[]
    found.push(...rows.filter(({ detail }) => LARGE.test(detail)).map(({ detail }) => `${detail}: ${sql}`))
  }
  db.close()
  return found
}

t.test('the plans of statements tell which of them read a large table', async t => {
  t.strictSame(scans(['SELECT id FROM keys WHERE hash = ?']), [])
  t.equal(scans(['SELECT max(name) FROM keys', 'SELECT name FROM projects']).length, 2)
})

t.test('a key is found by two rows, without a look at any other, and from memory by none', async t => {
  const executed: string[] = []
  watch(t, executed)
  const db = openDatabase(path)
  t.teardown(() => db.close())
  const keys = new SqliteKeys(db)
  keys.find(hashes[0]!)
  executed.length = 0
  // Far apart, so that neither the cache of keys nor the projects of those before help.
  const scattered = Array.from({ length: 1000 }, (_, i) => hashes[(i * 7919) % hashes.length]!)
  const took = cpuMs(() => {
    for (const hash of scattered) if (!keys.find(hash)) throw new Error('a key was not found')
  })
  t.comment(`a key is read in ${took.toFixed(1)} us of CPU`)
  const reads = () => executed.filter(sql => /FROM/.test(sql)).length
  t.ok(reads() <= 2 * scattered.length, `${reads()} statements`)
  t.strictSame(scans(executed), [])
  executed.length = 0
  for (const hash of scattered) keys.find(hash)
  t.equal(reads(), 0, 'from memory')
})

t.test('the stores open without a look at all keys, projects or organizations', async t => {
  const executed: string[] = []
  watch(t, executed)
  const stores = openStores(path)
  t.teardown(() => stores.close())
  await stores.ledger.recover()
  t.ok(executed.length > 0 && executed.length < 200, `${executed.length} statements`)
  t.strictSame(scans(executed), [])
  t.equal((await stores.accounts.listKeys('project-77')).length, KEYS)
})
