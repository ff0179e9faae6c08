/** Loading and linking: what is refused and where, what is joined, converted, shared and masked. */
import { createHmac } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { effectiveConfig, staticDifferences } from '../../src/config/effective.ts'
import { ConfigError } from '../../src/config/error.ts'
import { loadFiles } from '../../src/config/load.ts'
import type { ConfigSnapshot } from '../../src/config/snapshot.ts'
import type { Route } from '../../src/core/snapshot.ts'
import { faults } from './faults.ts'
import {
  base,
  env,
  type Files,
  fakeRegistries,
  GATEWAY,
  gatewayYaml,
  KEY,
  linked,
  MODELS,
  modelsYaml,
  PROVIDER,
  providerYaml,
  ref,
  TEAM,
  writeFiles,
} from './kit.ts'

const root = t.testdir({})
const folder = () => mkdtempSync(join(root, 'config-'))
const load = (files: Files, environment: Readonly<Record<string, string>> = env) =>
  linked(folder(), { ...base, ...files }, fakeRegistries(), environment)

/** `file` of the base configuration with one change, which must apply. */
function edited(file: string, from: string, to: string): Files {
  const before = base[file]!
  if (!before.includes(from)) throw new Error(`${file} does not hold ${JSON.stringify(from)}`)
  return { [file]: before.replace(from, () => to) }
}

async function refusal(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
  } catch (thrown) {
    return thrown instanceof ConfigError ? String(thrown) : `not a ConfigError: ${thrown}`
  }
  return 'not refused'
}

t.test('a fault in a file is refused with its position and with what would be right', async t => {
  for (const [file, from, to, said] of faults) {
    t.equal(await refusal(load(edited(file, from, to))), `${file}:${said}`, `${file}: ${to.slice(0, 60)}`)
  }
})

t.test('a file that cannot be used at all is refused by its name', async t => {
  const bomb = 'a: &a [x, x, x]\nb: &b [*a, *a, *a, *a]\n'.concat(
    ...['c', 'd', 'e', 'f'].map((name, i) => `${name}: &${name} [${Array(9).fill(`*${'bcde'[i]}`).join(', ')}]\n`),
  )
  const rows: [string, string, string][] = [
    [GATEWAY, '', '1:1: the file is empty'],
    [GATEWAY, '# only a comment\n', '1:1: the file is empty'],
    [GATEWAY, 'just text', '1:1: expected a mapping, got "just text"'],
    [GATEWAY, '- a\n', '1:1: expected a mapping, got a list of 1'],
    [PROVIDER, '#'.repeat(1024 * 1024 + 1), '1:1: the file is larger than 1 MiB (1048577 bytes); split it'],
    [GATEWAY, '['.repeat(10_000), 'nests deeper than 64 levels'],
    [GATEWAY, bomb, 'more than 100 aliases; write the values out'],
    ['providers.d/second.yaml', providerYaml, '1:11: the provider "acme" is defined twice; keep one'],
    ['providers.d/second.yml', providerYaml, '1:1: rename it to end in ".yaml"'],
  ]
  for (const [file, text, said] of rows) {
    const got = await refusal(load({ [file]: text }))
    t.ok(got.startsWith(`${file}:`) && got.endsWith(said), `${file}: ${text.slice(0, 20)}`, { got, said })
  }
  const latin1 = writeFiles(folder(), base)
  writeFileSync(latin1, Buffer.from([0x61, 0x3a, 0x20, 0xe9]))
  t.equal(await refusal(loadFiles(latin1, { env })), `${GATEWAY}:1:1: expected UTF-8 text`)
  const nowhere = join(folder(), 'config/gateway.yaml')
  t.match(await refusal(loadFiles(nowhere, { env })), /gateway\.yaml:1:1: the file cannot be read: no such file/)
  t.match(await refusal(load(edited(GATEWAY, './models.d', './nowhere'))), /yaml:3:20: the folder ".*nowhere" cannot/)
})

