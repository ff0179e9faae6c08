/** Warnings about what a valid configuration says in vain. */
import type { Catalog } from '../core/catalog.ts'
import type { Endpoint } from '../core/endpoint.ts'
import { serves } from '../core/offer.ts'
import type { Route } from '../core/snapshot.ts'
import { didYouMean, unknownName } from '../lib/nearest.ts'
import { rateKinds } from '../limits/kinds.ts'
import { listOf, matcher } from '../limits/names.ts'
import { credentialWarnings } from './credential-warnings.ts'
import type { ConfigError } from './error.ts'
import type { ConfigFile } from './file.ts'
import { located } from './large.ts'
import type { ConfigFiles } from './load.ts'
import { optionsOf } from './routes.ts'
import type { GatewayFile } from './schemas/gateway.ts'
import { mappingsIn, type ProviderFile } from './schemas/provider.ts'
import type { RoutesFile } from './schemas/routes.ts'
import type { ConfigSnapshot } from './snapshot.ts'

type Options = Readonly<Record<string, unknown>>
type Offer = ReturnType<typeof mappingsIn>[number]

/** Resolves with lines about credentials and about what has no effect. `files`: of the snapshot, or equal but for comments. */
export async function warningsOf(
  snapshot: ConfigSnapshot,
  files: ConfigFiles = snapshot.files,
  wasLive?: (provider: string) => boolean,
): Promise<string[]> {
  const { catalog } = snapshot
  const routes = snapshot.routes()
  const parameters = parameterNames(routes)
  const vain = [
    ...ofGateway(files.gateway, catalog, routes),
    ...files.providers
      .filter(({ value }) => catalog.providers.has(value.provider))
      .flatMap(file => [...ofOffers(file, catalog, parameters)]),
    ...files.routes.flatMap(file => [...ofRoutes(file)]),
  ]
  const shown = await Promise.all(vain.slice(0, MAX_WARNINGS).map(error => located(error)))
  const lines = [...(await credentialWarnings(files, wasLive)), ...shown.map(String)]
  if (vain.length > shown.length) lines.push(`${vain.length - shown.length} more places change nothing`)
  return lines
}

/** Bounds the places that are looked for: each in a large file takes as long as parsing it. */
const MAX_WARNINGS = 20

function* ofGateway(file: ConfigFile<GatewayFile>, catalog: Catalog, routes: readonly Route[]): Generator<ConfigError> {
  const { source, value } = file
  for (const chain of Object.keys(value.chains)) {
    if (!routes.some(({ endpoint }) => endpoint.chain === chain))
      yield source.error(`no endpoint uses the chain "${chain}"; remove it`, ['chains', chain], 'key')
  }
  yield* ofAuto(file, catalog)
  yield* ofRateLimits(file, catalog, routes)
  yield* ofRateRules(file)
  const { oidc } = value.admin
  if (oidc && Object.keys(oidc.allow).length === 0)
    yield source.error('nobody may sign in: add "allow" with a claim that people need', ['admin', 'oidc'])
  const { role_id: role, secret_id: secret, token } = value.secrets?.vault ?? {}
  if (secret !== undefined && role === undefined)
    yield source.error('"secret_id" needs "role_id"; add it', ['secrets', 'vault', 'secret_id'], 'key')
  if (token !== undefined && role !== undefined)
    yield source.error('"role_id" goes before "token"; remove one', ['secrets', 'vault', 'token'], 'key')
}

/** Operations of the lists that "auto" chooses from. */
const autoLists = { auto: 'chat', auto_images: 'images', auto_videos: 'videos' }

function* ofAuto({ source, value }: ConfigFile<GatewayFile>, catalog: Catalog): Generator<ConfigError> {
  for (const { options, path } of optionsOf(value, 'route')) {
    for (const [key, op] of Object.entries(autoLists)) {
      for (const [index, name] of listOf((options[key] as readonly string[]) ?? []).entries()) {
        const why = autoIssue(name, op, catalog)
        if (why) yield source.error(`${why}; "auto" leaves it out`, [...path, key, index])
      }
    }
  }
}

function* ofRateLimits(
  { source, value }: ConfigFile<GatewayFile>,
  catalog: Catalog,
  routes: readonly Route[],
): Generator<ConfigError> {
  const isCall = ({ serve, upgrade, counts }: Endpoint) => (serve === 'upstream' || upgrade) && !counts
  const calls = routes.flatMap(({ endpoint }) => (isCall(endpoint) ? endpoint.name : []))
  const names = namesIn(catalog)
  for (const { options, path } of optionsOf(value, 'ratelimit')) {
    const { limits = [] } = options as { readonly limits?: readonly Options[] }
    for (const [index, limit] of limits.entries()) {
      const at = [...path, 'limits', index]
      if (!rateKinds.some(kind => limit[kind] !== undefined))
        yield source.error('this entry limits nothing; add a limit such as "rpm: 600"', at)
      const { model = [], endpoint = [] } = (limit.match ?? {}) as Readonly<Record<string, string | readonly string[]>>
      if (endpoint.length > 0 && !calls.some(matcher(endpoint)!))
        yield source.error('these rules are for calls of models; limit it by "rpm" below "endpoints"', [...at, 'match'])
      for (const name of listOf(model)) {
        const near = name.includes('*') || names.has(name) ? '' : didYouMean(name, names)
        if (near) yield source.error(`unknown model "${name}"${near}`, [...at, 'match', 'model'])
      }
    }
  }
}

