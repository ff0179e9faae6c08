/** Resolves a model string: `auto`, a canonical id or alias, or `<provider>/<model>`. */
import type { Catalog, OpenModels } from '../core/catalog.ts'
import { offerOf } from '../core/offer.ts'
import type { Mapping, Model, Provider } from '../core/translator.ts'
import { errors, GatewayError } from '../lib/error.ts'
import { anyOf, similar } from '../lib/nearest.ts'
import { perObject } from '../lib/per-object.ts'
import { admits, type Payer } from './policy.ts'

const MAX_SUGGESTED_NAMES = 3

/** A resolved model string; `provider` is undefined where any may serve the model. */
export type ModelReference =
  | { readonly kind: 'auto' }
  | {
      readonly kind: 'model'
      readonly model: Model
      readonly provider: Provider | undefined
      /** As it was written, without the provider. */
      readonly name: string
    }

type Caller = Payer['principal']

/**
 * Throws 404 for what is unknown, and 400 for a provider's own name without its prefix, naming the right form. Names no
 * model of providers that do not serve the caller.
 */
export function resolve(catalog: Catalog, name: string, caller?: Caller): ModelReference {
  if (name === 'auto') return { kind: 'auto' }
  const model = find(catalog, name)
  if (model) return { kind: 'model', model, provider: undefined, name }
  const pinned = catalog.pinned?.get(name)
  // It names a provider, which no alias does: there is no third step.
  if (pinned !== undefined) {
    const meant = resolve(catalog, pinned)
    return meant.kind === 'model' ? { ...meant, name } : meant
  }

  const slash = name.indexOf('/')
  const provider = slash > 0 ? catalog.providers.get(name.slice(0, slash)) : undefined
  if (provider) {
    const rest = name.slice(slash + 1)
    const offered = find(catalog, rest)
    if (offered?.mappings.some(mapping => mapping.provider === provider))
      return { kind: 'model', model: offered, provider, name: rest }
    const own = externals(catalog)
      .get(rest)
      ?.find(mapping => mapping.provider === provider)
    if (own) return { kind: 'model', model: own.model, provider, name: rest }
    const open = catalog.open?.get(provider.id)?.find(rest)
    if (open) return { kind: 'model', model: open.model, provider, name: rest }
    if (offered) {
      const served = `Provider ${provider.id} does not serve the model "${offered.id}"`
      const file = provider.owner === undefined ? `; operators add it in providers.d/${provider.id}.yaml` : ''
      throw errors.unsupported(`${served}${file}.`, 'model')
    }
  }

  const known = (externals(catalog).get(name) ?? foundAs(catalog, name)).filter(one => admits(one.provider, caller))
  if (known.length > 0) {
    const forms = known.map(mapping => `"${offerOf(mapping)}"`).join(' or ')
    throw errors.unsupported(
      `"${name}" is a provider's own model name. Request it as ${forms}.`,
      'model',
      'model_not_found',
    )
  }
  throw unknown(catalog, name, caller)
}

/** Resolves the names that exist. Throws the error of the first one where none does. */
export function resolveAny(catalog: Catalog, names: readonly string[]): readonly ModelReference[] {
  const found = names.flatMap(name => {
    try {
      return [resolve(catalog, name)]
    } catch (thrown) {
      if (thrown instanceof GatewayError) return []
      throw thrown
    }
  })
  return found.length > 0 ? found : [resolve(catalog, names[0]!)]
}

const find = (catalog: Catalog, id: string): Model | undefined => catalog.models.get(id) ?? catalog.aliases.get(id)

/** The 404 for an unknown model, with similar names and the file to add a model to. */
function unknown(catalog: Catalog, name: string, caller: Caller): GatewayError {
  const slash = name.indexOf('/')
  const provider = slash > 0 ? catalog.providers.get(name.slice(0, slash)) : undefined
  const rest = name.slice(slash + 1)
  const near = provider
    ? similar(rest, admits(provider, caller) ? namesAt(catalog, provider) : []).map(one => `${provider.id}/${one}`)
    : // Others write a model's maker before its name.
      [...(slash > 0 && find(catalog, rest) ? [rest] : []), ...similar(name, namesIn(catalog))]
        .filter(one => isSeen(catalog, one, caller))
        .slice(0, MAX_SUGGESTED_NAMES)
  const hint = near.length > 0 ? ` Did you mean ${anyOf(near.map(one => `"${one}"`))}?` : ''
  const file = provider && provider.owner === undefined ? `providers.d/${provider.id}.yaml` : 'config/models.d'
  return errors.modelNotFound(name, hint, file)
}

function isSeen(catalog: Catalog, name: string, caller: Caller): boolean {
  const providers = find(catalog, name)?.mappings.map(({ provider }) => provider)
  const pinned = catalog.pinned?.get(name)?.split('/', 1)[0] ?? ''
  return (providers ?? [catalog.providers.get(pinned)]).some(one => !one || admits(one, caller))
}

/** Every name without a provider. */
const namesIn = perObject(({ models, aliases, pinned }: Catalog): readonly string[] => [
  ...models.keys(),
  ...aliases.keys(),
  ...(pinned?.keys() ?? []),
])

const namesAt = ({ models, open }: Catalog, provider: Provider): readonly string[] => [
  ...[...models.values()]
    .filter(({ mappings }) => mappings.some(mapping => mapping.provider === provider))
    .flatMap(({ id, aliases }) => [id, ...aliases]),
  ...(open?.get(provider.id)?.listed ?? []).map(({ externalId }) => externalId),
]

/** Returns the listed offers of providers with this name. */
const foundAs = ({ open = new Map<string, OpenModels>() }: Catalog, name: string): readonly Mapping[] =>
  [...open.values()].flatMap(({ listed }) => listed.filter(({ externalId }) => externalId === name))

const externals = perObject((catalog: Catalog): Map<string, Mapping[]> => {
  const index = new Map<string, Mapping[]>()
  for (const model of catalog.models.values()) {
    for (const mapping of model.mappings) {
      const same = index.get(mapping.externalId)
      if (same) same.push(mapping)
      else index.set(mapping.externalId, [mapping])
    }
  }
  return index
})
