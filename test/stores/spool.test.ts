/** Rows that wait in files for a database that cannot be written: none is lost, none comes twice. */
import { createHash } from 'node:crypto'
import { appendFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Hold, Principal, Stores } from '../../src/core/ports.ts'
import { type Enter, Spool } from '../../src/stores/spool.ts'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import {
  HOUR,
  identity,
  integer,
  NOON,
  rowOf,
  type SqliteSubject,
  seed,
  sqliteSubject,
  temporaryFolder,
} from './subject.ts'

const sha256 = (key: string): string => createHash('sha256').update(key).digest('hex')
const spools = (folder: string) => readdirSync(folder).filter(name => name.startsWith('spool-'))
const folderOf = ({ path }: SqliteSubject) => join(path, '..')
const rows = ({ db }: SqliteSubject) =>
  db.prepare('SELECT id, outcome, cost, charged, funds, storage FROM requests ORDER BY id').all()

/** Of whom nothing is in a database. */
const anybody = { orgId: 'o', projectId: 'p', keyId: 'k' } as unknown as Principal

/** Takes all rows there are, and tells their ids. */
const into =
  (ids: string[]): Enter =>
  async rows => {
    ids.push(...rows.map(({ id }) => id))
    return []
  }

async function byok(
  { ledger }: Pick<Stores, 'ledger'>,
  principal: Principal,
  id: string,
  amount: bigint,
): Promise<Hold> {
  const request = { id: `${id}:0`, request: identity(id), principal, amount, byok: true, expiresAt: NOON + HOUR }
  return (await ledger.hold(request)) as Hold
}

t.test('what is spooled is entered when the database can be written again, once', async t => {
  const subject = sqliteSubject(t)
  const principal = await subject.organization('prepaid', 100n)
  const { ledger, usage } = subject
  t.equal(ledger.canSpool, true)
  await Promise.all(['a', 'b'].map(id => ledger.spool(rowOf(principal, id, { cost: 2n ** 60n, storage: 3n }))))
  const [file] = spools(folderOf(subject))
  const lines = readFileSync(join(folderOf(subject), file!), 'utf8')
  t.strictSame(rows(subject), [])
  t.equal(await ledger.recover(), 0)
  const entered = (id: string) => ({ id, outcome: 'ok', cost: 2 ** 60, charged: 3, funds: 'byok', storage: 3 })
  t.strictSame(rows(subject), [entered('a'), entered('b')])
  t.strictSame(spools(folderOf(subject)), [], 'the file is gone')
  t.same(await ledger.balance(principal.orgId), { balance: 94n, held: 0n, used: 6n })
  t.same(await usage.check(), [])

  writeFileSync(join(folderOf(subject), 'spool-gone-0.jsonl'), `${lines}{"id":"c","or`)
  await ledger.recover()
  t.equal(rows(subject).length, 2, 'what comes again, and what was cut short, is left out')
  t.same(await usage.check(), [])
})

t.test('a spooled row ends the hold of its request, and counts against its limits', async t => {
  const subject = sqliteSubject(t)
  const { projectId } = await subject.organization('prepaid', 0n)
  const { accounts, keys, ledger } = subject
  const { key, limits } = await accounts.createKey({ project: projectId, name: 'k', limit: { amount: 100n } })
  t.equal(limits.length, 1)
  const principal = (await keys.find(sha256(key))) as Principal
  await byok(subject, principal, 'a', 60n)
  await ledger.spool(rowOf(principal, 'a', { cost: 50n }))
  await ledger.recover()
  t.match((await accounts.listKeys(projectId))[1], { limits: [{ spent: 50n }] })
  t.equal(integer(subject.db, 'SELECT count(*) FROM holds'), 0)
  t.same(await subject.usage.check(), [])
})

