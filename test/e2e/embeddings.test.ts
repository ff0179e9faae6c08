/** `POST /v1/embeddings` with the official OpenAI client: forms, sizes, money, failover, the cache and large answers. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import t from 'tap'
import { cachingKey, groupsOf, openBooks } from '../helpers/books.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { metric } from '../helpers/invariants.ts'
import { type Step, startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>
interface Answer {
  id: string
  object: string
  data: { object: string; index: number; embedding: number[] | string }[]
  model: string
  usage: { prompt_tokens: number; total_tokens: number }
}

const shipped = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

const upstream = await startUpstream(t, { key: upstreamSecret })
const below = (prefix: string, path: string) => upstream.url(prefix).replace(/\/v1$/, path)
const wires = { chat: 'openai.chat', embeddings: 'openai.embeddings' }
const offer = (model: string, more: Tree = {}) => ({ model, id: `${model}-test`, pricing: { prompt: '1' }, ...more })
const model = (id: string, more: Tree = {}) => ({
  id,
  name: id,
  family: 'test',
  input: ['text'],
  output: ['embedding'],
  context_length: 16,
  ...more,
})
/** Ways to fail: each is that of a provider of its own, because one that has failed too often is left alone. */
const failures: Step[] = [
  { status: 500 },
  { status: 429 },
  { fault: 'reset' },
  { fault: 'empty' },
  { fault: 'html' },
  { fault: 'error-in-200' },
  { fault: 'truncate', afterChunks: 1 },
  { body: { object: 'list', data: [], model: 'x', usage: null } },
]
const failing = [...failures.map((_, index) => `bad${index}`), 'blaming'].map(id => {
  return [id, { base_url: upstream.url(id), wires, priority: 2, models: [offer(id)] }] as const
})
const gateway = await startGateway(t, {
  providers: {
    ...Object.fromEntries(failing),
    first: {
      base_url: upstream.url('first'),
      wires,
      priority: 2,
      models: [
        offer('vector', { pricing: { prompt: '0.02' } }),
        offer('plain', { parameters: ['user'] }),
        offer('unpriced', { pricing: undefined }),
        testMapping,
      ],
    },
    second: {
      base_url: below('second', '/v2'),
      wires: { embeddings: 'cohere.embeddings' },
      models: failing.map(([id]) => offer(id)),
    },
    lost: { base_url: upstream.url('lost'), wires, models: [offer('lost')] },
    wide: { base_url: upstream.url('wide'), wires, models: [offer('long')] },
    google: {
      base_url: below('google', '/v1beta'),
      wires: { embeddings: 'gemini.embeddings' },
      models: [offer('uncounted')],
    },
  },
  models: [
    model('vector', { aliases: ['vec'] }),
    model('plain'),
    model('unpriced'),
    model('uncounted'),
    model('long', { context_length: 8192 }),
    model('lost'),
    ...failing.map(([id]) => model(id)),
    model('test', { output: ['text'], context_length: 1000 }),
  ],
  files: {
    'providers.d/demo.yaml': shipped('providers.d/demo.yaml'),
    'config/models.d/demo.yaml': shipped('config/models.d/demo.yaml'),
  },
})
const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
const books = openBooks(t, gateway, { writable: true })
const caching = { authorization: `Bearer ${cachingKey(books)}` }
const group = groupsOf(t, { gateway, upstream, books })

const play = (prefix: string, ...steps: Step[]) => upstream.script(prefix, steps)
let asked = 0
const post = (body: Tree, headers = {}) =>
  gateway.post('/v1/embeddings', { model: 'vector', ...body }, { 'x-request-id': `asked-${++asked}`, ...headers })
const ask = async (body: Tree) => (await (await post(body)).json()) as Answer
const sent = async (prefix: string) => (await upstream.record(prefix)).at(-1)?.body as Tree
/** The row of the newest `post`, as soon as it is kept: without a charge that may be after the answer. */
async function row(): Promise<Tree> {
  const newest = books.prepare('SELECT * FROM requests WHERE request_id = ?')
  for (let found = newest.get(`asked-${asked}`); ; found = newest.get(`asked-${asked}`)) {
    if (found) return found as Tree
    await sleep(5)
  }
}
const texts = ['twelve chars', 'and more, 20 in all.']
const floatsOf = (base64: string) => {
  const bytes = Buffer.from(base64, 'base64')
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4))
}

