/** Counts one request against its limits, from its begin to its end. */

import type { Exchange } from '../../core/exchange.ts'
import type { Operation } from '../../core/operation.ts'
import type { Op, Ops } from '../../core/ops.ts'
import type { Quota, Reservation, Services } from '../../core/ports.ts'
import { MAX_OUTPUT_TOKENS, type Usage } from '../../core/usage.ts'
import { errors, type GatewayError } from '../../lib/error.ts'
import { type Counted, type WindowKindName, windowKinds } from '../../limits/kinds.ts'
import type { NamedModel } from '../../routing/named-models.ts'
import { withoutSuffix } from '../../routing/preferences.ts'
import { asRecord, headersOfAll, type RatePolicy, type Shown } from './headers.ts'
import { described, type Limit } from './limit.ts'
import type { LimitPlan } from './plan.ts'

const RETRY_MS = 1000
const MINUTE_MS = windowKinds.rpm.windowMs
/** Shorter windows give no alerts. */
const HOUR_MS = windowKinds.rph.windowMs

/** Requests that have limits, until they end. */
const passing = new WeakMap<Exchange, PassedLimits>()

/** The limits of a request; undefined where it has none. */
export const passedOf = (ex: Exchange): PassedLimits | undefined => passing.get(ex)

/** Begins to count a request. */
export function passLimits(ex: Exchange, plan: LimitPlan, services: Services): PassedLimits {
  const passed = new PassedLimits(ex, plan, services)
  passing.set(ex, passed)
  return passed
}

type Units = Readonly<Record<Counted, number>>

const ONE: Units = { requests: 1, tokens: 0, 'input tokens': 0, 'output tokens': 0 }

const unitsOf = (input: number, output: number): Units => ({
  requests: 1,
  tokens: input + output,
  'input tokens': input,
  'output tokens': output,
})

type WindowLimit = Limit & { readonly kind: WindowKindName }

interface Taken {
  readonly limit: WindowLimit
  readonly units: number
  readonly reservation: Reservation
}

interface Before {
  readonly taken: readonly Taken[]
  readonly places: readonly string[]
  readonly shown: readonly Shown[]
}

/** Takes what a request needs of its limits, and sets it right at its end. */
export class PassedLimits {
  readonly #ex: Exchange
  readonly #plan: LimitPlan
  readonly #services: Services
  #taken: Taken[] = []
  /** Keys of the places that it holds. */
  #places: string[] = []
  #shown: Shown[] = []
  /** Keys of the limits that have led to another model. */
  readonly #passedOver = new Set<string>()
  /** Limits of its model. */
  #late: readonly Limit[] = []
  #instead: string | undefined
  #counted: { readonly key: string; readonly policy: RatePolicy; readonly bucket: number | undefined } | undefined
  #isRefused = false
  /** State before a model was known. */
  #before: Before | undefined

  constructor(ex: Exchange, plan: LimitPlan, services: Services) {
    this.#ex = ex
    this.#plan = plan
    this.#services = services
  }

  /** Takes what needs no body. Rejects with the 429. */
  async begin(): Promise<void> {
    await this.#take(this.#plan.early, ONE, [])
  }

