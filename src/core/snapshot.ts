/** Everything that is derived from configuration files: immutable, replaced by one assignment. */
import type { Catalog } from './catalog.ts'
import type { Chain } from './chain.ts'
import type { Endpoint } from './endpoint.ts'
import type { Plans } from './plan.ts'

export interface Route {
  readonly endpoint: Endpoint
  readonly chain: Chain
  /** Of the endpoint's codec, in effect, with defaults; shown by `gatewayctl explain`. */
  readonly compat?: unknown
}

export interface Snapshot {
  /** Hash of the effective configuration. */
  readonly version: string
  readonly catalog: Catalog
  readonly plans: Plans
  /**
   * The route of a request, the methods that its path would take, or undefined for an unknown path. HEAD is answered
   * wherever GET is.
   */
  match(method: string, path: string): Route | { readonly allow: string[] } | undefined
  routes(): readonly Route[]
  /** An exchange holds its snapshot from first byte to `finish`. */
  retain(): void
  release(): void
}
