/** Tracks polls of jobs apart from creates, so that good polls do not hide failing creates. */

import type { CircuitPolicy, Services } from '../core/ports.ts'
import type { Target } from '../core/translator.ts'
import type { GatewayError } from '../lib/error.ts'
import { pollKeyOf } from './candidate.ts'
import { classifyFailure } from './failure-class.ts'
import { recordSuccess } from './health.ts'

/** As the filter `route` has it by default. */
const POLICY: CircuitPolicy = { failures: 5, baseMs: 30_000, maxMs: 300_000, jitter: 0.2 }

/** The circuits of polls, under keys of their own (`pollKeyOf`). */
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
    const opened = circuits.failed(offer, POLICY, org)
    if (!opened) return
    const organization = opened === 'everyone' ? undefined : org
    log.warn({ offer, scope: 'polls', organization, status: error.upstreamStatus }, 'circuit opened')
  }
}
