/** What rules and compliance policies allow, kind by kind, and how they add up. */
import fc from 'fast-check'
import t from 'tap'
import { parseAddress } from '../../src/core/address.ts'
import { isFree } from '../../src/core/offer.ts'
import type { Compliance, Rule, RuleType, RuleValue } from '../../src/core/policy.ts'
import type { Mapping } from '../../src/core/translator.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { noDemands } from '../../src/policy/compliance.ts'
import { ruleValue } from '../../src/policy/rule-value.ts'
import { thrown } from '../core/kit.ts'
import { flat, rates } from '../core/prices.ts'
import { runs } from '../helpers/runs.ts'
import { access, type OfferFacts, offer, type Restrictions, rule } from './kit.ts'

fc.configureGlobal({ seed: 20261121 })

/** The reason against an offer, or `ok`. */
const verdict = (restrictions: Restrictions, facts: OfferFacts = {}): string =>
  access(restrictions).issue(offer(facts))?.reason ?? 'ok'

type Row = [type: RuleType, value: RuleValue, facts: OfferFacts, reason: string]
const table = (name: string, rows: readonly Row[]) =>
  t.test(name, async t => {
    for (const [type, value, facts, reason] of rows) {
      const one = rule(type, value)
      const says = `${type} ${JSON.stringify(value)} for ${JSON.stringify(facts)}`
      const suffix = reason === 'ok' ? '' : ` (rule ${one.id} of the organization)`
      t.equal(verdict({ rules: [one] }, facts), reason + suffix, says)
      const member = reason === 'ok' ? '' : ` (rule ${one.id} of the member)`
      t.equal(verdict({ memberRules: [one] }, facts), reason + member, `${says}, set on the member`)
      const own = reason === 'ok' ? '' : ` (rule ${one.id} of the API key)`
      t.equal(verdict({ keyRules: [one] }, facts), reason + own, `${says}, set on the key`)
    }
  })

const large = { model: 'large', aliases: ['l'], provider: 'acme' }
table('models go by their id, an alias, or either behind the provider', [
  ['allow_models', { models: ['large'] }, large, 'ok'],
  ['allow_models', { models: ['other', 'l'] }, large, 'ok'],
  ['allow_models', { models: ['acme/large'] }, large, 'ok'],
  ['allow_models', { models: ['acme/l'] }, large, 'ok'],
  ['allow_models', { models: ['acme/acme-large-2026'] }, large, 'ok'],
  ['allow_models', { models: ['other'] }, large, 'Model large is not in the allowed models list'],
  ['allow_models', { models: ['best/large'] }, large, 'Model large is not in the allowed models list'],
  ['allow_models', { models: ['Large'] }, large, 'Model large is not in the allowed models list'],
  ['deny_models', { models: ['large'] }, large, 'Model large is in the denied models list'],
  ['deny_models', { models: ['x', 'l'] }, large, 'Model large is in the denied models list'],
  ['deny_models', { models: ['acme/large'] }, large, 'Model large is in the denied models list'],
  ['deny_models', { models: ['acme/acme-large-2026'] }, large, 'Model large is in the denied models list'],
  ['deny_models', { models: ['best/large', 'larg', 'large-2'] }, large, 'ok'],
  ['deny_models', { models: ['__proto__', 'constructor'] }, large, 'ok'],
])

const own = { provider: 'mine', owner: 'org-1' }
table('providers go by their id, those of the organization also by custom', [
  ['allow_providers', { providers: ['acme'] }, {}, 'ok'],
  ['allow_providers', { providers: ['best'] }, {}, 'Provider acme is not in the allowed providers list'],
  ['allow_providers', { providers: ['custom'] }, own, 'ok'],
  ['allow_providers', { providers: ['custom:mine'] }, own, 'ok'],
  ['allow_providers', { providers: ['mine'] }, own, 'ok'],
  ['allow_providers', { providers: ['custom:other'] }, own, 'Provider mine is not in the allowed providers list'],
  ['allow_providers', { providers: ['custom'] }, {}, 'Provider acme is not in the allowed providers list'],
  ['deny_providers', { providers: ['acme', 'x'] }, {}, 'Provider acme is in the denied providers list'],
  ['deny_providers', { providers: ['best'] }, {}, 'ok'],
  ['deny_providers', { providers: ['custom'] }, own, 'Provider mine is in the denied providers list'],
  ['deny_providers', { providers: ['custom:mine'] }, own, 'Provider mine is in the denied providers list'],
  ['deny_providers', { providers: ['custom'] }, {}, 'ok'],
])

