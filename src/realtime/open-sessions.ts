/** The sessions of one process: their number, and one timer for all of them. */

import type { Exchange } from '../core/exchange.ts'
import type { Services } from '../core/ports.ts'
import { errors, GatewayError } from '../lib/error.ts'
import type { Session } from './session.ts'

const TICK_MS = 1000

/** Counts sessions for the process, the organization and the key, and ticks those that are open. */
export class OpenSessions {
  readonly #sessions = new Set<Session>()
  #places = 0
  #timer: NodeJS.Timeout | undefined

  /** Takes a place; resolves with what gives it back. Rejects with 429 or 529. */
  async enter(
    { caller: { principal }, snapshot: { realtime } }: Exchange,
    { counters }: Services,
  ): Promise<() => void> {
    const { orgId, keyId } = principal!
    if (this.#places >= realtime.perProcess) throw errors.overloaded()
    this.#places++
    const taken: string[] = []
    const leave = () => {
      this.#places--
      for (const place of taken) void counters.leave(place)
    }
    try {
      for (const [place, most, who] of [
        [`${orgId} realtime`, realtime.perOrganization, 'organization'],
        [`${keyId} realtime`, realtime.perKey, 'key'],
      ] as const) {
        if (!(await counters.enter(place, most))) throw tooMany(who, most)
        taken.push(place)
      }
    } catch (thrown) {
      leave()
      throw thrown
    }
    return leave
  }

  add(session: Session): void {
    this.#sessions.add(session)
    this.#timer ??= setInterval(() => {
      const now = performance.now()
      for (const open of this.#sessions) open.tick(now)
    }, TICK_MS).unref()
    void session.ended.then(() => {
      this.#sessions.delete(session)
      if (this.#sessions.size > 0) return
      clearInterval(this.#timer)
      this.#timer = undefined
    })
  }
}

const tooMany = (who: string, most: number) =>
  new GatewayError({
    status: 429,
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    message: `Too many realtime sessions are open: this ${who} may have ${most}. Close one first.`,
    headers: { 'retry-after': '1' },
  })
