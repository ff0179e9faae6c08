/** Which provider may serve a request: what a model name means, what a request needs, the order, and who failed. */
import t from 'tap'
import type { Catalog } from '../../src/core/catalog.ts'
import type { Credential } from '../../src/core/provider-settings.ts'
import type { Snapshot } from '../../src/core/snapshot.ts'
import type { Mapping, Model, Provider } from '../../src/core/translator.ts'
import { chat } from '../../src/endpoints/inference.ts'
import { errors, GatewayError } from '../../src/lib/error.ts'
import { chat as operation } from '../../src/operations/chat/index.ts'
import { explainRoute } from '../../src/routing/explain.ts'
import { errorType, exhausted } from '../../src/routing/outcome.ts'
import { plan } from '../../src/routing/plan.ts'
import { capable } from '../../src/routing/requirements.ts'
import { resolve } from '../../src/routing/resolve.ts'
import { sessionKey } from '../../src/routing/session-affinity.ts'
import { thrown } from '../core/kit.ts'
import { flat } from '../core/prices.ts'
import { target } from '../plugins/wire-kit.ts'
import { Memory, queryOf, settingsOf } from './kit.ts'

const { translator } = target()
const credential = (id: string): Credential => ({ id, source: 'platform', secret: `sk-${id}`, fingerprint: `f-${id}` })
const provider = (id: string, more: Partial<Provider> = {}): Provider =>
  target({
    provider: { id, wires: new Map([['chat', translator]]), credentials: [credential(id)], priority: 1, ...more },
  }).provider
const price = (prompt: string, completion = prompt) => ({
  price: flat({ prompt, completion }),
  pricing: { prompt, completion },
})

type Offer = readonly [by: Provider, more?: Partial<Mapping>]
/** Models by id; every offer is priced at a dollar unless it says otherwise. */
function catalogOf(models: Record<string, { model?: Partial<Model>; offers: Offer[] }>): Catalog {
  const catalog = { models: new Map<string, Model>(), aliases: new Map<string, Model>(), providers: new Map() }
  for (const [id, { model: more, offers }] of Object.entries(models)) {
    const mappings: Mapping[] = []
    const model: Model = { ...target().mapping.model, id, ...more, mappings }
    catalog.models.set(id, model)
    for (const alias of model.aliases) catalog.aliases.set(alias, model)
    for (const [by, fields] of offers) {
      catalog.providers.set(by.id, by)
      mappings.push({
        ...target().mapping,
        model,
        provider: by,
        wires: by.wires,
        externalId: `${id}-1`,
        ...price('1'),
        ...fields,
      })
    }
  }
  return catalog
}
const ask = (catalog: Catalog, request: object, auto: string[] = []) => {
  const query = queryOf(catalog, request, { principal: undefined })
  return { query, plan: () => plan(query, { auto }) }
}
/** The targets of a request as `provider/model`, or the refusal. */
function planned(catalog: Catalog, request: object, auto?: string[]): string[] | GatewayError {
  try {
    return ask(catalog, request, auto)
      .plan()
      .targets.map(({ mapping, provider: by }) => `${by.id}/${mapping.model.id}`)
  } catch (error) {
    return error as GatewayError
  }
}

