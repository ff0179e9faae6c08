/** Makes the end of a hold durable, or what stands for it while the ledger cannot be written. */

import type { Hold, RequestRow, Services } from '../../core/ports.ts'
import { asError, type GatewayError } from '../../lib/error.ts'
import type { AlertCaller } from '../../limits/alerts.ts'

/**
 * Requests that their caller pays for do not wait for a ledger that cannot be written. Other requests fail. Once the ledger
 * can be written, what was `delivered` is charged, and the hold of what was not ends (docs/contract.md#store-failures).
 */
export async function keep(
  row: RequestRow,
  hold: Hold | undefined,
  delivered: boolean,
  { ledger, log, alerts }: Services,
  caller?: AlertCaller,
): Promise<void> {
  try {
    if (hold) {
      const tells = caller !== undefined && alerts?.isOn === true
      const standing = await ledger.settle(hold, row, tells)
      if (tells && standing) alerts.settled(caller, standing)
      return
    }
  } catch (thrown) {
    if (!ledger.canSpool) throw thrown
    if (hold?.funds !== 'byok') {
      // The caller gets the first failure.
      const report = (err: unknown) => log.warn({ err, hold: hold?.id }, 'charge spool failed; its hold will expire')
      const ended = failed(row, asError(thrown))
      await ledger.spool(delivered ? ended : { ...ended, cost: row.cost && 0n, storage: 0n }, hold).catch(report)
      throw thrown
    }
  }
  await ledger.spool(row)
}

/** The row of an answer that failed while its charge was written. */
const failed = (row: RequestRow, { status, code }: GatewayError): RequestRow =>
  row.outcome === 'ok' ? { ...row, outcome: 'error', status, errorCode: code } : row

/** A hold that cannot be given back now is given back when it expires; the answer does not depend on it. */
export async function release(hold: Hold | undefined, { ledger, log }: Services): Promise<void> {
  if (!hold) return
  try {
    await ledger.void(hold)
  } catch (err) {
    log.warn({ err, hold: hold.id }, 'hold release failed; the hold will expire')
  }
}
