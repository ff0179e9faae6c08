/** Chooses the targets of a request and tries them in turn: the whole of failover. */
import { LRUCache } from 'lru-cache'
import type { Attempt } from '../../core/attempt.ts'
import type { RouteRule } from '../../core/catalog.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { FilterFactory } from '../../core/filter.ts'
import { labelsOf, seriesOf } from '../../core/offer.ts'
import type { Op, Ops } from '../../core/ops.ts'
import type { Reply } from '../../core/reply.ts'
import type { Mapping, Target } from '../../core/translator.ts'
import { MAX_OUTPUT_TOKENS } from '../../core/usage.ts'
import { asError, type GatewayError } from '../../lib/error.ts'
import { upTo } from '../../lib/up-to.ts'
import { TokenBucket } from '../../limits/rate.ts'
import type { CandidateTarget } from '../../routing/candidate.ts'
import { type CredentialUse, takeFrom } from '../../routing/credential-limits.ts'
import { countRunning } from '../../routing/credential-loads.ts'
import { Health } from '../../routing/health.ts'
import { namedModels, type PlannedModel, plansOf } from '../../routing/named-models.ts'
import { errorType, exhausted, isBeyondWire, isFull, outOfBudget } from '../../routing/outcome.ts'
import { outlierDetectorOf } from '../../routing/outlier-detector.ts'
import { withoutSuffix } from '../../routing/preferences.ts'
import { viewerOf } from '../../routing/query.ts'
import { countRule, ruleFor } from '../../routing/rules.ts'
import { type Settings, settings } from '../../routing/settings.ts'
import { TargetQueue } from '../../routing/target-queue.ts'
import { type Selection, TargetSelector } from '../../routing/target-selector.ts'
import { modelInstead } from '../billing/at-limit.ts'
import { copiesOf } from '../copies.ts'
import { passedOf } from '../ratelimit/passed.ts'
import { ExchangeQuery } from '../routing-query.ts'

/** Attempts of a request that are refused before they are sent; each may have written all of its body. */
const MAX_UNSENT_ATTEMPTS = 32

