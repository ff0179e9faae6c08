/** Plans the attempts of a request and makes them, one target after another. */
import { LRUCache } from 'lru-cache'
import type { RouteRule } from '../../core/catalog.ts'
import type { Exchange } from '../../core/exchange.ts'
import { labelsOf, seriesOf } from '../../core/offer.ts'
import type { Op, Ops } from '../../core/ops.ts'
import type { Services } from '../../core/ports.ts'
import type { Reply } from '../../core/reply.ts'
import type { Target } from '../../core/translator.ts'
import { asError, type GatewayError } from '../../lib/error.ts'
import { upTo } from '../../lib/up-to.ts'
import { TokenBucket } from '../../limits/rate.ts'
import type { CandidateTarget } from '../../routing/candidate.ts'
import { type CredentialUse, countRunning, takeFrom } from '../../routing/credentials.ts'
import { Health } from '../../routing/health.ts'
import { namedModels, type PlannedModel, plansOf } from '../../routing/named-models.ts'
import { exhausted, isBeyondWire, isFull, outOfBudget } from '../../routing/outcome.ts'
import { type OutlierDetector, outlierDetectorOf } from '../../routing/outlier-detector.ts'
import { withoutSuffix } from '../../routing/preferences.ts'
import { viewerOf } from '../../routing/query.ts'
import { countRule, ruleFor } from '../../routing/rules.ts'
import type { Settings } from '../../routing/settings.ts'
import { TargetQueue } from '../../routing/target-queue.ts'
import { type Selection, TargetSelector } from '../../routing/target-selector.ts'
import { type Copies, copiesOf } from '../copies.ts'
import { outputTokens, passedOf } from '../ratelimit/passed.ts'
import { ExchangeQuery } from '../routing-query.ts'
import { AnsweredAttempt, failedAttempt } from './attempts.ts'

/** Attempts of a request that are refused before they are sent; each may have written all of its body. */
const MAX_UNSENT_ATTEMPTS = 32

/** State that the attempts of one request share. */
interface Plan {
  readonly ex: Exchange
  readonly query: ExchangeQuery
  readonly choice: Selection
  readonly queue: TargetQueue
  /** Maximum attempts that are sent. */
  readonly most: number
  /** Returns the request for a target. Undefined where all targets get the same. */
  readonly requestFor: ((step: CandidateTarget) => Ops[Op]) | undefined
  /** Errors of the attempts so far. */
  readonly failures: GatewayError[]
  /** Attempts so far that were not sent. */
  unsent: number
  /** Whether an attempt was repeated on a new connection. */
  isRenewed: boolean
}

/** The whole of failover, for all requests of one configuration. */
export class Failover {
  readonly #options: Settings
  readonly #services: Services
  readonly #outliers: OutlierDetector
  readonly #selector: TargetSelector
  readonly #health: Health
  readonly #budgetFor: ReturnType<typeof retryBudgets>
  readonly #copies: Copies
  readonly #countRule: (rule: RouteRule) => void
  /** Units of answered requests whose credential has limits. */
  readonly #uses = new WeakMap<Exchange, CredentialUse>()

  constructor(options: Settings, services: Services) {
    this.#options = options
    this.#services = services
    this.#outliers = outlierDetectorOf(services.circuits)
    this.#selector = new TargetSelector(options, services)
    this.#health = new Health(options, services)
    this.#budgetFor = retryBudgets(options.retry)
    this.#copies = copiesOf(services)
    this.#countRule = rule => countRule(services, rule)
  }

  /**
   * Resolves with the reply of the first target that answers. Rejects with the error of the last attempt, or one for all
   * of them. `asked`: the model that the request has named, where a limit has another one used.
   */
  async serve(ex: Exchange, next: () => Promise<Reply>, asked?: string): Promise<Reply> {
    const plan = await this.#planned(ex, asked)
    const { query, queue } = plan
    let step = queue.next(plan.most)!
    const budget = this.#budgetFor(step.target, query.tenant)
    for (;;) {
      const began = performance.now()
      try {
        return await this.#attempt(plan, step, began, next)
      } catch (thrown) {
        const error = asError(thrown)
        plan.failures.push(error)
        if (!error.failover || ex.signal.aborted) {
          this.#health.left(step, query)
          throw error
        }
        // A stale socket is no failure of the provider: retry once on a new connection.
        if (error.stale && !plan.isRenewed && ex.attempts.length < plan.most) {
          plan.isRenewed = true
          this.#health.left(step, query)
          continue
        }
        this.#failed(plan, step, error, began)
      }
      step = this.#following(plan, budget)
    }
  }

  /** Notes how the answer has ended, for its target and its credential. */
  finish(ex: Exchange): Promise<void> | undefined {
    const last = ex.attempts.at(-1)
    if (!(last instanceof AnsweredAttempt)) return undefined
    this.#health.ended(last.step, endedAnswer(ex))
    countRunning(last.step, -1)
    return this.#uses.get(ex)?.end((ex.usage.prompt ?? 0) + (ex.usage.completion ?? 0))
  }

