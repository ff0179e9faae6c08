/** Google's API as the unmodified `@google/genai` client and plain HTTP speak it: keys, forms, refusals, the catalogue. */
import { ApiError, Type } from '@google/genai'
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { readEvents } from '../helpers/sse.ts'
import type { Step } from '../helpers/upstream.ts'
import { googleClient } from './agents/loops.ts'
import { everyWire } from './matrix/gateway.ts'
import { wires } from './matrix/wires.ts'

type Json = Record<string, unknown>
interface Refusal {
  error: { code: number; status: string; message: string; details?: Json[] }
}

const { upstream, gateway } = await everyWire()
const client = googleClient(gateway)
const contents = 'Hi'
const body = { contents: [{ parts: [{ text: 'Hi' }] }] }
const at = (method: string, model = 'chat', version = 'v1beta') => `/${version}/models/${model}:${method}`
const play = async (prefix: string, ...steps: Step[]) => {
  await upstream.reset()
  await upstream.script(prefix, steps)
}
const raised = (promise: Promise<unknown>): Promise<ApiError & Refusal> =>
  promise.then(
    () => t.fail('nothing was raised') as never,
    (error: ApiError) => Object.assign(error, JSON.parse(error.message)),
  )

t.test('a key comes in its header, as bearer or in the query, and only here in the query', async t => {
  const key = gateway.key
  const none = { authorization: null }
  const ways: [path: string, headers: Record<string, string | null>, status: number][] = [
    [at('generateContent'), { ...none, 'x-goog-api-key': key }, 200],
    [at('generateContent'), { authorization: `Bearer ${key}` }, 200],
    [`${at('generateContent')}?key=${key}`, none, 200],
    [`${at('generateContent', 'chat', 'v1')}?key=${key}`, none, 200],
    [`${at('generateContent')}?key=${key}`, { authorization: `Bearer ${key}` }, 200],
    [`${at('generateContent')}?key=${key}`, { ...none, 'x-goog-api-key': 'mgw_other' }, 400],
    [`${at('generateContent')}?key=mgw_wrong`, none, 401],
    [at('generateContent'), { ...none, 'x-goog-api-key': 'mgw_wrong' }, 401],
    [at('generateContent'), none, 401],
    [`/v1/chat/completions?key=${key}`, none, 401],
    ['/v1/chat/completions', { ...none, 'x-goog-api-key': key }, 401],
  ]
  for (const [path, headers, status] of ways) {
    const response = await gateway.post(path, path.includes('chat/') ? { model: 'chat' } : body, headers)
    t.equal(response.status, status, path.replace(key, 'KEY'))
    const answer = (await response.json()) as Refusal
    t.notMatch(JSON.stringify(answer), key)
    if (status === 401 && path.includes(':')) t.match(answer.error, { code: 401, status: 'UNAUTHENTICATED' })
  }
  const { body: sent } = (await upstream.record('chat')).at(-1)!
  t.notMatch(JSON.stringify(sent), key)
})

