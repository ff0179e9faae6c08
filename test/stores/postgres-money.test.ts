/** The ledger and what it decides by, on PostgreSQL, against the contracts of their ports. */
import t from 'tap'
import { withoutPostgres } from '../helpers/postgres.ts'
import { policyStoreContract } from '../policy/contract.ts'
import { ledgerContract, usageStoreContract } from './contract.ts'
import { auditContract, creditContract } from './contract-accounts.ts'
import { usageDaysContract } from './contract-days.ts'
import { limitContract } from './contract-limits.ts'
import { storesContract } from './contract-stores.ts'
import { postgresStores } from './postgres-subject.ts'

const contracts = [
  ['ledger', ledgerContract],
  ['limits', limitContract],
  ['credits', creditContract],
  ['audit', auditContract],
  ['usage', usageStoreContract],
  ['days of usage', usageDaysContract],
  ['policies', policyStoreContract],
  ['stores', storesContract],
] as const
for (const [what, contract] of contracts) {
  t.test(`postgres ${what}`, { skip: withoutPostgres }, async t => contract(t, postgresStores))
}
