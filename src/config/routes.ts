/** Compiles the chain of every endpoint. */
import { type Chain, checkOrder, compile, type Link } from '../core/chain.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Filter, FilterFactory } from '../core/filter.ts'
import type { Schema } from '../core/schema.ts'
import type { Route } from '../core/snapshot.ts'
import { nearest, suggestion, unknownName } from '../lib/nearest.ts'
import type { ConfigFile } from './file.ts'
import type { Registries } from './registries.ts'
import type { ChainEntry, GatewayFile } from './schemas/gateway.ts'
import { type Path, samePath } from './source.ts'
import { check } from './validate.ts'

type Options = Readonly<Record<string, unknown>>

/** Key among an endpoint's filters in gateway.yaml that holds the options of its codec. */
const COMPAT = 'compat'

/** Filter whose options may also stand at the top of gateway.yaml, for every chain. */
const EVERYWHERE = 'auth'

/** One filter of a chain. */
interface Entry {
  readonly factory: FilterFactory
  /** Options as written, for endpoints to override. */
  readonly written: Options
  /** Options validated, with defaults. */
  readonly options: unknown
  readonly path: Path
}

/**
 * Throws a ConfigError and then disposes all filters. Endpoints that use one chain with equal options share its
 * filters, so that counters of a filter cover all of them.
 */
export function linkRoutes(
  file: ConfigFile<GatewayFile>,
  registries: Registries,
): { routes: Route[]; filters: Filter[] } {
  const linker = new RouteLinker(file, registries)
  try {
    linker.checkOverrides()
    const mode = isOn(file.value.compat, 'litellm') ? registries.compat?.litellm : undefined
    const routes = [...(mode?.endpoints ?? []), ...registries.endpoints].flatMap(endpoint => {
      const route = linker.routeOf(endpoint)
      return mode ? mode.adapt(route.endpoint).map(form => ({ ...route, endpoint: form })) : [route]
    })
    return { routes, filters: linker.filters }
  } catch (thrown) {
    for (const filter of linker.filters) filter.dispose?.()
    throw thrown
  }
}

/** Whether `compat` names a mode. */
const isOn = (entry: GatewayFile['compat'], name: 'litellm'): boolean =>
  typeof entry === 'string' ? entry === name : entry?.[name] === true

class RouteLinker {
  readonly #file: ConfigFile<GatewayFile>
  readonly #registries: Registries
  readonly #chains: ReadonlyMap<string, readonly Entry[]>
  /** Filters by chain, position and effective options. */
  readonly #filters = new Map<string, Filter>()

