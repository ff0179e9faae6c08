/** `gatewayctl import litellm`: its files pass the check, its report lists each key, and no secret leaves the input. */
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { convertKeys } from '../../src/cli/litellm/keys.ts'
import { Report } from '../../src/cli/litellm/report.ts'
import { gatewayctl } from '../helpers/gatewayctl.ts'

const ALL = join(import.meta.dirname, '../fixtures')
const FIXTURES = join(ALL, 'litellm')

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))

const leaves = (value: unknown): number => {
  if (Array.isArray(value) && value.some(one => typeof one === 'object'))
    return value.reduce((sum, one) => sum + leaves(one), 0)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 1
  if (Object.keys(value).length === 0) return 1
  return Object.values(value).reduce((sum: number, one) => sum + leaves(one), 0)
}

const sources = ['litellm', 'portkey', 'openrouter'].flatMap(gateway =>
  readdirSync(join(ALL, gateway)).map(file => [gateway, file] as const),
)
for (const [gateway, file] of sources) {
  t.test(`${gateway}: ${file} becomes files that pass the check, and a report of each key`, async t => {
    const dir = t.testdir({})
    const source = join(ALL, gateway, file)
    const imported = await gatewayctl(dir, 'import', gateway, source, '--out', 'new', '--json')
    t.equal(imported.code, 0, imported.err)
    const checked = await gatewayctl(dir, '--config', 'new/config/gateway.yaml', 'check')
    t.equal(checked.code, 0, checked.err)
    const warnings = checked.err.split('\n').filter(line => line.startsWith('warning: '))
    t.strictSame(
      warnings.filter(line => !/environment variable|no price/.test(line)),
      [],
      'nothing is written in vain',
    )
    const { keys } = JSON.parse(imported.out) as { keys: { key: string; fate: string; note: string }[] }
    t.equal(new Set(keys.map(({ key }) => key)).size, keys.length)
    t.equal(keys.length, leaves(parse(readFileSync(source, 'utf8'), { merge: true })))
    for (const { key, fate, note } of keys) t.ok(fate === 'carried' || note, key)
    for (const path of filesBelow(join(dir, 'new'))) t.notMatch(readFileSync(path, 'utf8'), /canary/i, path)
    t.notMatch(imported.out, /canary/i)
    const again = await gatewayctl(dir, 'import', gateway, source, '--out', 'new')
    t.equal(again.code, 1)
    t.match(again.err, /exists; nothing was written/)
  })
}

t.test('deployments, fallbacks and aliases become virtual models without a circle', async t => {
  const dir = t.testdir({})
  await gatewayctl(dir, 'import', 'litellm', join(FIXTURES, 'several.yaml'), '--out', '.')
  const { virtual_models } = parse(readFileSync(join(dir, 'config/routes.d/imported.yaml'), 'utf8'))
  const called = (id: string) => virtual_models.find((one: { id: string }) => one.id === id)
  t.strictSame(called('gpt-4o').use, ['gpt-4o.own', 'claude.own', 'groq/fast'])
  t.strictSame(
    called('gpt-4o.own').use.map((one: { weight: number }) => one.weight),
    [60, 600],
  )
  t.strictSame(called('claude.own').defaults, { max_tokens: 900 })
  t.strictSame(called('gpt-4').use, ['gpt-4o'])
})

t.test('an order is kept, and weights are shares', async t => {
  const dir = t.testdir({})
  await gatewayctl(dir, 'import', 'litellm', join(FIXTURES, 'order.yaml'), '--out', '.')
  const { virtual_models } = parse(readFileSync(join(dir, 'config/routes.d/imported.yaml'), 'utf8'))
  t.strictSame(virtual_models, [
    { id: 'chat', use: ['openai/chat', 'mistral/chat'] },
    {
      id: 'shares',
      strategy: 'weight',
      use: [
        { model: 'deepseek/shares', weight: 0.9 },
        { model: 'deepseek-2/shares', weight: 0.1 },
      ],
    },
  ])
  const { models } = parse(readFileSync(join(dir, 'providers.d/openai.yaml'), 'utf8'))
  t.match(models[0], { model: 'chat', id: 'gpt-5-mini' })
})

t.test('deployments of one order share it by weight', async t => {
  const dir = t.testdir({})
  await gatewayctl(dir, 'import', 'litellm', join(FIXTURES, 'regions.yaml'), '--out', '.')
  const { virtual_models } = parse(readFileSync(join(dir, 'config/routes.d/imported.yaml'), 'utf8'))
  const called = (id: string) => virtual_models.find((one: { id: string }) => one.id === id)
  t.strictSame(called('gpt-4o.own'), { id: 'gpt-4o.own', hidden: true, use: ['gpt-4o.share', 'openai/gpt-4o'] })
  t.strictSame(called('gpt-4o.share'), {
    id: 'gpt-4o.share',
    hidden: true,
    strategy: 'weight',
    use: [
      { model: 'azure/gpt-4o', weight: 300 },
      { model: 'azure-2/gpt-4o', weight: 100 },
    ],
  })
})

t.test('names lose the marks on their letters, wherever they stand', async t => {
  const dir = t.testdir({})
  const { out } = await gatewayctl(dir, 'import', 'litellm', join(FIXTURES, 'homelab.yaml'), '--out', '.', '--json')
  const { virtual_models } = parse(readFileSync(join(dir, 'config/routes.d/imported.yaml'), 'utf8'))
  const called = (id: string) => virtual_models.find((one: { id: string }) => one.id === id)
  t.equal(called('grok').use.at(-1), 'Modele leger')
  t.strictSame(called('piu').use, ['qwen-coder'])
  t.match(called('schnell'), { hidden: true, use: ['Modele leger'] })
  const fates = new Map((JSON.parse(out).keys as { key: string; fate: string }[]).map(({ key, fate }) => [key, fate]))
  t.equal(fates.get('model_list[11].model_name'), 'changed')
  t.equal(fates.get('model_list[12].model_name'), 'not carried', 'nothing is left of it')
  const both = ['Größe', 'Grosse', 'Grösse', 'Große'].map(model_name => ({
    model_name,
    litellm_params: { model: 'openai/gpt-5' },
  }))
  const twice = t.testdir({ 'config.yaml': JSON.stringify({ model_list: both }) })
  const { keys } = JSON.parse((await gatewayctl(twice, 'import', 'litellm', 'config.yaml', '--dry-run', '--json')).out)
  t.strictSame(
    (keys as { key: string; fate: string }[]).filter(({ key }) => /model_name/.test(key)).map(({ fate }) => fate),
    ['not carried', 'carried', 'not carried', 'not carried'],
  )
})

