/** Records what attempts show of providers and of credentials, separately. */
import type { Outcome } from '../core/answer.ts'
import type { Timings } from '../core/attempt.ts'
import { firstEventMs } from '../core/offer.ts'
import type { CircuitPolicy, History, Sample, Services } from '../core/ports.ts'
import type { Target } from '../core/translator.ts'
import type { Usage } from '../core/usage.ts'
import type { GatewayError } from '../lib/error.ts'
import { type CandidateTarget, pollKeyOf } from './candidate.ts'
import { classifyFailure, type FailureClass } from './outcome.ts'
import { type OutlierDetector, outlierDetectorOf } from './outlier-detector.ts'
import type { RoutingQuery } from './query.ts'
import { circuitPolicyOf, historyOf, type Settings } from './settings.ts'

/** The caller of an attempt, and whether it streams. */
type AttemptContext = Pick<RoutingQuery, 'tenant' | 'streaming'>

/** How an answer has ended, and when. */
interface EndedAnswer extends AttemptContext {
  readonly outcome: Outcome | undefined
  readonly failure: GatewayError | undefined
  readonly timings: Readonly<Timings>
  readonly usage: Readonly<Usage>
}

/** Records attempts; a failure counts against the provider or against the credential, never both. */
export class Health {
  readonly #services: Pick<Services, 'measurements' | 'circuits' | 'log'>
  readonly #settings: Settings
  readonly #policy: CircuitPolicy
  readonly #history: History
  readonly #outliers: OutlierDetector

  constructor(settings: Settings, services: Pick<Services, 'measurements' | 'circuits' | 'log'>) {
    this.#services = services
    this.#settings = settings
    this.#policy = circuitPolicyOf(settings)
    this.#history = historyOf(settings)
    this.#outliers = outlierDetectorOf(services.circuits)
  }

  /** Returns the time at which the answer is due, for `gaveUp`. */
  began(step: CandidateTarget, context: AttemptContext): number {
    const { candidate, key } = step
    const org = context.tenant
    this.#services.circuits.begin(candidate.key, org)
    this.#services.circuits.begin(key, org)
    if (step.account !== undefined) this.#services.circuits.begin(step.account, org)
    return isStreamed(step, context)
      ? this.#outliers.began(candidate.key, this.#lateAfterMs(candidate.key, org), org)
      : 0
  }

  /** The client left before the answer of an attempt began. */
  gaveUp({ candidate }: CandidateTarget, due: number, context: AttemptContext): void {
    this.#outliers.ended(candidate.key, due, context.tenant)
  }

