/** The shipped catalogue: that it loads, is complete in itself, and that every offer of it can be reached. */
import { generateKeyPairSync } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import { parse } from 'yaml'
import { checkModels } from '../../src/app/check-models.ts'
import { Registry } from '../../src/app/registry.ts'
import { linkCatalog } from '../../src/config/catalog.ts'
import { editorSchemas } from '../../src/config/editor-schema.ts'
import { type ConfigFiles, loadFiles } from '../../src/config/load.ts'
import { mappingsIn } from '../../src/config/schemas/provider.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import { isOver } from '../../src/core/offer.ts'
import type { Mapping, Model, Translator } from '../../src/core/translator.ts'
import type { Axis } from '../../src/core/usage.ts'
import { entryOf } from '../../src/endpoints/model-entry.ts'
import { models as listing } from '../../src/endpoints/models.ts'
import { applyQuirks } from '../../src/filters/translate/quirks.ts'
import type { Json } from '../../src/json/json.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { chat } from '../../src/operations/chat/index.ts'
import { plan } from '../../src/routing/plan.ts'
import { resolve } from '../../src/routing/resolve.ts'
import { exchange, listingOf, thrown } from '../core/kit.ts'
import { queryOf } from '../routing/kit.ts'

/** Axes without a price though the offers of a provider support what is counted in them, and why. */
const UNPRICED_AXES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  input_cache_read: {
    cerebras: 'cached tokens cost as much as others',
    openrouter: 'where no source names a price, cached tokens cost as much as others',
  },
  web_search: {
    'google-ai-studio': 'no source names a price: searches are refused',
    'google-vertex': 'no source names a price: searches are refused',
  },
  input_audio: {
    'google-ai-studio': 'audio costs as much as text',
    'google-vertex': 'audio costs as much as text',
  },
}

/** Models whose end is known, by its day. */
const RETIRED: Readonly<Record<string, string>> = {
  'claude-sonnet-4-5': '2026-11-30',
  'deepseek-chat': '2026-07-24',
  'deepseek-reasoner': '2026-07-24',
  'gpt-5-chat-latest': '2026-07-23',
  'gpt-5.1-codex-max': '2026-07-23',
  'gpt-image-1': '2026-10-23',
  o1: '2026-10-23',
  'o3-deep-research': '2026-07-23',
  'o3-mini': '2026-10-23',
  'o4-mini': '2026-10-23',
  sonar: '2026-09-27',
  'sonar-deep-research': '2026-09-27',
  'sonar-pro': '2026-09-27',
  'sonar-reasoning-pro': '2026-09-27',
  'sora-2': '2026-09-24',
  'sora-2-pro': '2026-09-24',
}

/** Models with open weights that no provider of the catalogue offers: operators may run them. */
const OPEN_WEIGHTS = ['llama-3.1-8b-instruct', 'llama-4-scout-17b-16e-instruct', 'qwen3-32b']

const folder = 'providers.d'
const texts = Object.fromEntries(
  readdirSync(folder).map(name => [name, readFileSync(`${folder}/${name}`, 'utf8')] as const),
)

/** Every variable that a provider's file names, set: all offers are live. */
function fullEnv(): Record<string, string> {
  const names = Object.values(texts).flatMap(text => [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name!))
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const private_key = privateKey.export({ type: 'pkcs8', format: 'pem' })
  return {
    ...Object.fromEntries(names.map(name => [name, 'secret'])),
    GATEWAY_DEMO_URL: 'http://127.0.0.1:9',
    GOOGLE_APPLICATION_CREDENTIALS_JSON: JSON.stringify({ client_email: 'robot@acme.example', private_key }),
  }
}

/** As if an operator had turned on the providers that are shipped off. */
const turnedOn = (files: ConfigFiles): ConfigFiles => ({
  ...files,
  providers: files.providers.map(file => ({ ...file, value: { ...file.value, enabled: true } })),
})

const registry = new Registry()
const files = await loadFiles('config/gateway.yaml', { env: fullEnv() })
const catalog = linkCatalog(turnedOn(files), registry)
const models = [...catalog.models.values()]
const offers = models.flatMap(model => model.mappings)
const nameOf = ({ provider, model }: Mapping) => `${provider.id}/${model.id}`
const today = new Date().toISOString().slice(0, 10)