  constructor(file: ConfigFile<GatewayFile>, registries: Registries) {
    this.#file = file
    this.#registries = registries
    this.#chains = new Map(
      Object.entries(file.value.chains).map(([name, entries]) => [name, this.#entries(name, entries)]),
    )
  }

  get filters(): Filter[] {
    return [...this.#filters.values()]
  }

  routeOf(endpoint: Endpoint): Route {
    const chain = this.#chainOf(endpoint)
    const { compat } = endpoint.codec
    if (!compat) return { endpoint, chain }
    const written = this.#file.value.endpoints[endpoint.name]?.[COMPAT] ?? {}
    const options = this.#check(compat.options, written, ['endpoints', endpoint.name, COMPAT])
    return { endpoint: { ...endpoint, codec: compat.create(options) }, chain, compat: options }
  }

  #chainOf(endpoint: Endpoint): Chain {
    const entries = this.#entriesOf(endpoint)
    const { serve, instead, upgrade, operation } = endpoint
    const callsProvider = serve === 'upstream' || (upgrade === true && operation !== undefined)
    this.#checkOrder(endpoint.chain, entries, callsProvider)
    const links = entries.flatMap((entry, index) =>
      (entry.factory.appliesTo?.(endpoint) ?? true)
        ? [this.#link(entry, `${endpoint.chain}.${index}`, endpoint.name)]
        : [],
    )
    const { terminal, services } = this.#registries
    return compile(links, serve === 'upstream' ? terminal : ex => serve(ex, services), instead)
  }

  /** Rejects options of unknown endpoints, and of filters that an endpoint's chain lacks. */
  checkOverrides(): void {
    const { endpoints } = this.#registries
    for (const [name, filters] of Object.entries(this.#file.value.endpoints)) {
      const path = ['endpoints', name]
      const endpoint = endpoints.find(candidate => candidate.name === name)
      if (!endpoint) {
        const names = endpoints.map(known => known.name)
        throw this.#file.source.error(unknownName('endpoint', name, names), path, 'key')
      }
      const known = this.#entriesOf(endpoint).map(entry => entry.factory.name)
      if (endpoint.codec.compat) known.push(COMPAT)
      for (const filter of Object.keys(filters)) {
        if (known.includes(filter)) continue
        const message =
          filter === COMPAT
            ? `the endpoint "${name}" has no ${COMPAT} options; remove them`
            : `the chain of endpoint "${name}" has no filter "${filter}"${suggestion(filter, known)}`
        throw this.#file.source.error(message, [...path, filter], 'key')
      }
    }
  }

  #entriesOf({ name, chain }: Endpoint): readonly Entry[] {
    const entries = this.#chains.get(chain)
    if (entries) return entries
    const near = nearest(chain, this.#chains.keys())
    const message = `the chain "${chain}" of endpoint "${name}" is missing`
    throw near === undefined
      ? this.#file.source.error(`${message}; add it`, ['chains'], 'key')
      : this.#file.source.error(`${message}; did you mean "${near}"?`, ['chains', near], 'key')
  }

  #entries(chain: string, written: readonly ChainEntry[]): Entry[] {
    const entries = written.map((entry, index) => this.#entry(entry, ['chains', chain, index]))
    this.#checkOrder(chain, entries, false)
    return entries
  }

  #entry(entry: ChainEntry, path: Path): Entry {
    const [first, second] = typeof entry === 'string' ? [[entry, {}] as const] : Object.entries(entry)
    if (!first) throw this.#file.source.error('expected a filter, such as "auth"', path)
    if (second) {
      const message = `expected one filter in an entry; write "- ${second[0]}" as a separate entry`
      throw this.#file.source.error(message, [...path, second[0]], 'key')
    }
    const [name, written] = first
    const { filters } = this.#registries
    const factory = filters.get(name)
    if (!factory) throw this.#file.source.error(unknownName('filter', name, filters.keys()), path)
    const shared = name === EVERYWHERE ? this.#file.value[EVERYWHERE] : undefined
    if (!shared) return { factory, written, options: this.#check(factory.options, written, [...path, name]), path }
    this.#check(factory.options, shared, [EVERYWHERE])
    const all = { ...shared, ...written }
    return { factory, written: all, options: this.#check(factory.options, all, [...path, name]), path }
  }

  /** `path`: place of the options in the file. */
  #check(schema: Schema<unknown>, options: Options, path: Path): unknown {
    const { secrets } = this.#file
    const hidden = secrets.filter(at => samePath(at.slice(0, path.length), path)).map(at => at.slice(path.length))
    const result = check(schema, structuredClone(options), hidden)
    if ('value' in result) return result.value
    const { issue } = result
    throw this.#file.source.error(issue.message, [...path, ...issue.path], issue.at)
  }

  #checkOrder(chain: string, entries: readonly Entry[], upstream: boolean): void {
    const all = [...this.#registries.filters.values()]
    const broken = checkOrder(
      entries.map(entry => entry.factory),
      upstream,
      facet => all.filter(factory => factory.gives?.includes(facet)).map(factory => factory.name),
    )
    if (broken) throw this.#file.source.error(broken.message, entries[broken.index]?.path ?? ['chains', chain], 'key')
  }

  #link({ factory, written, options, path }: Entry, place: string, endpoint: string): Link {
    const override = this.#file.value.endpoints[endpoint]?.[factory.name]
    const effective = override
      ? this.#check(factory.options, { ...written, ...override }, ['endpoints', endpoint, factory.name])
      : options
    const key = `${place} ${JSON.stringify(effective)}`
    const owner = override ? `${place} ${endpoint}` : place
    const filter = this.#filters.get(key) ?? this.#create(factory, effective, path, owner)
    this.#filters.set(key, filter)
    return { factory, options: effective, filter }
  }

  #create(factory: FilterFactory, options: unknown, path: Path, place: string): Filter {
    try {
      return factory.create(options, this.#registries.services, place)
    } catch (thrown) {
      const why = thrown instanceof Error ? thrown.message : String(thrown)
      throw this.#file.source.error(`filter "${factory.name}" cannot be created: ${why}`, path)
    }
  }
}

/** Options of a filter as written, wherever the file has them. */
export function* optionsOf(
  { chains, endpoints }: GatewayFile,
  filter: string,
): Generator<{ options: Options; path: Path }> {
  for (const [chain, entries] of Object.entries(chains)) {
    for (const [index, entry] of entries.entries()) {
      if (typeof entry === 'object' && entry[filter])
        yield { options: entry[filter], path: ['chains', chain, index, filter] }
    }
  }
  for (const [endpoint, { [filter]: options }] of Object.entries(endpoints)) {
    if (options) yield { options, path: ['endpoints', endpoint, filter] }
  }
}
