/** Providers of the running configuration. */
import type { Catalog, Provider } from '../../core/catalog.ts'
import { foundOffers, isAbsent, isLive } from '../../core/offer.ts'
import { s } from '../../core/schema.ts'
import { type CommandTable, command } from '../command.ts'

/** `no answer`: a provider that is to list its models has listed none. */
type ProviderStatus = 'live' | 'no credential' | 'no answer'

/** `no credential` comes before `no answer`. */
export function providerStatus(provider: Provider, catalog: Catalog): ProviderStatus {
  if (!isLive(provider)) return 'no credential'
  return isAbsent(provider, catalog) ? 'no answer' : 'live'
}

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
const describe = (provider: Provider, catalog: Catalog, models: number) => ({
  id: provider.id,
  name: provider.name,
  status: providerStatus(provider, catalog),
  models,
  variables: [...(provider.variables?.secret ?? []), ...(provider.variables?.address ?? [])],
  wires: Object.fromEntries([...provider.wires].map(([op, { wire }]): [string, string] => [op, wire])),
  credentials: provider.credentials.map(({ source, fingerprint }) => ({ source, fingerprint })),
})

/** `providers.list`. */
export const providerCommands: CommandTable = {
  /** Wires by operation; credentials as fingerprints. */
  'providers.list': command(s.object({}), (_, context) => {
    const { catalog } = context.snapshot()
    const counts = countModels(catalog)
    return [...catalog.providers.values()].map(provider => describe(provider, catalog, counts.get(provider.id) ?? 0))
  }),
}