/** Runs the filters below it once per attempt. Rejects with the error of the last attempt, or one for all of them. */
export const route: FilterFactory<Settings> = {
  name: 'route',
  options: settings,
  needs: ['principal'],
  gives: ['target'],
  repeats: true,
  create(options, services) {
    const outliers = outlierDetectorOf(services.circuits)
    const selector = new TargetSelector(options, services)
    const health = new Health(options, services)
    const budgets = new Budgets(options)
    /** Units of answered requests whose credential has limits. */
    const uses = new WeakMap<Exchange, CredentialUse>()
    const count = (rule: RouteRule) => countRule(services, rule)
    const copies = copiesOf(services)
    /** `asked`: the model that the request has named, where a limit has another one used. */
    const serve = async (ex: Exchange, next: () => Promise<Reply>, asked?: string): Promise<Reply> => {
      const query = new ExchangeQuery(ex)
      const isFirst = asked === undefined
      const rules = isFirst ? query.catalog.rules : undefined
      const mirror = rules && ruleFor(withoutSuffix(query.request.model).name, query)
      let named = namedModels(query, services.random, isFirst ? count : undefined)
      if (!isFirst) named = named.map(one => ({ ...one, virtual: asked }))
      const { requested, virtual } = named[0]!
      ex.requested.model = virtual ?? requested.requestedModel
      ex.requested.provider = virtual === undefined ? requested.requestedProvider : null
      await passedOf(ex)?.check(named)
      const planned = selector.inOrder(plansOf(named, options))
      const most = Math.max(options.attempts, planned.length)
      const choice = selector.chooseAmong(planned)
      const requestFor = changedRequests(planned, choice, ex.request!)
      if (mirror?.mirror) copies.draw(ex, mirror)
      const queue = new TargetQueue(choice, outliers, viewerOf(query), true)
      let step = queue.next(most)!
      const budget = budgets.of(step.target, query.tenant)
      budget.give(options.retry.budget)
      const failures: GatewayError[] = []
      let unsent = 0
      let isSpent = false
      for (let renewed = false; ; ) {
        const began = performance.now()
        ex.target = step.target
        if (requestFor) ex.request = requestFor(step)
        const due = health.began(step, query)
        countRunning(step, 1)
        let use: CredentialUse | undefined
        try {
          const { credential, mapping } = step.target
          if (credential?.limits) use = await takeFrom(credential, tokensOf(ex, query, mapping), services.counters)
          const reply = await next()
          if (use) uses.set(ex, use)
          health.answered(step, query)
          selector.keep(choice, step.candidate)
          ex.attempts.push(new Answered(ex, step, reply.status, began - ex.timings.start))
          return reply
        } catch (thrown) {
          health.gaveUp(step, due, query)
          countRunning(step, -1)
          const error = asError(thrown)
          if (use) await use.end(error.upstreamStatus === undefined ? undefined : 0)
          // Without it nothing was sent: a limit, a missing price or a wire kept the request here.
          if (error.upstreamStatus !== undefined) {
            const durationMs = performance.now() - began
            const { upstreamStatus: status } = error
            ex.attempts.push({
              target: step.target,
              status,
              succeeded: false,
              errorType: errorType(error),
              durationMs,
              startedMs: began - ex.timings.start,
              connectMs: ex.outbound.connectMs,
              reason: error.code,
            })
          }
          failures.push(error)
          if (!error.failover || ex.signal.aborted) {
            health.left(step, query)
            throw error
          }
          // A stale socket is no failure of the provider: retry once on a new connection.
          if (error.stale && !renewed && ex.attempts.length < most) {
            renewed = true
            health.left(step, query)
            continue
          }
          const whose = health.failed(step, query, error, performance.now() - began)
          if (isBeyondWire(error)) queue.excluded(step)
          else if (isFull(error)) queue.full(step)
          else if (whose !== 'throttle' && whose !== 'credential' && !isOfCredential(error)) queue.failed(step)
          if (error.upstreamStatus === undefined) unsent++
        }
        const isLast = ex.attempts.length >= most || unsent >= MAX_UNSENT_ATTEMPTS
        const following = isLast ? undefined : queue.next(most - ex.attempts.length)
        if (!following || isLate(ex, following)) break
        isSpent = !queue.isSound(following) && !budget.tryTake(1, performance.now())
        if (isSpent) {
          const { model } = labelsOf(following.target.mapping)
          services.metrics.retryBudgetSpent(model)
          services.log.warn({ request_id: ex.id, model, untried: following.key }, 'retry budget spent')
          break
        }
        step = following
      }
      throw isSpent ? outOfBudget(failures, options.circuit.max) : exhausted(failures, options.circuit.max)
    }
    return {
      async handle(ex, next) {
        await ex.readRequest()
        const request = ex.request!
        ex.requested.written = request
        let refusal: GatewayError | undefined
        for (;;) {
          try {
            return await serve(ex, next, refusal && ex.requested.model)
          } catch (thrown) {
            const error = asError(thrown)
            const use = modelInstead(ex) ?? passedOf(ex)?.modelInstead()
            if (use !== undefined) {
              refusal = error
              moved.add(ex)
              ex.request = insteadOf(request, use)
            } else if (refusal && isUnfit(error)) {
              ex.request = request
              if (refusal.status === 429) passedOf(ex)!.refused()
              throw refusal
            } else throw error
          }
        }
      },
      finish(ex) {
        const last = ex.attempts.at(-1)
        if (!(last instanceof Answered)) return undefined
        health.ended(last.step, endedAnswer(ex))
        countRunning(last.step, -1)
        return uses.get(ex)?.end((ex.usage.prompt ?? 0) + (ex.usage.completion ?? 0))
      },
    }
  },
}