t.test(
  'what a dead process has left is taken over before its holds become orphans; what a living one has is not',
  async t => {
    const subject = sqliteSubject(t)
    const principal = await subject.organization('prepaid', 100n)
    const other = openSqlite(subject.path, { now: () => NOON })
    await byok(other, principal, 'a', 5n)
    await byok(other, principal, 'b', 5n)
    await other.ledger.spool(rowOf(principal, 'a', { cost: 4n }))
    t.equal(await subject.ledger.recover(), 0)
    t.equal(spools(folderOf(subject)).length, 1, 'it lives')
    await other.close()
    t.equal(await subject.ledger.recover(), 1)
    t.match(rows(subject), [
      { id: 'a', outcome: 'ok', cost: 4 },
      { id: 'b', outcome: 'orphaned', cost: 0 },
    ])
    t.strictSame(spools(folderOf(subject)), [])
    t.same(await subject.usage.check(), [])
  },
)

t.test("a spooled row is its caller's own to pay, and ends all holds of its request", async t => {
  for (const order of [
    ['credits', 'byok'],
    ['byok', 'credits'],
    ['credits', 'credits'],
  ]) {
    const subject = sqliteSubject(t)
    const principal = await subject.organization('prepaid', 100n)
    const { ledger, clock } = subject
    for (const [i, funds] of order.entries()) {
      const request = { id: `a:${i}`, request: identity('a'), principal, amount: 30n, expiresAt: NOON + HOUR }
      await ledger.hold({ ...request, byok: funds === 'byok' })
      clock.now++
    }
    await ledger.spool(rowOf(principal, 'a', { cost: 40n }))
    await ledger.recover()
    t.match(rows(subject), [{ cost: 40, charged: 0, funds: 'byok' }], order.join(' '))
    t.equal(integer(subject.db, 'SELECT count(*) FROM holds'), 0)
    t.same(await ledger.balance(principal.orgId), { balance: 100n, held: 0n, used: 0n })
    t.same(await subject.usage.check(), [])
  }
})

t.test('a spooled row settles with the last hold of its own provider', async t => {
  const subject = sqliteSubject(t)
  const { projectId } = await subject.organization('prepaid', 0n)
  const { accounts, keys, ledger } = subject
  const { key } = await accounts.createKey({ project: projectId, name: 'k', limit: { amount: 100n } })
  const principal = (await keys.find(sha256(key))) as Principal
  const request = { request: identity('a'), principal, amount: 20n, byok: true, expiresAt: NOON + HOUR }
  await ledger.hold({ ...request, id: 'a:0', request: { ...identity('a'), provider: 'best' } })
  await ledger.spool(rowOf(principal, 'a', { cost: 15n }))
  await ledger.recover()
  t.match((await accounts.listKeys(projectId))[1], { limits: [{ spent: 0n }] }, "that limit was another attempt's")
  await ledger.hold({ ...request, id: 'b:0', request: identity('b') })
  await ledger.spool(rowOf(principal, 'b', { cost: 15n }))
  await ledger.recover()
  t.match((await accounts.listKeys(projectId))[1], { limits: [{ spent: 15n }] })
  t.same(await subject.usage.check(), [])
})

t.test('a spooled row takes the place of an orphan', async t => {
  const subject = sqliteSubject(t)
  const principal = await subject.organization('prepaid', 100n)
  await byok(subject, principal, 'a', 5n)
  subject.clock.now += HOUR + 60_001
  t.equal(await subject.ledger.recover(), 1)
  await subject.ledger.spool(rowOf(principal, 'a', { cost: 4n, storage: 2n }))
  await subject.ledger.recover()
  t.match(rows(subject), [{ id: 'a', outcome: 'ok', cost: 4, charged: 2 }])
  t.same(await subject.usage.check(), [])
})

t.test('a process that ends while a sweep runs is not declared dead before its rows are read', async t => {
  const subject = sqliteSubject(t)
  const principal = await subject.organization('prepaid', 100n)
  const other = openSqlite(subject.path, { now: () => NOON })
  await byok(other, principal, 'a', 5n)
  await other.ledger.spool(rowOf(principal, 'a', { cost: 4n }))
  const sweep = subject.ledger.recover()
  subject.db.prepare('DELETE FROM owners WHERE id = (SELECT owner FROM holds)').run()
  t.equal(await sweep, 0)
  t.equal(await subject.ledger.recover(), 0)
  t.match(rows(subject), [{ id: 'a', outcome: 'ok', cost: 4 }])
  t.strictSame(spools(folderOf(subject)), [])
  await other.close()
})

