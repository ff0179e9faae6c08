/** Files + code → snapshot. */
import type { FoundModel } from '../core/catalog.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory, Reply } from '../core/filter.ts'
import type { Operation } from '../core/operation.ts'
import type { Services } from '../core/ports.ts'
import type { Translator } from '../core/translator.ts'
import { linkCatalog } from './catalog.ts'
import type { ConfigFiles } from './load.ts'
import { linkMcp } from './mcp.ts'
import { linkPlans } from './plans.ts'
import { linkRoutes } from './routes.ts'
import { ConfigSnapshot } from './snapshot.ts'

/** All that configuration may name, and what the compiled chains end in. */
export interface Registries {
  readonly wires: ReadonlyMap<string, Translator>
  readonly filters: ReadonlyMap<string, FilterFactory>
  readonly endpoints: readonly Endpoint[]
  /** By name. */
  readonly operations: Readonly<Record<string, Operation>>
  readonly services: Services
  /** The models that the provider at an address listed when it was last looked up; without it none is looked up. */
  readonly found?: (baseUrl: string) => readonly FoundModel[]
  /** Calls the provider of an exchange. */
  readonly terminal: (ex: Exchange) => Promise<Reply>
}

/** Throws a ConfigError that names the position of what does not fit. */
export function link(files: ConfigFiles, registries: Registries): ConfigSnapshot {
  const catalog = linkCatalog(files, registries)
  const { routes, filters } = linkRoutes(files.gateway, registries)
  const plans = linkPlans(files.gateway.value.plans)
  const mcp = linkMcp(files.gateway)
  return new ConfigSnapshot(files, { catalog, plans, mcp }, routes, filters, registries.services.log)
}