group('the official client gets numbers, by its own default as base64', async t => {
  const answer = await client.embeddings.create({ model: 'vector', input: texts })
  t.strictSame((await sent('first')).encoding_format, 'base64')
  const plain = await client.embeddings.create({ model: 'vector', input: texts, encoding_format: 'float' })
  t.strictSame((await sent('first')).encoding_format, 'float')
  t.strictSame(
    answer.data.map(({ index, embedding }) => ({ index, embedding: [...embedding] })),
    plain.data.map(({ index, embedding }) => ({ index, embedding })),
  )
  t.equal(plain.data.length, 2)
  t.equal(plain.data[0]?.embedding.length, 8)
  const packed = await client.embeddings.create({ model: 'vector', input: texts, encoding_format: 'base64' })
  t.strictSame(floatsOf(String(packed.data[1]?.embedding)), plain.data[1]?.embedding)
  const short = await client.embeddings.create({ model: 'vector', input: 'a', dimensions: 4 })
  t.equal(short.data[0]?.embedding.length, 4)
  const tokens = await client.embeddings.create({ model: 'vector', input: [[1, 2], [3]], encoding_format: 'float' })
  t.equal(tokens.data.length, 2)
  t.strictSame((await sent('first')).input, [[1, 2], [3]])
})

group("Google's client gets the same vectors", async t => {
  const google = new GoogleGenAI({ apiKey: gateway.key, httpOptions: { baseUrl: gateway.url } })
  const plain = await client.embeddings.create({ model: 'vector', input: texts, encoding_format: 'float' })
  const { embeddings } = await google.models.embedContent({ model: 'vector', contents: texts })
  t.strictSame(
    embeddings?.map(({ values }) => values),
    plain.data.map(({ embedding }) => embedding),
  )
  const content = { parts: [{ text: texts[0] }] }
  const one = await gateway.post('/v1beta/models/vector:embedContent', { content, output_dimensionality: 4 })
  const { embedding, usageMetadata } = (await one.json()) as { embedding: { values: number[] }; usageMetadata: Tree }
  t.equal(embedding.values.length, 4)
  t.match(usageMetadata, { promptTokenCount: 3, cost: 6e-8 })
  const config = { taskType: 'RETRIEVAL_QUERY', title: 'A title' }
  await google.models.embedContent({ model: 'uncounted', contents: texts, config })
  t.match((await sent('google')).requests, [config, config])
  const requests = [{ model: 'models/other', content }]
  const other = await gateway.post('/v1beta/models/vector:batchEmbedContents', { requests })
  t.match(await other.json(), { error: { code: 400, status: 'INVALID_ARGUMENT' } })
})

group('the answer has the documented fields and no others', async t => {
  const response = await post({ model: 'first/vec', input: texts[0], user: 'jo@acme.example' })
  const answer = (await response.json()) as Answer
  t.match(answer.id, /^embd-[2-7a-z]{20}$/)
  t.strictSame(
    { ...answer, data: answer.data.length },
    {
      object: 'list',
      data: 1,
      model: 'vector',
      usage: { prompt_tokens: 3, total_tokens: 3 },
      id: answer.id,
    },
  )
  t.strictSame(Object.keys(answer.data[0]!), ['object', 'index', 'embedding'])
  t.match(response.headers.get('ratelimit-policy'), /q=1200/)
  t.equal(response.headers.get('content-type'), 'application/json')
  const { org_id } = await row()
  t.equal((await sent('first')).user, org_id, 'the provider is told the organization, not what the caller says')
})

group('tokens are charged exactly, and counted once', async t => {
  const before = await gateway.metrics()
  await play('first', { usage: { prompt: 12_345 } })
  t.match(await ask({ input: texts }), { usage: { prompt_tokens: 12_345, total_tokens: 12_345 } })
  // 12345 tokens at 0.02 USD per million are 246.9 µUSD.
  t.match(await row(), {
    endpoint: 'embeddings',
    cost: 246_900,
    prompt_tokens: 12_345,
    completion_tokens: 0,
    estimated: 0,
  })
  t.match(await row(), { model: 'vector', provider: 'first', status: 200, outcome: 'ok', streamed: 0, attempts: 1 })
  const after = await gateway.metrics()
  const grown = (name: string, labels: Record<string, string>) =>
    (metric(after, name, labels) ?? 0) - (metric(before, name, labels) ?? 0)
  t.equal(grown('gateway_tokens_total', { kind: 'prompt' }), 12_345)
  t.equal(grown('gateway_tokens_total', { kind: 'completion' }), 0)
  t.ok(Math.abs(grown('gateway_cost_usd_total', { provider: 'first' }) - 0.0002469) < 1e-12)
  t.equal(grown('gateway_requests_total', { endpoint: 'embeddings', outcome: 'ok' }), 1)
})

