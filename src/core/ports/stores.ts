/** All stores of a node, as whatever keeps them opens them: `src/stores/open.ts` chooses which that is. */
import type { AlertStore } from '../../limits/alerts.ts'
import type { Money } from '../money.ts'
import type { AccountStores } from './accounts.ts'
import type { ContentStore } from './contents.ts'
import type { JobStore } from './jobs.ts'
import type { IssuerKeyStore, KeyStore, RealtimeSecretStore, SessionStore } from './keys.ts'
import type { Ledger } from './ledger.ts'
import type { OAuthStores } from './oauth.ts'
import type { PolicyStores } from './policies.ts'
import type { ReportStore } from './reports.ts'
import type { ResponseStore } from './responses.ts'
import type { RequestLogStore, UsageStore } from './usage.ts'

/** The stores cannot be opened or written. The message names what they are kept in, and what to do about it. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
}

/** Whether a store works. Rejects, with the reason as message, when it does not. */
export interface Probe {
  ping(): Promise<void>
}

/** Removes what has been stored for long enough. */
export interface RetentionStore {
  /** Drops rows of requests that arrived before this time, Unix milliseconds, some at a time; returns how many. */
  prune(before: number): Promise<number>
}

/** State of a process as its heartbeats report it. */
export interface NodeReport {
  /** Address of its public listener. */
  readonly address: string
  readonly inFlight: number
  readonly draining: boolean
}

/** A process that serves with these stores. */
export interface NodeState {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly version: string
  /** Unix milliseconds, by the clock of the stores. */
  readonly startedAt: number
  readonly seenAt: number
  /** `silent`: several heartbeats are missing. */
  readonly state: 'live' | 'silent' | 'draining'
  readonly inFlight: number
  /** Null where the node runs an earlier version. */
  readonly address: string | null
}

/** Connections of this process to the stores. */
export interface PoolState {
  readonly name: string
  readonly inUse: number
  readonly most: number
  /** Callers that wait for a connection. */
  readonly waiting: number
}

/** The processes of stores that several machines share. */
export interface NodeStore {
  list(): Promise<readonly NodeState[]>
  /** Tells at once, and with each heartbeat from now on, what `read` returns. */
  report(read: () => NodeReport | Promise<NodeReport>): Promise<void>
  pools(): readonly PoolState[]
}

/** `ping` rejects when the stores cannot be read, or could not be written the last time. */
export interface Stores extends Probe, AccountStores {
  readonly policies: PolicyStores
  readonly keys: KeyStore
  readonly issuerKeys: IssuerKeyStore
  readonly sessions: SessionStore
  readonly oauth: OAuthStores
  readonly ledger: Ledger
  readonly jobs: JobStore
  readonly alerts: AlertStore
  readonly responses: ResponseStore
  readonly contents: ContentStore
  readonly realtimeSecrets: RealtimeSecretStore
  readonly usage: UsageStore
  readonly reports: ReportStore
  readonly requests: RequestLogStore
  readonly retention: RetentionStore
  /** Undefined where one machine has the stores. */
  readonly nodes: NodeStore | undefined
  /**
   * Which stores these are: the same in every process that works on them, another one where an empty copy has taken
   * their place. Undefined for stores that no other process can open.
   */
  readonly identity: string | undefined
  /** Returns how many processes work on these stores now, this one included. Rejects when that cannot be read. */
  living(): Promise<number>
  /** Drops what is cached of keys and policies: another process has changed some. */
  refresh(): void
  /** Returns the total by which balances with a floor of zero have fallen below it. Rejects when it cannot be read. */
  overdraft(): Promise<Money>
  /** Resolves when every earlier write is durable and everything is closed. */
  close(): Promise<void>
}
