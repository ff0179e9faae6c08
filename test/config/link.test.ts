/** Linking: what is joined, converted, compiled and shared, and how a snapshot ends. */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { seriesOf } from '../../src/core/offer.ts'
import type { Route } from '../../src/core/snapshot.ts'
import type { Model } from '../../src/core/translator.ts'
import type { Match } from '../../src/lib/router.ts'
import { candidatesOf } from '../../src/routing/candidate.ts'
import { resolve } from '../../src/routing/resolve.ts'
import {
  acme,
  base,
  edited,
  env,
  type Files,
  fakeRegistries,
  GATEWAY,
  KEY,
  linked,
  loadIn,
  mapping,
  PROVIDER,
  providerYaml,
  ref,
  refusal,
  TEAM,
} from './kit.ts'

const root = t.testdir({})
const folder = () => mkdtempSync(join(root, 'link-'))
const load = loadIn(root)

t.test('models, mappings and providers are joined, with defaults', async t => {
  const off = providerYaml.replace('provider: acme', 'provider: off\nenabled: false').replace('acme-large', 'unknown')
  const snapshot = await load({
    'providers.d/off.yaml': off,
    'providers.d/.hidden.yaml': 'x',
    'providers.d/README': '',
  })
  const { models, aliases, providers } = snapshot.catalog
  t.strictSame([...providers.keys()], ['acme'], 'a provider that is off is left out wholly')
  t.strictSame([...models.keys()], ['acme-large', 'acme-embed'])
  t.equal(aliases.get('acme-l'), models.get('acme-large'))
  t.equal(models.get('acme-large')?.created, Date.UTC(2026, 0, 31) / 1000)
  t.equal(models.get('acme-embed')?.created, 0)
  t.match(acme(snapshot), {
    baseUrl: 'https://api.acme.example/v1',
    headers: { 'x-team': 'team-secret' },
    passHeaders: {},
    timeouts: { connect: 5_000, firstEvent: undefined, idle: 90_000, total: 900_000 },
    quirks: { drop: new Set(), rename: {}, default: {}, clamp: {} },
    priority: 1,
  })
  t.equal(acme(snapshot).wires.get('chat')?.wire, 'openai.chat')
  const offer = mapping(snapshot)
  t.equal(offer.provider, acme(snapshot))
  t.equal(offer.model, models.get('acme-large'))
  t.match(offer, { externalId: 'acme-large-2026-01', unpriced: undefined, contextLength: 200_000, maxN: 1 })
  t.strictSame([...offer.supports], ['streaming', 'tools'])
  t.equal(offer.parameters, undefined)
  const plain = mapping(await load(edited(PROVIDER, '    id: acme-large-2026-01\n', '')))
  t.equal(plain.externalId, 'acme-large')
  t.throws(() => (snapshot.files.providers[0]!.value.models as unknown[]).push(1), 'what was read is frozen')
})

