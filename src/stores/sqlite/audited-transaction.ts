/** Operators' changes: each in one transaction with its line in the audit log. */
import type { Statement } from 'better-sqlite3'
import { formatMoney } from '../../core/money.ts'
import type { Actor, AuditEntry, AuditStore } from '../../core/ports.ts'
import { errors, GatewayError } from '../../lib/error.ts'
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

/** Undoes what a transaction has written so far, and says no more than that nothing came of it. */
export class Undone extends Error {}

interface AuditRow {
  id: number
  at: number
  actor: string
  action: string
  organization: string | null
  subject: string
  was: string | null
  became: string | null
}

/** The log, newest first, a page at a time. */
export class SqliteAudit implements AuditStore {
  readonly #directory: NameResolver
  readonly #list: Statement<{ org: string | null; before: number; limit: number }, AuditRow>

  constructor(db: Sqlite, directory: NameResolver) {
    this.#directory = directory
    this.#list = db.prepare(`
      SELECT audit.id, at, actor, action, organizations.name AS organization, subject, was, became
      FROM audit LEFT JOIN organizations ON organizations.id = audit.org_id
      WHERE (@org IS NULL OR org_id = @org) AND audit.id < @before
      ORDER BY audit.id DESC LIMIT @limit`)
  }

  async list(query: Parameters<AuditStore['list']>[0]): Promise<AuditEntry[]> {
    const { organization, limit, before = Number.MAX_SAFE_INTEGER } = query
    const org = organization === undefined ? null : this.#directory.organization(organization).id
    return this.#list.all({ org, before, limit }).map(row => ({
      id: row.id,
      at: new Date(row.at).toISOString(),
      actor: row.actor,
      action: row.action,
      organization: row.organization,
      subject: row.subject,
      before: auditValue(row.was),
      after: auditValue(row.became),
    }))
  }
}

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

/** A record as JSON, with amounts as decimal strings of USD; null for an absent one. */
export const auditText = (value: unknown): string | null =>
  value === null || value === undefined
    ? null
    : JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? formatMoney(inner) : inner))

/** What `auditText` has written; null for an absent record. */
export const auditValue = (text: string | null): unknown => (text === null ? null : JSON.parse(text))
