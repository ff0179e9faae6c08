/** The targets of one request, each at most once, the most promising of those that are left first. */
import type { Target } from '../core/translator.ts'
import { type Candidate, type CandidateTarget, candidateTargetOf } from './candidate.ts'
import type { OutlierDetector } from './outlier-detector.ts'
import { ownFirst } from './policy.ts'

/** Which target comes first, and whether another may follow. */
export interface RankedTargets {
  /** The best first; the targets of each as they are to be tried. */
  readonly ranked: readonly { readonly candidate: Candidate; readonly targets: readonly Target[] }[]
  /** False when only the provider of the first attempt may be tried. */
  readonly failover: boolean
}

export class TargetQueue {
  readonly #outliers: Pick<OutlierDetector, 'state' | 'failing'>
  readonly #org: string | null
  readonly #failover: boolean
  #left: CandidateTarget[] = []
  /** Candidates that have failed this request, with whichever credential. */
  readonly #failed: Candidate[] = []

  /** `org` is the organization whose measurements count; null is all of them. */
  constructor(
    { ranked, failover }: RankedTargets,
    outliers: Pick<OutlierDetector, 'state' | 'failing'>,
    org: string | null,
  ) {
    this.#outliers = outliers
    this.#org = org
    this.#failover = failover
    for (const { targets } of ownFirst(ranked)) for (const target of targets) this.#left.push(candidateTargetOf(target))
  }

  /** Targets with an open circuit are tried last, never skipped. */
  next(): CandidateTarget | undefined {
    let best: CandidateTarget | undefined
    let least = Number.POSITIVE_INFINITY
    for (const step of this.#left) {
      const doubt = this.#doubt(step)
      if (doubt >= least) continue
      best = step
      least = doubt
      if (doubt === 0) break
    }
    const provider = best?.target.provider
    this.#left = this.#left.filter(step => step !== best && (this.#failover || step.target.provider === provider))
    return best
  }

  /** Another credential of it will be tried when nothing else is left. */
  failed({ candidate }: CandidateTarget): void {
    this.#failed.push(candidate)
  }

  /** Removes all targets of a candidate that cannot serve this request. */
  excluded({ candidate }: CandidateTarget): void {
    this.#left = this.#left.filter(step => step.candidate !== candidate)
  }

  /** Its provider takes no more calls now, whatever the region or the credential. */
  full({ target }: CandidateTarget): void {
    this.#left = this.#left.filter(step => step.target.provider !== target.provider)
  }

  /** Whether a target has no recent failures, so that a retry there does not add to an outage. */
  isSound(step: CandidateTarget): boolean {
    const { candidate, key } = step
    if (this.#failed.includes(candidate)) return false
    return !this.#outliers.failing(candidate.key, this.#org) && !this.#outliers.failing(key, this.#org)
  }

  #doubt({ candidate, key }: CandidateTarget): number {
    if (this.#failed.includes(candidate)) return 2
    const isOpen = (at: string) => this.#outliers.state(at, this.#org) === 'open'
    return isOpen(candidate.key) || isOpen(key) ? 1 : 0
  }
}
