/** Ten thousand organizations with ten keys each: finding a key stays cheap, and so does starting. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import type { Principal } from '../../src/core/ports.ts'
import { changeLimit, forgetLimits } from '../../src/stores/sql/limits.ts'
import { SqliteSql } from '../../src/stores/sql/sqlite.ts'
import type { Sqlite } from '../../src/stores/sqlite/driver.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { Writer } from '../../src/stores/sqlite/writer.ts'
import { planOf, type Ran, statementsOf } from './statements.ts'
import { readersOf, temporaryFolder } from './subject.ts'

const ORGANIZATIONS = 10_000
const KEYS = 10
const FOUND = 2000
/** A step of a query plan that reads one of the tables which have as many rows as there are customers. */
const GROWING =
  /^(?:SCAN (?:keys|parents|members|projects|organizations|balances)\b|SEARCH (?:keys|projects|organizations)$)/
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

/** How often each statement was run, by its beginning. */
function counted(ran: readonly Ran[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { sql } of ran) {
    const [beginning] = /^(?:\w+ )?[\w.]+/.exec(sql)!
    counts[beginning] = (counts[beginning] ?? 0) + 1
  }
  return counts
}

/** Of each statement once: the steps that go through a whole table of those that grow. */
function scansOf(db: Sqlite, ran: readonly Pick<Ran, 'sql' | 'given'>[]): string[] {
  const once = new Map(ran.map(statement => [statement.sql, statement]))
  return [...once.values()].flatMap(statement => planOf(db, statement)).filter(step => GROWING.test(step))
}

// Far apart, so that neither the cache of keys nor the pages of those before help.
const places = Array.from({ length: FOUND }, (_, i) => (i * 7919) % (ORGANIZATIONS * KEYS))

t.test('a key is found by indexes alone, and once known without a read', async t => {
  const db = openDatabase(path)
  t.teardown(() => db.close())
  const all = places.map(place => hashes[place]!)
  const few = all.slice(-1000)
  // The clock stands, so that the database is asked once whether it has changed.
  const { keys } = readersOf(db, () => 0)
  const ran = statementsOf(t, path)
  let found = 0
  for (const hash of all) if ((await keys.find(hash))?.keyName === 'k') found++
  t.equal(found, FOUND)
  t.strictSame(
    counted(ran),
    {
      'PRAGMA data_version': 1,
      'SELECT keys.id': FOUND,
      'SELECT projects.org_id': new Set(places.map(place => Math.floor(place / KEYS))).size,
      'SELECT org_id': 1,
    },
    'its row, and once that of its project, and once all discounts',
  )
  t.strictSame(scansOf(db, ran), [])
  t.strictSame(
    scansOf(db, [{ sql: 'SELECT id FROM keys WHERE name = ?', given: ['k'] }]),
    ['SCAN keys'],
    'as others do',
  )
  t.equal(scansOf(db, [{ sql: 'SELECT max(name) FROM keys', given: [] }]).length, 1)
  // With joins, SQLite would make a new plan for each value of a bare parameter.
  const joined = [...new Set(ran.map(({ sql }) => sql))].filter(sql => sql.includes(' JOIN '))
  t.equal(joined.length, 2)
  for (const sql of joined) t.notMatch(sql, /(?<!\bCAST\()\?/)

  ran.length = 0
  for (const hash of [...few, ...few, ...few, ...few])
    if (!(await keys.find(hash))) throw new Error('a key was not found')
  t.strictSame(ran, [], 'a known one is not read')
})

t.test('a key begins a session with a limit in place of one that is over, and reads no table that grows', async t => {
  let now = 0
  const stores = openSqlite(path, { now: () => now })
  t.teardown(() => stores.close())
  const db = openDatabase(path)
  t.teardown(() => db.close())
  const principal = (await stores.keys.find(hashes[0]!)) as Principal
  const begin = () => {
    const input = { principal, customer: 'Ada', models: undefined, limit: 5n, expiresAt: now + 1 }
    return stores.sessions.begin(input)
  }
  await begin()
  now += 2
  const ran = statementsOf(t, path)
  await begin()
  t.equal(ran.filter(({ sql }) => sql.startsWith('DELETE FROM keys')).length, 1)
  t.strictSame(scansOf(db, ran), [])
  t.notOk(
    ran.some(({ sql }) => sql.includes('created_by = ')),
    'it has spent nothing yet',
  )
  // SQLite looks for rows that reference a deleted one, and shows no plan of it.
  const tables = db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all()
  const references = tables.flatMap(table =>
    (db.pragma(`foreign_key_list(${table})`) as { table: string; from: string }[])
      .filter(one => one.table === 'keys')
      .map(({ from }) => ({ sql: `SELECT 1 FROM ${table} WHERE ${from} = ?`, given: ['k'] })),
  )
  t.ok(references.length > 4)
  t.strictSame(
    references.flatMap(one => planOf(db, one)).filter(step => !step.startsWith('SEARCH ')),
    [],
  )
})

t.test('sessions of long lists of models are kept in memory as many keys, and read again', async t => {
  const stores = openSqlite(path, { now: () => 0 })
  t.teardown(() => stores.close())
  const principal = (await stores.keys.find(hashes[0]!)) as Principal
  const models = Array.from({ length: 900 }, (_, n) => `${n}`.padEnd(66, 'x'))
  const begun = await Promise.all(
    Array.from({ length: 100 }, () =>
      stores.sessions.begin({ principal, customer: 'Ada', models, limit: undefined, expiresAt: 1000 }),
    ),
  )
  const secrets = begun.map(({ key }) => createHash('sha256').update(key).digest('hex'))
  const find = async () => {
    for (const secret of secrets) if (!(await stores.keys.find(secret))) throw new Error('a session was not found')
  }
  await find()
  const ran = statementsOf(t, path)
  await find()
  t.ok(ran.length > 0, 'a hundred of them are more than are kept')
  ran.length = 0
  for (const secret of secrets.slice(-50)) stores.keys.find(secret)
  t.strictSame(ran, [])
})

t.test('a limit of a member counts the spending of its keys, which are found by an index', async t => {
  const db = openDatabase(path)
  t.teardown(() => db.close())
  const ran = statementsOf(t, path)
  await new SqliteSql(db, new Writer(db)).transaction(async sql => {
    await changeLimit(sql, 'member', 'ada', { set: { amount: 5n } }, 0)
    await forgetLimits(sql, 'ada')
  })
  t.equal(ran.filter(({ sql }) => sql.includes('created_by = ')).length, 2)
  t.strictSame(scansOf(db, ran), [])
})

t.test('the stores open with as few statements as on an empty file, and read no table that grows', async t => {
  const empty = join(temporaryFolder(t), 'gateway.db')
  openDatabase(empty).close()
  const opened = async (path: string) => {
    const ran = statementsOf(t, path)
    const stores = openSqlite(path)
    await stores.ledger.recover()
    t.teardown(() => stores.close())
    return { ran: [...ran], stores }
  }
  const small = await opened(empty)
  const { ran, stores } = await opened(path)
  t.ok(
    small.ran.some(({ sql }) => sql.startsWith('DELETE FROM holds')),
    'its orphans are looked for',
  )
  t.ok(ran.length < 200, `${ran.length} statements`)
  t.strictSame(
    ran.map(({ sql }) => sql),
    small.ran.map(({ sql }) => sql),
  )
  const db = openDatabase(path)
  t.teardown(() => db.close())
  t.strictSame(scansOf(db, ran), [])
  t.equal((await stores.accounts.listKeys('project-77')).length, KEYS)
})
