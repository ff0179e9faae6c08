/** The catalogue that clients see: shapes of the shipped one, and its query parameters (docs/contract.md#catalogue). */

import t from 'tap'
import { Registry } from '../../src/app/registry.ts'
import { linkCatalog } from '../../src/config/catalog.ts'
import { loadFiles } from '../../src/config/load.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import type { Event } from '../../src/core/event.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Services } from '../../src/core/ports.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { Mapping, Model } from '../../src/core/translator.ts'
import { models } from '../../src/endpoints/models.ts'
import type { Json } from '../../src/json/json.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { exchange, listingOf } from '../core/kit.ts'
import { flat, rates } from '../core/prices.ts'
import { silent, target } from '../plugins/wire-kit.ts'

interface Entry extends Json {
  id: string
  providers: (Json & { providerId: string })[]
}

const list = (catalog: Catalog, query = '') =>
  listingOf<Entry>(exchange({ endpoint: models, query, snapshot: { catalog } }))

const decimal = /^\d+(\.\d+)?$/
const is = {
  string: (value: unknown) => typeof value === 'string',
  number: (value: unknown) => typeof value === 'number' && Number.isFinite(value) && value >= 0,
  boolean: (value: unknown) => typeof value === 'boolean',
  strings: (value: unknown) => Array.isArray(value) && value.every(item => typeof item === 'string'),
  date: (value: unknown) => typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value),
  prices: (value: unknown): boolean =>
    Object.entries(value as Json).every(([key, usd]) =>
      /^per_(second|image)$/.test(key) ? is.prices(usd) : decimal.test(String(usd)),
    ),
  object: (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value),
}
type Kind = keyof typeof is
/** `?` marks what is there only when it is known. */
const entryKeys: Record<string, Kind> = {
  id: 'string',
  name: 'string',
  display_name: 'string',
  description: 'string',
  family: 'string',
  aliases: 'strings',
  created: 'number',
  architecture: 'object',
  top_provider: 'object',
  providers: 'object',
  pricing: 'prices',
  'context_length?': 'number',
  'max_output?': 'number',
  per_request_limits: 'object',
  supported_parameters: 'strings',
  json_output: 'boolean',
  structured_outputs: 'boolean',
  free: 'boolean',
  'deprecated_at?': 'date',
  'deactivated_at?': 'date',
  stability: 'string',
}
const mappingKeys: Record<string, Kind> = {
  providerId: 'string',
  externalId: 'string',
  supportedVideoSizes: 'strings',
  supportsVideoAudio: 'boolean',
  supportsVideoWithoutAudio: 'boolean',
  streaming: 'boolean',
  vision: 'boolean',
  realtime: 'boolean',
  cancellation: 'boolean',
  tools: 'boolean',
  parallelToolCalls: 'boolean',
  reasoning: 'boolean',
  reasoning_efforts: 'strings',
  reasoning_modes: 'strings',
  'min_cacheable_tokens?': 'number',
  'max_output?': 'number',
  pricing: 'prices',
  stability: 'string',
}

/** Keys of `value` that are missing or of another type. */
const wrong = (value: Json, keys: Record<string, Kind>): string[] =>
  Object.entries(keys).flatMap(([name, kind]) => {
    const key = name.replace('?', '')
    if (name !== key && !(key in value)) return []
    const fits = key === 'providers' ? Array.isArray(value[key]) : is[kind](value[key])
    return fits ? [] : [`${key}: ${JSON.stringify(value[key])}`]
  })

const env = { GATEWAY_DEMO_URL: 'http://127.0.0.1:9/v1' }
const shipped = linkCatalog(await loadFiles('config/gateway.yaml', { env }), new Registry())

