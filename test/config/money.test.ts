/** Coding plans, prices by size and factors of service tiers, as operators write them. */
import t from 'tap'
import { formatMoney } from '../../src/core/money.ts'
import { isPremium } from '../../src/core/plan.ts'
import { flat } from '../core/prices.ts'
import { edited, GATEWAY, gatewayYaml, loadIn, mapping, PROVIDER, providerYaml, refusal } from './kit.ts'

const load = loadIn(t.testdir({}))
const pricing = 'pricing: { prompt: "2.50", completion: "10.00", input_cache_read: "0.25", request: "0.001" }'
const gateway = (more: string) => load({ [GATEWAY]: `${gatewayYaml}${more}` })

t.test('plans that are not declared are the usual ones', async t => {
  const { plans } = await load({})
  t.strictSame(
    [...plans].map(([name, { monthly, weeklyPremium }]) => [name, formatMoney(monthly), formatMoney(weeklyPremium)]),
    [
      ['lite', '87', '8.7'],
      ['pro', '237', '28.44'],
      ['max', '537', '80.55'],
    ],
  )
  const lite = plans.get('lite')!
  t.strictSame([...lite.serviceTiers], ['auto', 'default', 'flex'])
  t.strictSame([...lite.routing], ['auto', 'price'])
  t.ok(lite.endpoints.has('chat') && lite.endpoints.has('messages') && !lite.endpoints.has('embeddings'))
  const premium = (prompt: string, completion: string) => isPremium(lite, flat({ prompt, completion }))
  t.strictSame([premium('4.999999', '14.999999'), premium('5', '0'), premium('0', '15')], [false, true, true])
  t.equal(isPremium(lite, undefined), false)
})

t.test('declared plans are all that there are, with what they say', async t => {
  const plan = 'monthly: "20", weekly_premium: "5.5", premium_from: { prompt: "1" }, endpoints: [chat], routing: [auto]'
  const { plans } = await gateway(`plans: { pro: { ${plan} } }\n`)
  t.strictSame([...plans.keys()], ['pro'])
  t.match(plans.get('pro'), {
    monthly: 20_000_000_000n,
    weeklyPremium: 5_500_000_000n,
    premiumFrom: { prompt: 1_000_000n, completion: 15_000_000n },
    endpoints: new Set(['chat']),
    routing: new Set(['auto']),
  })
  t.equal((await gateway('plans: {}\n')).plans.size, 0)
  const wrong: [yaml: string, message: RegExp][] = [
    ['plans: { gold: { monthly: "1", weekly_premium: "1" } }', /unknown key "gold"/],
    ['plans: { lite: { monthly: "1" } }', /missing key "weekly_premium"/],
    ['plans: { lite: { monthly: 1, weekly_premium: "1" } }', /expected an amount of USD in quotes, such as "8\.70"/],
    ['plans: { lite: { monthly: "1.1234567", weekly_premium: "1" } }', /expected an amount of USD in quotes/],
  ]
  for (const [yaml, message] of wrong) t.match(await refusal(gateway(`${yaml}\n`)), message, yaml)
})

t.test('prices by size and factors of tiers are exact', async t => {
  const priced = async (yaml: string) => mapping(await load(edited(PROVIDER, pricing, yaml))).price
  t.match(await priced('pricing: { per_image: { 1K: "0.04", default: "0.05" }, per_second: { 720p: "0.1" } }'), {
    rates: {},
    perImage: { '1K': 40_000_000_000n, default: 50_000_000_000n },
    perSecond: { '720p': 100_000_000_000n },
  })
  t.match(await priced('pricing: { ocr_page: "0.002" }'), { rates: { ocr_page: 2_000_000_000n } }, 'pages are enough')
  const factors = 'pricing: { prompt: "1", completion: "2" }\n    tier_factors: { flex: "0.5", priority: "2.5" }'
  t.strictSame((await priced(factors))?.tierFactors, { flex: 500_000n, priority: 2_500_000n })
  const odd = 'pricing: { prompt: "1", completion: "2" }\n    tier_factors: { flex: 0.5 }'
  t.match(await refusal(priced(odd)), /expected a factor in quotes, such as "0\.5"/)
})

t.test('tokens that have a price need all of them, a request pays for all or none of them', async t => {
  const known = async (yaml: string, model: string) => {
    const priced = providerYaml.replace(pricing, `pricing: { ${yaml} }`).replace('model: acme-large', `model: ${model}`)
    const { catalog } = await load({ [PROVIDER]: priced })
    return catalog.models.get(model)!.mappings[0]!.price !== undefined
  }
  for (const [yaml, chat, embedding] of [
    ['request: "0.02"', true, true],
    ['prompt: "1", request: "0.02"', false, true],
    ['completion: "1", request: "0.02"', false, false],
    ['prompt: "1", completion: "2", request: "0.02"', true, true],
    ['prompt: "1"', false, true],
    ['input_cache_read: "1", request: "0.02"', true, true],
  ] as const) {
    t.equal(await known(yaml, 'acme-large'), chat, `${yaml} of a chat`)
    t.equal(await known(yaml, 'acme-embed'), embedding, `${yaml} of an embedding`)
  }
})

t.test('how long request rows are kept has a unit', async t => {
  const stores = (yaml: string) => load(edited(GATEWAY, 'sqlite: ../data/gateway.db', `sqlite: x.db, ${yaml}`))
  t.equal((await stores('keep_requests: 90d')).files.gateway.value.stores.keep_requests, 90 * 86_400_000)
  t.match(await refusal(stores('keep_requests: 90')), /expected a duration with a unit/)
})
