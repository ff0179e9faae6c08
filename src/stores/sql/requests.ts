/** Reads the rows of requests from the newest back, a bounded number at a time. */
import type { RequestDetail, RequestFilter, RequestLogStore, RequestPage, RequestRow } from '../../core/ports.ts'
import type { Usage } from '../../core/usage.ts'
import { stampOf } from '../../lib/id.ts'
import type { CountedRow } from '../rules/request-rows.ts'
import { type Flag, first, numberOf, type Sql } from './sql.ts'

/**
 * Rows that one query looks at: some milliseconds of work. They are found by the primary key, which begins with the time,
 * so that a request writes no index for its log; end users and tags alone have one.
 */
const ROWS_PER_QUERY = 5000
/** Rows of a label that one query looks up, each by its id. */
const LABELED_ROWS_PER_QUERY = 500
/** Sorts behind every id. */
const NEWEST = '~'

/** Ids from before `$1` back to `$2`. */
const RANGE = 'id < $1 AND id >= $2'
const LAST = `SELECT id FROM requests WHERE ${RANGE} ORDER BY id DESC LIMIT 1 OFFSET CAST($3 AS bigint)`
const pageOf = (part: string): string => `
  SELECT * FROM (${part}) AS part
  WHERE (CAST($4 AS text) IS NULL OR org_id = $4)
    AND (CAST($5 AS text) IS NULL OR project_id = $5)
    AND (CAST($6 AS text) IS NULL OR key_id = $6)
    AND (CAST($7 AS text) IS NULL OR model = $7 OR requested_model = $7)
    AND (CAST($8 AS text) IS NULL OR provider = $8)
    AND (CAST($9 AS bigint) IS NULL OR status = CAST($9 AS bigint))
    AND (CAST($10 AS text) IS NULL OR error_code = $10)
    AND (CAST($11 AS bigint) IS NULL OR duration_ms > CAST($11 AS bigint))
    AND (CAST($12 AS bigint) IS NULL OR cost > CAST($12 AS bigint))
    AND (CAST($13 AS bigint) IS NULL OR at + duration_ms >= CAST($13 AS bigint))
  ORDER BY id DESC LIMIT CAST($14 AS bigint)`
const newestOf = (rows: string): string => `${rows} AND ${RANGE} ORDER BY id DESC LIMIT CAST($3 AS bigint)`
const PAGE = pageOf(newestOf('SELECT * FROM requests WHERE true'))
/** Ids of a label, and whether they have another one. Together with their rows, PostgreSQL would read all days. */
const LABELED = `
  SELECT id, CAST($5 AS text) IS NULL
    OR (SELECT count(*) FROM request_labels AS other WHERE label = $5 AND other.id = labeled.id) = 1 AS passes
  FROM (${newestOf('SELECT id FROM request_labels WHERE label = $4')}) AS labeled ORDER BY id DESC`
type Labeled = { readonly id: string; readonly passes: Flag }
const ONE = 'SELECT * FROM requests WHERE id = $1'

interface StoredRow extends CountedRow {
  readonly id: string
  readonly request_id: string
  readonly endpoint: string
  readonly requested_model: string
  readonly status: bigint
  readonly outcome: RequestRow['outcome']
  readonly error_code: string | null
  readonly streamed: Flag
  readonly attempts: bigint
  readonly duration_ms: bigint
  readonly ttft_ms: bigint | null
  readonly cache_write_tokens: bigint | null
  readonly other_usage: string | null
  readonly estimated: Flag
  readonly tier: string | null
  readonly detail: string | null
  readonly end_user: string | null
  /** A JSON object. */
  readonly tags: string | null
}

/** `RequestLogStore` over `requests`. */
export class SqlRequests implements RequestLogStore {
  readonly #sql: Sql
  readonly #atOnce: number
  readonly #pageOfIds: string

  constructor(sql: Sql, atOnce = ROWS_PER_QUERY) {
    this.#sql = sql
    this.#atOnce = atOnce
    this.#pageOfIds = pageOf(newestOf(`SELECT * FROM requests WHERE id IN (${sql.dialect.elementsOf('$15')})`))
  }

  async page(filter: RequestFilter, limit: number, before = NEWEST): Promise<RequestPage> {
    const { orgId, projectId, keyId, model, provider, status, errorCode, slower, dearer, since, endedSince } = filter
    const oldest = since === undefined ? '' : stampOf(Math.max(0, since))
    const [label, other = null] = labelsOf(filter)
    const atOnce = label === undefined ? this.#atOnce : Math.min(this.#atOnce, LABELED_ROWS_PER_QUERY)
    const range = [before, oldest, atOnce]
    const values = [
      ...[orgId ?? null, projectId ?? null, keyId ?? null, model ?? null, provider ?? null],
      ...[status ?? null, errorCode ?? null, slower ?? null, dearer ?? null, endedSince ?? null, limit],
    ]
    const labeled = label === undefined ? undefined : await this.#sql.query<Labeled>(LABELED, [...range, label, other])
    const ids = labeled?.filter(({ passes }) => passes).map(({ id }) => id)
    const found = await (ids
      ? this.#sql.query<StoredRow>(this.#pageOfIds, [...range, ...values, JSON.stringify(ids)])
      : this.#sql.query<StoredRow>(PAGE, [...range, ...values]))
    const rows = found.map(shownOf)
    if (rows.length === limit) return { rows, next: rows.at(-1)!.id }
    const last = labeled
      ? labeled[atOnce - 1]
      : await first<{ id: string }>(this.#sql, LAST, [before, oldest, atOnce - 1])
    return { rows, next: last?.id }
  }

  async get(id: string): Promise<RequestRow | undefined> {
    const row = await first<StoredRow>(this.#sql, ONE, [id])
    return row && shownOf(row)
  }
}

/** Labels as `request_labels` has them. */
const labelsOf = ({ endUser, tag }: RequestFilter): string[] => [
  ...(endUser === undefined ? [] : [`end_user=${endUser}`]),
  ...(tag === undefined ? [] : [`tag:${tag}`]),
]

const shownOf = (row: StoredRow): RequestRow => ({
  id: row.id,
  requestId: row.request_id,
  at: Number(row.at),
  orgId: row.org_id,
  projectId: row.project_id,
  keyId: row.key_id,
  endpoint: row.endpoint,
  requestedModel: row.requested_model,
  model: row.model,
  provider: row.provider,
  source: row.source,
  status: Number(row.status),
  outcome: row.outcome,
  errorCode: row.error_code,
  streamed: Boolean(row.streamed),
  cached: Boolean(row.cached),
  attempts: Number(row.attempts),
  durationMs: Number(row.duration_ms),
  ttftMs: numberOf(row.ttft_ms),
  usage: usageOf(row),
  estimated: Boolean(row.estimated),
  cost: row.cost,
  storage: row.storage,
  discount: Number(row.discount),
  tier: row.tier,
  ...(row.detail !== null && { detail: JSON.parse(row.detail) as RequestDetail }),
  ...(row.end_user !== null && { endUser: row.end_user }),
  ...(row.tags !== null && { tags: JSON.parse(row.tags) as Record<string, string> }),
})

function usageOf(row: StoredRow): Usage {
  const usage: Usage = row.other_usage === null ? {} : JSON.parse(row.other_usage)
  for (const [axis, count] of [
    ['prompt', row.prompt_tokens],
    ['completion', row.completion_tokens],
    ['input_cache_read', row.cache_read_tokens],
    ['input_cache_write', row.cache_write_tokens],
    ['internal_reasoning', row.reasoning_tokens],
  ] as const) {
    if (count !== null) usage[axis] = Number(count)
  }
  return usage
}