const free: OfferFacts = { price: ['0', '0'] }
const cheap: OfferFacts = { price: ['1', '2'] }
const dear: OfferFacts = { price: ['10', '50'] }
const input = 'Model input price exceeds maximum allowed (10 > 2.5 USD per million tokens)'
const output = 'Model output price exceeds maximum allowed (50 > 20 USD per million tokens)'
const limits = { maxInputPrice: '2.5', maxOutputPrice: '20' }
table('prices are of tokens, and one that is not known is above any limit', [
  ['allow_pricing', { pricing: 'free' }, free, 'ok'],
  ['allow_pricing', { pricing: 'free' }, cheap, 'Only free models are allowed'],
  ['allow_pricing', { pricing: 'free' }, {}, 'Only free models are allowed'],
  ['allow_pricing', { pricing: 'paid' }, cheap, 'ok'],
  ['allow_pricing', { pricing: 'paid' }, free, 'Only paid models are allowed'],
  ['allow_pricing', limits, cheap, 'ok'],
  ['allow_pricing', limits, free, 'ok'],
  ['allow_pricing', limits, dear, input],
  ['allow_pricing', { maxOutputPrice: '20' }, dear, output],
  ['allow_pricing', { maxInputPrice: '10' }, dear, 'ok'],
  ['allow_pricing', limits, {}, 'The input price of acme/large is unknown'],
  ['allow_pricing', { maxOutputPrice: '20' }, {}, 'The output price of acme/large is unknown'],
  ['allow_pricing', { pricing: 'paid', maxInputPrice: '2.5' }, dear, input],
  ['allow_pricing', { pricing: 'paid', maxInputPrice: '2.5' }, free, 'Only paid models are allowed'],
  ['deny_pricing', { pricing: 'free' }, free, 'Free models are not allowed'],
  ['deny_pricing', { pricing: 'free' }, cheap, 'ok'],
  ['deny_pricing', { pricing: 'paid' }, cheap, 'Paid models are not allowed'],
  ['deny_pricing', { pricing: 'paid' }, {}, 'Paid models are not allowed'],
  ['deny_pricing', { pricing: 'paid' }, free, 'ok'],
  ['deny_pricing', { maxInputPrice: '2.5' }, dear, input],
  ['deny_pricing', { maxInputPrice: '2.5' }, cheap, 'ok'],
  ['deny_pricing', { maxInputPrice: '2.5' }, {}, 'The input price of acme/large is unknown'],
  ['deny_pricing', { pricing: 'free', maxInputPrice: '2.5' }, dear, 'ok'],
])

t.test('what only embeds has no price of output that could be too high', async t => {
  const large = offer({ price: ['1', '2'] })
  const mapping = { ...large, price: flat({ prompt: '1' }), model: { ...large.model, output: ['embedding'] } }
  const denies = (type: 'allow_pricing' | 'deny_pricing', value: RuleValue) =>
    access({ rules: [rule(type, value)] }).issue(mapping as Mapping) !== undefined
  t.equal(denies('allow_pricing', limits), false)
  t.equal(denies('deny_pricing', { maxOutputPrice: '20' }), false)
  t.equal(denies('allow_pricing', { maxInputPrice: '0.5' }), true)
})