t.test('a strategy of routing becomes that of virtual models', async t => {
  const dir = t.testdir({})
  for (const [file, id, strategy] of [
    ['enterprise.yaml', 'claude-sonnet-4-5.own', 'latency'],
    ['mixed-clouds.yaml', 'gemini-pro.own', 'price'],
  ] as const) {
    await gatewayctl(dir, 'import', 'litellm', join(FIXTURES, file), '--out', file)
    const { virtual_models } = parse(readFileSync(join(dir, file, 'config/routes.d/imported.yaml'), 'utf8'))
    t.match(
      virtual_models.find((one: { id: string }) => one.id === id),
      { strategy },
    )
  }
})

t.test('the page shows what an import writes', async t => {
  const page = readFileSync('docs/switch-from-litellm.md', 'utf8')
  const [theirs, ours] = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block]) => block!)
  const dir = t.testdir({ 'config.yaml': theirs! })
  const { code, err } = await gatewayctl(dir, 'import', 'litellm', 'config.yaml', '--out', 'new')
  t.equal(code, 0, err)
  t.equal(readFileSync(join(dir, 'new/config/routes.d/imported.yaml'), 'utf8'), ours)
})

t.test('the report does not claim what was not carried', async t => {
  const deployment = (more: object) => ({ model_name: 'chat', litellm_params: { model: 'openai/gpt-5-mini', ...more } })
  const input = {
    model_list: [
      deployment({ api_key: 5 }),
      deployment({ input_cost_per_token: 0.000001 }),
      deployment({ input_cost_per_token: 0.000001, output_cost_per_token: 0.000002 }),
      { ...deployment({}), model_name: 'other' },
    ],
    litellm_settings: { default_fallbacks: ['other', 'missing'] },
  }
  const dir = t.testdir({ 'config.yaml': JSON.stringify(input) })
  const { out } = await gatewayctl(dir, 'import', 'litellm', 'config.yaml', '--dry-run', '--json')
  const fates = new Map((JSON.parse(out).keys as { key: string; fate: string }[]).map(({ key, fate }) => [key, fate]))
  for (const [key, fate] of [
    ['model_list[0].litellm_params.api_key', 'not carried'],
    ['model_list[1].litellm_params.input_cost_per_token', 'not carried'],
    ['model_list[2].litellm_params.input_cost_per_token', 'changed'],
    ['model_list[2].litellm_params.output_cost_per_token', 'changed'],
    ['litellm_settings.default_fallbacks', 'changed'],
  ] as const) {
    t.equal(fates.get(key), fate, key)
  }
})

t.test('a dry run writes nothing', async t => {
  const dir = t.testdir({})
  const { code, out } = await gatewayctl(dir, 'import', 'litellm', join(FIXTURES, 'several.yaml'), '--dry-run')
  t.equal(code, 0)
  t.match(out, 'not written below imported')
  t.strictSame(filesBelow(dir), [])
})