t.test('what a manifest sends is secret by its name, or where it comes from a reference and looks like it', async t => {
  const at = (name: string) => `"${ref(name)}"`
  const rows: [manifest: string, secrets: string[], values: string[]][] = [
    ['headers: { X-Plain: plain-but-1a2b3c4d5e6f7a8b, sec-monkey: a, x-author: b }', [], []],
    [`headers: { helicone: ${TEAM} }`, [], ['team-secret']],
    [`headers: { x-team: "of ${ref('TEAM')}", x-other: ${TEAM} }`, [], ['of team-secret', 'team-secret']],
    [
      'headers: { Ocp-Apim-Subscription-Key: a, helicone-auth: b, cf-aig-authorization: c, x-functions-key: d }',
      ['a', 'b', 'c', 'd'],
      [],
    ],
    ['headers: { x-auth-key: a, x-api-key: b, apikey: c, x-goog-token: d, x-session_key: e }', [...'abcde'], []],
    [`headers: { x-api-key: ${TEAM} }`, ['team-secret'], []],
    [
      `quirks: { default: { tenant: ${TEAM}, list: [{ deep: ${KEY} }], plain: x } }`,
      [],
      ['team-secret', 'sk-acme-one, sk-acme-two'],
    ],
    [
      `headers: { a: ${at('TOKEN')}, b: "Bearer ${ref('TOKEN')}1", c: ${at('UUID')}, d: ${at('LIST')} }`,
      ['7Qx9-b2LmZ81vT4k', '7Qx9-b2LmZ81vT4k1', '3f2a1b4c-9d8e-4f70-a1b2-c3d4e5f60718'],
      ['7Qx9-b2LmZ81vT4k, 7Qx9-b2LmZ81vT4k, c'],
    ],
    [
      `headers: { a: ${at('SITE')}, b: ${at('VERSION')}, c: ${at('REGION')}, d: ${at('TITLE')}, e: ${at('MODEL')} }`,
      [],
      [
        'https://www.acme-2.com/a1b2c3d4e5f6',
        '2024-12-01-preview',
        'europe-west12-b',
        'Acme International Assistant 2',
        'gpt-4o-mini-2024-07-18',
      ],
    ],
    [`headers: { a: ${at('HOST')}, b: ${at('SHORT')}, c: plain }`, [], ['gateway-2.eu-central-1.acme.com']],
    [`headers: { a: ${at('NONE:-https://www.acme.com')}, b: ${at('NONE:-7Qx9-b2LmZ81vT4k')} }`, [], []],
    [`headers: { a: "${ref('NONE:-https://')}${ref('HOST')}" }`, [], ['https://gateway-2.eu-central-1.acme.com']],
    [`quirks: { default: { account: ${at('TOKEN')} } }`, ['7Qx9-b2LmZ81vT4k'], []],
  ]
  for (const [manifest, secrets, values] of rows) {
    const { sentSecrets } = acme(await load(edited(PROVIDER, `headers: { X-Team: ${TEAM} }`, manifest), sending))
    const { key: _, ...found } = sentSecrets ?? { key: '', secrets: [], values: [] }
    t.strictSame(found, { secrets, values }, manifest)
  }
  const header = (at: number) => `x-${at}-key: ${'k'.repeat(200)}${at}`
  const faults: [headers: string, message: RegExp][] = [
    [Array.from({ length: 33 }, (_, at) => `x-${at}-key: k${at}`).join(', '), /at most 32 of 4096 characters/],
    [Array.from({ length: 21 }, (_, at) => header(at)).join(', '), /at most 32 of 4096 characters/],
    [Array.from({ length: 65 }, (_, at) => `x-${at}: "${ref('SITE')}${at}"`).join(', '), /at most 64 values/],
  ]
  for (const [headers, message] of faults) {
    const manifest = edited(PROVIDER, `headers: { X-Team: ${TEAM} }`, `headers: { ${headers} }`)
    await t.rejects(load(manifest, sending), { message })
  }
})
const sending = {
  ...env,
  TOKEN: '7Qx9-b2LmZ81vT4k',
  UUID: '3f2a1b4c-9d8e-4f70-a1b2-c3d4e5f60718',
  LIST: '7Qx9-b2LmZ81vT4k, 7Qx9-b2LmZ81vT4k, c',
  SITE: 'https://www.acme-2.com/a1b2c3d4e5f6',
  VERSION: '2024-12-01-preview',
  REGION: 'europe-west12-b',
  TITLE: 'Acme International Assistant 2',
  MODEL: 'gpt-4o-mini-2024-07-18',
  HOST: 'gateway-2.eu-central-1.acme.com',
  SHORT: 'a1b2c3d',
}

t.test('a provider that may be within the network gets media as data, unless its manifest says otherwise', async t => {
  const rows: [address: string, said: string, inlined: boolean][] = [
    ['https://api.acme.example/v1', '', false],
    ['https://api.acme.example/v1', 'inline_media: true', true],
    ['http://127.0.0.1:8000/v1', '', true],
    ['http://gpu:8000/v1', 'allow_http: true', true],
    ['http://api.acme.example/v1', 'allow_http: true', true],
    ['https://gpu/v1', '', true],
    ['https://10.0.0.7/v1', '', true],
    ['https://vllm.internal/v1', '', true],
    ['https://vllm.models.svc/v1', '', true],
    ['http://127.0.0.1:8000/v1', 'inline_media: false', false],
  ]
  for (const [address, said, inlined] of rows) {
    const [file] = Object.values(edited(PROVIDER, 'https://api.acme.example/v1/', address))
    const { inlineMedia } = acme(await load({ [PROVIDER]: `${said}\n${file}` }))
    t.equal(inlineMedia, inlined, `${address} ${said}`)
  }
})