t.test('a model name is an id, an alias, or either behind its provider', async t => {
  const [acme, best] = [provider('acme'), provider('best')]
  const catalog = catalogOf({
    large: {
      model: { aliases: ['l', 'best/large'] },
      offers: [
        [acme, { externalId: 'acme/large-2026' }],
        [best, { externalId: 'shared' }],
      ],
    },
    small: { offers: [[best, { externalId: 'shared' }]] },
  })
  const found: [name: string, model: string, written: string, provider?: string][] = [
    ['large', 'large', 'large'],
    ['l', 'large', 'l'],
    ['acme/large', 'large', 'large', 'acme'],
    ['acme/l', 'large', 'l', 'acme'],
    ['acme/acme/large-2026', 'large', 'acme/large-2026', 'acme'],
    ['best/shared', 'large', 'shared', 'best'],
    ['best/small', 'small', 'small', 'best'],
    ['best/large', 'large', 'best/large'],
  ]
  for (const [name, model, written, by] of found) {
    const wanted = resolve(catalog, name)
    t.ok(wanted.kind === 'model', name)
    if (wanted.kind === 'model') t.strictSame([wanted.model.id, wanted.provider?.id], [model, by], name)
    const { query, plan } = ask(catalog, { model: name, user: 'u' })
    const found = plan()
    t.strictSame([found.requestedModel, found.requestedProvider], [written, by ?? null], `${name}, as it was written`)
    t.equal(
      sessionKey(query, found.requestedId),
      `session  ${model} u`,
      'a session is the same under all names of a model',
    )
  }
  t.strictSame(resolve(catalog, 'auto'), { kind: 'auto' })

  const refused: [name: string, status: number, code: string, said: RegExp][] = [
    ['unknown', 404, 'model_not_found', /"unknown" does not exist.*GET \/v1\/models/],
    [
      'lrage',
      404,
      'model_not_found',
      /does not exist\. Did you mean "large"\? GET .*; operators add models in config\/models\.d\.$/,
    ],
    ['arg', 404, 'model_not_found', /Did you mean "large" or "best\/large"\?/],
    [
      'acme/unknown',
      404,
      'model_not_found',
      /"acme\/unknown" does not exist.*add models in providers\.d\/acme\.yaml\.$/,
    ],
    ['acme/larg', 404, 'model_not_found', /Did you mean "acme\/large"/],
    ['nobody/small', 404, 'model_not_found', /"nobody\/small" does not exist\. Did you mean "small"\?/],
    ['nobody/large', 404, 'model_not_found', /"nobody\/large"/],
    ['acme/', 404, 'model_not_found', /./],
    ['/large', 404, 'model_not_found', /./],
    ['Large', 404, 'model_not_found', /./],
    ['acme/large-2026', 400, 'model_not_found', /Request it as "acme\/large"\./],
    ['shared', 400, 'model_not_found', /Request it as "best\/large" or "best\/small"\./],
    [
      'acme/small',
      400,
      'model_not_supported',
      /Provider acme does not serve the model "small"; .* providers\.d\/acme\.yaml\.$/,
    ],
    ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'acme/__proto__', '__proto__/large'].map(
      (name): [string, number, string, RegExp] => [name, 404, 'model_not_found', /does not exist/],
    ),
  ]
  for (const [name, status, code, said] of refused) {
    const error = thrown(() => resolve(catalog, name)) as GatewayError
    t.strictSame([error.status, error.code, error.param], [status, code, 'model'], name)
    t.match(error.message, said, name)
  }
})

t.test('a need that no mapping meets is a 400, and one that some meet leaves those', async t => {
  const part = (type: string) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, { type }] }] })
  const tools = (type: string) => ({ tools: [{ type }] })
  const can = (...names: string[]) => ({ supports: new Set(names) as Mapping['supports'] })
  const format = (type: string) => ({ response_format: { type } })
  const chat = target().translator
  const rows: [request: object, able: Partial<Mapping>, param: string, code?: string][] = [
    [part('image_url'), can('vision'), 'messages'],
    [part('input_audio'), can('audio_input'), 'messages'],
    [part('file'), can('file_input'), 'messages'],
    [tools('function'), can('tools'), 'tools'],
    [tools('custom'), { ...can('tools'), wires: new Map([['chat', { ...chat, customTools: true }]]) }, 'tools'],
    [tools('web_search'), can('web_search'), 'tools'],
    [{ web_search: true }, can('web_search'), 'tools'],
    [format('json_object'), can('json_output'), 'response_format'],
    [format('json_schema'), can('structured_outputs'), 'response_format'],
    [{ reasoning_effort: 'low' }, can('reasoning'), 'reasoning_effort'],
    [{ reasoning: { effort: 'low' } }, can('reasoning'), 'reasoning_effort'],
    [{ reasoning: { max_tokens: 9 } }, can('reasoning'), 'reasoning_effort'],
    [{ reasoning: { mode: 'pro' } }, { reasoningModes: ['standard', 'pro'] }, 'reasoning.mode'],
    [{ verbosity: 'low' }, can('verbosity'), 'verbosity'],
    [{ service_tier: 'flex' }, { serviceTiers: ['flex'] }, 'service_tier', 'unsupported_service_tier'],
    [{ service_tier: 'priority' }, { serviceTiers: ['priority'] }, 'service_tier', 'unsupported_service_tier'],
    [{ n: 9 }, { maxN: 9 }, 'n'],
  ]
  const bare = { ...target().mapping, maxN: 8 }
  for (const [needs, able, param, code = 'model_not_supported'] of rows) {
    const request = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...needs } as never
    const says = JSON.stringify(needs)
    const { error } = capable([bare, bare], operation, request)
    t.match(error, { status: 400, code, param, message: /^No provider of "m" supports ./, failover: false }, says)
    const fits = { ...bare, ...able }
    t.strictSame(capable([bare, fits, bare], operation, request), { mappings: [fits] }, says)
  }
  for (const plain of [
    { n: 1 },
    { service_tier: 'auto' },
    { reasoning_effort: 'none' },
    format('text'),
    { tools: [] },
  ]) {
    const request = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...plain } as never
    t.strictSame(capable([bare], operation, request), { mappings: [bare] }, JSON.stringify(plain))
  }
  const both = { model: 'm', messages: [], tools: [{ type: 'function' }], verbosity: 'low' } as never
  const { error } = capable(
    [
      { ...bare, ...can('tools') },
      { ...bare, ...can('verbosity') },
    ],
    operation,
    both,
  )
  t.equal(error?.param, 'verbosity', 'one mapping must meet every need')
})

