/** Health of providers by their credentials, lists and circuits: the one source for commands and metrics. */
import type { Catalog } from '../core/catalog.ts'
import { foundOffers, isAbsent, isFor, isLive } from '../core/offer.ts'
import type { CircuitHealth, Circuits, ProviderHealth, ProviderState } from '../core/ports.ts'
import type { Credential } from '../core/provider-settings.ts'
import type { Mapping, Provider } from '../core/translator.ts'
import { accountKeyOf, type Candidate, candidatesOf, credentialKeyOf, pollKeyOf } from './candidate.ts'
import { outlierDetectorOf } from './outlier-detector.ts'

/** The circuit of a key, as all organizations together see it. */
export const circuitOf = (key: string, circuits: Circuits): CircuitHealth => ({
  circuit: outlierDetectorOf(circuits).state(key, null),
  openMs: Math.ceil(circuits.openMs(key, null)),
})

const SEVERITY = { closed: 0, 'half-open': 1, open: 2 } as const
const isWorse = (a: CircuitHealth, b: CircuitHealth): boolean =>
  SEVERITY[a.circuit] - SEVERITY[b.circuit] > 0 || (a.circuit === b.circuit && a.openMs > b.openMs)

/** The circuit of an offer, or of its best credential when that is worse: requests need both. */
export function offerCircuit(offer: string, credentialKeys: readonly string[], circuits: Circuits): CircuitHealth {
  const own = circuitOf(offer, circuits)
  if (credentialKeys.length === 0) return own
  const [first, ...others] = credentialKeys.map(key => circuitOf(key, circuits))
  const best = others.reduce((best, one) => (isWorse(best, one) ? one : best), first!)
  return isWorse(best, own) ? best : own
}

/** The circuit of a credential at an offer, or at all of them where that is worse. */
export function worstKey(candidate: Candidate, credential: Credential | undefined, circuits: Circuits): string {
  const key = credentialKeyOf(candidate, credential)
  const account = accountKeyOf(candidate.mapping, credential)
  return account !== undefined && isWorse(circuitOf(account, circuits), circuitOf(key, circuits)) ? account : key
}

/** Every provider of a catalogue, in its order. */
export function providerHealth(catalog: Catalog, circuits: Circuits): ProviderHealth[] {
  const offers = new Map<string, Mapping[]>()
  for (const mapping of [
    ...[...catalog.models.values()].flatMap(({ mappings }) => mappings),
    ...foundOffers(catalog),
  ]) {
    const known = offers.get(mapping.provider.id)
    if (known) known.push(mapping)
    else offers.set(mapping.provider.id, [mapping])
  }
  return [...catalog.providers.values()].map(provider =>
    healthOf(provider, offers.get(provider.id) ?? [], catalog, circuits),
  )
}

const STATES: ProviderState[] = ['live', 'degraded', 'failing', 'credential failing', 'no answer', 'no credential']

/** Joins what several processes know of the same providers: the worst state of each circuit and provider. */
export function worstHealth([first = [], ...others]: readonly (readonly ProviderHealth[])[]): ProviderHealth[] {
  return first.map(one => others.flat().reduce((a, b) => (a.id === b.id ? joined(a, b) : a), one))
}

const joined = (a: ProviderHealth, b: ProviderHealth): ProviderHealth => ({
  ...a,
  status: STATES[Math.max(STATES.indexOf(a.status), STATES.indexOf(b.status))]!,
  credentials: worstOf([...a.credentials, ...b.credentials], ({ source, fingerprint }) => `${source} ${fingerprint}`),
  broken: worstOf([...a.broken, ...b.broken], ({ offer }) => offer),
})

function worstOf<T extends CircuitHealth>(circuits: readonly T[], keyOf: (circuit: T) => string): T[] {
  const worst = new Map<string, T>()
  for (const one of circuits) {
    const known = worst.get(keyOf(one))
    if (!known || isWorse(one, known)) worst.set(keyOf(one), one)
  }
  return [...worst.values()]
}

function healthOf(
  provider: Provider,
  mappings: readonly Mapping[],
  catalog: Catalog,
  circuits: Circuits,
): ProviderHealth {
  const candidates = [...new Map(mappings.flatMap(candidatesOf).map(one => [one.key, one])).values()]
  const own = candidates.map(candidate => {
    const used = provider.credentials.filter(credential => isFor(candidate.mapping, credential))
    const keys = (isKeyless(provider) ? [undefined] : used).map(one => worstKey(candidate, one, circuits))
    return { offer: candidate.key, ...offerCircuit(candidate.key, keys, circuits) }
  })
  const polls = candidates.map(pollKeyOf).map(offer => ({ offer, ...circuitOf(offer, circuits) }))
  const credentials = provider.credentials.map(credential => {
    const used = candidates.filter(({ mapping }) => isFor(mapping, credential))
    const seen = used.map(candidate => circuitOf(worstKey(candidate, credential, circuits), circuits))
    const worst = seen.reduce<CircuitHealth>((worst, one) => (isWorse(one, worst) ? one : worst), CLOSED)
    const { source, fingerprint, label: name, weight } = credential
    return { source, fingerprint, ...(weight !== undefined && { name, weight }), ...worst }
  })
  const broken = [...own, ...polls].filter(isBroken)
  const status = (): ProviderState => {
    if (!isLive(provider)) return 'no credential'
    if (isAbsent(provider, catalog)) return 'no answer'
    if (credentials.length > 0 && credentials.every(isBroken)) return 'credential failing'
    if (own.length > 0 && own.every(isBroken)) return 'failing'
    return broken.length > 0 || credentials.some(isBroken) ? 'degraded' : 'live'
  }
  return { id: provider.id, status: status(), credentials, offers: own.length, broken }
}

const isKeyless = ({ auth }: Provider): boolean => auth.scheme === 'none'
const CLOSED: CircuitHealth = { circuit: 'closed', openMs: 0 }
const isBroken = ({ circuit }: CircuitHealth): boolean => circuit !== 'closed'
