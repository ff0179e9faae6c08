/** The stores that are written once, on PostgreSQL, against the contracts of their ports. */
import t, { type Test } from 'tap'
import { PostgresSql } from '../../src/stores/sql/postgres.ts'
import type { Sql } from '../../src/stores/sql/sql.ts'
import { withoutPostgres } from '../helpers/postgres.ts'
import { accountStoreContract, keyStoreContract } from './contract.ts'
import { memberContract, organizationContract } from './contract-accounts.ts'
import { alertStoreContract } from './contract-alerts.ts'
import { contentStoreContract } from './contract-contents.ts'
import { jobStoreContract } from './contract-jobs.ts'
import { planContract } from './contract-limits.ts'
import { masterKeyContract } from './contract-master-keys.ts'
import { oauthContract } from './contract-oauth.ts'
import { realtimeContract } from './contract-realtime.ts'
import { reportContract } from './contract-reports.ts'
import { requestLogContract } from './contract-requests.ts'
import { responseStoreContract } from './contract-responses.ts'
import { sqlContract } from './contract-sql.ts'
import { postgresStores, postgresSubject } from './postgres-subject.ts'

async function written(t: Test): Promise<Sql> {
  const { pool } = await postgresSubject(t)
  await pool.query('CREATE TABLE written (name text, n bigint)')
  return new PostgresSql(pool)
}

const contracts = [
  ['accounts', accountStoreContract],
  ['keys', keyStoreContract],
  ['jobs', jobStoreContract],
  ['plans', planContract],
  ['organizations', organizationContract],
  ['members', memberContract],
  ['reports', reportContract],
  ['request log', requestLogContract],
  ['contents', contentStoreContract],
  ['alerts', alertStoreContract],
  ['oauth', oauthContract],
  ['responses', responseStoreContract],
  ['realtime', realtimeContract],
] as const
for (const [what, contract] of contracts) {
  t.test(`postgres ${what}`, { skip: withoutPostgres }, async t => contract(t, postgresStores))
}
t.test('postgres sql', { skip: withoutPostgres }, async t => sqlContract(t, written))
t.test('postgres master keys', { skip: withoutPostgres }, async t =>
  masterKeyContract(t, async t => new PostgresSql((await postgresSubject(t)).pool)),
)
