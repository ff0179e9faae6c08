/** Moderations, OCR and typed decisions: official clients, shapes, money, failover, refusals and the demo. */
import OpenAI from 'openai'
import t from 'tap'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { scripted } from '../helpers/scripted.ts'

type Tree = Record<string, unknown>

const [provider, spare] = await Promise.all([scripted(t), scripted(t)])
const timeouts = { connect: '500ms', first_event: '2s', idle: '2s', total: '5s' }
const model = (id: string, more: Tree) => ({ id, name: id, family: 'test', input: ['text', 'image', 'file'], ...more })
const wires = { moderations: 'openai.moderations', ocr: 'mistral.ocr', decisions: 'typesafe.decisions' }
const gateway = await startGateway(t, {
  models: [
    model('omni-moderation-latest', { output: ['moderation'] }),
    model('judge', { output: ['moderation'] }),
    model('reader', { output: ['text'], operations: ['ocr'] }),
    model('jev', { output: ['decision'], aliases: ['jev-latest'] }),
    model('demo-moderation', { output: ['moderation'] }),
    model('demo-ocr', { output: ['text'], operations: ['ocr'] }),
    model('demo-decision', { output: ['decision'] }),
  ],
  providers: {
    acme: {
      base_url: provider.url,
      wires,
      timeouts,
      priority: 2,
      models: [
        { model: 'omni-moderation-latest', pricing: { request: '0.00001' }, supports: ['vision'] },
        { model: 'judge', pricing: { request: '0.00001' } },
        { model: 'reader', id: 'reader-1', pricing: { ocr_page: '0.004', ocr_page_annotated: '0.005' } },
        { model: 'jev', id: 'jev-1', pricing: { prompt: '10' } },
      ],
    },
    spare: {
      base_url: spare.url,
      wires: { decisions: 'typesafe.decisions' },
      timeouts,
      models: [{ model: 'jev', id: 'jev-2', pricing: { prompt: '10' } }],
    },
    demo: {
      base_url: '$' + '{GATEWAY_DEMO_URL}',
      auth: { scheme: 'none' },
      wires,
      models: [
        { model: 'demo-moderation', pricing: { request: '0' }, supports: ['vision'] },
        { model: 'demo-ocr', pricing: { ocr_page: '0' } },
        { model: 'demo-decision', pricing: { prompt: '0' } },
      ],
    },
  },
})
const command = commandsOf(gateway)
const bodyOf = async (answer: Response) => (await answer.json()) as Tree
const ask = (path: string, body: Tree) => gateway.post(path, body)
const cost = (answer: Response) => answer.headers.get('x-gateway-cost')

const CATEGORIES = 13
const image = { type: 'image_url', image_url: { url: 'https://a.example/a.png' } }

t.test("M17 OpenAI's own client moderates texts and images", async t => {
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
  provider.answers({
    json: { id: 'modr-x', results: [{ flagged: true, categories: { hate: true }, category_scores: { hate: 1.5 } }] },
  })
  const { data, response } = await client.moderations.create({ input: 'words' }).withResponse()
  t.match(data.id, /^modr-/)
  t.equal(data.model, 'omni-moderation-latest')
  const [result] = data.results
  t.equal(result!.flagged, true)
  for (const field of ['categories', 'category_scores', 'category_applied_input_types'] as const) {
    t.equal(Object.keys(result![field]).length, CATEGORIES, field)
  }
  const { hate, violence } = result!.category_scores
  t.strictSame([hate, violence], [1, 0], 'clamped and filled')
  t.equal(response.headers.get('x-gateway-cost'), '0.00001')
  const odd = { type: 'image_url', image_url: { ...image.image_url, detail: 'high' }, unknown: 1 }
  await client.moderations.create({ input: [{ type: 'text', text: 'a' }, odd as never] })
  const known = { model: 'omni-moderation-latest', input: [{ type: 'text', text: 'a' }, image] }
  t.strictSame(provider.last().json, known, 'only what is known')
  const refused = await client.moderations
    .create({ model: 'judge', input: [image as never] })
    .catch((error: unknown) => error)
  t.ok(refused instanceof OpenAI.BadRequestError)
  t.match(refused, { code: 'model_not_supported', param: 'input' })
})

t.test('a document is read at the price of its pages, annotated ones at theirs', async t => {
  const document = { type: 'document_url', document_url: 'https://a.example/a.pdf' }
  const page = { index: 0, markdown: '# A', images: [], dimensions: { dpi: 200, height: 1, width: 1 }, odd: true }
  provider.answers({
    json: { pages: [page], model: 'reader-1', usage_info: { pages_processed: 3, doc_size_bytes: 9 } },
  })
  const answer = await ask('/v1/ocr', {
    model: 'reader',
    document: { ...document, document_name: null, file_id: 'x' },
    pages: '0-4,7',
    include_blocks: null,
    unknown: 1,
  })
  t.strictSame(await bodyOf(answer), {
    pages: [page],
    model: 'reader',
    usage_info: { pages_processed: 3, doc_size_bytes: 9 },
    document_annotation: null,
  })
  t.equal(cost(answer), '0.012')
  t.strictSame(provider.last().json, { model: 'reader-1', document, pages: '0-4,7' }, 'only what is known')
  const format = { type: 'json_schema', json_schema: { name: 'a', schema: {} } }
  const data = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
  const annotated = await ask('/v1/ocr', { model: 'reader', document: data, document_annotation_format: format })
  t.equal(cost(annotated), '0.015')
})