t.test('input that cannot be read is one clear error that repeats none of it', async t => {
  const dir = t.testdir({
    'twice.yaml': 'model_list: []\nmodel_list: [sk-canary]\n',
    'broken.yaml': 'model_list: [sk-canary\n',
    'alias.yaml': 'model_list: *canary\n',
    'other.yaml': 'models: [sk-canary]\n',
  })
  const server = createServer((_, response) => response.writeHead(404).end('sk-canary'))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/config.yaml?token=canary`
  for (const [source, message] of [
    ['twice.yaml', /twice\.yaml:2:1: this is not valid YAML \(DUPLICATE_KEY\)/],
    ['broken.yaml', /broken\.yaml:\d+:\d+: this is not valid YAML/],
    ['alias.yaml', /alias/],
    ['other.yaml', /other\.yaml has no model_list/],
    ['none.yaml', /none\.yaml cannot be read: ENOENT/],
    [url, /answered with status 404; 200 is needed/],
  ] as const) {
    const { code, out, err } = await gatewayctl(dir, 'import', 'litellm', source)
    t.equal(code, 1)
    t.equal(out, '')
    t.match(err, message)
    t.notMatch(err, /canary/)
    t.equal(err.trim().split('\n').length, 1)
  }
})

t.test('strategies of Portkey become strategies of virtual models', async t => {
  const dir = t.testdir({})
  const routes = async (file: string) => {
    await gatewayctl(dir, 'import', 'portkey', join(ALL, 'portkey', file), '--out', file, '--name', 'main')
    return parse(readFileSync(join(dir, file, 'config/routes.d/imported.yaml'), 'utf8')).virtual_models
  }
  t.strictSame((await routes('conditional.json')).at(-1), {
    id: 'main',
    use: [
      { model: 'google-ai-studio/gemini-2.5-pro', when: { tags: { user_plan: 'paid' } } },
      { model: 'mistral/mistral-small-latest', when: { tags: { team: ['a', 'b'], region: 'eu' } } },
      'mistral/mistral-small-latest',
    ],
  })
  t.strictSame((await routes('fallback.json')).slice(2), [
    {
      id: 'main.3',
      hidden: true,
      strategy: 'weight',
      use: [
        { model: 'azure/gpt-4o', weight: 0.7 },
        { model: 'groq/llama-3.3-70b-versatile', weight: 0.3 },
      ],
    },
    { id: 'main', use: ['main.1', 'main.2', 'main.3'] },
  ])
  t.strictSame(await routes('any-model.json'), [
    {
      id: 'main/*',
      strategy: 'weight',
      use: [
        { model: 'openai/*', weight: 3 },
        { model: 'openai-2/*', weight: 1 },
      ],
    },
  ])
})

t.test('a fallback of all names is one of those that serve the same', async t => {
  const list = [
    ['main', 'openai/gpt-5', 'chat'],
    ['small', 'openai/gpt-5-mini', 'chat'],
    ['vectors', 'openai/text-embedding-3-small', 'embedding'],
  ].map(([model_name, model, mode]) => ({ model_name, litellm_params: { model }, model_info: { mode } }))
  for (const fallbacks of [{ default_fallbacks: ['small'] }, { fallbacks: [{ '*': ['small'] }] }]) {
    const dir = t.testdir({ 'config.yaml': JSON.stringify({ model_list: list, litellm_settings: fallbacks }) })
    await gatewayctl(dir, 'import', 'litellm', 'config.yaml', '--out', '.')
    const { virtual_models } = parse(readFileSync(join(dir, 'config/routes.d/imported.yaml'), 'utf8'))
    t.strictSame(virtual_models, [{ id: 'main', use: ['openai/main', 'small'] }])
  }
})

t.test('the report says which models have no price', async t => {
  const list = [
    ['fine-tuned', { model: 'openai/my-model', api_base: 'https://models.example/v1' }, {}],
    ['priced', { model: 'openai/my-model', input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 }, {}],
    ['known', { model: 'azure/own-name', api_base: 'https://x.openai.azure.com' }, { base_model: 'azure/gpt-4o' }],
    ['base', { model: 'azure/own-name', api_base: 'https://x.openai.azure.com' }, { base_model: 'azure/gpt-4o-mini' }],
    ['any/*', { model: 'openai/*' }, {}],
    ['*', { model: '*' }, {}],
  ].map(([model_name, litellm_params, model_info]) => ({ model_name, litellm_params, model_info }))
  const dir = t.testdir({ 'config.yaml': JSON.stringify({ model_list: list }) })
  const { out } = await gatewayctl(dir, 'import', 'litellm', 'config.yaml', '--dry-run', '--json')
  const { keys } = JSON.parse(out) as { keys: { key: string; note: string }[] }
  const notes = keys.filter(({ key }) => key.endsWith('.litellm_params.model')).map(({ note }) => note)
  t.match(notes[0], /^no price is known/)
  t.strictSame(notes.slice(1, 3), ['', ''])
  t.match(notes[3], /^no price is known/)
  t.match(notes[4], /^models that the manifest does not list have no price/)
  t.match(notes[5], /^names without a provider go to OpenAI; models that the manifest does not list/)
})

t.test('the report about a config of Portkey tells what became of each key, wherever it stands', async t => {
  const config = {
    requestTimeout: 10_000,
    retry: { attempts: 3 },
    overrideParams: { temperature: 0.5 },
    strategy: { mode: 'fallback', onStatusCodes: [500] },
    targets: [
      {
        name: 'shares',
        strategy: { mode: 'loadbalance', sticky_session: { enabled: true, ttl: 60 } },
        input_guardrails: ['pg-one'],
        targets: [
          { virtualKey: 'openai-a1b2c3', retry: { attempts: 2 }, overrideParams: { model: 'gpt-5', made_up: 5 } },
          { provider: 'anthropic', cache: { mode: 'simple' }, override_params: { model: 'claude-haiku-4-5' } },
        ],
      },
      { provider: 'groq', api_key: 'k', override_params: { model: 'llama-3.1-8b-instant' }, forward_headers: ['x-a'] },
    ],
  }
  const dir = t.testdir({ 'config.json': JSON.stringify(config) })
  const { out } = await gatewayctl(dir, 'import', 'portkey', 'config.json', '--name', 'main', '--out', '.', '--json')
  const { keys } = JSON.parse(out) as { keys: { key: string; fate: string; note: string }[] }
  t.strictSame(
    keys.filter(({ note }) => note === 'there is no such setting').map(({ key }) => key),
    [],
  )
  const lost = keys.filter(({ fate }) => fate === 'not carried').map(({ key }) => key)
  t.strictSame(lost.sort(), [
    'retry.attempts',
    'targets[0].input_guardrails',
    'targets[0].targets[0].override_params.made_up',
    'targets[0].targets[0].retry.attempts',
    'targets[0].targets[1].cache.mode',
    'targets[1].forward_headers',
  ])
  const { virtual_models } = parse(readFileSync(join(dir, 'config/routes.d/imported.yaml'), 'utf8'))
  t.match(virtual_models, [
    { overrides: { temperature: 0.5 } },
    { overrides: { temperature: 0.5 } },
    { strategy: 'weight', sticky: 'session' },
    { overrides: { temperature: 0.5 } },
    { id: 'main' },
  ])
  t.match(parse(readFileSync(join(dir, 'providers.d/groq.yaml'), 'utf8')).timeouts, { first_event: '10s' })
})

t.test('a stored credential of Portkey names its provider, and its model where it has one', async t => {
  const configs = {
    slugs: {
      strategy: { mode: 'fallback' },
      targets: [{ provider: '@openai-prod/gpt-4o' }, { provider: '@my-bedrock/a.b-v1:0' }],
    },
    keys: { virtual_key: 'openai-virtual-key', request_timeout: 5000, override_params: { model: 'gpt-4o' } },
    written: { virtual_key: 'open-ai-key-ab', override_params: { model: 'gpt-4o' } },
    any: { provider: '@vertex' },
    unknown: { virtual_key: 'main', request_timeout: 5000, override_params: { model: 'gpt-4o' } },
  }
  const dir = t.testdir(
    Object.fromEntries(Object.entries(configs).map(([name, one]) => [`${name}.json`, JSON.stringify(one)])),
  )
  const imported = async (name: string) => {
    const { out } = await gatewayctl(dir, 'import', 'portkey', `${name}.json`, '--out', name, '--json')
    const { virtual_models } = parse(readFileSync(join(dir, name, 'config/routes.d/imported.yaml'), 'utf8'))
    return {
      ...(JSON.parse(out) as { keys: { key: string; fate: string; note: string }[]; set: { name: string }[] }),
      virtual_models,
    }
  }
  const slugs = await imported('slugs')
  t.match(slugs.virtual_models, [{ id: 'portkey', use: ['openai/gpt-4o', 'aws-bedrock/a.b-v1:0'] }])
  t.strictSame(
    slugs.set.map(({ name }) => name),
    ['OPENAI_PROD_API_KEY', 'AWS_REGION', 'MY_BEDROCK_API_KEY'],
  )
  t.match(
    slugs.keys.find(({ key }) => key === 'targets[1].provider'),
    { fate: 'changed', note: /no price is known/ },
  )
  const keys = await imported('keys')
  t.match(keys.virtual_models, [{ id: 'portkey', use: ['openai/gpt-4o'] }])
  t.strictSame(
    keys.keys.filter(({ fate }) => fate === 'not carried'),
    [],
  )
  t.match((await imported('written')).virtual_models, [{ use: ['openai/gpt-4o'] }])
  t.match((await imported('any')).virtual_models, [{ id: 'portkey/*', use: ['google-vertex/*'] }])
  const unknown = await imported('unknown')
  t.strictSame(unknown.virtual_models, [])
  for (const { key, note } of unknown.keys) t.match(note, /^name its provider/, key)
})

t.test('targets of Portkey at Vertex AI and Azure are the models that they name', async t => {
  const inner = [
    { provider: 'azure-openai', api_key: 'sk-canary', resource_name: 'res', deployment_id: 'dep' },
    { provider: 'vertex-ai', override_params: { model: 'anthropic.claude-sonnet-4-5@20250929' } },
    { provider: 'vertex-ai', override_params: { model: 'meta.llama-3.3-70b-instruct-maas' } },
  ]
  const config = { strategy: { mode: 'loadbalance' }, targets: [{ strategy: { mode: 'fallback' }, targets: inner }] }
  const dir = t.testdir({ 'config.json': JSON.stringify(config) })
  const { out } = await gatewayctl(dir, 'import', 'portkey', 'config.json', '--name', 'main', '--out', '.', '--json')
  const { virtual_models } = parse(readFileSync(join(dir, 'config/routes.d/imported.yaml'), 'utf8'))
  t.strictSame(virtual_models[0].use, [
    'azure/dep',
    'vertex-anthropic/claude-sonnet-4-5@20250929',
    'vertex-openapi/meta/llama-3.3-70b-instruct-maas',
  ])
  t.notOk((JSON.parse(out).keys as { fate: string }[]).some(({ fate }) => fate === 'not carried'))
})

t.test(
  'reasoning of a preset of OpenRouter becomes a default, and what OpenRouter reads goes on in each request',
  async t => {
    const dir = t.testdir({
      'effort.json': JSON.stringify({ model: 'openai/gpt-5', seed: 5, reasoning: { effort: 'high', exclude: true } }),
      'budget.json': JSON.stringify({ model: 'anthropic/claude-haiku-4.5', reasoning: { max_tokens: 2000 } }),
      'body.json': JSON.stringify({
        ...{ model: 'deepseek/deepseek-v3.2', models: ['some/model'] },
        ...{ transforms: ['middle-out'], plugins: [{ id: 'web' }] },
      }),
    })
    const imported = async (name: string) => {
      const { out } = await gatewayctl(dir, 'import', 'openrouter', `${name}.json`, '--out', name, '--json')
      const { virtual_models } = parse(readFileSync(join(dir, name, 'config/routes.d/imported.yaml'), 'utf8'))
      return { keys: JSON.parse(out).keys as { key: string; fate: string; note: string }[], ...virtual_models[0] }
    }
    const effort = await imported('effort')
    t.strictSame(effort.defaults, { reasoning_effort: 'high' })
    t.strictSame(
      effort.keys.map(({ fate }: { fate: string }) => fate),
      ['changed', 'not carried', 'carried', 'not carried'],
    )
    t.notOk(effort.keys.some(({ note }: { note: string }) => note === 'there is no such setting'))
    t.strictSame((await imported('budget')).defaults, { reasoning: { max_tokens: 2000 } })
    const body = await imported('body')
    t.match(body.keys, [
      { key: 'model', fate: 'carried' },
      { key: 'models', fate: 'changed', note: /^no price is known/ },
      { key: 'transforms', fate: 'carried' },
      { key: 'plugins[0].id', fate: 'not carried', note: /quirks\.default/ },
    ])
    const manifest = parse(readFileSync(join(dir, 'body/providers.d/openrouter.yaml'), 'utf8'))
    t.match(manifest.quirks.default, { transforms: ['middle-out'] })
  },
)

t.test('files that a file includes are part of the import', async t => {
  const more = 'model_list: [{ model_name: more, litellm_params: { model: openai/gpt-5-mini } }]\n'
  const main = 'include: [more.yaml]\nmodel_list: [{ model_name: main, litellm_params: { model: openai/gpt-5 } }]\n'
  const dir = t.testdir({ 'config.yaml': main, 'more.yaml': more })
  const { out } = await gatewayctl(dir, 'import', 'litellm', 'config.yaml', '--out', 'new', '--json')
  const { models } = parse(readFileSync(join(dir, 'new/config/models.d/imported.yaml'), 'utf8'))
  t.strictSame(
    models.map(({ id }: { id: string }) => id),
    ['main', 'more'],
  )
  t.match(JSON.parse(out).keys[0], { key: 'include', fate: 'carried' })
})

t.test('variables of an input stay what they are, and no two secrets share one', async t => {
  const dir = t.testdir({})
  const { out } = await gatewayctl(dir, 'import', 'litellm', join(FIXTURES, 'templates.yaml'), '--out', '.', '--json')
  const offers = filesBelow(join(dir, 'providers.d')).flatMap(path => {
    const { models, ...head } = parse(readFileSync(path, 'utf8'))
    return models.map((mapping: object) => ({ ...head, ...mapping }))
  })
  const offer = (name: string) => offers.find(({ model }) => model === name)
  t.equal(offer('filled').auth.secret, `\${OPENAI_API_KEY}`)
  t.equal(offer('written').auth.secret, `\${OPENAI_API_KEY_2}`)
  t.equal(offer('keyless').auth.secret, `\${MISTRAL_API_KEY}`)
  t.equal(offer('key').auth.secret, `\${MISTRAL_API_KEY_2}`)
  t.equal(offer('parts').headers['x-env'], `\${VLLM_X_ENV:-not-set}`)
  t.match(offer('upstream'), {
    id: `\${CHAT_MODEL:-not-set}`,
    base_url: /^\$\{CHAT_BASE:-/,
    wires: { chat: 'openai.chat' },
  })
  t.equal(offer('deployment').id, `\${AZURE_DEPLOYMENT:-not-set}`)
  t.match(offer('bare-gemini').base_url, /aiplatform/)
  t.match(offer('bare-claude'), { base_url: 'https://claude.example/v1', wires: { chat: 'anthropic.messages' } })
  for (const [name, region] of [
    ['bare-nova', `\${AWS_REGION:-us-east-1}`],
    ['path-region', 'eu-central-1'],
    ['profile', 'eu-west-3'],
    ['imported', 'us-west-2'],
    ['model-id', 'us-west-2'],
  ] as const) {
    t.equal(offer(name).auth.region, region, name)
  }
  t.match(offer('imported').id, /^arn:/)
  t.match(offer('model-id').id, /profile\/xyz$/)
  t.match(offer('with-version').base_url, 'https://eu.openai.azure.com/openai/v1')
  t.match(offer('no-scheme').base_url, /^\$\{/)
  t.strictSame(offer('cold').quirks.default, { top_k: 1, min_p: 0.1 })
  t.strictSame(offer('warm').quirks.default, { top_k: 50 })
  const { keys, set } = JSON.parse(out) as {
    keys: { key: string; fate: string }[]
    set: { name: string; value: string }[]
  }
  const fateOf = (key: string) => keys.find(one => one.key === key)?.fate
  for (const [index, name] of [
    [8, 'nowhere'],
    [9, 'a name that a variable holds'],
    [18, 'an agent'],
    [19, 'no model'],
  ] as const) {
    t.equal(fateOf(`model_list[${index}].model_name`), 'not carried', name)
  }
  t.equal(fateOf('model_list[1].litellm_params.user'), 'not carried')
  t.equal(fateOf('model_list[5].litellm_params.model'), 'changed')
  t.equal(fateOf('model_list[22].litellm_params.litellm_credential_name'), 'not carried')
  t.equal(fateOf('model_list[17].litellm_params.model_id'), 'carried')
  t.equal(fateOf('model_list[21].litellm_params.base_model'), 'carried')
  t.ok(offer('with-version').pricing, 'the price of the base model')
  t.ok(set.some(({ name }) => name === 'CHAT_MODEL'))
  t.match(
    set.find(({ name }) => name === 'OPENAI_API_KEY_2'),
    { value: /for model_list\[\d+\]$/ },
    'the entry that holds the text',
  )
})

t.test('lists of aliases and loose forms of fallbacks are read, and what is empty is said to be', async t => {
  const dir = t.testdir({})
  const { out } = await gatewayctl(dir, 'import', 'litellm', join(FIXTURES, 'loose.yaml'), '--out', '.', '--json')
  const { virtual_models } = parse(readFileSync(join(dir, 'config/routes.d/imported.yaml'), 'utf8'))
  const called = (id: string) => virtual_models.find((one: { id: string }) => one.id === id)
  t.strictSame(called('pool'), { id: 'pool', strategy: 'weight', use: ['thinker', 'fast'] })
  t.strictSame(called('shares').use, ['thinker'])
  t.strictSame(called('old-name').use, ['thinker'])
  t.strictSame(called('thinker').use, ['thinker.own', 'openai/GPT-5', "mistral/Rob's model"])
  t.strictSame(called('fast').use, ['fast.own', "mistral/Rob's model", 'thinker.own'])
  const keys = JSON.parse(out).keys as { key: string; fate: string; note: string }[]
  const fateOf = (key: string) => keys.find(one => one.key === key)?.fate
  for (const [key, fate] of [
    ['router_settings.fallbacks', 'changed'],
    ['router_settings.context_window_fallbacks.thinker', 'changed'],
    ['router_settings.model_group_alias.pool', 'changed'],
    ['litellm_settings.default_fallbacks', 'carried'],
    ['litellm_settings.model_alias_map.old-name', 'carried'],
    ['model_list[0].model_name', 'changed'],
    ['model_list[0].litellm_params.thinking.type', 'changed'],
    ['model_list[1].litellm_params.timeout', 'changed'],
    ['model_list[1].litellm_params.stream_timeout', 'not carried'],
    ['model_list[1].model_info.max_tokens', 'carried'],
  ] as const) {
    t.equal(fateOf(key), fate, key)
  }
  for (const key of [
    'model_list[0].litellm_params.api_key',
    'model_list[2].model_info',
    'router_settings.content_policy_fallbacks',
    'general_settings.database_url',
    'environment_variables',
  ]) {
    t.match(
      keys.find(one => one.key === key),
      { fate: 'carried', note: 'it is empty' },
    )
  }
  const unknown = keys.filter(({ note }) => note.startsWith('there is no such')).map(({ key }) => key)
  t.strictSame(unknown, ['model_list[1].model_info.description', 'rate_limiting.enabled'])
  t.strictSame(called('thinker.own').defaults, { reasoning: { max_tokens: 2048 } })
  const { timeouts } = parse(readFileSync(join(dir, 'providers.d/anthropic.yaml'), 'utf8'))
  t.strictSame(timeouts, { first_event: '1200s', total: '1200s' })
  t.strictSame(parse(readFileSync(join(dir, 'providers.d/openai.yaml'), 'utf8')).timeouts, { first_event: '300s' })
})

t.test('a file without models is imported too: they stand in the database', async t => {
  for (const text of ['general_settings: { store_model_in_db: true }\n', 'model_list:\nlitellm_settings:\n']) {
    const dir = t.testdir({ 'config.yaml': text })
    t.equal((await gatewayctl(dir, 'import', 'litellm', 'config.yaml', '--out', 'new')).code, 0, text)
    t.equal((await gatewayctl(dir, '--config', 'new/config/gateway.yaml', 'check')).code, 0, text)
  }
})

t.test('services of the API of OpenAI have their addresses, in the form that it needs', async t => {
  const dir = t.testdir({})
  const { out } = await gatewayctl(dir, 'import', 'litellm', join(FIXTURES, 'services.yaml'), '--out', '.', '--json')
  const offers = filesBelow(join(dir, 'providers.d')).flatMap(path => {
    const { models, ...head } = parse(readFileSync(path, 'utf8'))
    return models.map(({ model, id }: { model: string; id: string }) => ({ ...head, model, id }))
  })
  const offer = (name: string) => offers.find(({ model }) => model === name)
  for (const [name, base] of [
    ['edge-base', 'https://api.cloudflare.com/client/v4/accounts/abc/ai/v1'],
    ['lake', `\${DATABRICKS_API_BASE:-https://no-address-set.invalid}`],
    ['lake-base', 'https://adb.example/serving-endpoints'],
    ['snow', 'https://account.example/api/v2/cortex/v1'],
    ['hub-endpoint', 'https://own.endpoints.example/v1'],
    ['generate', 'http://ollama:11434/v1'],
    ['vertex-llama', 'https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/endpoints/openapi'],
    ['foundry', 'https://mistral-large.eastus2.models.ai.azure.com/v1'],
    ['foundry-rerank', 'https://rerank.eastus2.models.ai.azure.com/v1'],
  ] as const) {
    t.equal(offer(name)?.base_url, base, name)
  }
  t.equal(offer('hub-together').id, 'deepseek-ai/DeepSeek-R1:together')
  t.match(offer('foundry').auth, { scheme: 'bearer' })
  t.match(offer('vertex-llama'), { auth: { scheme: 'gcp-oauth' }, wires: { chat: 'openai.chat' } })
  const { keys, set } = JSON.parse(out) as { keys: { key: string; fate: string }[]; set: { name: string }[] }
  const lost = keys.filter(({ key, fate }) => key.endsWith('.model_name') && fate === 'not carried')
  t.strictSame(
    lost.map(({ key }) => key),
    [18, 21, 22, 24].map(index => `model_list[${index}].model_name`),
  )
  for (const name of ['CLOUDFLARE_ACCOUNT_ID', 'DATABRICKS_API_BASE']) t.ok(set.some(one => one.name === name))
})

