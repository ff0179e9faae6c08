/** Client secrets of realtime sessions: for a short time they open sessions of one kind, as the key that made them. */
import type { Principal } from './keys.ts'

/** Client secrets, each by its SHA-256. */
export interface RealtimeSecretStore {
  /** The secret is never shown again. Ends the oldest secrets of a key that has too many. Rejects with 503 when the store fails. */
  begin(input: {
    readonly principal: Principal
    readonly session: string
    /** Unix milliseconds. */
    readonly expiresAt: number
  }): Promise<{ readonly id: string; readonly secret: string }>
  /** Whom the live secret with this SHA-256 (hex) makes: its key, with what the secret opens, and no longer than both live. */
  find(hash: string): Promise<Principal | undefined>
  /** The principal of a regular key that may be used now, for sessions that outlive what opened them. */
  live(keyId: string): Promise<Principal | undefined>
}