t.test('a preference that some mappings meet leaves those; one that none meets leaves all', async t => {
  const can = (...names: string[]) => ({ supports: new Set(names) as Mapping['supports'] })
  const long = { messages: [{ role: 'user', content: 'x'.repeat(4000) }] }
  const tuned = (name: string) => ({ parameters: new Set([name]) })
  const rows: [request: object, able: Partial<Mapping>, bare?: Partial<Mapping>][] = [
    [long, { contextLength: 1000 }, { contextLength: 999 }],
    [{ max_tokens: 100 }, { maxOutput: 100 }, { maxOutput: 99 }],
    [{ stream: true }, can('streaming')],
    [{ tool_choice: 'required' }, tuned('tool_choice'), tuned('temperature')],
    [{ tool_choice: { type: 'function', function: { name: 'f' } } }, {}, tuned('temperature')],
    [{ parallel_tool_calls: true }, can('parallel_tool_calls')],
    [{ effort: 'low' }, can('effort')],
    [{ response_format: { type: 'json_schema' } }, can('structured_outputs', 'json_output'), can('json_output')],
    [
      { reasoning_effort: 'xhigh' },
      { ...can('reasoning'), reasoningEfforts: ['high', 'xhigh'] },
      { ...can('reasoning'), reasoningEfforts: ['high'] },
    ],
  ]
  for (const [wish, able, fields = {}] of rows) {
    const request = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...wish } as never
    const bare = { ...target().mapping, ...fields }
    const fits = { ...bare, ...able, ...(able.parameters || !fields.parameters ? {} : { parameters: undefined }) }
    const says = JSON.stringify(wish).slice(0, 80)
    t.strictSame(capable([bare, fits, bare], operation, request), { mappings: [fits] }, says)
    t.strictSame(capable([bare, bare], operation, request), { mappings: [bare, bare] }, says)
    const reachable = (mapping: Mapping) => mapping !== fits
    const all = { mappings: [bare, fits, bare] }
    t.strictSame(capable(all.mappings, operation, request, { reachable }), all, `${says} of one who cannot be asked`)
  }
})