  /** An answer has begun, which ends a probe. Failures are reset when the answer is complete (`ended`). */
  answered({ candidate, key, account }: CandidateTarget, context: AttemptContext): void {
    const { circuits } = this.#services
    const org = context.tenant
    this.#outliers.answered(candidate.key)
    for (const at of account === undefined ? [candidate.key, key] : [candidate.key, key, account]) {
      if (circuits.state(at, org) !== 'closed') recordSuccess(this.#services, at, org)
    }
  }

  /** There was no answer, which is no failure of a target. */
  left({ candidate, key, account }: CandidateTarget, context: AttemptContext): void {
    const org = context.tenant
    this.#services.circuits.left(candidate.key, org)
    this.#services.circuits.left(key, org)
    if (account !== undefined) this.#services.circuits.left(account, org)
  }

  /** There was no answer. `ms` is how long the provider was waited for. */
  failed(step: CandidateTarget, context: AttemptContext, error: GatewayError, ms: number): FailureClass {
    const whose = inTime(step, context, error, ms) ? classifyFailure(error) : 'none'
    this.#judge(step, whose, error, context)
    if (whose === 'provider') this.#services.measurements.add(step.candidate.key, { ok: false }, context.tenant)
    return whose
  }

  /** An answer has ended, well or not. A caller that left, or set its own deadline, is no failure of a target. */
  ended(step: CandidateTarget, answer: EndedAnswer): void {
    const { failure, outcome, timings } = answer
    const late = timings.end - timings.read >= step.target.provider.timeouts.total - SLACK_MS
    const whose = outcome === 'error' && failure && !late ? classifyFailure(failure) : 'none'
    const org = answer.tenant
    if (whose !== 'none') this.#judge(step, whose, failure!, answer)
    else {
      for (const at of [step.candidate.key, step.key]) recordSuccess(this.#services, at, org)
      if (step.account !== undefined) recordSuccess(this.#services, step.account, org)
    }
    const ok = outcome === 'ok' ? true : whose === 'provider' ? false : undefined
    this.#services.measurements.add(step.candidate.key, { ok, ...speedOf(step, answer) }, org)
  }

  #judge(
    step: CandidateTarget,
    whose: FailureClass,
    { retryAfterMs, upstreamStatus }: GatewayError,
    context: AttemptContext,
  ): void {
    const { circuits, log } = this.#services
    const { candidate, key, account } = step
    const org = context.tenant
    const isSpent = whose === 'credential' && upstreamStatus !== FORBIDDEN
    const at = whose === 'provider' ? candidate.key : isSpent ? (account ?? key) : key
    this.left(step, context)
    if (whose === 'none') return
    const policy = this.#policy
    const isBreaking = whose === 'provider' && this.#isBreaking(candidate.key, org)
    const opened =
      whose === 'credential' || isBreaking ? circuits.trip(at, policy, org) : circuits.failed(at, policy, org)
    // A spent account rests until the date that its provider names.
    const maxMs = whose === 'credential' ? Number.POSITIVE_INFINITY : policy.maxMs
    const waitMs = retryAfterMs ?? (whose === 'throttle' && account !== undefined ? USUAL_WAIT_MS : undefined)
    const coolMs = waitMs === undefined ? undefined : Math.min(waitMs, maxMs)
    // The failure that opened it for all sets its time; later failures of the same organization do not.
    const cooled = coolMs === undefined ? undefined : circuits.cool(at, coolMs, opened === 'everyone' ? null : org)
    const tripped = isBreaking && this.#isBreaking(candidate.key, null) ? circuits.trip(at, policy, null) : undefined
    if (!(opened ?? (account === undefined ? undefined : cooled))) return
    const organization = [opened, cooled, tripped].includes('everyone') ? undefined : org
    const { fingerprint } = step.target.credential ?? {}
    const credential = whose === 'provider' ? undefined : fingerprint
    log.warn({ offer: at, scope: whose, organization, credential, status: upstreamStatus }, 'circuit opened')
  }

  /** Milliseconds after which the first piece of a stream is late, by what is usual. */
  #lateAfterMs(key: string, org: string): number {
    const usual = this.#services.measurements.read(key, this.#history, org)?.latency
    return Math.max(LATE_MS, LATE_FACTOR * (usual ?? this.#settings.thresholds.default_latency))
  }

  /**
   * Whether too large a share of the last minute's attempts failed for an organization, or, with null, for at least
   * two. The current attempt is not yet counted.
   */
  #isBreaking(key: string, org: string | null): boolean {
    const { ratio, min_requests } = this.#settings.circuit
    const known = this.#services.measurements.read(key, this.#history, org)
    if (known === undefined || (org === null && known.organizations < 2)) return false
    const { requests, errors } = known.lately
    return requests + 1 >= min_requests && errors + 1 > ratio * (requests + 1)
  }
}

/** Records a success at a circuit, and logs when it closes it. */
export function recordSuccess({ circuits, log }: Pick<Services, 'circuits' | 'log'>, at: string, org: string): void {
  const wasClosed = circuits.state(at, org) === 'closed'
  circuits.succeeded(at, org)
  if (!wasClosed && circuits.state(at, org) === 'closed') log.info({ offer: at, organization: org }, 'circuit closed')
}

/** False for a deadline that passed because earlier attempts had used up the time. */
function inTime(
  { target }: CandidateTarget,
  { streaming }: AttemptContext,
  { code, upstreamStatus }: GatewayError,
  ms: number,
): boolean {
  return (
    code !== 'timeout' ||
    upstreamStatus !== 0 ||
    ms >= Math.min(firstEventMs(target.mapping, streaming), target.provider.timeouts.total) - SLACK_MS
  )
}

/** Status of a refusal that may be about one model: the other offers of a credential are still tried. */
const FORBIDDEN = 403
/** How long one of several credentials rests after a 429 that names no time. */
const USUAL_WAIT_MS = 5000
/** Milliseconds by which a timer may fire early. */
const SLACK_MS = 5
/** A first piece is late when it takes so many times as long as usual, and so long at least. */
const LATE_FACTOR = 3
const LATE_MS = 1000

/** Share of its time that a stream may have waited for its client and still be timed. */
const MAX_STALLED_SHARE = 0.05

const isStreamed = ({ target }: CandidateTarget, { streaming }: AttemptContext): boolean =>
  streaming && target.mapping.supports.has('streaming')

type Speeds = Pick<Sample, 'firstTokenMs' | 'tokensPerSecond'>

function speedOf(step: CandidateTarget, answer: EndedAnswer): Speeds {
  const { timings, usage, outcome } = answer
  const streamed = isStreamed(step, answer)
  const ms = (streamed ? timings.end : timings.answered) - timings.sent
  const tokens = usage.completion ?? 0
  const isTimed = outcome === 'ok' && tokens > 0 && ms > 0 && timings.stalled <= MAX_STALLED_SHARE * ms
  return {
    firstTokenMs: streamed ? timings.answered - timings.sent : undefined,
    tokensPerSecond: isTimed ? (1000 * tokens) / ms : undefined,
  }
}

/** As the filter `route` has it by default. */
const POLL_POLICY: CircuitPolicy = { failures: 5, baseMs: 30_000, maxMs: 300_000, jitter: 0.2 }

/** Tracks polls of jobs apart from creates (`pollKeyOf`), so that good polls do not hide failing creates. */
export class PollHealth {
  readonly #services: Pick<Services, 'circuits' | 'log'>

  constructor(services: Pick<Services, 'circuits' | 'log'>) {
    this.#services = services
  }

  /** A poll of an organization's job has ended, with an answer or with `error`. Refused credentials do not count. */
  polled(target: Target, org: string, error?: GatewayError): void {
    const { circuits, log } = this.#services
    const offer = pollKeyOf(target)
    if (error === undefined) recordSuccess(this.#services, offer, org)
    if (error === undefined || classifyFailure(error) !== 'provider') return
    const opened = circuits.failed(offer, POLL_POLICY, org)
    if (!opened) return
    const organization = opened === 'everyone' ? undefined : org
    log.warn({ offer, scope: 'polls', organization, status: error.upstreamStatus }, 'circuit opened')
  }
}
