/** Catalogue entries that need an operator's attention: old prices, missing prices, deactivated models. */
import type { Catalog } from '../core/catalog.ts'
import type { Mapping, Model } from '../core/translator.ts'
import { DAY_MS } from '../lib/period.ts'

/** One entry of the catalogue that needs attention. */
interface ModelWarning {
  readonly model: string
  /** Absent when the remark concerns the model itself. */
  readonly provider?: string
  /** `undated`: the mapping has a price, but neither the offer nor its file dates it. */
  readonly warning: 'old price' | 'undated price' | 'no price' | 'deactivated'
  /** Date of the price or of the deactivation. */
  readonly since?: string
}

/** Counts of the catalogue, and its warnings. */
export interface ModelsCheck {
  /** Date from which ages are counted. */
  readonly today: string
  readonly models: number
  readonly providers: number
  readonly offers: number
  readonly warnings: readonly ModelWarning[]
}

/**
 * A price is old when it is dated more than `days` days before `today`. Offers that are free or have been deactivated
 * need no price and no date, nor do those that say `unpriced`. A deactivated model needs attention while it has offers:
 * without any it only tells clients when it ended.
 */
export function checkModels({ models, providers }: Catalog, days: number, today: string): ModelsCheck {
  const oldest = dayBefore(today, days)
  const warnings = [...models.values()].flatMap(model => warningsOf(model, oldest, today))
  let offers = 0
  for (const { mappings } of models.values()) offers += mappings.length
  return { today, models: models.size, providers: providers.size, offers, warnings }
}

function warningsOf({ id, deactivatedAt, mappings }: Model, oldest: string, today: string): ModelWarning[] {
  if (hasEnded(deactivatedAt, today)) {
    return mappings.length === 0 ? [] : [{ model: id, warning: 'deactivated', since: deactivatedAt! }]
  }
  return mappings.flatMap(mapping => {
    const found = warningOf(mapping, oldest, today)
    return found ? [{ model: id, provider: mapping.provider.id, ...found }] : []
  })
}

function warningOf(
  { price, unpriced, pricedAt, deactivatedAt }: Mapping,
  oldest: string,
  today: string,
): Pick<ModelWarning, 'warning' | 'since'> | undefined {
  if (hasEnded(deactivatedAt, today)) return { warning: 'deactivated', since: deactivatedAt! }
  if (!price) return unpriced ? undefined : { warning: 'no price' }
  const { rates, perImage = {}, perSecond = {} } = price
  if (![rates, perImage, perSecond].some(list => Object.values(list).some(rate => rate > 0n))) return undefined
  if (pricedAt === undefined) return { warning: 'undated price' }
  return pricedAt < oldest ? { warning: 'old price', since: pricedAt } : undefined
}

/** Inclusive of the day itself. */
const hasEnded = (day: string | undefined, today: string): boolean => day !== undefined && day <= today

const dayBefore = (day: string, days: number): string =>
  new Date(Date.parse(day) - days * DAY_MS).toISOString().slice(0, 10)
