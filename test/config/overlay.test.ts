/** Own files over the packaged catalogue: `catalog: { extends: packaged }`, and `extends: packaged` in a manifest. */
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readCatalog } from '../../src/app/check.ts'
import { loadFiles } from '../../src/config/load.ts'
import { PACKAGE } from '../../src/config/locate.ts'
import { type Files, GATEWAY, gatewayYaml, refusal, writeFiles } from './kit.ts'

const PACKAGED = gatewayYaml.replace('{ models: ./models.d, providers: ../providers.d }', '{ extends: packaged }')
const root = t.testdir({})
const write = (files: Files = {}, gateway = PACKAGED) =>
  writeFiles(mkdtempSync(join(root, 'overlay-')), { [GATEWAY]: gateway.replace(', lag: 200ms', ''), ...files })
const load = async (files: Files = {}, gateway?: string) => (await readCatalog(write(files, gateway))).catalog
const shipped = await readCatalog('config/gateway.yaml').then(({ catalog }) => catalog)

const model = 'models: [{ id: gpt-5.4-mini, name: Mine, family: gpt, input: [text], output: [text] }]'
const acme = (more: string) => `provider: acme
name: Acme AI
base_url: https://api.acme.example/v1
auth: { scheme: none }
wires: { chat: openai.chat }
${more}
`

t.test('a file of its own is enough to start from the packaged catalogue', async t => {
  const { models, providers } = await load()
  t.strictSame([...models.keys()], [...shipped.models.keys()])
  t.strictSame([...providers.keys()], [...shipped.providers.keys()])
})

t.test('several credentials replace the packaged one (docs/credentials.md)', async t => {
  const page = readFileSync('docs/credentials.md', 'utf8')
  const example = /```yaml\n(.*?)```/s.exec(page)![1]!
  const env = { OPENAI_KEY_A: 'one', OPENAI_KEY_B: 'two', OPENAI_API_KEY: 'three' }
  const linked = async (text: string) => {
    const { catalog } = await readCatalog(write({ 'providers.d/openai.yaml': text }), { env })
    return catalog.providers.get('openai')!
  }
  const { auth, credentials } = await linked(example)
  t.strictSame(auth, { scheme: 'bearer' })
  const shown = credentials.map(({ secret, label, weight, limits }) => [secret, label, weight, limits])
  t.strictSame(shown, [
    ['one', 'team-a', 3, undefined],
    ['two', 'team-b', 1, { rpm: 500, tpm: 200_000 }],
  ])
  const reference = (name: string) => `"\${${name}}"`
  const listed = await linked(
    `provider: openai\nextends: packaged\nauth: [{ secret: ${reference('OPENAI_KEY_A')} }, { secret: ${reference('OPENAI_KEY_B')} }]\n`,
  )
  t.strictSame(
    listed.credentials.map(({ secret }) => secret),
    ['one', 'two'],
  )
})

t.test('an own scheme or source takes of the packaged credential what it uses (docs/providers.md)', async t => {
  const env = { GOOGLE_CLOUD_PROJECT: 'p', AZURE_OPENAI_RESOURCE: 'r', OPENAI_API_KEY: 'three' }
  const cases: [provider: string, auth: string, linked: object][] = [
    [
      'aws-bedrock',
      '{ scheme: aws-sigv4, region: us-east-1, source: default }',
      { scheme: 'aws-sigv4', source: 'default' },
    ],
    ['google-vertex', '{ scheme: gcp-oauth, source: default }', { scheme: 'gcp-oauth', source: 'default' }],
    ['vertex-anthropic', '{ source: default }', { scheme: 'gcp-oauth', source: 'default' }],
    ['azure', '{ scheme: bearer, secret: one }', { scheme: 'bearer' }],
    ['openai', '{ scheme: header, header: api-key }', { scheme: 'header', header: 'api-key' }],
    ['openai', '{ scheme: none }', { scheme: 'none' }],
  ]
  for (const [provider, auth, linked] of cases) {
    const text = `provider: ${provider}\nextends: packaged\nauth: ${auth}\n`
    const { catalog } = await readCatalog(write({ 'providers.d/mine.yaml': text }), { env })
    const { auth: found, credentials } = catalog.providers.get(provider)!
    t.match(found, linked, `${provider}: ${auth}`)
    if (found.scheme === 'header') t.equal(credentials[0]?.secret, 'three', 'the secret is the packaged one')
  }
})

t.test('own models, providers and aliases are added', async t => {
  const { models, providers, aliases, pinned } = await load({
    'config/models.d/mine.yaml':
      'models: [{ id: acme-1, name: A, family: acme, input: [text], output: [text] }]\naliases: { small: gpt-5.4-mini, a: acme/x }',
    'providers.d/acme.yaml': acme('models: [{ model: acme-1, id: x }, { model: gpt-5.4-mini, id: y }]'),
  })
  t.equal(models.size, shipped.models.size + 1)
  t.equal(providers.size, shipped.providers.size + 1)
  t.equal(aliases.get('small')?.id, 'gpt-5.4-mini')
  t.equal(pinned?.get('a'), 'acme/x')
  const offers = (id: string, { models }: typeof shipped) => models.get(id)!.mappings.map(({ provider }) => provider.id)
  t.strictSame(offers('gpt-5.4-mini', { ...shipped, models }), [...offers('gpt-5.4-mini', shipped), 'acme'])
})