t.test('tags choose targets, retries are attempts, and a header names end users', async t => {
  const dir = t.testdir({})
  const { out } = await gatewayctl(dir, 'import', 'litellm', join(FIXTURES, 'tiers.yaml'), '--out', '.', '--json')
  const { virtual_models } = parse(readFileSync(join(dir, 'config/routes.d/imported.yaml'), 'utf8'))
  const called = (id: string) => virtual_models.find((one: { id: string }) => one.id === id)
  t.strictSame(called('chat.own').use, [
    { model: 'groq/chat', when: { tags: { free: ['true'] } } },
    { model: 'groq/chat', when: { tags: { team: ['blue'] } } },
    { model: 'chat.share', when: { tags: { paid: ['true'] } } },
    'openai-2/chat',
  ])
  t.match(called('chat.share'), { strategy: 'weight', use: [{ weight: 3 }, { weight: 1 }] })
  t.strictSame(called('open').use, [{ model: 'mistral-2/open', when: { tags: { large: ['true'] } } }, 'mistral/open'])
  t.notOk(called('alone'))
  const { chains, end_users } = parse(readFileSync(join(dir, 'config/gateway.yaml'), 'utf8'))
  t.equal(chains.inference.find((one: { route?: object }) => one.route).route.attempts, 5)
  t.strictSame(end_users, { header: 'x-openwebui-user-id', default_limit: { amount: '0.5', period: 'total' } })
  const keys = JSON.parse(out).keys as { key: string; fate: string }[]
  const lost = keys.filter(({ fate }) => fate === 'not carried').map(({ key }) => key)
  t.strictSame(lost, ['model_list[6].litellm_params.tags', 'litellm_settings.num_retries'])
})