/** A credential has reached a limit: 402 for what an organization's own key may spend. Another one may serve. */
const isOfCredential = ({ status, code }: GatewayError): boolean => status === 402 || code === 'upstream_rate_limited'

/** Reserved for an answer whose caller sets no limit. */
const USUAL_OUTPUT_TOKENS = 4096
/** Estimates the tokens of prompt and answer, at most those that the model can write. */
function tokensOf({ operation, request }: Exchange, { promptTokens }: ExchangeQuery, { maxOutput }: Mapping): number {
  const { choices = 0, limit = USUAL_OUTPUT_TOKENS } = operation.output?.(request!) ?? {}
  return promptTokens + choices * Math.min(limit, maxOutput ?? MAX_OUTPUT_TOKENS)
}

/** Undefined where no virtual model changes the request, else the request for each target. */
function changedRequests(planned: readonly PlannedModel[], { turns }: Selection, request: Ops[Op]) {
  if (planned.every(({ changed }) => changed === undefined)) return undefined
  return ({ candidate }: CandidateTarget) => planned[turns?.get(candidate) ?? 0]!.changed ?? request
}

const moved = new WeakSet<Exchange>()
/** Whether a limit has sent the request to another model. */
export const isMoved = (ex: Exchange): boolean => moved.has(ex)

/** Returns the request for another model, in the place of all that it names. */
function insteadOf(request: Ops[Op], model: string): Ops[Op] {
  const changed: Ops[Op] = Object.assign({}, request, { model })
  if ('models' in changed) delete changed.models
  return changed
}

/** The model of a limit is gone, or not for the caller, the endpoint or what is asked for: then the limit refuses. */
const isUnfit = ({ status, upstreamStatus }: GatewayError): boolean =>
  upstreamStatus === undefined && (status === 400 || status === 403 || status === 404)

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
 * Bounds retries at failing targets, so that an outage is not multiplied (docs/contract.md#circuits-and-retries): `reserve +
 * budget × n` retries for `n` requests, and a reserve more each minute. Each model has its own for each organization: no
 * outage, and no tenant, takes away the retries of another one.
 */
class Budgets {
  readonly #options: Settings
  /** Retry budgets by organization and model label. */
  readonly #budgets = new LRUCache<string, TokenBucket>(upTo(MAX_BUDGETS))

  constructor(options: Settings) {
    this.#options = options
  }

  of({ mapping: { model } }: Target, org: string): TokenBucket {
    const key = `${org} ${seriesOf(model)}`
    let budget = this.#budgets.get(key)
    if (!budget) {
      const { reserve } = this.#options.retry
      budget = new TokenBucket(reserve, reserve / REFILL_S)
      this.#budgets.set(key, budget)
    }
    return budget
  }
}

/**
 * The attempt that answered. It counts as failed when the answer breaks after the commit point.
 * A class, because V8 makes a new hidden class for each object literal that has accessors.
 */
class Answered implements Attempt {
  readonly step: CandidateTarget
  readonly status: number
  readonly startedMs: number
  readonly connectMs: number | undefined
  readonly #ex: Exchange

  constructor(ex: Exchange, step: CandidateTarget, status: number, startedMs: number) {
    this.#ex = ex
    this.step = step
    this.status = status
    this.startedMs = startedMs
    this.connectMs = ex.outbound.connectMs
  }

  get target(): Target {
    return this.step.target
  }

  get succeeded(): boolean {
    return this.errorType === 'none'
  }

  get errorType(): Attempt['errorType'] {
    const { failure } = this.#ex.answer
    return failure?.upstreamStatus === undefined ? 'none' : errorType(failure)
  }

  get reason(): string | null {
    const { failure } = this.#ex.answer
    return failure?.upstreamStatus === undefined ? null : failure.code
  }

  get durationMs(): number {
    const { end, sent } = this.#ex.timings
    return sent > 0 && end > 0 ? end - sent : 0
  }
}