group('tokens that the provider does not count are estimated', async t => {
  const answer = await ask({ model: 'uncounted', input: texts, encoding_format: 'base64' })
  t.match(answer, { model: 'uncounted', usage: { prompt_tokens: 8, total_tokens: 8 } })
  t.equal(floatsOf(answer.data[0]!.embedding as string).length, 8, 'numbers become base64 when that was asked for')
  t.match(await row(), { cost: 8000, prompt_tokens: 8, estimated: 1 })
  await play('first', { usage: null })
  t.match(await ask({ input: [1, 2, 3, 4, 5] }), { usage: { prompt_tokens: 5 } }, 'token ids are tokens')
})

group('a provider that fails is followed by the next, whatever its wire', async t => {
  for (const [index, step] of failures.entries()) {
    const says = JSON.stringify(step)
    await play(`bad${index}`, step)
    const answer = await ask({ model: `bad${index}`, input: texts })
    t.equal(answer.data?.length, 2, says)
    t.match(await row(), { provider: 'second', attempts: 2, cost: 8000, status: 200 }, says)
  }
  await play('lost', { status: 500 })
  const refused = await post({ model: 'lost', input: texts })
  t.equal(refused.status, 502)
  t.match(await refused.json(), { error: { type: 'upstream_error' } })
  t.match(await row(), { cost: 0, status: 502, outcome: 'error' })
})

group('what a provider says of a request is passed on', async t => {
  const error = { message: 'too long', type: 'invalid_request_error', param: 'input', code: 'context_length_exceeded' }
  await play('blaming', { status: 400, body: { error } })
  await t.rejects(client.embeddings.create({ model: 'blaming', input: 'a' }), {
    status: 400,
    code: 'context_length_exceeded',
    param: 'input',
  })
  t.equal((await upstream.record()).length, 1, 'nobody else is asked')
})

group('what cannot be served is refused before any provider is asked', async t => {
  const rows: [body: Tree, status: number, code: string, param: string | null][] = [
    [{ input: '' }, 400, 'invalid_parameters', 'input'],
    [{ input: 'a', dimensions: 0 }, 400, 'invalid_parameters', 'dimensions'],
    [{ input: 'a', model: 'nobody' }, 404, 'model_not_found', 'model'],
    [{ input: 'a', model: 'test' }, 400, 'model_not_supported', 'model'],
    [{ input: 'a', model: 'auto' }, 400, 'model_not_supported', 'model'],
    [{ input: 'a', model: 'plain', dimensions: 4 }, 400, 'model_not_supported', 'dimensions'],
    [{ input: 'a', model: 'unpriced' }, 402, 'billing_error', null],
    [{ input: [Array.from({ length: 17 }, () => 7)] }, 400, 'context_length_exceeded', 'input'],
    [{ input: [1, 2], model: 'uncounted' }, 400, 'model_not_supported', 'input'],
  ]
  for (const [body, status, code, param] of rows) {
    const response = await post(body)
    t.equal(response.status, status, JSON.stringify(body))
    t.match(await response.json(), { error: { code, param } }, JSON.stringify(body))
  }
  const chat = await gateway.chat({ model: 'vector', messages: [{ role: 'user', content: 'Hi' }] })
  t.equal(chat.status, 400)
  t.match(await chat.json(), { error: { code: 'model_not_supported', param: 'model' } })
  t.equal((await upstream.record()).length, 0)
  t.equal((await post({ input: Array.from({ length: 16 }, () => 7) })).status, 200, 'as many tokens as the model takes')
  t.equal((await post({ model: 'plain', input: 'a', encoding_format: 'base64' })).status, 200)
})

