/** Which candidate of a request comes first, and why: score, stickiness, exploration and affinity. */
import type { VirtualModel } from '../core/catalog.ts'
import type { Reason, Services } from '../core/ports.ts'
import { type Candidate, candidateTargetOf } from './candidate.ts'
import type { PlannedModel } from './named-models.ts'
import { type OutlierDetector, outlierDetectorOf } from './outlier-detector.ts'
import { plan, type Requested, type RoutePlan } from './plan.ts'
import { ownFirst } from './policy.ts'
import { inOrder, orderOf } from './preferences.ts'
import { type RoutingQuery, viewerOf } from './query.ts'
import { type Group, groupsOf, priceOf, type Ranked, Ranking, strategyOf } from './ranking.ts'
import { preferenceKey, sessionKey } from './session-affinity.ts'
import type { Settings } from './settings.ts'
import type { RankedTargets } from './target-queue.ts'

/** The order in which targets are tried, why, and the session to pin when one answers. */
export interface Selection extends RankedTargets {
  readonly reason: Reason
  /** The session to pin: to `offer`, else to the provider that answers. */
  readonly session?: { readonly key: string; readonly offer: string | undefined; readonly tenant: string } | undefined
  /** Selections of several named models. */
  readonly parts?: readonly Selection[] | undefined
}

/** The services that routing reads and, once a target has answered, writes. */
export type RoutingState = Pick<Services, 'measurements' | 'circuits' | 'affinity' | 'random'>

/** Orders the targets of a plan, by the settings of one snapshot. */
export class TargetSelector {
  readonly #settings: Settings
  readonly #known: RoutingState
  readonly #ranking: Ranking
  readonly #outliers: OutlierDetector

  constructor(settings: Settings, known: RoutingState) {
    this.#settings = settings
    this.#known = known
    this.#ranking = new Ranking(settings, known.measurements)
    this.#outliers = outlierDetectorOf(known.circuits)
  }