const answersChats = ({ operations }: Model): boolean => operations!.includes('chat')

t.test('the shipped catalogue loads without any variable set', async t => {
  const bare = await loadFiles('config/gateway.yaml', { env: { GATEWAY_DEMO_URL: 'http://127.0.0.1:9' } })
  const { providers } = linkCatalog(bare, registry)
  t.equal(providers.size, files.providers.filter(file => file.value.enabled).length)
  for (const { id, credentials } of providers.values()) t.strictSame(credentials, [], id)
})

t.test('the shipped catalogue does not shrink, and each operation has offers of at least two providers', async t => {
  t.ok(models.length >= 221, `${models.length} models`)
  t.ok(catalog.providers.size >= 38, `${catalog.providers.size} providers`)
  const providersOf = (op: string) =>
    new Set(
      offers
        .filter(({ wires, model }) => model.operations!.includes(op) && new Map<string, unknown>(wires).has(op))
        .map(({ provider }) => provider.id),
    )
  const alone = Object.keys(registry.operations).filter(op => providersOf(op).size < 2)
  t.strictSame(alone, [])
})

t.test('every file is named after its provider and says of which day its prices are', async t => {
  for (const [name, text] of Object.entries(texts)) {
    t.match(text, new RegExp(`^provider: ${name.replace('.yaml', '')}$`, 'm'), name)
    const head = text.slice(0, text.indexOf('provider:')).replace(/\n# */g, ' ')
    const priced = /: "(?!0")[\d.]+"/.test(text)
    if (priced) t.match(head, /\bPrices: USD per million tokens, .*\d{4}-\d\d-\d\d/, name)
    t.notMatch(text, /\t| +$/m, name)
  }
})

t.test('every price has its day, which the head of its file says', async t => {
  const paid = offers.filter(({ price }) => price && Object.values(price.rates).some(rate => rate > 0n))
  const head = ({ provider: { id } }: Mapping) => texts[`${id}.yaml`]!.split('provider:')[0]!
  // A source that says a month alone has the first day of it.
  const isSaid = (offer: Mapping, day: string) => head(offer).includes(day.replace(/-01$/, ''))
  const undated = paid.filter(offer => !offer.pricedAt || !isSaid(offer, offer.pricedAt))
  t.strictSame(undated.map(nameOf), [])
})

t.test('every model is offered, and every offer has a wire for what the model is for', async t => {
  const lone = models.filter(({ id, mappings }) => mappings.length === 0 && !(id in RETIRED))
  t.strictSame(lone.map(model => model.id).sort(), OPEN_WEIGHTS)
  const mute = offers.filter(
    ({ wires, model }) => !model.operations!.some(op => new Map<string, unknown>(wires).has(op)),
  )
  t.strictSame(mute.map(nameOf), [])
})

t.test('every price is known, or the offer says that it is refused, and why', async t => {
  const unknown = offers.filter(({ price, unpriced }) => !price && unpriced !== 'refuse').map(nameOf)
  t.strictSame(unknown, [])
  const priced = offers.filter(({ price, unpriced }) => price && unpriced).map(nameOf)
  t.strictSame(priced, [], 'an offer with a price says nothing of that')
  for (const [name, text] of Object.entries(texts)) t.notMatch(text, /unpriced: refuse$/m, name)
  const half = offers.filter(({ price, pricing }) => !price && Object.keys(pricing).length > 0)
  t.strictSame(half.map(nameOf), [], 'a price that is not whole is none')
})

t.test('models check --strict passes on the day of the newest price', async t => {
  const newest = offers
    .map(({ pricedAt = '' }) => pricedAt)
    .sort()
    .at(-1)!
  const enabled = linkCatalog(files, registry)
  t.strictSame(checkModels(enabled, 90, newest).warnings, [])
})

const isClaude = ({ model: { family } }: Mapping): boolean => /^claude/.test(family ?? '')