t.test('needs that no single mapping meets are refused together', async t => {
  const can = (name: string) => ({ ...target().mapping, supports: new Set([name]) as Mapping['supports'] })
  const request = { model: 'm', messages: [], tools: [{ type: 'function' }], verbosity: 'low', stream: true } as never
  const { error } = capable([can('tools'), can('verbosity')], operation, request)
  t.equal(error?.message, 'No provider of "m" supports tools and verbosity at once.')
  t.equal(
    capable([can('tools')], operation, request).error?.message,
    'No provider of "m" supports verbosity. Leave it out, or add "verbosity" to "supports" of the model in the manifest of its provider.',
  )
  const few = { ...can('streaming'), maxN: 2 }
  const many = { model: 'm', messages: [], n: 3 } as never
  const custom = { model: 'm', messages: [], tools: [{ type: 'custom' }] } as never
  t.equal(
    capable([can('tools')], operation, custom).error?.message,
    'No provider of "m" supports tools of type "custom". It takes tools of type "function".',
  )
  const chat = { ...target().translator, customTools: true } as const
  const dropping = (...drop: string[]) => {
    const { provider } = target()
    const quirks = { ...provider.quirks, drop: new Set(drop) }
    return { ...can('tools'), wires: new Map([['chat', chat]] as const), provider: { ...provider, quirks } }
  }
  t.equal(capable([dropping()], operation, custom).error, undefined)
  t.equal(
    capable([dropping('tools.custom')], operation, custom).error?.message,
    'No provider of "m" supports tools of type "custom". It takes tools of type "function".',
  )
  const refusal = 'No provider of "m" supports so many choices in one request. It takes at most 2.'
  t.equal(capable([few], operation, many).error?.message, refusal)
})

t.test('targets stand in order of priority, then price, then name, and each credential is one', async t => {
  const two = { credentials: [credential('1'), credential('2')] }
  const catalog = catalogOf({
    m: {
      offers: [
        [provider('zeta'), price('2')],
        [provider('alpha'), price('2')],
        [provider('cheap'), price('1', '1.5')],
        [provider('unknown'), { price: undefined, unpriced: 'allow' }],
        [provider('first', { priority: 5, ...two }), price('9')],
        [provider('local', { auth: { scheme: 'none' }, credentials: [] }), price('0')],
        [provider('off', { priority: 0 })],
        [provider('mute', { wires: new Map() })],
        [provider('poor', { credentials: [] })],
        [provider('gone'), { deactivatedAt: '2020-01-01' }],
        [provider('going', { priority: 2 }), { deactivatedAt: '2999-01-01', ...price('3') }],
        [provider('dear'), { price: undefined, unpriced: 'refuse' }],
      ],
    },
  })
  const found = ask(catalog, { model: 'm' }).plan()
  const all = found.targets
  t.strictSame(
    all.map(({ provider: by }) => by.id),
    ['first', 'first', 'going', 'local', 'cheap', 'alpha', 'zeta', 'unknown'],
  )
  t.strictSame(
    all.slice(0, 4).map(({ credential: of }) => of?.id),
    ['1', '2', 'going', undefined],
  )
  t.ok(all.every(({ mapping, price }) => price === mapping.price))
  t.strictSame([found.requestedModel, found.requestedProvider], ['m', null])
  t.strictSame(planned(catalog, { model: 'zeta/m' }), ['zeta/m'], 'a prefix pins')
})

