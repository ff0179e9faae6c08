/**
 * What routing remembers between requests. Every answer is immediate: it is read several times in each request. What
 * several processes measure together, each of them keeps a copy of.
 */

/** How the minutes of the past weigh; the newest of them is the one that runs. */
export interface History {
  /** Minutes that count at all. */
  readonly minutes: number
  /** Of them, the newest, which weigh `newestWeight`, and with them those up to here, which weigh `recentWeight`. */
  readonly newest: number
  readonly recent: number
  readonly newestWeight: number
  readonly recentWeight: number
  readonly restWeight: number
  /** What counts where little was measured: milliseconds to the first token, and tokens per second. */
  readonly usualLatency: number
  readonly usualThroughput: number
}

/** What one attempt showed of the offer that it was made at. */
export interface Sample {
  /** Undefined when it says nothing of the provider: the caller left, or was at fault. */
  readonly ok?: boolean | undefined
  /** Milliseconds from the request to the first piece of a streamed answer. */
  readonly firstTokenMs?: number | undefined
  /** Completion tokens over the whole time of the answer. */
  readonly tokensPerSecond?: number | undefined
}

/** Averages over the weighted minutes; undefined where nothing was measured. */
export interface Measured {
  /** Attempts with a verdict, unweighted. */
  readonly requests: number
  /** Percent. */
  readonly uptime: number | undefined
  /** Milliseconds to the first token. */
  readonly latency: number | undefined
  /** Tokens per second. */
  readonly throughput: number | undefined
  /** Organizations whose attempts have a verdict; those that are not told apart count as one. */
  readonly organizations: number
  /** Attempts, and those that failed, of the minute that runs and the one before it. */
  readonly lately: { readonly requests: number; readonly errors: number }
}

/**
 * How offers have done in the last minutes. Keys name an offer: a mapping, in a region. Each organization sees its own
 * samples, and of others' what at least two of them agree on (docs/contract.md#shares).
 */
export interface Measurements {
  add(offer: string, sample: Sample, org: string): void
  /**
   * As `org` sees it; with null what holds for everybody, which a single organization tells too. Valid until the next
   * call for the same offer; undefined when there is nothing.
   */
  read(offer: string, history: History, org: string | null): Measured | undefined
}

export interface CircuitPolicy {
  /** Failures in a row that open a circuit. */
  readonly failures: number
  /** The first opening lasts so long, the nth in a row n times as long. Milliseconds. */
  readonly baseMs: number
  readonly maxMs: number
  /** Share of an opening that chance may add. */
  readonly jitter: number
}

/** `half-open`: the next attempt is a probe, and until it has ended the circuit is open for all others. */
export type CircuitState = 'closed' | 'open' | 'half-open'

/** For whom a failure opened a circuit: the organization that saw it, or all; undefined when it opened none. */
export type Opened = 'organization' | 'everyone' | undefined

/**
 * Targets that are tried last for a while. Keys name an offer, or an offer with a credential. Each organization has a
 * circuit of its own, and there is one for all, which only what at least two organizations tell opens (docs/contract.md#shares). Null in place of an organization is everybody: of what is read, an organization alone at a target counts too.
 */
export interface Circuits {
  state(key: string, org: string | null): CircuitState
  /** Whether its last attempt failed. */
  failing(key: string, org: string | null): boolean
  /** Milliseconds for which it stays open; 0 when it is not. */
  openMs(key: string, org: string | null): number
  /** An attempt begins; one of `succeeded`, `failed`, `trip` and `left` tells how it ended. */
  begin(key: string, org: string): void
  succeeded(key: string, org: string): void
  failed(key: string, policy: CircuitPolicy, org: string): Opened
  /** Opens it at once, unless it was open already. */
  trip(key: string, policy: CircuitPolicy, org: string | null): Opened
  /** Opens it for so long, because a provider wants that. */
  cool(key: string, ms: number, org: string | null): Opened
  /** The attempt ended without a verdict. */
  left(key: string, org: string): void
}

/** Which offer a session or a model was given, for a while. */
export interface AffinityStore {
  get(key: string): string | undefined
  /** `tenant` is the organization whose share the entry takes. */
  set(key: string, offer: string, ttlMs: number, tenant: string): void
}

/** Why a candidate was put first (docs/contract.md#session-affinity). */
export type Reason =
  /** The model string names the provider. */
  | 'direct-provider-specified'
  /** It does, but the provider is down. */
  | 'low-uptime-fallback'
  | 'single-provider-available'
  | 'session-sticky'
  | 'random-exploration'
  | 'stable-preferred'
  | 'weighted-score'

/** A request as far as routing reads it. */
export interface RouteQuestion {
  readonly model: string
  readonly routing?: 'auto' | 'price' | 'throughput' | 'latency' | undefined
  readonly stream?: boolean | undefined
  /** Tokens. */
  readonly prompt?: number | undefined
  readonly session?: string | undefined
}

export interface ExplainedRoute {
  /** As it was understood: an id, or `auto`. */
  readonly model: string
  readonly reason: Reason
  /** The offer that would be asked first. */
  readonly choice: string
  /** Those that would be asked, in order; then those that the request leaves out, because it names a provider. */
  readonly candidates: readonly ExplainedCandidate[]
  /** Offers of the model that cannot serve the request at all. */
  readonly excluded: readonly { readonly offer: string; readonly reason: string }[]
}

export interface ExplainedCandidate {
  readonly offer: string
  /** From 1; null for one that would not be asked. */
  readonly place: number | null
  /** USD per million tokens, averaged over input and output; or per image. Null when unknown. */
  readonly price: number | null
  readonly priority: number
  /** Attempts that were measured. */
  readonly requests: number
  /** Percent, tokens per second and milliseconds; null for what was not measured, or not often enough. */
  readonly uptime: number | null
  readonly throughput: number | null
  readonly latency: number | null
  readonly circuit: CircuitState
  /** Milliseconds for which its circuit stays open. */
  readonly openMs: number
  /** How much worse than the best, by each measure. */
  readonly terms: Readonly<Record<'price' | 'uptime' | 'throughput' | 'latency' | 'cache', number>>
  /** Mean of the terms, by weight. */
  readonly base: number
  readonly priorityPenalty: number
  readonly uptimePenalty: number
  /** The sum of these three; the lowest is the best. */
  readonly score: number
}
