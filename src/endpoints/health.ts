/** `GET /`: whether the configured stores answer (docs/contract.md#health). */

import { json } from '../codecs/json.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Probe } from '../core/ports.ts'
import { value } from '../core/reply.ts'
import { errors } from '../lib/error.ts'
import { atMost } from '../lib/timer.ts'

const TIMEOUT_MS = 900
const checks = ['redis', 'database'] as const

/** Result of a probe. */
export interface State {
  connected: boolean
  error?: string
}

/** Open to all. 503 when a configured store fails, or does not answer in 900 ms; `skip` leaves checks out. */
export const health: Endpoint = {
  name: 'health',
  method: 'GET',
  path: '/',
  chain: 'local',
  open: true,
  codec: json,
  bodyLimit: 0,
  async serve(ex, { version, database: store, redis: shared }) {
    const skip = skipped(ex.http.query)
    const [redis, database] = await Promise.all([
      skip.has('redis') ? SKIPPED : shared ? ask(shared) : NOT_CONFIGURED,
      skip.has('database') ? SKIPPED : ask(store),
    ])
    const healthy = [redis, database].every(one => one.connected || one === SKIPPED || one === NOT_CONFIGURED)
    const status = healthy ? 'ok' : 'unhealthy'
    const message = healthy ? 'Model Gateway is running' : 'A configured store does not answer'
    const record = { message, version, health: { status, redis, database } }
    return value(record, healthy ? 200 : 503)
  },
}

function skipped(query: string): Set<string> {
  const skip = new URLSearchParams(query).get('skip')?.split(',').filter(Boolean) ?? []
  const wrong = skip.find(name => !checks.some(check => check === name))
  if (wrong !== undefined) {
    throw errors.invalidField('skip', `"${wrong.slice(0, 50)}" is not one of ${checks.join(', ')}`)
  }
  return new Set(skip)
}

const CONNECTED: State = { connected: true }
const off = (error: string): State => ({ connected: false, error })
const SKIPPED = off('skipped')
const NOT_CONFIGURED = off('not configured')

/** A probe that does not answer in time counts as failed. */
export async function ask(probe: Probe): Promise<State> {
  try {
    const connected = probe.ping().then(() => CONNECTED)
    return await atMost(TIMEOUT_MS, connected, off(`no answer within ${TIMEOUT_MS} ms`))
  } catch (thrown) {
    // Its own words may name files and the disk: they are for `gatewayctl status`.
    return off(/\blocked\b/.test(String(thrown)) ? 'locked' : 'unavailable')
  }
}