t.test('every shipped entry has the fields of the interface', async t => {
  const entries = await list(shipped, 'include_deactivated=true')
  t.ok(entries.length > 20)
  const faults = entries.flatMap(({ id, architecture, top_provider, providers, ...rest }) => [
    ...wrong({ id, architecture, top_provider, providers, ...rest }, entryKeys).map(fault => `${id}: ${fault}`),
    ...wrong(architecture as Json, { input_modalities: 'strings', output_modalities: 'strings', tokenizer: 'string' }),
    ...wrong(top_provider as Json, { is_moderated: 'boolean' }),
    ...providers.flatMap(mapping => wrong(mapping, mappingKeys).map(fault => `${mapping.providerId}/${id}: ${fault}`)),
  ])
  t.strictSame(faults, [])
  t.ok(entries.every(entry => entry.providers.length > 0))
  const shown = new Set(
    entries.flatMap(entry => entry.providers.flatMap(({ pricing }) => Object.keys(pricing as Json))),
  )
  t.ok(shown.has('prompt') && !shown.has('web_search') && !shown.has('internal_reasoning'))
  t.equal(new Set(entries.map(entry => entry.id)).size, entries.length)
  t.match(
    entries.find(entry => entry.id === 'demo'),
    { free: true, providers: [{ providerId: 'demo', streaming: true }] },
  )
})

const now = Date.now()
const day = (days: number) => new Date(now + days * 86_400_000).toISOString().slice(0, 10)
/** Offers by model: of two providers, of which only the second says that it does not train. */
function catalogOf(rows: Record<string, { model?: Partial<Model>; offers: Partial<Mapping>[] }>): Catalog {
  const by = [true, false].map(
    trainsOnData =>
      target({ provider: { id: trainsOnData ? 'acme' : 'best', dataPolicy: { ...silent, trainsOnData } } }).provider,
  )
  const all = new Map<string, Model>()
  for (const [id, { model: more, offers }] of Object.entries(rows)) {
    const mappings: Mapping[] = []
    const model = { ...target().mapping.model, id, ...more, mappings }
    mappings.push(...offers.map((offer, at) => ({ ...target().mapping, model, provider: by[at]!, ...offer })))
    all.set(id, model)
  }
  return { models: all, aliases: new Map(), providers: new Map(by.map(provider => [provider.id, provider])) }
}

t.test('the filters of the listing leave what they say', async t => {
  const catalog = catalogOf({
    plain: { offers: [{}, {}] },
    acme: { offers: [{}] },
    mixed: { offers: [{ deactivatedAt: day(-1) }, { deprecatedAt: day(0) }] },
    old: { model: { deactivatedAt: day(0) }, offers: [{}] },
    fading: { model: { deprecatedAt: day(-9), deactivatedAt: day(9) }, offers: [{}] },
    unserved: { offers: [] },
  })
  const rows: [query: string, ids: string[]][] = [
    ['', ['plain:acme,best', 'acme:acme', 'mixed:best', 'fading:acme']],
    ['include_deactivated=true', ['plain:acme,best', 'acme:acme', 'mixed:acme,best', 'old:acme', 'fading:acme']],
    ['exclude_deprecated=true', ['plain:acme,best', 'acme:acme']],
    ['exclude_deprecated=1&include_deactivated', ['plain:acme,best', 'acme:acme', 'mixed:acme', 'old:acme']],
    ['no_training=true', ['plain:best', 'mixed:best']],
    ['mapped=true', ['acme/plain:acme', 'best/plain:best', 'acme/acme:acme', 'best/mixed:best', 'acme/fading:acme']],
    ['mapped=true&no_training=true', ['best/plain:best', 'best/mixed:best']],
    ['no_training=false&mapped=0', ['plain:acme,best', 'acme:acme', 'mixed:best', 'fading:acme']],
    ['include_restricted=true&x=y', ['plain:acme,best', 'acme:acme', 'mixed:best', 'fading:acme']],
  ]
  for (const [query, ids] of rows) {
    const shown = (await list(catalog, query)).map(({ id, providers }) => `${id}:${providers.map(of => of.providerId)}`)
    t.strictSame(shown, ids, query)
  }
  const [fading] = (await list(catalog)).filter(entry => entry.id === 'fading')
  t.match(fading, { deprecated_at: day(-9), deactivated_at: day(9) })
})