t.test('every axis that an offer supports has a price, or it is said why not', async t => {
  const caches = ({ supports }: Mapping) => supports.has('prompt_cache')
  const rules: [axis: Axis, supported: (offer: Mapping) => boolean][] = [
    ['input_cache_read', caches],
    ['input_cache_write', offer => caches(offer) && isClaude(offer)],
    ['input_cache_write_1h', offer => caches(offer) && isClaude(offer)],
    ['web_search', ({ supports }) => supports.has('web_search')],
    ['input_audio', ({ supports }) => supports.has('audio_input')],
    ['completion', ({ supports }) => supports.has('reasoning')],
  ]
  for (const [axis, supported] of rules) {
    const priced = offers.filter(offer => offer.price?.rates.prompt !== 0n && offer.price && supported(offer))
    t.ok(priced.length > 0, axis)
    const missing = priced.filter(
      ({ price, provider }) => price!.rates[axis] === undefined && !UNPRICED_AXES[axis]?.[provider.id],
    )
    t.strictSame(missing.map(nameOf), [], axis)
    const tiers = priced.flatMap(offer => offer.price!.tiers.map(({ rates }) => ({ offer, rates })))
    const lower = tiers.filter(({ offer, rates }) => (rates[axis] ?? 0n) < (offer.price!.rates[axis] ?? 0n))
    t.strictSame(
      lower.map(({ offer }) => nameOf(offer)),
      [],
      `${axis} of a longer prompt`,
    )
  }
  const drawing = offers.filter(({ price, model }) => price && model.output.includes('image'))
  const free = drawing.filter(
    ({ price }) => !price!.perImage && (price!.rates.image_output ?? price!.rates.request) === undefined,
  )
  t.strictSame(free.map(nameOf), [], 'images of an answer')
})

t.test('to write to the cache of Claude costs what its vendor multiplies the price of the prompt by', async t => {
  const claude = offers.filter(offer => offer.price && isClaude(offer))
  t.ok(claude.length >= 20, `${claude.length} offers`)
  for (const offer of claude) {
    for (const { prompt = 0n, ...rates } of [offer.price!.rates, ...offer.price!.tiers.map(({ rates }) => rates)]) {
      const written = [rates.input_cache_write, rates.input_cache_write_1h]
      t.strictSame(written, [(prompt * 5n) / 4n, prompt * 2n], nameOf(offer))
      t.ok(rates.input_cache_read! <= prompt / 10n, nameOf(offer))
    }
  }
})

t.test('what an offer says of itself agrees', async t => {
  const rules: [rule: string, broken: (offer: Mapping) => boolean][] = [
    ['vision needs image input', ({ supports, model }) => supports.has('vision') && !model.input.includes('image')],
    ['audio needs audio input', ({ supports, model }) => supports.has('audio_input') && !model.input.includes('audio')],
    ['efforts need reasoning', offer => offer.reasoningEfforts.length > 0 && !offer.supports.has('reasoning')],
    ['modes need reasoning', offer => offer.reasoningModes.length > 0 && !offer.supports.has('reasoning')],
    ['no service tier is priced', offer => offer.serviceTiers.length > 0],
    ['output fits the context', ({ maxOutput = 0, contextLength = Infinity }) => maxOutput > contextLength],
    [
      'a cached token costs no more',
      ({ price }) => (price?.rates.input_cache_read ?? 0n) > (price?.rates.prompt ?? 0n),
    ],
    [
      'a longer prompt costs no less',
      ({ price }) => price?.tiers.some(tier => tier.rates.prompt! < price.rates.prompt!) === true,
    ],
    ['it ends after it is deprecated', offer => (offer.deprecatedAt ?? '') > (offer.deactivatedAt ?? '9')],
  ]
  for (const [rule, broken] of rules) t.strictSame(offers.filter(broken).map(nameOf), [], rule)
  for (const { id, created } of models) t.ok(created > 0 && created * 1000 <= Date.now(), `${id} is there already`)
})