t.test('costs become prices where the mode has them, and texts like keys become variables', async t => {
  const dir = t.testdir({})
  const { out } = await gatewayctl(dir, 'import', 'litellm', join(FIXTURES, 'prices.yaml'), '--out', '.', '--json')
  const offers = filesBelow(join(dir, 'providers.d')).flatMap(path => parse(readFileSync(path, 'utf8')).models)
  const priceOf = (name: string) => offers.find(({ model }: { model: string }) => model === name).pricing
  t.strictSame(priceOf('chat'), {
    prompt: '1',
    completion: '2',
    input_cache_write_1h: '2',
    input_audio: '10',
    internal_reasoning: '3',
  })
  t.strictSame(priceOf('image'), { per_image: { default: '0.04' } })
  t.strictSame(priceOf('listener'), { input_audio_hour: '0.36' })
  t.strictSame(priceOf('ranker'), { request: '0.002' })
  t.notOk(priceOf('half'))
  const keys = JSON.parse(out).keys as { key: string; fate: string; note: string }[]
  const noteOf = (key: string) => keys.find(one => one.key === key)
  t.match(noteOf('x-shared.api_key'), { note: /anchor/ })
  t.match(noteOf('model_list[6].litellm_params.voice'), { fate: 'carried' })
  t.match(noteOf('model_list[1].model_info.input_cost_per_token'), { fate: 'not carried' })
  t.match(noteOf('model_list[5].litellm_params.extra_body.session'), { fate: 'not carried' })
  const hidden = parse(readFileSync(join(dir, 'providers.d/openai-2.yaml'), 'utf8')).headers
  t.strictSame(hidden, {
    'anthropic-beta': 'interleaved-thinking-2025-05-14',
    'x-tenant': `\${OPENAI_2_X_TENANT:-not-set}`,
    'x-route': 'eu',
  })
})