t.test('an entry joins its mappings, and a mapped one shows its own', async t => {
  const supports = (...names: string[]) => new Set(names) as Mapping['supports']
  const catalog = catalogOf({
    m: {
      model: { contextLength: 10, name: 'M', aliases: ['a'] },
      offers: [
        {
          contextLength: 5,
          maxOutput: 7,
          supports: supports('tools', 'json_output'),
          pricing: { prompt: '0.000001', web_search: '0.01' },
          pricingBySize: { per_image: { '1024x1024': '0.04' } },
        },
        {
          contextLength: 20,
          supports: supports('reasoning'),
          price: flat({ prompt: '0', completion: '0' }),
          pricing: { prompt: '0', completion: '0' },
          parameters: new Set(['temperature']),
          maxN: 1,
        },
      ],
    },
  })
  const [entry] = await list(catalog)
  t.match(entry, {
    context_length: 20,
    max_output: 7,
    json_output: true,
    structured_outputs: false,
    free: true,
    owned_by: 'acme',
  })
  t.strictSame(entry?.pricing, { prompt: '0.000001', web_search: '0.01', per_image: { '1024x1024': '0.04' } })
  t.strictSame(entry?.providers[0]?.pricing, { prompt: '0.000001', per_image: { '1024x1024': '0.04' } })
  const [acme, best] = await list(catalog, 'mapped=true')
  t.match(acme, { id: 'acme/m', context_length: 5, max_output: 7, free: false })
  t.match(best, { id: 'best/m', context_length: 20, free: true, json_output: false, pricing: { prompt: '0' } })
  t.notOk(best?.max_output)
})

t.test('an entry that stands for all offers ends with the last of them, a mapped one with its own', async t => {
  const catalog = catalogOf({
    m: {
      model: { stability: 'stable' },
      offers: [
        { deprecatedAt: day(1), deactivatedAt: day(5), stability: 'beta' },
        { deactivatedAt: day(9), contextLength: 4 },
      ],
    },
    ending: { model: { deactivatedAt: day(3) }, offers: [{ deactivatedAt: day(9) }, {}] },
  })
  const dates = async (query: string) =>
    (await list(catalog, query)).map(({ id, deprecated_at, deactivated_at, stability }) =>
      [id, deprecated_at, deactivated_at, stability].join(' '),
    )
  t.strictSame(await dates(''), [`m  ${day(9)} stable`, `ending  ${day(3)} stable`])
  t.strictSame(await dates('mapped=true'), [
    `acme/m ${day(1)} ${day(5)} beta`,
    `best/m  ${day(9)} stable`,
    `acme/ending  ${day(3)} stable`,
    `best/ending  ${day(3)} stable`,
  ])
})

t.test('supported parameters are those that have an effect', async t => {
  const plain = ['max_tokens', 'temperature', 'top_p', 'frequency_penalty', 'presence_penalty', 'user']
  const quirks = { drop: new Set(['user', 'messages.*.name']), rename: {}, default: {}, clamp: {} }
  const rows: [offer: Partial<Mapping>, parameters: string[]][] = [
    [{ maxN: 1 }, [...plain, 'prompt_cache_key']],
    [{ maxN: 8, serviceTiers: ['flex'] }, [...plain, 'prompt_cache_key', 'n', 'service_tier']],
    [
      { maxN: 8, parameters: new Set(['top_p', 'n']), supports: new Set(['tools', 'reasoning', 'json_output']) },
      ['max_tokens', 'top_p', 'tools', 'n'],
    ],
    [
      {
        maxN: 1,
        parameters: new Set(['tool_choice', 'reasoning_effort', 'response_format', 'effort', 'verbosity']),
        supports: new Set([
          'tools',
          'parallel_tool_calls',
          'json_output',
          'structured_outputs',
          'reasoning',
          'effort',
          'verbosity',
          'web_search',
        ]),
      },
      [
        'max_tokens',
        'tools',
        'tool_choice',
        'response_format',
        'reasoning_effort',
        'reasoning',
        'effort',
        'verbosity',
        'web_search',
      ],
    ],
    [
      { maxN: 1, supports: new Set(['parallel_tool_calls']), provider: target({ provider: { quirks } }).provider },
      [...plain.slice(0, -1), 'prompt_cache_key', 'parallel_tool_calls'],
    ],
  ]
  for (const [offer, parameters] of rows) {
    const [entry] = await list(catalogOf({ m: { offers: [offer] } }))
    t.strictSame(entry?.supported_parameters, parameters)
  }
})

