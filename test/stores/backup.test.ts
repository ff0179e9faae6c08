/** A copy that is made while everybody writes is a whole one, of one moment. */
import { join } from 'node:path'
import t from 'tap'
import type { Principal } from '../../src/core/ports.ts'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { HOUR, hold, NOON, rowOf, sqliteSubject, temporaryFolder } from './subject.ts'

t.test('ST-15 a backup that is made while requests are settled has books that agree', async t => {
  const subject = sqliteSubject(t)
  const principals: Principal[] = []
  for (let n = 0; n < 20; n++) principals.push(await subject.organization('prepaid', 1_000_000n))
  let copied = false
  let written = 0
  const write = async (worker: number) => {
    for (let n = 0; !copied; n++) {
      const principal = principals[(worker * 7 + n) % principals.length]!
      const id = `${worker}-${n}`
      const held = await hold(subject, principal, id, 10n)
      if ('exhausted' in held) throw new Error('refused')
      await subject.ledger.settle(held, rowOf(principal, id, { cost: 7n }))
      written++
    }
  }
  const writers = Array.from({ length: 8 }, (_, worker) => write(worker))
  const path = join(temporaryFolder(t), 'backup.db')
  const source = new Database(subject.path, { readonly: true })
  let steps = 0
  await source.backup(path, {
    progress: () => {
      steps++
      return 5
    },
  })
  copied = true
  await Promise.all(writers)
  source.close()
  t.ok(steps > 1 && written > 0, `${written} requests were settled meanwhile, in ${steps} steps`)

  const copy = new Database(path)
  t.equal(copy.pragma('integrity_check', { simple: true }), 'ok')
  const wrong = copy.prepare(`
    SELECT org_id FROM balances
    WHERE balance <> (SELECT sum(amount) FROM ledger WHERE ledger.org_id = balances.org_id)
    OR held <> (SELECT coalesce(sum(amount), 0) FROM holds WHERE holds.org_id = balances.org_id)`)
  t.same(wrong.all(), [])
  copy.close()
  // Who made the holds that it caught lives on; they are over when it is looked for.
  const restored = openSqlite(path, { now: () => NOON + 2 * HOUR })
  t.same(await restored.usage.check(), [])
  const orphans = await restored.ledger.recover()
  t.same(await restored.usage.check(), [], `${orphans} requests ran at that moment`)
  for (const { orgId } of principals) t.equal((await restored.ledger.balance(orgId)).held, 0n)
  await restored.close()
})