t.test('a manifest names what more of a client’s headers is passed on', async t => {
  const passed = 'pass_headers: { anthropic-beta: [context-1m-2025-08-07, mcp-*, "*"] }\n'
  const snapshot = await load(edited(PROVIDER, 'timeouts:', `${passed}timeouts:`))
  t.strictSame(acme(snapshot).passHeaders, { 'anthropic-beta': ['context-1m-2025-08-07', 'mcp-*', '*'] })
})

t.test('a manifest names what more of a client’s own body its operator pays for', async t => {
  const native = 'native_fields: [inference_geo]\nnative_tools: [code_execution_*]\n'
  const snapshot = await load(edited(PROVIDER, 'timeouts:', `${native}timeouts:`))
  t.match(acme(snapshot), { nativeFields: ['inference_geo'], nativeTools: ['code_execution_*'] })
})

t.test('a provider whose secret comes from its platform has one credential, without a value yet', async t => {
  const found = async (auth: string) => {
    const { auth: linked, credentials } = acme(await load(edited(PROVIDER, `scheme: bearer, secret: ${KEY}`, auth)))
    t.match(credentials, [{ id: /^acme#[0-9a-f]{7}$/, source: 'platform', secret: '', fingerprint: /^[0-9a-f]{7}$/ }])
    return linked
  }
  t.strictSame(await found('scheme: aws-sigv4, region: eu-west-1, source: default, profile: work'), {
    scheme: 'aws-sigv4',
    region: 'eu-west-1',
    service: 'bedrock',
    source: 'default',
    profile: 'work',
  })
  t.match(await found('scheme: gcp-oauth, source: default'), { scheme: 'gcp-oauth', source: 'default' })
})

t.test('a provider lists the variables that it lacks', async t => {
  const address = edited(PROVIDER, 'api.acme', `${ref('SITE:-api')}.acme`)[PROVIDER]!
  const waiting = async (secret: string) => {
    const files = { [PROVIDER]: `# ${ref('COMMENT')}\n${address.replace(KEY, secret)}` }
    return acme(await load(files, { TEAM: 'x' })).variables
  }
  const secret = `"${ref('ACME_ID')}:${ref('ACME_API_KEY:-')}"`
  t.strictSame(await waiting(secret), { secret: ['ACME_ID', 'ACME_API_KEY'], address: ['SITE'] })
  t.strictSame(await waiting('""'), { secret: [], address: ['SITE'] })
})

t.test('an alias on a line of its own means a model, or one provider with it', async t => {
  const { catalog } = await load({
    'config/models.d/mine.yaml': 'aliases: { fast: acme-large, short: acme-l, ours: acme/acme-large-2026-01 }',
  })
  const model = catalog.models.get('acme-large')!
  t.strictSame(model.aliases, ['acme-l', 'fast', 'short'])
  for (const name of model.aliases)
    t.strictSame(resolve(catalog, name), { kind: 'model', model, provider: undefined, name })
  t.strictSame(resolve(catalog, 'ours'), {
    kind: 'model',
    model,
    provider: catalog.providers.get('acme'),
    name: 'ours',
  })
  t.equal(resolve(catalog, 'acme/fast').kind, 'model')
})

/** The base configuration with another end of the provider's file. */
const ending = (text: string, files: Files = {}) =>
  load({ [PROVIDER]: providerYaml.slice(0, providerYaml.indexOf('models:')) + text, ...files })

t.test('an open catalogue offers whatever a caller names, at one price', async t => {
  const { catalog } = await ending(
    'models: open\nopen: { pricing: { prompt: "1", completion: "2" }, supports: [streaming], context_length: 4096 }\n',
  )
  const wanted = resolve(catalog, 'acme/vendor/Model_1.5:tag@2')
  t.match(wanted, { kind: 'model', provider: { id: 'acme' }, model: { id: 'vendor/Model_1.5:tag@2', family: 'acme' } })
  const [offer, ...more] = (wanted as { model: Model }).model.mappings
  t.strictSame(more, [])
  t.match(offer, { externalId: 'vendor/Model_1.5:tag@2', contextLength: 4096, unpriced: undefined, maxN: 1 })
  t.strictSame([...offer!.supports], ['streaming'])
  t.match(offer!.price?.rates, { prompt: 1_000_000n, completion: 2_000_000n })
  t.equal(candidatesOf(offer!)[0]?.key, 'acme/*', 'names of callers add no circuits and no measurements')
  t.equal(seriesOf(offer!.model), '*')
  t.equal(resolve(catalog, 'acme/a').kind, 'model')
  t.equal(catalog.open!.get('acme')!.find('a'), catalog.open!.get('acme')!.find('a'), 'one offer for one name')
  t.ok(Object.isFrozen(offer) && Object.isFrozen(offer!.model) && Object.isFrozen(offer!.model.mappings))

  const first = catalog.open!.get('acme')!.find('first')
  for (let at = 0; at < 1000; at++) catalog.open!.get('acme')!.find(`m${at}`)
  t.not(catalog.open!.get('acme')!.find('first'), first, 'those that are not in use are forgotten')
})

t.test('what cannot be the name of a model is unknown in an open catalogue, too', async t => {
  const { catalog } = await ending('models: open\n')
  const names = ['', '.', '..', '../x', 'a/../b', 'a//b', '/a', 'a/', 'a b', 'a?b', 'a#b', 'a%2f', 'a\\b', 'é', '-a']
  for (const name of [...names, 'a'.repeat(129)]) {
    t.throws(() => resolve(catalog, `acme/${name}`), { status: 404, code: 'model_not_found' }, name)
  }
  t.equal(resolve(catalog, `acme/${'a'.repeat(128)}`).kind, 'model')
  for (const name of ['a', 'none/a']) t.throws(() => resolve(catalog, name), { code: 'model_not_found' }, name)
  t.match(await refusal(ending('models: opne\n')), /8:9: expected a list of models, or "open", got "opne"/)
})

t.test('what is discovered is served by an open catalogue, at one address', async t => {
  const rows: [text: string, said: RegExp][] = [
    ['models: []\ndiscover: true\n', /:9:11: "discover" needs "models: open"; add it/],
    ['models: open\ndiscover: yes please\n', /:9:11: expected true or false/],
    ['models: open\norganizations: none\n', /:9:16: expected a list of organizations, or "all"/],
    ['models: open\norganizations: []\n', /:9:16: /],
  ]
  for (const [text, said] of rows) t.match(await refusal(ending(text)), said)
  const open = 'models: open\nopen: { regions: [eu] }\ndiscover: true\n'
  const changed = (from: string, to: string) => {
    const head = edited(PROVIDER, from, to)[PROVIDER]!
    return refusal(load({ [PROVIDER]: head.slice(0, head.indexOf('models:')) + open }))
  }
  t.match(await changed('api.acme', '{region}.acme'), /:10:11: models cannot be discovered at an address that contains/)
  const signed = await changed(`bearer, secret: ${KEY}`, 'aws-sigv4, region: eu, source: default')
  t.match(signed, /:10:11: the models of a provider with auth scheme "aws-sigv4" cannot be discovered/)
  const { catalog } = await ending('models: open\ndiscover: true\n')
  t.match(catalog.open?.get('acme'), { searched: true, listed: [] })
})

t.test(
  'a provider of any model without a credential serves the default organization, unless its file says more',
  async t => {
    const rows: [text: string, organizations: readonly string[] | undefined][] = [
      ['models: []\n', undefined],
      ['models: open\n', undefined],
      ['models: open\ndiscover: true\n', ['default']],
      ['models: open\ndiscover: true\norganizations: all\n', undefined],
      ['models: []\norganizations: [one, two]\n', ['one', 'two']],
    ]
    const limitOf = ({ catalog }: Awaited<ReturnType<typeof ending>>) => catalog.providers.get('acme')!.organizations
    for (const [text, organizations] of rows) t.strictSame(limitOf(await ending(text)), organizations, text)
    const open = edited(PROVIDER, `bearer, secret: ${KEY}`, 'none')[PROVIDER]!
    const keyless = await load({ [PROVIDER]: `${open.slice(0, open.indexOf('models:'))}models: open\n` })
    t.strictSame(keyless.catalog.providers.get('acme')!.organizations, ['default'])
  },
)

t.test('an open catalogue stands beside listed models, with a price that is unknown unless it is written', async t => {
  const { catalog } = await ending(
    'models: [{ model: acme-large, id: large-1 }]\nopen: { unpriced: allow, wires: { chat: anthropic.messages } }\n',
  )
  t.equal(resolve(catalog, 'acme-large').kind, 'model')
  for (const listed of ['acme/acme-large', 'acme/acme-l', 'acme/large-1']) {
    t.match(resolve(catalog, listed), { model: { id: 'acme-large' } }, listed)
  }
  const { mappings } = (resolve(catalog, 'acme/large-2') as { model: Model }).model
  t.match(mappings, [{ externalId: 'large-2', price: undefined, unpriced: 'allow' }])
  t.equal(mappings[0]?.wires.get('chat')?.wire, 'anthropic.messages')
  t.ok(['streaming', 'tools', 'vision', 'reasoning'].every(name => mappings[0]?.supports.has(name as 'tools')))
  const { aliases, pinned } = (
    await ending('models: open\n', { 'config/models.d/mine.yaml': 'aliases: { any: acme/vendor/x:1 }' })
  ).catalog
  t.strictSame([aliases.has('any'), pinned?.get('any')], [false, 'acme/vendor/x:1'])
})

t.test('prices become exact rates, and the decimals that clients are shown', async t => {
  const written = '{ prompt: "2.50", completion: "10.00", input_cache_read: "0.25", request: "0.001" }'
  const priced = async (pricing: string, tiers = '[]') =>
    mapping(await load(edited(PROVIDER, `pricing: ${written}`, `pricing: ${pricing}\n    pricing_tiers: ${tiers}`)))

  const offer = mapping(await load({}))
  t.strictSame(
    { ...offer.price },
    {
      rates: { prompt: 2_500_000n, completion: 10_000_000n, input_cache_read: 250_000n, request: 1_000_000_000n },
      tiers: [],
      perSecond: undefined,
      perImage: undefined,
      tierFactors: undefined,
    },
  )
  t.strictSame(offer.pricing, {
    prompt: '0.0000025',
    completion: '0.00001',
    input_cache_read: '0.00000025',
    request: '0.001',
  })

  const small = await priced('{ prompt: "0.000001", completion: "0", web_search: "0.000000000001", image: "0.5" }')
  t.strictSame(small.price?.rates, { prompt: 1n, completion: 0n, web_search: 1n, image: 500_000_000_000n })
  t.strictSame(small.pricing, { prompt: '0.000000000001', completion: '0', web_search: '0.000000000001', image: '0.5' })

  const tiered = await priced(
    '{ prompt: "1", completion: "2" }',
    '[{ above_prompt_tokens: 100, prompt: "3" }, { above_prompt_tokens: 200, completion: "4" }]',
  )
  t.strictSame(tiered.price?.tiers, [
    { above: 100, rates: { prompt: 3_000_000n, completion: 2_000_000n } },
    { above: 200, rates: { prompt: 1_000_000n, completion: 4_000_000n } },
  ])

  const sized = await priced('{ request: "0.02", per_image: { 1024x1024: "0.040" }, per_second: { default: "0.10" } }')
  t.strictSame(sized.pricingBySize, { per_second: { default: '0.1' }, per_image: { '1024x1024': '0.04' } })
  t.strictSame(sized.price?.rates, { request: 20_000_000_000n })

  t.equal((await priced('{ prompt: "1" }')).price, undefined, 'a price without completion is unknown')
  t.strictSame((await priced('{ prompt: "1" }')).pricing, { prompt: '0.000001' })
  const embed = edited(PROVIDER, 'model: acme-large', 'model: acme-embed')[PROVIDER]!.replace(
    written,
    '{ prompt: "1" }',
  )
  const [embedding] = (await load({ [PROVIDER]: embed })).catalog.models.get('acme-embed')!.mappings
  t.strictSame(embedding?.price?.rates, { prompt: 1_000_000n }, 'a model that writes no text needs none')
  const none = mapping(await load(edited(PROVIDER, `    pricing: ${written}\n`, '')))
  t.strictSame([none.price, none.pricing], [undefined, {}])
})

t.test('chains are compiled, with overrides, and share filters where options are equal', async t => {
  const registries = fakeRegistries()
  const snapshot = await linked(folder(), base, registries)
  const route = (method: string, path: string) => (snapshot.match(method, path) as Match<Route>).value
  const filter = (path: string, name: string) =>
    route(path === '/v1/models' || path === '/v1/key' ? 'GET' : 'POST', path).chain.links.find(
      link => link.factory.name === name,
    )!.filter
  const options = (path: string, name: string) =>
    registries.made.find(made => made.filter === filter(path, name))?.options

  t.strictSame(options('/v1/chat/completions', 'admission'), { in_flight: 10, lag: 200 })
  t.strictSame(options('/v1/chat/completions', 'cache'), { max_entry: 1024 * 1024 })
  t.strictSame(options('/v1/chat/completions', 'ratelimit'), { rpm: 100 }, 'the override of one endpoint')
  t.strictSame(options('/v1/messages', 'ratelimit'), { rpm: 600 }, 'leaves the others alone')
  t.strictSame(options('/v1/models', 'auth'), { optional: true })
  t.strictSame(options('/v1/messages', 'auth'), { optional: false })
  t.equal(filter('/v1/chat/completions', 'admission'), filter('/v1/messages', 'admission'))
  t.equal(filter('/v1/models', 'ratelimit'), filter('/v1/key', 'ratelimit'))
  t.not(filter('/v1/models', 'ratelimit'), filter('/v1/messages', 'ratelimit'), 'other chain, other filter')
  t.equal(registries.made.length, 7 + 1 + 2)

  t.equal(snapshot.routes().length, 4)
  t.equal(route('POST', '/v1/messages').endpoint.name, 'messages')
  t.strictSame(snapshot.match('GET', '/v1/messages'), { allow: ['POST'] })
  t.equal(snapshot.match('HEAD', '/v1/models'), snapshot.match('GET', '/v1/models'))
  t.strictSame(snapshot.match('HEAD', '/v1/messages'), { allow: ['POST'] })
  t.strictSame(snapshot.match('PUT', '/v1/models'), { allow: ['GET', 'HEAD'] })
  t.equal(snapshot.match('GET', '/v1/messages/'), undefined)
  t.equal(snapshot.match('GET', '__proto__'), undefined)
})

t.test('an override is merged over the options of the chain', async t => {
  const registries = fakeRegistries()
  const files = edited(GATEWAY, 'chat: { ratelimit: { rpm: 100 } }', 'chat: { admission: { lag: 1s } }')
  await linked(folder(), { ...base, ...files }, registries)
  const options = registries.made.filter(made => made.name === 'admission').map(made => made.options)
  t.strictSame(options, [
    { in_flight: 10, lag: 1000 },
    { in_flight: 10, lag: 200 },
  ])
})

t.test('the codec of an endpoint is made with its compat options, or their defaults', async t => {
  const chat = async (files = {}) => {
    const { endpoint, compat } = ((await load(files)).match('POST', '/v1/chat/completions') as Match<Route>).value
    return [endpoint.codec.wire, compat]
  }
  t.strictSame(await chat(), ['{"loud":true}', { loud: true }])
  const files = edited(GATEWAY, 'chat: {', 'chat: { compat: { loud: false },')
  t.strictSame(await chat(files), ['{"loud":false}', { loud: false }])
  const { endpoint, compat } = ((await load({})).match('POST', '/v1/messages') as Match<Route>).value
  t.strictSame([endpoint.codec.wire, compat], ['fake', undefined], 'an endpoint without choices is as it was')
})

t.test('CF-07 a filter that cannot be made is refused at its place, and the others are disposed', async t => {
  const registries = fakeRegistries()
  registries.filters.set('billing', {
    ...registries.filters.get('billing')!,
    create: () => {
      throw new Error('no ledger')
    },
  })
  t.equal(
    await refusal(linked(folder(), base, registries)),
    `${GATEWAY}:12:7: filter "billing" cannot be created: no ledger`,
  )
  t.equal(registries.made.length, 6)
  t.ok(registries.made.every(made => made.disposed === 1))
})

t.test('a retired snapshot disposes of its filters once, when its last exchange is gone', async t => {
  const registries = fakeRegistries()
  const snapshot = await linked(folder(), base, registries)
  const disposed = () => registries.made.map(made => made.disposed)
  registries.made[0]!.filter.dispose = () => {
    registries.made[0]!.disposed++
    throw new Error('stuck')
  }
  snapshot.retain()
  snapshot.retain()
  snapshot.release()
  snapshot.retire()
  t.ok(
    disposed().every(times => times === 0),
    'one exchange is still there',
  )
  snapshot.release()
  t.ok(
    disposed().every(times => times === 1),
    'also those after one that fails',
  )
  t.strictSame(registries.logged, ['filter dispose failed'])
  snapshot.retire()
  t.ok(disposed().every(times => times === 1))
  t.throws(() => snapshot.retain(), /after its disposal/)
  t.throws(() => snapshot.release(), /more often/)

  const idle = fakeRegistries()
  ;(await linked(folder(), base, idle)).retire()
  t.ok(
    idle.made.every(made => made.disposed === 1),
    'at once when it is idle',
  )
})
