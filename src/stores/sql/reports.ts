/** Reports of one project from the hourly sums: of all reports together, one part in a turn of the event loop. */

import { setImmediate as nextIteration } from 'node:timers/promises'
import type { ReportGroup, ReportOrder, ReportQuery, ReportStore, ReportSums } from '../../core/ports.ts'
import aliases from '../../lib/app-aliases.json' with { type: 'json' }
import { Ranking, Series } from '../rules/reports.ts'
import { first, type Sql, type SqlValue } from './sql.ts'
import { type Sum, sumAs, sumOf } from './sums.ts'
import { dimensions, groupId, SUMS, type SumRow, totalsOf } from './usage.ts'

/** Where a part begins or ends: the values of `ORDER`. */
type Place = readonly [hour: number, org: string, key: string, provider: string, model: string, source: string]
type ReportRow = SumRow & Sum<'savings'>

/**
 * Sums that one part goes through: 3 ms of work, 20 where each is a group of its own. A key can leave 512 in an hour and a
 * project has any number of keys, so no span of time bounds them.
 */
const SUMS_PER_QUERY = 1000

const REPORT = `${SUMS}, ${sumAs('savings', 'savings')}`
/** The order of `usage_hourly_of_project`, whose entries end with the primary key. */
const ORDER = 'hour, org_id, key_id, provider, model, source'
/** Selects rows of the project `$13`, from the place `$1`… to before the place `$7`…. */
const IN_PART = `
  FROM usage_hourly
  WHERE project_id = $13 AND (${ORDER}) >= ($1, $2, $3, $4, $5, $6) AND (${ORDER}) < ($7, $8, $9, $10, $11, $12)`
const NEXT = `SELECT ${ORDER} ${IN_PART} ORDER BY ${ORDER} LIMIT 1 OFFSET CAST($14 AS bigint)`

/** Applies later aliases to history as well. */
const APP = `CASE lower(source) ${Object.entries(aliases)
  .map(([alias, app]) => `WHEN '${alias}' THEN '${app}'`)
  .join(' ')}
  ELSE source END`

const groups: Readonly<Record<ReportGroup, string>> = { ...dimensions, app: APP }

const CALLER = `
  SELECT name AS project, (SELECT email FROM members WHERE id = $1) AS email FROM projects WHERE id = $2`
const KEYS = `
  SELECT id, name FROM keys
  WHERE project_id = $1 AND parent_id IS NULL AND (CAST($2 AS text) IS NULL OR created_by = $2)`

/** `ReportStore` over `usage_hourly`. */
export class SqlReports implements ReportStore {
  readonly #sql: Sql
  readonly #atOnce: number
  readonly #inScope: string

  constructor(sql: Sql, atOnce = SUMS_PER_QUERY) {
    this.#sql = sql
    this.#atOnce = atOnce
    // A sum without requests is one that they were taken from again: it holds nothing.
    const isKey = `key_id IN (${sql.dialect.elementsOf('CAST($14 AS text)')})`
    this.#inScope = `${IN_PART} AND requests > 0 AND (CAST($14 AS text) IS NULL OR ${isKey})`
  }

  async series(query: ReportQuery, unitMs: number) {
    const text = `SELECT hour - hour % CAST($15 AS bigint) AS at, ${REPORT} ${this.#inScope} GROUP BY 1 ORDER BY 1`
    const series = new Series()
    for await (const part of this.#parts(query)) {
      const rows = await this.#sql.query<ReportRow & { at: bigint }>(text, [...part, unitMs])
      series.add(rows.map(row => ({ at: Number(row.at), ...sumsOf(row) })))
    }
    return series.spans
  }

  async ranking(query: ReportQuery, by: ReportGroup, order: ReportOrder, limit: number, offset: number) {
    const text = `SELECT coalesce(nullif(${groups[by]}, ''), 'unknown') AS id, ${REPORT} ${this.#inScope} GROUP BY 1`
    const ranking = new Ranking()
    for await (const part of this.#parts(query)) {
      const rows = await this.#sql.query<ReportRow & { id: string }>(text, part)
      ranking.add(rows.map(row => ({ id: groupId(by, row.id), ...sumsOf(row) })))
    }
    return ranking.sorted(order).slice(offset, offset + limit)
  }

  async updatedAt(query: ReportQuery) {
    let newest: number | undefined
    for await (const part of this.#parts(query)) {
      const text = `SELECT max(updated_at) AS at ${this.#inScope}`
      const at = (await first<{ at: bigint | null }>(this.#sql, text, part))?.at ?? undefined
      if (at !== undefined && (newest === undefined || at > newest)) newest = Number(at)
    }
    return newest
  }

  async caller({ projectId, member }: Parameters<ReportStore['caller']>[0]) {
    const row = await first<{ project: string; email: string | null }>(this.#sql, CALLER, [
      member?.id ?? null,
      projectId,
    ])
    return row!
  }

  async keys(projectId: string, memberId?: string) {
    return [...(await this.#sql.query<{ id: string; name: string }>(KEYS, [projectId, memberId ?? null]))]
  }

  /** The values of a report's parts, each in an iteration of the event loop of its own. */
  async *#parts({ projectId, keyIds, from, to }: ReportQuery): AsyncGenerator<readonly SqlValue[]> {
    const keys = keyIds ? JSON.stringify(keyIds) : null
    const end = startOf(to)
    for (let start: Place | undefined = startOf(from); start; ) {
      await nextIteration()
      const row: PlaceRow | undefined = await first<PlaceRow>(this.#sql, NEXT, [
        ...start,
        ...end,
        projectId,
        this.#atOnce,
      ])
      const next: Place | undefined = row && placeOf(row)
      yield [...start, ...(next ?? end), projectId, keys]
      start = next
    }
  }
}

interface PlaceRow {
  hour: bigint
  org_id: string
  key_id: string
  provider: string
  model: string
  source: string
}

const placeOf = (row: PlaceRow): Place => [
  Number(row.hour),
  row.org_id,
  row.key_id,
  row.provider,
  row.model,
  row.source,
]

/** Before all sums of an hour. */
const startOf = (hour: number): Place => [hour, '', '', '', '', '']

const sumsOf = (row: ReportRow): ReportSums => ({ ...totalsOf(row), savings: sumOf(row, 'savings') })
