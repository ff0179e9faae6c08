/** The keys that grants stand for. */
import type { Principal } from '../../../core/ports.ts'

/** Called within a transaction. */
export interface LiveKeys {
  /** The principal of a regular key that may be used now. */
  live(keyId: string): Principal | undefined
  /** Of a key of any status. */
  organizationOf(keyId: string): string | undefined
}
