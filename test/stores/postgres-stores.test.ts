/** The stores that are written once, on PostgreSQL, against the contracts of their ports. */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { Keyring } from '../../src/stores/keyring.ts'
import { ChangeWatch, markChange } from '../../src/stores/postgres/changes.ts'
import { sqlStores } from '../../src/stores/sql/index.ts'
import { PostgresSql } from '../../src/stores/sql/postgres.ts'
import type { Sql } from '../../src/stores/sql/sql.ts'
import { SqlUsage } from '../../src/stores/sql/usage.ts'
import { withoutPostgres } from '../helpers/postgres.ts'
import { accountStoreContract, keyStoreContract } from './contract.ts'
import { memberContract, organizationContract } from './contract-accounts.ts'
import { planContract } from './contract-limits.ts'
import { oauthContract } from './contract-oauth.ts'
import { realtimeContract } from './contract-realtime.ts'
import { reportContract } from './contract-reports.ts'
import { requestLogContract } from './contract-requests.ts'
import { responseStoreContract } from './contract-responses.ts'
import { sqlContract } from './contract-sql.ts'
import { postgresSubject } from './postgres-subject.ts'
import { organizationsIn, type Subject } from './subject.ts'

/** Number of the turn in which operators' changes run. */
const TURN = 1

async function subject(t: Pick<Test, 'teardown'>): Promise<Subject> {
  const { pool, clock, node } = await postgresSubject(t)
  const sql = new PostgresSql(pool)
  const now = () => clock.now
  const watch = new ChangeWatch(sql)
  await watch.read()
  t.teardown(() => watch.close())
  const ring = new Keyring({ given: randomBytes(32).toString('base64url'), file: '' })
  const stores = sqlStores(sql, {
    now,
    keyring: () => ring,
    changes: new PostgresSql(pool, TURN),
    mark: markChange,
    changeSource: () => watch.source(),
  })
  const jobs = new Proxy({} as Subject['jobs'], { get: () => async () => false })
  const all: Omit<Subject, 'clock' | 'organization'> = {
    ...stores,
    jobs,
    ledger: await node(),
    usage: new SqlUsage(sql, async () => []),
    retention: { prune: async () => 0 },
    identity: undefined,
    living: async () => 1,
    ping: async () => {},
    close: async () => {},
  }
  return { ...all, clock, exec: text => pool.query(text), organization: organizationsIn(all) }
}

async function written(t: Test): Promise<Sql> {
  const { pool } = await postgresSubject(t)
  await pool.query('CREATE TABLE written (name text, n bigint)')
  return new PostgresSql(pool)
}

const contracts = [
  ['accounts', accountStoreContract],
  ['keys', keyStoreContract],
  ['plans', planContract],
  ['organizations', organizationContract],
  ['members', memberContract],
  ['reports', reportContract],
  ['request log', requestLogContract],
  ['oauth', oauthContract],
  ['responses', responseStoreContract],
  ['realtime', realtimeContract],
] as const
for (const [what, contract] of contracts) {
  t.test(`postgres ${what}`, { skip: withoutPostgres }, async t => contract(t, subject))
}
t.test('postgres sql', { skip: withoutPostgres }, async t => sqlContract(t, written))