t.test('an own model or provider replaces the packaged one of its name, and an own alias the alias', async t => {
  const [aliased, { aliases: taken }] = [...shipped.models].find(([, { aliases }]) => aliases.length > 0)!
  const { models, providers, aliases } = await load({
    'config/models.d/mine.yaml': `${model}\naliases: { ${taken[0]}: gpt-5.4-mini }`,
    'providers.d/mine.yaml': acme('models: []').replace('provider: acme', 'provider: openai'),
    'providers.d/off.yaml': `enabled: false\n${acme('models: []').replace('provider: acme', 'provider: groq')}`,
  })
  t.match(models.get('gpt-5.4-mini'), { name: 'Mine', contextLength: undefined })
  t.equal(aliases.get(taken[0]!)?.id, 'gpt-5.4-mini')
  t.notOk(models.get(aliased)!.aliases.includes(taken[0]!))
  t.equal(models.size, shipped.models.size)
  t.equal(providers.get('openai')?.name, 'Acme AI')
  t.notOk(models.get('gpt-5.4-mini')!.mappings.some(({ provider }) => provider.id === 'openai'))
  t.notOk(providers.has('groq'), 'a disabled one replaces it as well')
})

t.test('a manifest that extends the packaged one changes what it names, and nothing else', async t => {
  const own = `provider: openai
extends: packaged
timeouts: { idle: 7s }
models:
  - { model: gpt-5.4-mini, pricing: { prompt: "9", completion: "9" } }
`
  const change = (of: typeof shipped) => {
    const { name, timeouts, baseUrl } = of.providers.get('openai')!
    const offers = [...of.models.values()].flatMap(({ mappings }) => mappings.filter(m => m.provider.id === 'openai'))
    const mini = offers.find(({ model }) => model.id === 'gpt-5.4-mini')!
    return { name, baseUrl, timeouts, count: offers.length, id: mini.externalId, rates: mini.price?.rates }
  }
  const before = change(shipped)
  const after = change(await load({ 'providers.d/mine.yaml': own }))
  t.strictSame(after, {
    ...before,
    timeouts: { ...before.timeouts, idle: 7_000 },
    rates: { prompt: 9_000_000n, completion: 9_000_000n },
  })
  const off = await load({ 'providers.d/mine.yaml': 'provider: openai\nextends: packaged\nenabled: false\n' })
  t.notOk(off.providers.has('openai'))
  const full = await load(
    {
      'providers.d/mine.yaml': 'provider: ollama\nextends: packaged\nbase_url: http://127.0.0.1:7/v1\n',
      'config/models.d/a.yaml': 'models: []',
    },
    gatewayYaml,
  )
  t.strictSame([full.providers.size, full.providers.get('ollama')?.baseUrl], [1, 'http://127.0.0.1:7/v1'])
})

t.test('a fault is reported with the file that it is in', async t => {
  const said: [files: Files, gateway: string, said: RegExp][] = [
    [
      { 'providers.d/a.yaml': 'provider: acme\nextends: packaged\n' },
      PACKAGED,
      /^providers\.d\/a\.yaml:1:11: unknown packaged provider "acme"/,
    ],
    [{ 'providers.d/a.yaml': 'provider: groq\nextends: mine\n' }, PACKAGED, /^providers\.d\/a\.yaml:/],
    [
      { 'providers.d/a.yaml': 'provider: groq\nextends: packaged\ntimeouts: { idle: 7 }\n' },
      PACKAGED,
      /^providers\.d\/a\.yaml:3:19: /,
    ],
    [
      { 'providers.d/a.yaml': 'provider: groq\nextends: packaged\nmodels: [{ model: none, id: x }]\n' },
      PACKAGED,
      /^providers\.d\/a\.yaml:3:19: unknown model "none"/,
    ],
    [
      { 'config/models.d/a.yaml': 'aliases: { gpt-5.4-mini: x }' },
      PACKAGED,
      /^config\/models\.d\/a\.yaml:1:12: the alias/,
    ],
    [{}, PACKAGED.replace('packaged', 'mine'), /^config\/gateway\.yaml:3:/],
    [
      {},
      PACKAGED.replace('packaged', 'packaged, models: ./none'),
      /^config\/gateway\.yaml:3:39: the folder ".*none" cannot be read/,
    ],
    [{}, gatewayYaml, /^config\/gateway\.yaml:3:20: the folder ".*models\.d" cannot be read/],
  ]
  for (const [files, gateway, expected] of said) t.match(await refusal(load(files, gateway)), expected)
  const same = await load({
    'config/models.d/a.yaml': `${model}`,
    'providers.d/a.yaml': acme('wires: {}').replace('wires: { chat: openai.chat }\n', 'models: []\n'),
  }).catch(String)
  t.match(same, /^providers\.d\/a\.yaml:/)
})

t.test('a fault in a packaged file, which a variable may cause, names that file', async t => {
  const env = { GATEWAY_DEMO_URL: 'http://127.0.0.1:1/v1', OLLAMA_BASE_URL: 'nowhere' }
  const said = await refusal(loadFiles(write(), { env }))
  t.match(said, new RegExp(`^${join(PACKAGE, 'providers.d/ollama.yaml')}:\\d+:\\d+: `))
})
