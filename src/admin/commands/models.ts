/** Models of the running configuration. */
import type { Mapping, Model } from '../../core/catalog.ts'
import { formatDecimal } from '../../core/money.ts'
import { foundOffers, isLive, offerOf } from '../../core/offer.ts'
import { s } from '../../core/schema.ts'
import { type CommandTable, command } from '../command.ts'

const deactivated = (at: string | undefined): boolean => at !== undefined && Date.parse(at) <= Date.now()

const live = ({ model, provider, deactivatedAt }: Mapping): boolean =>
  isLive(provider) && !deactivated(deactivatedAt) && !deactivated(model.deactivatedAt)

/** USD per million units; the rate is in pico-USD per unit; null when unknown. */
const perMillion = (rate: bigint | undefined): string | null =>
  rate === undefined ? null : formatDecimal(rate * 1_000_000n, 12)

/** `pricing` is null when no price is known, which does not mean free. */
const describeMapping = (mapping: Mapping) => ({
  provider: mapping.provider.id,
  externalId: mapping.externalId,
  live: live(mapping),
  webSearch: mapping.supports.has('web_search'),
  pricing: mapping.price ? mapping.pricing : null,
  inputPerMillion: perMillion(mapping.price?.rates.prompt),
  outputPerMillion: perMillion(mapping.price?.rates.completion),
  contextLength: mapping.contextLength ?? mapping.model.contextLength ?? null,
  maxOutput: mapping.maxOutput ?? mapping.model.maxOutput ?? null,
})

/** A model with its offers; null for a limit or a date that no file states. */
export type ListedModel = ReturnType<typeof describe>
const describe = (model: Model) => ({
  id: model.open ? offerOf(model.mappings[0]!) : model.id,
  name: model.name,
  family: model.family,
  aliases: model.aliases,
  live: model.mappings.some(live),
  contextLength: model.contextLength ?? null,
  maxOutput: model.maxOutput ?? null,
  deprecatedAt: model.deprecatedAt ?? null,
  deactivatedAt: model.deactivatedAt ?? null,
  providers: model.mappings.map(describeMapping),
})

/** Whether `query` is part of one of the model's names. */
function matches(model: Model, query: string): boolean {
  const names = [model.id, model.name, model.family, ...model.aliases]
  for (const { provider, externalId } of model.mappings) names.push(provider.id, externalId)
  return names.some(name => name.toLowerCase().includes(query))
}

/** `models.list`. */
export const modelCommands: CommandTable = {
  /** → the models with `query` as part of a name, or all; then those listed by providers. */
  'models.list': command(s.object({ query: s.optional(s.string()) }), ({ query = '' }, context) => {
    const { catalog } = context.snapshot()
    const models = [...catalog.models.values(), ...foundOffers(catalog).map(({ model }) => model)]
    return models.filter(model => matches(model, query.toLowerCase())).map(describe)
  }),
}
