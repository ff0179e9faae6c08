/** What outlives a reload. Filters see these ports, never a database. */
import type { Event } from './event.ts'
import type { Money } from './money.ts'
import type { Usage } from './usage.ts'

/** Who calls: one key of one project of one organization. */
export interface Principal {
  readonly keyId: string
  readonly keyName: string
  readonly kind: 'key' | 'publishable' | 'session'
  readonly projectId: string
  readonly orgId: string
  /** `open`: the balance may fall below zero without bound. `prepaid`: it may not. */
  readonly account: 'open' | 'prepaid'
  readonly archived: boolean
  /** Unix milliseconds. */
  readonly expiresAt: number | undefined
  /** Response caching of the project; undefined while it is off. */
  readonly cacheTtlMs: number | undefined
}

export interface KeyStore {
  /** The live key with this SHA-256 (hex), or undefined. Throws when the store is unavailable. */
  find(hash: string): Principal | undefined | Promise<Principal | undefined>
  /** All-time spend of a key. */
  spent(keyId: string): Promise<Money>
}

export interface HoldRequest {
  /** One for each attempt. */
  readonly id: string
  /** Facts of the row that will settle it; an orphan gets that very row. */
  readonly request: Pick<RequestRow, 'id' | 'requestId' | 'endpoint' | 'requestedModel' | 'model' | 'provider'>
  readonly principal: Principal
  readonly amount: Money
  /** Unix milliseconds; from then on recovery may call the hold an orphan. */
  readonly expiresAt: number
}

/** Money reserved for one attempt. */
export interface Hold {
  readonly id: string
  readonly orgId: string
  readonly amount: Money
}

/** One finished request as it is kept: no content, only facts. */
export interface RequestRow {
  readonly id: string
  readonly requestId: string
  /** Unix milliseconds of arrival. */
  readonly at: number
  readonly orgId: string
  readonly projectId: string
  readonly keyId: string
  readonly endpoint: string
  readonly requestedModel: string
  readonly model: string | null
  readonly provider: string | null
  readonly source: string | null
  readonly status: number
  readonly outcome: 'ok' | 'error' | 'aborted' | 'orphaned'
  readonly errorCode: string | null
  readonly streamed: boolean
  readonly cached: boolean
  readonly attempts: number
  readonly durationMs: number
  readonly ttftMs: number | null
  readonly usage: Usage
  readonly estimated: boolean
  /** Null when the price is unknown. */
  readonly cost: Money | null
}

/** Resolved promises mean durable: the transaction is on disk. Rejects with a GatewayError `billing_unavailable`. */
export interface Ledger {
  /** Reserves atomically. */
  hold(request: HoldRequest): Promise<Hold | 'insufficient'>
  /** Charges `row.cost` and gives the rest of the hold back, once: a second settlement of one hold does nothing. */
  settle(hold: Hold, row: RequestRow): Promise<void>
  void(hold: Hold): Promise<void>
  /** Keeps a row that costs nothing: refused, failed or replayed. */
  record(row: RequestRow): Promise<void>
  balance(orgId: string): Promise<{ balance: Money; held: Money; used: Money }>
  /** Turns open holds of dead owners into orphans; returns how many. */
  recover(): Promise<number>
  /** Resolves when all that was asked before is durable. */
  flush(): Promise<void>
}

export interface UsageQuery {
  readonly orgId?: string | undefined
  readonly projectId?: string | undefined
  readonly keyId?: string | undefined
  /** Unix milliseconds, `from` inclusive, `to` exclusive. */
  readonly from: number
  readonly to: number
}
export type UsageGroup = 'provider' | 'model' | 'app' | 'api_key'
export interface UsageTotals {
  readonly requests: number
  readonly errors: number
  readonly cached: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
  readonly reasoningTokens: number
  readonly cost: Money
}
export interface UsageStore {
  totals(query: UsageQuery): Promise<UsageTotals>
  breakdown(query: UsageQuery, by: UsageGroup): Promise<(UsageTotals & { id: string })[]>
  /** Compares request rows, ledger and aggregates; one sentence for each difference. */
  check(): Promise<string[]>
}

export interface KeyRecord {
  readonly id: string
  readonly name: string
  readonly project: string
  readonly organization: string
  readonly preview: string
  readonly status: 'active' | 'revoked' | 'expired'
  readonly createdAt: string
  readonly expiresAt: string | null
}
/** What `gatewayctl` changes. `project` is an id or a name. */
export interface AccountStore {
  /** On an empty store: the default organization, project and owner. Returns the project's id when it was made. */
  bootstrap(): Promise<string | undefined>
  /** Returns the secret, which is never shown again. */
  createKey(input: {
    project: string
    name: string
    expiresAt?: number | undefined
  }): Promise<KeyRecord & { key: string }>
  listKeys(project?: string): Promise<KeyRecord[]>
  revokeKey(id: string): Promise<KeyRecord>
  rollKey(id: string): Promise<KeyRecord & { key: string }>
}

/** A sliding-window counter. */
export interface Counters {
  /** Takes one unit of `limit` per `windowMs`; a refused unit is not counted. */
  take(key: string, limit: number, windowMs: number): Quota | Promise<Quota>
}
export interface Quota {
  readonly allowed: boolean
  readonly remaining: number
  /** Until the oldest unit leaves the window. */
  readonly resetMs: number
}

export interface CachedReply {
  readonly events: readonly Event[]
  readonly provider: string
  readonly model: string
  readonly externalId: string
}
export interface ReplyCache {
  get(key: string): Promise<CachedReply | undefined> | CachedReply | undefined
  set(key: string, reply: CachedReply, bytes: number, ttlMs: number): Promise<void> | void
}

/** Closed label sets only: endpoint, provider, model, outcome, kind, filter, code. */
export interface Metrics {
  request(
    labels: { endpoint: string; provider: string; model: string; outcome: string },
    at: {
      seconds: number
      firstTokenSeconds?: number | undefined
      overheadSeconds?: number | undefined
    },
  ): void
  tokens(provider: string, model: string, kind: string, count: number): void
  cost(provider: string, model: string, usd: number): void
  attempt(provider: string, model: string, outcome: string): void
  refusal(filter: string, code: string): void
  inFlight(delta: 1 | -1): void
  unpriced(provider: string, model: string): void
}

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Recent delay of the event loop in milliseconds, for admission. */
export interface Load {
  lagMs(): number
}

/** A store that can be asked whether it works. Throws, with the reason as message, when it does not. */
export interface Probe {
  ping(): void | Promise<void>
}

export interface Services {
  /** Of the product, as the health record shows it. */
  readonly version: string
  readonly database: Probe
  /** Undefined while no Redis is configured. */
  readonly redis: Probe | undefined
  readonly keys: KeyStore
  readonly ledger: Ledger
  readonly counters: Counters
  readonly cache: ReplyCache
  readonly metrics: Metrics
  readonly log: Log
  readonly load: Load
  /** Wall clock, Unix milliseconds. */
  now(): number
}