  async #planned(ex: Exchange, asked: string | undefined): Promise<Plan> {
    const query = new ExchangeQuery(ex)
    const isFirst = asked === undefined
    const rule = isFirst && query.catalog.rules ? ruleFor(withoutSuffix(query.request.model).name, query) : undefined
    let named = namedModels(query, this.#services.random, isFirst ? this.#countRule : undefined)
    if (!isFirst) named = named.map(one => ({ ...one, virtual: asked }))
    const { requested, virtual } = named[0]!
    ex.requested.model = virtual ?? requested.requestedModel
    ex.requested.provider = virtual === undefined ? requested.requestedProvider : null
    await passedOf(ex)?.check(named)
    const planned = this.#selector.inOrder(plansOf(named, this.#options))
    const choice = this.#selector.chooseAmong(planned)
    if (rule?.mirror) this.#copies.draw(ex, rule)
    return {
      ex,
      query,
      choice,
      queue: new TargetQueue(choice, this.#outliers, viewerOf(query), true),
      most: Math.max(this.#options.attempts, planned.length),
      requestFor: changedRequests(planned, choice, ex.request!),
      failures: [],
      unsent: 0,
      isRenewed: false,
    }
  }

  /** Tries one target. Rejects once the failed attempt is noted. */
  async #attempt(plan: Plan, step: CandidateTarget, began: number, next: () => Promise<Reply>): Promise<Reply> {
    const { ex, query, requestFor } = plan
    ex.target = step.target
    if (requestFor) ex.request = requestFor(step)
    const due = this.#health.began(step, query)
    countRunning(step, 1)
    let use: CredentialUse | undefined
    try {
      const { credential, mapping } = step.target
      if (credential?.limits) {
        const tokens = query.promptTokens + outputTokens(ex.operation, ex.request!, mapping.maxOutput)
        use = await takeFrom(credential, tokens, this.#services.counters)
      }
      const reply = await next()
      if (use) this.#uses.set(ex, use)
      this.#health.answered(step, query)
      this.#selector.keep(plan.choice, step.candidate)
      ex.attempts.push(new AnsweredAttempt(ex, step, reply.status, began))
      return reply
    } catch (thrown) {
      this.#health.gaveUp(step, due, query)
      countRunning(step, -1)
      const error = asError(thrown)
      const isSent = error.upstreamStatus !== undefined
      if (use) await use.end(isSent ? 0 : undefined)
      // Otherwise a limit, a missing price or a wire kept the request here.
      if (isSent) ex.attempts.push(failedAttempt(ex, step.target, error, began))
      throw error
    }
  }

  /** Notes whose failure it is, and takes out of the queue what would fail likewise. */
  #failed(plan: Plan, step: CandidateTarget, error: GatewayError, began: number): void {
    const { query, queue } = plan
    const whose = this.#health.failed(step, query, error, performance.now() - began)
    if (isBeyondWire(error)) queue.excluded(step)
    else if (isFull(error)) queue.full(step)
    else if (whose !== 'throttle' && whose !== 'credential' && !isOfCredential(error)) queue.failed(step)
    if (error.upstreamStatus === undefined) plan.unsent++
  }

  /** Returns the target to try next. Throws one error for all attempts where nothing is left: a target, time or a retry. */
  #following({ ex, queue, most, failures, unsent }: Plan, budget: TokenBucket): CandidateTarget {
    const { circuit } = this.#options
    const { log, metrics } = this.#services
    const sent = ex.attempts.length
    const following = sent >= most || unsent >= MAX_UNSENT_ATTEMPTS ? undefined : queue.next(most - sent)
    if (!following || isLate(ex, following)) throw exhausted(failures, circuit.max)
    if (queue.isSound(following) || budget.tryTake(1, performance.now())) return following
    const { model } = labelsOf(following.target.mapping)
    metrics.retryBudgetSpent(model)
    log.warn({ request_id: ex.id, model, untried: following.key }, 'retry budget spent')
    throw outOfBudget(failures, circuit.max)
  }
}

/** A credential has reached a limit: 402 for what an organization's own key may spend. Another one may serve. */
const isOfCredential = ({ status, code }: GatewayError): boolean => status === 402 || code === 'upstream_rate_limited'

/** Undefined where no virtual model changes the request, else the request for each target. */
function changedRequests(planned: readonly PlannedModel[], { turns }: Selection, request: Ops[Op]): Plan['requestFor'] {
  if (planned.every(({ changed }) => changed === undefined)) return undefined
  return ({ candidate }) => planned[turns?.get(candidate) ?? 0]!.changed ?? request
}

/** How the answer of an exchange has ended, for the health of its target. */
function endedAnswer({ caller, streaming, answer, timings, usage }: Exchange) {
  const { outcome, failure } = answer
  return { tenant: caller.tenant, streaming, outcome, failure, timings, usage }
}

/** The time of all attempts is over. */
const isLate = ({ timings }: Exchange, { target }: CandidateTarget): boolean =>
  performance.now() - timings.read >= target.provider.timeouts.total

/** Maximum retry budgets in memory. A forgotten one starts again with its reserve. */
const MAX_BUDGETS = 10_000

/** The time in which an empty reserve fills by itself: little traffic must not keep failover off. */
const REFILL_S = 60

/**
 * Returns a function that finds the budget for retries of a request, and adds the request's share: `reserve + budget × n`
 * retries for `n` requests, and a reserve more each minute. Each model has its own for each organization: no outage, and no
 * tenant, takes away the retries of another one (docs/contract.md#circuits-and-retries).
 */
function retryBudgets({ reserve, budget: share }: Settings['retry']): (to: Target, org: string) => TokenBucket {
  const budgets = new LRUCache<string, TokenBucket>(upTo(MAX_BUDGETS))
  return ({ mapping: { model } }, org) => {
    const key = `${org} ${seriesOf(model)}`
    let budget = budgets.get(key)
    if (!budget) {
      budget = new TokenBucket(reserve, reserve / REFILL_S)
      budgets.set(key, budget)
    }
    budget.give(share)
    return budget
  }
}
