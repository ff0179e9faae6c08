/** The routes and the catalogue of one configuration, alive until its last exchange is gone. */
import type { Catalog } from '../core/catalog.ts'
import type { Filter } from '../core/filter.ts'
import type { Plans } from '../core/plan.ts'
import type { Log } from '../core/ports.ts'
import type { Route, Snapshot } from '../core/snapshot.ts'
import type { ConfigFiles } from './load.ts'

export class ConfigSnapshot implements Snapshot {
  readonly version: string
  readonly catalog: Catalog
  readonly plans: Plans
  /** What it was made from, for `effectiveConfig`. */
  readonly files: ConfigFiles
  readonly #routes: readonly Route[]
  readonly #byPath = new Map<string, Map<string, Route>>()
  readonly #filters: readonly Filter[]
  readonly #log: Log
  #exchanges = 0
  #retired = false
  #disposed = false

  constructor(
    files: ConfigFiles,
    { catalog, plans }: Pick<Snapshot, 'catalog' | 'plans'>,
    routes: readonly Route[],
    filters: readonly Filter[],
    log: Log,
  ) {
    this.version = files.version
    this.files = files
    this.catalog = catalog
    this.plans = plans
    this.#routes = routes
    this.#filters = filters
    this.#log = log
    for (const route of routes) {
      const { method, path } = route.endpoint
      const methods = this.#byPath.get(path) ?? new Map<string, Route>()
      if (methods.has(method)) throw new Error(`two endpoints are at ${method} ${path}`)
      this.#byPath.set(path, methods.set(method, route))
    }
    // As RFC 9110 section 9.3.2 wants it; the HTTP server leaves the body out.
    for (const methods of this.#byPath.values()) {
      const get = methods.get('GET')
      if (get && !methods.has('HEAD')) methods.set('HEAD', get)
    }
  }

  match(method: string, path: string): Route | { readonly allow: string[] } | undefined {
    const methods = this.#byPath.get(path)
    return methods && (methods.get(method) ?? { allow: [...methods.keys()].sort() })
  }

  routes(): readonly Route[] {
    return this.#routes
  }

  retain(): void {
    if (this.#disposed) throw new Error('a snapshot was retained after its end')
    this.#exchanges++
  }

  release(): void {
    if (this.#exchanges === 0) throw new Error('a snapshot was released more often than retained')
    this.#exchanges--
    this.#disposeWhenDone()
  }

  /** No new exchange will come: its filters are disposed when the last one has gone. */
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
        this.#log.error({ err, config: this.version }, 'a filter failed to dispose of itself')
      }
    }
  }
}