t.test('a retired model carries its day: then only flags list it, and the refusal names the day', async t => {
  for (const [id, day] of Object.entries(RETIRED)) {
    const model = catalog.models.get(id)
    t.equal(model?.deactivatedAt, day, id)
    for (const offer of model?.mappings ?? []) t.ok((offer.deactivatedAt ?? day) <= day, nameOf(offer))
  }
  const dated = models.filter(model => model.deactivatedAt).map(model => model.id)
  t.strictSame(dated.sort(), Object.keys(RETIRED).sort())
  const past = models.filter(model => model.deactivatedAt && model.deactivatedAt <= today)
  for (const { id, mappings } of past) {
    t.notOk((await listed('')).includes(id))
    t.equal((await listed('include_deactivated=true')).includes(id), mappings.length > 0)
    const refusal = thrown(() => planned(id)) as GatewayError
    t.match([refusal.status, refusal.message], [404, `It was deactivated on ${RETIRED[id]}.`], id)
  }
})

t.test('a model with open weights without an offer is refused, until an operator offers it', async t => {
  const deepinfra = files.providers.find(({ value }) => value.provider === 'deepinfra')!
  const [offer] = mappingsIn(deepinfra.value)
  const models = OPEN_WEIGHTS.map(model => ({ ...offer!, model }))
  const providers = files.providers.map(file => {
    return file === deepinfra ? { ...file, value: { ...file.value, models } } : file
  })
  const others = linkCatalog({ ...files, providers }, registry)
  for (const id of OPEN_WEIGHTS) {
    t.notOk((await listed('')).includes(id), id)
    t.match(
      thrown(() => planned(id)),
      { status: 400, message: `No provider offers the model "${id}".` },
      id,
    )
    t.match(planned(id, others), [{ provider: { id: 'deepinfra' } }], id)
  }
})

/** The ids of the catalogue's list. */
const listed = async (query: string): Promise<string[]> =>
  (await listingOf<{ id: string }>(exchange({ endpoint: listing, query, snapshot: { catalog } }))).map(({ id }) => id)

t.test('every name of an offer means it', async t => {
  for (const offer of offers) {
    const { model, provider, externalId } = offer
    for (const name of [model.id, ...model.aliases]) {
      t.match(resolve(catalog, name), { kind: 'model', model: { id: model.id }, provider: undefined }, name)
    }
    for (const name of [model.id, ...model.aliases, externalId]) {
      const prefixed = `${provider.id}/${name}`
      const { kind, ...wanted } = resolve(catalog, prefixed)
      t.match({ kind, ...wanted }, { kind: 'model', model: { id: model.id }, provider: { id: provider.id } }, prefixed)
    }
  }
})

t.test('Gemini 2.5 ends at Google AI Studio, where another model would answer, and not at Vertex', async t => {
  const endOf = (provider: string) =>
    models.find(({ id }) => id === 'gemini-2.5-pro')?.mappings.find(offer => offer.provider.id === provider)
      ?.deactivatedAt
  t.equal(endOf('google-ai-studio'), '2026-12-01')
  t.equal(endOf('google-vertex'), undefined)
})

t.test('a name with a date, by which Claude Code asks for Claude models, means the model', async t => {
  const dated = ['claude-opus-4-5-20251101', 'claude-sonnet-4-5-20250929', 'claude-haiku-4-5-20251001']
  for (const name of [...dated, 'claude-opus-4-1-20250805']) {
    t.match(resolve(catalog, name), { kind: 'model', model: { id: name.slice(0, -9) } }, name)
  }
})

t.test('generate-nano-banana has a model that makes images', async t => {
  const { value } = files.gateway
  const named = resolve(catalog, value.mcp.nano_banana)
  t.match(named, { kind: 'model', model: { operations: ['chat', 'images', 'image_edits'] } })
})

t.test('sessions transcribe with models of OpenAI', async t => {
  for (const id of ['gpt-4o-transcribe', 'gpt-4o-mini-transcribe', 'whisper-1']) {
    const { operations, mappings } = catalog.models.get(id)!
    t.ok(operations!.includes('realtime'), id)
    t.ok(mappings.find(({ provider }) => provider.id === 'openai')?.supports.has('realtime'), id)
  }
})

/** Where a request for a model goes. */
const planned = (model: string, from = catalog) =>
  plan(queryOf(from, { model }, { principal: undefined }), { auto: [] }).targets

