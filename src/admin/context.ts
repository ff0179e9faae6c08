/** The ports of the admin listener; `gateway.ts` implements them. */
import type {
  AccountStores,
  ContentStore,
  ExplainedRoute,
  JobRunner,
  JobStore,
  NodeStore,
  OAuthStores,
  PolicyAdmin,
  PoolState,
  Probe,
  ProviderHealth,
  RequestLogStore,
  RouteQuestion,
  UsageStore,
} from '../core/ports.ts'
import type { Snapshot } from '../core/snapshot.ts'

/** The state of the process, or of all processes together. */
interface GatewayState {
  /** Version of the package. */
  readonly version: string
  readonly uptimeMs: number
  readonly pid: number
  /** The public listener, `host:port`. */
  readonly listen: string
  /** Address for clients, if configured. */
  readonly publicUrl?: string | undefined
  /** False during start and drain. */
  readonly ready: boolean
  readonly inFlight: number
  /** The serving workers, when there are several; `pid` is then that of the primary. */
  readonly workers?: readonly {
    readonly pid: number
    readonly ready: boolean
    readonly inFlight: number
    /** Empty during its start. */
    readonly configVersion: string
    readonly uptimeMs: number
    readonly pools?: readonly PoolState[] | undefined
  }[]
  /** Connections of all its processes, where several machines share the stores. */
  readonly pools?: readonly PoolState[] | undefined
  /** `at` is Unix milliseconds; `error` and `warnings` include file, line and column. */
  readonly lastReload: {
    readonly ok: boolean
    readonly at: number
    readonly error?: string | undefined
    readonly warnings?: readonly string[] | undefined
  }
}

/** Services for commands and routes of the admin listener. */
export interface AdminContext extends AccountStores {
  snapshot(): Snapshot
  /**
   * Rejects with file, line and column when the new configuration is rejected, which keeps the old one; or with the
   * error of a worker that failed to load it.
   */
  reload(): Promise<{
    changed: boolean
    version: string
    restartNeeded: readonly string[]
    warnings: readonly string[]
  }>
  /** The effective configuration, secrets masked. */
  config(): unknown
  /** References of the configuration to commands and secret managers, each once. */
  references(): readonly string[]
  readonly policies: PolicyAdmin
  readonly usage: UsageStore
  readonly requests: RequestLogStore
  readonly contents: ContentStore
  readonly oauth: OAuthStores
  readonly jobs: JobStore
  readonly jobRunner: JobRunner
  readonly metrics: { text(): Promise<string>; readonly contentType: string }
  state(): GatewayState | Promise<GatewayState>
  /** Throws the error that such a request would get. */
  explainRoute(question: RouteQuestion): ExplainedRoute | Promise<ExplainedRoute>
  /** Every provider of the configuration, in its order. */
  providerHealth(): readonly ProviderHealth[] | Promise<readonly ProviderHealth[]>
  /** Starts the drain and returns at once. */
  drain(): void
  /** Rejects with the reason when the database is down. */
  ping(): Promise<void>
  /** Undefined where the stores are those of one machine. */
  readonly nodes?: NodeStore | undefined
  /** Undefined where no Redis is configured. */
  readonly redis?: (Probe & { readonly nodes: number }) | undefined
}
