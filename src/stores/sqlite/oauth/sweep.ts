/** Ends and removes what is over of clients, grants, codes and tokens, some at a time. */
import type { Statement } from 'better-sqlite3'
import { CLIENT_MS, KEPT_MS, SWEEP_ROWS } from '../../rules/oauth.ts'
import type { Sqlite } from '../open.ts'
import type { GrantEnds } from './ends.ts'

const LIVE = 'grant_id = oauth_grants.id AND used_at IS NULL AND expires_at > @now'
/** A grant of which nothing is in force. */
const OVER = `
  NOT EXISTS (SELECT 1 FROM oauth_tokens WHERE ${LIVE}) AND NOT EXISTS (SELECT 1 FROM oauth_codes WHERE ${LIVE})`
const GONE = `SELECT id FROM oauth_grants WHERE revoked_at < @before LIMIT ${SWEEP_ROWS}`

interface Times {
  now: number
  before: number
  unused: number
}

/** Removes at most `SWEEP_ROWS` rows of each kind at a time. */
export class OAuthSweep {
  readonly #ends: GrantEnds
  readonly #over: Statement<Pick<Times, 'now'>, string>
  readonly #deletes: readonly Statement<Partial<Times>>[]
  readonly #clients: Statement<Pick<Times, 'now' | 'unused'>>

  constructor(db: Sqlite, ends: GrantEnds) {
    this.#ends = ends
    this.#over = db
      .prepare<Pick<Times, 'now'>, string>(
        `SELECT id FROM oauth_grants WHERE revoked_at IS NULL AND ${OVER} LIMIT ${SWEEP_ROWS}`,
      )
      .pluck()
    const old = (table: string, ended: string) => `
      DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${ended} < @before LIMIT ${SWEEP_ROWS})`
    this.#deletes = [
      old('login_codes', 'expires_at'),
      old('oauth_codes', 'expires_at'),
      old('oauth_tokens', 'coalesce(used_at, expires_at)'),
      `DELETE FROM oauth_codes WHERE grant_id IN (${GONE})`,
      `DELETE FROM oauth_tokens WHERE grant_id IN (${GONE})`,
      `DELETE FROM oauth_grants WHERE id IN (${GONE})`,
    ].map(sql => db.prepare(sql))
    this.#clients = db.prepare(`
      DELETE FROM oauth_clients WHERE id IN (
        SELECT oauth_clients.id FROM oauth_clients LEFT JOIN keys ON keys.id = key_id
        WHERE CASE WHEN key_id IS NULL
          THEN coalesce(used_at, oauth_clients.created_at) < @unused AND NOT EXISTS (
            SELECT 1 FROM oauth_grants WHERE client_id = oauth_clients.id AND oauth_grants.revoked_at IS NULL
          )
          ELSE keys.revoked_at IS NOT NULL OR keys.expires_at <= @now
        END
        LIMIT ${SWEEP_ROWS}
      )`)
  }

  /** Within a transaction. Returns how many rows it removed. */
  run(now: number): number {
    for (const id of this.#over.all({ now })) this.#ends.end(id)
    let removed = 0
    for (const statement of this.#deletes) removed += statement.run({ before: now - KEPT_MS }).changes
    return removed + this.#clients.run({ now, unused: now - CLIENT_MS }).changes
  }
}
