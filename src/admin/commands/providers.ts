/** Providers as the running configuration has them. */
import type { Catalog, Provider } from '../../core/catalog.ts'
import { isLive } from '../../core/offer.ts'
import { s } from '../../core/schema.ts'
import { type CommandTable, command } from '../command.ts'

export type ProviderStatus = 'live' | 'no credential'

export const providerStatus = (provider: Provider): ProviderStatus => (isLive(provider) ? 'live' : 'no credential')

function countModels(catalog: Catalog): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const model of catalog.models.values()) {
    for (const id of new Set(model.mappings.map(mapping => mapping.provider.id))) {
      counts.set(id, (counts.get(id) ?? 0) + 1)
    }
  }
  return counts
}

export type ListedProvider = ReturnType<typeof describe>
const describe = (provider: Provider, models: number) => ({
  id: provider.id,
  name: provider.name,
  status: providerStatus(provider),
  models,
  wires: Object.fromEntries([...provider.wires].map(([op, { wire }]): [string, string] => [op, wire])),
  credentials: provider.credentials.map(({ source, fingerprint }) => ({ source, fingerprint })),
})

export const providerCommands: CommandTable = {
  /** Wires are by operation, credentials are fingerprints. */
  'providers.list': command(s.object({}), (_, context) => {
    const { catalog } = context.snapshot()
    const counts = countModels(catalog)
    return [...catalog.providers.values()].map(provider => describe(provider, counts.get(provider.id) ?? 0))
  }),
}
