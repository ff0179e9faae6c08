/** Reports of one project from the hourly sums: of all reports together, one day in a turn of the event loop. */
import type { Statement } from 'better-sqlite3'
import { appAliases } from '../../core/apps.ts'
import type { ReportOrder, ReportQuery, ReportStore, ReportSums, UsageGroup } from '../../core/ports.ts'
import { Turns } from '../../lib/turns.ts'
import { Ranking, spansOf } from '../rules/reports.ts'
import type { Sqlite } from './driver.ts'
import { type Sum, sumAs, sumOf } from './sums.ts'
import { dimensions, SUMS, type SumRow, totalsOf } from './usage.ts'

interface Scope {
  project: string
  keys: string | null
  from: number
  to: number
}
type ReportRow = SumRow & Sum<'savings'>
type Grouping = Statement<Scope, ReportRow & { id: string }>

const REPORT = `${SUMS}, ${sumAs('savings', 'savings')}`
const IN_SCOPE = `
  FROM usage_hourly
  WHERE project_id = @project AND hour >= @from AND hour < @to
    AND (@keys IS NULL OR key_id IN (SELECT value FROM json_each(@keys)))`

/** Applies later aliases to history as well. */
const APP = `CASE lower(source) ${[...appAliases].map(([alias, app]) => `WHEN '${alias}' THEN '${app}'`).join(' ')}
  ELSE source END`

const groups: Readonly<Record<UsageGroup, string>> = { ...dimensions, app: APP }

/** `ReportStore` over `usage_hourly`. */
export class SqliteReports implements ReportStore {
  readonly #series: Statement<Scope & { unit: number }, ReportRow & { at: bigint }>
  readonly #groupings = new Map<UsageGroup, Grouping>()
  readonly #db: Sqlite
  readonly #turns = new Turns()
  readonly #updatedAt: Statement<Scope, number | null>
  readonly #caller: Statement<[string | null, string], { project: string; email: string | null }>
  readonly #keys: Statement<{ project: string; member: string | null }, { id: string; name: string }>

  constructor(db: Sqlite) {
    this.#db = db
    this.#series = db
      .prepare<Scope & { unit: number }, ReportRow & { at: bigint }>(
        `SELECT hour - hour % CAST(@unit AS INTEGER) AS at, ${REPORT} ${IN_SCOPE} GROUP BY 1 HAVING sum(requests) > 0 ORDER BY 1`,
      )
      .safeIntegers()
    this.#updatedAt = db.prepare<Scope, number | null>(`SELECT max(updated_at) ${IN_SCOPE} AND requests > 0`).pluck()
    this.#caller = db.prepare(
      'SELECT name AS project, (SELECT email FROM members WHERE id = ?) AS email FROM projects WHERE id = ?',
    )
    this.#keys = db.prepare(
      `SELECT id, name FROM keys
      WHERE project_id = @project AND parent_id IS NULL AND (@member IS NULL OR created_by = @member)`,
    )
  }

  async series(query: ReportQuery, unitMs: number) {
    const series: (ReportSums & { at: number })[] = []
    for (const part of spansOf(scopeOf(query))) {
      await this.#turns.next(query.projectId)
      for (const row of this.#series.all({ ...part, unit: unitMs })) series.push({ at: Number(row.at), ...sumsOf(row) })
    }
    return series
  }

  async ranking(query: ReportQuery, by: UsageGroup, order: ReportOrder, limit: number, offset: number) {
    const ranking = new Ranking()
    for (const part of spansOf(scopeOf(query))) {
      await this.#turns.next(query.projectId)
      ranking.add(
        this.#groups(by)
          .all(part)
          .map(row => ({ id: row.id, ...sumsOf(row) })),
      )
    }
    return ranking.sorted(order).slice(offset, offset + limit)
  }

  async updatedAt(query: ReportQuery) {
    let newest: number | undefined
    for (const part of spansOf(scopeOf(query))) {
      await this.#turns.next(query.projectId)
      const at = this.#updatedAt.get(part) ?? undefined
      if (at !== undefined && at > (newest ?? 0)) newest = at
    }
    return newest
  }

  async caller({ projectId, member }: Parameters<ReportStore['caller']>[0]) {
    return this.#caller.get(member?.id ?? null, projectId)!
  }

  /** Prepared when first needed. */
  #groups(by: UsageGroup): Grouping {
    let grouping = this.#groupings.get(by)
    if (!grouping) {
      grouping = this.#db
        .prepare<Scope, ReportRow & { id: string }>(
          `SELECT coalesce(nullif(${groups[by]}, ''), 'unknown') AS id, ${REPORT} ${IN_SCOPE}
          GROUP BY 1 HAVING sum(requests) > 0`,
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

const scopeOf = ({ projectId, keyIds, from, to }: ReportQuery): Scope => ({
  project: projectId,
  keys: keyIds ? JSON.stringify(keyIds) : null,
  from,
  to,
})

const sumsOf = (row: ReportRow): ReportSums => ({ ...totalsOf(row), savings: sumOf(row, 'savings') })
