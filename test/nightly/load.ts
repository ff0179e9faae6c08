/** Load whose rate does not depend on how fast it is answered. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { SecureContext } from 'node:tls'
import { Pool } from 'undici'

/** How long a client keeps a connection that it does not use. */
export const IDLE_MS = 500

export interface Answer {
  /** 0 when there was none. */
  status: number
  text: string
  /** From sending to the last byte. */
  ms: number
  /** Why there was none, or not all of it. */
  error?: string
}

export interface Clients {
  /** Sends one request; never rejects. */
  ask(body: string, path?: string, more?: Record<string, string>): Promise<Answer>
  close(): Promise<void>
}

/** How a client knows a server that has another name than its address; one context serves all connections. */
export interface Tls {
  readonly servername: string
  readonly secureContext: SecureContext
}

/** Connections to one address, as many as are needed, that are kept for a moment and used again. */
export function clients(url: string, key: string, tls?: Tls): Clients {
  const pool = new Pool(url, {
    ...(tls && { connect: tls }),
    headersTimeout: 60_000,
    bodyTimeout: 60_000,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
  })
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` }
  return {
    async ask(body, path = '/v1/chat/completions', more = {}) {
      const start = performance.now()
      let status = 0
      try {
        const response = await pool.request({ method: 'POST', path, headers: { ...headers, ...more }, body })
        status = response.statusCode
        const text = await response.body.text()
        return { status, text, ms: performance.now() - start }
      } catch (error) {
        return { status, text: '', ms: performance.now() - start, error: String(error) }
      }
    },
    close: () => pool.destroy(),
  }
}

const TICK_MS = 5

/**
 * Calls `send` at `rate` per second for so many milliseconds, or while `given` says so, whether or not earlier calls
 * have ended; resolves when all have.
 */
export async function pace(
  rate: number,
  given: number | (() => boolean),
  send: (n: number) => Promise<unknown>,
): Promise<void> {
  const start = performance.now()
  const elapsed = () => performance.now() - start
  const lasts = typeof given === 'function' ? given : () => elapsed() < given
  const running = new Set<Promise<unknown>>()
  for (let sent = 0; lasts(); ) {
    for (const due = (elapsed() * rate) / 1000; sent < due; sent++) {
      const call: Promise<unknown> = send(sent).finally(() => running.delete(call))
      running.add(call)
    }
    await sleep(TICK_MS)
  }
  await Promise.all(running)
}

/** A chat request as JSON text. */
export const question = (model: string, more: object = {}): string =>
  JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }], ...more })