t.test('a row that the database refuses blocks no other row, and is set aside', async t => {
  const warned: unknown[] = []
  const path = join(temporaryFolder(t), 'gateway.db')
  const stores = openSqlite(path, { now: () => NOON, warn: error => warned.push(error) })
  const db = new Database(path)
  t.teardown(() => stores.close())
  t.teardown(() => db.close())
  const principal = seed(db, 'prepaid', 100n)
  appendFileSync(join(path, '..', 'spool-gone-0.jsonl'), '{"id":"a","storage":"3n","cost":"1n"}\nnull\n')
  const large = rowOf(principal, 'large', { cost: 2n ** 64n, storage: 3n })
  for (const row of [rowOf(principal, 'b'), large, rowOf(principal, 'c')]) await stores.ledger.spool(row)
  t.equal(await stores.ledger.recover(), 0)
  t.same(db.prepare('SELECT id FROM requests ORDER BY id').pluck().all(), ['b', 'c'])
  t.equal(warned.length, 3)
  t.equal(await stores.ledger.recover(), 0)
  t.equal(warned.length, 3, 'it is not tried again')
  const [aside, ...more] = spools(join(path, '..'))
  t.strictSame([aside, more], ['spool-gateway.db-refused.jsonl', []])
  const kept = readFileSync(join(path, '..', aside!), 'utf8')
    .trim()
    .split('\n')
  t.same(new Set(kept.map(line => JSON.parse(line)?.id)), new Set(['a', undefined, 'large']))
  t.match(
    kept.find(line => line.includes('large')),
    /"cost":"18446744073709551616n"/,
  )
  t.same(await stores.usage.check(), [])
})

t.test('files that cannot be read are left, and the others are entered all the same', async t => {
  const folder = temporaryFolder(t)
  const path = join(folder, 'a.db')
  const unreadable = ['spool-a.db-one-0.jsonl', 'spool-a.db-three-0.jsonl']
  for (const name of unreadable) mkdirSync(join(folder, name))
  for (const owner of ['four', 'two']) await new Spool(path, owner).append(rowOf(anybody, owner))
  const taken: string[] = []
  await t.rejects(new Spool(path, 'me').drain(['me'], into(taken)), {
    errors: [{ code: 'EISDIR' }, { code: 'EISDIR' }],
  })
  t.strictSame(taken.sort(), ['four', 'two'])
  t.strictSame(spools(folder).sort(), unreadable)
})

t.test('a database that takes no rows for now is not tried with the next file', async t => {
  const folder = temporaryFolder(t)
  const path = join(folder, 'a.db')
  for (const owner of ['one', 'three', 'two']) await new Spool(path, owner).append(rowOf(anybody, owner))
  const spool = new Spool(path, 'me')
  let tries = 0
  const full: Enter = () => {
    tries++
    return Promise.reject(new Error('disk full'))
  }
  await t.rejects(spool.drain(['me'], full), { message: 'disk full' })
  t.equal(tries, 1)
  t.equal(spools(folder).length, 3)
  const taken: string[] = []
  await spool.drain(['me'], into(taken))
  t.strictSame(taken.sort(), ['one', 'three', 'two'])
})

t.test("two databases in one folder leave each other's rows alone", async t => {
  const folder = temporaryFolder(t)
  const [a, b] = ['a.db', 'b.db'].map(name => openSqlite(join(folder, name), { now: () => NOON })) as [Stores, Stores]
  const db = new Database(join(folder, 'a.db'))
  t.teardown(() => Promise.all([a.close(), b.close()]))
  t.teardown(() => db.close())
  await a.ledger.spool(rowOf(seed(db, 'prepaid', 100n), 'a'))
  await b.ledger.recover()
  t.equal(spools(folder).length, 1)
  await a.ledger.recover()
  t.strictSame(spools(folder), [])
  t.same(db.prepare('SELECT id FROM requests').pluck().all(), ['a'])
})