t.test('M16 typed decisions are checked, and the next provider answers in place of a wrong one', async t => {
  const sure = { type: 'noul', instructions: 'Sure?' }
  const questions = {
    sure: { ...sure, criteria: { true: null }, unknown: 1 },
    pick: { type: 'choice', instructions: ['?'], criteria: { a: null, b: null } },
  }
  provider.answers({ json: { answers: { sure: { type: 'noul', noul: 2 }, pick: { type: 'choice', choice: 'a' } } } })
  const right = { sure: { type: 'noul', noul: 0.9 }, pick: { type: 'choice', choice: 'a', probabilities: { a: 1 } } }
  spare.answers({ json: { answers: right, usage: { input_tokens: 40, output_tokens: 4 } } })
  const answer = await ask('/v1/systemone', { model: 'jev-latest', state: { a: 1 }, questions })
  t.strictSame(await bodyOf(answer), {
    model: 'spare/jev',
    answers: { sure: right.sure, pick: { ...right.pick, confidence: 1 } },
    usage: { input_tokens: 40, output_tokens: 4 },
  })
  t.equal(cost(answer), '0.0004')
  const asked = { model: 'jev-2', state: { a: 1 }, questions: { sure, pick: questions.pick } }
  t.strictSame(spare.last().json, asked, 'only what is known')
  spare.answers(res => {
    res.writeHead(302, { location: provider.url })
    res.end()
  })
  const before = provider.got.length
  const redirected = await ask('/v1/systemone', { model: 'spare/jev', state: 'x', questions })
  t.equal(redirected.status, 502)
  t.equal(provider.got.length, before, 'a redirect is not followed')
})

t.test('M18 a request that is wrong is refused before any provider', async t => {
  const before = provider.got.length + spare.got.length
  const noul = { type: 'noul', instructions: 'x' }
  const decision = (questions: Tree, more: Tree = {}) =>
    ['/v1/systemone', { model: 'jev', state: 'x', questions, ...more }] as const
  const ocr = (document: unknown, more: Tree = {}) => ['/v1/ocr', { model: 'reader', document, ...more }] as const
  const pdf = (document_url: string) => ({ type: 'document_url', document_url })
  const good = pdf('https://a.example/a.pdf')
  type Row = [request: readonly [path: string, body: Tree], code: string, param: string | null]
  const rows: Row[] = [
    [['/v1/moderations', { input: '' }], 'invalid_parameters', 'input'],
    [['/v1/moderations', { input: [] }], 'invalid_parameters', 'input'],
    [['/v1/moderations', { input: ['a', ''] }], 'invalid_parameters', 'input[1]'],
    [['/v1/moderations', { input: [{ type: 'text', text: '' }] }], 'invalid_parameters', 'input[0].text'],
    ...['http://a.example/a.png', ' http://a.example/a.png', 'https://[::1]/a.png'].map(
      (url): Row => [
        ['/v1/moderations', { input: [{ type: 'image_url', image_url: { url } }] }],
        'url_not_allowed',
        'input[0].image_url.url',
      ],
    ),
    [['/v1/moderations', { input: [{ type: 'audio' }] }], 'invalid_parameters', 'input[0].type'],
    [
      ['/v1/moderations', { input: [{ type: 'image_url', image_url: { url: 'http://10.0.0.1/a' } }] }],
      'url_not_allowed',
      'input[0].image_url.url',
    ],
    [ocr({ type: 'file', file_id: 'x' }), 'invalid_parameters', 'document.type'],
    [ocr(pdf('http://a.example/a.pdf')), 'url_not_allowed', 'document.document_url'],
    [ocr(pdf('https://127.0.0.1/a.pdf')), 'url_not_allowed', 'document.document_url'],
    [
      ocr({ type: 'image_url', image_url: { url: 'https://metadata.internal/a' } }),
      'url_not_allowed',
      'document.image_url.url',
    ],
    [ocr(pdf('data:application/pdf,plain')), 'invalid_parameters', 'document.document_url'],
    [ocr(pdf('')), 'url_not_allowed', 'document.document_url'],
    [ocr(good, { pages: '5-2' }), 'invalid_parameters', 'pages'],
    [ocr(good, { pages: [-1] }), 'invalid_parameters', 'pages[0]'],
    [ocr(good, { image_limit: -1 }), 'invalid_parameters', 'image_limit'],
    [decision({}), 'invalid_parameters', 'questions'],
    [decision({ 'a b': noul }), 'invalid_parameters', 'questions.a b'],
    [decision({ a: { type: 'noul', instructions: '' } }), 'invalid_parameters', 'questions.a.instructions'],
    [
      decision({ a: { type: 'choice', instructions: 'x', criteria: { one: null } } }),
      'invalid_parameters',
      'questions.a.criteria',
    ],
    [
      decision({ a: { type: 'score', instructions: 'x', criteria: ['one'] } }),
      'invalid_parameters',
      'questions.a.criteria',
    ],
    [decision({ a: { type: 'maybe', instructions: 'x' } }), 'invalid_parameters', 'questions.a.type'],
    [decision({ a: { type: 'noul', instructions: {} } }), 'invalid_parameters', 'questions.a.instructions'],
    [decision({ a: noul }, { state: 4 }), 'invalid_parameters', 'state'],
    [decision({ a: noul }, { state: '€'.repeat(400_000) }), 'invalid_parameters', 'state'],
    [
      decision(Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`q${n}`, noul]))),
      'invalid_parameters',
      'questions',
    ],
    [decision({ a: noul }, { model: 'reader' }), 'model_not_supported', 'model'],
  ]
  for (const [[path, body], code, param] of rows) {
    const answer = await ask(path, body)
    const { error } = (await bodyOf(answer)) as { error: Tree }
    t.strictSame([answer.status, error.code, error.param], [400, code, param], JSON.stringify(body).slice(0, 120))
  }
  const wrong = await bodyOf(
    await ask('/v1/chat/completions', { model: 'reader', messages: [{ role: 'user', content: 'x' }] }),
  )
  t.match(wrong, { error: { message: /ask for it at \/v1\/ocr\.$/ } })
  t.equal(provider.got.length + spare.got.length, before)
})

