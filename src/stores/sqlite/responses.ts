/** Stored responses. Their texts are sealed; the columns that find and count them are not. */
import type { Statement } from 'better-sqlite3'
import type { Sealed } from '../../core/policy.ts'
import type { ResponseOwner, ResponseRecord, ResponseShare, ResponseStore, ResponseTurn } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import type { Keyring } from '../keyring.ts'
import { PRUNED_RESPONSES, responseBytes, responsePlace } from '../rules/responses.ts'
import type { Sqlite } from './open.ts'
import type { Writer } from './writer.ts'

/** Later than any response was made. */
const LAST_MS = Number.MAX_SAFE_INTEGER

interface ResponsesOptions {
  readonly keyring: () => Keyring
  /** Wall clock, Unix milliseconds. */
  readonly now: () => number
}

interface Row {
  previous_id: string | null
  created_at: number
  master_key: string
  turn_nonce: Buffer
  turn: Buffer
  answer_nonce: Buffer
  answer: Buffer
}
type TurnRow = Omit<Row, 'answer_nonce' | 'answer'>
interface Lookup {
  id: string
  org: string
  project: string
  session: string | null
  since: number
}

/** Sums and removes the responses of an organization, or of a session, by its id. */
interface OwnedResponses {
  readonly bytes: Statement<[string], number>
  readonly dropOldest: Statement<[string], { bytes: number }>
}

const ofOrganization = (db: Sqlite): OwnedResponses => ({
  bytes: db.prepare<[string], number>('SELECT bytes FROM response_bytes WHERE org_id = ?').pluck(),
  dropOldest: db.prepare(`
    DELETE FROM responses WHERE id = (SELECT id FROM responses WHERE org_id = ? ORDER BY created_at, id LIMIT 1)
    RETURNING bytes`),
})

const ofSession = (db: Sqlite): OwnedResponses => ({
  bytes: db.prepare<[string], number>('SELECT bytes FROM response_session_bytes WHERE session_id = ?').pluck(),
  dropOldest: db.prepare(`
    DELETE FROM responses WHERE id = (SELECT id FROM responses WHERE session_id = ? ORDER BY created_at, id LIMIT 1)
    RETURNING bytes`),
})

/** Within a transaction: removes the oldest until no more than `most` bytes are left; false where `dropped` are too few. */
function makeRoom({ bytes, dropOldest }: OwnedResponses, id: string, most: number, dropped: number): boolean {
  let stored = bytes.get(id) ?? 0
  for (let count = 0; stored > most && count < dropped; count++) {
    const oldest = dropOldest.get(id)
    if (!oldest) break
    stored -= oldest.bytes
  }
  return stored <= most
}

const OWN = `
  id = @id AND org_id = @org AND project_id = @project AND (@session IS NULL OR session_id = @session)
    AND created_at >= @since`

/** `ResponseStore` over `responses`, bounded by organization and session. */
export class SqliteResponses implements ResponseStore {
  readonly #writer: Writer
  readonly #options: ResponsesOptions
  readonly #insert: Statement
  readonly #find: Statement<Lookup, Row>
  readonly #findTurn: Statement<Lookup, TurnRow>
  readonly #remove: Statement<Lookup>
  readonly #organization: OwnedResponses
  readonly #sessions: OwnedResponses
  readonly #prune: Statement<{ now: number }>

