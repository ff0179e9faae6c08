/** The targets of one request, each at most once, the most promising of those that are left first. */
import type { Target } from '../core/translator.ts'
import { type Candidate, type CandidateTarget, candidateTargetOf } from './candidate.ts'
import { leastLoaded } from './credentials.ts'
import type { OutlierDetector } from './outlier-detector.ts'

/** Which target comes first, and whether another may follow. */
export interface RankedTargets {
  /** The best first; the targets of each as they are to be tried. */
  readonly ranked: readonly { readonly candidate: Candidate; readonly targets: readonly Target[] }[]
  /** False when only the provider of the first attempt may be tried. */
  readonly failover: boolean
  /** Which of several named models each is for, from 0 on; absent where one is named. */
  readonly turns?: ReadonlyMap<Candidate, number> | undefined
}

/** The queue of one exchange; each failure changes the order of what is left. */
export class TargetQueue {
  readonly #outliers: Pick<OutlierDetector, 'state' | 'failing'>
  readonly #org: string | null
  readonly #failover: boolean
  readonly #turns: RankedTargets['turns']
  /** Named models that have had no attempt. */
  readonly #waiting: Set<number>
  /** Whether a candidate has several credentials. */
  #isShared = false
  readonly #takesTurns: boolean
  #left: CandidateTarget[] = []
  /** Candidates that have failed this request, with whichever credential. */
  readonly #failed: Candidate[] = []

  /** `org` is the organization whose measurements count; null is all of them. `takesTurns`: requests are sent. */
  constructor(
    { ranked, failover, turns }: RankedTargets,
    outliers: Pick<OutlierDetector, 'state' | 'failing'>,
    org: string | null,
    takesTurns = false,
  ) {
    this.#takesTurns = takesTurns
    this.#outliers = outliers
    this.#org = org
    this.#failover = failover
    this.#turns = turns
    this.#waiting = new Set(turns?.values())
    for (const { targets } of ranked) {
      if (targets.length > 1) this.#isShared = true
      for (const target of targets) this.#left.push(candidateTargetOf(target))
    }
  }

  /**
   * Targets with an open circuit are tried last, never skipped. `attempts` are left, this one among them: the last of
   * them are for named models that have had none.
   */
  next(attempts = Number.POSITIVE_INFINITY): CandidateTarget | undefined {
    let best: CandidateTarget | undefined
    let least = Number.POSITIVE_INFINITY
    const isScarce = attempts <= this.#waiting.size
    for (const step of this.#left) {
      if (isScarce && !this.#waiting.has(this.#turns!.get(step.candidate)!)) continue
      const doubt = this.#doubt(step)
      if (doubt >= least) continue
      best = step
      least = doubt
      if (doubt === 0) break
    }
    if (best && this.#isShared) best = this.#shared(best, least)
    const provider = best?.target.provider
    this.#keep(step => step !== best && (this.#failover || step.target.provider === provider))
    if (best && this.#turns) this.#waiting.delete(this.#turns.get(best.candidate)!)
    return best
  }

  /** Returns the target that differs from `best` in its credential alone, where it is the turn of that. */
  #shared(best: CandidateTarget, doubt: number): CandidateTarget {
    const { candidate, target, account } = best
    if (account === undefined) return best
    const source = target.credential!.source
    const others = this.#left.filter(
      step =>
        step.candidate === candidate &&
        step.account !== undefined &&
        step.target.credential!.source === source &&
        this.#doubt(step) === doubt,
    )
    return others.length > 1 ? leastLoaded(others, this.#takesTurns) : best
  }

  /** A named model none of whose targets is left waits for none. */
  #keep(isLeft: (step: CandidateTarget) => boolean): void {
    this.#left = this.#left.filter(isLeft)
    for (const turn of this.#waiting) {
      if (!this.#left.some(({ candidate }) => this.#turns!.get(candidate) === turn)) this.#waiting.delete(turn)
    }
  }

  /** Another credential of it will be tried when nothing else is left. */
  failed({ candidate }: CandidateTarget): void {
    this.#failed.push(candidate)
  }

  /** Removes all targets of a candidate that cannot serve this request. */
  excluded({ candidate }: CandidateTarget): void {
    this.#keep(step => step.candidate !== candidate)
  }

  /** Its provider takes no more calls now, whatever the region or the credential. */
  full({ target }: CandidateTarget): void {
    this.#keep(step => step.target.provider !== target.provider)
  }

  /** Whether a target has no recent failures, so that a retry there does not add to an outage. */
  isSound(step: CandidateTarget): boolean {
    const { candidate, key, account } = step
    if (this.#failed.includes(candidate)) return false
    if (account !== undefined && this.#outliers.failing(account, this.#org)) return false
    return !this.#outliers.failing(candidate.key, this.#org) && !this.#outliers.failing(key, this.#org)
  }

  #doubt({ candidate, key, account, polls }: CandidateTarget): number {
    if (this.#failed.includes(candidate)) return 2
    const isOpen = (at: string) => this.#outliers.state(at, this.#org) === 'open'
    if (account !== undefined && isOpen(account)) return 1
    return isOpen(candidate.key) || isOpen(key) || (polls !== undefined && isOpen(polls)) ? 1 : 0
  }
}