t.test('every offer of a model that answers chats is reached by its canonical id and with its prefix', async t => {
  for (const offer of offers) {
    const { model, provider } = offer
    if (!answersChats(model) || isOver(offer, today)) continue
    if (!offer.price) {
      t.match(thrown(() => planned(nameOf(offer))) as GatewayError, { status: 402 }, nameOf(offer))
      continue
    }
    t.ok(
      planned(model.id).some(target => target.mapping === offer),
      `${nameOf(offer)} by its canonical id`,
    )
    const [target, ...others] = planned(nameOf(offer))
    t.equal(target?.mapping, offer)
    t.strictSame(
      others.filter(other => other.mapping !== offer),
      [],
      `${provider.id} only`,
    )
  }
})

t.test('providers that turn reasoning on and off by a field of their own get that field', async t => {
  const rows: [offer: string, request: object, sent: object][] = [
    ['deepseek/deepseek-v4-pro', { reasoning_effort: 'none' }, { thinking: { type: 'disabled' } }],
    [
      'deepseek/deepseek-v4-pro',
      { reasoning_effort: 'max' },
      { thinking: { type: 'enabled' }, reasoning_effort: 'max' },
    ],
    ['alibaba/qwen-plus', { reasoning_effort: 'none' }, { enable_thinking: false }],
    ['alibaba/qwen-plus', { reasoning: { max_tokens: 100 } }, { enable_thinking: true, thinking_budget: 100 }],
    ['moonshot/kimi-k2.6', { reasoning_effort: 'none' }, { thinking: { type: 'disabled' } }],
    ['zai/glm-5', { reasoning_effort: 'none' }, { thinking: { type: 'disabled' } }],
    ['zai/glm-4.6', { reasoning_effort: 'low' }, { thinking: { type: 'enabled' } }],
    ['minimax/minimax-m3', { reasoning_effort: 'none' }, { thinking: { type: 'disabled' } }],
    ['minimax/minimax-m3', { reasoning_effort: 'low' }, { thinking: { type: 'adaptive' } }],
    ['moonshot/kimi-k3', { reasoning_effort: 'low' }, { reasoning_effort: 'low' }],
  ]
  for (const [name, request, sent] of rows) {
    const target = planned(name)[0]!
    const { encode } = target.translator as Translator<'chat'>
    const {
      model: _model,
      messages: _messages,
      ...body
    } = encode({ ...request, model: name, messages: [{ role: 'user', content: 'Hi' }] }, target, false).body
    t.strictSame(body, sent, `${name} ${JSON.stringify(request)}`)
  }
})

t.test('models that always reason offer no effort of none', async t => {
  const rows = {
    'openai/gpt-6-astra': false,
    'openai/gpt-5.3-codex': false,
    'openai/gpt-5.4': true,
    'xai/grok-4.6': false,
    'xai/grok-4.5': false,
    'xai/grok-4.3': true,
    'zai/glm-5.2': true,
  }
  for (const [name, offered] of Object.entries(rows)) {
    t.equal(planned(name)[0]!.mapping.reasoningEfforts.includes('none'), offered, name)
  }
})

t.test('no parameter is sent to a model that refuses it', async t => {
  const rows: Record<string, string[]> = {
    'xai/grok-4.6': ['stop'],
    'xai/grok-4.5': ['stop'],
    'xai/grok-4.3': ['stop'],
    'xai/grok-build-0.1': ['stop', 'reasoning_effort'],
    'zai/glm-5.2': ['stop', 'tool_choice'],
    'moonshot/kimi-k2.7-code': ['tool_choice'],
    'moonshot/kimi-k2-thinking': ['tool_choice'],
    'openai/gpt-image-2.5-flare': ['input_fidelity'],
    'openai/gpt-image-2.5-sunburst': ['input_fidelity'],
    'openai/gpt-image-2': ['input_fidelity'],
  }
  for (const [name, refused] of Object.entries(rows)) {
    const { parameters } = planned(name)[0]!.mapping
    t.strictSame(
      refused.filter(parameter => parameters?.has(parameter) !== false),
      [],
      name,
    )
  }
})

