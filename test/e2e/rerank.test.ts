/** `POST /v1/rerank` and `/v2/rerank`: Cohere's client, shapes, money, failover, the demo (docs/contract.md#rerank). */
import { CohereClientV2, CohereError } from 'cohere-ai'
import t from 'tap'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { scripted } from '../helpers/scripted.ts'

type Tree = Record<string, unknown>

const [units, tokens, spare] = await Promise.all([scripted(t), scripted(t), scripted(t)])
const timeouts = { connect: '500ms', first_event: '2s', idle: '2s', total: '5s' }
const model = (id: string) => ({ id, name: id, family: 'test', input: ['text'], output: ['rerank'] })
const gateway = await startGateway(t, {
  models: ['by-unit', 'by-token', 'unpriced', 'demo-rerank'].map(model),
  providers: {
    units: {
      base_url: units.url,
      wires: { rerank: 'cohere.rerank' },
      timeouts,
      priority: 2,
      models: [
        { model: 'by-unit', id: 'unit-1', pricing: { request: '0.002' } },
        { model: 'unpriced', id: 'unpriced-1' },
      ],
    },
    spare: {
      base_url: spare.url,
      wires: { rerank: 'jina.rerank' },
      timeouts,
      models: [{ model: 'by-unit', id: 'unit-2', pricing: { request: '0.002' } }],
    },
    tokens: {
      base_url: tokens.url,
      wires: { rerank: 'voyage.rerank' },
      timeouts,
      models: [{ model: 'by-token', id: 'token-1', pricing: { prompt: '50' } }],
    },
    demo: {
      base_url: '$' + '{GATEWAY_DEMO_URL}',
      auth: { scheme: 'none' },
      wires: { rerank: 'cohere.rerank' },
      models: [{ model: 'demo-rerank', pricing: { request: '0' } }],
    },
  },
})
const command = commandsOf(gateway)
const ranked = (...scores: [index: number, score: number][]) =>
  scores.map(([index, relevance_score]) => ({ index, relevance_score }))
const rerank = (body: Tree, path = '/v1/rerank') =>
  gateway.post(path, { query: 'cats', documents: ['a', 'b', 'c'], ...body })
const bodyOf = async (answer: Response) => (await answer.json()) as Tree

t.test(
  'M14, M15 an answer is sorted, cut and priced, and its documents, plain or in objects, are those of the caller',
  async t => {
    units.answers({
      json: { results: ranked([1, 0.2], [0, 0.9], [2, 0.2]), meta: { billed_units: { search_units: 2 } } },
    })
    const answer = await rerank({
      model: 'by-unit',
      top_n: 2,
      return_documents: true,
      documents: ['a', { text: 'b' }, 'c'],
    })
    t.equal(answer.status, 200)
    const id = answer.headers.get('x-request-id')
    t.strictSame(await bodyOf(answer), {
      id,
      object: 'list',
      model: 'by-unit',
      results: [
        { index: 0, relevance_score: 0.9, document: { text: 'a' } },
        { index: 1, relevance_score: 0.2, document: { text: 'b' } },
      ],
      meta: { api_version: { version: '1' }, billed_units: { search_units: 2 } },
      usage: { cost: 0.004 },
    })
    const headers = ['x-gateway-provider', 'x-gateway-model', 'x-gateway-cost'].map(name => answer.headers.get(name))
    t.strictSame(headers, ['units', 'by-unit', '0.004'])
    t.match(answer.headers.get('x-gateway-log-id'), /./)
    t.strictSame(units.last().json, { model: 'unit-1', query: 'cats', documents: ['a', 'b', 'c'], top_n: 2 })
  },
)

t.test('M15 tokens are charged as reported, and more than there are documents is all of them', async t => {
  tokens.answers({ json: { data: ranked([1, 0.2], [0, 0.9], [2, 0.1]), usage: { total_tokens: 40 } } })
  const answer = await bodyOf(await rerank({ model: 'by-token', top_n: 9 }))
  t.match(answer, {
    results: ranked([0, 0.9], [1, 0.2], [2, 0.1]),
    meta: { billed_units: { input_tokens: 40, total_tokens: 40 } },
    usage: { prompt_tokens: 40, total_tokens: 40, cost: 0.002 },
  })
})