function* ofRateRules({ source, value }: ConfigFile<GatewayFile>): Generator<ConfigError> {
  for (const { options, path } of optionsOf(value, 'ratelimit')) {
    const { rules = [] } = options as { readonly rules?: readonly Options[] }
    const fitsAll = (rule: Options) =>
      ['organizations', 'plans', 'age', 'spent'].every(condition => rule[condition] === undefined)
    const all = rules.findIndex(fitsAll)
    const at = [...path, 'rules']
    if (all >= 0 && all + 1 < rules.length)
      yield source.error('the rule before fits all organizations, so that this one never counts', [...at, all + 1])
    for (const [index, { rpm, factor }] of rules.entries()) {
      if (rpm !== undefined && factor !== undefined)
        yield source.error('"rpm" goes before "factor"; remove one', [...at, index, 'factor'], 'key')
    }
  }
}

function autoIssue(name: string, op: string, { models, aliases }: Catalog): string | undefined {
  const model = models.get(name)
  if (model) return model.operations?.includes(op) === false ? `the model "${name}" serves no "${op}"` : undefined
  const named = aliases.get(name)
  if (named) return `"${name}" is an alias; write "${named.id}"`
  // The list may name models of other catalogues.
  const near = didYouMean(name, models.keys())
  return near === '' ? undefined : `unknown model "${name}"${near}`
}

const namesIn = ({ models, aliases, pinned, virtual }: Catalog): ReadonlySet<string> =>
  new Set([...models.keys(), ...aliases.keys(), ...(pinned?.keys() ?? []), ...(virtual?.keys() ?? [])])

/** Fields that requests of some endpoint may have. */
const parameterNames = (routes: readonly Route[]): ReadonlySet<string> =>
  new Set(routes.flatMap(({ endpoint }) => endpoint.codec.preset?.names ?? []))

/** Operations that options of offers are about. */
const optionOps: Readonly<Partial<Record<keyof Offer, readonly string[]>>> = {
  voices: ['speech'],
  max_input_characters: ['speech'],
  max_file: ['transcriptions', 'translations'],
  sizes: ['images', 'image_edits'],
  aspect_ratios: ['images', 'image_edits'],
  max_images: ['images', 'image_edits'],
  video_sizes: ['videos'],
  video_seconds: ['videos'],
  max_reference_images: ['videos'],
}

function* ofOffers(
  { source, value }: ConfigFile<ProviderFile>,
  { models }: Catalog,
  parameters: ReadonlySet<string>,
): Generator<ConfigError> {
  for (const [index, entry] of mappingsIn(value).entries()) {
    const mapping = models.get(entry.model)?.mappings.find(({ provider }) => provider.id === value.provider)
    if (!mapping) continue
    const { model, wires } = mapping
    const served: string[] = [...wires.keys()].filter(op => serves(model, op))
    const at = ['models', index]
    if (served.length === 0) {
      const needed = model.operations?.join(', ')
      yield source.error(`"wires" has none for what "${entry.model}" serves: ${needed}; add one`, [...at, 'model'])
    }
    for (const [key, ops] of Object.entries(optionOps)) {
      if (entry[key as keyof Offer] !== undefined && served.length > 0 && !ops.some(op => served.includes(op)))
        yield source.error(
          `"${key}" is for ${ops[0]}, which "${entry.model}" does not serve here; remove it`,
          [...at, key],
          'key',
        )
    }
    for (const tier of Object.keys(entry.tier_factors ?? {})) {
      if (!entry.service_tiers.some(one => one === tier))
        yield source.error(
          `the factor needs "${tier}" in "service_tiers"; add it`,
          [...at, 'tier_factors', tier],
          'key',
        )
    }
    for (const [place, name] of (entry.parameters ?? []).entries()) {
      if (!parameters.has(name))
        yield source.error(unknownName('parameter', name, parameters), [...at, 'parameters', place])
    }
  }
}

function* ofRoutes({ source, value }: ConfigFile<RoutesFile>): Generator<ConfigError> {
  for (const [index, { strategy, sticky, use }] of value.virtual_models.entries()) {
    if (strategy === 'weight') continue
    const at = ['virtual_models', index]
    const why = 'needs "strategy: weight"; add it, or remove this'
    if (sticky === 'session') yield source.error(`"sticky" ${why}`, [...at, 'sticky'], 'key')
    for (const [place, target] of use.entries()) {
      if (typeof target === 'object' && target.weight !== undefined)
        yield source.error(`"weight" ${why}`, [...at, 'use', place, 'weight'], 'key')
    }
  }
  const all = value.rules.findIndex(({ match, mirror }) => !mirror && Object.keys(match).length === 0)
  if (all >= 0 && all + 1 < value.rules.length)
    yield source.error('the rule before matches all requests, so that this one never applies', ['rules', all + 1])
}
