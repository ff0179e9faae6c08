/** Reports of one project, from the hourly sums in memory. */
import { appAliases } from '../../../core/apps.ts'
import type { ReportQuery, ReportStore, ReportSums, UsageGroup } from '../../../core/ports.ts'
import { Ranking } from '../../rules/reports.ts'
import { part } from './credits.ts'
import type { KeptHour } from './rows.ts'
import type { Tables } from './tables.ts'
import { totalsOf } from './usage.ts'

const groups: Readonly<Record<UsageGroup, (sum: KeptHour) => string>> = {
  api_key: ({ dimensions }) => dimensions[3],
  provider: ({ dimensions }) => dimensions[4],
  model: ({ dimensions }) => dimensions[5],
  app: ({ dimensions: [, , , , , , source] }) => appAliases.get(source.toLowerCase()) ?? source,
}
/** Reads all sums of the project each time. */
export const reportStore = (tables: Tables): ReportStore => ({
  async series(query, unitMs) {
    const spans = grouped(inScope(tables, query), ({ dimensions: [hour] }) => hour - (hour % unitMs))
    return [...spans]
      .map(([at, sums]) => ({ at, ...sumsOf(sums) }))
      .filter(({ requests }) => requests > 0)
      .sort((a, b) => a.at - b.at)
  },

  async ranking(query, by, sort, limit, offset) {
    const ranking = new Ranking()
    for (const [id, sums] of grouped(inScope(tables, query), sum => groups[by](sum) || 'unknown')) {
      const all = { id, ...sumsOf(sums) }
      if (all.requests > 0) ranking.add([all])
    }
    return part(ranking.sorted(sort), limit, offset)
  },

  async updatedAt(query) {
    const times = inScope(tables, query)
      .filter(({ requests }) => requests > 0)
      .map(({ updatedAt }) => updatedAt)
    return times.length > 0 ? Math.max(...times) : undefined
  },

  async caller({ projectId, member }) {
    const email = member && tables.members.get(member.id)?.email
    return { project: tables.projects.get(projectId)!.name, email: email ?? null }
  },

  keys: async (projectId, memberId) =>
    tables.keys
      .filter(key => key.projectId === projectId && key.parentId === null)
      .filter(({ createdBy }) => memberId === undefined || createdBy === memberId)
      .map(({ id, name }) => ({ id, name })),
})

function grouped<K, T>(rows: readonly T[], keyOf: (row: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const row of rows) {
    const group = groups.get(keyOf(row))
    if (group) group.push(row)
    else groups.set(keyOf(row), [row])
  }
  return groups
}

const inScope = ({ hours }: Tables, { projectId, keyIds, from, to }: ReportQuery): KeptHour[] =>
  hours.filter(
    ({ dimensions: [hour, , project, key] }) =>
      project === projectId && hour >= from && hour < to && (keyIds === undefined || keyIds.includes(key)),
  )

const sumsOf = (sums: readonly KeptHour[]): ReportSums => ({
  ...totalsOf(sums),
  savings: sums.reduce((total, { savings }) => total + savings, 0n),
})