t.test(
  'limits on prices hold for what a request is charged at: long prompts and service tiers have prices of their own',
  async t => {
    const mapping: Mapping = {
      ...offer(),
      price: {
        rates: rates({ prompt: '2', completion: '10' }),
        tiers: [
          { above: 1000, rates: rates({ prompt: '4', completion: '10' }) },
          { above: 2000, rates: rates({ prompt: '4', completion: '30' }) },
        ],
        tierFactors: { flex: 500_000n, priority: 1_750_000n },
      },
    }
    const long = 'for prompts of more than'
    const rows: [promptTokens: number, tier: string | undefined, value: RuleValue, reason: string][] = [
      [1000, undefined, limits, 'ok'],
      [
        1001,
        undefined,
        limits,
        `input price exceeds maximum allowed (4 > 2.5 USD per million tokens, ${long} 1000 tokens)`,
      ],
      [9000, undefined, { maxInputPrice: '4' }, 'ok'],
      [
        2001,
        undefined,
        { maxOutputPrice: '29.999999' },
        `output price exceeds maximum allowed (30 > 29.999999 USD per million tokens, ${long} 2000 tokens)`,
      ],
      [10, 'default', limits, 'ok'],
      [
        10,
        'priority',
        limits,
        'input price exceeds maximum allowed (3.5 > 2.5 USD per million tokens, at service tier priority)',
      ],
      [10, 'priority', { maxInputPrice: '3.5', maxOutputPrice: '17.5' }, 'ok'],
      [
        1500,
        'priority',
        { maxInputPrice: '4' },
        `input price exceeds maximum allowed (7 > 4 USD per million tokens, ${long} 1000 tokens, at service tier priority)`,
      ],
      // The provider may serve another tier than the cheap one.
      [10, 'flex', { maxInputPrice: '1' }, 'input price exceeds maximum allowed (2 > 1 USD per million tokens)'],
      [10, 'toString', limits, 'ok'],
    ]
    for (const type of ['allow_pricing', 'deny_pricing'] as const) {
      for (const [promptTokens, tier, value, reason] of rows) {
        const one = rule(type, value)
        const issue = access({ rules: [one] }).issue(mapping, { promptTokens, terms: { tier } })
        const wanted = reason === 'ok' ? undefined : `Model ${reason} (rule ${one.id} of the organization)`
        t.equal(issue?.reason, wanted, `${type} ${JSON.stringify(value)} for ${promptTokens} tokens at ${tier}`)
      }
      t.equal(
        access({ rules: [rule(type, limits)] }).issue(mapping),
        undefined,
        'a listing shows what short prompts may call',
      )
    }
    const free = access({ rules: [rule('deny_pricing', { pricing: 'free' })] })
    t.equal(free.issue(mapping, { promptTokens: 9000, terms: {} }), undefined)
  },
)

t.test('an offer is free when its price is known and zero, however long the prompt', async t => {
  const none = { prompt: '0', completion: '0' }
  const tiers = (...prompts: string[]) => ({
    price: {
      rates: rates(none),
      tiers: prompts.map((prompt, n) => ({ above: 1000 * (n + 1), rates: rates({ ...none, prompt }) })),
    },
  })
  const rows: [fields: Partial<Mapping>, free: boolean][] = [
    [{}, false],
    [{ price: undefined, pricing: none }, false],
    [{ price: flat(none), pricing: none }, true],
    [{ price: flat({ ...none, request: '1' }), pricing: { ...none, request: '1' } }, false],
    [{ ...tiers('0', '0'), pricing: none }, true],
    [{ ...tiers('5'), pricing: none }, false],
    [{ ...tiers('0', '0.1'), pricing: none }, false],
  ]
  for (const [fields, free] of rows) {
    const mapping = { ...offer(), ...fields }
    const said = JSON.stringify(fields, (_, value) => (typeof value === 'bigint' ? String(value) : value))
    t.equal(isFree(mapping), free, said)
    const paidOnly = access({ rules: [rule('allow_pricing', { pricing: 'paid' })] })
    t.equal(paidOnly.issue(mapping) !== undefined, free, said)
  }
})