t.test('the shipped file cut off at any place loads or is refused, and never crashes', async t => {
  const shipped = readFileSync('config/gateway.yaml', 'utf8')
  const path = writeFiles(folder(), { ...base, [GATEWAY]: shipped })
  await t.resolves(loadFiles(path, { env }), 'whole')
  for (let end = 0; end < shipped.length; end += 100) {
    for (const size of [end, end + 50]) {
      writeFileSync(path, shipped.slice(0, size))
      const got = await refusal(loadFiles(path, { env }))
      t.match(got, /^(config\/gateway\.yaml:\d+:\d+: .+|not refused)$/, `${size} bytes`)
    }
  }
})

t.test('many keys and references are read in linear time', async t => {
  const keys = Array.from({ length: 40_000 }, (_, i) => `k${i}: 1\n`).join('')
  const references = `server: "${'$'.concat('{').repeat(200_000)}"\n`
  const start = performance.now()
  t.match(await refusal(load({ [GATEWAY]: keys })), /:1:1: missing key "server"/)
  t.match(await refusal(load({ [GATEWAY]: references })), /1:9: expected "\$\{NAME\}"/)
  t.ok(performance.now() - start < 10_000)
})

t.test('references read the environment and files, as whole values and as parts', async t => {
  const config = folder()
  const path = writeFiles(config, {
    ...base,
    [GATEWAY]: gatewayYaml.replace('30s', () => `"${ref('DRAIN')}"`),
    [PROVIDER]: providerYaml
      .replace(KEY, () => `"${ref('file:../secret')}, ${ref('SECOND')}, sk-acme-one"`)
      .replace(TEAM, () => `"team ${ref('TEAM')} of ${ref('TEAM')}"`),
    secret: 'sk-acme-one\n',
  })
  const files = await loadFiles(path, { env: { ...env, SECOND: 'sk-acme-two' } })
  t.equal(files.gateway.value.server.drain, 30_000)
  t.equal(files.providers[0]?.value.headers['X-Team'], 'team team-secret of team-secret')
  t.equal(files.providers[0]?.value.auth.secret, 'sk-acme-one, sk-acme-two, sk-acme-one')
  t.strictSame(files.providers[0]?.references, [join(config, 'secret')])
  t.match(
    await refusal(load(edited(PROVIDER, KEY, `"${ref('file:nowhere')}"`))),
    /^providers\.d\/acme\.yaml:4:33: the file ".*providers\.d\/nowhere" cannot be read: no such file/,
  )
})

t.test('an alias stands for the last definition above it, and shares nothing with it', async t => {
  const pricing = '    pricing: { prompt: "2.50", completion: "10.00", input_cache_read: "0.25", request: "0.001" }\n'
  const { providers } = (
    await load({
      [PROVIDER]: providerYaml
        .replace(
          'name: Acme AI',
          'name: &name Acme AI\nquirks: { default: { a: &t { x: 1 }, b: *t, c: &t { x: 2 }, d: *t } }',
        )
        .replace(pricing, '    pricing: { prompt: &rate "2.50", completion: *rate }\n'),
    })
  ).catalog
  t.strictSame(providers.get('acme')?.quirks.default, { a: { x: 1 }, b: { x: 1 }, c: { x: 2 }, d: { x: 2 } })
  const shared = await linked(folder(), {
    ...base,
    ...edited(GATEWAY, '- admission: { in_flight: 10, lag: 200ms }', '- admission: &a { in_flight: 10, lag: 200ms }'),
  })
  t.ok(shared)
})

const acme = (snapshot: ConfigSnapshot) => snapshot.catalog.providers.get('acme')!
const mapping = (snapshot: ConfigSnapshot) => snapshot.catalog.models.get('acme-large')!.mappings[0]!

t.test('a secret is a list of credentials, and one that is not set is none', async t => {
  const fingerprint = (secret: string) =>
    createHmac('sha256', 'model-gateway credential fingerprint').update(secret).digest('hex').slice(0, 7)
  const credential = (id: string, secret: string) => ({
    id,
    source: 'platform',
    secret,
    fingerprint: fingerprint(secret),
  })
  const both = [credential('acme#1', 'sk-acme-one'), credential('acme#2', 'sk-acme-two')]
  t.strictSame(acme(await load({})).credentials, both)
  t.strictSame(acme(await load({}, { TEAM: 'x' })).credentials, [])
  t.strictSame(acme(await load({}, { TEAM: 'x', ACME_API_KEY: ' , ' })).credentials, [])
  const two = edited(PROVIDER, KEY, `"${ref('ACME_API_KEY')}, ${ref('ACME_OTHER')}, sk-acme-one"`)
  t.strictSame(acme(await load(two)).credentials, both, 'the unset one of two is left out, the repeated one is one')
})

