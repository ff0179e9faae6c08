/** `gatewayctl models sync`: prices of others against ours, and what of them is written. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { priceOf, readList } from '../../src/cli/sync/source.ts'
import { formatDecimal } from '../../src/core/money.ts'
import { gatewayctl } from '../helpers/gatewayctl.ts'

const gateway = `server: {}
stores: { sqlite: ./gateway.db }
catalog: {}
chains: { inference: [auth, admission, ratelimit, route, translate, billing], local: [{ auth: { optional: true } }] }
`
const models = `models:
  - { id: small, name: Small, family: acme, input: [text], output: [text], context_length: 1000 }
  - { id: large, name: Large, family: acme, input: [text], output: [text] }
  - { id: gone, name: Gone, family: acme, input: [text], output: [text] }
`
const manifest = `# Ours.
provider: acme
name: Acme
base_url: https://api.acme.example/v1
auth: { scheme: none }
wires: { chat: openai.chat }
models:
  # Written by hand.
  - model: large
    id: acme-large
    pricing: { prompt: "3", completion: "15" }
    priced_from: a contract
  - model: small # synced
    pricing:
      completion: "2.00" # dollars
      prompt: "0.5"
    pricing_tiers:
      - { above_prompt_tokens: 200000, prompt: "1" }
    priced_from: models.dev
    priced_at: 2026-01-01
  - { model: gone, pricing: { prompt: "1", completion: "1" }, priced_from: models.dev }
`
const modelsDev = {
  other: { id: 'other', models: { x: { id: 'x', cost: { input: 1, output: 1 } } } },
  acme: {
    id: 'acme',
    models: {
      small: {
        id: 'small',
        cost: { input: 0.55, output: 2, cache_read: 0.055, context_over_200k: { input: 1.1, output: 4 } },
        limit: { context: 2000, output: 100 },
      },
      'acme-large': { id: 'acme-large', cost: { input: 2.5, output: 15 } },
      'brand/new:1': {
        id: 'brand/new:1',
        name: 'New',
        tool_call: true,
        modalities: { input: ['text', 'image', 'pdf'], output: ['text'] },
        cost: { input: 0.1, output: 0.3, reasoning: 0.4 },
        limit: { context: 128000, output: 8192 },
      },
      old: { id: 'old', status: 'deprecated', cost: { input: 1, output: 1 } },
      'a-film': { id: 'a-film', modalities: { input: ['text'], output: ['video'] } },
    },
  },
}
const folder = (list: unknown = modelsDev) => ({
  config: { 'gateway.yaml': gateway, 'models.d': { 'acme.yaml': models } },
  'providers.d': { 'acme.yaml': manifest },
  'list.json': typeof list === 'string' ? list : JSON.stringify(list),
})
const args = ['models', 'sync', '--from', 'list.json'] as const

interface Finding {
  readonly model: string
  readonly changes: readonly { field: string; from: unknown; to: unknown }[]
}
interface Synced {
  readonly source: string
  readonly date: string
  readonly changed: readonly Finding[]
  readonly new: readonly Finding[]
  readonly retired: readonly Finding[]
  readonly yours: readonly Finding[]
  readonly skipped: readonly string[]
  readonly written: readonly string[]
}
const synced = async (cwd: string, ...more: string[]) => {
  const { code, out, err } = await gatewayctl(cwd, ...args, ...more, '--json')
  return { code, err, result: JSON.parse(out) as Synced }
}

t.test('the differences from models.dev are listed, and nothing is written', async t => {
  const dir = t.testdir(folder())
  const { code, err, result } = await synced(dir)
  t.equal(code, 0, err)
  t.match(result, { source: 'models.dev', written: [] })
  t.strictSame(result.changed, [
    {
      provider: 'acme',
      model: 'small',
      id: 'small',
      changes: [
        { field: 'prompt', from: '0.5', to: '0.55' },
        { field: 'input_cache_read', from: null, to: '0.055' },
        { field: 'above 200000: prompt', from: '1', to: '1.1' },
        { field: 'above 200000: completion', from: null, to: '4' },
        { field: 'context_length', from: 1000, to: 2000 },
        { field: 'max_output', from: null, to: 100 },
      ],
    },
  ])
  t.match(result.new, [{ model: 'brand/new:1' }])
  t.match(result.retired, [{ model: 'gone' }])
  t.match(result.yours, [{ model: 'large', changes: [{ field: 'prompt', from: '3', to: '2.5' }] }])
  t.strictSame(result.skipped, ['acme/a-film'])
  t.equal(readFileSync(join(dir, 'providers.d/acme.yaml'), 'utf8'), manifest)
  const human = await gatewayctl(dir, ...args)
  t.match(human.out, /yours: differs\s+acme\/large\s+prompt\s+3\s+2\.5/)
  t.match(human.out, /1 changed, 1 new, 1 retired, 1 of yours differ/)
})

t.test('--write changes what came from the list, keeps the rest, and leaves no difference', async t => {
  const dir = t.testdir(folder())
  const first = await synced(dir, '--write')
  t.equal(first.code, 0, first.err)
  t.equal(first.result.written.length, 2)
  const text = readFileSync(join(dir, 'providers.d/acme.yaml'), 'utf8')
  const { date } = first.result
  for (const kept of [
    '# Ours.',
    '# Written by hand.',
    '# synced',
    '# dollars',
    'pricing: { prompt: "3", completion: "15" }',
  ]) {
    t.ok(text.includes(kept), kept)
  }
  t.ok(text.indexOf('model: large') < text.indexOf('model: small'))
  t.match(text, 'prompt: "0.55"')
  t.match(text, `priced_at: ${date}`)
  t.match(text, /model: brand\/new:1[\s\S]*priced_from: models\.dev/)
  t.match(readFileSync(join(dir, 'config/models.d/synced.yaml'), 'utf8'), `# models.dev, ${date}`)
  const again = await synced(dir, '--write')
  t.match(again.result, { changed: [], new: [], retired: [], written: [] })
  t.match(again.result.yours, [{ model: 'large' }], 'the operator decides about these')
  const checked = await gatewayctl(dir, 'check')
  t.equal(checked.code, 0, checked.err)
  t.equal((await synced(dir, '--provider', 'other')).code, 1)
})

t.test('the shape of a list tells its source, and prices per token are exact', async t => {
  const dir = t.testdir(
    folder({
      sample_spec: { litellm_provider: 'one of …', input_cost_per_token: 0 },
      'acme/container': { litellm_provider: 'acme', mode: 'chat', code_interpreter_cost_per_session: 0.03 },
      'acme/acme-large': {
        litellm_provider: 'acme',
        mode: 'chat',
        input_cost_per_token: 2.9999999999999997e-6,
        output_cost_per_token: 1.5e-5,
        input_cost_per_token_above_200k_tokens: 6e-6,
        cache_creation_input_token_cost_above_1hr: 6e-6,
        max_input_tokens: 200000,
        max_output_tokens: 8192,
      },
      small: { litellm_provider: 'acme', mode: 'chat', input_cost_per_token: 0, output_cost_per_token: 0 },
    }),
  )
  const { result } = await synced(dir)
  t.equal(result.source, 'litellm')
  t.notOk(
    result.new.some(({ model }) => model === 'container'),
    'the fee of a tool is no model',
  )
  t.strictSame(
    result.yours.flatMap(({ model, changes }) => changes.map(({ field, to }) => [model, field, to])),
    [
      ['large', 'input_cache_write_1h', '6'],
      ['large', 'above 200000: prompt', '6'],
      ['large', 'context_length', 200000],
      ['large', 'max_output', 8192],
    ],
  )
})

const media = `provider: acme
name: Acme
base_url: https://api.acme.example/v1
auth: { scheme: none }
wires: { chat: openai.chat, images: openai.images, speech: openai.speech, transcriptions: openai.transcriptions, ocr: mistral.ocr, videos: openai.videos }
models:
  - { model: draw, pricing: { per_image: { default: "0.05" } }, priced_from: litellm }
  - { model: sizes, priced_from: litellm, unpriced: allow }
  - { model: pixels, priced_from: litellm, unpriced: allow }
  - { model: tokens, pricing: { prompt: "5", completion: "40" }, priced_from: litellm }
  - { model: hear, pricing: { input_audio_hour: "0.36" }, priced_from: litellm }
  - { model: say, pricing: { prompt: "16" }, priced_from: litellm }
  - { model: read, pricing: { ocr_page: "0.001" }, priced_from: litellm }
  - { model: film, pricing: { per_second: { default: "0.1", 1080p: "0.2" } }, priced_from: litellm }
`
const outputs = {
  draw: 'image',
  sizes: 'image',
  pixels: 'image',
  tokens: 'image',
  hear: 'text',
  say: 'audio',
  read: 'text',
  film: 'video',
}
const kinds = { image: 'images', audio: 'speech', video: 'videos', text: 'transcriptions' } as const

t.test('prices of images, pages, seconds and characters are compared and written', async t => {
  const image = { litellm_provider: 'acme', mode: 'image_generation' }
  const list = {
    draw: { ...image, output_cost_per_image: 0.04 },
    '1024-x-1024/sizes': { ...image, input_cost_per_image: 0.04 },
    'acme/standard/1024-x-1792/acme/sizes': { ...image, input_cost_per_image: 0.08 },
    'hd/1024-x-1024/sizes': { ...image, input_cost_per_image: 0.12 },
    '1024-x-1024/50-steps/sizes': { ...image, output_cost_per_image: 0.9 },
    '256-x-256/pixels': { ...image, input_cost_per_pixel: 2.4414e-7, output_cost_per_pixel: 0 },
    tokens: { ...image, output_cost_per_image: 0.04 },
    hear: {
      litellm_provider: 'acme',
      mode: 'audio_transcription',
      input_cost_per_second: 0.00011,
      output_cost_per_second: 0,
    },
    say: { litellm_provider: 'acme', mode: 'audio_speech', input_cost_per_character: 1.5e-5 },
    read: { litellm_provider: 'acme', mode: 'ocr', ocr_cost_per_page: 0.002, annotation_cost_per_page: 0.003 },
    film: { litellm_provider: 'acme', mode: 'video_generation', output_cost_per_video_per_second: 0.15 },
  }
  const entries = Object.entries(outputs).map(([id, output]) => {
    const operation = id === 'read' ? 'ocr' : kinds[output as keyof typeof kinds]
    return { id, name: id, family: 'acme', operations: [operation], input: ['text'], output: [output] }
  })
  const dir = t.testdir({
    ...folder(list),
    config: { 'gateway.yaml': gateway, 'models.d': { 'acme.yaml': JSON.stringify({ models: entries }) } },
    'providers.d': { 'acme.yaml': media },
  })
  const first = await synced(dir, '--write')
  t.equal(first.code, 0, first.err)
  t.strictSame(
    first.result.changed.flatMap(({ model, changes }) =>
      changes.map(({ field, from, to }) => [model, field, from, to]),
    ),
    [
      ['draw', 'per_image.default', '0.05', '0.04'],
      ['sizes', 'per_image.hd/1024x1024', null, '0.12'],
      ['sizes', 'per_image.1024x1792', null, '0.08'],
      ['sizes', 'per_image.1024x1024', null, '0.04'],
      ['pixels', 'per_image.256x256', null, '0.01599995904'],
      ['hear', 'input_audio_hour', '0.36', '0.396'],
      ['say', 'prompt', '16', '15'],
      ['read', 'ocr_page', '0.001', '0.002'],
      ['read', 'ocr_page_annotated', null, '0.003'],
      ['film', 'per_second.default', '0.1', '0.15'],
    ],
  )
  const text = readFileSync(join(dir, 'providers.d/acme.yaml'), 'utf8')
  t.match(text, /per_second: \{ default: "0\.15", 1080p: "0\.2" \}/)
  t.match(text, '5", completion: "40"', 'what is paid by tokens is not paid by the image, too')
  t.match((await synced(dir)).result, { changed: [], written: [] })
  t.equal((await gatewayctl(dir, 'check')).code, 0)
})

t.test('a packaged offer gets an entry in a manifest that extends its own', async t => {
  const list = { mistral: { models: { 'mistral-large-2512': { cost: { input: 0.6, output: 1.5 } } } } }
  const dir = t.testdir({
    config: { 'gateway.yaml': gateway.replace('catalog: {}', 'catalog: { extends: packaged }') },
    'list.json': JSON.stringify(list),
  })
  const first = await synced(dir, '--write')
  t.equal(first.code, 0, first.err)
  t.match(first.result.changed, [
    { model: 'mistral-large-2512', changes: [{ field: 'prompt', from: '0.5', to: '0.6' }] },
  ])
  const text = readFileSync(join(dir, 'providers.d/mistral.yaml'), 'utf8')
  t.match(text, 'input_cache_read: "0.05"', 'the other prices stay')
  t.match((await synced(dir)).result, { changed: [], new: [], retired: [] })
  t.equal((await gatewayctl(dir, 'check')).code, 0)
})

t.test('bad input is one clear error, and writes nothing', async t => {
  for (const [text, said] of [
    ['no json', 'is not valid JSON'],
    ['[]', 'is neither'],
    ['null', 'is neither'],
    ['{}', 'is neither'],
    ['{"a":1}', 'is neither'],
  ] as const) {
    const dir = t.testdir(folder(text))
    const { code, err } = await gatewayctl(dir, ...args, '--write')
    t.equal(code, 1, text)
    t.match(err, said)
    t.equal(err.trim().split('\n').length, 1)
    t.equal(readFileSync(join(dir, 'providers.d/acme.yaml'), 'utf8'), manifest)
  }
  const dir = t.testdir(folder())
  t.match((await gatewayctl(dir, 'models', 'sync', '--from', 'nothing.json')).err, 'cannot be read')
  t.equal((await gatewayctl(dir, 'models', 'sync')).code, 2)
})

t.test('a list is read from an address', async t => {
  const server = createServer((request, response) => {
    response.statusCode = request.url === '/api.json' ? 200 : 404
    response.end(JSON.stringify(modelsDev))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const dir = t.testdir(folder())
  const { code, out } = await gatewayctl(dir, 'models', 'sync', '--from', `${base}/api.json`)
  t.equal(code, 0)
  t.match(out, 'acme/small')
  t.match((await gatewayctl(dir, 'models', 'sync', '--from', `${base}/no`)).err, 'answered with status 404')
})

t.test('a price keeps each of its decimals', async t => {
  fc.assert(
    fc.property(fc.bigInt(0n, 10n ** 12n), pico => {
      const perMillion = formatDecimal(pico, 6)
      t.equal(priceOf(JSON.parse(perMillion), 0), perMillion)
      t.equal(priceOf(JSON.parse(formatDecimal(pico, 12)), 6), perMillion)
    }),
  )
  for (const [value, price] of [
    [1.25e-7, '0.125'],
    [5.46875e-7, '0.546875'],
    [2.9999999999999997e-6, '3'],
    [0, '0'],
    [5e-324, '0'],
    [-1, undefined],
    [1e300, undefined],
    ['1', undefined],
  ] as const) {
    t.equal(priceOf(value, 6), price)
  }
  t.equal(readList('{"a":{"litellm_provider":"b","input_cost_per_token":1e400}}', 'x', '2026-01-01').models.length, 1)
})
