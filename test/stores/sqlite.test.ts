/** What only the SQLite stores promise of the file: how it is opened, what stands in it, who sees its changes. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Hold, StoreError, type Stores } from '../../src/core/ports.ts'
import { checkBooks } from '../../src/stores/sqlite/books.ts'
import { Database, type Sqlite } from '../../src/stores/sqlite/driver.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import type { SqliteLedger } from '../../src/stores/sqlite/ledger.ts'
import { migrations } from '../../src/stores/sqlite/migrations.ts'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { planOf, statementsOf } from './statements.ts'
import { HOUR, hold, integer, NOON, readersOf, rowOf, seed, sqliteSubject, temporaryFolder, topUp } from './subject.ts'

/** Every value of every table, as text. */
function dump(db: Sqlite): string {
  const tables = db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all()
  return JSON.stringify(tables.map(name => db.prepare(`SELECT * FROM "${name}"`).raw().all()))
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
    ['wal', 2, 1, 0, 64 * 1024 * 1024, migrations.length],
  )
  t.same(
    db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").pluck().all(),
    (
      'alerts audit balances budgets contents discounts holds job_events jobs keys label_keys ledger login_codes manifests master_key_check member_projects ' +
      'members oauth_clients oauth_codes oauth_grants oauth_tokens organizations owners policies projects provider_keys pruned ' +
      'rate_limits ' +
      'realtime_secrets request_labels requests response_bytes response_session_bytes responses rules subscriptions usage_days usage_hourly usage_labels'
    ).split(' '),
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
  t.throws(() => openSqlite(path), { name: 'StoreError', message: /written by a newer version: its schema is \d/ })
  t.ok(readFileSync(path).equals(before), 'the file is as it was')
})

t.test('limits of a database that knew fewer kinds of them stay as they are', async t => {
  const path = join(temporaryFolder(t), 'gateway.db')
  const old = openDatabase(path, migrations.slice(0, 4))
  const { keyId } = seed(old, 'open', 0n)
  const facts = { kind: 'key', period: 'day', zone: 'Asia/Tokyo', amount: 9_007_199_254_740_993n }
  old
    .prepare(`
      INSERT INTO budgets (id, subject, kind, period, zone, amount, period_at, spent, held)
      VALUES ('b', ?, @kind, @period, @zone, @amount, 1, 2, 3)`)
    .run(keyId, facts)
  const [before] = old.prepare<[], object>('SELECT * FROM budgets').safeIntegers().all()
  old.close()
  const db = openDatabase(path)
  t.teardown(() => db.close())
  t.same(db.prepare('SELECT * FROM budgets').safeIntegers().all(), [{ ...before, on_limit: null }])
  const twice = () =>
    db.prepare("INSERT INTO budgets SELECT 'c', subject, kind, period, zone, 1, 1, 0, 0, NULL FROM budgets").run()
  t.throws(twice, { code: 'SQLITE_CONSTRAINT_UNIQUE' })
})

t.test('what requests left stays as it is, and what they add is checked without building a table', async t => {
  const path = join(temporaryFolder(t), 'gateway.db')
  const old = openDatabase(path, migrations.slice(0, 5))
  const tables = ['holds', 'requests'] as const
  const texts = { outcome: 'orphaned', funds: 'plan' } as Readonly<Record<string, string>>
  const columnsOf = (table: string) =>
    old.prepare<[], { name: string; type: string }>(`SELECT name, type FROM pragma_table_info('${table}')`).all()
  for (const table of tables) {
    const columns = columnsOf(table)
    const values = columns.map(({ name, type }, at) => texts[name] ?? (type === 'INTEGER' ? at : name))
    old.prepare(`INSERT INTO ${table} VALUES (${columns.map(() => '?').join()})`).run(...values)
  }
  const before = tables.map(table => old.prepare(`SELECT * FROM ${table}`).all())
  const namesOf = (table: string) =>
    columnsOf(table)
      .map(({ name }) => name)
      .join()
  const names = { holds: namesOf('holds'), requests: namesOf('requests') }
  old.close()

  const db = openDatabase(path)
  t.teardown(() => db.close())
  t.strictSame(
    tables.map(table => db.prepare(`SELECT ${names[table]} FROM ${table}`).all()),
    before,
  )
  for (const table of tables) {
    const marks = names[table].replace(/\w+/g, 'NULL')
    const insert = `EXPLAIN INSERT INTO ${table} (${names[table]}) VALUES (${marks})`
    const all = db.prepare<[], { addr: number; opcode: string }>(insert).all()
    // Programs of triggers follow: those of labels run for rows that have some.
    const steps = all.slice(0, all.findIndex(({ addr }, at) => at > 0 && addr === 0) + 1 || all.length)
    t.notOk(
      steps.some(({ opcode }) => opcode === 'OpenEphemeral'),
      table,
    )
  }
  for (const [table, column] of [['holds', 'funds'] as const, ['requests', 'outcome'] as const]) {
    t.throws(() => db.exec(`UPDATE ${table} SET ${column} = 'other'`), /CHECK constraint failed/)
  }
})

