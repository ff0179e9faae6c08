/** Shares requests out among credentials of one provider: by limits per minute, weight, and how many each serves now. */

import type { Counters, Reservation } from '../core/ports.ts'
import type { Credential } from '../core/provider-settings.ts'
import { errors } from '../lib/error.ts'
import { perObject } from '../lib/per-object.ts'
import { windowKinds } from '../limits/kinds.ts'
import type { CandidateTarget } from './candidate.ts'

/** Tolerance for rounding in sums of shares. */
const EPSILON = 1e-9
/** Turns that a credential can save up, or owe. */
const MAX_TURNS = 2

class Load {
  /** Requests that it serves now. */
  running = 0
  /** Its part of the requests until now, less those that it has served. */
  turn = 0
}

const loadOf = perObject((_: Credential) => new Load())

/** Counts a request that begins (1) or ends (-1), where its provider has several credentials. */
export function countRunning({ target: { credential } }: CandidateTarget, change: 1 | -1): void {
  if (credential?.weight !== undefined) loadOf(credential).running += change
}

const weightOf = ({ target }: CandidateTarget): number => target.credential?.weight ?? 1

/**
 * Returns the one of several targets whose turn it is: none serves more than its share of what runs. `takesTurn`: a
 * request is about to be sent.
 */
export function leastLoaded(steps: readonly CandidateTarget[], takesTurn: boolean): CandidateTarget {
  const known = steps.map(step => ({ step, weight: weightOf(step), load: loadOf(step.target.credential!) }))
  const weights = known.reduce((sum, { weight }) => sum + weight, 0)
  const running = known.reduce((sum, { load }) => sum + load.running, 1)
  let best = known[0]!
  let most = Number.NEGATIVE_INFINITY
  for (const one of known) {
    const share = one.weight / weights
    if (one.load.running + 1 > Math.ceil(share * running - EPSILON)) continue
    const turn = one.load.turn + share
    if (turn <= most + EPSILON) continue
    best = one
    most = turn
  }
  if (takesTurn) {
    for (const { load, weight } of known) load.turn = Math.min(MAX_TURNS, load.turn + weight / weights)
    best.load.turn = Math.max(-MAX_TURNS, best.load.turn - 1)
  }
  return best.step
}

/** Units that a request has taken from the limits of its credential. */
export class CredentialUse {
  readonly #requests: Reservation | undefined
  readonly #tokens: Reservation | undefined

  constructor(requests: Reservation | undefined, tokens: Reservation | undefined) {
    this.#requests = requests
    this.#tokens = tokens
  }

  /** Sets right how many tokens were taken; undefined where the request was not sent. */
  async end(tokens: number | undefined): Promise<void> {
    if (tokens === undefined) await this.#requests?.correct(0)
    await this.#tokens?.correct(tokens ?? 0)
  }
}

/** Takes a request and its estimated tokens. Rejects with an error that may fail over, and takes nothing then. */
export async function takeFrom({ id, limits }: Credential, tokens: number, counters: Counters): Promise<CredentialUse> {
  const { rpm, tpm } = limits!
  const take = async (kind: 'rpm' | 'tpm', limit: number | undefined, units: number) =>
    limit === undefined
      ? undefined
      : counters.reserve(`credential ${id} ${kind}`, limit, windowKinds[kind].windowMs, Math.min(units, limit))
  const requests = await take('rpm', rpm, 1)
  if (requests?.allowed === false) throw overLimit(requests)
  const reserved = await take('tpm', tpm, tokens)
  if (reserved?.allowed === false) {
    await requests?.correct(0)
    throw overLimit(reserved)
  }
  return new CredentialUse(requests, reserved)
}

const overLimit = ({ resetMs }: Reservation) => errors.credentialLimited(resetMs)
