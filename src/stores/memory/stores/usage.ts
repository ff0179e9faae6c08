/** Usage from the hourly sums in memory, and the consistency of all records. */
import type { UsageGroup, UsageQuery, UsageStore, UsageTotals } from '../../../core/ports.ts'
import { hourOf } from '../../rules/hours.ts'
import { isPlan } from '../../rules/settlement.ts'
import { differences, type HourSum, limitDifference } from '../../rules/usage.ts'
import { part } from './credits.ts'
import { order, type Tables } from './tables.ts'

const DIMENSION: Readonly<Record<UsageGroup, 3 | 4 | 5 | 6>> = { provider: 4, model: 5, app: 6, api_key: 3 }

/** Totals and groups of a query, and the check of sums against rows, ledger and balances. */
export const usageStore = (tables: Tables): UsageStore => ({
  totals: async query => totalsOf(inScope(tables, query)),

  async breakdown(query, by, limit, offset = 0) {
    const groups = new Map<string, HourSum[]>()
    for (const sum of inScope(tables, query)) {
      const id = sum.dimensions[DIMENSION[by]] || 'unknown'
      groups.set(id, [...(groups.get(id) ?? []), sum])
    }
    const all = [...groups].map(([id, sums]) => ({ id, ...totalsOf(sums) })).filter(({ requests }) => requests > 0)
    all.sort(
      (a, b) => Number(b.cost > a.cost) - Number(b.cost < a.cost) || b.requests - a.requests || order(a.id, b.id),
    )
    return part(all, limit, offset)
  },

  async check() {
    const found = differences(factsOf(tables))
    for (const { id, held } of tables.budgets.all()) {
      let open = 0n
      for (const hold of tables.holds.rows()) {
        if (hold.budgets && (JSON.parse(hold.budgets) as string[]).includes(id)) open += hold.amount
      }
      if (open !== held) found.push(limitDifference(id, held, open))
    }
    return found
  },
})

function inScope({ hours }: Tables, { orgId, projectId, keyId, from, to }: UsageQuery): HourSum[] {
  return hours.filter(({ dimensions: [hour, org, project, key] }) => {
    const isOwn = orgId === undefined || org === orgId
    return (
      hour >= hourOf(from) &&
      hour < to &&
      isOwn &&
      (projectId === undefined || project === projectId) &&
      (keyId === undefined || key === keyId)
    )
  })
}

/** The totals of these hours; amounts in nano-USD. */
export function totalsOf(sums: readonly HourSum[]): UsageTotals {
  const count = (of: (sum: HourSum) => number) => sums.reduce((total, sum) => total + of(sum), 0)
  const amount = (of: (sum: HourSum) => bigint) => sums.reduce((total, sum) => total + of(sum), 0n)
  return {
    requests: count(sum => sum.requests),
    errors: count(sum => sum.errors),
    cached: count(sum => sum.cached),
    inputTokens: count(sum => sum.input),
    outputTokens: count(sum => sum.output),
    cachedTokens: count(sum => sum.cacheRead),
    reasoningTokens: count(sum => sum.reasoning),
    cost: amount(sum => sum.cost),
    creditsCost: amount(sum => sum.credits),
    byokCost: amount(sum => sum.byok),
    storageCost: amount(sum => sum.storage),
  }
}

/** Sums of all records by organization, under the names that `differences` compares. */
function factsOf(tables: Tables): Map<string, Map<string, bigint>> {
  const organizations = new Map<string, Map<string, bigint>>()
  const add = (orgId: string, facts: Readonly<Record<string, bigint>>) => {
    const known = organizations.get(orgId) ?? new Map<string, bigint>()
    for (const [name, value] of Object.entries(facts)) known.set(name, (known.get(name) ?? 0n) + value)
    organizations.set(orgId, known)
  }
  for (const { row, payment } of tables.requests.rows()) {
    add(row.orgId, { rows: 1n, rowCost: payment.cost ?? 0n, rowCharges: payment.charged })
  }
  for (const { orgId, requests, cost, charged } of tables.pruned.rows()) {
    add(orgId, { rows: BigInt(requests), rowCost: cost, rowCharges: charged })
  }
  for (const { dimensions, requests, cost } of tables.hours.rows()) {
    add(dimensions[1], { hourlyRows: BigInt(requests), hourlyCost: cost })
  }
  for (const { orgId, kind, amount, at } of tables.entries.rows()) {
    const isUsage = kind === 'charge' || kind === 'plan'
    const isOfMonth = kind === 'plan' && at >= (tables.plans.get(orgId)?.monthAt ?? Number.POSITIVE_INFINITY)
    add(orgId, {
      entries: kind === 'plan' ? 0n : amount,
      charges: isUsage ? -amount : 0n,
      creditCharges: kind === 'charge' ? -amount : 0n,
      monthCharges: isOfMonth ? -amount : 0n,
    })
  }
  for (const { orgId, funds, amount } of tables.holds.rows()) {
    add(orgId, {
      openHolds: funds === 'credits' ? amount : 0n,
      planHolds: isPlan(funds) ? amount : 0n,
      premiumHolds: funds === 'premium' ? amount : 0n,
    })
  }
  for (const { orgId, balance, held, used } of tables.balances.rows()) add(orgId, { balance, held, used })
  for (const { orgId, used, held, premiumHeld } of tables.plans.rows()) {
    add(orgId, { planUsed: used, planHeld: held, premiumHeld })
  }
  return organizations
}