t.test('every auth scheme carries what it needs', async t => {
  const secret = `secret: ${KEY}`
  const rows: [string, unknown][] = [
    [`{ scheme: bearer, ${secret} }`, { scheme: 'bearer' }],
    [`{ scheme: header, header: x-api-key, ${secret} }`, { scheme: 'header', header: 'x-api-key' }],
    [`{ scheme: query, parameter: key, ${secret} }`, { scheme: 'query', parameter: 'key' }],
    ['{ scheme: none }', { scheme: 'none' }],
  ]
  for (const [written, auth] of rows) {
    t.strictSame(acme(await load(edited(PROVIDER, `{ scheme: bearer, ${secret} }`, written))).auth, auth)
  }
})

t.test('plain http is for loopback addresses', async t => {
  const at = (address: string) => load(edited(PROVIDER, 'https://api.acme.example/v1/', address))
  for (const address of ['http://127.0.0.1:1/v1', 'http://127.9.9.9', 'http://[::1]:80/v1', 'http://localhost:11434']) {
    t.equal(acme(await at(address)).baseUrl, address)
  }
  for (const address of [
    'http://10.0.0.1',
    'http://127.0.0.1.example.com',
    'http://localhost.example',
    'http://[::2]',
  ]) {
    t.match(await refusal(at(address)), /3:11: expected "https:\/\/"/, address)
  }
})

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
    timeouts: { connect: 5_000, firstEvent: 60_000, idle: 90_000, total: 900_000 },
    quirks: { drop: [], rename: {}, default: {}, clamp: {} },
    priority: 1,
  })
  t.equal(acme(snapshot).wires.get('chat')?.wire, 'openai.chat')
  const offer = mapping(snapshot)
  t.equal(offer.provider, acme(snapshot))
  t.equal(offer.model, models.get('acme-large'))
  t.match(offer, { externalId: 'acme-large-2026-01', unpriced: 'refuse', contextLength: 200_000, maxN: 1 })
  t.strictSame([...offer.supports], ['streaming', 'tools'])
  t.equal(offer.parameters, undefined)
  const plain = mapping(await load(edited(PROVIDER, '    id: acme-large-2026-01\n', '')))
  t.equal(plain.externalId, 'acme-large')
  t.throws(() => (snapshot.files.providers[0]!.value.models as unknown[]).push(1), 'what was read is frozen')
})

