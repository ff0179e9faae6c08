/** What the operator's side may see and do; `gateway.ts` provides it. */
import type {
  AccountStores,
  ExplainedRoute,
  JobRunner,
  JobStore,
  PolicyAdmin,
  RouteQuestion,
  UsageStore,
} from '../core/ports.ts'
import type { Snapshot } from '../core/snapshot.ts'

export interface GatewayState {
  /** Of the package. */
  readonly version: string
  readonly uptimeMs: number
  readonly pid: number
  /** The public listener, `host:port`. */
  readonly listen: string
  /** Where clients reach it, if that is set. */
  readonly publicUrl?: string | undefined
  /** False while starting and while draining. */
  readonly ready: boolean
  readonly inFlight: number
  /** When there are several; `pid` is of the process that leads them then. */
  readonly workers?: readonly {
    readonly pid: number
    readonly ready: boolean
    readonly inFlight: number
    /** Empty while it starts. */
    readonly configVersion: string
    readonly uptimeMs: number
  }[]
  /** `at` is Unix milliseconds; `error` holds file, line and column. */
  readonly lastReload: { readonly ok: boolean; readonly at: number; readonly error?: string | undefined }
}

export interface AdminContext extends AccountStores {
  snapshot(): Snapshot
  /**
   * Rejects with a message of file, line and column when the new configuration is refused, and the old one stays; or,
   * when a worker does not come along, with what it says.
   */
  reload(): Promise<{ changed: boolean; version: string; restartNeeded: readonly string[] }>
  /** The effective configuration, secrets masked. */
  config(): unknown
  readonly policies: PolicyAdmin
  readonly usage: UsageStore
  readonly jobs: JobStore
  readonly jobRunner: JobRunner
  readonly metrics: { text(): Promise<string>; readonly contentType: string }
  state(): GatewayState | Promise<GatewayState>
  /** Throws what such a request would be told. */
  explainRoute(question: RouteQuestion): ExplainedRoute | Promise<ExplainedRoute>
  /** Starts the drain and returns at once. */
  drain(): void
  /** Throws, with the reason as message, when the database is down. */
  ping(): Promise<void>
}
