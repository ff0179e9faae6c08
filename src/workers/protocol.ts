/** What the primary and its workers ask of each other. */
import type { ModelLists } from '../core/catalog.ts'
import type { ExplainedRoute, RouteQuestion } from '../core/ports.ts'
import type { LoadedModule } from '../core/translator.ts'
import type { AffinityEntry } from '../stores/workers/affinity.ts'
import type { OpenedCircuit } from '../stores/workers/circuits.ts'
import type { Ask, Lease, Unused } from '../stores/workers/lease.ts'
import type { KeptTurn } from '../stores/workers/turns.ts'

/** What a worker is to do. */
export interface WorkerInit {
  /** Path of `gateway.yaml`. */
  readonly config: string
  /** Address of the simulated provider. */
  readonly demo: string
  /** The `ConfigFiles` that the primary runs on: those on disk may be faulty meanwhile. */
  readonly files: unknown
  /** Of its stores: others in the same place would be empty. */
  readonly storesIdentity: string | undefined
  /** The plugins that it has loaded: what their files say now may be faulty, too, or another version. */
  readonly plugins: readonly LoadedModule[]
}

export interface WorkerState {
  readonly pid: number
  /** False while starting and while draining. */
  readonly ready: boolean
  readonly inFlight: number
  readonly configVersion: string
  readonly uptimeMs: number
}

/** Served by every worker. */
export type WorkerCalls = {
  state(asked: null): WorkerState
  /** As prom-client has them. */
  metrics(asked: null): Promise<object[]>
  /** → the version in force. Rejects when the new configuration is refused. */
  reload(asked: null): Promise<string>
  explain(question: RouteQuestion): ExplainedRoute
  /** Gives up what is left over of a key. */
  recall(asked: { key: string; windowMs: number }): Unused | undefined
  affinity(entries: readonly AffinityEntry[]): void
  /** The models that providers list now. */
  found(lists: ModelLists): void
  cool(circuit: OpenedCircuit): void
  drain(asked: null): void
  /** A drain waits for no client any more. */
  abortDrain(asked: null): void
}

/** Served by the primary. */
export type PrimaryCalls = {
  begin(asked: null): WorkerInit
  /** The worker serves, at `host:port`. */
  ready(at: { listen: string; configVersion: string }): void
  /** The worker cannot start, and ends. */
  failed(why: { message: string; code?: string | undefined; port?: number | undefined }): void
  take(ask: Ask): Lease | Promise<Lease>
  giveBack(left: { key: string; windowMs: number; unused: Unused }): void
  enter(place: { key: string; limit: number }): boolean | Promise<boolean>
  leave(key: string): void
  affinity(entries: readonly AffinityEntry[]): void
  cool(circuit: OpenedCircuit): void
  keepTurn(turn: KeptTurn): void
  findTurns(keys: readonly string[]): readonly KeptTurn[]
}
