/** Requests that say how they are routed, by the official clients of each wire (docs/routing.md#routing-by-request). */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import t from 'tap'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { type Step, startUpstream } from '../helpers/upstream.ts'

type Tree = Record<string, unknown>
interface Attempt {
  provider: string
  model: string
  status_code: number
  succeeded: boolean
}

const upstream = await startUpstream(t, { key: upstreamSecret })
const offer = (model: string, usd: string) => ({
  ...testMapping,
  model,
  id: `${model}-1`,
  pricing: { prompt: usd, completion: usd },
})
const gateway = await startGateway(t, {
  providers: {
    one: { base_url: upstream.url('one'), models: [offer('first', '1'), offer('both', '4')] },
    // Its price makes up for its priority where the price decides.
    two: { base_url: upstream.url('two'), priority: 0.4, models: [offer('second', '3'), offer('both', '2')] },
    claude: {
      base_url: upstream.url('claude'),
      auth: { scheme: 'header', header: 'x-api-key', secret: upstreamSecret },
      wires: { chat: 'anthropic.messages' },
      models: [offer('thinker', '5')],
    },
    google: {
      base_url: upstream.url('google').replace(/v1$/, 'v1beta'),
      auth: { scheme: 'header', header: 'x-goog-api-key', secret: upstreamSecret },
      wires: { chat: 'gemini.generate' },
      models: [offer('seer', '5')],
    },
    unset: {
      base_url: upstream.url('unset'),
      auth: { scheme: 'bearer', secret: ['$', '{NOT_SET}'].join('') },
      models: [offer('first', '1')],
    },
  },
})
const books = openBooks(t, gateway)
const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: gateway.key, maxRetries: 0 })
const google = new GoogleGenAI({ apiKey: gateway.key, httpOptions: { baseUrl: gateway.url } })
const play = async (by: Record<string, Step>) => {
  await upstream.reset()
  for (const [id, step] of Object.entries(by)) await upstream.script(id, [step])
}
const messages = [{ role: 'user' as const, content: 'Who answers?' }]
const usage = { prompt: 10, completion: 5 }
const down: Step = { status: 500 }
const up: Step = { text: 'I do', usage }

/** What an answer says of how it came to be. */
const metadataOf = (answer: unknown) =>
  (answer as { metadata: { routing: Attempt[]; requested_model: string; used_model: string; log_id: string } }).metadata
const attemptsOf = (answer: unknown) =>
  metadataOf(answer).routing.map(({ provider, model, succeeded }) => `${provider}/${model} ${succeeded}`)
/** What reached the providers. */
const sent = async (...ids: string[]) => (await Promise.all(ids.map(id => upstream.record(id)))).flat()

t.test('a list of models is tried in order, and the one that serves is charged', async t => {
  for (const stream of [false, true]) {
    await play({ one: down, two: up })
    const body = {
      models: ['first', 'second:floor'],
      provider: { ignore: ['claude'] },
      messages,
      stream,
      max_tokens: 9,
    }
    const answer = await openai.chat.completions.create(body as unknown as OpenAI.ChatCompletionCreateParams)
    let last: unknown = answer
    if (stream) for await (const chunk of answer as AsyncIterable<unknown>) last = chunk
    t.strictSame(attemptsOf(last), ['one/first false', 'two/second true'])
    const { requested_model, used_model, log_id } = metadataOf(last)
    t.strictSame([requested_model, used_model], ['first', 'second'])
    t.equal((last as { usage: { cost: number } }).usage.cost, 0.000045, 'at the price of the second')
    const charges = books.prepare('SELECT kind, amount FROM ledger WHERE request_id = ?').all(log_id)
    t.strictSame(charges, [{ kind: 'charge', amount: -45_000 }])
    t.strictSame(books.prepare('SELECT id FROM holds WHERE request_id = ?').all(log_id), [], 'no hold is left')
    for (const { body } of await sent('one', 'two')) {
      t.strictSame(
        Object.keys(body as Tree).filter(name => name === 'models' || name === 'provider'),
        [],
      )
    }
  }
})

t.test('Messages clients list models and providers, and no provider of their wire sees that', async t => {
  const common = { max_tokens: 50, messages } as const
  await play({ one: down, claude: up })
  const listed = { ...common, model: 'first', models: ['thinker:nitro'], provider: { order: ['claude', 'one'] } }
  const message = await anthropic.messages.create(listed)
  t.match(message, { model: 'thinker', content: [{ text: 'I do' }] })
  const [{ body } = { body: {} }] = await sent('claude')
  t.strictSame(Object.keys(body as Tree).sort(), ['max_tokens', 'messages', 'model'])
  await play({ one: up, two: up })
  await anthropic.messages.create({ ...common, model: 'both:floor' })
  t.equal((await sent('two')).length, 1, 'the cheaper one')
})

t.test('no provider gets fields of routing in a body of its own wire', async t => {
  await play({ claude: up, google: up })
  const said = {
    models: ['first'],
    provider: { sort: 'price' },
    routing: 'price',
    free_models_only: false,
    no_reasoning: true,
  }
  const contents = [{ role: 'user', parts: [{ text: 'Who answers?' }] }]
  for (const [path, body] of [
    ['/v1/messages', { model: 'thinker', max_tokens: 9, messages }],
    ['/v1beta/models/seer:generateContent', { contents }],
  ] as const) {
    const answer = await gateway.post(path, { ...body, ...said })
    t.equal(answer.status, 200, await answer.text())
  }
  for (const { body } of await sent('claude', 'google')) {
    t.strictSame(
      Object.keys(said).filter(name => name in (body as Tree)),
      [],
    )
  }
})

