/** Which candidate of a request comes first, and why: score, stickiness, exploration and affinity. */
import type { Exchange } from '../core/exchange.ts'
import type { Reason, Services } from '../core/ports.ts'
import { type Candidate, stepOf } from './candidate.ts'
import { type OutlierDetector, outlierDetectorOf } from './outlier-detector.ts'
import { plan } from './plan.ts'
import { type Group, groupsOf, type Ranked, Ranking, strategyOf } from './ranking.ts'
import { preferenceKey, sessionKey } from './session-affinity.ts'
import type { Settings } from './settings.ts'
import type { RankedTargets } from './target-queue.ts'
import { tenantOf, viewerOf } from './tenant.ts'

export interface Selection extends RankedTargets {
  readonly reason: Reason
  /** The session that is to stay: with `offer`, else with who answers. */
  readonly session?: { readonly key: string; readonly offer: string | undefined; readonly tenant: string } | undefined
}

export type RoutingState = Pick<Services, 'measurements' | 'circuits' | 'affinity' | 'random'>

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

  /** Throws the 4xx that says why no target can serve the request. */
  choose(ex: Exchange): Selection {
    const groups = groupsOf(plan(ex, this.#settings))
    const failover = ex.header('x-no-fallback') !== 'true'
    if (ex.requestedProvider !== null) return this.#pinned(ex, groups, failover)
    if (groups.length === 1) return { ranked: groups, reason: 'single-provider-available', failover }
    const key = this.#settings.session.enabled ? sessionKey(ex) : undefined
    const ranked = this.#ranking.rank(ex, groups, key !== undefined)
    return key === undefined ? this.#shared(ex, ranked, failover) : this.#sessions(ex, ranked, key, failover)
  }

  /** To be called when a choice has led to an answer. */
  keep({ session }: Selection, answered: Candidate): void {
    if (!session) return
    const { key, offer = answered.key, tenant } = session
    this.#known.affinity.set(key, offer, this.#settings.session.ttl, tenant)
  }

  /** The provider that the model string names, unless it is down or fails too often and another one does better. */
  #pinned(ex: Exchange, groups: Group[], failover: boolean): Selection {
    const { low_uptime: low, low_uptime_requests: least } = this.#settings.thresholds
    const own = groups.length > 1 ? this.#ranking.rank(ex, groups, false) : groups
    const org = viewerOf(ex)
    const isUp = groups.some(group => this.#isUp(group, org))
    const uptime = Math.max(...groups.map(({ candidate }) => this.#uptime(candidate, org, least)))
    if (failover && (!isUp || uptime < low)) {
      const doesBetter = (group: Group) =>
        (!isUp && this.#isUp(group, org)) || this.#uptime(group.candidate, org, least) > uptime
      const others = groupsOf(plan(ex, { auto: [], unpinned: true })).filter(
        group => group.candidate.mapping.provider.id !== ex.requestedProvider && doesBetter(group),
      )
      // Now and then it is tried all the same: nothing else would show that it is back. Of an open circuit, probes do.
      const asked = isUp && this.#known.random() < this.#settings.exploration
      const better = this.#ranking.rank(ex, others, false)
      if (asked && others.length > 0) return { ranked: [...own, ...better], reason: 'random-exploration', failover }
      if (others.length > 0) return { ranked: [...better, ...own], reason: 'low-uptime-fallback', failover }
    }
    return { ranked: own, reason: 'direct-provider-specified', failover }
  }

  /** Tokens per second, as far as it was measured; over all organizations, since answers are charged by it. */
  speedOf(candidate: Candidate): number {
    return this.#ranking.read(candidate, null)?.throughput ?? this.#settings.thresholds.default_throughput
  }

  #sessions(ex: Exchange, ranked: Ranked[], key: string, mayLeave: boolean): Selection {
    const { uptime } = this.#settings.session
    const failover = mayLeave && this.#settings.session.failover
    const pinned = this.#holder(key, ranked, uptime, viewerOf(ex))
    if (!pinned)
      return { ...this.#steady(ex, ranked), failover, session: { key, offer: undefined, tenant: tenantOf(ex) } }
    const session = { key, offer: pinned.candidate.key, tenant: tenantOf(ex) }
    return { ranked: led(pinned, ranked), reason: 'session-sticky', failover, session }
  }

  #shared(ex: Exchange, ranked: Ranked[], failover: boolean): Selection {
    const { exploration } = this.#settings
    const { random } = this.#known
    // Before the best one has been measured there is nothing to compare others with.
    if (ranked[0]!.facts.uptime !== undefined && random() < exploration) {
      const { model } = ranked[0]!.candidate.mapping
      const able = ranked.filter(one => one.candidate.mapping.model === model && this.#isUp(one, viewerOf(ex)))
      const one = able[Math.floor(random() * able.length)]
      if (one) return { ranked: led(one, ranked), reason: 'random-exploration', failover }
    }
    return { ...this.#steady(ex, ranked), failover }
  }

  /** The provider that a model prefers, while it is nearly the best; else the best, which is preferred from then on. */
  #steady(ex: Exchange, ranked: Ranked[]): Pick<Selection, 'ranked' | 'reason'> {
    const { enabled, uptime, margin, ttl } = this.#settings.preference
    const best = ranked.find(one => this.#isUp(one, viewerOf(ex)))
    if (!enabled || !best) return { ranked, reason: 'weighted-score' }
    const { model } = best.candidate.mapping
    // Each organization has its own, since each measures for itself too.
    const tenant = tenantOf(ex)
    const key = `${preferenceKey(model, strategyOf(ex), ex.streaming)} ${tenant}`
    const preferred = this.#holder(key, ranked, uptime, viewerOf(ex))
    if (preferred && preferred.score.total <= best.score.total + margin) {
      return { ranked: led(preferred, ranked), reason: 'stable-preferred' }
    }
    // Of those who may use fewer providers, none decides for the others.
    const { affinity } = this.#known
    const stays = affinity.get(key)
    if (stays === undefined || ranked.some(({ candidate }) => candidate.key === stays)) {
      affinity.set(key, best.candidate.key, ttl, tenant)
    }
    return { ranked, reason: 'weighted-score' }
  }

  /** Who is pinned under a key, while it is up and a candidate. */
  #holder(key: string, ranked: Ranked[], uptime: number, org: string | null): Ranked | undefined {
    const pinned = this.#known.affinity.get(key)
    if (pinned === undefined) return undefined
    const found = ranked.find(({ candidate }) => candidate.key === pinned)
    return found && this.#isUp(found, org) && this.#uptime(found.candidate, org) >= uptime ? found : undefined
  }

  /** Neither its circuit nor those of all its credentials are open. */
  #isUp({ candidate, targets }: Group, org: string | null): boolean {
    if (this.#outliers.state(candidate.key, org) === 'open') return false
    return targets.some(target => this.#outliers.state(stepOf(target).key, org) !== 'open')
  }

  /** Percent; of those who were hardly tried, the default. */
  #uptime(candidate: Candidate, org: string | null, least?: number): number {
    return this.#ranking.uptime(this.#ranking.read(candidate, org), least) ?? this.#settings.thresholds.default_uptime
  }
}

/** The same candidates, with one of them in front. */
const led = (one: Ranked, all: readonly Ranked[]): Ranked[] => [one, ...all.filter(other => other !== one)]
