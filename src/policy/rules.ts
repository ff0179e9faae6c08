/** Decides what one key may call. Rules: docs/contract.md#access-rules. */
import { type Address, type AddressRange, inRange, parseRange } from '../core/address.ts'
import { formatDecimal, MILLION, type Price, parseDecimal, type Rates, ratesFor, tierFactorOf } from '../core/money.ts'
import { isFree, namesOf, offerOf, refsOf } from '../core/offer.ts'
import type { Access, AccessIssue, Compliance, PricedRequest, Rule, RuleType, RuleValue } from '../core/policy.ts'
import type { Mapping } from '../core/translator.ts'
import { errors } from '../lib/error.ts'
import { meansAny } from '../limits/names.ts'
import { compliancePredicate } from './compliance.ts'

/** Written per million tokens, kept in pico-USD per token: six places fewer than twelve. */
const PLACES = 6
/** Decimal places of a service tier's factor. */
const FACTOR_PLACES = 6

/** The rules of an organization, of one of its members, keys or sessions. */
interface Level {
  /** As a refusal names it. */
  readonly whose: 'the organization' | 'the member' | 'the API key' | 'the session'
  readonly rules: readonly Rule[]
}

/** The caller whose access is computed, and its rules. */
interface AccessFacts {
  readonly id: string
  /** Each narrows by itself what those before it leave. */
  readonly levels: readonly Level[]
  readonly compliance: Compliance | undefined
}

/** Within one level rules of one type that allow are a union, types add up, and what denies wins. */
export function accessOf({ id, levels: all, compliance }: AccessFacts): Access {
  const levels = all.filter(({ rules }) => rules.length > 0)
  const evaluators = levels.map(({ rules, whose }) => offerEvaluator(rules, whose))
  const providerEvaluators = levels.map(({ rules, whose }) => offerEvaluator(providerRulesOf(rules, whose), whose))
  const ipRules = levels
    .filter(({ rules }) => rules.some(({ type }) => type.endsWith('_ip_cidrs')))
    .map(({ rules, whose }) => addressJudge(rules, whose))
  const violations = compliance && compliancePredicate(compliance)
  const limitsPrices = levels.some(({ rules }) => rules.some(hasLimit))
  const known = new WeakMap<Mapping, { readonly issue: AccessIssue | undefined }>()
  const judge = (mapping: Mapping, effective?: EffectiveRates, by = evaluators): AccessIssue | undefined => {
    for (const denied of by) {
      const reason = denied(mapping, effective)
      if (reason !== undefined) return { by: 'rules', reason }
    }
    const reason = violations?.(mapping)
    return reason === undefined ? undefined : { by: 'compliance', reason }
  }
  return {
    id,
    restricted: evaluators.length > 0 || violations !== undefined,
    admit(address) {
      if (ipRules.length === 0) return
      const from = address()
      for (const denied of ipRules) {
        const reason = denied(from)
        if (reason !== undefined) throw errors.forbidden(`Access denied: ${reason}.`)
      }
    },
    issue(mapping, request) {
      const effective = limitsPrices && request && mapping.price && effectiveRatesOf(mapping.price, request)
      if (effective) return judge(mapping, effective)
      let verdict = known.get(mapping)
      if (!verdict) {
        verdict = { issue: judge(mapping) }
        known.set(mapping, verdict)
      }
      return verdict.issue
    },
    providerIssue: mapping => judge(mapping, undefined, providerEvaluators),
  }
}

/** All rules of a session are kept: they are the scope that it was made with. */
const providerRulesOf = (rules: readonly Rule[], whose: Level['whose']): readonly Rule[] =>
  whose === 'the session' ? rules : rules.filter(({ type }) => type.endsWith('_providers'))

type OfferType = Exclude<RuleType, `${string}_ip_cidrs`>
interface Kind {
  matches(rule: RuleValue, mapping: Mapping, effective?: EffectiveRates): boolean
  /** Explains why an offer is not allowed: no allowing rule matches it, or `rules`, a denying rule, does. */
  reason(mapping: Mapping, rules: readonly RuleValue[], effective?: EffectiveRates): string
}

/** Rates of tokens that are not charged at an offer's usual rates. */
interface EffectiveRates {
  readonly rates: Rates
  /** In millionths. */
  readonly factor: bigint
  /** For which requests that is so. */
  readonly says: string
}

/** Undefined where the usual rates hold. A cheaper service tier may not be the one that is served. */
function effectiveRatesOf(price: Price, { promptTokens, terms }: PricedRequest): EffectiveRates | undefined {
  if (price.tiers.length === 0 && !price.tierFactors) return undefined
  const rates = price.tiers.length > 0 ? ratesFor(price, promptTokens) : price.rates
  const tierFactor = tierFactorOf(price, terms)
  const factor = tierFactor > MILLION ? tierFactor : MILLION
  if (rates === price.rates && factor === MILLION) return undefined
  const above = price.tiers.find(tier => tier.rates === rates)?.above
  const says = [
    ...(above === undefined ? [] : [`for prompts of more than ${above} tokens`]),
    ...(factor === MILLION ? [] : [`at service tier ${terms.tier}`]),
  ]
  return { rates, factor, says: `, ${says.join(', ')}` }
}