t.test('suffixes mean the same in every client wire', async t => {
  await play({})
  const asked = [
    () => openai.chat.completions.create({ model: 'both:floor', messages }),
    () => openai.completions.create({ model: 'both:floor', prompt: 'Who?' }),
    () => anthropic.messages.create({ model: 'both:floor', max_tokens: 5, messages }),
    () => google.models.generateContent({ model: 'both:floor', contents: 'Who?' }),
    () =>
      gateway.post(
        '/v3/ai/language-model',
        {
          prompt: [{ role: 'user', content: [{ type: 'text', text: 'Who?' }] }],
          providerOptions: { gateway: { models: ['first'], provider: { sort: 'price' } } },
        },
        {
          'ai-language-model-id': 'both',
          'ai-language-model-specification-version': '3',
          'ai-language-model-streaming': 'false',
        },
      ),
  ]
  for (const ask of asked) await ask()
  t.equal((await sent('two')).length, asked.length, 'by price')
  await gateway.chat({ model: 'both', messages })
  t.equal((await sent('one')).length, 1, 'not without it')
})

t.test('a model of the path comes before those of the body', async t => {
  await play({ one: down, two: up })
  const body = { contents: [{ parts: [{ text: 'Who?' }] }], models: ['second'], provider: { ignore: ['claude'] } }
  const response = await gateway.post('/v1beta/models/first:generateContent', body)
  const { gateway: metadata } = (await response.json()) as { gateway: unknown }
  t.strictSame(attemptsOf({ metadata }), ['one/first false', 'two/second true'])
})

t.test('a request stays with the providers that it names', async t => {
  await play({ one: down })
  const only = await gateway.chat({ model: 'both', messages, provider: { only: ['one'] } })
  t.equal(only.status, 502)
  await play({ one: down })
  const first = await gateway.chat({ model: 'both', messages, provider: { order: ['one'], allow_fallbacks: false } })
  t.equal(first.status, 502)
  t.equal((await sent('two')).length, 0)
  await play({ two: down })
  const rest = await gateway.chat({ model: 'both', messages, provider: { order: ['two'] } })
  t.strictSame(attemptsOf(await rest.json()), ['two/both false', 'one/both true'])
})

t.test('an operator sees what a suffix does', async t => {
  const explained = async (model: string) =>
    (await (await gateway.admin('POST', '/commands/route.explain', { model })).json()) as Tree
  t.match(await explained('both:floor'), { model: 'both', choice: 'two/both' })
  t.match(await explained('both'), { model: 'both', choice: 'one/both' })
})

t.test('what means nothing is refused before a provider is called', async t => {
  await play({})
  const rows: [body: Tree, status: number, param: string, names: RegExp][] = [
    [{ models: [] }, 400, 'model', /model: is required/],
    [{ model: 'first', models: ['none'] }, 404, 'models', /"none"/],
    [{ model: 'first', provider: { only: ['oen'] } }, 400, 'provider.only[0]', /"oen".*"one"/],
    [{ model: 'first', provider: { only: ['two'] } }, 400, 'provider.only', /"first"/],
    [{ model: 'first', provider: { only: ['unset'] } }, 400, 'provider', /^[^_]*no provider of it has a credential/],
    [{ model: 'first', provider: { max_price: { prompt: '0.5' } } }, 400, 'provider.max_price', /"first"/],
    [{ model: 'first', provider: { data_collection: 'deny' } }, 400, 'provider.data_collection', /is unknown/],
    [{ model: 'first', models: 'second' }, 400, 'models', /must be a list/],
  ]
  for (const [body, status, param, names] of rows) {
    const response = await gateway.chat({ messages, ...body })
    const { error } = (await response.json()) as { error: { message: string; param: string } }
    t.strictSame([response.status, error.param], [status, param], JSON.stringify(body))
    t.match(error.message, names)
  }
  const claude = await gateway.post('/v1/messages', {
    model: 'first',
    max_tokens: 5,
    messages,
    provider: { sort: 'x' },
  })
  t.match(await claude.json(), { type: 'error', error: { message: /^provider\.sort: / } })
  t.equal((await sent('one', 'two', 'unset')).length, 0)
})

t.test('a key is charged and bounded by each model of a list', async t => {
  const ctl = commandsOf(gateway)
  const { id, key } = (await ctl('keys.create', { project: 'default', name: 'few' })) as { id: string; key: string }
  await ctl('iam.add', { key: id, type: 'deny_models', models: ['first'] })
  await play({ two: up })
  const ask = (models: string[]) => gateway.chat({ models, messages }, { authorization: `Bearer ${key}` })
  t.strictSame(attemptsOf(await (await ask(['first', 'second'])).json()), ['two/second true'])
  t.equal((await ask(['first'])).status, 403)
  t.equal((await sent('one')).length, 0)
})

t.test('answers are replayed to the same list alone', async t => {
  const ctl = commandsOf(gateway)
  await ctl('projects.create', { organization: 'default', name: 'kept', cache: 'on' })
  const { key } = (await ctl('keys.create', { project: 'kept', name: 'kept' })) as { key: string }
  await play({})
  const ask = async (body: Tree) => {
    const response = await gateway.chat({ messages, ...body }, { authorization: `Bearer ${key}` })
    return response.headers.get('x-gateway-cache')
  }
  const list = { model: 'both', models: ['second'] }
  t.strictSame([await ask(list), await ask(list)], ['MISS', 'HIT'])
  t.equal(await ask({ ...list, models: ['first'] }), 'MISS')
  t.equal(await ask({ ...list, provider: { only: ['two'] } }), 'MISS')
  t.equal(await ask({ ...list, model: 'both:floor' }), 'MISS')
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