t.test('a model of media lists the parameters of its operations', async t => {
  const { translator } = target()
  const rows: [operations: string[], has: string[], lacks: string[]][] = [
    [['images'], ['size', 'quality', 'n'], ['max_tokens', 'prompt', 'model']],
    [['speech'], ['voice', 'speed'], ['temperature', 'input']],
    [['videos'], [], ['max_tokens', 'temperature']],
    [['transcriptions'], ['language', 'timestamp_granularities'], ['max_tokens', 'file']],
    [['rerank'], ['return_documents'], ['max_tokens', 'documents']],
    [['chat', 'images'], ['max_tokens', 'size'], ['prompt']],
  ]
  for (const [operations, has, lacks] of rows) {
    const wires = new Map(operations.map(name => [name, translator]))
    const [entry] = await list(catalogOf({ m: { offers: [{ wires } as never] } }))
    const listed = entry?.supported_parameters as string[]
    t.ok(listed.length > 0 && has.every(name => listed.includes(name)), `${operations}: ${listed}`)
    t.notOk(
      lacks.some(name => listed.includes(name)),
      `${operations}: ${listed}`,
    )
  }
})

t.test('a model is free when one offer costs nothing, whatever is counted and however long the prompt', async t => {
  const price = flat({ prompt: '0', completion: '0' })
  const tiers = [{ above: 1000, rates: rates({ prompt: '1' }) }]
  const rows: [offer: Partial<Mapping>, free: boolean][] = [
    [{}, false],
    [{ pricing: { prompt: '0' } }, false],
    [{ price, pricing: { prompt: '0', completion: '0' } }, true],
    [{ price: { ...price, tiers }, pricing: { prompt: '0', completion: '0' } }, false],
    [{ price, pricing: { prompt: '0', completion: '0', request: '0.01' } }, false],
    [{ price, pricing: { prompt: '0' }, pricingBySize: { per_image: { default: '0.04' } } }, false],
    [{ price, pricingBySize: { per_second: { default: '0' } } }, true],
  ]
  for (const [offer, free] of rows) {
    const [entry] = await list(catalogOf({ m: { offers: [offer] } }))
    t.equal(entry?.free, free)
  }
})

t.test('a listing is made once a day, and that of a day that is over is not kept', async t => {
  const snapshot = { catalog: catalogOf({ m: { offers: [{}] } }) }
  const on = async (day: number) => {
    const ex = Object.assign(exchange({ endpoint: models, snapshot }), { at: Date.UTC(2026, 0, day) })
    const { events } = await (models.serve as (ex: Exchange) => Promise<Reply>)(ex)
    for await (const [event] of events) if (event?.type === 'result') return event.bytes
    throw new Error('the catalogue was no result')
  }
  const first = await on(1)
  t.equal(await on(1), first)
  await on(2)
  t.not(await on(1), first)
})

t.test('a listing is made once for all that wait, and what is unread of it counts', async t => {
  const names = Array.from({ length: 1000 }, (_, n) => `m-${n}`)
  const snapshot = { catalog: catalogOf(Object.fromEntries(names.map(name => [name, { offers: [{}] }]))) }
  const memory = new MemoryBudget(64 * 1024 * 1024, { memory: () => 0 })
  const replyTo = () =>
    (models.serve as (ex: Exchange, services: Services) => Promise<Reply>)(exchange({ endpoint: models, snapshot }), {
      memory,
    } as Services)
  const [first, second] = await Promise.all([replyTo(), replyTo()])

  const readerOf = ({ events }: Reply) => events[Symbol.asyncIterator]()
  const next = async (reader: AsyncIterator<readonly Event[]>) => {
    const { value: [event] = [] } = await reader.next()
    return event?.type === 'bytes' ? event.bytes : undefined
  }
  const readers = [readerOf(first), readerOf(second)] as const
  const [piece, same] = [await next(readers[0]), await next(readers[1])]
  t.ok(piece && same?.buffer === piece.buffer)
  const size = Number(first.headers[first.headers.indexOf('content-length') + 1])
  t.equal(memory.used, 2 * size)
  while (await next(readers[0])) {}
  t.equal(memory.used, size)
  const held = memory.lease('')
  while (held.grow(64 * 1024)) {}
  const refused = await readerOf(await replyTo())
    .next()
    .catch((thrown: unknown) => thrown)
  t.match(refused, { status: 529 })
})
