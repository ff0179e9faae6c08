/** The SQLite store of policies: other processes, what is on disk, and master keys that change. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { GatewayError } from '../../src/lib/error.ts'
import { Keyring, keyFile, placeOf } from '../../src/stores/keyring.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { readersOf, seed, sqliteSubject } from '../stores/subject.ts'
import { heard, startChild, tell } from './parent.ts'

const secretOf = (n: number) => `sk-canary-${String(n).padStart(6, '0')}-0123456789`

t.test('no secret is in the bytes of any file', async t => {
  const subject = sqliteSubject(t)
  const { orgId } = await subject.organization('open', 0n)
  const input = { organization: orgId, provider: 'acme', label: 'l', fingerprint: 'f' }
  const { id } = await subject.policies.providerKeys.add({ ...input, secret: secretOf(1) }, 'test')
  await subject.policies.providerKeys.add({ ...input, secret: secretOf(2) }, 'test')
  await subject.policies.providerKeys.remove(id, undefined, 'test')
  await subject.policies.masterKeys.reencrypt(true, 'test')
  const folder = dirname(subject.path)
  t.ok(readdirSync(folder).includes('master.key'))
  for (const name of readdirSync(folder)) {
    const bytes = readFileSync(join(folder, name))
    for (const n of [1, 2]) t.notOk(bytes.includes(secretOf(n)), name)
  }
})

t.test('a change of another process is seen within half a second, and not asked for in between', async t => {
  const subject = sqliteSubject(t)
  const { orgId } = await subject.organization('open', 0n)
  const db = openDatabase(subject.path)
  t.teardown(() => db.close())
  let clock = 0
  const { policies: reader } = readersOf(db, () => clock)
  const before = await reader.of(orgId)
  const child = await startChild(t)
  t.equal(await tell(child, { do: 'deny', path: subject.path, organization: orgId, model: 'x' }), 'denied')
  clock = 499
  t.equal(reader.of(orgId), before)
  clock = 500
  t.match(await reader.of(orgId), { version: 1, rules: [{ models: ['x'] }] })
  const after = await reader.of(orgId)
  subject.db.prepare('UPDATE organizations SET name = name').run()
  clock = 1000
  t.equal(await reader.of(orgId), after, 'what else is written makes no other facts')
})

t.test('while the database cannot be read, what is known serves for five minutes', async t => {
  const subject = sqliteSubject(t)
  const { orgId } = await subject.organization('open', 0n)
  const db = openDatabase(subject.path)
  let clock = 0
  const { policies: reader } = readersOf(db, () => clock)
  const facts = await reader.of(orgId)
  db.close()
  clock = 300_000
  t.equal(await reader.of(orgId), facts)
  await t.rejects(async () => reader.of('another'), { status: 503, code: 'store_unavailable' })
  clock = 300_501
  reader.changed()
  await t.rejects(async () => reader.of(orgId), { status: 503, code: 'store_unavailable' })
})

t.test('AT-14 a key that was moved, changed, or left without its master key stays closed', async t => {
  const subject = sqliteSubject(t)
  const { orgId } = await subject.organization('open', 0n)
  const other = await subject.organization('open', 0n)
  const input = { organization: orgId, provider: 'acme', label: 'l', fingerprint: 'f', secret: secretOf(1) }
  await subject.policies.providerKeys.add(input, 'test')
  const ring = new Keyring({ given: undefined, file: keyFile(subject.path) })
  const read = async (org: string) => {
    const [kept] = (await subject.policies.facts(org)).keys
    return ring.open(kept!.sealed, placeOf(kept!))
  }
  t.equal(await read(orgId), secretOf(1))
  subject.db.prepare('UPDATE provider_keys SET org_id = ?').run(other.orgId)
  await subject.policies.compliance.clear(other.orgId, 'test')
  await t.rejects(read(other.orgId), { name: 'KeyringError' })
  subject.db.prepare('UPDATE provider_keys SET org_id = ?, provider = ?').run(orgId, 'best')
  await subject.policies.compliance.clear(orgId, 'test')
  await t.rejects(read(orgId), { name: 'KeyringError' })
  subject.db.prepare("UPDATE provider_keys SET provider = 'acme', master_key = 'deadbeef'").run()
  await subject.policies.compliance.clear(orgId, 'test')
  await t.rejects(read(orgId), { message: 'the master key deadbeef is missing' })
  const { reencrypted, unreadable } = await subject.policies.masterKeys.reencrypt(false, 'test')
  t.strictSame([reencrypted, unreadable.length], [0, 1], 'and a re-encryption leaves it as it is')
})

t.test('a re-encryption that is killed in the middle leaves every key readable, and the next one ends it', async t => {
  const subject = sqliteSubject(t)
  const count = 3000
  const ring = new Keyring({ given: undefined, file: keyFile(subject.path) })
  const first = ring.version
  const insert = subject.db.prepare(`
    INSERT INTO provider_keys (id, org_id, provider, label, fingerprint, master_key, nonce, ciphertext, created_at)
    VALUES (?, ?, 'acme', 'l', 'f', ?, ?, ?, 0)`)
  const { orgId } = seed(subject.db, 'open', 0n)
  subject.db.transaction(() => {
    for (let n = 0; n < count; n++) {
      const id = `key-${String(n).padStart(6, '0')}`
      const { version, nonce, ciphertext } = ring.seal(secretOf(n), placeOf({ orgId, provider: 'acme', id }))
      insert.run(id, orgId, version, nonce, ciphertext)
    }
  })()
  const child = await startChild(t)
  t.equal(await tell(child, { do: 'reencrypt', path: subject.path }), 'begun')
  child.kill('SIGKILL')
  await heard(child).catch(() => undefined)

  const versions = subject.db
    .prepare<[], { master_key: string; n: number }>('SELECT master_key, count(*) AS n FROM provider_keys GROUP BY 1')
    .all()
  t.equal(versions.length, 2, 'it was in the middle')
  t.equal(
    versions.reduce((sum, { n }) => sum + n, 0),
    count,
  )
  const again = openSqlite(subject.path)
  t.teardown(() => again.close())
  const fresh = new Keyring({ given: undefined, file: keyFile(subject.path) })
  const readable = async () => {
    const { keys } = await again.policies.facts(orgId)
    return keys.filter((kept, n) => fresh.open(kept.sealed, placeOf(kept)) === secretOf(n)).length
  }
  t.equal(await readable(), count)
  const left = versions.find(({ master_key }) => master_key === first)!.n
  const { reencrypted, unreadable, keyVersion } = await again.policies.masterKeys.reencrypt(false, 'test')
  t.strictSame([reencrypted, unreadable, keyVersion], [left, [], fresh.version])
  t.match(await again.policies.masterKeys.versions(), [{ kind: 'provider_keys', versions: [keyVersion] }])
  t.equal(await readable(), count)
})

t.test('master keys that cannot be had are a 400 to the operator', async t => {
  const subject = sqliteSubject(t)
  const stores = openSqlite(subject.path, { keyring: () => new Keyring({ given: 'short', file: '/nowhere' }) })
  t.teardown(() => stores.close())
  const { orgId } = await subject.organization('open', 0n)
  const input = { organization: orgId, provider: 'acme', label: 'l', fingerprint: 'f', secret: 's' }
  const error = await stores.policies.providerKeys.add(input, 'test').catch((thrown: unknown) => thrown)
  t.ok(error instanceof GatewayError)
  t.match(error, { status: 400, message: /at least 16 characters/ })
})
