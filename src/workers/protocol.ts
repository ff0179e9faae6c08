/** Calls between the primary process and its workers. */
import type { ModelLists } from '../core/catalog.ts'
import type { LoadedModule } from '../core/plugin.ts'
import type { ExplainedRoute, PoolState, ProviderHealth, RouteQuestion } from '../core/ports.ts'
import type { AffinityEntry } from '../stores/workers/affinity.ts'
import type { OpenedCircuit } from '../stores/workers/circuits.ts'
import type { LeaseClient, Unused } from '../stores/workers/lease.ts'
import type { KeptTurn } from '../stores/workers/turns.ts'

/** Initial state of a worker. */
export interface WorkerInit {
  /** Path of `gateway.yaml`. */
  readonly config: string
  /** The `ConfigFiles` in force at the primary: those on disk may be invalid by now. */
  readonly files: unknown
  /** Identity of the primary's stores: stores elsewhere would be empty. */
  readonly storesIdentity: string | undefined
  /** Plugins that the primary has loaded: their files may have changed since. */
  readonly plugins: readonly LoadedModule[]
}

/** A worker as `gatewayctl` shows it. */
export interface WorkerState {
  readonly pid: number
  /** False during start and drain. */
  readonly ready: boolean
  readonly inFlight: number
  readonly configVersion: string
  readonly uptimeMs: number
  /** Undefined where the stores have no connections. */
  readonly pools?: readonly PoolState[] | undefined
}

/** Calls that each worker serves. */
export type WorkerCalls = {
  state(argument: null): WorkerState
  /** In prom-client's JSON form. */
  metrics(argument: null): Promise<object[]>
  /** Secrets by reference → the version in force. Rejects when the new configuration is rejected. */
  reload(secrets: Readonly<Record<string, string>>): Promise<string>
  explain(question: RouteQuestion): ExplainedRoute
  health(argument: null): ProviderHealth[]
  /** Returns the unused part of a key's quota to the primary. */
  recall(argument: { key: string; windowMs: number }): Unused | undefined
  affinity(entries: readonly AffinityEntry[]): void
  /** Models that providers list now. */
  found(lists: ModelLists): void
  cool(circuit: OpenedCircuit): void
  drain(argument: null): void
  /** Ends a drain without waiting for clients. */
  abortDrain(argument: null): void
}

/** Calls that the primary serves. Those about leases take one argument each. */
export type PrimaryCalls = Pick<LeaseClient, 'take' | 'peek' | 'leave' | 'reserve' | 'correct'> & {
  begin(argument: null): WorkerInit
  /** The worker serves at `host:port`. */
  ready(at: { listen: string; configVersion: string }): void
  /** The worker cannot start and ends. */
  failed(why: { message: string; code?: string | undefined; port?: number | undefined }): void
  /** Reads the secrets of a provider again; resolves when all workers run with them. */
  renew(provider: string): Promise<void>
  giveBack(left: { key: string; windowMs: number; unused: Unused }): void
  enter(place: { key: string; limit: number }): boolean | Promise<boolean>
  affinity(entries: readonly AffinityEntry[]): void
  cool(circuit: OpenedCircuit): void
  keepTurn(turn: KeptTurn): void
  findTurns(keys: readonly string[]): readonly KeptTurn[]
}