  /** Chooses from the result of `plan` for the query. */
  choose(query: RoutingQuery, found: RoutePlan): Selection {
    const order = found.requestedProvider === null ? orderOf(query) : undefined
    if (order) {
      const ranked = inOrder(this.#ranking.rank(query, groupsOf(found.targets), false), order)
      return { ranked, reason: 'provider-order', failover: query.failover }
    }
    const selection = this.#best(query, found)
    const { reason, failover, session } = selection
    const ranked = ownFirst(selection.ranked)
    return ranked === selection.ranked ? selection : { ranked, reason, failover, session }
  }

  /** Sorts the targets of virtual models by price or latency; all others keep their places. */
  inOrder(planned: readonly PlannedModel[]): readonly PlannedModel[] {
    if (planned.length === 1) return planned
    const ordered: PlannedModel[] = []
    for (let from = 0, to = 0; from < planned.length; from = to) {
      const { sorted } = planned[from]!
      while (to < planned.length && planned[to]!.sorted === sorted) to++
      const part = planned.slice(from, to)
      if (!sorted) ordered.push(...part)
      else {
        const measured = part.map(one => ({ one, measure: this.#measureOf(one, sorted.strategy) }))
        ordered.push(...measured.sort((a, b) => a.measure - b.measure || 0).map(({ one }) => one))
      }
    }
    return ordered
  }

  /** The best price or latency of the targets; an unknown price is the highest, an unknown latency a usual one. */
  #measureOf({ query, found }: PlannedModel, strategy: VirtualModel['strategy']): number {
    const { default_latency: usual } = this.#settings.thresholds
    const measures = groupsOf(found.targets).map(({ candidate }) =>
      strategy === 'price'
        ? (priceOf(candidate, query.promptTokens, false, this.#settings) ?? Number.POSITIVE_INFINITY)
        : (this.#ranking.read(candidate, viewerOf(query))?.latency ?? usual),
    )
    return Math.min(...measures)
  }

  /** Chooses from all models of a request, each behind those before it. */
  chooseAmong(planned: readonly PlannedModel[]): Selection {
    const parts = planned.map(({ query, found }) => this.choose(query, found))
    const [first] = parts
    if (parts.length === 1) return first!
    const turns = new Map<Candidate, number>()
    for (const [turn, { ranked }] of parts.entries()) {
      for (const { candidate } of ranked) if (!turns.has(candidate)) turns.set(candidate, turn)
    }
    const ranked = parts.flatMap((part, turn) => part.ranked.filter(({ candidate }) => turns.get(candidate) === turn))
    return { ranked, reason: first!.reason, failover: parts.every(({ failover }) => failover), turns, parts }
  }

  #best(query: RoutingQuery, found: RoutePlan): Selection {
    const groups = groupsOf(found.targets)
    const { failover } = query
    if (found.requestedProvider !== null) return this.#pinned(query, groups, found)
    if (groups.length === 1) return { ranked: groups, reason: 'single-provider-available', failover }
    const key = this.#settings.session.enabled ? sessionKey(query, found.requestedId) : undefined
    const ranked = this.#ranking.rank(query, groups, key !== undefined)
    return key === undefined ? this.#shared(query, ranked) : this.#sessions(query, ranked, key)
  }

  /** To be called when a choice has led to an answer. */
  keep(selection: Selection, answered: Candidate): void {
    const isAnswer = ({ candidate }: { candidate: Candidate }) => candidate === answered
    const { session } = selection.parts?.find(({ ranked }) => ranked.some(isAnswer)) ?? selection
    if (!session) return
    const { key, offer = answered.key, tenant } = session
    this.#known.affinity.set(key, offer, this.#settings.session.ttl, tenant)
  }

  /** The provider that the model string names, unless it is down or fails too often and another one does better. */
  #pinned(query: RoutingQuery, groups: Group[], requested: Requested): Selection {
    const { failover } = query
    const { low_uptime: low, low_uptime_requests: least } = this.#settings.thresholds
    const own = groups.length > 1 ? this.#ranking.rank(query, groups, false) : groups
    const org = viewerOf(query)
    const isUp = groups.some(group => this.#isUp(group, org))
    const uptime = Math.max(...groups.map(({ candidate }) => this.#uptime(candidate, org, least)))
    if (failover && (!isUp || uptime < low)) {
      const doesBetter = (group: Group) =>
        (!isUp && this.#isUp(group, org)) || this.#uptime(group.candidate, org, least) > uptime
      const others = groupsOf(plan(query, { auto: [], unpinned: true }, requested).targets).filter(
        group => group.candidate.mapping.provider.id !== requested.requestedProvider && doesBetter(group),
      )
      // Explores now and then, since nothing else shows that the provider is back; open circuits have probes for that.
      const explores = isUp && this.#known.random() < this.#settings.exploration
      const better = this.#ranking.rank(query, others, false)
      if (explores && others.length > 0) return { ranked: [...own, ...better], reason: 'random-exploration', failover }
      if (others.length > 0) return { ranked: [...better, ...own], reason: 'low-uptime-fallback', failover }
    }
    return { ranked: own, reason: 'direct-provider-specified', failover }
  }

  #sessions(query: RoutingQuery, ranked: Ranked[], key: string): Selection {
    const { uptime } = this.#settings.session
    const failover = query.failover && this.#settings.session.failover
    const pinned = this.#holder(key, ranked, uptime, viewerOf(query))
    if (!pinned)
      return { ...this.#steady(query, ranked), failover, session: { key, offer: undefined, tenant: query.tenant } }
    const session = { key, offer: pinned.candidate.key, tenant: query.tenant }
    return { ranked: led(pinned, ranked), reason: 'session-sticky', failover, session }
  }

  #shared(query: RoutingQuery, ranked: Ranked[]): Selection {
    const { failover } = query
    const { exploration } = this.#settings
    const { random } = this.#known
    // Before the best one has been measured there is nothing to compare others with.
    if (ranked[0]!.facts.uptime !== undefined && random() < exploration) {
      const { model } = ranked[0]!.candidate.mapping
      const able = ranked.filter(one => one.candidate.mapping.model === model && this.#isUp(one, viewerOf(query)))
      const one = able[Math.floor(random() * able.length)]
      if (one) return { ranked: led(one, ranked), reason: 'random-exploration', failover }
    }
    return { ...this.#steady(query, ranked), failover }
  }

  /** The provider that a model prefers, while it is nearly the best; else the best, which is preferred from then on. */
  #steady(query: RoutingQuery, ranked: Ranked[]): Pick<Selection, 'ranked' | 'reason'> {
    const { enabled, uptime, margin, ttl } = this.#settings.preference
    const best = ranked.find(one => this.#isUp(one, viewerOf(query)))
    if (!enabled || !best) return { ranked, reason: 'weighted-score' }
    const { model } = best.candidate.mapping
    // Each organization has its own, since each measures for itself too.
    const { tenant } = query
    const key = `${preferenceKey(model, strategyOf(query), query.streaming)} ${tenant}`
    const preferred = this.#holder(key, ranked, uptime, viewerOf(query))
    if (preferred && preferred.score.total <= best.score.total + margin) {
      return { ranked: led(preferred, ranked), reason: 'stable-preferred' }
    }
    // A caller with restricted providers does not set the preference of others.
    const { affinity } = this.#known
    const stays = affinity.get(key)
    if (stays === undefined || ranked.some(({ candidate }) => candidate.key === stays)) {
      affinity.set(key, best.candidate.key, ttl, tenant)
    }
    return { ranked, reason: 'weighted-score' }
  }

  /** The candidate pinned under a key, while its uptime suffices. */
  #holder(key: string, ranked: Ranked[], uptime: number, org: string | null): Ranked | undefined {
    const pinned = this.#known.affinity.get(key)
    if (pinned === undefined) return undefined
    const found = ranked.find(({ candidate }) => candidate.key === pinned)
    return found && this.#isUp(found, org) && this.#uptime(found.candidate, org) >= uptime ? found : undefined
  }

  /** Its circuit is not open, and neither are those of one of its targets. */
  #isUp({ candidate, targets }: Group, org: string | null): boolean {
    const isClosed = (key: string) => this.#outliers.state(key, org) !== 'open'
    if (!isClosed(candidate.key)) return false
    return targets.some(target => {
      const { key, account, polls } = candidateTargetOf(target)
      return isClosed(key) && (account === undefined || isClosed(account)) && (polls === undefined || isClosed(polls))
    })
  }

  /** Percent; the default for candidates with few attempts. */
  #uptime(candidate: Candidate, org: string | null, least?: number): number {
    return this.#ranking.uptime(this.#ranking.read(candidate, org), least) ?? this.#settings.thresholds.default_uptime
  }
}

/** Returns the candidates with one of them in front. */
const led = (one: Ranked, all: readonly Ranked[]): Ranked[] => [one, ...all.filter(other => other !== one)]
