/** What a start may do with the stores, whatever keeps them: its master keys must be those that the values are sealed under. */
import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { Keyring } from '../../src/stores/keyring.ts'
import { AuditedTransaction } from '../../src/stores/sql/audit.ts'
import { SqlMasterKeys } from '../../src/stores/sql/master-keys.ts'
import type { Sql } from '../../src/stores/sql/sql.ts'
import { NOON } from './subject.ts'

const newKey = (): string => randomBytes(32).toString('base64url')
const ringOf = (...keys: string[]): Keyring => new Keyring({ given: keys.join(), file: '' })

/** `make` returns a database with the schema and without rows. */
export function masterKeyContract(t: Test, make: (t: Test) => Promise<Sql>): void {
  const [old, next, other] = [newKey(), newKey(), newKey()]
  const version = ringOf(old).version
  const start = async (t: Test) => {
    const changes = new AuditedTransaction(await make(t), { now: () => NOON, onKeyChange: () => {} })
    const of = (...keys: string[]) => new SqlMasterKeys(changes, () => ringOf(...keys))
    const seal = (key: string) => {
      const { nonce, ciphertext } = ringOf(key).seal('{}', 'org|log')
      const text = `INSERT INTO contents (id, org_id, project_id, created_at, master_key, nonce, ciphertext)
        VALUES ($1, 'org', 'project', 0, $1, $2, $3)`
      return changes.sql.query(text, [ringOf(key).version, nonce, ciphertext])
    }
    return { of, seal }
  }

  t.test('the first start decides: others need its key, wherever in theirs it stands', async t => {
    const { of } = await start(t)
    t.equal(await of(old).foreign(undefined), undefined)
    for (const keys of [[old], [next, old], [old, next]]) t.equal(await of(...keys).foreign(undefined), undefined)
    for (const keys of [[other], [next, other]]) t.equal(await of(...keys).foreign(undefined), version)
    t.equal(await of(old).foreign(undefined), undefined, 'a start that is refused changes nothing')
  })

  t.test('of starts at once with different keys, those with one key go on', async t => {
    const { of } = await start(t)
    const keys = [old, next, other, old, next, other]
    const found = await Promise.all(keys.map(key => of(key).foreign(undefined)))
    const first = found.find(version => version !== undefined)
    t.strictSame(
      found,
      keys.map(key => (ringOf(key).version === first ? undefined : first)),
    )
  })

  t.test('after a change of keys the new one is needed, and the older one is not', async t => {
    const { of } = await start(t)
    await of(old).foreign(undefined)
    await of(next, old).reencrypt(false, 'test')
    t.equal(await of(next).foreign(undefined), undefined)
    t.equal(await of(old).foreign(undefined), ringOf(next).version)
  })

  t.test('values of an earlier version decide where no start has left its key', async t => {
    const { of, seal } = await start(t)
    await seal(old)
    t.equal(await of(other).foreign(undefined), version)
    t.equal(await of(next, old).foreign(undefined), undefined, 'it seals under the newest key')
    t.equal(await of(old).foreign(undefined), ringOf(next).version)
  })

  t.test('values that some keys open are no reason to refuse a start', async t => {
    const { of, seal } = await start(t)
    await seal(old)
    await seal(next)
    t.equal(await of(next).foreign(undefined), undefined)
  })

  t.test('a key that is lost may be given up by its name, and no other one', async t => {
    for (const isKept of [true, false]) {
      const { of, seal } = await start(t)
      if (isKept) await of(old).foreign(undefined)
      else await seal(old)
      t.equal(await of(other).foreign('deadbeef'), version)
      t.equal(await of(other).foreign(version), undefined)
      t.equal(await of(other).foreign(undefined), undefined)
      t.equal(
        await of(next).foreign(version),
        ringOf(other).version,
        'the variable that was left set gives up nothing else',
      )
    }
  })
}
