/** Providers of the running configuration. */
import type { Catalog, Provider } from '../../core/catalog.ts'
import { foundOffers } from '../../core/offer.ts'
import type { ProviderHealth } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { type CommandTable, command } from '../command.ts'

function countModels(catalog: Catalog): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const model of catalog.models.values()) {
    for (const id of new Set(model.mappings.map(mapping => mapping.provider.id))) {
      counts.set(id, (counts.get(id) ?? 0) + 1)
    }
  }
  for (const { provider } of foundOffers(catalog)) counts.set(provider.id, (counts.get(provider.id) ?? 0) + 1)
  return counts
}

/** A provider with its count of models; credentials are fingerprints. */
export type ListedProvider = ReturnType<typeof describe>
const describe = (provider: Provider, { status, credentials }: ProviderHealth, models: number) => ({
  id: provider.id,
  name: provider.name,
  status,
  models,
  variables: [...(provider.variables?.secret ?? []), ...(provider.variables?.address ?? [])],
  wires: Object.fromEntries([...provider.wires].map(([op, { wire }]): [string, string] => [op, wire])),
  credentials,
})

/** `providers.list` and `providers.health`. */
export const providerCommands: CommandTable = {
  /** Wires by operation; credentials as fingerprints. */
  'providers.list': command(s.object({}), async (_, context) => {
    const { catalog } = context.snapshot()
    const counts = countModels(catalog)
    return (await context.providerHealth()).flatMap(health => {
      // A reload may come in between.
      const provider = catalog.providers.get(health.id)
      return provider ? [describe(provider, health, counts.get(provider.id) ?? 0)] : []
    })
  }),
  'providers.health': command(s.object({}), (_, context) => context.providerHealth()),
}
