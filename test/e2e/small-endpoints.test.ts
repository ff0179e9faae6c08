/** `GET /v1/models/{id}`, `POST /v1/completions` and `POST /v1/messages/count_tokens`, with official clients. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import t from 'tap'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { readEvents } from '../helpers/sse.ts'
import type { Step } from '../helpers/upstream.ts'
import { countsOf } from './matrix/cases.ts'
import { everyWire } from './matrix/gateway.ts'

type Json = Record<string, unknown>
interface Answer {
  error?: { param?: string; code?: string; message: string; type?: string }
  choices: { text: string; index: number; logprobs: null; finish_reason: string | null }[]
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number; cost: number }
}

const { upstream, gateway } = await everyWire()
const command = commandsOf(gateway)
const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
const play = async (prefix: string, ...steps: Step[]) => {
  await upstream.reset()
  await upstream.script(prefix, steps)
}

t.test('one model is shown by every name that a request may have for it', async t => {
  const { data } = await client.models.list()
  t.ok(data.length > 5 && data.every(({ created }) => created > 1_000_000_000), 'each has a date')
  const listed = data.find(({ id }) => id === 'chat')
  t.strictSame(await client.models.retrieve('chat'), listed, 'as in the list')
  for (const path of ['chat/chat', 'chat%2Fchat']) {
    const found = (await (await gateway.get(`/v1/models/${path}`)).json()) as Json
    t.match(found, { id: 'chat/chat', object: 'model', owned_by: 'chat' }, path)
    t.equal((found.providers as unknown[]).length, 1, path)
  }
  const claude = new Anthropic({ baseURL: gateway.url, apiKey: gateway.key, maxRetries: 0 })
  t.match(await claude.models.retrieve('claude'), { type: 'model', id: 'claude', display_name: /./ })
  const refused: [path: string, headers: Record<string, string | null>, status: number][] = [
    ['nope', {}, 404],
    ['chat/nope', {}, 404],
    ['auto', {}, 404],
    ['gpt-1', {}, 404],
    ['chat', { authorization: 'Bearer mgw_wrong' }, 401],
  ]
  for (const [path, headers, status] of refused)
    t.equal((await gateway.get(`/v1/models/${path}`, headers)).status, status, path)
  t.equal((await gateway.get('/v1/models/chat', { authorization: null })).status, 200, 'the catalogue is public')
})

t.test('a model that a key may not call is not there for it', async t => {
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'denied' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
  const { key } = await command<{ key: string }>('keys.create', { project })
  await command('iam.add', { organization, type: 'deny_models', models: ['chat'] })
  const headers = { authorization: `Bearer ${key}` }
  t.equal((await gateway.get('/v1/models/chat', headers)).status, 404)
  t.equal((await gateway.get('/v1/models/claude', headers)).status, 200)
})

t.test('what is not served is a 404 in the form of its client', async t => {
  const forms: [path: string, headers: Record<string, string>, form: object][] = [
    ['/v1/files', {}, { error: { code: 'not_found', param: null } }],
    [
      '/v1/files?beta=true',
      { 'anthropic-version': '2023-06-01' },
      { type: 'error', error: { type: 'not_found_error' } },
    ],
    ['/v1/cachedContents', { 'x-goog-api-key': gateway.key }, { error: { code: 404, status: 'NOT_FOUND' } }],
    ['/upload/v1beta/files', { 'x-goog-api-key': gateway.key }, { error: { code: 404, status: 'NOT_FOUND' } }],
  ]
  for (const [path, headers, form] of forms) {
    const response = await gateway.post(path, {}, headers)
    t.equal(response.status, 404, path)
    t.match(await response.json(), form, path)
  }
})

const usage = { prompt: 11, completion: 5 }

t.test('a text completion over chat models, whole and streamed', async t => {
  for (const model of ['chat', 'claude', 'gemini']) {
    await play(model, { text: 'there was', usage }, { chunks: ['there ', 'was'], usage })
    const whole = await client.completions.create({ model, prompt: 'Once', echo: true, stop: ['.'] })
    t.match(whole, {
      object: 'text_completion',
      choices: [{ text: 'Oncethere was', index: 0, logprobs: null, finish_reason: 'stop' }],
    })
    t.match(whole.usage, { prompt_tokens: 11, completion_tokens: 5, total_tokens: 16 })
    let text = ''
    for await (const chunk of await client.completions.create({ model, prompt: ['Once'], stream: true })) {
      text += chunk.choices[0]?.text ?? ''
    }
    t.equal(text, 'there was', model)
    const [first] = await upstream.record(model)
    t.match(JSON.stringify(first!.body), /16/, 'the limit of old is 16 tokens')
  }
})

t.test('several prompts have an answer each, in their order, and each is charged', async t => {
  for (const stream of [false, true]) {
    await play('chat', ...Array.from({ length: 3 }, () => ({ usage })))
    const body = { model: 'chat', prompt: ['one', 'two', 'three'], stream }
    const response = await gateway.post('/v1/completions', body)
    const answers = stream ? (await readEvents<Answer>(response)).data : [(await response.json()) as Answer]
    const texts: string[] = []
    for (const { text, index } of answers.flatMap(({ choices }) => choices)) texts[index] = (texts[index] ?? '') + text
    t.strictSame(texts, ['echo: one', 'echo: two', 'echo: three'])
    const { cost } = countsOf(33, 15)
    t.match(answers.at(-1)!.usage, { prompt_tokens: 33, completion_tokens: 15, total_tokens: 48 })
    // Each is rounded with the others, once.
    t.equal(answers.at(-1)!.usage!.cost, cost)
    t.equal((await upstream.record('chat')).length, 3)
  }
})

t.test('prompts that are answered are charged though the provider refuses another one', async t => {
  await play('chat', { usage }, { usage }, { usage }, { usage }, { status: 400 })
  const books = openBooks(t, gateway)
  // Four are sent at once: the fifth is sent when one has been answered.
  const prompt = ['one', 'two', 'three', 'four', 'five']
  const response = await gateway.post('/v1/completions', { model: 'chat', prompt })
  t.equal(response.status, 400)
  t.equal((await upstream.record('chat')).length, 5)
  const row = books
    .prepare('SELECT status, outcome, cost, charged FROM requests ORDER BY id DESC LIMIT 1')
    .get() as Json
  t.match(row, { status: 400, outcome: 'error', charged: row.cost })
  const { cost } = countsOf(11, 5)
  t.ok(Number(row.cost) >= Math.floor(Number(cost) * 1e9), JSON.stringify(row))
})

t.test('what chat models cannot do of a text completion is named', async t => {
  const wrong: [field: Json, param: string][] = [
    [{ suffix: 'end' }, 'suffix'],
    [{ best_of: 2 }, 'best_of'],
    [{ logprobs: 1 }, 'logprobs'],
    [{ prompt: [1, 2] }, 'prompt'],
    [{ prompt: [[1], [2]] }, 'prompt'],
    [{ prompt: '' }, 'prompt'],
    [{ prompt: [] }, 'prompt'],
    [{ prompt: ['a', ''] }, 'prompt[1]'],
    [{ prompt: undefined }, 'prompt'],
    [{ n: 0 }, 'n'],
  ]
  for (const [fields, param] of wrong) {
    const response = await gateway.post('/v1/completions', { model: 'chat', prompt: 'x', ...fields })
    t.equal(response.status, 400, param)
    t.equal(((await response.json()) as Answer).error?.param, param)
  }
})

t.test('a text completion that breaks has an error event, and then the end', async t => {
  await play('chat', { chunks: ['a', 'b', 'c'], fault: 'error-event', afterChunks: 2 })
  const { data, terminator } = await readEvents<Answer>(
    await gateway.post('/v1/completions', { model: 'chat', prompt: 'x', stream: true }),
  )
  t.equal(
    data
      .flatMap(({ choices }) => choices ?? [])
      .map(({ text }) => text)
      .join(''),
    'ab',
  )
  t.match(
    data.find(({ error }) => error),
    { error: { type: 'upstream_error' } },
  )
  t.ok(data.at(-1)!.usage)
  t.equal(terminator, '[DONE]')
})

t.test('the tokens of a Messages request are counted by its provider, for nothing', async t => {
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'poor' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
  const { key } = await command<{ key: string }>('keys.create', { project })
  const poor = new Anthropic({ baseURL: gateway.url, apiKey: key, maxRetries: 0 })
  const body = { messages: [{ role: 'user' as const, content: 'Hello there, count me' }], system: 'Be brief' }
  for (const model of ['claude', 'gemini', 'vertexgemini']) {
    await play(model, { usage: { prompt: 1234 } })
    const { data, response } = await poor.beta.messages.countTokens({ model, ...body }).withResponse()
    t.strictSame(data, { input_tokens: 1234 }, model)
    t.equal(response.headers.get('x-gateway-estimated'), null)
    const [entry] = await upstream.record(model)
    t.equal(entry!.refused, null)
    t.match(JSON.stringify(entry!.body), /count me/)
  }
  const { balance, used } = await command<{ balance: string; used: string }>('credits.show', { organization })
  t.strictSame([balance, used], ['0', '0'])
})

t.test('what no provider counts is estimated, and says so', async t => {
  const text = 'x'.repeat(400)
  const body = (model: string) => ({ model, messages: [{ role: 'user', content: text }], max_tokens: 5, stream: true })
  for (const [model, step] of [
    ['chat', {}],
    ['claude', { status: 500 }],
    ['gemini', { status: 400 }],
    ['claude', { status: 429 }],
  ] as const) {
    await play(model, step)
    const response = await gateway.post('/v1/messages/count_tokens?beta=true', body(model))
    t.equal(response.status, 200, model)
    t.equal(response.headers.get('x-gateway-estimated'), 'true')
    t.match(response.headers.get('content-type'), 'application/json')
    t.equal(response.headers.get('x-gateway-cost'), '0')
    t.strictSame(await response.json(), { input_tokens: 100 }, model)
  }
  const { rows } = await command<{ rows: Record<string, unknown>[] }>('requests.list', { limit: 4 })
  for (const { endpoint, usage, cost } of rows) {
    t.match({ endpoint, usage, cost }, { endpoint: 'count_tokens', usage: { prompt: 0, completion: 0 }, cost: '0' })
  }
  const nope = await gateway.post('/v1/messages/count_tokens', body('nope'))
  t.equal(nope.status, 404)
  t.match(await nope.json(), { type: 'error', error: { type: 'not_found_error' } })
  t.equal((await gateway.post('/v1/messages/count_tokens', { model: 'claude' })).status, 400)
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
