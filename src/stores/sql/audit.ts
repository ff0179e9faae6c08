/** Operators' changes: each in one transaction with its line in the audit log. */
import { formatMoney } from '../../core/money.ts'
import type { Actor, AuditStore } from '../../core/ports.ts'
import { errors, GatewayError } from '../../lib/error.ts'
import { Names } from './names.ts'
import { isoOf, type Sql } from './sql.ts'

interface ChangeOptions {
  /** Wall clock, Unix milliseconds. */
  readonly now: () => number
  /** Called when a change of what keys may do is durable, before the call resolves. */
  readonly onKeyChange: () => void
  /** Tells other nodes, within the transaction, that what keys may do has changed. */
  readonly mark?: ((sql: Sql) => Promise<unknown>) | undefined
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

/** A transaction in which an operator's change is made. */
export class Change {
  readonly sql: Sql
  readonly names: Names
  /** Wall clock, Unix milliseconds. */
  readonly now: () => number

  constructor(sql: Sql, now: () => number) {
    this.sql = sql
    this.names = new Names(sql)
    this.now = now
  }

  /** Adds a line to the audit log. */
  readonly note = async ({ actor, action, organization, subject, was, became }: Note): Promise<void> => {
    await this.sql.query(
      'INSERT INTO audit (at, actor, action, org_id, subject, was, became) VALUES ($1, $2, $3, $4, $5, $6, $7)',
      [this.now(), actor, action, organization, subject, auditText(was), auditText(became)],
    )
  }
}

/** Runs operators' changes. A change rejects with a GatewayError, or an error of the store as `storeUnavailable`. */
export class AuditedTransaction {
  /** For reads outside a change. */
  readonly sql: Sql
  readonly names: Names
  readonly now: () => number
  readonly #options: ChangeOptions

  constructor(sql: Sql, options: ChangeOptions) {
    this.sql = sql
    this.names = new Names(sql)
    this.now = options.now
    this.#options = options
  }

  /** Runs a change of what keys may do. Where there are other nodes, `mark` also makes such changes one at a time. */
  async run<T>(work: (change: Change) => Promise<T>): Promise<T> {
    try {
      return await this.write(async change => {
        await this.#options.mark?.(change.sql)
        return work(change)
      })
    } finally {
      this.#options.onKeyChange()
    }
  }

  /** Runs a change of something else. */
  write<T>(work: (change: Change) => Promise<T>): Promise<T> {
    return this.read(() => this.sql.transaction(sql => work(new Change(sql, this.now))))
  }

  /** Rejects as changes do. */
  async read<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (cause) {
      throw cause instanceof GatewayError || cause instanceof Undone ? cause : errors.storeUnavailable(cause)
    }
  }

  /** Tells that `write` has changed what keys may do. */
  async keysChanged(): Promise<void> {
    if (this.#options.mark) await this.#options.mark(this.sql)
    this.#options.onKeyChange()
  }
}

/** Undoes what a transaction has written so far, and says no more than that nothing came of it. */
export class Undone extends Error {}

interface AuditRow {
  id: bigint
  at: bigint
  actor: string
  action: string
  organization: string | null
  subject: string
  was: string | null
  became: string | null
}

const PAGE = `
  SELECT audit.id, at, actor, action, organizations.name AS organization, subject, was, became
  FROM audit LEFT JOIN organizations ON organizations.id = audit.org_id
  WHERE (CAST($1 AS text) IS NULL OR org_id = $1) AND audit.id < $2
  ORDER BY audit.id DESC LIMIT $3`

/** Makes the store of the log, newest first, a page at a time. */
export const sqlAudit = (changes: AuditedTransaction): AuditStore => ({
  list: ({ organization, limit, before = Number.MAX_SAFE_INTEGER }) =>
    changes.read(async () => {
      const org = await changes.names.organizationId(organization)
      const rows = await changes.sql.query<AuditRow>(PAGE, [org, before, limit])
      return rows.map(row => ({
        id: Number(row.id),
        at: isoOf(row.at),
        actor: row.actor,
        action: row.action,
        organization: row.organization,
        subject: row.subject,
        before: auditValue(row.was),
        after: auditValue(row.became),
      }))
    }),
})

/** A record as JSON, with amounts as decimal strings of USD; null for an absent one. */
export const auditText = (value: unknown): string | null =>
  value === null || value === undefined
    ? null
    : JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? formatMoney(inner) : inner))

/** Parses a record of `auditText`; null for an absent one. */
export const auditValue = (text: string | null): unknown => (text === null ? null : JSON.parse(text))
