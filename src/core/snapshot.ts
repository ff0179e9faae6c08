/** Everything that is derived from configuration files: immutable, replaced by one assignment. */
import type { Router } from '../lib/router.ts'
import type { Catalog } from './catalog.ts'
import type { Chain } from './chain.ts'
import type { Endpoint } from './endpoint.ts'
import type { McpOptions } from './mcp.ts'
import type { Plans } from './plan.ts'
import type { EndUserOptions } from './policy.ts'
import type { RealtimeOptions } from './realtime.ts'

/** An endpoint with the chain that was compiled for it. */
export interface Route {
  readonly endpoint: Endpoint
  readonly chain: Chain
  /** Effective `compat` options of the endpoint's codec, with defaults; shown by `gatewayctl explain`. */
  readonly compat?: unknown
}

/** One configuration in force. An exchange keeps the snapshot with which it began. */
export interface Snapshot {
  /** Hash of the effective configuration. */
  readonly version: string
  readonly catalog: Catalog
  readonly plans: Plans
  readonly mcp: McpOptions
  readonly realtime: RealtimeOptions
  /** Undefined where nothing is configured. */
  readonly endUsers: EndUserOptions | undefined
  /** See `Router.match`. */
  match(method: string, path: string): ReturnType<Router<Route>['match']>
  routes(): readonly Route[]
  /** An exchange holds its snapshot from first byte to `finish`. */
  retain(): void
  release(): void
}
