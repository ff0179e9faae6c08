/** Counters and step size of a re-encryption of sealed values. */
import type { Reencryption, SealedKind } from '../../core/ports.ts'

/** Each is a table of the database. */
export const SEALED_KINDS: readonly SealedKind[] = [
  'provider_keys',
  'responses',
  'realtime_secrets',
  'jobs',
  'contents',
]
/** Rows per transaction, so that requests do not wait long. */
export const REENCRYPTION_BATCH = 100
/** Sealed bytes per transaction, unless one row has more. */
export const REENCRYPTION_BYTES = 4 * 1024 * 1024
/** Ids that the answer names. */
export const UNREADABLE_SHOWN = 100

/** Result for one row; undefined when the row was removed meanwhile. */
export type ResealedRow = 'reencrypted' | 'unreadable' | undefined

/** Counts the rows of a re-encryption. */
export class ReencryptionTally {
  readonly #kinds = Object.fromEntries(SEALED_KINDS.map(kind => [kind, { reencrypted: 0, unreadable: 0 }])) as Record<
    SealedKind,
    { reencrypted: number; unreadable: number }
  >
  readonly #unreadable: string[] = []

  add(kind: SealedKind, id: string, row: ResealedRow): void {
    if (row === undefined) return
    this.#kinds[kind][row]++
    if (row === 'unreadable' && this.#unreadable.length < UNREADABLE_SHOWN) this.#unreadable.push(id)
  }

  done(keyVersion: string): Reencryption {
    const reencrypted = SEALED_KINDS.reduce((sum, kind) => sum + this.#kinds[kind].reencrypted, 0)
    return { reencrypted, unreadable: this.#unreadable, keyVersion, kinds: this.#kinds }
  }
}