t.test('prices become exact rates, and the decimals that clients are shown', async t => {
  const written = '{ prompt: "2.50", completion: "10.00", input_cache_read: "0.25", request: "0.001" }'
  const priced = async (pricing: string, tiers = '[]') =>
    mapping(await load(edited(PROVIDER, `pricing: ${written}`, `pricing: ${pricing}\n    pricing_tiers: ${tiers}`)))

  const offer = mapping(await load({}))
  t.strictSame(offer.price, {
    rates: { prompt: 2_500_000n, completion: 10_000_000n, input_cache_read: 250_000n, request: 1_000_000_000n },
    tiers: [],
  })
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
  const route = (method: string, path: string) => snapshot.match(method, path) as Route
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
  t.strictSame(snapshot.match('HEAD', '/v1/models'), { allow: ['GET'] })
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

t.test('a filter that cannot be made is refused at its place, and the others are disposed', async t => {
  const registries = fakeRegistries()
  registries.filters.set('billing', {
    ...registries.filters.get('billing')!,
    create: () => {
      throw new Error('no ledger')
    },
  })
  t.equal(
    await refusal(linked(folder(), base, registries)),
    `${GATEWAY}:12:7: filter "billing" cannot be made: no ledger`,
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
  t.strictSame(registries.logged, ['a filter failed to dispose of itself'])
  snapshot.retire()
  t.ok(disposed().every(times => times === 1))
  t.throws(() => snapshot.retain(), /after its end/)
  t.throws(() => snapshot.release(), /more often/)

  const idle = fakeRegistries()
  ;(await linked(folder(), base, idle)).retire()
  t.ok(
    idle.made.every(made => made.disposed === 1),
    'at once when it is idle',
  )
})

t.test('secrets are shown nowhere', async t => {
  const shown = (snapshot: ConfigSnapshot) => JSON.stringify(effectiveConfig(snapshot.files))
  const snapshot = await load(
    edited(PROVIDER, 'headers: {', `quirks: { default: { user: "${ref('TEAM')}" } }\nheaders: { X-Plain: plain,`),
  )
  const [provider] = effectiveConfig(snapshot.files).providers as Record<string, unknown>[]
  t.match(provider, {
    auth: { scheme: 'bearer', secret: '***' },
    headers: { 'X-Plain': 'plain', 'X-Team': '***' },
    quirks: { default: { user: '***' } },
    timeouts: { connect: 5000 },
  })
  t.notMatch(shown(snapshot), /sk-acme|team-secret/)
  t.notMatch(shown(await load(edited(PROVIDER, KEY, 'sk-acme-literal'))), /sk-acme/)
  t.match(shown(await load({}, { TEAM: 'x' })), /"secret":""/, 'a secret that is not set is not hidden')
  const stores = edited(GATEWAY, '../data/gateway.db', `"${ref('TEAM')}.db"`)
  t.match(shown(await load(stores)), /"sqlite":"\*\*\*"/)
  const wrong = edited(PROVIDER, 'scheme: bearer', `scheme: "${ref('TEAM')}"`)
  t.equal(
    await refusal(load(wrong)),
    `${PROVIDER}:4:17: expected one of "bearer", "header", "query", "none", got another value`,
  )
})

t.test('the version follows what is in force, not how it is written', async t => {
  const { version } = await load({})
  t.match(version, /^[0-9a-f]{12}$/)
  t.equal((await load({ [MODELS]: `# a comment\n${modelsYaml.replace('[text]', '[ text ]')}` })).version, version)
  const others = [
    await load(edited(MODELS, 'Acme Embed', 'Acme Embeddings')),
    await load(edited(GATEWAY, 'rpm: 600', 'rpm: 601')),
    await load({}, { ...env, ACME_API_KEY: 'sk-acme-one' }),
    await load({}, { ...env, TEAM: 'other' }),
  ].map(snapshot => snapshot.version)
  t.equal(new Set([version, ...others]).size, 5)
})

t.test('what only a restart changes is named', async t => {
  const value = async (from: string, to: string) => (await load(edited(GATEWAY, from, to))).files.gateway.value
  const before = (await load({})).files.gateway.value
  t.strictSame(staticDifferences(before, await value('rpm: 600', 'rpm: 601')), [])
  t.strictSame(staticDifferences(before, await value('gateway.db', 'other.db')), ['stores.sqlite'])
  t.strictSame(staticDifferences(before, await value(', drain: 30s', ', admin: 127.0.0.1:9')), [
    'server.drain',
    'server.admin',
  ])
})

t.test('a link in a folder may point within it, not out of it', async t => {
  const config = folder()
  const path = writeFiles(config, {
    ...base,
    'elsewhere/acme.yaml': modelsYaml,
    'config/models.d/..v1/b.yaml': 'models: []',
  })
  symlinkSync('..v1/b.yaml', join(config, 'config/models.d/b.yaml'))
  t.equal((await loadFiles(path, { env })).models.length, 2)
  symlinkSync('../../elsewhere/acme.yaml', join(config, 'config/models.d/c.yaml'))
  t.match(await refusal(loadFiles(path, { env })), /^config\/models\.d\/c\.yaml:1:1: it is a link to a file outside/)
  mkdirSync(join(config, 'config/models.d/a.yaml'))
  t.equal(
    await refusal(loadFiles(path, { env })),
    'config/models.d/c.yaml:1:1: it is a link to a file outside of its folder; copy that file here',
  )
})
