/** Rows that wait in files for a database that cannot be written: none is lost, none comes twice. */
import { createHash } from 'node:crypto'
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Hold, Principal, RequestRow } from '../../src/core/ports.ts'
import { openStores, type Stores } from '../../src/stores/sqlite/index.ts'
import { Spool } from '../../src/stores/sqlite/spool.ts'
import { HOUR, identity, integer, NOON, rowOf, type SqliteSubject, sqliteSubject, temporaryFolder } from './subject.ts'

const sha256 = (key: string): string => createHash('sha256').update(key).digest('hex')
const spools = (folder: string) => readdirSync(folder).filter(name => name.startsWith('spool-'))
const folderOf = ({ path }: SqliteSubject) => join(path, '..')
const rows = ({ db }: SqliteSubject) =>
  db.prepare('SELECT id, outcome, cost, charged, funds, storage FROM requests ORDER BY id').all()

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
    const other = openStores(subject.path, { now: () => NOON })
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

t.test('a file that cannot be entered stands in the way of nobody, and is tried again', async t => {
  const warned: unknown[] = []
  const path = join(temporaryFolder(t), 'gateway.db')
  const stores = openStores(path, { now: () => NOON, warn: error => warned.push(error) })
  t.teardown(() => stores.close())
  appendFileSync(join(path, '..', 'spool-gone-0.jsonl'), '{"id":"a","storage":"3n","cost":"1n"}\n')
  t.equal(await stores.ledger.recover(), 0)
  t.equal(warned.length, 1)
  t.equal(spools(join(path, '..')).length, 1)
})

t.test('there is room for so much, and none without a folder', async t => {
  const folder = temporaryFolder(t)
  const principal = { orgId: 'o', projectId: 'p', keyId: 'k' } as unknown as Principal
  const nowhere = new Spool(undefined, 'me')
  t.equal(nowhere.hasRoom, false)
  await t.rejects(nowhere.append(rowOf(principal, 'a')))
  const spool = new Spool(folder, 'me')
  const large = rowOf(principal, 'a', { errorCode: 'x'.repeat(33 * 1024 * 1024) })
  await spool.append(large)
  await spool.append(large)
  t.equal(spool.hasRoom, false)
  await t.rejects(spool.append(rowOf(principal, 'b')), { message: /no room/ })
  const taken: RequestRow[] = []
  await spool.drain(['me'], async rows => void taken.push(...rows))
  t.equal(taken.length, 2)
  t.equal(spool.hasRoom, true)
  await spool.append(rowOf(principal, 'c'))
  await spool.drain(['me'], async rows => void taken.push(...rows))
  t.equal(taken.at(-1)?.id, 'c')
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
