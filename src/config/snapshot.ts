/** Routes and catalogue of one configuration, alive until its last exchange has ended. */
import type { Catalog } from '../core/catalog.ts'
import type { Filter } from '../core/filter.ts'
import type { McpOptions } from '../core/mcp.ts'
import type { Plans } from '../core/plan.ts'
import type { EndUserOptions } from '../core/policy.ts'
import type { Log } from '../core/ports.ts'
import type { RealtimeOptions } from '../core/realtime.ts'
import type { Route, Snapshot } from '../core/snapshot.ts'
import { Router } from '../lib/router.ts'
import type { ConfigFiles } from './load.ts'

/** Each `retain` needs one `release`. After `retire`, the last release disposes the filters. */
export class ConfigSnapshot implements Snapshot {
  readonly version: string
  readonly catalog: Catalog
  readonly plans: Plans
  readonly mcp: McpOptions
  readonly realtime: RealtimeOptions
  readonly endUsers: EndUserOptions | undefined
  /** Source files, for `effectiveConfig`. */
  readonly files: ConfigFiles
  readonly #routes: readonly Route[]
  readonly #router = new Router<Route>()
  readonly #filters: readonly Filter[]
  readonly #log: Log
  #exchanges = 0
  #retired = false
  #disposed = false

  constructor(
    files: ConfigFiles,
    { catalog, plans, mcp, realtime, endUsers }: Pick<Snapshot, 'catalog' | 'plans' | 'mcp' | 'realtime' | 'endUsers'>,
    routes: readonly Route[],
    filters: readonly Filter[],
    log: Log,
  ) {
    this.version = files.version
    this.files = files
    this.catalog = catalog
    this.plans = plans
    this.mcp = mcp
    this.realtime = realtime
    this.endUsers = endUsers
    this.#routes = routes
    this.#filters = filters
    this.#log = log
    for (const route of routes) this.#router.add(route.endpoint.method, route.endpoint.path, route)
  }

  match(method: string, path: string): ReturnType<Snapshot['match']> {
    return this.#router.match(method, path)
  }

  routes(): readonly Route[] {
    return this.#routes
  }

  retain(): void {
    if (this.#disposed) throw new Error('a snapshot was retained after its disposal')
    this.#exchanges++
  }

  release(): void {
    if (this.#exchanges === 0) throw new Error('a snapshot was released more often than retained')
    this.#exchanges--
    this.#disposeWhenDone()
  }

  /** Accepts no new exchange; disposes the filters when the last one has ended. */
  retire(): void {
    this.#retired = true
    this.#disposeWhenDone()
  }

  #disposeWhenDone(): void {
    if (!this.#retired || this.#disposed || this.#exchanges > 0) return
    this.#disposed = true
    for (const filter of this.#filters) {
      try {
        filter.dispose?.()
      } catch (err) {
        this.#log.error({ err, config: this.version }, 'filter dispose failed')
      }
    }
  }
}