t.test('addresses: what denies wins, and an unknown one is refused wherever there is a rule', async t => {
  const refused = (restrictions: Restrictions, from: string | undefined) => {
    try {
      access(restrictions).admit(() => (from === undefined ? undefined : parseAddress(from)))
      return 'ok'
    } catch (error) {
      t.match(error, { status: 403, code: 'permission_denied' })
      return (error as GatewayError).message
    }
  }
  const allow = rule('allow_ip_cidrs', { ipCidrs: ['10.0.0.0/8', '2001:db8::/32'] })
  const more = rule('allow_ip_cidrs', { ipCidrs: ['192.0.2.7'] })
  const deny = rule('deny_ip_cidrs', { ipCidrs: ['10.9.0.0/16'] })
  const never = rule('deny_ip_cidrs', { ipCidrs: ['198.51.100.0/24'] })
  const outside = 'Access denied: The IP address of the caller is not in the allowed ranges'
  const unknown = 'Access denied: The IP address of the caller is unknown'
  const denied = `Access denied: The IP address of the caller is in the denied ranges (rule ${deny.id} of the organization).`
  const rows: [Rule[], string | undefined, string][] = [
    [[allow], '10.1.2.3', 'ok'],
    [[allow], '::ffff:10.1.2.3', 'ok'],
    [[allow], '2001:db8::9', 'ok'],
    [[allow], '11.1.2.3', `${outside} (rule ${allow.id} of the organization).`],
    [[allow], undefined, `${outside} (rule ${allow.id} of the organization).`],
    [[allow, more], '192.0.2.7', 'ok'],
    [[allow, more], '192.0.2.8', `${outside} (rules ${allow.id}, ${more.id} of the organization).`],
    [[allow, deny], '10.9.1.1', denied],
    [[deny], '10.9.1.1', denied],
    [[deny], '10.8.1.1', 'ok'],
    [[deny], undefined, `${unknown} (rule ${deny.id} of the organization).`],
    [[deny, never], undefined, `${unknown} (rules ${deny.id}, ${never.id} of the organization).`],
    [[allow, deny], undefined, `${unknown} (rule ${deny.id} of the organization).`],
    [[], undefined, 'ok'],
  ]
  for (const [rules, from, said] of rows) t.equal(refused({ rules }, from), said, `${from}`)
  t.equal(refused({ rules: [allow], keyRules: [more] }, '10.1.2.3'), `${outside} (rule ${more.id} of the API key).`)
  t.equal(verdict({ rules: [allow, deny] }), 'ok', 'they say nothing of offers')
  let asked = 0
  access({ rules: [rule('deny_models', { models: ['x'] })] }).admit(() => {
    asked++
    return undefined
  })
  t.equal(asked, 0, 'an address is read only for them')
})

t.test('allowing rules of one type are a union, types add up, levels narrow, and what denies wins', async t => {
  const models = (...names: string[]) => rule('allow_models', { models: names })
  const providers = (...names: string[]) => rule('allow_providers', { providers: names })
  const rows: [says: string, Restrictions, OfferFacts, ok: boolean][] = [
    ['either list', { rules: [models('a'), models('large')] }, {}, true],
    [
      'either price',
      { rules: [rule('allow_pricing', { pricing: 'free' }), rule('allow_pricing', limits)] },
      cheap,
      true,
    ],
    [
      'neither price',
      { rules: [rule('allow_pricing', { pricing: 'free' }), rule('allow_pricing', limits)] },
      dear,
      false,
    ],
    ['two types', { rules: [models('large'), providers('acme')] }, {}, true],
    ['one type of two', { rules: [models('large'), providers('best')] }, {}, false],
    ['denied though allowed', { rules: [models('large'), rule('deny_models', { models: ['large'] })] }, {}, false],
    [
      'denied though allowed otherwise',
      { rules: [models('large'), rule('deny_providers', { providers: ['acme'] })] },
      {},
      false,
    ],
    ['the key within the organization', { rules: [models('large', 'small')], keyRules: [models('large')] }, {}, true],
    ['the key cannot widen', { rules: [models('small')], keyRules: [models('large')] }, {}, false],
    ['the key narrows', { rules: [models('large')], keyRules: [models('small')] }, {}, false],
    ['the member narrows', { rules: [models('large')], memberRules: [models('small')] }, {}, false],
    ['the key cannot widen the member', { memberRules: [models('small')], keyRules: [models('large')] }, {}, false],
    ['the key denies', { rules: [models('large')], keyRules: [rule('deny_models', { models: ['l'] })] }, large, false],
  ]
  for (const [says, restrictions, facts, ok] of rows) t.equal(verdict(restrictions, facts) === 'ok', ok, says)
  const two = [models('a'), models('b')]
  t.equal(
    verdict({ rules: two }),
    `Model large is not in the allowed models list (rules ${two[0]!.id}, ${two[1]!.id} of the organization)`,
  )
  t.notOk(access().restricted)
  t.ok(access({ keyRules: [models('a')] }).restricted)
})