t.test('hundreds of models may share an anchor', async t => {
  const models = Array.from(
    { length: 300 },
    (_, index) => `  - { model_name: m${index}, litellm_params: { <<: *all, model: openai/m${index} } }`,
  )
  const text = `x-all: &all { api_key: os.environ/KEY }\nmodel_list:\n${models.join('\n')}\n`
  const dir = t.testdir({ 'config.yaml': text })
  const { code, err } = await gatewayctl(dir, 'import', 'litellm', 'config.yaml', '--dry-run')
  t.equal(code, 0, err)
})

t.test('what all deployments share is read, and a deployment without a weight has none beside others', async t => {
  const deployment = (model_name: string, params: object) => ({
    model_name,
    litellm_params: { model: 'openai/gpt-5', api_key: 'os.environ/KEY', ...params },
  })
  const input = {
    model_list: [
      deployment('drawn', { weight: 2 }),
      deployment('drawn', { model: 'mistral/mistral-small-latest', rpm: 60 }),
      deployment('drawn', { model: 'groq/llama-3.1-8b-instant', weight: 0 }),
      { model_name: 'gemini', litellm_params: { model: 'vertex_ai/gemini-2.5-pro', vertex_location: 'europe-west4' } },
    ],
    litellm_settings: { vertex_project: 'p', vertex_location: 'us-east5' },
    router_settings: { default_litellm_params: { temperature: 0.5 } },
    environment_variables: { KEY: 'sk-canary', OTHER: 'x' },
  }
  const dir = t.testdir({ 'config.yaml': JSON.stringify(input) })
  const { out } = await gatewayctl(dir, 'import', 'litellm', 'config.yaml', '--out', 'new', '--json')
  const { virtual_models } = parse(readFileSync(join(dir, 'new/config/routes.d/imported.yaml'), 'utf8'))
  const called = (id: string) => virtual_models.find((one: { id: string }) => one.id === id)
  t.match(called('drawn').use, [{ weight: 2 }, { weight: 0.000001 }, { weight: 0.000001 }])
  t.strictSame(called('gemini').defaults, { temperature: 0.5 })
  const { base_url } = parse(readFileSync(join(dir, 'new/providers.d/google-vertex.yaml'), 'utf8'))
  t.match(base_url, '/projects/p/locations/europe-west4')
  const { keys, set } = JSON.parse(out)
  const fates = new Map((keys as { key: string; fate: string }[]).map(({ key, fate }) => [key, fate]))
  t.equal(fates.get('litellm_settings.vertex_project'), 'carried')
  t.equal(fates.get('router_settings.default_litellm_params.temperature'), 'changed')
  t.match(set, [{ name: 'KEY', value: /environment_variables/ }])
  t.equal((await gatewayctl(dir, '--config', 'new/config/gateway.yaml', 'check')).code, 0)
})

t.test('values that files of ours refuse are left out, not written', async t => {
  const params = { model: 'openai/gpt-5', api_key: 'os.environ/KEY' }
  const input = {
    model_list: [
      { model_name: 'any/*', litellm_params: { ...params, model: 'openai/*' } },
      { model_name: 'long/*', litellm_params: { ...params, model: `openai/${'x'.repeat(200)}` } },
      { model_name: 'headers', litellm_params: { ...params, extra_headers: { 'x-lines': 'a\nb', 'x-plain': 'a' } } },
      { model_name: 'region', litellm_params: { model: 'bedrock/amazon.nova-lite-v1:0', aws_region_name: 'EU West' } },
      { model_name: 'place', litellm_params: { model: 'vertex_ai/gemini-2.5-pro', vertex_location: 'EU West' } },
    ],
    router_settings: { model_group_alias: { odd: 'any/{}' } },
    litellm_settings: { max_end_user_budget: 1e9 },
  }
  const dir = t.testdir({ 'config.yaml': JSON.stringify(input) })
  const { out } = await gatewayctl(dir, 'import', 'litellm', 'config.yaml', '--out', 'new', '--json')
  const checked = await gatewayctl(dir, '--config', 'new/config/gateway.yaml', 'check')
  t.equal(checked.code, 0, checked.err)
  const lost = (JSON.parse(out).keys as { key: string; fate: string }[]).filter(({ fate }) => fate === 'not carried')
  t.strictSame(
    lost.map(({ key }) => key),
    [
      'model_list[2].litellm_params.extra_headers.x-lines',
      'router_settings.model_group_alias.odd',
      'litellm_settings.max_end_user_budget',
    ],
  )
})

