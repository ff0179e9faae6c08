/** A move from SQLite to PostgreSQL. */
import { join } from 'node:path'
import t from 'tap'
import type { Hold } from '../../src/core/ports.ts'
import { copyStores } from '../../src/stores/open.ts'
import { checkBooks } from '../../src/stores/postgres/books.ts'
import { openPool } from '../../src/stores/sql/postgres.ts'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { postgresServer, withoutPostgres } from '../helpers/postgres.ts'
import { callback, jobOf, running } from './contract-jobs.ts'
import { HOUR, hold, NOON, rowOf, sqliteSubject, temporaryFolder } from './subject.ts'

const BY = 'test'

t.test('copy to postgres', { skip: withoutPostgres }, async t => {
  t.test('a copy holds every row, and its books agree', async t => {
    const subject = sqliteSubject(t)
    const principal = await subject.organization('prepaid', 1000n)
    const { orgId, keyId, projectId } = principal
    await subject.accounts.updateKey(keyId, { limit: { set: { amount: 500n } } })
    await subject.members.add(
      { organization: orgId, email: 'a@a.example', role: 'developer', projects: [projectId] },
      BY,
    )
    await subject.plans.set(orgId, { plan: 'lite', overflow: true }, BY)
    await subject.policies.rules.add({ organization: orgId, type: 'deny_models', value: { models: ['x'] } }, BY)
    const limited = { ...principal, budgets: (await subject.keys.status(principal)).budgets }
    for (const id of ['a', 'b']) {
      const held = (await hold(subject, limited, id, 100n)) as Hold
      await subject.ledger.settle(
        held,
        rowOf(principal, id, { cost: 100n, requestedModel: 'm\0', usage: { prompt: 1, image: 2 } }),
      )
    }
    // One that is left open when the gateway ends.
    await hold(subject, limited, 'c', 100n)
    await running(subject, principal, jobOf('film', { callback }))
    const url = await (await postgresServer()).database()
    await t.rejects(
      copyStores({ sqlite: subject.path }, { postgres: url }, () => {}),
      /A gateway runs on/,
    )
    const path = join(temporaryFolder(t), 'gateway.db')
    await subject.db.backup(path)
    const source = new Database(path)
    t.teardown(() => source.close())
    // As its process leaves it.
    source.prepare('DELETE FROM owners').run()
    const told: string[] = []
    const rows = await copyStores({ sqlite: path }, { postgres: url }, (table, done, all) =>
      told.push(`${table} ${done}/${all}`),
    )
    t.match(rows, { organizations: 1, keys: 1, requests: 3, jobs: 1, rules: 1, subscriptions: 1 })
    t.ok(told.includes('requests 3/3'))
    t.same(await checkBooks(url), [])
    const pool = openPool({ url, max: 1, warn: () => {} })
    t.teardown(() => pool.end())
    const read = async (text: string) => (await pool.query(text)).rows
    t.same(await read('SELECT balance, held, used FROM balances'), [{ balance: 800n, held: 100n, used: 200n }])
    t.match(await read('SELECT spent, held FROM budgets'), [{ spent: 200n, held: 0n }])
    t.match(await read("SELECT requested_model, other_usage FROM requests WHERE id = 'a'"), [
      { requested_model: 'm\ufffd', other_usage: '{"image":2}' },
    ])
    t.match(await read('SELECT all_projects FROM members'), [{ all_projects: false }])
    t.match(await read('SELECT id, state FROM jobs'), [{ id: 'film', state: 'queued' }])
    t.match(await read('SELECT request_id, owner FROM holds'), [{ request_id: 'log-film', owner: 'jobs' }])
    for (const [table, count] of Object.entries(rows)) {
      t.equal(source.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get(), count, table)
    }

    await t.rejects(
      copyStores({ sqlite: path }, { postgres: url }, () => {}),
      /not empty/,
    )
  })

  t.test('nothing is copied where the books do not agree', async t => {
    const path = join(temporaryFolder(t), 'gateway.db')
    const url = await (await postgresServer()).database()
    const copy = () => copyStores({ sqlite: path }, { postgres: url }, () => {})
    const stores = openSqlite(path, { now: () => NOON + HOUR })
    await stores.accounts.bootstrap()
    await stores.close()
    const db = new Database(path)
    db.prepare('UPDATE balances SET balance = 5').run()
    db.close()
    await t.rejects(copy(), { name: 'StoreError', message: /books in SQLite do not agree.*balance/ })
    const pool = openPool({ url, max: 1, warn: () => {} })
    t.teardown(() => pool.end())
    t.match(await pool.query("SELECT to_regclass('organizations') AS made"), { rows: [{ made: null }] })
  })
})