t.test('the listing names no parameter of operations that only other models of a provider serve', async t => {
  const rows: Record<string, [has: string[], lacks: string[]]> = {
    'gpt-image-2': [
      ['size', 'quality', 'mask', 'output_format'],
      ['input_fidelity', 'max_tokens'],
    ],
    'tts-1': [
      ['voice', 'speed'],
      ['size', 'max_tokens'],
    ],
    'whisper-1': [
      ['language', 'timestamp_granularities'],
      ['voice', 'max_tokens'],
    ],
    'rerank-v3.5': [['top_n'], ['max_tokens']],
    'omni-moderation-latest': [[], ['max_tokens', 'size']],
  }
  for (const [name, [has, lacks]] of Object.entries(rows)) {
    const model = catalog.models.get(name)!
    const listed = entryOf(model, name, model.mappings, undefined).supported_parameters as string[]
    t.strictSame(
      [...has, ...lacks].filter(parameter => listed.includes(parameter)),
      has,
      name,
    )
  }
})

t.test('a request for several answers goes to models that give them', async t => {
  const rows = { 'google-ai-studio/gemini-3.6-flash': 1, 'google-ai-studio/gemini-2.5-flash-lite': 8 }
  for (const [name, most] of Object.entries(rows)) t.equal(planned(name)[0]!.mapping.maxN, most, name)
})

/** What is sent to an offer for `request`: its fields of `names`. */
function sentTo(offer: string, request: object, names: readonly string[]): Json {
  const target = planned(offer)[0]!
  const { encode } = target.translator as Translator<'chat'>
  const given = { model: offer, messages: [{ role: 'user', content: 'Hi' }], ...request } as ChatRequest
  const { body } = encode(chat.adapted!(given, target, false), target, false)
  applyQuirks(target.provider, body)
  return Object.fromEntries(names.flatMap(name => (name in body ? [[name, body[name]]] : [])))
}

const toolNamed = (name: string, strict?: boolean) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: {} }, ...(strict && { strict }) },
})

t.test('stop sequences are sent to the models that take them', async t => {
  const models = ['openai/gpt-4.1', 'openai/gpt-4.1-mini', 'openai/gpt-4o', 'openai/gpt-4o-mini']
  for (const model of [...models, 'xai/grok-4.20-0309-non-reasoning']) {
    t.strictSame(sentTo(model, { stop: ['END'] }, ['stop']), { stop: ['END'] }, model)
  }
})

t.test("Google's models of images go by the names that outlived their previews", async t => {
  for (const name of ['gemini-3-pro-image', 'gemini-3.1-flash-image']) {
    for (const asked of [name, `${name}-preview`]) t.equal(planned(asked)[0]!.mapping.externalId, name, asked)
  }
})

t.test('a tool by name is the only one where a provider takes no names', async t => {
  const tools = [toolNamed('find'), toolNamed('read')]
  const tool_choice = { type: 'function', function: { name: 'read' } }
  const sent = (offer: string) => sentTo(offer, { tools, tool_choice }, ['tools', 'tool_choice'])
  t.strictSame(sent('moonshot/kimi-k3'), { tools: [tools[1]], tool_choice: 'required' })
  t.strictSame(sent('lmstudio/qwen3-4b'), { tools: [tools[1]], tool_choice: 'required' })
  t.strictSame(sent('groq/gpt-oss-20b'), { tools, tool_choice })
})

t.test('Groq, which takes no answer format beside tools, gets an instruction', async t => {
  const tools = [toolNamed('find')]
  const response_format = { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } }
  const sent = (offer: string, request: object) => sentTo(offer, request, ['tools', 'response_format', 'messages'])
  const { messages, ...body } = sent('groq/gpt-oss-20b', { tools, response_format })
  t.strictSame(body, { tools })
  t.match(messages, [{ role: 'system', content: /JSON/ }, { role: 'user' }])
  const any = sent('groq/gpt-oss-20b', { tools, response_format: { type: 'json_object' } })
  t.match(any.messages, [{ role: 'system', content: /JSON/ }, { role: 'user' }])
  t.strictSame(sent('groq/gpt-oss-20b', { response_format }).response_format, response_format)
  t.match(sent('fireworks/deepseek-v4-pro', { tools, response_format }), { tools, response_format })
})

