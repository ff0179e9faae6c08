/** What only the SQLite stores promise: the file, its schema, group commit, other processes, crashes. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import t from 'tap'
import type { Hold, Principal } from '../../src/core/ports.ts'
import { openStores, StoreError } from '../../src/stores/sqlite/index.ts'
import { SqliteKeys } from '../../src/stores/sqlite/keys.ts'
import { SqliteLedger } from '../../src/stores/sqlite/ledger.ts'
import { migrations } from '../../src/stores/sqlite/migrations.ts'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { SqliteUsage } from '../../src/stores/sqlite/usage.ts'
import { Writer } from '../../src/stores/sqlite/writer.ts'
import type { Order } from '../helpers/store-child.ts'
import { HOUR, NOON, rowOf, type SqliteSubject, seed, sqliteSubject, temporaryFolder, topUp } from './subject.ts'

/** Forked once, while the first tests run: starting it takes longer than all it does. */
const children = [startChild(), startChild()]
t.teardown(() => {
  for (const { process } of children) process.kill('SIGKILL')
})

function startChild(): { process: ChildProcess; ready: Promise<unknown> } {
  const process = fork(new URL('../helpers/store-child.ts', import.meta.url))
  return { process, ready: once(process, 'message') }
}

async function tell(child: { process: ChildProcess; ready: Promise<unknown> }, order: Order): Promise<unknown> {
  await child.ready
  const ended = once(child.process, 'exit').then(([code, signal]) => {
    throw new Error(`the other process ended with ${code ?? signal}`)
  })
  const answer = once(child.process, 'message')
  child.process.send(order)
  return (await Promise.race([answer, ended]))[0]
}

const hold = ({ ledger }: Pick<SqliteSubject, 'ledger'>, principal: Principal, id: string, amount: bigint) =>
  ledger.hold({ id, requestId: id, principal, amount, expiresAt: NOON + HOUR })

const integer = (db: Database.Database, sql: string): number => db.prepare<[], number>(sql).pluck().get() ?? 0

/** Every value of every table, as text. */
function dump(db: Database.Database): string {
  const tables = db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all()
  return JSON.stringify(tables.map(name => db.prepare(`SELECT * FROM "${name}"`).raw().all()))
}

/** How many transactions the write-ahead log holds: a frame that ends one carries the size of the database. */
function transactionsIn(path: string): number {
  const log = readFileSync(`${path}-wal`)
  const frame = 24 + log.readUInt32BE(8)
  let count = 0
  for (let at = 32; at + frame <= log.length; at += frame) {
    const ofThisLog = log.compare(log, 16, 24, at + 8, at + 16) === 0
    if (ofThisLog && log.readUInt32BE(at + 4) > 0) count++
  }
  return count
}

t.test('opening makes folder and file for their owner only, durable and with the whole schema', async t => {
  const path = join(temporaryFolder(t), 'data', 'deep', 'gateway.db')
  const db = openDatabase(path)
  t.teardown(() => db.close())
  t.equal(statSync(join(path, '..')).mode & 0o777, 0o700)
  for (const file of [path, `${path}-wal`]) t.equal(statSync(file).mode & 0o777, 0o600)
  const settings = ['journal_mode', 'synchronous', 'foreign_keys', 'busy_timeout', 'journal_size_limit', 'user_version']
  t.same(
    settings.map(name => db.pragma(name, { simple: true })),
    ['wal', 2, 1, 50, 64 * 1024 * 1024, migrations.length],
  )
  t.same(
    db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").pluck().all(),
    'balances holds keys ledger members organizations owners projects requests usage_hourly'.split(' '),
  )
})

t.test('a later version adds its steps, and an earlier one refuses the file', async t => {
  const path = join(temporaryFolder(t), 'gateway.db')
  const steps = [...migrations, 'CREATE TABLE novelties (id TEXT PRIMARY KEY) STRICT']
  const old = openDatabase(path)
  seed(old, 'open', 0n)
  old.close()
  const db = openDatabase(path, steps)
  t.equal(db.pragma('user_version', { simple: true }), steps.length)
  t.equal(integer(db, 'SELECT count(*) FROM organizations'), 1)
  t.equal(integer(db, 'SELECT count(*) FROM novelties'), 0)
  db.close()
  const before = readFileSync(path)
  t.throws(() => openStores(path), { name: 'StoreError', message: /written by a newer version: its schema is \d/ })
  t.ok(readFileSync(path).equals(before), 'the file is as it was')
})