/** Offers of the manifests that an import of these deployments writes, each with the head of its manifest; and the report. */
async function importedOffers(
  t: Test,
  deployments: readonly (readonly [name: string, params: object, info?: object])[],
) {
  const model_list = deployments.map(([model_name, litellm_params, model_info]) => ({
    model_name,
    litellm_params,
    ...(model_info && { model_info }),
  }))
  const dir = t.testdir({ 'config.yaml': JSON.stringify({ model_list }) })
  const { out } = await gatewayctl(dir, 'import', 'litellm', 'config.yaml', '--out', 'new', '--json')
  const checked = await gatewayctl(dir, '--config', 'new/config/gateway.yaml', 'check')
  t.equal(checked.code, 0, checked.err)
  const offers = filesBelow(join(dir, 'new/providers.d')).flatMap(path => {
    const { models, ...head } = parse(readFileSync(path, 'utf8'))
    return models.map((mapping: { wires?: object }) => ({
      ...head,
      ...mapping,
      wires: { ...head.wires, ...mapping.wires },
    }))
  })
  const { keys } = JSON.parse(out) as { keys: { key: string; fate: string; note: string }[] }
  return {
    offer: (name: string) => offers.find(({ model }) => model === name),
    line: (key: string) => keys.find(one => one.key === key),
  }
}

t.test('requests for a deployment go to the address and the name that LiteLLM uses', async t => {
  const api_base = 'https://proxy.example'
  const fireworks = (model: string) => ({ model: `fireworks_ai/${model}`, api_key: 'os.environ/KEY' })
  const { offer } = await importedOffers(t, [
    ['claude', { model: 'anthropic/claude-sonnet-4-5', api_base: `${api_base}/anthropic/v1/messages` }],
    ['command', { model: 'cohere_chat/command-a-03-2025', api_base: `${api_base}/v2/chat` }],
    ['embed', { model: 'cohere/embed-v4.0', api_base: `${api_base}/v1/embed` }],
    ['gemini', { model: 'gemini/gemini-2.5-flash', api_base: `${api_base}/gemini` }],
    ['gemini-beta', { model: 'gemini/gemini-2.5-flash', api_base: `${api_base}/v1beta/` }],
    ['short', fireworks('glm-4p7')],
    ['fast', fireworks('kimi-k2p6-fast')],
    ['long', fireworks('accounts/me/models/own')],
    ['own', fireworks('own#accounts/me/deployments/1')],
    ['nomic', fireworks('nomic-ai/nomic-embed-text-v1.5')],
    ['ears', fireworks('whisper-v3')],
    ['series', { model: 'azure/o_series/mine', api_base, api_key: 'os.environ/KEY' }],
    ['fives', { model: 'azure/gpt5_series/other', api_base, api_key: 'os.environ/KEY' }],
  ])
  for (const [name, base, id] of [
    ['claude', `${api_base}/anthropic/v1`, 'claude-sonnet-4-5'],
    ['command', `${api_base}/v2`, 'command-a-03-2025'],
    ['embed', `${api_base}/v2`, 'embed-v4.0'],
    ['gemini', `${api_base}/gemini`, 'gemini-2.5-flash'],
    ['gemini-beta', `${api_base}/v1beta`, 'gemini-2.5-flash'],
    ['short', 'https://api.fireworks.ai/inference/v1', 'accounts/fireworks/models/glm-4p7'],
    ['fast', 'https://api.fireworks.ai/inference/v1', 'accounts/fireworks/routers/kimi-k2p6-fast'],
    ['long', 'https://api.fireworks.ai/inference/v1', 'accounts/me/models/own'],
    ['own', 'https://api.fireworks.ai/inference/v1', 'own#accounts/me/deployments/1'],
    ['nomic', 'https://api.fireworks.ai/inference/v1', 'nomic-ai/nomic-embed-text-v1.5'],
    ['ears', 'https://api.fireworks.ai/inference/v1', 'whisper-v3'],
    ['series', `${api_base}/openai/v1`, 'mine'],
    ['fives', `${api_base}/openai/v1`, 'other'],
  ] as const) {
    t.strictSame([offer(name).base_url, offer(name).id], [base, id], name)
  }
})

t.test('models of OpenAI behind another address get requests of the API that they take', async t => {
  const at = { api_base: 'https://eu.proxy.example/v1', api_key: 'os.environ/KEY' }
  const { offer } = await importedOffers(t, [
    ['prefix', { ...at, model: 'openai/responses/gpt-5-mini' }],
    ['mode', { ...at, model: 'openai/own' }, { mode: 'responses' }],
    ['codex', { ...at, model: 'openai/gpt-5.1-codex' }],
    ['research', { ...at, model: 'o4-mini-deep-research' }],
    ['thinks', { ...at, model: 'openai/gpt-5-mini' }],
    ['samples', { ...at, model: 'openai/gpt-4o-mini' }],
    ['azure', { model: 'azure/own', api_base: 'https://own.openai.azure.com' }, { mode: 'responses' }],
    ['claude', { model: 'anthropic/claude-sonnet-4-5' }, { mode: 'responses' }],
  ])
  for (const [name, wire, limit] of [
    ['prefix', 'openai.responses', 'max_completion_tokens'],
    ['mode', 'openai.responses', undefined],
    ['codex', 'openai.responses', 'max_completion_tokens'],
    ['research', 'openai.responses', 'max_completion_tokens'],
    ['thinks', 'openai.chat', 'max_completion_tokens'],
    ['samples', 'openai.chat', undefined],
    ['azure', 'openai.responses', 'max_completion_tokens'],
    ['claude', 'anthropic.messages', undefined],
  ] as const) {
    const { wires, quirks } = offer(name)
    t.strictSame([wires.chat, quirks?.rename?.max_tokens], [wire, limit], name)
  }
})

t.test('parameters that a deployment drops are dropped on every wire', async t => {
  const drops = (model: string, ...additional_drop_params: string[]) => ({ model, additional_drop_params })
  const { offer, line } = await importedOffers(t, [
    ['nova', drops('bedrock/amazon.nova-pro-v1:0', 'temperature', 'response_format')],
    ['local', { ...drops('openai/own', 'reasoning_effort'), api_base: 'https://own.example/v1' }],
    ['strict', drops('groq/own', 'tools[*].function.strict', 'stop')],
    ['first', drops('mistral/own', 'tools[0].function.strict')],
  ])
  t.notOk(offer('nova').parameters.some((one: string) => ['temperature', 'response_format'].includes(one)))
  t.ok(offer('nova').parameters.includes('top_p'))
  t.notOk(offer('local').parameters.includes('reasoning_effort'))
  t.ok(offer('local').supports.includes('reasoning'), 'a request with it is taken')
  t.strictSame(offer('strict').quirks.drop.slice(-2), ['tools.*.function.strict', 'stop'])
  t.notOk(offer('strict').parameters)
  t.match(line('model_list[2].litellm_params.additional_drop_params'), { fate: 'carried' })
  t.match(line('model_list[3].litellm_params.additional_drop_params'), { fate: 'not carried' })
})

