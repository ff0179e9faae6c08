/** Circuit breakers of one process: one per organization, and one for all. Only targets with failures take memory. */
import type { CircuitPolicy, CircuitState, Circuits, Opened } from '../../core/ports.ts'
import { MINUTE_MS } from '../../lib/period.ts'
import { Circuit } from './circuit.ts'
import { FairEntries } from './fair-entries.ts'

/** Circuits of all organizations together; they share them. */
const MAX_CIRCUITS = 10_000
/** Maximum weight of one organization toward opening the circuit for all, which takes 1. */
const MAX_SHARE = 1 / 2
/** Tolerance for rounding in sums of shares. */
const EPSILON = 1e-9
/** Reports older than this do not count. */
const REPORT_MS = 5 * MINUTE_MS

/** Clock and chance, which tests replace. */
export interface CircuitClock {
  /** Milliseconds, monotonic. */
  readonly now?: () => number
  /** From 0 to below 1. */
  readonly random?: () => number
}

/** State of an offer, or of a credential at it. */
class Trouble {
  readonly own = new Map<string, Circuit>()
  all: Circuit | undefined = undefined
  /** An organization without state here was answered, so that those in `own` are not the only ones. */
  answersOthers = false
  /** Failures reported by organizations since the last success of any. */
  readonly reports = new Map<string, { readonly share: number; readonly at: number }>()
}

/** Circuits by target key: failures of one organization open its own, those of several the one for all. */
export class MemoryCircuits implements Circuits {
  readonly #now: () => number
  readonly #random: () => number
  readonly #troubles = new Map<string, Trouble>()
  /** Bounds the circuits of organizations. */
  readonly #bound: FairEntries<{ readonly key: string; readonly org: string }>

  constructor({ now = () => performance.now(), random = Math.random }: CircuitClock = {}) {
    this.#now = now
    this.#random = random
    this.#bound = new FairEntries({ limit: MAX_CIRCUITS, now, left: ({ key, org }) => this.#forget(key, org) })
  }

  state(key: string, org: string | null = null): CircuitState {
    const trouble = this.#troubles.get(key)
    if (!trouble) return 'closed'
    const now = this.#now()
    const all = trouble.all?.state(now) ?? 'closed'
    const own = ownOf(trouble, org)?.state(now) ?? 'closed'
    if (all === 'open' || own === 'open') return 'open'
    return all === 'closed' ? own : all
  }

  failing(key: string, org: string | null = null): boolean {
    const trouble = this.#troubles.get(key)
    return trouble !== undefined && (trouble.all?.broken === true || ownOf(trouble, org)?.failing === true)
  }

  openMs(key: string, org: string | null = null): number {
    const trouble = this.#troubles.get(key)
    if (!trouble) return 0
    const now = this.#now()
    return Math.max(trouble.all?.openMs(now) ?? 0, ownOf(trouble, org)?.openMs(now) ?? 0)
  }

  begin(key: string, org = ''): void {
    const trouble = this.#troubles.get(key)
    if (!trouble) return
    const now = this.#now()
    trouble.all?.begin(now)
    trouble.own.get(org)?.begin(now)
  }

  succeeded(key: string, org = ''): void {
    const trouble = this.#troubles.get(key)
    if (!trouble) return
    const now = this.#now()
    trouble.reports.clear()
    trouble.all?.succeeded(now)
    const own = trouble.own.get(org)
    if (!own) trouble.answersOthers = true
    own?.succeeded(now)
    if (own?.sound) this.#bound.delete(boundKey(key, org))
    else this.#drop(key, trouble)
  }

  failed(key: string, policy: CircuitPolicy, org = ''): Opened {
    const now = this.#now()
    const trouble = this.#of(key)
    const own = this.#ownOf(trouble, key, org)
    const opened = own.failed(now, policy, this.#random())
    const share = own.isOpen(now) ? MAX_SHARE : 1 / policy.failures
    return this.#everyone(trouble, org, share, now, policy) ?? (opened ? 'organization' : undefined)
  }

  trip(key: string, policy: CircuitPolicy, org: string | null = ''): Opened {
    const now = this.#now()
    const trouble = this.#of(key)
    if (org === null) return allOf(trouble).trip(now, policy, this.#random()) ? 'everyone' : undefined
    const opened = this.#ownOf(trouble, key, org).trip(now, policy, this.#random())
    return this.#everyone(trouble, org, MAX_SHARE, now, policy) ?? (opened ? 'organization' : undefined)
  }

  cool(key: string, ms: number, org: string | null = ''): Opened {
    const now = this.#now()
    const trouble = this.#of(key)
    if (org !== null) this.#ownOf(trouble, key, org).cool(now, ms)
    if (org !== null && !this.#convinces(trouble, org, MAX_SHARE, now)) return 'organization'
    const all = allOf(trouble)
    all.cool(now, ms)
    if (org !== null) all.openedBy = org
    return 'everyone'
  }

  left(key: string, org = ''): void {
    const trouble = this.#troubles.get(key)
    trouble?.all?.left()
    trouble?.own.get(org)?.left()
  }

  #everyone(trouble: Trouble, org: string, share: number, now: number, policy: CircuitPolicy): Opened {
    if (!this.#convinces(trouble, org, share, now)) return undefined
    const all = allOf(trouble)
    all.trip(now, policy, this.#random())
    all.openedBy = org
    return 'everyone'
  }

  /**
   * Whether a report opens the circuit for all: together with the reports of others; or, of a probe, when another
   * organization reported the failure before.
   */
  #convinces({ all, reports }: Trouble, org: string, share: number, now: number): boolean {
    if (all?.broken) return !all.isOpen(now) && all.openedBy !== org
    reports.set(org, { share: Math.min(MAX_SHARE, (reports.get(org)?.share ?? 0) + share), at: now })
    let sum = 0
    for (const [other, { share, at }] of reports) {
      if (now - at > REPORT_MS) reports.delete(other)
      else sum += share
    }
    if (sum < 1 - EPSILON) return false
    reports.clear()
    return true
  }

  #of(key: string): Trouble {
    let trouble = this.#troubles.get(key)
    if (!trouble) {
      trouble = new Trouble()
      this.#troubles.set(key, trouble)
    }
    return trouble
  }

  #ownOf({ own }: Trouble, key: string, org: string): Circuit {
    let circuit = own.get(org)
    if (!circuit) {
      circuit = new Circuit()
      own.set(org, circuit)
      this.#bound.set(org, boundKey(key, org), { key, org }, 1, Number.POSITIVE_INFINITY)
    }
    return circuit
  }

  #forget(key: string, org: string): void {
    const trouble = this.#troubles.get(key)
    trouble?.own.delete(org)
    if (trouble) this.#drop(key, trouble)
  }

  #drop(key: string, { own, all }: Trouble): void {
    if (own.size === 0 && !all?.broken) this.#troubles.delete(key)
  }
}

const boundKey = (key: string, org: string): string => `${org} ${key}`

function allOf(trouble: Trouble): Circuit {
  trouble.all ??= new Circuit()
  return trouble.all
}

/** An organization's own circuit; for null, that of the only organization that uses the target. */
function ownOf({ own, answersOthers }: Trouble, org: string | null): Circuit | undefined {
  if (org !== null) return own.get(org)
  const [only] = own.size === 1 && !answersOthers ? own.values() : []
  return only
}