group('an answer is kept and replayed, at no cost', async t => {
  const body = { input: 'keep me', encoding_format: 'base64' }
  const first = await post(body, caching)
  t.equal(first.headers.get('x-gateway-cache'), 'MISS')
  const again = await post(body, caching)
  t.equal(again.headers.get('x-gateway-cache'), 'HIT')
  t.strictSame(await again.json(), await first.json())
  t.match(await row(), { cached: 1, cost: 0, provider: 'first', model: 'vector' })
  t.equal((await post({ ...body, dimensions: 4 }, caching)).headers.get('x-gateway-cache'), 'MISS')
  t.equal((await upstream.record('first')).length, 2)
  const large = { input: 'large', dimensions: 200_000 }
  for (let time = 0; time < 2; time++) {
    const response = await post(large, caching)
    t.equal(response.headers.get('x-gateway-cache'), 'MISS', 'what is larger than an entry may be is not kept')
    await response.text()
  }
})

group('MF-04 as many token ids as OpenAI takes in one request arrive, and what is beyond them is refused', async t => {
  const ids = (count: number) => Array.from({ length: count }, (_, at) => 100_000 + (at % 100_000))
  const inputs = (total: number, each: number) =>
    Array.from({ length: Math.ceil(total / each) }, (_, at) => ids(Math.min(each, total - at * each)))
  for (const input of [inputs(300_000, 8192), inputs(300_000, 147)]) {
    const answer = await ask({ model: 'long', input, dimensions: 2 })
    t.match(answer, { usage: { prompt_tokens: 300_000 } })
    t.equal(answer.data.length, input.length)
    t.same((await sent('wide')).input, input)
  }
  const refused = await post({ model: 'long', input: inputs(310_000, 8192) })
  t.match(await refused.json(), { error: { code: 'too_many_elements', message: /more than 310000 JSON values/ } })
  const calls = (await upstream.record()).length
  const chat = { model: 'test', messages: [{ role: 'user', content: 'Hi' }], x: ids(50_000) }
  const elsewhere = await gateway.chat(chat)
  t.match(await elsewhere.json(), { error: { code: 'too_many_elements', message: /more than 40000 JSON values/ } })
  t.equal((await upstream.record()).length, calls)
})

group('a large answer passes byte by byte, with its head and tail made anew', async t => {
  const input = Array.from({ length: 100 }, (_, at) => `text ${at}`)
  const entries = input.map((_, index) => {
    const numbers = Array.from({ length: 1536 }, (_, at) => `${at % 2 ? '-' : ''}0.0${index}${at}0000000000`)
    return `{"object": "embedding", "index": ${index}, "embedding": [${numbers.join(', ')}]}`
  })
  const data = `[\n${entries.join(',\n')}\n]`
  const raw = `{"object":"list","data":${data},"model":"x","usage":{"prompt_tokens":300,"total_tokens":300},"x":1}\n`
  await play('first', { raw: [raw], usage: { prompt: 300 } })
  const answer = await (await post({ input })).text()
  t.ok(raw.length > 3e6)
  t.ok(
    answer.replace(/,"id":"embd-[2-7a-z]{20}"/, '') ===
      `{"object":"list","data":${data},"model":"vector","usage":{"prompt_tokens":300,"total_tokens":300}}`,
    'trailing zeros and spaces are as the provider wrote them',
  )
  t.match(await row(), { prompt_tokens: 300, cost: 6000 })
})

group('the demo embeds: texts that share words are near to each other', async t => {
  const input = ['the cat sat on the mat', 'a cat on a mat', 'quarterly tax report']
  const { data, model, usage } = await client.embeddings.create({ model: 'demo-embed', input })
  const [one, near, far] = data.map(({ embedding }) => embedding)
  const dot = (a: number[], b: number[]) => a.reduce((sum, value, at) => sum + value * b[at]!, 0)
  t.equal(model, 'demo-embed')
  t.equal(usage.prompt_tokens, 14)
  t.equal(one?.length, 256)
  t.ok(Math.abs(dot(one!, one!) - 1) < 1e-6)
  t.ok(dot(one!, near!) > dot(one!, far!) + 0.2)
  const again = await client.embeddings.create({ model: 'demo-embed', input: input[0]!, dimensions: 16 })
  t.equal(again.data[0]?.embedding.length, 16)
  const long = Array.from({ length: 8193 }, () => 'word').join(' ')
  const error = { status: 400, code: 'context_length_exceeded', param: 'input' }
  await t.rejects(client.embeddings.create({ model: 'demo-embed', input: long }), error)
})
