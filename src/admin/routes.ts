/** Routes of the admin listener besides commands. */
import { errors } from '../lib/error.ts'
import { readiness } from './commands/status.ts'
import type { AdminContext } from './context.ts'

/** A whole answer of the admin listener. */
export interface Answer {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

/** The value as JSON with a line end. */
export const json = (value: unknown, status = 200): Answer => ({
  status,
  contentType: 'application/json',
  body: `${JSON.stringify(value)}\n`,
})

interface Route {
  readonly method: 'GET' | 'POST'
  /** Served without the token: for probes and scrapers. */
  readonly open?: boolean
  answer(context: AdminContext): Answer | Promise<Answer>
}

/** Anyone who can reach the port sees the reason, so it names only the failed part. */
async function ready(context: AdminContext): Promise<Answer> {
  const { ready, reason, redis } = await readiness(context)
  const shown = redis && { redis: redis.connected ? { connected: true } : { connected: false, error: 'unavailable' } }
  return ready ? json({ status: 'ready', ...shown }) : json({ status: 'not ready', reason, ...shown }, 503)
}

async function reload(context: AdminContext): Promise<Answer> {
  try {
    return json(await context.reload())
  } catch (thrown) {
    throw errors.badRequest(reason(thrown))
  }
}

/** A ConfigError's text begins with `file:line:column`, which its message lacks. */
const reason = (thrown: unknown): string =>
  thrown instanceof Error && thrown.name !== 'ConfigError' ? thrown.message : String(thrown)

/** Routes by path. */
export const routes: Readonly<Record<string, Route>> = {
  '/live': { method: 'GET', open: true, answer: () => json({ status: 'live' }) },
  '/ready': { method: 'GET', open: true, answer: ready },
  '/metrics': {
    method: 'GET',
    open: true,
    answer: async ({ metrics }) => ({ status: 200, contentType: metrics.contentType, body: await metrics.text() }),
  },
  '/config': { method: 'GET', answer: context => json(context.config()) },
  '/reload': { method: 'POST', answer: reload },
  '/drain': {
    method: 'POST',
    async answer(context) {
      const { inFlight } = await context.state()
      context.drain()
      return json({ draining: true, inFlight }, 202)
    },
  },
}