t.test('a step that fails leaves the schema of before', async t => {
  const path = join(temporaryFolder(t), 'gateway.db')
  openDatabase(path).close()
  const broken = 'CREATE TABLE novelties (id TEXT) STRICT; CREATE TABLE novelties (id TEXT) STRICT'
  t.throws(() => openDatabase(path, [...migrations, broken]), StoreError)
  const db = openDatabase(path)
  t.teardown(() => db.close())
  t.equal(integer(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'novelties'"), 0)
})

t.test('what cannot be the database is refused by name, and left alone', async t => {
  const folder = temporaryFolder(t)
  const foreign = join(folder, 'foreign.db')
  new Database(foreign).exec('CREATE TABLE theirs (x)').close()
  const corrupt = join(folder, 'corrupt.db')
  const db = openDatabase(corrupt)
  for (let i = 0; i < 50; i++) seed(db, 'open', 1n)
  db.close()
  const pages = readFileSync(corrupt)
  writeFileSync(corrupt, pages.fill(0x5a, 4096 * 3, 4096 * 20))
  const truncated = join(folder, 'truncated.db')
  writeFileSync(truncated, readFileSync(foreign).subarray(0, 700))
  writeFileSync(join(folder, 'notes.txt'), 'These are my notes, and no database.')
  mkdirSync(join(folder, 'directory'))

  for (const [name, why] of [
    ['notes.txt', 'is not a SQLite database'],
    ['foreign.db', 'is the database of another program'],
    ['corrupt.db', 'Cannot open the database'],
    ['truncated.db', 'Cannot open the database'],
    ['directory', 'Cannot write the database'],
    ['notes.txt/gateway.db', 'Cannot write the database'],
    ['/proc/gateway.db', 'Cannot write the database'],
  ] as const) {
    const path = name.startsWith('/') ? name : join(folder, name)
    const isFile = existsSync(path) && statSync(path).isFile()
    const before = isFile ? readFileSync(path) : undefined
    t.throws(() => openStores(path), { name: 'StoreError', message: new RegExp(`${why}|${path}.*${why}`) }, name)
    if (before) t.ok(readFileSync(path).equals(before), `${name} is as it was`)
  }
})

t.test('the ledger refuses to be changed', async t => {
  const { db } = sqliteSubject(t)
  const { orgId } = seed(db, 'prepaid', 100n)
  t.throws(() => db.exec('UPDATE ledger SET amount = 1'), { message: 'the ledger is append-only' })
  t.throws(() => db.exec('DELETE FROM ledger'), { message: 'the ledger is append-only' })
  topUp(db, orgId, 5n, 'payment-1')
  t.throws(() => topUp(db, orgId, 5n, 'payment-1'), { code: 'SQLITE_CONSTRAINT_UNIQUE' })
  t.equal(integer(db, 'SELECT sum(amount) FROM ledger'), 105)
  t.equal(integer(db, 'SELECT balance FROM balances'), 105)
})

t.test('a request row keeps each fact in its column', async t => {
  const { ledger, db } = sqliteSubject(t)
  const principal = seed(db, 'open', 0n)
  const usage = { prompt: 100, input_cache_write: 7, internal_reasoning: 5, web_search: 2, second: 1.5 }
  await ledger.record(
    rowOf(principal, 'a', { usage, streamed: true, ttftMs: 99.6, estimated: true, cost: null, at: NOON + 0.5 }),
  )
  t.same(db.prepare('SELECT * FROM requests').get(), {
    id: 'a',
    request_id: 'caller-a',
    at: NOON,
    org_id: principal.orgId,
    project_id: principal.projectId,
    key_id: principal.keyId,
    endpoint: 'chat',
    requested_model: 'large',
    model: 'large',
    provider: 'acme',
    source: 'an-app',
    status: 200,
    outcome: 'ok',
    error_code: null,
    streamed: 1,
    cached: 0,
    attempts: 1,
    duration_ms: 812,
    ttft_ms: 100,
    prompt_tokens: 100,
    completion_tokens: null,
    cache_read_tokens: null,
    cache_write_tokens: 7,
    reasoning_tokens: 5,
    other_usage: '{"web_search":2,"second":1.5}',
    estimated: 1,
    cost: null,
  })
})

t.test('amounts are exact beyond what a number can hold', async t => {
  const subject = sqliteSubject(t)
  const credits = 2n ** 62n + 1n
  const principal = seed(subject.db, 'prepaid', credits)
  const held = (await hold(subject, principal, 'a', credits)) as Hold
  t.equal((await subject.ledger.balance(principal.orgId)).held, credits)
  await subject.ledger.settle(held, rowOf(principal, 'a', { cost: credits - 1n }))
  t.same(await subject.ledger.balance(principal.orgId), { balance: 1n, held: 0n, used: credits - 1n })
  t.equal((await subject.usage.totals({ from: NOON, to: NOON + HOUR })).cost, credits - 1n)
  t.same(await subject.usage.check(), [])
})

t.test('a difference between the books is told in a sentence', async t => {
  const subject = sqliteSubject(t)
  const { db } = subject
  const principal = seed(db, 'prepaid', 1000n)
  await subject.ledger.settle(
    (await hold(subject, principal, 'a', 500n)) as Hold,
    rowOf(principal, 'a', { cost: 300n }),
  )
  await hold(subject, principal, 'b', 100n)
  const found = async (damage: string) => {
    db.exec(`BEGIN; ${damage}`)
    const sentences = await new SqliteUsage(db).check()
    db.exec('ROLLBACK')
    return sentences.map(sentence => sentence.replace(`Organization ${principal.orgId}: `, ''))
  }
  t.same(await found(''), [])
  t.same(await found('UPDATE balances SET balance = balance + 1'), [
    '0.000000701 USD balance, but 0.0000007 USD sum of the ledger.',
  ])
  t.same(await found('UPDATE balances SET used = 0'), ['0 USD used, but 0.0000003 USD charged in the ledger.'])
  t.same(await found('UPDATE balances SET held = 0'), ['0 USD held, but 0.0000001 USD sum of the open holds.'])
  t.same(await found('DELETE FROM requests'), [
    '0 request rows, but 1 requests in the hourly sums.',
    '0 USD cost of the request rows, but 0.0000003 USD charged in the ledger.',
    '0 USD cost of the request rows, but 0.0000003 USD cost in the hourly sums.',
  ])
  t.equal((await found('DELETE FROM usage_hourly')).length, 2)
})

t.test('nothing of a key that could help to guess it is stored', async t => {
  const { accounts, db, path } = sqliteSubject(t)
  await accounts.bootstrap()
  const made = await Promise.all(
    Array.from({ length: 100 }, (_, i) => accounts.createKey({ project: 'default', name: `key ${i}` })),
  )
  const stored = dump(db) + readFileSync(path, 'latin1') + readFileSync(`${path}-wal`, 'latin1')
  t.ok(stored.includes(made[0]!.id), 'the keys are in what is searched')
  const parts = new Set(
    made.flatMap(({ key }) => Array.from({ length: key.length - 7 }, (_, at) => key.slice(at, at + 8))),
  )
  for (let at = 0; at < stored.length; at++) {
    const part = stored.slice(at, at + 8)
    if (parts.has(part)) t.fail(`eight characters of a key are stored: ${part}`)
  }
  t.equal(new Set(made.map(({ key }) => key)).size, 100)
})

t.test('an ambiguous project name is answered with the ids that it names', async t => {
  const { accounts, db } = sqliteSubject(t)
  const [one, two] = [seed(db, 'open', 0n), seed(db, 'open', 0n)]
  db.exec("UPDATE projects SET name = 'app'")
  const refused = accounts.createKey({ project: 'app', name: 'x' })
  await t.rejects(refused, { status: 404, message: /^"app" names 2 projects/ })
  await t.rejects(refused, { message: new RegExp(`${one.projectId}.*${two.projectId}`) })
  t.match(await accounts.createKey({ project: two.projectId, name: 'x' }), { project: 'app', organization: two.orgId })
})

t.test('what another process changes about keys is seen within a second', async t => {
  const { path, db } = sqliteSubject(t)
  const principal = seed(db, 'open', 0n)
  const own = openDatabase(path)
  t.teardown(() => own.close())
  let now = 0
  const keys = new SqliteKeys(own, () => now)
  t.match(keys.find(principal.keyId), { keyId: principal.keyId, archived: false, cacheTtlMs: undefined })
  t.equal(keys.find('later'), undefined)
  db.exec("UPDATE projects SET archived_at = 1, cache_ttl_ms = 60000; UPDATE keys SET kind = 'session', expires_at = 7")
  const next = seed(db, 'prepaid', 0n)
  db.prepare('UPDATE keys SET hash = ? WHERE id = ?').run('later', next.keyId)
  now = 999
  t.match(keys.find(principal.keyId), { archived: false }, 'from memory')
  now = 1000
  t.match(keys.find(principal.keyId), { archived: true, cacheTtlMs: 60_000, kind: 'session', expiresAt: 7 })
  t.match(keys.find('later'), { keyId: next.keyId, account: 'prepaid' })
})

t.test('known keys outlive a database that cannot be read, for five minutes', async t => {
  const { path, db } = sqliteSubject(t)
  const { keyId } = seed(db, 'open', 0n)
  const own = openDatabase(path)
  let now = 0
  const keys = new SqliteKeys(own, () => now)
  keys.find(keyId)
  own.close()
  now = 300_000
  t.match(keys.find(keyId), { keyId })
  t.throws(() => keys.find('another'), { status: 503, code: 'store_unavailable' })
  now = 301_000
  t.throws(() => keys.find(keyId), { status: 503, code: 'store_unavailable' })
})

t.test('all that is asked in one tick is one transaction', async t => {
  const subject = sqliteSubject(t)
  const principal = seed(subject.db, 'prepaid', 1_000_000n)
  const ids = Array.from({ length: 64 }, (_, i) => `r${i}`)
  const before = transactionsIn(subject.path)
  const holds = await Promise.all(ids.map(id => hold(subject, principal, id, 100n)))
  t.equal(transactionsIn(subject.path) - before, 1)
  await Promise.all(holds.map((held, i) => subject.ledger.settle(held as Hold, rowOf(principal, ids[i]!))))
  t.equal(transactionsIn(subject.path) - before, 2)
  t.equal(integer(subject.db, 'SELECT count(*) FROM ledger'), 65)
  await subject.ledger.record(rowOf(principal, 'one-more'))
  t.equal(transactionsIn(subject.path) - before, 3)
})

t.test('a resolved promise means that another process sees it', async t => {
  const subject = sqliteSubject(t)
  const principal = seed(subject.db, 'open', 0n)
  const held = (await hold(subject, principal, 'a', 5n)) as Hold
  t.equal(integer(subject.db, 'SELECT held FROM balances'), 5)
  await subject.ledger.settle(held, rowOf(principal, 'a', { cost: 3n }))
  t.equal(integer(subject.db, 'SELECT balance FROM balances'), -3)
})

t.test('two hundred holds on credit for fifty are fifty, in one process and in two', async t => {
  const subject = sqliteSubject(t)
  const alone = seed(subject.db, 'prepaid', 5000n)
  const results = await Promise.all(Array.from({ length: 200 }, (_, i) => hold(subject, alone, `alone-${i}`, 100n)))
  t.equal(results.filter(result => result !== 'insufficient').length, 50)
  t.same(await subject.ledger.balance(alone.orgId), { balance: 5000n, held: 5000n, used: 0n })

  const shared = seed(subject.db, 'prepaid', 5000n)
  const order = { do: 'hold', path: subject.path, principal: shared, amount: '100', count: 100 } as const
  const counts = await Promise.all(children.map((child, i) => tell(child, { ...order, name: `child-${i}` })))
  t.equal(Number(counts[0]) + Number(counts[1]), 50)
  t.same(await subject.ledger.balance(shared.orgId), { balance: 5000n, held: 5000n, used: 0n })
  t.same(await subject.usage.check(), [])
})

t.test('processes that open one empty path at the same time all get the same database', async t => {
  const folder = temporaryFolder(t)
  for (let round = 0; round < 10; round++) {
    const path = join(folder, `${round}.db`)
    t.same(await Promise.all(children.map(child => tell(child, { do: 'open', path }))), ['opened', 'opened'])
    const db = openDatabase(path)
    t.equal(db.pragma('user_version', { simple: true }), migrations.length)
    db.close()
  }
})

t.test('a lock of another process fails writes after half a second, blocks nothing and loses nothing', async t => {
  const subject = sqliteSubject(t)
  const principal = seed(subject.db, 'prepaid', 1000n)
  const held = (await hold(subject, principal, 'a', 100n)) as Hold
  const released = async () => (await once(children[0]!.process, 'message'))[0]

  t.equal(await tell(children[0]!, { do: 'lock', path: subject.path, ms: 2000 }), 'locked')
  const free = released()
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  const start = performance.now()
  const asked = [hold(subject, principal, 'b', 100n), subject.ledger.settle(held, rowOf(principal, 'a', { cost: 1n }))]
  const failed = await Promise.allSettled(asked)
  const took = performance.now() - start
  delay.disable()
  t.match(failed, [
    { status: 'rejected', reason: { status: 503, code: 'billing_unavailable' } },
    { status: 'rejected', reason: { cause: { message: /locked for 500 ms/ } } },
  ])
  t.ok(took > 400 && took < 650, `refused after ${Math.round(took)} ms`)
  t.ok(delay.max < 120e6, `the event loop was never blocked longer than ${Math.round(delay.max / 1e6)} ms`)
  t.throws(() => subject.ping(), { name: 'StoreError' })
  t.equal(await free, 'released')

  await subject.ledger.settle(held, rowOf(principal, 'a', { cost: 300n }))
  subject.ping()
  t.same(await subject.ledger.balance(principal.orgId), { balance: 700n, held: 0n, used: 300n })

  t.equal(await tell(children[0]!, { do: 'lock', path: subject.path, ms: 150 }), 'locked')
  const soon = released()
  t.match(await hold(subject, principal, 'c', 100n), { amount: 100n }, 'a short lock is waited for')
  await soon
})

t.test('a write that is refused for its own fault does not make the database look ill', async t => {
  const { accounts, ledger, db, ping } = sqliteSubject(t)
  const principal = seed(db, 'open', 0n)
  await t.rejects(accounts.revokeKey('nope'), { code: 'not_found' })
  ping()
  const twice = [hold({ ledger }, principal, 'a', 1n), hold({ ledger }, principal, 'a', 1n)]
  t.match(await Promise.allSettled(twice), [{ status: 'fulfilled' }, { status: 'rejected' }])
  ping()
})

t.test('a full disk refuses writes, and nothing is half done; room makes it well again', async t => {
  const path = join(temporaryFolder(t), 'gateway.db')
  const db = openDatabase(path)
  const writer = new Writer(db)
  const ledger = new SqliteLedger(db, writer, { now: () => NOON, warn: error => t.error(error) })
  t.teardown(async () => {
    await ledger.close()
    db.close()
  })
  const principal = seed(db, 'open', 0n)
  db.pragma(`max_page_count = ${integer(db, 'PRAGMA page_count')}`)
  let written = 0
  const write = async () => {
    const row = rowOf(principal, `row ${written}`, { errorCode: 'x'.repeat(2000) })
    await ledger.settle((await hold({ ledger }, principal, `row ${written}`, 1n)) as Hold, row)
    written++
  }
  await t.rejects(
    (async () => {
      while (written < 1000) await write()
    })(),
    { code: 'billing_unavailable', cause: { code: 'SQLITE_FULL' } },
  )
  t.match(writer.fault, { code: 'SQLITE_FULL' })
  t.equal(integer(db, 'SELECT count(*) FROM requests'), written)
  t.equal(integer(db, "SELECT count(*) FROM ledger WHERE kind = 'charge'"), written)
  db.pragma('max_page_count = 100000')
  await ledger.record(rowOf(principal, 'at last'))
  t.equal(writer.fault, undefined)
})

t.test('the holds of dead processes become orphans, once, and those of living ones stay', async t => {
  const subject = sqliteSubject(t)
  const { db, ledger, clock } = subject
  const principal = seed(db, 'prepaid', 1000n)
  const strange = db.prepare('INSERT INTO owners (id, pid, started, host, seen_at) VALUES (?, ?, ?, ?, ?)')
  const self = db.prepare<[], { pid: number; started: string; host: string }>('SELECT * FROM owners').get()!
  for (const [id, pid, started, host, silence] of [
    ['restarted', self.pid, '1', self.host, 0],
    ['silent', self.pid, self.started, self.host, 60_001],
    ['far and silent', 1, '1', 'elsewhere', 60_001],
    ['twin', self.pid, self.started, self.host, 60_000],
    ['far', 2 ** 22 + 1, '1', 'elsewhere', 60_000],
    ['gone', 2 ** 22 + 1, '1', self.host, 0],
  ] as const) {
    strange.run(id, pid, started, host, clock.now - silence)
    await hold(subject, principal, id, 100n)
    db.prepare('UPDATE holds SET owner = ? WHERE id = ?').run(id, id)
  }
  await hold(subject, principal, 'own', 100n)
  await hold(subject, principal, 'of nobody', 100n)
  db.prepare("UPDATE holds SET owner = 'closed' WHERE id = 'of nobody'").run()

  t.equal(await ledger.recover(), 5)
  t.equal(await ledger.recover(), 0)
  t.same(db.prepare("SELECT id FROM holds WHERE state = 'orphaned' ORDER BY id").pluck().all(), [
    'far and silent',
    'gone',
    'of nobody',
    'restarted',
    'silent',
  ])
  t.same(db.prepare('SELECT DISTINCT outcome, status, cost, org_id, key_id, at FROM requests').all(), [
    { outcome: 'orphaned', status: 0, cost: 0, org_id: principal.orgId, key_id: principal.keyId, at: NOON },
  ])
  t.same(await ledger.balance(principal.orgId), { balance: 1000n, held: 300n, used: 0n })
  t.same(await subject.usage.check(), [])
})

t.test('a store that closes gives its holds up for recovery', async t => {
  const subject = sqliteSubject(t)
  const principal = seed(subject.db, 'prepaid', 1000n)
  const other = openStores(subject.path, { now: () => NOON })
  await hold(other, principal, 'a', 100n)
  t.equal(await subject.ledger.recover(), 0)
  const last = hold(other, principal, 'b', 100n)
  await other.close()
  t.match(await last, { id: 'b' }, 'what was asked before the end is done')
  t.equal(await subject.ledger.recover(), 2)
})

const command = fc.oneof(
  fc.record({ do: fc.constant('hold' as const), amount: fc.bigInt(0n, 40n) }),
  fc.record({ do: fc.constant('settle' as const), which: fc.nat(), cost: fc.option(fc.bigInt(0n, 60n)) }),
  fc.record({ do: fc.constant('void' as const), which: fc.nat() }),
  fc.record({ do: fc.constant('top up' as const), amount: fc.bigInt(1n, 50n) }),
  fc.record({ do: fc.constant('record' as const) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.nat(2 * HOUR) }),
  fc.record({ do: fc.constant('recover' as const) }),
  fc.record({ do: fc.constant('crash' as const) }),
)
type Command = typeof command extends fc.Arbitrary<infer C> ? C : never

/** Runs commands on a ledger in memory and on a model of it; throws as soon as the two differ. */
async function runModel(account: Principal['account'], commands: readonly Command[]): Promise<void> {
  const db = openDatabase(':memory:')
  const writer = new Writer(db)
  const usage = new SqliteUsage(db)
  let now = NOON
  const fail = (error: unknown) => {
    throw error
  }
  const ledgers = [new SqliteLedger(db, writer, { now: () => now, warn: fail })]
  const principal = seed(db, account, 0n)
  const model = { balance: 0n, used: 0n, rows: 0 }
  const holds: { hold: Hold; open: boolean; expiresAt: number; lost: boolean }[] = []
  const held = () => holds.reduce((sum, { hold, open }) => (open ? sum + hold.amount : sum), 0n)

  for (const [i, it] of commands.entries()) {
    const ledger = ledgers.at(-1)!
    const chosen = 'which' in it ? holds[it.which % (holds.length || 1)] : undefined
    if (it.do === 'hold') {
      const [id, expiresAt] = [`hold-${i}`, now + HOUR]
      const got = await ledger.hold({ id, requestId: id, principal, amount: it.amount, expiresAt })
      const enough = account === 'open' || it.amount === 0n || model.balance - held() >= it.amount
      assert.equal(got !== 'insufficient', enough)
      if (got !== 'insufficient') holds.push({ hold: got, open: true, expiresAt, lost: false })
    } else if (it.do === 'settle' && chosen) {
      await ledger.settle(chosen.hold, rowOf(principal, chosen.hold.id, { cost: it.cost }))
      if (!chosen.open) continue
      chosen.open = false
      model.balance -= it.cost ?? 0n
      model.used += it.cost ?? 0n
      model.rows++
    } else if (it.do === 'void' && chosen) {
      await ledger.void(chosen.hold)
      chosen.open = false
    } else if (it.do === 'top up') {
      topUp(db, principal.orgId, it.amount, `payment-${i}`)
      model.balance += it.amount
    } else if (it.do === 'record') {
      await ledger.record(rowOf(principal, `record-${i}`))
      model.rows++
    } else if (it.do === 'wait') {
      now += it.ms
    } else if (it.do === 'recover') {
      const orphans = holds.filter(({ open, lost, expiresAt }) => open && (lost || expiresAt + 60_000 < now))
      assert.equal(await ledger.recover(), orphans.length)
      for (const orphan of orphans) orphan.open = false
      model.rows += orphans.length
    } else if (it.do === 'crash') {
      db.exec("UPDATE owners SET started = 'by somebody else'")
      ledgers.push(new SqliteLedger(db, writer, { now: () => now, warn: fail }))
      for (const hold of holds) hold.lost = true
    }
    const { balance, used } = model
    assert.deepEqual(await ledger.balance(principal.orgId), { balance, held: held(), used })
    assert.equal(integer(db, 'SELECT count(*) FROM requests'), model.rows)
    assert.deepEqual(await usage.check(), [])
  }
  for (const ledger of ledgers) await ledger.close()
  db.close()
}

t.test('whatever happens, a balance is the sum of its entries and held the sum of the open holds', async () => {
  const account = fc.constantFrom('open' as const, 'prepaid' as const)
  const commands = fc.array(command, { minLength: 1, maxLength: 30 })
  await fc.assert(fc.asyncProperty(account, commands, runModel), { numRuns: 300 })
})

t.test('the hold of a process that was killed becomes one orphan', async t => {
  const subject = sqliteSubject(t)
  const principal = seed(subject.db, 'prepaid', 1000n)
  const [, child] = children
  const order = { do: 'hold', path: subject.path, principal, name: 'lost', amount: '400', count: 1 } as const
  t.equal(await tell(child!, order), 1)
  subject.clock.now = Date.now()
  t.equal(await subject.ledger.recover(), 0, 'it lives')
  const ended = once(child!.process, 'exit')
  child!.process.kill('SIGKILL')
  await ended
  t.equal(await subject.ledger.recover(), 1)
  t.equal(await subject.ledger.recover(), 0)
  t.match(subject.db.prepare('SELECT id, outcome, status, cost FROM requests').all(), [
    { id: 'lost-0', outcome: 'orphaned', status: 0, cost: 0 },
  ])
  t.same(await subject.ledger.balance(principal.orgId), { balance: 1000n, held: 0n, used: 0n })
})
