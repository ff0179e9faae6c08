/** Operators' changes: each in one transaction with its line in the audit log. */
import type { Statement } from 'better-sqlite3'
import type { Actor } from '../../core/ports.ts'
import { errors, GatewayError } from '../../lib/error.ts'
import { auditText, Undone } from '../sql/audit.ts'
import { NameResolver } from './name-resolver.ts'
import type { Sqlite } from './open.ts'
import type { Writer } from './writer.ts'

interface ChangeOptions {
  /** Wall clock, Unix milliseconds. */
  readonly now: () => number
  /** Called when a change of what keys may do is durable, before the call resolves. */
  readonly onKeyChange: () => void
}

/** Runs operators' changes. A change rejects with a GatewayError, or an error of the store as `storeUnavailable`. */
export class AuditedTransaction {
  readonly directory: NameResolver
  readonly now: () => number
  readonly #writer: Writer
  readonly #onKeyChange: () => void
  readonly #note: Statement

  constructor(db: Sqlite, writer: Writer, { now, onKeyChange }: ChangeOptions) {
    this.directory = new NameResolver(db)
    this.now = now
    this.#writer = writer
    this.#onKeyChange = onKeyChange
    this.#note = db.prepare(
      'INSERT INTO audit (at, actor, action, org_id, subject, was, became) VALUES (?, ?, ?, ?, ?, ?, ?)',
    )
  }

  /** Runs `work` in a transaction, after all earlier writes of requests. Rejects with a GatewayError. */
  async run<T>(work: () => T): Promise<T> {
    try {
      return await this.write(() => {
        this.#writer.sync()
        return work()
      })
    } finally {
      this.#onKeyChange()
    }
  }

  /** The same of what neither reads sums of requests nor changes what keys may do. */
  async write<T>(work: () => T): Promise<T> {
    try {
      return await this.#writer.run(work)
    } catch (cause) {
      throw errorOf(cause)
    }
  }

  /** Rejects with a GatewayError. */
  async read<T>(work: () => T): Promise<T> {
    try {
      return work()
    } catch (cause) {
      throw errorOf(cause)
    }
  }

  /** What keys may do has changed by `write`. */
  keysChanged(): void {
    this.#onKeyChange()
  }

  /** Within `run` or `write`. */
  note({ actor, action, organization, subject, was, became }: Note): void {
    this.#note.run(this.now(), actor, action, organization, subject, auditText(was), auditText(became))
  }
}

const errorOf = (cause: unknown): unknown =>
  cause instanceof GatewayError || cause instanceof Undone ? cause : errors.storeUnavailable(cause)

/** One line: a record before and after a change. */
interface Note {
  readonly actor: Actor
  readonly action: string
  /** Id; null when all organizations are concerned. */
  readonly organization: string | null
  readonly subject: string
  readonly was: unknown
  readonly became: unknown
}
