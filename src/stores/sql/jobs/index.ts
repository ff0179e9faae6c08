/** Jobs, with their leases, results and callbacks. */
import type { JobStore } from '../../../core/ports.ts'
import type { SqlKeys } from '../keys.ts'
import type { Sql } from '../sql.ts'
import { claims } from './claims.ts'
import { creation } from './creation.ts'
import { deliveries } from './events.ts'
import { reads } from './reads.ts'
import { results } from './results.ts'
import { JobTable, type JobTableOptions } from './table.ts'

/** `ledger` holds and settles within the transactions of jobs; `keyring` seals addresses and secrets. */
export function sqlJobs(sql: Sql, { keys, ...options }: JobTableOptions & { readonly keys: SqlKeys }): JobStore {
  const table = new JobTable(sql, options)
  return { ...creation(table), ...claims(table), ...results(table), ...reads(table, keys), ...deliveries(table) }
}