const kinds: { readonly [T in OfferType]: Kind } = {
  allow_models: {
    matches: namesModel,
    reason: ({ model }) => `Model ${model.id} is not in the allowed models list`,
  },
  deny_models: {
    matches: namesModel,
    reason: ({ model }) => `Model ${model.id} is in the denied models list`,
  },
  allow_providers: {
    matches: namesProvider,
    reason: ({ provider }) => `Provider ${provider.id} is not in the allowed providers list`,
  },
  deny_providers: {
    matches: namesProvider,
    reason: ({ provider }) => `Provider ${provider.id} is in the denied providers list`,
  },
  allow_pricing: {
    matches: (rule, mapping, effective) => isOfType(rule, mapping) && excess(rule, mapping, effective) === undefined,
    reason(mapping, rules, effective) {
      const [rule] = rules
      if (rules.length > 1 || !rule) return `The price of ${offerOf(mapping)} is in none of the allowed ranges`
      return (
        (isOfType(rule, mapping) ? excess(rule, mapping, effective) : undefined) ??
        `Only ${rule.pricing} models are allowed`
      )
    },
  },
  deny_pricing: {
    matches: (rule, mapping, effective) =>
      isOfType(rule, mapping) && (!hasLimit(rule) || excess(rule, mapping, effective) !== undefined),
    reason(mapping, [rule], effective) {
      return excess(rule!, mapping, effective) ?? `${rule!.pricing === 'free' ? 'Free' : 'Paid'} models are not allowed`
    },
  },
}

/** The reason against an offer, or undefined. */
function offerEvaluator(rules: readonly Rule[], whose: string) {
  const types = Object.keys(kinds) as OfferType[]
  const byType = types.map(type => ({ type, rules: rules.filter(rule => rule.type === type) }))
  const present = byType.filter(each => each.rules.length > 0)
  const denying = present.filter(({ type }) => type.startsWith('deny'))
  const allowing = present.filter(({ type }) => type.startsWith('allow'))
  return (mapping: Mapping, effective?: EffectiveRates): string | undefined => {
    for (const { type, rules } of denying) {
      const rule = rules.find(each => kinds[type].matches(each, mapping, effective))
      if (rule) return signed(kinds[type].reason(mapping, [rule], effective), [rule], whose)
    }
    for (const { type, rules } of allowing) {
      if (rules.some(each => kinds[type].matches(each, mapping, effective))) continue
      return signed(kinds[type].reason(mapping, rules, effective), rules, whose)
    }
    return undefined
  }
}

/** The reason against an address, or undefined. One that is not known may be any that is denied. */
function addressJudge(rules: readonly Rule[], whose: string) {
  const ofType = (type: RuleType) => rules.filter(rule => rule.type === type)
  const [denying, allowing] = [ofType('deny_ip_cidrs'), ofType('allow_ip_cidrs')]
  const ranges = new Map(rules.map(rule => [rule, rangesOf(rule)]))
  return (address: Address | undefined): string | undefined => {
    if (!address && denying.length > 0) return signed('The IP address of the caller is unknown', denying, whose)
    const holds = (rule: Rule) => address !== undefined && ranges.get(rule)!.some(range => inRange(range, address))
    const denied = denying.find(holds)
    if (denied) return signed('The IP address of the caller is in the denied ranges', [denied], whose)
    if (allowing.length === 0 || allowing.some(holds)) return undefined
    return signed('The IP address of the caller is not in the allowed ranges', allowing, whose)
  }
}

const rangesOf = ({ ipCidrs = [] }: Rule): AddressRange[] => ipCidrs.flatMap(text => parseRange(text) ?? [])

const signed = (reason: string, rules: readonly Rule[], whose: string): string =>
  `${reason} (rule${rules.length > 1 ? 's' : ''} ${rules.map(({ id }) => id).join(', ')} of ${whose})`

function namesModel({ models }: RuleValue, mapping: Mapping): boolean {
  return models !== undefined && meansAny(models, namesOf(mapping))
}

function namesProvider({ providers = [] }: RuleValue, { provider }: Mapping): boolean {
  return refsOf(provider).some(ref => providers.includes(ref))
}

const isOfType = ({ pricing }: RuleValue, mapping: Mapping): boolean =>
  pricing === undefined || isFree(mapping) === (pricing === 'free')

const hasLimit = ({ maxInputPrice, maxOutputPrice }: RuleValue): boolean =>
  maxInputPrice !== undefined || maxOutputPrice !== undefined

/** Which of the limits what a request would be charged at exceeds, in words. */
export const priceExcess = (
  limits: Pick<RuleValue, 'maxInputPrice' | 'maxOutputPrice'>,
  mapping: Mapping,
  request: PricedRequest,
): string | undefined => excess(limits, mapping, mapping.price && effectiveRatesOf(mapping.price, request))

/** Which limit of the rule the offer's price exceeds, in words; a price that is not known exceeds any. */
function excess(
  { maxInputPrice, maxOutputPrice }: RuleValue,
  mapping: Mapping,
  effective: EffectiveRates | undefined,
): string | undefined {
  const { rates = mapping.price?.rates, factor = MILLION, says = '' } = effective ?? {}
  const over = (kind: 'input' | 'output', rate: bigint | undefined, limit: string | undefined) => {
    if (limit === undefined) return undefined
    if (rate === undefined) return `The ${kind} price of ${offerOf(mapping)} is unknown`
    if (rate * factor <= parseDecimal(limit, PLACES) * MILLION) return undefined
    const charged = formatDecimal(rate * factor, PLACES + FACTOR_PLACES)
    return `Model ${kind} price exceeds maximum allowed (${charged} > ${limit} USD per million tokens${says})`
  }
  // A model that only embeds writes nothing that has a price.
  const writes = mapping.model.output.some(kind => kind !== 'embedding')
  return (
    over('input', rates?.prompt, maxInputPrice) ??
    (writes ? over('output', rates?.completion, maxOutputPrice) : undefined)
  )
}