t.test('what rules add up to is what their definition says', async () => {
  const name = fc.constantFrom('a', 'b', 'c')
  const list = fc.uniqueArray(name, { minLength: 1 })
  const anyRule = fc.oneof(
    list.map(models => rule('allow_models', { models })),
    list.map(models => rule('deny_models', { models })),
    list.map(providers => rule('allow_providers', { providers })),
    list.map(providers => rule('deny_providers', { providers })),
    fc.constantFrom('free' as const, 'paid' as const).map(pricing => rule('allow_pricing', { pricing })),
    fc.constantFrom('free' as const, 'paid' as const).map(pricing => rule('deny_pricing', { pricing })),
  )
  const rules = fc.array(anyRule, { maxLength: 6 })
  const matches = ({ models, providers, pricing }: Rule, model: string, provider: string, isFree: boolean) =>
    models?.includes(model) ?? providers?.includes(provider) ?? isFree === (pricing === 'free')
  const allowed = (level: readonly Rule[], ...facts: [string, string, boolean]) => {
    const ofType = (type: string) => level.filter(one => one.type === type)
    return ['models', 'providers', 'pricing'].every(
      about =>
        !ofType(`deny_${about}`).some(one => matches(one, ...facts)) &&
        (ofType(`allow_${about}`).length === 0 || ofType(`allow_${about}`).some(one => matches(one, ...facts))),
    )
  }
  fc.assert(
    fc.property(rules, rules, name, name, fc.boolean(), (organization, key, model, provider, isFree) => {
      const facts = { model, provider, price: isFree ? (['0', '0'] as const) : (['1', '1'] as const) }
      const expected = allowed(organization, model, provider, isFree) && allowed(key, model, provider, isFree)
      return (verdict({ rules: organization, keyRules: key }, facts) === 'ok') === expected
    }),
    { numRuns: runs(2000) },
  )
})