t.test('a line that a full disk cuts short takes no other with it', async t => {
  const folder = temporaryFolder(t)
  const spool = new Spool(join(folder, 'a.db'), 'me')
  await spool.append(rowOf(anybody, 'a'))
  appendFileSync(join(folder, spools(folder)[0]!), '\n{"id":"b","requestId":"caller-b","at":17')
  await spool.append(rowOf(anybody, 'c'))
  const taken: string[] = []
  await spool.drain(['me'], into(taken))
  t.strictSame(taken, ['a', 'c'])
})

t.test('an append that is on its way when a file is taken is in that file or in the next one', async t => {
  const folder = temporaryFolder(t)
  const spool = new Spool(join(folder, 'a.db'), 'me')
  const taken: string[] = []
  const appended = [spool.append(rowOf(anybody, 'a')), spool.append(rowOf(anybody, 'b'))]
  await appended[0]
  const drained = spool.drain(['me'], into(taken))
  appended.push(spool.append(rowOf(anybody, 'c')))
  await Promise.all([...appended, drained])
  t.strictSame(taken, ['a', 'b'])
  await spool.drain(['me'], into(taken))
  t.strictSame(taken, ['a', 'b', 'c'])
  t.strictSame(spools(folder), [])
})

t.test('there is room for so much, and none without a folder', async t => {
  const folder = temporaryFolder(t)
  const nowhere = new Spool(undefined, 'me')
  t.equal(nowhere.hasRoom, false)
  await t.rejects(nowhere.append(rowOf(anybody, 'a')))
  const spool = new Spool(join(folder, 'a.db'), 'me')
  const large = rowOf(anybody, 'a', { errorCode: 'x'.repeat(33 * 1024 * 1024) })
  await spool.append(large)
  await spool.append(large)
  t.equal(spool.hasRoom, false)
  await t.rejects(spool.append(rowOf(anybody, 'b')), { message: /the spool is full/i })
  const refuse: Enter = () => Promise.reject(new Error('not now'))
  await t.rejects(spool.drain(['me'], refuse), { message: 'not now' })
  t.equal(spool.hasRoom, false, 'what could not be entered takes room')
  const taken: string[] = []
  await spool.drain(['me'], into(taken))
  t.strictSame(taken, ['a', 'a'])
  t.equal(spool.hasRoom, true)
  await spool.append(rowOf(anybody, 'c'))
  await spool.drain(['me'], into(taken))
  t.equal(taken.at(-1), 'c')
})

t.test('a line that cannot be written takes no room', async t => {
  const folder = temporaryFolder(t)
  const spool = new Spool(join(folder, 'nowhere', 'a.db'), 'me')
  const large = rowOf(anybody, 'a', { errorCode: 'x'.repeat(65 * 1024 * 1024) })
  await t.rejects(spool.append(large), { code: 'ENOENT' })
  t.equal(spool.hasRoom, true)
})

t.test('rows can be spooled while another process keeps the database locked', async t => {
  const subject = sqliteSubject(t)
  const principal = await subject.organization('prepaid', 100n)
  subject.db.exec('BEGIN IMMEDIATE')
  await t.rejects(byok(subject, principal, 'a', 5n), { code: 'billing_unavailable' })
  await subject.ledger.spool(rowOf(principal, 'a', { cost: 4n }))
  subject.db.exec('COMMIT')
  await subject.ledger.recover()
  t.match(rows(subject), [{ id: 'a', cost: 4, funds: 'byok', charged: 0 }])
})

t.test('a folder that no start has made yet holds no rows', async t => {
  const spool = new Spool(join(temporaryFolder(t), 'data', 'gateway.db'), 'a')
  await t.resolves(spool.drain([], () => Promise.reject(new Error('there is no file'))))
})