t.test('keys of a database that did not know predecessors get them from the audit log', async t => {
  const path = join(temporaryFolder(t), 'gateway.db')
  const old = openDatabase(path, migrations.slice(0, 6))
  const [first, second, other] = Array.from({ length: 3 }, () => seed(old, 'open', 0n).keyId)
  const note = old.prepare("INSERT INTO audit (at, actor, action, subject, became) VALUES (1, 'ada', ?, ?, ?)")
  note.run('keys.roll', first, JSON.stringify({ id: second }))
  note.run('keys.update', first, JSON.stringify({ id: other }))
  old.close()
  const db = openDatabase(path)
  t.teardown(() => db.close())
  t.same(db.prepare('SELECT id, succeeds FROM keys ORDER BY rowid').raw().all(), [
    [first, null],
    [second, first],
    [other, null],
  ])
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

t.test('ST-04, ST-05 what cannot be the database is refused by name, and left alone', async t => {
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
    t.throws(() => openSqlite(path), { name: 'StoreError', message: new RegExp(`${why}|${path}.*${why}`) }, name)
    if (before) t.ok(readFileSync(path).equals(before), `${name} is as it was`)
  }
})

t.test('the ledger refuses to be changed', async t => {
  const { db } = sqliteSubject(t)
  const { orgId } = seed(db, 'prepaid', 100n)
  t.throws(() => db.exec('UPDATE ledger SET amount = 1'), { message: 'the ledger is append-only' })
  t.throws(() => db.exec('DELETE FROM ledger'), { message: 'the ledger is append-only' })
  topUp(db, orgId, 5n, 'payment-1')
  t.throws(() => topUp(db, orgId, 5n, 'payment-1'), { code: 'SQLITE_CONSTRAINT_PRIMARYKEY' })
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
    funds: 'credits',
    charged: 0,
    storage: 0,
    discount: 0,
    tier: null,
    detail: null,
    end_user: null,
    tags: null,
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

t.test('a difference between the books is a sentence', async t => {
  const subject = sqliteSubject(t)
  const { db } = subject
  const principal = seed(db, 'prepaid', 1000n)
  await subject.ledger.settle(
    (await hold(subject, principal, 'a', 500n)) as Hold,
    rowOf(principal, 'a', { cost: 300n }),
  )
  await hold(subject, principal, 'b', 100n)
  const folder = temporaryFolder(t)
  let copies = 0
  const found = async (damage: string) => {
    const copy = join(folder, `${++copies}.db`)
    db.prepare('VACUUM INTO ?').run(copy)
    const damaged = new Database(copy)
    damaged.exec(damage)
    const sentences = await checkBooks(damaged)
    damaged.close()
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
    '0 USD charged by the request rows, but 0.0000003 USD charged in the ledger.',
    '0 USD cost of the request rows, but 0.0000003 USD cost in the hourly sums.',
  ])
  t.equal((await found('DELETE FROM usage_hourly')).length, 2)
})

t.test('the holds of all limits are summed once, and what differs is found', async t => {
  const subject = sqliteSubject(t)
  const { projectId } = await subject.organization('open', 0n)
  const { accounts, db, ledger, usage } = subject
  const ids: string[] = []
  for (const name of ['a', 'b', 'c']) {
    const { id, key } = await accounts.createKey({ project: projectId, name, limit: { amount: 100n } })
    const principal = (await subject.keys.find(createHash('sha256').update(key).digest('hex')))!
    if (name !== 'c') for (const n of [1, 2]) await hold({ ledger }, principal, `${name}${n}`, 10n)
    ids.push(db.prepare<[string], string>('SELECT id FROM budgets WHERE subject = ?').pluck().get(id)!)
  }
  const ran = statementsOf(t, subject.path)
  t.same(await usage.check(), [])
  const [sums] = ran.filter(({ sql }) => sql.includes('json_each'))
  t.notMatch(planOf(db, sums!).join(), /CORRELATED/)
  db.prepare('UPDATE budgets SET held = 5 WHERE id <> ?').run(ids[0])
  t.match((await usage.check()).sort(), [ids[1], ids[2]].map(id => new RegExp(`^Limit ${id}: `)).sort())
  t.match(
    (await usage.check()).find(one => one.includes(ids[2]!)),
    /held, but 0 USD sum of its open holds/,
  )
})

t.test('others run while the books are compared, and what they write does not count', async t => {
  const { ledger, usage, db } = sqliteSubject(t)
  const principal = seed(db, 'open', 0n)
  await Promise.all(Array.from({ length: 5000 }, (_, n) => ledger.record(rowOf(principal, `r${n}`))))
  let turns = 0
  let ended = false
  const count = () => {
    turns++
    if (turns === 1) db.exec('DELETE FROM usage_hourly')
    if (!ended) setImmediate(count)
  }
  setImmediate(count)
  t.same(await usage.check(), [])
  ended = true
  t.ok(turns >= 5, `${turns} turns`)
  t.match(await usage.check(), [/5000 request rows, but 0 requests in the hourly sums/])
})

t.test('a re-encryption names a key that cannot be read once, whatever is written with it', async t => {
  const subject = sqliteSubject(t)
  const { orgId } = await subject.organization('prepaid', 0n)
  const { providerKeys, masterKeys } = subject.policies
  const key = { organization: orgId, provider: 'acme', label: 'l', secret: 'sk-1234567890', fingerprint: 'f' }
  const { id } = await providerKeys.add(key, 'test')
  subject.db.prepare('UPDATE provider_keys SET ciphertext = zeroblob(40)').run()
  const run = masterKeys.reencrypt(true, 'test')
  const refused = Promise.allSettled(Array.from({ length: 20 }, () => subject.accounts.revokeKey('nope')))
  t.same((await run).unreadable, [id])
  await refused
})

t.test('AT-02 nothing of a key that could help to guess it is stored', async t => {
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

t.test('the time when a key was revoked stays, however often it is revoked', async t => {
  const { accounts, clock, db } = sqliteSubject(t)
  const { keyId } = seed(db, 'open', 0n)
  await accounts.revokeKey(keyId)
  clock.now += HOUR
  await accounts.revokeKey(keyId)
  t.equal(integer(db, 'SELECT revoked_at FROM keys'), NOON)
})

t.test('what another process changes about keys is seen within half a second', async t => {
  const { path, db } = sqliteSubject(t)
  const principal = seed(db, 'open', 0n)
  const own = openDatabase(path)
  t.teardown(() => own.close())
  let now = 0
  const { keys } = readersOf(own, () => now)
  t.match(await keys.find(principal.keyId), { keyId: principal.keyId, archived: false, cacheTtlMs: undefined })
  t.equal(await keys.find('later'), undefined)
  db.exec("UPDATE projects SET archived_at = 1, cache_ttl_ms = 60000; UPDATE keys SET kind = 'session', expires_at = 7")
  const next = seed(db, 'prepaid', 0n)
  db.prepare('UPDATE keys SET hash = ? WHERE id = ?').run('later', next.keyId)
  now = 499
  t.match(await keys.find(principal.keyId), { archived: false }, 'from memory')
  now = 500
  t.match(await keys.find(principal.keyId), { archived: true, cacheTtlMs: 60_000, kind: 'session', expiresAt: 7 })
  t.match(await keys.find('later'), { keyId: next.keyId, account: 'prepaid' })
})

t.test('what another process archives ends keys that are looked up by their ids alone', async t => {
  const { path, db } = sqliteSubject(t)
  const { keyId } = seed(db, 'open', 0n)
  const own = openDatabase(path)
  t.teardown(() => own.close())
  let now = 0
  const { keys, sql } = readersOf(own, () => now)
  t.match([await keys.live(sql, keyId), await keys.admits(keyId)], [{ keyId }, true])
  db.exec('UPDATE projects SET archived_at = 1')
  now = 500
  t.strictSame([await keys.live(sql, keyId), await keys.admits(keyId)], [undefined, false])
})

t.test('known keys outlive a database that cannot be read, for five minutes', async t => {
  const { path, db } = sqliteSubject(t)
  const { keyId } = seed(db, 'open', 0n)
  const own = openDatabase(path)
  let now = 0
  const { keys } = readersOf(own, () => now)
  await keys.find(keyId)
  own.close()
  now = 300_000
  t.match(await keys.find(keyId), { keyId })
  await t.rejects(async () => keys.find('another'), { status: 503, code: 'store_unavailable' })
  now = 301_000
  await t.rejects(async () => keys.find(keyId), { status: 503, code: 'store_unavailable' })
})

t.test('a key whose spend is more than a sum can hold is listed, limited and revoked like any other', async t => {
  const subject = sqliteSubject(t)
  const { projectId: project, orgId } = await subject.organization('open', 0n)
  const { id } = await subject.accounts.createKey({ project, name: 'k' })
  const most = 9_000_000_000_123_456_789n
  const add = subject.db.prepare(`
    INSERT INTO usage_hourly (hour, org_id, project_id, key_id, provider, model, source, requests, errors, cached,
      input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, credits_cost, byok_cost, storage_cost)
    VALUES (?, ?, ?, ?, '', '', '', 1, 0, 0, 0, 0, 0, 0, ?, 0, ?, 0)`)
  for (const hour of [NOON, NOON + HOUR]) add.run(hour, orgId, project, id, most, most)
  t.match(await subject.accounts.listKeys(project), [{}, { id, spent: 2n * most }])
  t.match(await subject.accounts.updateKey(id, { limit: { set: { amount: 5n } } }), { limits: [{ limit: 5n }] })
  t.match(await subject.accounts.revokeKey(id), { status: 'revoked' })
})

t.test('what a key has spent is read without its hours, also where it was spent before they were counted', async t => {
  const path = join(temporaryFolder(t), 'gateway.db')
  const old = openDatabase(path, migrations.slice(0, 17))
  const principal = seed(old, 'open', 0n)
  const { orgId, projectId, keyId } = principal
  const add = old.prepare(`
    INSERT INTO usage_hourly (hour, org_id, project_id, key_id, provider, model, source, requests, errors, cached,
      input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost)
    VALUES (?, ?, ?, ?, '', '', '', 1, 0, 0, 0, 0, 0, 0, ?)`)
  const most = 9_000_000_000_123_456_789n
  for (let hour = 1; hour <= 2; hour++) add.run(NOON - hour * HOUR, orgId, projectId, keyId, most)
  old.close()
  const stores = openSqlite(path, { now: () => NOON })
  t.teardown(() => stores.close())
  t.equal((await stores.keys.status(principal)).spent, 2n * most)

  const held = (await hold(stores, principal, 'a', 5n)) as Hold
  await stores.ledger.settle(held, rowOf(principal, 'a', { cost: 5n }))
  const ran = statementsOf(t, path)
  t.equal((await stores.keys.status(principal)).spent, 2n * most + 5n)
  t.match(await stores.accounts.listKeys(projectId), [{ spent: 2n * most + 5n }])
  t.ok(ran.length > 0)
  t.strictSame(
    ran.filter(({ sql }) => sql.includes('usage_hourly')),
    [],
  )
})

t.test('a sweep that still runs when its process leaves does not say that it lives', async t => {
  const { ledger, db } = sqliteSubject(t)
  const sweep = ledger.recover()
  await (ledger as SqliteLedger).close()
  await sweep
  t.equal(db.prepare('SELECT count(*) FROM owners').pluck().get(), 0)
})

t.test('of redemptions of one code by two processes exactly one succeeds', async t => {
  const subject = sqliteSubject(t)
  const other = openSqlite(subject.path, { now: () => NOON })
  t.teardown(() => other.close())
  const { keyId } = await subject.organization('open', 0n)
  const code = { hash: 'code', redirectUri: 'http://127.0.0.1/cb', challenge: 'challenge' }
  const client = { id: 'https://app.example/client.json', name: 'App', isRegistered: false }
  const grant = { client, proof: { keyId }, scopes: ['usage:read'], resource: 'r' }
  await subject.oauth.grants.begin({ ...grant, code: { ...code, expiresAt: NOON + HOUR } })
  const redeem = ({ oauth }: Pick<Stores, 'oauth'>, n: number) => {
    const access = { hash: `token ${n}`, expiresAt: NOON + HOUR }
    return oauth.grants.redeem({ ...code, clientId: client.id }, { access })
  }
  const tries = Array.from({ length: 30 }, (_, n) => redeem(n % 2 === 0 ? subject : other, n))
  const results = await Promise.all(tries)
  t.equal(results.filter(result => result !== 'invalid_grant').length, 1)
})

t.test('a change is announced to other processes, and one that refreshes sees it at once', async t => {
  const path = join(temporaryFolder(t), 'gateway.db')
  let announced = 0
  const one = openSqlite(path, { changed: () => announced++ })
  const other = openSqlite(path)
  t.teardown(() => Promise.all([one.close(), other.close()]))
  const { id, key } = (await one.accounts.bootstrap())!
  const hash = createHash('sha256').update(key).digest('hex')
  t.ok(await other.keys.find(hash))
  announced = 0
  await one.accounts.revokeKey(id)
  t.equal(announced, 1)
  other.refresh()
  t.equal(await other.keys.find(hash), undefined)
})
