/** Compares a price list with the configuration in effect. */
import type { ConfigFiles } from '../../config/load.ts'
import type { ModelEntry } from '../../config/schemas/models.ts'
import type { MappingEntry } from '../../config/schemas/offer.ts'
import { mappingsIn, type ProviderFile } from '../../config/schemas/provider.ts'
import { formatDecimal, parseDecimal } from '../../core/money.ts'
import { type Listed, type PriceList, type Prices, type TokenKey, UNIT_PLACES } from './source.ts'

/** One value that differs. Prices are USD per million tokens. */
export interface Difference {
  readonly field: string
  readonly from: string | number | null
  readonly to: string | number
}

/** An offer that differs, or that one of both lacks. */
export interface Finding {
  readonly provider: string
  readonly model: string
  /** The provider's own name of the model. */
  readonly id: string
  readonly changes: readonly Difference[]
}

/** Offers by what is to be done about them. */
export interface Comparison {
  readonly changed: Finding[]
  readonly added: (Finding & { readonly listed: Listed })[]
  /** `since`: the day that is written as `deprecated_at`. */
  readonly retired: (Finding & { readonly since: string })[]
  /** Offers whose prices the operator wrote. They stay. */
  readonly yours: Finding[]
  /** `<provider>/<model>` of offers that the list does not have. */
  readonly unlisted: string[]
  /** Models of the list that cannot be added: no wire for them, or another offer has the name. */
  readonly skipped: string[]
}

/** `hasEntry`: whether the operator's own files have an entry of a provider for a model. */
export function compare(
  list: PriceList,
  { models, providers }: Pick<ConfigFiles, 'models' | 'providers'>,
  hasEntry: (provider: string, model: string) => boolean,
  today: string,
): Comparison {
  const entries = new Map(models.flatMap(({ value }) => value.models.map(model => [model.id, model] as const)))
  const result: Comparison = { changed: [], added: [], retired: [], yours: [], unlisted: [], skipped: [] }
  for (const { value: provider } of providers) {
    const listed = new Map<string, Listed>()
    for (const one of list.models)
      if (one.provider === provider.provider && !listed.has(one.id)) listed.set(one.id, one)
    if (listed.size === 0) continue
    for (const entry of mappingsIn(provider)) {
      const found = listed.get(entry.id ?? entry.model)
      listed.delete(entry.id ?? entry.model)
      const isOwn = hasEntry(provider.provider, entry.model)
      place({ provider, entry, found, isOwn, label: list.label, today }, entries.get(entry.model), result)
    }
    for (const one of listed.values()) addNew(one, provider, result)
  }
  return result
}

interface Placed {
  readonly provider: ProviderFile
  readonly entry: MappingEntry
  readonly found: Listed | undefined
  readonly isOwn: boolean
  readonly label: string
  readonly today: string
}

function place({ provider, entry, found, isOwn, label, today }: Placed, model: ModelEntry | undefined, to: Comparison) {
  const base = { provider: provider.provider, model: entry.model, id: entry.id ?? entry.model }
  const isTheirs = entry.priced_from === label
  const isOver = entry.deprecated_at ?? entry.deactivated_at ?? model?.deprecated_at ?? model?.deactivated_at
  const since = found ? found.retired : isTheirs ? today : undefined
  if (since !== undefined && !isOver) {
    const changes = [{ field: 'deprecated_at', from: null, to: since }]
    if (isOwn && !isTheirs) to.yours.push({ ...base, changes })
    else to.retired.push({ ...base, changes, since })
  } else if (!found && !isOver) to.unlisted.push(`${base.provider}/${base.model}`)
  if (!found) return
  const changes = [...priceChanges(entry, found), ...sizeChanges(entry, found, model)]
  if (changes.length > 0) (isOwn && !isTheirs ? to.yours : to.changed).push({ ...base, changes })
}

/** The shortest form of a written price. */
const plain = (text: string): string => formatDecimal(parseDecimal(text, UNIT_PLACES), UNIT_PLACES)

/** Prices as a list has them: those of a map by `map.key`. */
function flat({ per_image, per_second, ...pricing }: NonNullable<MappingEntry['pricing']>): Written {
  const ofMap = (name: string, map: Readonly<Record<string, string>> = {}) =>
    Object.fromEntries(Object.entries(map).map(([key, price]) => [`${name}.${key}`, price]))
  return { ...pricing, ...ofMap('per_image', per_image), ...ofMap('per_second', per_second) }
}

const kindOf = (key: string): string => key.split('.', 1)[0]!

function priceChanges(
  { pricing, pricing_tiers: tiers }: MappingEntry,
  { prices, ofUnits, tiers: theirs }: Listed,
): Difference[] {
  const own = flat(pricing ?? {})
  const kinds = new Set(Object.keys(prices).map(kindOf))
  // An offer that is paid by something else would be paid twice.
  if (ofUnits && Object.keys(own).some(key => !kinds.has(kindOf(key)))) return []
  const changes = differing(own, prices, '')
  for (const { above, prices } of theirs) {
    // The bounds of two lists may differ by one token.
    const tier = tiers.find(one => Math.abs(one.above_prompt_tokens - above) <= 1)
    changes.push(...differing((tier ?? {}) as Written, prices, `above ${above}: `))
  }
  return changes
}

type Written = Readonly<Record<string, string | undefined>>

function differing(own: Written, theirs: Prices, before: string): Difference[] {
  return Object.entries(theirs).flatMap(([key, to]) => {
    const from = own[key]
    if (to === undefined || (from !== undefined && plain(from) === to)) return []
    if (from === undefined && isImplied(key as TokenKey, to, theirs)) return []
    return [{ field: before + key, from: from ?? null, to }]
  })
}

/** A rate that is that of all other tokens need not be written. */
function isImplied(key: TokenKey, to: string, { prompt, completion }: Prices): boolean {
  if (key === 'internal_reasoning' || key === 'image_output' || key === 'output_audio') return to === completion
  return (key === 'image_input' || key === 'input_audio') && to === prompt
}

function sizeChanges(entry: MappingEntry, { context, output, ofPrompt }: Listed, model: ModelEntry | undefined) {
  const changes: Difference[] = []
  const own = entry.context_length ?? model?.context_length
  const isSame = own === context || (ofPrompt && own === (context ?? 0) + (output ?? 0))
  if (context !== undefined && !isSame) changes.push({ field: 'context_length', from: own ?? null, to: context })
  const most = entry.max_output ?? model?.max_output
  if (output !== undefined && output !== most) changes.push({ field: 'max_output', from: most ?? null, to: output })
  return changes
}

const NAME = /^[!-~](?:[ -~]{0,126}[!-~])?$/

function addNew(one: Listed, provider: ProviderFile, to: Comparison): void {
  if (one.retired !== undefined) return
  const isTaken = mappingsIn(provider).some(entry => entry.model === one.id)
  const hasWire = one.operation !== undefined && Object.hasOwn(provider.wires, one.operation)
  if (isTaken || !hasWire || !NAME.test(one.id) || provider.models === 'open') {
    to.skipped.push(`${provider.provider}/${one.id}`)
    return
  }
  const changes = [
    ...differing({}, one.prices, ''),
    ...one.tiers.flatMap(({ above, prices }) => differing({}, prices, `above ${above}: `)),
    ...sizeChanges({ model: one.id } as MappingEntry, one, undefined),
  ]
  to.added.push({ provider: provider.provider, model: one.id, id: one.id, changes, listed: one })
}