t.test('a replay counts what the answer has counted', async t => {
  await command('projects.update', { project: 'default', cache: 'on' })
  t.teardown(() => command('projects.update', { project: 'default', cache: 'off' }))
  units.answers({ json: { results: ranked([0, 1]), meta: { billed_units: { search_units: 2 } } } })
  const ask = async () => {
    const answer = await rerank({ model: 'by-unit', documents: ['cached'] })
    const { meta } = await bodyOf(answer)
    const { usage } = await command('requests.show', { id: answer.headers.get('x-gateway-log-id') })
    return { cache: answer.headers.get('x-gateway-cache'), meta, usage }
  }
  const { cache, ...first } = await ask()
  t.equal(cache, 'MISS')
  t.strictSame(await ask(), { cache: 'HIT', ...first })
})

t.test('M14 what ranks wrongly fails over, and nothing is charged for it', async t => {
  units.answers({ json: { results: ranked([3, 1]) } })
  spare.answers({ json: ranked([2, 4.5], [0, -1]) })
  const answer = await rerank({ model: 'by-unit' })
  t.equal(answer.headers.get('x-gateway-provider'), 'spare')
  t.match(await bodyOf(answer), { results: ranked([2, 4.5], [0, -1]), usage: { cost: 0.002 } })
})

t.test('a request that is wrong is refused before any provider', async t => {
  const before = units.got.length
  const rows: [body: Tree, status: number, code: string, param: string | null][] = [
    [{ model: undefined }, 400, 'invalid_parameters', 'model'],
    [{ query: '' }, 400, 'invalid_parameters', 'query'],
    [{ documents: [] }, 400, 'invalid_parameters', 'documents'],
    [{ documents: ['a', ''] }, 400, 'invalid_parameters', 'documents[1]'],
    [{ documents: [{ text: '' }] }, 400, 'invalid_parameters', 'documents[0]'],
    [{ documents: Array.from({ length: 1001 }, () => 'x') }, 400, 'invalid_parameters', 'documents'],
    [{ top_n: 0 }, 400, 'invalid_parameters', 'top_n'],
    [{ model: 'nobody' }, 404, 'model_not_found', 'model'],
  ]
  for (const [body, status, code, param] of rows) {
    const answer = await rerank({ model: 'by-unit', ...body })
    const { error } = (await bodyOf(answer)) as { error: Tree }
    t.strictSame([answer.status, error.code, error.param], [status, code, param], JSON.stringify(body).slice(0, 80))
    t.match(answer.headers.get('x-gateway-log-id'), /./)
  }
  const unpriced = await rerank({ model: 'unpriced' })
  t.equal(unpriced.status, 402)
  const chat = await gateway.chat({ model: 'by-unit', messages: [{ role: 'user', content: 'Hi' }] })
  t.match(await bodyOf(chat), { error: { code: 'model_not_supported', message: /ask for it at \/v1\/rerank\.$/ } })
  t.equal((await rerank({ model: 'by-unit', top_n: null, rank_fields: ['x'], max_chunks_per_doc: null })).status, 200)
  t.equal(units.got.length, before + 1, 'the last one alone was sent')
})

t.test("Cohere's own client is served, and gets its own errors", async t => {
  const client = new CohereClientV2({ token: gateway.key, environment: gateway.url, maxRetries: 0 })
  units.answers({ json: { results: ranked([1, 0.2], [0, 0.9]), meta: { billed_units: { search_units: 1 } } } })
  const answer = await client.rerank({ model: 'by-unit', query: 'cats', documents: ['a', 'b'] })
  t.strictSame(
    answer.results.map(({ index, relevanceScore }) => [index, relevanceScore]),
    [
      [0, 0.9],
      [1, 0.2],
    ],
  )
  t.equal(answer.meta?.billedUnits?.searchUnits, 1)
  const refused = await client
    .rerank({ model: 'nobody', query: 'q', documents: ['a'] })
    .catch((error: unknown) => error)
  t.ok(refused instanceof CohereError)
  t.equal((refused as CohereError).statusCode, 404)
})

t.test('the demo ranks by the words that are shared, for nothing', async t => {
  const documents = ['dogs bark', 'cats and dogs', 'where cats purr']
  const answer = await bodyOf(await rerank({ model: 'demo-rerank', query: 'cats purr', documents }))
  t.match(answer, { results: ranked([2, 1], [1, 0.5], [0, 0]), usage: { cost: 0 } })
})

t.test('the books are sound: every request has a row, and all sums agree', async t => {
  t.strictSame(await command('usage.check'), { differences: [] })
  const books = openBooks(t, gateway)
  t.strictSame(books.prepare('SELECT * FROM holds').all(), [], 'nothing is held')
  const rows = books.prepare("SELECT count(*) AS n FROM requests WHERE endpoint = 'rerank'").get() as { n: bigint }
  t.equal(Number(rows.n), 11, 'all but those whose body was refused')
})