  /**
   * Takes what depends on the model, and tokens by their estimate. Rejects with the 429. Where `modelInstead` then names
   * a model, it is to be called again for that one, which gives back what it took.
   */
  async check(named: readonly NamedModel[]): Promise<void> {
    const models = [...namesOf(named), this.#ex.request!.model]
    this.#late = this.#plan
      .late({ models, labels: this.#ex.caller.labels })
      .filter(({ key }) => !this.#passedOver.has(key))
    if (this.#before) this.#giveBack(this.#before)
    this.#before = { taken: [...this.#taken], places: [...this.#places], shown: [...this.#shown] }
    await this.#take(this.#late, this.#estimate(named[0]!), named)
  }

  /** Returns the model to plan the request with, where a limit has just refused it for another one. */
  modelInstead(): string | undefined {
    const use = this.#instead
    this.#instead = undefined
    return use
  }

  #giveBack({ taken, places, shown }: Before): void {
    for (const { reservation } of this.#taken.slice(taken.length)) void reservation.correct(0)
    for (const key of this.#places.slice(places.length)) void this.#services.counters.leave(key)
    this.#taken = [...taken]
    this.#places = [...places]
    this.#shown = [...shown]
  }

  /** Takes the tokens of a part of a session, which keeps its model. Rejects with the 429. */
  async beginPart({ prompt = 0, completion = 0 }: Usage): Promise<PartTokens> {
    const units = unitsOf(prompt, completion)
    const tokens = new PartTokens()
    for (const limit of this.#late) {
      const { kind, key, limit: most, onLimit } = limit
      if (kind === 'concurrency' || windowKinds[kind].counts === 'requests') continue
      const { counts, windowMs } = windowKinds[kind]
      const reservation = await this.#services.counters.reserve(key, most, windowMs, units[counts])
      if (reservation.allowed) tokens.taken.push({ limit: { ...limit, kind }, units: units[counts], reservation })
      else if (onLimit === 'notify') this.#tell(limit)
      else {
        tokens.end({})
        throw refusal(limit, { policy: limit.policy!, quota: reservation }, this.#services.now())
      }
    }
    return tokens
  }

  /** Shows the limit of the endpoint beside the others. Its unit is given back where another one refuses the request. */
  counted(key: string, shown: Shown): void {
    this.#counted = { key, policy: shown.policy, bucket: shown.quota.bucket }
    this.#shown.push(shown)
    this.#ex.answer.headers = headersOfAll(this.#shown, this.#services.now())
  }

  /** Gives back at the end what was taken: another limit has refused the request. */
  refused(): void {
    this.#isRefused = true
  }

  /** Sets right what was taken, and leaves. */
  async end(): Promise<void> {
    const { usage, endpoint } = this.#ex
    const used = usedUnits(endpoint.counts ? {} : usage)
    const corrections = this.#taken.map(({ limit, reservation }) =>
      reservation.correct(this.#isRefused ? 0 : used[windowKinds[limit.kind].counts]),
    )
    const { counters } = this.#services
    const counted = this.#isRefused ? this.#counted : undefined
    if (counted) corrections.push(counters.correct(counted.key, counted.policy.windowMs, counted.bucket!, -1))
    const places = this.#places.map(key => counters.leave(key))
    if (!this.#isRefused && this.#services.alerts?.isOn) this.#watchAll(used)
    this.#taken = []
    this.#places = []
    await Promise.all([...corrections, ...places])
  }

  /** Tells the watch what has come to each limit with this request. */
  #watchAll(used: Units): void {
    for (const { limit, units, reservation } of this.#taken) {
      const { counts, windowMs } = windowKinds[limit.kind]
      if (windowMs < HOUR_MS) continue
      const tell = ({ remaining }: Quota) => this.#watch(limit, limit.limit - remaining)
      const { remaining } = reservation
      // A reservation beyond the limit hides how much of it was used before.
      const seen = remaining > 0 ? { ...reservation, remaining: remaining + units - used[counts] } : undefined
      const quota = seen ?? this.#services.counters.peek(limit.key, limit.limit, windowMs)
      if (quota instanceof Promise) quota.then(tell, err => this.#services.log.debug({ err }, 'rate limit not watched'))
      else tell(quota)
    }
  }

  #watch({ kind, key: id, limit, subject }: WindowLimit, used: number): void {
    const { alerts } = this.#services
    const { counts: unit, span, windowMs } = windowKinds[kind]
    const { principal } = this.#ex.caller
    if (!alerts?.isOn || windowMs < HOUR_MS || !principal) return
    alerts.counted(principal, {
      ...{ id, kind, unit, span, limit, used, windowMs },
      of: subject.kind,
      whose: subject.label,
    })
  }

  async #take(limits: readonly Limit[], units: Units, named: readonly NamedModel[]): Promise<void> {
    const { counters } = this.#services
    for (const limit of limits) {
      const { kind, key, limit: most } = limit
      if (kind === 'concurrency') {
        const entered = counters.enter(key, most)
        const free = entered instanceof Promise ? await entered : entered
        if (free) this.#places.push(key)
        else this.#beyond(limit, undefined, named)
      } else {
        const { counts, windowMs } = windowKinds[kind]
        const asked = counters.reserve(key, most, windowMs, units[counts])
        const reservation = asked instanceof Promise ? await asked : asked
        const shown: Shown = { policy: limit.policy!, quota: reservation }
        if (reservation.allowed) this.#taken.push({ limit: { ...limit, kind }, units: units[counts], reservation })
        else {
          this.#watch({ ...limit, kind }, most)
          this.#beyond(limit, shown, named)
        }
        this.#shown.push(shown)
      }
    }
    if (limits.length > 0) this.#ex.answer.headers = headersOfAll(this.#shown, this.#services.now())
  }

  /** Throws the 429, but where the limit lets the request pass. */
  #beyond(limit: Limit, shown: Shown | undefined, named: readonly NamedModel[]): void {
    const { onLimit, key } = limit
    if (onLimit !== 'refuse') this.#tell(limit)
    if (onLimit === 'notify') return
    if (onLimit === 'refuse') this.#isRefused = true
    else {
      // Another model beside that of the limit may be the one that answers.
      if (named.every(one => namesOf([one]).includes(onLimit.use))) return
      this.#passedOver.add(key)
      this.#instead = onLimit.use
    }
    throw refusal(limit, shown, this.#services.now())
  }

  /** Logs that a limit lets requests pass; once in a window, over all nodes. */
  #tell({ kind, limit, subject, key, policy }: Limit): void {
    const { counters, log } = this.#services
    const facts = { request_id: this.#ex.id, limit: kind, value: limit, of: subject.kind, whose: subject.label }
    const tell = ({ allowed }: Quota) => allowed && log.warn(facts, 'rate limit passed')
    const told = counters.reserve(`${key} told`, 1, policy?.windowMs ?? MINUTE_MS, 1)
    if (told instanceof Promise) told.then(tell, err => log.debug({ err }, 'rate limit not told'))
    else tell(told)
  }

  /** Estimates the tokens of prompt and answer, at most those that the model can write. */
  #estimate({ requested: { reference }, changed }: NamedModel): Units {
    const { operation, prompt, request, endpoint } = this.#ex
    if (!operation || endpoint.counts) return ONE
    const input = prompt.usage.prompt ?? 0
    const maxOutput = reference.kind === 'model' ? reference.model.maxOutput : undefined
    return unitsOf(input, outputTokens(operation, (changed ?? request!) as Ops[Op], maxOutput))
  }
}

/** Tokens that a part of a session has reserved. */
export class PartTokens {
  readonly taken: Taken[] = []

  /** Replaces them by those that were used. */
  end(usage: Usage): void {
    const used = usedUnits(usage)
    for (const { limit, reservation } of this.taken) void reservation.correct(used[windowKinds[limit.kind].counts])
    this.taken.length = 0
  }
}

const usedUnits = ({ prompt = 0, completion = 0 }: Usage): Units => unitsOf(prompt, completion)

/** Reserved for an answer whose caller sets no limit. */
const USUAL_OUTPUT_TOKENS = 4096

/** Estimates the tokens of an answer, at most those that its model can write; 0 where answers count none. */
export function outputTokens({ output }: Operation, request: Ops[Op], maxOutput = MAX_OUTPUT_TOKENS): number {
  const { choices = 0, limit = USUAL_OUTPUT_TOKENS } = output?.(request) ?? {}
  return choices * Math.min(limit, maxOutput)
}

/** Canonical names first, then as they were named, then those of virtual models. */
function namesOf(named: readonly NamedModel[]): readonly string[] {
  const canonical = named.map(({ requested }) => requested.requestedId)
  const plain = named.map(({ requested }) => withoutSuffix(requested.requestedModel).name)
  const virtual = named.flatMap(({ virtual, through = [] }) =>
    virtual === undefined ? [] : [withoutSuffix(virtual).name, ...through],
  )
  return [...new Set([...canonical, ...plain, ...virtual])]
}

/** The 429 says which limit it is, whose, and when to come again. */
function refusal(limit: Limit, shown: Shown | undefined, now: number): GatewayError {
  const { kind, limit: most, subject } = limit
  const resetMs = shown ? Math.min(shown.quota.resetMs, shown.policy.windowMs) : RETRY_MS
  const details = { limit: kind, value: most, of: subject.kind, whose: subject.label }
  const refused = errors.limitReached(described(limit), subject.label, resetMs / 1000, details)
  const headers = shown
    ? asRecord(headersOfAll([shown], now))
    : { 'ratelimit-policy': `"${subject.kind}-${kind}";q=${most};qu="concurrent-requests"` }
  return refused.with({ headers: { ...headers, ...refused.headers } })
}