t.test('an answer is whole, a stream of events, or a list', async t => {
  const usage = { prompt: 11, completion: 3 }
  for (const version of ['v1', 'v1beta']) {
    await play('claude', { chunks: ['one ', 'two'], usage }, { chunks: ['one ', 'two'], usage })
    const listed = await gateway.post(at('streamGenerateContent', 'claude', version), body)
    t.match(listed.headers.get('content-type'), 'application/json')
    const chunks = (await listed.json()) as { candidates: { content: { parts: { text: string }[] } }[] }[]
    t.equal(
      chunks.flatMap(({ candidates }) => candidates[0]!.content.parts.map(({ text }) => text)).join(''),
      'one two',
    )
    t.match(chunks.at(-1), {
      candidates: [{ finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 11, candidatesTokenCount: 3, totalTokenCount: 14 },
      modelVersion: 'claude',
      responseId: /./,
      gateway: { used_provider: 'claude' },
    })
    const streamed = await gateway.post(`${at('streamGenerateContent', 'claude', version)}?alt=sse`, body)
    t.match(streamed.headers.get('content-type'), 'text/event-stream')
    t.match((await readEvents<Json>(streamed)).data.at(-1), { candidates: [{ finishReason: 'STOP' }] })
  }
})

t.test('a chat of the client goes on with what it kept of a stream', async t => {
  await play('gemini', { chunks: ['Good ', 'day'] }, { text: 'Bye' })
  const chat = client.chats.create({ model: 'gemini' })
  let said = ''
  for await (const chunk of await chat.sendMessageStream({ message: 'Hello' })) said += chunk.text ?? ''
  t.equal(said, 'Good day')
  t.equal((await chat.sendMessage({ message: 'and?' })).text, 'Bye')
  const { body: sent } = (await upstream.record('gemini')).at(-1)!
  t.match((sent as Json).contents, [
    { role: 'user', parts: [{ text: 'Hello' }] },
    { role: 'model', parts: [{ text: 'Good day' }] },
    { role: 'user', parts: [{ text: 'and?' }] },
  ])
})

t.test('schemas of this wire become JSON Schema', async t => {
  await play('chat', { text: '{"age":36}' })
  const responseSchema = {
    type: Type.OBJECT,
    properties: { name: { type: Type.STRING, nullable: true }, age: { type: Type.INTEGER, format: 'int32' } },
    propertyOrdering: ['age', 'name'],
    required: ['age'],
  }
  const config = { responseMimeType: 'application/json', responseSchema }
  t.equal((await client.models.generateContent({ model: 'chat', contents, config })).text, '{"age":36}')
  const [entry] = await upstream.record('chat')
  const { json_schema: sent } = (entry!.body as { response_format: { json_schema: { schema: Json } } }).response_format
  t.strictSame(sent.schema, {
    type: 'object',
    properties: { age: { type: 'integer' }, name: { type: ['string', 'null'] } },
    required: ['age'],
  })
  t.equal(Object.keys(sent.schema.properties as object)[0], 'age')
})

t.test('no wire refuses how a request wishes to think', async t => {
  for (const thinkingConfig of [{ thinkingBudget: 0 }, { thinkingBudget: 4096 }, { thinkingLevel: 'MEDIUM' }]) {
    await upstream.reset()
    for (const { id } of wires) {
      const response = await gateway.post(at('generateContent', id), { ...body, generationConfig: { thinkingConfig } })
      t.equal(response.status, 200, `${id}: ${JSON.stringify(thinkingConfig)} ${await response.text()}`)
    }
    t.same(
      (await upstream.record()).flatMap(({ refused }) => refused ?? []),
      [],
    )
  }
  t.equal(
    (
      await gateway.post(at('generateContent', 'always'), {
        ...body,
        generationConfig: { thinkingConfig: { thinkingBudget: 0 } },
      })
    ).status,
    200,
  )
})

t.test('refusals are in the form of this wire, whatever was wrong', async t => {
  const invalid = { code: 400, status: 'INVALID_ARGUMENT' }
  const wrong: [path: string, body: unknown, error: Partial<Refusal['error']>, field?: string][] = [
    [at('generateContent'), {}, invalid, 'contents'],
    [at('generateContent'), '{', invalid],
    [at('generateContent'), { contents: [] }, invalid, 'contents'],
    [
      at('generateContent'),
      { contents: [{ parts: [{ inline_data: { data: 'x' } }] }] },
      invalid,
      'contents[0].parts[0].inlineData.mimeType',
    ],
    [at('generateContent'), { contents: [{ role: 'robot', parts: [] }] }, invalid, 'contents[0].role'],
    [at('generateContent'), { ...body, tools: [{ codeExecution: {} }] }, invalid, 'tools[0].codeExecution'],
    [at('generateContent'), { ...body, cachedContent: 'cachedContents/1' }, invalid, 'cachedContent'],
    [
      at('generateContent'),
      { contents: [{ parts: [{ functionResponse: { name: 'f', response: {} } }] }] },
      invalid,
      'contents[0].parts[0].functionResponse',
    ],
    [at('generateContent', 'nope'), body, { code: 404, status: 'NOT_FOUND' }],
    [at('embedContent'), { content: { parts: [{ text: 'x' }] } }, invalid],
    [at('predict'), body, { code: 404, status: 'NOT_FOUND' }],
    [at('predict', 'chat', 'v1'), body, { code: 404, status: 'NOT_FOUND' }],
    ['/v1beta/cachedContents', body, { code: 404, status: 'NOT_FOUND' }],
    ['/v1beta/models', body, { code: 404, status: 'NOT_FOUND' }],
    ['/v1beta/corpora/a/b', body, { code: 404, status: 'NOT_FOUND' }],
  ]
  const methods = 'generateContent, streamGenerateContent, countTokens, embedContent, batchEmbedContents'
  for (const [path, sent, error, field] of wrong) {
    const response = await gateway.post(path, sent)
    const refusal = (await response.json()) as Refusal
    t.match(refusal, { error: { ...error, message: /./ } }, `${path} ${JSON.stringify(sent)}`)
    if (error.status === 'NOT_FOUND' && !path.includes('nope')) {
      t.equal(refusal.error.message, `There is no POST ${path}. The methods of models are ${methods}.`)
    }
    t.equal(response.status, error.code)
    const violations = refusal.error.details?.flatMap(({ fieldViolations }) => (fieldViolations as Json[]) ?? [])
    if (field) t.equal(violations?.[0]?.field, field, field)
  }
  t.equal((await gateway.post(at('generateContent'), body, { 'content-type': 'text/plain' })).status, 415)
  const { id: organization } = await commandsOf(gateway)<{ id: string }>('orgs.create', { name: 'unpaid' })
  const { id: project } = await commandsOf(gateway)<{ id: string }>('projects.create', { organization, name: 'web' })
  const { key } = await commandsOf(gateway)<{ key: string }>('keys.create', { project })
  const unpaid = await raised(googleClient({ ...gateway, key }).models.generateContent({ model: 'chat', contents }))
  t.match(unpaid, { status: 402, error: { code: 402, status: 'RESOURCE_EXHAUSTED' } })
})

t.test('a provider that fails is an error of the client, before the answer and within it', async t => {
  for (const [step, status, name] of [
    [{ status: 429 }, 503, 'UNAVAILABLE'],
    [{ status: 500 }, 502, 'UNAVAILABLE'],
    [{ status: 400 }, 400, 'INVALID_ARGUMENT'],
  ] as const) {
    await play('chat', step, step)
    t.match(await raised(client.models.generateContent({ model: 'chat', contents })), {
      status,
      error: { status: name },
    })
    t.match(await raised(client.models.generateContentStream({ model: 'chat', contents })), { status })
  }
  const broken: Step = { chunks: ['one ', 'two ', 'three'], fault: 'error-event', afterChunks: 2 }
  await play('chat', broken, broken, broken)
  const seen: string[] = []
  const read = async () => {
    for await (const chunk of await client.models.generateContentStream({ model: 'chat', contents })) {
      seen.push(chunk.text ?? '')
      t.notOk(chunk.candidates?.[0]?.finishReason)
    }
  }
  t.type(await read().catch((error: unknown) => error), ApiError)
  t.equal(seen.join(''), 'one two ')
  const events = await readEvents<Refusal>(await gateway.post(`${at('streamGenerateContent')}?alt=sse`, body))
  t.match(events.data.at(-1), { error: { code: 502, status: 'UNAVAILABLE' } })
  t.notMatch(JSON.stringify(events.data), 'STOP')
  const list = (await (await gateway.post(at('streamGenerateContent'), body)).json()) as Refusal[]
  t.match(list.at(-1), { error: { code: 502 } })
  t.notMatch(JSON.stringify(list), 'STOP')

  await play('chat', { status: 500 })
  await gateway.post(`${at('generateContent')}?key=${gateway.key}`, body, { authorization: null })
  t.match(gateway.stderr(), 'request failed')
  t.notMatch(gateway.stderr(), gateway.key, 'no log line has the key of a query')
})

t.test('tokens are counted by the provider, else estimated', async t => {
  await play('gemini', { usage: { prompt: 77 } }, { usage: { prompt: 78 } })
  t.match(await client.models.countTokens({ model: 'gemini', contents }), { totalTokens: 77 })
  const wrapped = { generateContentRequest: { model: 'models/gemini', ...body } }
  t.match(await (await gateway.post(at('countTokens', 'gemini'), wrapped)).json(), { totalTokens: 78 })
  const estimated = await gateway.post(at('countTokens'), { contents: [{ parts: [{ text: 'x'.repeat(40) }] }] })
  t.strictSame([estimated.headers.get('x-gateway-estimated'), await estimated.json()], ['true', { totalTokens: 10 }])
})

t.test('the catalogue has the form of this wire', async t => {
  const names: string[] = []
  for await (const { name } of await client.models.list({ config: { pageSize: 7 } })) names.push(name!)
  const { data } = (await (await gateway.get('/v1/models')).json()) as { data: { id: string }[] }
  t.strictSame(
    names,
    data.map(({ id }) => `models/${id}`),
    'every page',
  )
  t.match(await client.models.get({ model: 'chat' }), {
    name: 'models/chat',
    displayName: /./,
    supportedActions: ['generateContent', 'streamGenerateContent', 'countTokens'],
  })
  const goog = { authorization: null, 'x-goog-api-key': gateway.key }
  t.match(await (await gateway.get('/v1/models?pageSize=1', goog)).json(), {
    models: [{ name: /^models\// }],
    nextPageToken: /./,
  })
  t.match(await (await gateway.get('/v1beta/models/chat%2Fchat')).json(), { name: 'models/chat/chat' })
  for (const [path, code] of [
    ['/v1beta/models/nope', 404],
    ['/v1beta/models?pageToken=x', 400],
    ['/v1beta/files', 404],
  ] as const) {
    t.match(await (await gateway.get(path)).json(), { error: { code } }, path)
  }
  t.match(await (await gateway.get('/v1/models/nope', goog)).json(), { error: { code: 404, status: 'NOT_FOUND' } })
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))

t.test('code that the provider ran comes back in its place, whole and streamed', async t => {
  const parts = [
    { text: 'I count.' },
    { executableCode: { language: 'PYTHON', code: 'print(1)' } },
    { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } },
    { text: 'It is 1.' },
  ]
  const answer = { candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }] }
  for (const id of ['gemini', 'vertexgemini']) {
    for (const method of ['generateContent', 'streamGenerateContent']) {
      await play(id, { status: 200, body: method === 'generateContent' ? answer : [answer] }, {})
      const response = await gateway.post(at(method, id), body)
      const told = (await response.json()) as Json | Json[]
      t.equal(response.status, 200, JSON.stringify(told))
      const turns = [told]
        .flat()
        .flatMap(({ candidates }) => (candidates as { content: Json }[]).map(({ content }) => content))
      const next = { contents: [...body.contents, ...turns, ...body.contents] }
      t.equal((await gateway.post(at('generateContent', id), next)).status, 200)
      const { body: sent } = (await upstream.record(id)).at(-1)!
      t.strictSame((sent as { contents: Json[] }).contents[1], { role: 'model', parts }, `${id}: ${method}`)
      t.equal((await gateway.post(at('generateContent', 'chat'), next)).status, 200, 'and on another wire')
    }
  }
})
