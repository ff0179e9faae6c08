/** Jobs on SQLite. */
import type { JobStore } from '../../../core/ports.ts'
import type { Keyring } from '../../keyring.ts'
import type { LedgerTransaction } from '../../rules/jobs.ts'
import type { SqlKeys } from '../../sql/keys.ts'
import type { Sqlite } from '../open.ts'
import type { Writer } from '../writer.ts'
import { claims } from './claims.ts'
import { creation } from './creation.ts'
import { JobEvents } from './events.ts'
import { reads } from './reads.ts'
import { results } from './results.ts'
import { JobTable } from './table.ts'

/** `ledger` holds and settles within the transactions of jobs; `keyring` seals addresses and secrets. */
export function sqliteJobs(
  db: Sqlite,
  writer: Writer,
  { ledger, keys, keyring }: { ledger: LedgerTransaction; keys: SqlKeys; keyring: () => Keyring },
): JobStore {
  const table = new JobTable(db, writer, keyring)
  const events = new JobEvents(table)
  return {
    ...creation(table, events, ledger),
    ...claims(table, events, ledger),
    ...results(table),
    ...reads(table, keys),
    claimDeliveries: (lease, share) => events.claim(lease, share),
    deliver: (delivery, delivered) => events.deliver(delivery, delivered),
    postpone: (delivery, nextAt) => events.postpone(delivery, nextAt),
    deliveries: jobId => events.of(jobId),
    redeliver: (eventId, now) => events.redeliver(eventId, now),
  }
}
