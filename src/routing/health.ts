/** What attempts teach of providers and credentials, each apart from the other. */
import { firstEventMs } from '../core/catalog.ts'
import type { GatewayError } from '../core/error.ts'
import type { Exchange } from '../core/exchange.ts'
import type { CircuitPolicy, History, Sample, Services } from '../core/ports.ts'
import type { Step } from './candidate.ts'
import { circuitPolicyOf, historyOf, type Settings } from './settings.ts'
import { type Standing, standingOf } from './standing.ts'
import { type Blame, blame } from './verdict.ts'

export class Health {
  readonly #services: Pick<Services, 'measurements' | 'circuits' | 'log'>
  readonly #settings: Settings
  readonly #policy: CircuitPolicy
  readonly #history: History
  readonly #standing: Standing

  constructor(settings: Settings, services: Pick<Services, 'measurements' | 'circuits' | 'log'>) {
    this.#services = services
    this.#settings = settings
    this.#policy = circuitPolicyOf(settings)
    this.#history = historyOf(settings)
    this.#standing = standingOf(services.circuits)
  }

  /** Gives back when its answer is due, which `gaveUp` wants to know. */
  began(step: Step, ex: Exchange): number {
    const { candidate, key } = step
    this.#services.circuits.begin(candidate.key)
    this.#services.circuits.begin(key)
    return isStreamed(step, ex) ? this.#standing.began(candidate.key, this.#patience(candidate.key)) : 0
  }

  /** Nobody waits any more for the answer of an attempt. */
  gaveUp({ candidate }: Step, due: number): void {
    this.#standing.ended(candidate.key, due)
  }

  /** An answer has begun: enough of a probe. Failures are forgotten when it is whole, which `ended` tells. */
  answered({ candidate, key }: Step): void {
    const { circuits } = this.#services
    this.#standing.answered(candidate.key)
    for (const at of [candidate.key, key]) if (circuits.state(at) !== 'closed') circuits.succeeded(at)
  }

  /** There was no answer, and that speaks against nobody. */
  left({ candidate, key }: Step): void {
    this.#services.circuits.left(candidate.key)
    this.#services.circuits.left(key)
  }

  /** There was no answer. `ms` is how long the provider was waited for. */
  failed(step: Step, ex: Exchange, error: GatewayError, ms: number): Blame {
    const whose = inTime(step, ex, error, ms) ? blame(error) : 'none'
    this.#judge(step, whose, error)
    if (whose === 'provider') this.#services.measurements.add(step.candidate.key, { ok: false })
    return whose
  }

  /** An answer has ended, well or not. A caller that left, or that ran out of time by itself, speaks against nobody. */
  ended(step: Step, ex: Exchange): void {
    const { failure, outcome, marks } = ex
    const late = marks.end - marks.read >= step.target.provider.timeouts.total - SLACK_MS
    const whose = outcome === 'error' && failure && !late ? blame(failure) : 'none'
    if (whose !== 'none') this.#judge(step, whose, failure!)
    else for (const at of [step.candidate.key, step.key]) this.#services.circuits.succeeded(at)
    const ok = outcome === 'ok' ? true : whose === 'provider' ? false : undefined
    this.#services.measurements.add(step.candidate.key, { ok, ...speedOf(step, ex) })
  }

  #judge(step: Step, whose: Blame, { retryAfterMs, upstreamStatus }: GatewayError): void {
    const { circuits, log } = this.#services
    const { candidate, key } = step
    const at = whose === 'provider' ? candidate.key : key
    this.left(step)
    if (whose === 'none') return
    const policy = this.#policy
    const opened =
      whose === 'credential' || (whose === 'provider' && this.#isBreaking(candidate.key))
        ? circuits.trip(at, policy)
        : circuits.failed(at, policy)
    if (retryAfterMs !== undefined) circuits.cool(at, Math.min(retryAfterMs, policy.maxMs))
    if (opened) {
      const what = whose === 'provider' ? 'a provider' : 'a credential'
      log.warn({ offer: at, status: upstreamStatus }, `${what} that fails is left alone for a while`)
    }
  }

  /** Milliseconds after which the first piece of a stream is late, by what is usual. */
  #patience(key: string): number {
    const usual = this.#services.measurements.read(key, this.#history)?.latency
    return Math.max(LATE_MS, LATE_FACTOR * (usual ?? this.#settings.thresholds.default_latency))
  }

  /** Too large a share of the last minute's attempts failed; the one that is judged is not counted yet. */
  #isBreaking(key: string): boolean {
    const { ratio, min_requests } = this.#settings.circuit
    const lately = this.#services.measurements.read(key, this.#history)?.lately
    return (
      lately !== undefined && lately.requests + 1 >= min_requests && lately.errors + 1 > ratio * (lately.requests + 1)
    )
  }
}

/** False for a deadline that passed because earlier attempts had used up the time. */
function inTime(
  { target }: Step,
  { streaming }: Exchange,
  { code, upstreamStatus }: GatewayError,
  ms: number,
): boolean {
  return (
    code !== 'timeout' ||
    upstreamStatus !== 0 ||
    ms >= Math.min(firstEventMs(target.mapping, streaming), target.provider.timeouts.total) - SLACK_MS
  )
}

/** What a timer may fire early. */
const SLACK_MS = 5
/** A first piece is late when it takes so many times as long as usual, and so long at least. */
const LATE_FACTOR = 3
const LATE_MS = 1000

const isStreamed = ({ target }: Step, { streaming }: Exchange): boolean =>
  streaming && target.mapping.supports.has('streaming')

function speedOf(step: Step, ex: Exchange): Pick<Sample, 'firstTokenMs' | 'tokensPerSecond'> {
  const { marks, usage, outcome } = ex
  const streamed = isStreamed(step, ex)
  const seconds = ((streamed ? marks.end : marks.answered) - marks.sent) / 1000
  const tokens = usage.completion ?? 0
  return {
    firstTokenMs: streamed ? marks.answered - marks.sent : undefined,
    tokensPerSecond: outcome === 'ok' && tokens > 0 && seconds > 0 ? tokens / seconds : undefined,
  }
}