  /** The ring is opened when it is first needed. */
  constructor(db: Sqlite, writer: Writer, options: ResponsesOptions) {
    this.#writer = writer
    this.#options = options
    this.#insert = db.prepare(`
      INSERT INTO responses
        (id, org_id, project_id, session_id, previous_id, created_at, bytes, master_key, answer_nonce, answer, turn_nonce,
          turn)
      VALUES (@id, @org, @project, @session, @previousId, @createdAt, @bytes, @version, @answerNonce, @answer, @turnNonce,
        @turn)`)
    this.#find = db.prepare(`
      SELECT previous_id, created_at, master_key, answer_nonce, answer, turn_nonce, turn FROM responses WHERE ${OWN}`)
    this.#findTurn = db.prepare(`
      SELECT previous_id, created_at, master_key, turn_nonce, turn FROM responses WHERE ${OWN}`)
    this.#remove = db.prepare(`DELETE FROM responses WHERE ${OWN}`)
    this.#organization = ofOrganization(db)
    this.#sessions = ofSession(db)
    this.#prune = db.prepare(`
      DELETE FROM responses WHERE id IN (
        SELECT responses.id FROM projects
        LEFT JOIN policies ON policies.org_id = projects.org_id
        CROSS JOIN responses ON responses.project_id = projects.id AND responses.created_at < CASE
          WHEN projects.responses_ms IS NULL OR json_extract(policies.compliance, '$.noLogging') THEN ${LAST_MS}
          ELSE @now - projects.responses_ms
        END
        LIMIT ${PRUNED_RESPONSES}
      )`)
  }

  async add(record: ResponseRecord, owner: ResponseOwner, share: ResponseShare): Promise<boolean> {
    const { id, previousId, createdAt } = record
    const { orgId: org, projectId: project, session = null } = owner
    const bytes = responseBytes(record)
    if (bytes > share.bytes || (session !== null && bytes > share.session)) return false
    const [answer, turn] = this.#attempt(() => [this.#sealed(record, org, 'answer'), this.#sealed(record, org, 'turn')])
    const texts = { answer: answer.ciphertext, answerNonce: answer.nonce, turn: turn.ciphertext, turnNonce: turn.nonce }
    const row = { id, org, project, session, previousId, createdAt, bytes, version: turn.version, ...texts }
    const work = () => {
      const { dropped } = share
      if (session !== null && !makeRoom(this.#sessions, session, share.session - bytes, dropped)) return false
      if (!makeRoom(this.#organization, org, share.bytes - bytes, dropped)) return false
      this.#insert.run(row)
      return true
    }
    return this.#writer.run(work, 'durable', errors.responsesUnavailable)
  }

  async find(id: string, owner: ResponseOwner, since: number): Promise<ResponseRecord | undefined> {
    return this.#attempt(() => {
      const row = this.#find.get(lookup(id, owner, since))
      if (!row) return undefined
      const sealed = { version: row.master_key, nonce: row.answer_nonce, ciphertext: row.answer }
      const answer = this.#options.keyring().open(sealed, responsePlace(owner.orgId, id, 'answer'))
      return { id, createdAt: row.created_at, answer, ...this.#turnOf(row, id, owner) }
    })
  }

  async findTurn(id: string, owner: ResponseOwner, since: number): Promise<ResponseTurn | undefined> {
    return this.#attempt(() => {
      const row = this.#findTurn.get(lookup(id, owner, since))
      return row && this.#turnOf(row, id, owner)
    })
  }

  remove(id: string, owner: ResponseOwner, since: number): Promise<boolean> {
    const work = () => this.#remove.run(lookup(id, owner, since)).changes > 0
    return this.#writer.run(work, 'durable', errors.responsesUnavailable)
  }

  prune(): Promise<number> {
    return this.#writer.run(() => this.#prune.run({ now: this.#options.now() }).changes)
  }

  #sealed(record: ResponseRecord, org: string, column: 'turn' | 'answer'): Sealed {
    return this.#options.keyring().seal(record[column], responsePlace(org, record.id, column))
  }

  #turnOf(row: TurnRow, id: string, { orgId }: ResponseOwner): ResponseTurn {
    const sealed = { version: row.master_key, nonce: row.turn_nonce, ciphertext: row.turn }
    const turn = this.#options.keyring().open(sealed, responsePlace(orgId, id, 'turn'))
    return { previousId: row.previous_id, turn }
  }

  #attempt<T>(work: () => T): T {
    try {
      return work()
    } catch (cause) {
      throw errors.responsesUnavailable(cause)
    }
  }
}

const lookup = (id: string, { orgId, projectId, session }: ResponseOwner, since: number): Lookup => ({
  id,
  org: orgId,
  project: projectId,
  session: session ?? null,
  since,
})
