/** Signed-in browsers, held in memory: a restart signs them out. */
import { randomBytes } from 'node:crypto'
import type { JWTPayload } from 'jose'
import { equals } from '../admin/guard.ts'
import { HOUR_MS } from '../lib/period.ts'

const LIFETIME_MS = 8 * HOUR_MS
/** The oldest is signed out for one more. */
const MAX_SESSIONS = 100
const RANDOM_BYTES = 32

/** A person as the identity provider has named them. */
export interface Person {
  /** Verified address, else the provider's id of the person. */
  readonly name: string
  readonly claims: JWTPayload
}

/** A signed-in browser. */
export interface Session {
  readonly id: string
  /** Stands in every form; no other origin can read it. */
  readonly csrf: string
  readonly expiresAt: number
  /** Undefined for a holder of the admin token. */
  readonly person: Person | undefined
  isToken(given: string): boolean
}

/** Makes a text that cannot be guessed. */
export const random = (): string => randomBytes(RANDOM_BYTES).toString('base64url')

/** Sessions by the id that the cookie of a browser holds. */
export class Sessions {
  readonly #sessions = new Map<string, Session>()
  readonly #now: () => number

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  begin(person?: Person): Session {
    const csrf = random()
    const expiresAt = this.#now() + LIFETIME_MS
    const session = { id: random(), csrf, expiresAt, person, isToken: equals(csrf) }
    const [oldest] = this.#sessions.keys()
    if (this.#sessions.size >= MAX_SESSIONS) this.#sessions.delete(oldest!)
    this.#sessions.set(session.id, session)
    return session
  }

  /** Undefined for an unknown session, and for one that is over. */
  find(id: string): Session | undefined {
    const session = this.#sessions.get(id)
    if (session && session.expiresAt > this.#now()) return session
    this.#sessions.delete(id)
    return undefined
  }

  end(id: string): void {
    this.#sessions.delete(id)
  }
}
