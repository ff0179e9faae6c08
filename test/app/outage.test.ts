/** What the log says while the database is away. */
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { CleanupStack } from '../../src/app/cleanup.ts'
import { outageLog } from '../../src/app/outage.ts'
import type { Log } from '../../src/core/ports.ts'
import { errors } from '../../src/lib/error.ts'

const refused = () => Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' })

/** A log over a database whose `fault` can be set; `probe` runs the probe that is due. */
function setUp(t: Test) {
  const lines: string[] = []
  const write =
    (level: string): Log['info'] =>
    (_, message) =>
      lines.push(`${level} ${message}`)
  const inner: Log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  let due = () => {}
  t.intercept(globalThis, 'setTimeout', {
    value: (callback: () => void) => {
      due = callback
      return { unref() {} }
    },
  })
  const state: { fault: Error | undefined } = { fault: undefined }
  const cleanup = new CleanupStack()
  const ping = async () => {
    if (state.fault) throw state.fault
  }
  const log = outageLog(inner, ping, cleanup)
  const taken = async () => {
    await turn()
    return lines.splice(0)
  }
  const probe = async () => {
    due()
    return taken()
  }
  return { log, state, cleanup, taken, probe }
}

t.test('an outage is one line at its begin and one at its end', async t => {
  const { log, state, taken, probe } = setUp(t)
  state.fault = refused()
  log.warn({ err: refused() }, 'store task failed; retried')
  log.error({ err: errors.billingUnavailable(refused()) }, 'filter finish failed')
  t.strictSame(await taken(), [
    'warn database unreachable',
    'debug store task failed; retried',
    'debug filter finish failed',
  ])
  log.warn({ err: errors.storeUnavailable(refused()) }, 'job claim failed; retried')
  log.warn({ err: new Error('timeout exceeded when trying to connect') }, 'store task failed; retried')
  t.strictSame(await taken(), ['debug job claim failed; retried', 'debug store task failed; retried'])
  t.strictSame(await probe(), [], 'it is still away')
  state.fault = undefined
  t.strictSame(await probe(), ['info database reachable'])
})

t.test('failures of a database that answers keep their lines', async t => {
  const { log, taken } = setUp(t)
  log.warn({ err: errors.billingUnavailable(new Error('disk full')) }, 'orphan sweep failed')
  t.strictSame(await taken(), ['warn orphan sweep failed'])
})

t.test('lines about anything else keep their level during an outage', async t => {
  const { log, state, taken } = setUp(t)
  state.fault = refused()
  log.warn({ err: refused() }, 'store task failed; retried')
  await taken()
  log.error({ err: new TypeError('x is not a function') }, 'filter finish failed')
  log.warn({ reason: 'no' }, 'redis unreachable')
  log.info({ status: 503 }, 'request failed')
  t.strictSame(await taken(), ['error filter finish failed', 'warn redis unreachable', 'info request failed'])
})

t.test('a process that ends looks no more, and logs what fails then', async t => {
  const { log, state, cleanup, taken } = setUp(t)
  state.fault = refused()
  await cleanup.close()
  log.warn({ err: refused() }, 'store task failed; retried')
  t.strictSame(await taken(), ['warn store task failed; retried'])
})