t.test('tools that a caller forbids are left out where a provider takes no choice of tools', async t => {
  const tools = [toolNamed('find')]
  const sent = (offer: string) => sentTo(offer, { tools, tool_choice: 'none' }, ['tools', 'tool_choice'])
  for (const offer of ['zai/glm-5.3', 'zai/glm-5.2', 'moonshot/kimi-k2.7-code', 'ollama/qwen3:4b']) {
    t.strictSame(sent(offer), {}, offer)
  }
  t.strictSame(sent('groq/gpt-oss-20b'), { tools, tool_choice: 'none' })
})

t.test('Cerebras, which takes no mix of strict tools and others, gets no strict ones', async t => {
  const tools = [toolNamed('find', true), toolNamed('read')]
  t.strictSame(sentTo('cerebras/gpt-oss-120b', { tools }, ['tools']), { tools: [toolNamed('find'), tools[1]] })
})

t.test('editors are given the schemas that files are checked with', async t => {
  const schemas = editorSchemas(registry)
  const ajv = new Ajv({ strict: false, validateFormats: false, code: { optimize: false } })
  const shipped: Record<string, string[]> = {
    gateway: ['config/gateway.yaml'],
    models: readdirSync('config/models.d').map(name => `config/models.d/${name}`),
    provider: readdirSync(folder).map(name => `${folder}/${name}`),
    routes: [],
  }
  t.strictSame(Object.keys(schemas).sort(), Object.keys(shipped).sort())
  for (const [name, paths] of Object.entries(shipped)) {
    const at = `config/schema/${name}.json`
    const fits = ajv.compile(schemas[name]!)
    for (const path of paths) {
      const text = readFileSync(path, 'utf8')
      const [, named = ''] = /^# yaml-language-server: \$schema=(.*)\n/.exec(text) ?? []
      t.equal(join(dirname(path), named), at, `${path} names its schema`)
      t.ok(fits(parse(text)), `${path}: ${JSON.stringify(fits.errors?.[0])}`)
    }
  }
  const refused: [name: string, text: string][] = [
    ['provider', texts['openai.yaml']!.replace('wires:', 'wire:')],
    ['provider', texts['openai.yaml']!.replace('scheme: bearer', 'scheme: baerer')],
    ['provider', `${texts['openai.yaml']!}timeouts: { idle: 5 }\n`],
    ['provider', texts['openai.yaml']!.replace(/^models:/m, 'models: all\nmodel:')],
    ['models', 'models: [{ id: a }]'],
    ['models', 'alias: { a: b }'],
    ['gateway', readFileSync('config/gateway.yaml', 'utf8').replace('rpm: 600', 'rpms: 600')],
    ['gateway', readFileSync('config/gateway.yaml', 'utf8').replace('  chat: {', '  chatt: {')],
  ]
  for (const [name, text] of refused) t.notOk(ajv.compile(schemas[name]!)(parse(text)), text.slice(0, 300))
  const referred = texts['openai.yaml']!.replace(/base_url: .*/, `base_url: "\${OPENAI_BASE_URL}"`)
  t.ok(ajv.compile(schemas.provider!)(parse(referred)), 'a reference may stand for a text')
})

t.test('docs/providers.md names every provider, and the variables that its file reads', async t => {
  const text = readFileSync('docs/providers.md', 'utf8')
  const rows = [...text.matchAll(/^\| `([\w-]+)` \| (.*?) \| (.*?) \| .*\|$/gm)].map(([, id, name, variables]) => [
    id,
    name,
    [...variables!.matchAll(/`(\w+)`/g)].map(([, variable]) => variable),
  ])
  const { providers } = await loadFiles('config/gateway.yaml', { env: fullEnv(), own: new Set(['GATEWAY_DEMO_URL']) })
  const written = providers.map(({ value: { provider, name }, variables }) => [
    provider,
    name,
    [...variables.secret, ...variables.address],
  ])
  const byId = ([a]: unknown[], [b]: unknown[]) => (String(a) < String(b) ? -1 : 1)
  t.strictSame(rows.sort(byId), written.sort(byId))
  const headings = [...text.matchAll(/^## (.*)$/gm)].map(([, title]) => title!.toLowerCase().replaceAll(' ', '-'))
  for (const [, anchor] of text.matchAll(/\]\(#([\w-]+)\)/g)) t.ok(headings.includes(anchor!), `#${anchor} is there`)
})
