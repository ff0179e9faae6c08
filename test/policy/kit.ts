/** What the tests of policies share: rules, an access under them, and a policy that is only that. */
import { createSecretKey } from 'node:crypto'
import type { Catalog } from '../../src/core/catalog.ts'
import { type Price, parseDecimal } from '../../src/core/money.ts'
import type { Access, Compliance, Policies, Policy, Rule, RuleType, RuleValue } from '../../src/core/policy.ts'
import type { DataPolicy } from '../../src/core/provider-settings.ts'
import { Seals } from '../../src/core/seals.ts'
import type { Mapping, Model } from '../../src/core/translator.ts'
import { accessOf } from '../../src/policy/rules.ts'
import { silent, target } from '../plugins/wire-kit.ts'

let made = 0
export const rule = (type: RuleType, value: RuleValue, keyId?: string): Rule => ({
  id: `r${++made}`,
  type,
  keyId,
  memberId: undefined,
  ...value,
})

export interface Restrictions {
  readonly rules?: readonly Rule[]
  readonly memberRules?: readonly Rule[]
  readonly keyRules?: readonly Rule[]
  readonly compliance?: Compliance
}
export const access = ({ rules = [], memberRules = [], keyRules = [], compliance }: Restrictions = {}): Access =>
  accessOf({
    id: 'a',
    levels: [
      { whose: 'the organization', rules },
      { whose: 'the member', rules: memberRules },
      { whose: 'the API key', rules: keyRules },
    ],
    compliance,
  })

const SEAL_KEY = { version: '01234567', key: createSecretKey(Buffer.alloc(32)) }

export const policyOf = (restrictions: Restrictions = {}, more: Partial<Policy> = {}): Policy => {
  const one = access(restrictions)
  const seals = new Seals({ newest: SEAL_KEY, find: () => SEAL_KEY }, 'org')
  return { keepsReplies: true, seals, access: () => one, catalog: shared => shared, credentials: () => [], ...more }
}

/** Policies of organizations that are denied nothing. */
export const lenient: Policies = { of: () => policyOf() }

export interface OfferFacts {
  readonly provider?: string
  readonly model?: string
  readonly aliases?: readonly string[]
  /** USD per million tokens of input and output; undefined is unknown. */
  readonly price?: readonly [input: string, output: string] | undefined
  readonly owner?: string
  readonly data?: Partial<DataPolicy>
}

export function offer({
  provider = 'acme',
  model = 'large',
  aliases = [],
  price,
  owner,
  data,
}: OfferFacts = {}): Mapping {
  const { mapping } = target({
    provider: { id: provider, owner, dataPolicy: { ...silent, ...data } },
    model: { id: model, aliases },
    mapping: price ? priced(...price) : {},
  })
  return mapping
}

export function priced(input: string, output: string): { price: Price; pricing: Record<string, string> } {
  const rates = { prompt: parseDecimal(input, 6), completion: parseDecimal(output, 6) }
  return { price: { rates, tiers: [] }, pricing: { prompt: input, completion: output } }
}

/** A catalogue of these offers; those of one model or one provider share it. */
export function catalogOf(facts: readonly OfferFacts[]): Catalog {
  const models = new Map<string, Model>()
  const providers = new Map<string, Mapping['provider']>()
  for (const fact of facts) {
    const made = offer(fact)
    const model = models.get(made.model.id) ?? { ...made.model, mappings: [] }
    const provider = providers.get(made.provider.id) ?? made.provider
    models.set(model.id, model)
    providers.set(provider.id, provider)
    ;(model.mappings as Mapping[]).push({ ...made, model, provider })
  }
  const aliases = new Map([...models.values()].flatMap(model => model.aliases.map(alias => [alias, model] as const)))
  return { models, aliases, providers }
}
