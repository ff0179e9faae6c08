/**
 * Routing state that outlives requests. All methods are synchronous, since each request calls several. Every process
 * keeps its own copy of shared measurements.
 */

/** How the minutes of the past weigh; the newest of them is the one that runs. */
export interface History {
  /** Minutes that count at all. */
  readonly minutes: number
  /**
   * Number of the newest samples, which weigh `newestWeight`. Samples after them, up to `recent`, weigh `recentWeight`.
   */
  readonly newest: number
  readonly recent: number
  readonly newestWeight: number
  readonly recentWeight: number
  readonly restWeight: number
  /** Assumed values when little was measured: milliseconds to the first token, and tokens per second. */
  readonly usualLatency: number
  readonly usualThroughput: number
}

/** Measurement of one attempt at an offer. */
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
  /** Organizations with counted attempts; unidentified ones count as one. */
  readonly organizations: number
  /** Attempts, and those that failed, of the minute that runs and the one before it. */
  readonly lately: { readonly requests: number; readonly errors: number }
}

/**
 * Measurements of offers over the last minutes. A key names a mapping in a region. Each organization sees its own
 * samples, and others' where at least two organizations agree (docs/contract.md#shares).
 */
export interface Measurements {
  add(offer: string, sample: Sample, org: string): void
  /**
   * Measurements for `org`; null reads those of all organizations, even of a single one. The object is valid until the
   * next call for the same offer. Undefined without samples.
   */
  read(offer: string, history: History, org: string | null): Measured | undefined
}

/** When a circuit opens, and for how long. */
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

/** Scope of the circuit that a failure opened: one organization, or all; undefined when none opened. */
export type Opened = 'organization' | 'everyone' | undefined

/**
 * Targets with an open circuit are tried last. Keys name an offer, or an offer with a credential. Each organization has
 * its own circuit; the circuit for all opens when at least two organizations see failures (docs/contract.md#shares).
 * Null reads or writes the circuit for all, which a single organization opens while it alone uses the target.
 */
export interface Circuits {
  state(key: string, org: string | null): CircuitState
  /** Whether its last attempt failed. */
  failing(key: string, org: string | null): boolean
  /** Milliseconds for which it stays open; 0 when it is not. */
  openMs(key: string, org: string | null): number
  /** Begins an attempt, which one of `succeeded`, `failed`, `trip` and `left` must end. */
  begin(key: string, org: string): void
  succeeded(key: string, org: string): void
  failed(key: string, policy: CircuitPolicy, org: string): Opened
  /** Opens it at once, unless it was open already. */
  trip(key: string, policy: CircuitPolicy, org: string | null): Opened
  /** Opens the circuit for the time that a provider's error names. */
  cool(key: string, ms: number, org: string | null): Opened
  /** The attempt ended without a verdict. */
  left(key: string, org: string): void
}

/** A circuit as all organizations together see it. */
export interface CircuitHealth {
  readonly circuit: CircuitState
  /** Milliseconds for which it stays open. */
  readonly openMs: number
}

/**
 * `no answer`: it is to list its models and has listed none. `credential failing`: each of its credentials was refused or
 * throttled. `failing`, `degraded`: the circuits of all its offers, or of some, are open.
 */
export type ProviderState = 'live' | 'degraded' | 'failing' | 'credential failing' | 'no credential' | 'no answer'

/** Circuit of a credential; a name and a weight where a provider has several. */
interface CredentialHealth extends CircuitHealth {
  readonly fingerprint: string
  readonly name?: string | undefined
  readonly weight?: number | undefined
}

/** Health of one provider: `gatewayctl providers health`. */
export interface ProviderHealth {
  readonly id: string
  readonly status: ProviderState
  /** Each with the worst circuit that it has at any offer. */
  readonly credentials: readonly (CredentialHealth & { readonly source: string })[]
  /** Number of offers. */
  readonly offers: number
  /** Offers, and polls of offers, whose circuit is not closed. */
  readonly broken: readonly (CircuitHealth & { readonly offer: string })[]
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
  /** `provider.order` of the request names it. */
  | 'provider-order'
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
  /** Ids or names of its caller, and tags as the header has them, for conditions. */
  readonly org?: string | undefined
  readonly project?: string | undefined
  readonly key?: string | undefined
  readonly tags?: string | undefined
  /** Whether the request holds an image, or offers tools. */
  readonly vision?: boolean | undefined
  readonly tools?: boolean | undefined
}

/** Where a request would go, and why: `gatewayctl route explain`. */
export interface ExplainedRoute {
  /** As it was understood: an id, or `auto`. */
  readonly model: string
  /** Name of the rule that applies, and where it sends copies. */
  readonly rule?: string | undefined
  readonly mirror?: { readonly to: string; readonly percent: number } | undefined
  readonly reason: Reason
  /** The offer that would be tried first. */
  readonly choice: string
  /** Candidates in the order of attempts, then those that the request excludes by naming a provider. */
  readonly candidates: readonly ExplainedCandidate[]
  /** Offers of the model that cannot serve the request at all. */
  readonly excluded: readonly { readonly offer: string; readonly reason: string }[]
}

/** A candidate with all that its place depends on. */
export interface ExplainedCandidate {
  readonly offer: string
  /** Undefined for an offer with one credential. */
  readonly credentials?: readonly CredentialHealth[] | undefined
  /** From 1; null for a candidate that would not be tried. */
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
  /** Circuit of polls; null for a candidate that creates no jobs. */
  readonly polls: { readonly circuit: CircuitState; readonly openMs: number } | null
  /** How much worse than the best, by each measure. */
  readonly terms: Readonly<Record<'price' | 'uptime' | 'throughput' | 'latency' | 'cache', number>>
  /** Mean of the terms, by weight. */
  readonly base: number
  readonly priorityPenalty: number
  readonly uptimePenalty: number
  /** The sum of these three; the lowest is the best. */
  readonly score: number
}