t.test('a compliance policy holds back what does not say that it complies', async t => {
  const clean = {
    trainsOnData: false,
    logsPrompts: false,
    gdpr: true,
    soc2: '2',
    iso27001: true,
    headquarters: 'DE',
  } as const
  const rows: [demands: Partial<Compliance>, OfferFacts, reason: string][] = [
    [{}, {}, 'ok'],
    [{ noTraining: true }, { data: clean }, 'ok'],
    [{ noTraining: true }, { data: { trainsOnData: true } }, 'acme may train on API data'],
    [{ noTraining: true }, {}, 'acme may train on API data'],
    [{ noLogging: true }, { data: clean }, 'ok'],
    [{ noLogging: true }, { data: { trainsOnData: false } }, 'acme may keep prompts'],
    [{ gdpr: true }, { data: clean }, 'ok'],
    [{ gdpr: true }, { data: { gdpr: false } }, 'acme is not known to comply with GDPR'],
    [{ gdpr: true }, {}, 'acme is not known to comply with GDPR'],
    [{ soc2: '1' }, { data: { soc2: '1' } }, 'ok'],
    [{ soc2: '1' }, { data: clean }, 'ok'],
    [{ soc2: '1' }, {}, 'acme has no SOC 2 report'],
    [{ soc2: '2' }, { data: { soc2: '1' } }, 'acme has no SOC 2 type 2 report'],
    [{ soc2: '2' }, { data: clean }, 'ok'],
    [{ iso27001: true }, {}, 'acme has no ISO 27001 certificate'],
    [{ soc2OrIso27001: true }, { data: { soc2: '2' } }, 'ok'],
    [{ soc2OrIso27001: true }, { data: { iso27001: true } }, 'ok'],
    [
      { soc2OrIso27001: true },
      { data: { soc2: '1' } },
      'acme has neither a SOC 2 type 2 report nor an ISO 27001 certificate',
    ],
    [{ countries: ['DE', 'FR'] }, { data: clean }, 'ok'],
    [{ countries: ['US'] }, { data: clean }, 'acme has its headquarters in none of the allowed countries'],
    [{ countries: ['US'] }, {}, 'acme has its headquarters in none of the allowed countries'],
    [{ blockedProviders: ['acme'] }, { data: clean }, 'acme is a blocked provider'],
    [{ blockedProviders: ['custom'] }, { ...own, data: clean }, 'mine is a blocked provider'],
    [{ allowedProviders: ['acme'] }, {}, 'ok'],
    [{ allowedProviders: ['best'] }, {}, 'acme is no allowed provider'],
    [{ allowedProviders: ['acme'], blockedProviders: ['acme'] }, {}, 'acme is a blocked provider'],
    [{ allowedModels: ['l'] }, large, 'ok'],
    [{ allowedModels: ['small'] }, large, 'large is no allowed model'],
    [{ blockedModels: ['acme/large'] }, large, 'large is a blocked model'],
    [{ blockedModels: ['best/large'] }, large, 'ok'],
    [{ allowedProviders: ['acme'], noTraining: true }, {}, 'acme may train on API data'],
  ]
  for (const [demands, facts, reason] of rows) {
    const says = `${JSON.stringify(demands)} for ${JSON.stringify(facts)}`
    t.equal(verdict({ compliance: { ...noDemands, ...demands } }, facts), reason, says)
  }
  const compliance = { ...noDemands, noTraining: true }
  const both = access({ compliance, rules: [rule('deny_models', { models: ['large'] })] }).issue(offer())
  t.equal(both?.by, 'rules', 'rules are asked first')
})

t.test('a rule is refused that its type does not read', async t => {
  const rows: [RuleType, RuleValue, param: string, said: RegExp][] = [
    ['allow_models', {}, 'models', /needs models/],
    ['allow_models', { providers: ['a'] }, 'providers', /takes models, not providers/],
    ['deny_providers', { providers: [] }, 'providers', /at least one/],
    ['deny_models', { models: ['a', ''] }, 'models', /none of them empty/],
    ['deny_models', { models: Array(1001).fill('a') }, 'models', /up to 1000/],
    ['allow_pricing', { maxInputPrice: '-1' }, 'maxInputPrice', /no price/],
    ['allow_pricing', { maxOutputPrice: 'NaN' }, 'maxOutputPrice', /no price/],
    ['allow_pricing', { pricing: 'free', models: ['a'] }, 'models', /not models/],
    ['allow_ip_cidrs', { ipCidrs: ['10.0.0.0/33'] }, 'ipCidrs', /no range/],
    ['deny_ip_cidrs', { ipCidrs: ['10.0.0.0/8', 'acme.example'] }, 'ipCidrs', /"acme.example"/],
  ]
  for (const [type, value, param, said] of rows) {
    const error = thrown(() => ruleValue(type, value))
    t.ok(error instanceof GatewayError)
    t.match(error, { status: 400, param, message: said }, JSON.stringify(value).slice(0, 60))
  }
  t.strictSame(ruleValue('allow_pricing', { pricing: 'paid', maxInputPrice: '2.5', models: undefined }), {
    pricing: 'paid',
    maxInputPrice: '2.5',
  })
})