/** A key of an organization of its own that has credits. */
async function tenant(name: string) {
  const { id: organization } = await command<{ id: string }>('orgs.create', { name })
  await command('credits.add', { organization, amount: '1' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
  const { key } = await command<{ key: string }>('keys.create', { project, name: 'k' })
  const statusOf = async (path: string, body: Tree) => {
    const answer = await gateway.post(path, body, { authorization: `Bearer ${key}` })
    await answer.text()
    return answer.status
  }
  return {
    organization,
    moderated: () => statusOf('/v1/moderations', { model: 'demo-moderation', input: 'x' }),
    read: () => statusOf('/v1/ocr', { model: 'demo-ocr', document: image }),
    decided: () =>
      statusOf('/v1/systemone', {
        model: 'demo-decision',
        state: 'x',
        questions: { a: { type: 'noul', instructions: 'x' } },
      }),
  }
}

t.test('of the rules of an organization those of providers and addresses alone apply to moderations', async t => {
  const { organization, moderated, read } = await tenant('ruled')
  const models = ['demo-moderation', 'demo-ocr']
  await command('iam.add', { organization, type: 'deny_models', models })
  await command('iam.add', { organization, type: 'deny_pricing', pricing: 'free' })
  t.strictSame([await moderated(), await read()], [200, 403])
  await command('iam.add', { organization, type: 'deny_providers', providers: ['demo'] })
  t.equal(await moderated(), 403)
  const { organization: other, moderated: from } = await tenant('elsewhere')
  await command('iam.add', { organization: other, type: 'allow_ip_cidrs', ipCidrs: ['192.0.2.0/24'] })
  t.equal(await from(), 403)
})

t.test('coding plans may moderate, and neither read documents nor decide', async t => {
  const { organization, moderated, read, decided } = await tenant('planned')
  t.strictSame([await moderated(), await read(), await decided()], [200, 200, 200])
  await command('plans.set', { organization, plan: 'lite' })
  t.strictSame([await moderated(), await read(), await decided()], [200, 403, 403])
})

t.test('the demo answers each, for nothing', async t => {
  const moderated = await bodyOf(
    await ask('/v1/moderations', { model: 'demo-moderation', input: ['hello', 'such violence'] }),
  )
  t.match(moderated, { results: [{ flagged: false }, { flagged: true, categories: { violence: true, hate: false } }] })
  const document = { type: 'image_url', image_url: 'data:image/png;base64,iVBORw0KGgo=' }
  t.match(await bodyOf(await ask('/v1/ocr', { model: 'demo-ocr', document })), { pages: [{ markdown: /Simulated/ }] })
  const questions = { a: { type: 'score', instructions: 'x', criteria: ['low', 'mid', 'high'] } }
  t.match(await bodyOf(await ask('/v1/systemone', { model: 'demo-decision', state: [], questions })), {
    model: 'demo/demo-decision',
    answers: { a: { type: 'score', score: 1, legend: { 0: 'low', 1: 'mid', 2: 'high' } } },
  })
})

t.test('the books are sound', async t => {
  t.strictSame(await command('usage.check'), { differences: [] })
  t.strictSame(openBooks(t, gateway).prepare('SELECT * FROM holds').all(), [])
})
