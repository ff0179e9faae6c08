/** Reads facts of an offer that several places need: its names, its provider's state, and whether it is free. */
import { perObject } from '../lib/per-object.ts'
import { meansAny } from '../limits/names.ts'
import type { Catalog } from './catalog.ts'
import type { Op } from './ops.ts'
import type { Credential } from './provider-settings.ts'
import type { Mapping, Model, Provider, Target } from './translator.ts'
import { CHARACTERS } from './usage.ts'

/** `acme/acme-large`, by which a request can ask for this offer and no other. */
export const offerOf = ({ provider, model }: Mapping): string => `${provider.id}/${model.id}`

/** Metric label for models whose names callers can make up; for others, `seriesOf` returns the id. */
export const OPEN_SERIES = '*'
export const seriesOf = ({ series, id }: Model): string => series ?? id

/** Labels of metrics. */
export interface OfferLabels {
  readonly provider: string
  readonly model: string
}
/** The offers of all organizations' own providers: tenants choose those names, and others do not see them. */
const OWN_OFFERS: OfferLabels = { provider: 'custom', model: OPEN_SERIES }
/** Returns the metric labels of an offer. */
export const labelsOf = ({ provider, model }: Mapping): OfferLabels =>
  provider.owner === undefined ? { provider: provider.id, model: seriesOf(model) } : OWN_OFFERS
/** Returns the labels of an earlier answer, whose provider or model may no longer exist. */
export function labelsOfReplay(replayed: OfferLabels, { providers, models }: Catalog): OfferLabels {
  const provider = providers.get(replayed.provider)
  if (provider === undefined || provider.owner !== undefined) return OWN_OFFERS
  return { provider: provider.id, model: models.has(replayed.model) ? replayed.model : OPEN_SERIES }
}

/** All names by which a request may mean a mapping: id and aliases, bare and behind the provider. */
export const namesOf = perObject(({ model, provider, externalId }: Mapping): readonly string[] => {
  const bare = [model.id, ...model.aliases]
  return [...bare, ...[...bare, externalId].map(name => `${provider.id}/${name}`)]
})

/** Whether a credential may be used for a mapping. */
export const isFor = (mapping: Mapping, credential: Credential | undefined): boolean =>
  !credential?.models || meansAny(credential.models, namesOf(mapping))

/** Whether an offer, or its model, is not served any more on a `date` such as "2026-01-31". */
export const isOver = ({ deactivatedAt, model }: Mapping, date: string): boolean =>
  [deactivatedAt, model.deactivatedAt].some(end => end !== undefined && end <= date)

/** Every way in which a policy can name a provider. */
export const refsOf = ({ id, owner }: Provider): readonly string[] =>
  owner === undefined ? [id] : [id, 'custom', `custom:${id}`]

/** Whether a call to it can be signed with what the operator has set. */
export const isLive = ({ auth, credentials }: Provider): boolean => auth.scheme === 'none' || credentials.length > 0

/** Whether it is an engine that comes and goes, and is not there: it was looked up and listed nothing. */
export function isAbsent({ id }: Provider, { open }: Catalog): boolean {
  const more = open?.get(id)
  return more?.searched === true && more.listed.length === 0
}

/** Models that providers have listed besides those of the catalogue. */
export const foundOffers = ({ open }: Catalog): readonly Mapping[] =>
  open ? [...open.values()].flatMap(({ listed }) => listed) : []

/** Priced, and zero whatever is counted and however long the prompt. */
export function isFree(prices: Pick<Mapping, 'price' | 'pricing' | 'pricingBySize'>): boolean {
  const { price, pricing, pricingBySize: { per_second, per_image } = {} } = prices
  if (price === undefined) return false
  if (price.tiers.some(({ rates }) => Object.values(rates).some(rate => rate !== 0n))) return false
  return [pricing, per_second, per_image].every(table => Object.values(table ?? {}).every(usd => usd === '0'))
}

/** Whether a model serves an operation. Wires do not show that: a provider declares them for all its models. */
export const serves = ({ operations }: Model, op: string): boolean => operations?.includes(op) ?? true

/** Whether an offer answers an operation: one of its model's by a wire for it, or any by a bridge. */
export const isOffered = ({ model, wires }: Mapping, op: Op): boolean =>
  wires.has(op) && (serves(model, op) || wires.get(op)?.bridged === true)

/** Whole answers come with their last token, and reasoning models are silent for minutes. */
const FIRST_EVENT_MS = { stream: 60_000, reasoning: 300_000, whole: 600_000 }

/** How long the first event of an answer of `mapping` may take. */
export function firstEventMs({ provider, supports }: Mapping, streams: boolean): number {
  const { firstEvent } = provider.timeouts
  if (firstEvent !== undefined) return firstEvent
  if (!streams || !supports.has('streaming')) return FIRST_EVENT_MS.whole
  return supports.has('reasoning') ? FIRST_EVENT_MS.reasoning : FIRST_EVENT_MS.stream
}

/** Whether the cost of an answer is known without a report of its provider: its model is charged for characters alone. */
export const isCountedAhead = (target: Target | undefined): boolean => target?.mapping.model.tokenizer === CHARACTERS
