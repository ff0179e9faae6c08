/** Jobs in memory: one process, so that leases and fences only keep its own claims apart. */
import type { JobStore } from '../../../../core/ports.ts'
import type { LedgerTransaction } from '../../../rules/jobs.ts'
import type { Tables } from '../tables.ts'
import { claims } from './claims.ts'
import { creation } from './creation.ts'
import { deliveries } from './events.ts'
import { reads } from './reads.ts'
import { results } from './results.ts'
import { JobTable } from './table.ts'

/** `ledger` holds and settles within the transactions of jobs; `admits` tells whether a key may be used now. */
export function jobStore(tables: Tables, ledger: LedgerTransaction, admits: (keyId: string) => boolean): JobStore {
  const table = new JobTable(tables)
  return {
    ...creation(table, ledger),
    ...claims(table, ledger),
    ...results(table),
    ...reads(table, admits),
    ...deliveries(table),
  }
}