t.test('a mapping that cannot serve a request has a reason', async t => {
  const acme = provider('acme')
  const poor = provider('poor', { credentials: [] })
  const catalog = catalogOf({
    m: { offers: [[acme], [poor]] },
    pinned: { offers: [[acme, { deactivatedAt: '2020-02-02' }], [poor]] },
    old: { model: { deactivatedAt: '2020-01-01' }, offers: [[acme]] },
    ended: {
      offers: [
        [acme, { deactivatedAt: '2020-02-02' }],
        [poor, { deactivatedAt: '2020-03-03' }],
      ],
    },
    poor: { offers: [[poor]] },
    split: { offers: [[acme], [poor, { supports: new Set(['verbosity']) }]] },
    dear: { offers: [[acme, { price: undefined, unpriced: 'refuse' }]] },
    embed: { offers: [[provider('mute', { wires: new Map() })]] },
  })
  const rows: [request: object, status: number, code: string, param: string | null, said: RegExp][] = [
    [
      { model: 'poor' },
      404,
      'model_not_available',
      'model',
      /"poor" is not available: no provider of it has a credential/,
    ],
    [{ model: 'poor/m' }, 404, 'model_not_available', 'model', /credential/],
    [{ model: 'dear' }, 402, 'billing_error', null, /price of acme\/dear is unknown/],
    [{ model: 'old' }, 404, 'model_not_found', 'model', /deactivated on 2020-01-01/],
    [{ model: 'acme/old' }, 404, 'model_not_found', 'model', /deactivated on 2020-01-01/],
    [{ model: 'acme/pinned' }, 404, 'model_not_found', 'model', /deactivated on 2020-02-02/],
    [{ model: 'ended' }, 404, 'model_not_found', 'model', /deactivated on 2020-03-03/],
    [
      { model: 'embed' },
      400,
      'model_not_supported',
      'model',
      /"embed" is not served on this endpoint. GET \/v1\/models says/,
    ],
    [{ model: 'acme/m', routing: 'price' }, 400, 'unsupported_parameter_combination', 'routing', /prefixed/],
    [{ model: 'm', verbosity: 'low' }, 400, 'model_not_supported', 'verbosity', /verbosity/],
    [{ model: 'split', verbosity: 'low' }, 400, 'model_not_supported', 'verbosity', /"split" supports verbosity/],
    [{ model: 'poor', verbosity: 'low' }, 400, 'model_not_supported', 'verbosity', /"poor" supports verbosity/],
    [{ model: 'auto' }, 404, 'model_not_available', 'model', /auto/],
  ]
  for (const [request, status, code, param, said] of rows) {
    const error = planned(catalog, request)
    const says = JSON.stringify(request)
    t.ok(error instanceof GatewayError, says)
    t.match(error, { status, code, param, message: said }, says)
  }
  t.strictSame(planned(catalog, { model: 'acme/m', routing: 'auto' }), ['acme/m'])
  t.strictSame(planned(catalog, { model: 'm', routing: 'price' }), ['acme/m'])
})

t.test('an offer that an explanation excludes has its true reason', async t => {
  const day = 86_400_000
  const noon = Date.UTC(2026, 0, 2, 12)
  t.intercept(Date, 'now', { value: () => noon })
  const date = (at: number) => new Date(at).toISOString().slice(0, 10)
  const [yesterday, today, tomorrow] = [-day, 0, day].map(ms => date(noon + ms)) as [string, string, string]
  const streams = { supports: new Set(['streaming']) as Mapping['supports'] }
  const mute = { supports: new Set() as Mapping['supports'] }
  const better = 'another provider fits the length or the form of the request better'
  const rows: [says: string, left: Offer, question: object, reason: string | undefined][] = [
    ['nothing', [provider('b'), streams], {}, undefined],
    ['a prompt that is too long for it', [provider('b'), { contextLength: 100 }], { prompt: 200 }, better],
    ['a prompt that is not', [provider('b'), { contextLength: 300 }], { prompt: 200 }, undefined],
    ['a stream', [provider('b'), mute], { stream: true }, better],
    [
      'a stream, though it ends one day',
      [provider('b'), { ...mute, deactivatedAt: tomorrow }],
      { stream: true },
      better,
    ],
    ['its end', [provider('b'), { deactivatedAt: yesterday }], {}, 'it is deactivated'],
    ['its end on this day', [provider('b'), { ...mute, deactivatedAt: today }], { stream: true }, 'it is deactivated'],
    ['no wire', [provider('b', { wires: new Map() })], {}, 'its provider does not speak "chat"'],
    ['no priority', [provider('b', { priority: 0 })], {}, 'its provider has priority 0'],
    ['no credential', [provider('b', { credentials: [] })], {}, 'its provider has no credential'],
    ['no price', [provider('b'), { price: undefined, unpriced: 'refuse' }], {}, 'its price is unknown'],
  ]
  const chain = { links: [{ factory: { name: 'route' }, options: settingsOf({}) }] }
  for (const [says, left, question, reason] of rows) {
    const catalog = catalogOf({ m: { model: { output: ['text'] }, offers: [[provider('a'), streams], left] } })
    const snapshot = { catalog, routes: () => [{ endpoint: chat, chain }] } as unknown as Snapshot
    const { excluded } = explainRoute(snapshot, new Memory(), { model: 'm', ...question })
    t.strictSame(excluded, reason === undefined ? [] : [{ offer: 'b/m', reason }], says)
  }
})

