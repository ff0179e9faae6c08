/** Content of requests, sealed; the columns that find and remove it are not. */
import type { ContentStore } from '../../core/ports.ts'
import type { SealingOptions } from '../sealing.ts'
import { first, type Sql } from './sql.ts'

/** Dropped in one transaction: some milliseconds. */
const ROWS_PER_TRANSACTION = 200

interface Row {
  readonly org_id: string
  readonly master_key: string
  readonly nonce: Buffer
  readonly ciphertext: Buffer
}

const INSERT = `
  INSERT INTO contents (id, org_id, project_id, created_at, master_key, nonce, ciphertext)
  VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`
const KEEPS_NONE = `projects.content_ms IS NULL OR coalesce(policies.compliance LIKE '%"noLogging":true%', false)`
const FIND = `
  SELECT contents.org_id, master_key, nonce, ciphertext FROM contents
  JOIN projects ON projects.id = project_id
  LEFT JOIN policies ON policies.org_id = projects.org_id
  WHERE contents.id = $1 AND NOT (${KEEPS_NONE})
    AND contents.created_at >= CAST($2 AS bigint) - projects.content_ms`
/** The projects come first, since they are few: their id is an expression, so that no index of theirs is used. */
const PRUNE = `
  DELETE FROM contents WHERE id IN (
    SELECT contents.id FROM projects
    LEFT JOIN policies ON policies.org_id = projects.org_id
    JOIN contents ON contents.project_id = projects.id || '' AND contents.created_at < CASE
      WHEN ${KEEPS_NONE} THEN ${Number.MAX_SAFE_INTEGER}
      ELSE CAST($1 AS bigint) - projects.content_ms
    END
    LIMIT ${ROWS_PER_TRANSACTION}
  ) RETURNING id`

/** Binds a content to its row: it cannot be passed off as that of another request, or of another organization. */
export const contentPlace = (orgId: string, id: string): string => [orgId, 'contents', id].join('|')

/** Makes the `ContentStore` over `contents`. `keyring` opens it when it is first needed. */
export const sqlContents = (sql: Sql, { keyring, now }: SealingOptions): ContentStore => ({
  async add({ id, orgId, projectId, createdAt, content }) {
    const { version, nonce, ciphertext } = keyring().seal(content, contentPlace(orgId, id))
    await sql.query(INSERT, [id, orgId, projectId, createdAt, version, nonce, ciphertext])
  },

  async find(id) {
    const row = await first<Row>(sql, FIND, [id, now()])
    if (!row) return undefined
    const { org_id, master_key: version, nonce, ciphertext } = row
    return keyring().open({ version, nonce, ciphertext }, contentPlace(org_id, id))
  },

  prune: async () => (await sql.query(PRUNE, [now()])).length,
})
