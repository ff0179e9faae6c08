/** Which limits a caller has at an endpoint: found once for each, as its requests are many. */

import type { Principal } from '../../core/ports.ts'
import type { OwnLimits } from '../../limits/kinds.ts'
import { isEarly, type Limit, limitsOf } from './limit.ts'
import type { LimitRule, RequestFacts } from './rules.ts'

/** Limits of one caller at one endpoint. */
export interface LimitPlan {
  /** Checked before the request is read. */
  readonly early: readonly Limit[]
  /** Checked once its model is known. */
  late(facts: RequestFacts): readonly Limit[]
}

const words: Readonly<Record<OwnLimits['of'], string>> = {
  org: 'organization',
  project: 'project',
  member: 'member',
  key: 'key',
}

const ownLimits = ({ of, id, name, limits }: OwnLimits): Limit[] =>
  limitsOf(limits, { kind: of, id: `${of} ${id}`, label: `${words[of]} "${name}"` })

/** Plans of all callers, by the rules of one place in a chain. */
export class LimitPlans {
  readonly #rules: readonly LimitRule[]
  /** Plans by caller, then by endpoint; null where there is no limit. */
  readonly #plans = new WeakMap<Principal, Map<string, LimitPlan | null>>()

  constructor(rules: readonly LimitRule[]) {
    this.#rules = rules
  }

  /** Undefined for a caller without limits. */
  of(caller: Principal, endpoint: string): LimitPlan | undefined {
    if (this.#rules.length === 0 && caller.rates === undefined) return undefined
    let plans = this.#plans.get(caller)
    if (!plans) {
      plans = new Map()
      this.#plans.set(caller, plans)
    }
    let plan = plans.get(endpoint)
    if (plan === undefined) {
      plan = planOf(this.#rules, caller, endpoint) ?? null
      plans.set(endpoint, plan)
    }
    return plan ?? undefined
  }
}

function planOf(all: readonly LimitRule[], caller: Principal, endpoint: string): LimitPlan | undefined {
  const rules = all.filter(rule => rule.isFor(caller, endpoint))
  const known = [
    ...(caller.rates ?? []).flatMap(ownLimits),
    ...rules.filter(({ isStatic }) => isStatic).flatMap(rule => rule.limitsFor(caller, endpoint)),
  ]
  const open = rules.filter(({ isStatic }) => !isStatic)
  if (known.length === 0 && open.length === 0) return undefined
  const later = known.filter(limit => !isEarly(limit))
  return {
    early: known.filter(isEarly),
    late: facts => [...later, ...open.flatMap(rule => rule.limitsFor(caller, endpoint, facts))],
  }
}