t.test('a profile of several regions is the model that it leads to', async t => {
  const { offer } = await importedOffers(
    t,
    ['us', 'eu', 'apac', 'global'].map(area => [area, { model: `bedrock/${area}.anthropic.claude-sonnet-5` }] as const),
  )
  for (const area of ['us', 'eu', 'apac', 'global']) {
    t.equal(offer(area).id, `${area}.anthropic.claude-sonnet-5`)
    t.ok(offer(area).supports.includes('reasoning'), area)
    t.notOk(offer(area).parameters.includes('temperature'), 'which this model refuses')
  }
  t.equal(offer('eu').pricing.prompt, '2.2')
  t.match(offer('global'), { unpriced: 'allow', pricing: undefined }, 'its price is another one')
})

t.test('what a server of your own can is what its packaged manifest says', async t => {
  const { offer, line } = await importedOffers(t, [
    ['vllm', { model: 'hosted_vllm/gpt-oss-120b', api_base: 'http://vllm:8000/v1' }],
    ['ollama', { model: 'ollama_chat/qwen3:32b', api_base: 'http://ollama:11434' }],
    ['router', { model: 'openrouter/some/model' }],
    ['marked', { model: 'anthropic/claude-sonnet-5', cache_control_injection_points: [{ location: 'message' }] }],
  ])
  for (const name of ['vllm', 'ollama', 'router']) t.ok(offer(name).supports.includes('reasoning'), name)
  t.ok(offer('vllm').supports.includes('parallel_tool_calls'))
  t.equal(offer('marked').cache, 'auto')
  const point = 'model_list[3].litellm_params.cache_control_injection_points[0].location'
  t.match(line(point), { fate: 'changed' })
})

/** A key as LiteLLM answers it, with a hundred fields that say nothing. */
const keyOf = (token: string, more: object) => ({ token, key_alias: token, expires: null, aliases: {}, ...more })

t.test('a key without a team is held to the models of its user, and one in a team to those of the team', async t => {
  const keys = [
    keyOf('sk-own', { user_id: 'held' }),
    keyOf('sk-named', { user_id: 'held', models: ['large'] }),
    keyOf('sk-in-team', { user_id: 'held', team_id: 't-1' }),
    keyOf('sk-of-none', { user_id: 'none', models: ['large'] }),
    keyOf('sk-free', { user_id: 'free', models: ['all-proxy-models'] }),
  ]
  const users = [
    { user_id: 'held', models: ['small'] },
    { user_id: 'none', models: ['no-default-models'] },
    { user_id: 'free', models: [] },
  ]
  const found = convertKeys({ keys, teams: [{ team_id: 't-1', models: ['medium'] }], users }, new Report(), [])
  t.strictSame(
    found.map(({ args, models }) => [args.name, models]),
    [
      ['sk-own', ['small']],
      ['sk-named', ['large']],
      ['sk-in-team', ['medium']],
      ['sk-of-none', ['no-default-models']],
      ['sk-free', undefined],
    ],
  )
})

t.test('keys that may call no model of LiteLLM are left out', async t => {
  const report = new Report()
  const keys = [
    keyOf('sk-reads', { key_type: 'read_only', allowed_routes: ['info_routes'] }),
    keyOf('sk-manages', { key_type: 'management', allowed_routes: ['management_routes'] }),
    keyOf('sk-calls', { key_type: 'llm_api', allowed_routes: ['llm_api_routes', 'info_routes'] }),
  ]
  const found = convertKeys({ keys, teams: [], users: [] }, report, [])
  t.strictSame(
    found.map(({ args }) => args.name),
    ['sk-calls'],
  )
  t.match(report.lines({ keys }, true)[0], { fate: 'not carried', note: /it may call no model/ })
})

t.test('the budget of a user is no limit of keys in teams, and teams of one name share none', async t => {
  const report = new Report()
  const keys = [
    keyOf('sk-blue', { user_id: 'ada', team_id: 't-1', tpd_limit: 5000 }),
    keyOf('sk-other', { user_id: 'bob', team_id: null }),
    keyOf('sk-blue-too', { team_id: 't-2' }),
    keyOf('sk-red', { team_id: 't-3', team_alias: null }),
  ]
  const teams = [
    { team_id: 't-1', team_alias: 'blue', max_budget: 100 },
    { team_id: 't-2', team_alias: 'blue', max_budget: 5 },
    { team_id: 't-3', team_alias: 'red' },
  ]
  const users = ['ada', 'bob'].map(user_id => ({ user_id, max_budget: 10, budget_duration: '30d' }))
  const found = convertKeys({ keys, teams, users }, report, [])
  t.match(found, [
    { project: 'blue t-1', projectArgs: { limit: '100.000000000' }, args: { tpd: 5000 } },
    { project: 'default', memberArgs: { limit: '10.000000000', limitPeriod: 'month' } },
    { project: 'blue t-2', projectArgs: { limit: '5.000000000' } },
    { project: 'red' },
  ])
  t.notOk('limit' in found[0]!.memberArgs, 'all requests of the member would count')
  const lines = report.lines({ users }, true)
  t.match(
    lines.find(({ key }) => key === 'users[0].max_budget'),
    { fate: 'not carried', note: /keys without a team/ },
  )
  t.match(
    lines.find(({ key }) => key === 'users[1].max_budget'),
    { fate: 'carried' },
  )
})

t.test('the report says of each key whose team or user is not known', async t => {
  const report = new Report()
  const keys = [
    keyOf('sk-known', { team_id: 't-1', user_id: 'u-1' }),
    keyOf('sk-unknown', { team_id: 't-2', user_id: 'u-2', models: [] }),
  ]
  convertKeys({ keys, teams: [{ team_id: 't-1' }], users: [{ user_id: 'u-1' }] }, report, [])
  t.match(
    report.lines({ keys }, true).filter(({ key }) => /team_id|user_id/.test(key)),
    [
      { fate: 'carried' },
      { fate: 'carried' },
      { fate: 'changed', note: /limits and models of the team are not in/ },
      { fate: 'changed', note: /limits and models of the user are not in/ },
    ],
  )
})

t.test('the report about keys has no line for a field that is empty', async t => {
  const keys = [keyOf('0'.repeat(64), { models: [], blocked: null, metadata: { note: 'x', tags: [] }, team_id: null })]
  const dir = t.testdir({ 'keys.json': JSON.stringify(keys) })
  const { out, code } = await gatewayctl(dir, 'import', 'litellm', '--keys', 'keys.json', '--dry-run', '--json')
  t.equal(code, 0, out)
  const { keys: lines } = JSON.parse(out) as { keys: { key: string }[] }
  t.strictSame(
    lines.map(({ key }) => key),
    ['keys[0].token', 'keys[0].key_alias', 'keys[0].metadata.note'],
  )
})