t.test('auto takes the first model of its list that fits, and its best provider first', async t => {
  const [acme, best] = [provider('acme'), provider('best', { priority: 9 })]
  const reasons = { supports: new Set(['reasoning']) as Mapping['supports'] }
  const catalog = catalogOf({
    thinker: { offers: [[acme, { ...reasons, ...price('5') }]] },
    plain: {
      offers: [
        [acme, price('1')],
        [best, price('2')],
      ],
    },
    free: {
      offers: [
        [acme, price('3')],
        [best, price('0')],
      ],
    },
    dead: { offers: [[provider('poor', { credentials: [] })]] },
  })
  const auto = ['dead', 'missing', 'thinker', 'plain', 'free']
  const rows: [request: object, targets: string[]][] = [
    [{}, ['acme/thinker', 'best/plain', 'acme/plain', 'best/free', 'acme/free']],
    [{ no_reasoning: true }, ['best/plain', 'acme/plain', 'best/free', 'acme/free']],
    [{ free_models_only: true }, ['best/free']],
    [{ reasoning_effort: 'low' }, ['acme/thinker']],
  ]
  for (const [request, targets] of rows) {
    t.strictSame(planned(catalog, { model: 'auto', ...request }, auto), targets, JSON.stringify(request))
  }
  t.match(planned(catalog, { model: 'auto', free_models_only: true }, ['plain']), { code: 'model_not_available' })
  const found = ask(catalog, { model: 'auto' }, auto).plan()
  t.strictSame([found.requestedModel, found.requestedProvider], ['auto', null])
})

t.test('when no provider answered, the error says what all failures share', async t => {
  const upstream = (status: number, upstreamStatus: number, code: string) =>
    new GatewayError({
      status,
      type: 'upstream_error',
      code,
      message: `said ${status}`,
      failover: true,
      upstreamStatus,
    })
  const throttled = upstream(503, 429, 'upstream_rate_limited')
  const quota = upstream(503, 429, 'upstream_quota')
  const missing = upstream(404, 404, 'not_found')
  const broken = upstream(502, 500, 'upstream_error')
  const wrongKey = upstream(502, 401, 'upstream_credential')
  const [unreachable, slow] = [errors.unreachable('ECONNREFUSED'), errors.upstreamTimeout('idle')]
  const rows: [failures: GatewayError[], status: number, code: string | null, said: RegExp][] = [
    [[throttled], 503, 'upstream_rate_limited', /Every provider/],
    [[throttled, quota], 503, 'upstream_rate_limited', /Every provider/],
    [[unreachable, unreachable], 502, 'fetch_failed', /ECONNREFUSED/],
    [[slow, slow], 504, 'timeout', /idle/],
    [[missing, missing], 404, 'not_found', /said 404/],
    [[broken], 502, 'all_providers_failed', /said 502/],
    [[wrongKey], 502, 'all_providers_failed', /said 502/],
    [[throttled, slow], 502, 'all_providers_failed', /idle/],
    [[slow, throttled], 502, 'all_providers_failed', /said 503/],
    [[missing, unreachable], 502, 'all_providers_failed', /ECONNREFUSED/],
  ]
  for (const [failures, status, code, said] of rows) {
    const error = exhausted(failures, 300_000)
    const says = failures.map(failure => failure.code).join()
    t.match([error.status, error.code, error.message], [status, code, said], says)
    t.not(error.status, 401, says)
    t.equal('retry-after' in error.headers, status === 503, says)
  }
  const waits: [ms: (number | undefined)[], seconds: string][] = [
    [[undefined], '5'],
    [[7000], '7'],
    [[1], '1'],
    [[30_000, 4001, undefined], '5'],
    [[undefined, 30_000], '30'],
    [[86_400_000, 3_600_000], '300'],
  ]
  for (const [ms, seconds] of waits) {
    const failures = ms.map(retryAfterMs => throttled.with({ retryAfterMs }))
    t.equal(exhausted(failures, 300_000).headers['retry-after'], seconds, `the shortest of ${ms}`)
  }
  const kinds: [GatewayError, string][] = [
    [slow, 'timeout'],
    [throttled, 'rate_limited'],
    [unreachable, 'network_error'],
    [broken, 'upstream_error'],
    [wrongKey, 'upstream_error'],
    [errors.truncated(), 'upstream_error'],
  ]
  for (const [error, kind] of kinds) t.equal(errorType(error), kind)
})
