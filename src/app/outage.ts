/** Logs an outage of the database once, in place of each failure that follows from it. */
import type { Log } from '../core/ports.ts'
import { GatewayError } from '../lib/error.ts'
import type { CleanupStack } from './cleanup.ts'

const PROBE_MS = 1000
/** Codes of PostgreSQL and of the system for connections that end or do not open, or take no writes. */
const LOST = /^(?:08|57P|25006|E[A-Z]+$)/

/** Whether an error may follow from an outage: it is a store's, the driver's or the network's. */
function isOfStore(err: unknown): boolean {
  if (err instanceof GatewayError) return err.code === 'billing_unavailable' || err.code === 'store_unavailable'
  if (!(err instanceof Error)) return false
  const { code, message } = err as NodeJS.ErrnoException
  return code === undefined ? /timeout|terminated/i.test(message) : LOST.test(code)
}

/** Returns `log`, whose lines about errors of stores have the level debug while `ping` rejects. */
export function outageLog(log: Log, ping: () => Promise<void>, cleanup: CleanupStack): Log {
  let isAway = false
  let isClosed = false
  let looking: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  const look = async () => {
    const fault = await ping().then(
      () => undefined,
      (thrown: unknown) => ({ reason: thrown instanceof Error ? thrown.message : String(thrown) }),
    )
    looking = undefined
    if (isClosed) return
    if (fault && !isAway) log.warn(fault, 'database unreachable')
    if (!fault && isAway) log.info({}, 'database reachable')
    isAway = fault !== undefined
    if (isAway) timer = setTimeout(look, PROBE_MS).unref()
  }
  const filtered = (write: Log['warn']): Log['warn'] => {
    return (fields, message) => {
      if (isClosed || !('err' in fields && isOfStore(fields.err))) return write(fields, message)
      if (isAway) return log.debug(fields, message)
      looking ??= look()
      void looking.then(() => (isAway ? log.debug(fields, message) : write(fields, message)))
    }
  }
  cleanup.add(() => {
    isClosed = true
    clearTimeout(timer)
  })
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => log.info(fields, message),
    warn: filtered((fields, message) => log.warn(fields, message)),
    error: filtered((fields, message) => log.error(fields, message)),
  }
}
