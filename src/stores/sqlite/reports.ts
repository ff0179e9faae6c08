/** Reports of one project from the hourly sums: of all reports together, one part in a turn of the event loop. */

import { setImmediate as nextIteration } from 'node:timers/promises'
import type { Statement } from 'better-sqlite3'
import type { ReportGroup, ReportOrder, ReportQuery, ReportStore, ReportSums } from '../../core/ports.ts'
import aliases from '../../lib/app-aliases.json' with { type: 'json' }
import { Ranking, Series } from '../rules/reports.ts'
import type { Sqlite } from './driver.ts'
import { type Sum, sumAs, sumOf } from './sums.ts'
import { dimensions, SUMS, type SumRow, totalsOf } from './usage.ts'

interface Scope {
  project: string
  keys: string | null
}
/** Where a part begins or ends: the values of `ORDER`. */
type Place = readonly [hour: number, org: string, key: string, provider: string, model: string, source: string]
/** What `IN_PART` takes: the first place of a part, the first one beyond it, and whose sums. */
type Part = [...Place, ...Place, Scope]
type ReportRow = SumRow & Sum<'savings'>
type Grouping = Statement<Part, ReportRow & { id: string }>

/**
 * Sums that one part goes through: 3 ms of work, 20 where each is a group of its own. A key can leave 512 in an hour and a
 * project has any number of keys, so no span of time bounds them.
 */
const AT_ONCE = 1000

const REPORT = `${SUMS}, ${sumAs('savings', 'savings')}`
/** The order of `usage_hourly_of_project`, whose entries end with the primary key. */
const ORDER = 'hour, org_id, key_id, provider, model, source'
const IN_PART = `
  FROM usage_hourly
  WHERE project_id = @project AND (${ORDER}) >= (?, ?, ?, ?, ?, ?) AND (${ORDER}) < (?, ?, ?, ?, ?, ?)`
/** A sum without requests is one that they were taken from again: it holds nothing. */
const IN_SCOPE = `${IN_PART} AND requests > 0
    AND (@keys IS NULL OR key_id IN (SELECT value FROM json_each(@keys)))`

/** Applies later aliases to history as well. */
const APP = `CASE lower(source) ${Object.entries(aliases)
  .map(([alias, app]) => `WHEN '${alias}' THEN '${app}'`)
  .join(' ')}
  ELSE source END`

const groups: Readonly<Record<ReportGroup, string>> = { ...dimensions, app: APP }

/** `ReportStore` over `usage_hourly`. */
export class SqliteReports implements ReportStore {
  readonly #next: Statement<[...Place, ...Place, { project: string; count: number }], Place>
  readonly #series: Statement<[...Place, ...Place, Scope & { unit: number }], ReportRow & { at: bigint }>
  readonly #groupings = new Map<ReportGroup, Grouping>()
  readonly #db: Sqlite
  readonly #atOnce: number
  readonly #updatedAt: Statement<Part, number | null>
  readonly #caller: Statement<[string | null, string], { project: string; email: string | null }>
  readonly #keys: Statement<{ project: string; member: string | null }, { id: string; name: string }>

  constructor(db: Sqlite, atOnce = AT_ONCE) {
    this.#db = db
    this.#atOnce = atOnce
    this.#next = db
      .prepare<[...Place, ...Place, { project: string; count: number }], Place>(
        `SELECT ${ORDER} ${IN_PART} ORDER BY ${ORDER} LIMIT 1 OFFSET CAST(@count AS INTEGER)`,
      )
      .raw()
    this.#series = db
      .prepare<[...Place, ...Place, Scope & { unit: number }], ReportRow & { at: bigint }>(
        `SELECT hour - hour % CAST(@unit AS INTEGER) AS at, ${REPORT} ${IN_SCOPE} GROUP BY 1 ORDER BY 1`,
      )
      .safeIntegers()
    this.#updatedAt = db.prepare<Part, number | null>(`SELECT max(updated_at) ${IN_SCOPE}`).pluck()
    this.#caller = db.prepare(
      'SELECT name AS project, (SELECT email FROM members WHERE id = ?) AS email FROM projects WHERE id = ?',
    )
    this.#keys = db.prepare(
      `SELECT id, name FROM keys
      WHERE project_id = @project AND parent_id IS NULL AND (@member IS NULL OR created_by = @member)`,
    )
  }

  async series(query: ReportQuery, unitMs: number) {
    const series = new Series()
    for await (const [from, to, scope] of this.#parts(query)) {
      const rows = this.#series.all(...from, ...to, { ...scope, unit: unitMs })
      series.add(rows.map(row => ({ at: Number(row.at), ...sumsOf(row) })))
    }
    return series.spans
  }

  async ranking(query: ReportQuery, by: ReportGroup, order: ReportOrder, limit: number, offset: number) {
    const ranking = new Ranking()
    for await (const [from, to, scope] of this.#parts(query)) {
      const rows = this.#groups(by).all(...from, ...to, scope)
      ranking.add(rows.map(row => ({ id: row.id, ...sumsOf(row) })))
    }
    return ranking.sorted(order).slice(offset, offset + limit)
  }

  async updatedAt(query: ReportQuery) {
    let newest: number | undefined
    for await (const [from, to, scope] of this.#parts(query)) {
      const at = this.#updatedAt.get(...from, ...to, scope) ?? undefined
      if (at !== undefined && (newest === undefined || at > newest)) newest = at
    }
    return newest
  }

  async caller({ projectId, member }: Parameters<ReportStore['caller']>[0]) {
    return this.#caller.get(member?.id ?? null, projectId)!
  }

  /** The parts of a report, each in an iteration of the event loop of its own. */
  async *#parts({ projectId: project, keyIds, from, to }: ReportQuery): AsyncGenerator<[Place, Place, Scope]> {
    const scope: Scope = { project, keys: keyIds ? JSON.stringify(keyIds) : null }
    const end = startOf(to)
    for (let start: Place | undefined = startOf(from); start; ) {
      await nextIteration()
      const next = this.#next.get(...start, ...end, { project, count: this.#atOnce })
      yield [start, next ?? end, scope]
      start = next
    }
  }

  /** Prepared when first needed. */
  #groups(by: ReportGroup): Grouping {
    let grouping = this.#groupings.get(by)
    if (!grouping) {
      grouping = this.#db
        .prepare<Part, ReportRow & { id: string }>(
          `SELECT coalesce(nullif(${groups[by]}, ''), 'unknown') AS id, ${REPORT} ${IN_SCOPE} GROUP BY 1`,
        )
        .safeIntegers()
      this.#groupings.set(by, grouping)
    }
    return grouping
  }

  async keys(projectId: string, memberId?: string) {
    return this.#keys.all({ project: projectId, member: memberId ?? null })
  }
}

/** Before all sums of an hour. */
const startOf = (hour: number): Place => [hour, '', '', '', '', '']

const sumsOf = (row: ReportRow): ReportSums => ({ ...totalsOf(row), savings: sumOf(row, 'savings') })
