/** What the AI SDK makes of this gateway beside plain answers: objects, interfaces, files, errors, retries, operations. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type * as ai7 from 'ai-7'
import t from 'tap'
import { z } from 'zod'
import { callAiSdk } from '../helpers/ai-sdk-chat.ts'
import { commandsOf } from '../helpers/commands.ts'
import { timing } from '../helpers/figure.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { fileServer } from '../helpers/listeners.ts'
import { type Step, startUpstream } from '../helpers/upstream.ts'

const pdf = Buffer.from('%PDF-1.4 a document')
const wav = Buffer.from('UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=', 'base64')
/** Where clients' files stand. */
const port = await fileServer(t, (req, res) => {
  const [type, bytes] = req.url === '/a.pdf' ? ['application/octet-stream', pdf] : ['audio/x-wav', wav]
  res.writeHead(req.url === '/gone' ? 404 : 200, { 'content-type': String(type) }).end(bytes)
})
const origin = `http://files.example:${port}`

const upstream = await startUpstream(t, { key: upstreamSecret })
const supports = [...testMapping.supports, 'web_search', 'audio_input', 'file_input']
const pricing = { ...testMapping.pricing, web_search: '0.01' }
const serve = (model: string, more: object = {}) => ({
  ...testMapping,
  supports,
  pricing,
  model,
  id: `${model}-1`,
  ...more,
})
const gateway = await startGateway(t, {
  providers: {
    openai: { base_url: upstream.url('openai'), models: [serve('gpt'), serve('both')], priority: 2 },
    anthropic: {
      base_url: upstream.url('anthropic'),
      auth: { scheme: 'header', header: 'x-api-key', secret: upstreamSecret },
      headers: { 'anthropic-version': '2023-06-01' },
      wires: { chat: 'anthropic.messages' },
      models: [serve('claude', { id: 'claude-sonnet-5' })],
    },
    spare: { base_url: upstream.url('spare'), models: [serve('both')] },
    stops: { base_url: upstream.url('stops'), models: [serve('stops', { cancellable: true })] },
    free: {
      base_url: upstream.url('free'),
      models: [serve('free', { pricing: { prompt: '0', completion: '0' } })],
    },
  },
  config: { server: { fetch_from: [origin] }, endpoints: { credits: { ratelimit: { rpm: 1 } } } },
  env: {
    NODE_OPTIONS: `--require ${join(import.meta.dirname, '../helpers/names.cjs')}`,
    NAMES: JSON.stringify({ 'files.example': [['127.0.0.1']] }),
  },
})

const command = commandsOf(gateway)
let made = 0
/** An organization without credits. */
async function tenant(): Promise<{ id: string; key: string }> {
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: `ai-${++made}` })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
  return command<{ id: string; key: string }>('keys.create', { project, name: 'k' })
}

/** By a variable name: the types of the three differ where the tests do not. */
const load = async (major: number): Promise<typeof ai7> => import(`ai-${major}`)
const play = (prefix: string, ...steps: Step[]) => upstream.script(prefix, steps)
const last = async (prefix = 'openai') => (await upstream.record(prefix)).at(-1)!
const usage = { prompt: 40, completion: 9, reasoning: 0 }
const caught = (promise: PromiseLike<unknown>) =>
  Promise.resolve(promise).then(
    () => undefined,
    (error: unknown) => error as Record<string, unknown>,
  )
const event = (payload: object) => `data: ${JSON.stringify(payload)}\n\n`
const citation = {
  type: 'url_citation',
  url_citation: { url: 'https://a.example/b', title: 'B', start_index: 0, end_index: 4 },
}
/** A search of Anthropic's, and an answer that cites it. */
const found = readFileSync(new URL('../golden/anthropic/web-search.sse', import.meta.url), 'utf8')
const cited = [
  event({ choices: [{ index: 0, delta: { role: 'assistant', content: 'News' } }] }),
  event({ choices: [{ index: 0, delta: { annotations: [citation] } }] }),
  event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
  event({ choices: [], usage: { prompt_tokens: 4, completion_tokens: 2, total_tokens: 6 } }),
  'data: [DONE]\n\n',
]

for (const { major, prefix } of [
  { major: 5, prefix: '/v1/ai' },
  { major: 6, prefix: '/v3/ai' },
  { major: 7, prefix: '/v4/ai' },
]) {
  const sdk = await load(major)
  const of = (apiKey: string) => sdk.createGateway({ baseURL: `${gateway.url}${prefix}`, apiKey })
  const provider = of(gateway.key)
  const call = { model: provider('openai/gpt'), prompt: 'Hi', maxRetries: 0 }
  const seen: unknown[] = []
  const onError = ({ error }: { error: unknown }) => void seen.push(error)

  t.test(`AI SDK ${major}: objects, whole and as they grow`, async t => {
    const schema = z.object({ surname: z.string(), born: z.number() })
    const object = { surname: 'Lovelace', born: 1815 }
    const text = JSON.stringify(object)
    await play('openai', { chunks: [text.slice(0, 12), text.slice(12, 20), text.slice(20)], usage })
    const grown = sdk.streamObject({ ...call, schema, schemaName: 'person', schemaDescription: 'Somebody', onError })
    const partial: unknown[] = []
    for await (const one of grown.partialObjectStream) partial.push(one)
    t.same(await grown.object, object)
    t.ok(partial.length > 1, `${partial.length} pieces`)
    const { body } = await last()
    t.match(body, {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'person', description: 'Somebody', schema: { required: ['surname', 'born'] } },
      },
    })
    await play('openai', { text, usage })
    const loose = await sdk.generateObject({ ...call, output: 'no-schema' })
    t.same(loose.object, object)
    t.match((await last()).body, { response_format: { type: 'json_object' } })
    if (major > 5) {
      const { output } = await sdk.generateText({ ...call, output: sdk.Output.object({ schema }) })
      t.same(output, object)
    }
  })

  t.test(`AI SDK ${major}: what an answer says of itself`, async t => {
    await play('openai', { chunks: ['one ', 'two'], usage: { ...usage, cached: 8, reasoning: 4 } })
    const stream = sdk.streamText({ ...call, onError, includeRawChunks: true } as typeof call)
    const parts: { type: string; rawValue?: unknown }[] = []
    for await (const part of stream.fullStream) parts.push(part as (typeof parts)[number])
    const types = parts.map(({ type }) => type)
    t.match(types.slice(0, 2), ['start', 'start-step'])
    t.match(parts.find(({ type }) => type === 'raw')?.rawValue, { object: 'chat.completion.chunk' })
    const response = await stream.response
    t.match(response, { id: /^gen_\w+$/, modelId: 'gpt', headers: { 'x-request-id': String } })
    t.ok(response.timestamp instanceof Date && Math.abs(response.timestamp.getTime() - Date.now()) < 600_000)
    const total = await stream.usage
    t.match(total, { inputTokens: 40, outputTokens: 9, totalTokens: 49 })
    const details = total as { reasoningTokens?: number; cachedInputTokens?: number }
    t.match(details, major === 5 ? { reasoningTokens: 4, cachedInputTokens: 8 } : {})
    if (major > 5) {
      t.match(total, {
        inputTokenDetails: { noCacheTokens: 32, cacheReadTokens: 8, cacheWriteTokens: 0 },
        outputTokenDetails: { textTokens: 5, reasoningTokens: 4 },
      })
      t.equal((await stream.steps)[0]!.rawFinishReason, 'stop')
    }
    t.match(await stream.providerMetadata, {
      gateway: { cost: /^0\.\d+$/, generationId: /^gen_/, usedProvider: 'openai' },
    })
    for (const [finish, reason] of [
      ['length', 'length'],
      ['content_filter', 'content-filter'],
    ] as const) {
      await play('openai', { text: 'x', finish, usage })
      t.equal((await sdk.generateText(call)).finishReason, reason)
    }
    t.same(seen, [])
  })

  t.test(`AI SDK ${major}: an interface is streamed its text, its search and its sources`, async t => {
    await play('openai', { raw: cited })
    const tools = { web: searchTool(major) }
    const stream = sdk.streamText({ ...call, tools, onError })
    const response = stream.toUIMessageStreamResponse({ sendSources: true })
    const chunks = (await response.text())
      .split('\n\n')
      .filter(line => line.startsWith('data: {'))
      .map(line => JSON.parse(line.slice('data: '.length)) as { type: string })
    t.match(
      chunks.find(({ type }) => type === 'source-url'),
      { url: 'https://a.example/b', title: 'B', sourceId: String },
    )
    t.match(
      chunks.find(({ type }) => type === 'tool-input-available'),
      { toolName: 'web', providerExecuted: true },
    )
    t.ok(chunks.some(({ type }) => type === 'tool-output-available'))
    t.ok(chunks.some(({ type }) => type === 'text-delta'))
    const sources = await stream.sources
    t.match(sources, [{ sourceType: 'url', url: 'https://a.example/b' }])
    t.equal((await stream.steps).length, 1, 'no step is taken again')
    t.match((await last()).body, { web_search_options: {} })
    t.same(seen, [])
  })

  t.test(`AI SDK ${major}: what a search found goes back to its provider with the next turn`, async t => {
    await play('anthropic', { raw: [found] }, { text: 'More', usage })
    const tools = { web: searchTool(major, 'anthropic.web_search_20250305') }
    const asks = { ...call, model: provider('anthropic/claude'), prompt: undefined, tools }
    const messages: object[] = [{ role: 'user', content: 'What is new?' }]
    const stream = sdk.streamText({ ...asks, messages, onError } as never)
    t.ok(await stream.text)
    t.match(await stream.sources, [{ sourceType: 'url', url: String }])
    messages.push(...(await stream.response).messages, { role: 'user', content: 'And?' })
    const next = await sdk.generateText({ ...asks, messages } as never)
    t.equal(next.text, 'More')
    const { body, refused } = await last('anthropic')
    t.equal(refused, null)
    const [, answered] = (body as { messages: { content: { type: string }[] }[] }).messages
    t.match(
      answered!.content.map(({ type }) => type),
      ['redacted_thinking', 'server_tool_use', 'web_search_tool_result', 'text'],
    )
    t.match(JSON.stringify(answered), /"encrypted_content":"[^"]+"/)
    t.same(seen, [])
  })

  t.test(`AI SDK ${major}: files as data and at addresses`, async t => {
    const content = (data: unknown, mediaType: string) => [
      { type: 'text' as const, text: 'What?' },
      { type: 'file' as const, data, mediaType, filename: 'a.pdf' },
    ]
    const ask = async (data: unknown, mediaType: string) => {
      await play('openai', { text: 'ok', usage })
      const messages = [{ role: 'user', content: content(data, mediaType) }]
      await sdk.generateText({ ...call, prompt: undefined, messages } as never)
      const { messages: sent } = (await last()).body as { messages: { content: object[] }[] }
      return sent[0]!.content[1]
    }
    const document = { type: 'file', file: { file_data: `data:application/pdf;base64,${pdf.toString('base64')}` } }
    t.match(await ask(pdf, 'application/pdf'), document)
    t.match(await ask(new URL(`${origin}/a.pdf`), 'application/pdf'), document)
    const audio = { type: 'input_audio', input_audio: { data: wav.toString('base64'), format: 'wav' } }
    t.match(await ask(wav, 'audio/wav'), audio)
    t.match(await ask(new URL(`${origin}/b`), 'audio/mpeg'), audio, 'of the format that it has')
    for (const [path, status] of [
      [`${origin}/gone`, 400],
      ['http://10.0.0.1/a', 400],
      ['https://user@a.example/b', 400],
    ] as const) {
      const error = await caught(ask(new URL(path), 'application/pdf'))
      t.match(error, { name: 'GatewayInvalidRequestError', statusCode: status }, path)
    }
  })

  t.test(`AI SDK ${major}: each failure is of its class, and tried again where that may help`, async t => {
    const bare = { code: 'x', message: 'No.', type: 'x' }
    const rows: [says: string, step: Step | undefined, more: object, error: object][] = [
      [
        'the provider says that the request is wrong',
        { status: 400, body: { error: bare } },
        {},
        { name: 'GatewayInvalidRequestError', statusCode: 400, isRetryable: false },
      ],
      [
        'the provider refuses the credential',
        { status: 401 },
        {},
        { name: 'GatewayInternalServerError', statusCode: 502, isRetryable: true },
      ],
      [
        'the provider is busy',
        { status: 429 },
        {},
        { name: 'GatewayInternalServerError', statusCode: 503, isRetryable: true },
      ],
      [
        'the provider fails',
        { status: 500 },
        {},
        { name: 'GatewayInternalServerError', statusCode: 502, isRetryable: true },
      ],
      [
        'the model does not exist',
        undefined,
        { model: provider('openai/none') },
        { name: 'GatewayModelNotFoundError', statusCode: 404, isRetryable: false, modelId: 'openai/none' },
      ],
      [
        'an option is wrong',
        undefined,
        { providerOptions: { gateway: { n: 'x' } } },
        { name: 'GatewayInvalidRequestError', statusCode: 400, isRetryable: false },
      ],
    ]
    for (const [says, step, more, expected] of rows) {
      if (step) await play('openai', step)
      const error = await caught(sdk.generateText({ ...call, ...more }))
      t.match(error, expected, says)
      const streamed: unknown[] = []
      const stream = sdk.streamText({ ...call, ...more, onError: ({ error }) => void streamed.push(error) })
      await stream.consumeStream({ onError: () => undefined })
      t.match(streamed[0], { statusCode: error?.statusCode }, `${says}, streamed`)
    }
    t.match(await caught(sdk.generateText({ ...call, model: of('mgw_unknown')('openai/gpt') })), {
      name: 'GatewayAuthenticationError',
    })
    t.match(await caught(of('mgw_unknown').getAvailableModels()), {
      name: 'GatewayAuthenticationError',
      statusCode: 401,
    })
    t.match(await caught(of('mgw_unknown').getCredits()), { name: 'GatewayAuthenticationError', statusCode: 401 })

    const poor = await tenant()
    t.match(await caught(sdk.generateText({ ...call, model: of(poor.key)('openai/gpt') })), {
      name: 'GatewayInvalidRequestError',
      statusCode: 402,
      isRetryable: false,
    })
    await command('iam.add', { key: poor.id, type: 'deny_models', models: ['gpt'] })
    const denied = of(poor.key)
    const forbidden = { name: 'GatewayForbiddenError', statusCode: 403, isRetryable: false }
    t.match(await caught(sdk.generateText({ ...call, model: denied('openai/gpt') })), forbidden)
    const { models: listed } = await denied.getAvailableModels()
    t.notOk(
      listed.some(({ id }) => id === 'openai/gpt'),
      'what a key may not call is not listed for it',
    )
    t.match(await denied.getCredits(), { balance: '0', totalUsed: '0' })
    const limited = await caught(denied.getCredits())
    t.match(limited, { name: 'GatewayRateLimitError', statusCode: 429, isRetryable: true })

    const before = (await upstream.record('openai')).length
    await play('openai', { status: 400, body: { error: bare } })
    await caught(sdk.generateText({ ...call, maxRetries: 2 }))
    t.equal((await upstream.record('openai')).length, before + 1, 'what is wrong is sent once')
  })

  t.test(`AI SDK ${major}: a failing provider is replaced before its client has anything`, async t => {
    await play('openai', { status: 500 })
    await play('spare', { text: 'from the spare', usage })
    const stream = sdk.streamText({ ...call, model: provider('both'), onError })
    t.equal(await stream.text, 'from the spare')
    t.match(await stream.providerMetadata, { gateway: { usedProvider: 'spare' } })
    await play('openai', { status: 500 })
    await play('spare', { text: 'by a list', usage })
    const options = { gateway: { models: ['spare/both'], user: 'somebody', order: ['x'], tags: ['a'] } }
    t.equal((await sdk.generateText({ ...call, providerOptions: options })).text, 'by a list')
    t.match((await last('spare')).body, { user: /^[0-9a-f]{32}$/ })
    t.same(seen, [])
  })

  t.test(`AI SDK ${major}: what is not served says where it is`, async t => {
    const value = ['a']
    const all = provider as unknown as Record<string, ((id: string) => never) & (() => Promise<unknown>)>
    const rows: [name: string, run: () => Promise<unknown>, says: RegExp][] = [
      [
        'embed',
        () => sdk.embedMany({ model: provider.textEmbeddingModel('m'), values: value, maxRetries: 0 }),
        /\/v1\/embeddings/,
      ],
      [
        'image',
        () => imageOf(sdk)({ model: all.imageModel!('m'), prompt: 'a', maxRetries: 0 } as never),
        /\/v1\/images\/generations/,
      ],
    ]
    if (all.rerankingModel) {
      rows.push([
        'rerank',
        () => sdk.rerank({ model: all.rerankingModel!('m'), documents: value, query: 'a', maxRetries: 0 } as never),
        /\/v1\/rerank/,
      ])
    }
    if (all.getSpendReport) {
      const report = all.getSpendReport as unknown as (range: object) => Promise<unknown>
      rows.push(['report', () => report({ startDate: '2026-01-01', endDate: '2026-01-02' }), /not served/])
      const info = all.getGenerationInfo as unknown as (of: object) => Promise<unknown>
      rows.push(['generation', () => info({ id: 'gen_1' }), /not served/])
    }
    for (const [name, run, says] of rows) {
      const error = await caught(run())
      t.match(error, { statusCode: 404, message: says }, name)
      t.equal(error?.name, major === 7 ? 'GatewayNotFoundError' : 'GatewayInternalServerError', name)
    }
  })

  t.test(`AI SDK ${major}: an abort stops a provider at once where that costs nothing, or ends the charge`, async t => {
    for (const id of ['stops', 'free']) {
      const before = (await upstream.record(id)).length
      await play(id, { chunks: ['one ', 'two ', 'three'], hold: 1 })
      const abort = new AbortController()
      const stream = sdk.streamText({
        ...call,
        model: provider(`${id}/${id}`),
        abortSignal: abort.signal,
        onError,
      })
      let left = 0
      for await (const part of stream.fullStream) {
        if (part.type !== 'text-delta') continue
        left = Date.now()
        abort.abort()
      }
      const entry = (await upstream.record(id, { requests: before + 1, ended: before + 1 })).at(-1)!
      t.equal(entry.outcome, 'aborted', id)
      const value = entry.abortedAt! - left
      timing(t, { id: 'SF-10', what: `AI SDK ${major}, ${id}: abort to its provider`, value, unit: 'ms', atMost: 100 })
    }
    t.same(seen, [])
  })
}

t.test('a client that does not read holds up itself alone', async t => {
  const piece = event({ choices: [{ index: 0, delta: { content: 'x'.repeat(1000) } }] })
  await play('free', { raw: [{ text: piece, times: 1e6 }] })
  const prompt = [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }]
  const slow = await callAiSdk(gateway, 'free/free', { prompt }, 'stream')
  await play('openai', { text: 'ok', usage })
  for (let n = 0; n < 5; n++) {
    const other = await callAiSdk(gateway, 'openai/gpt', { prompt }, 'whole')
    t.match(await other.json(), { content: [{ text: 'ok' }] })
  }
  t.match((await upstream.record('free')).at(-1), { outcome: null }, 'its provider waits for it')
  await slow.body!.cancel()
  const [ended] = (await upstream.record('free', { ended: (await upstream.record('free')).length })).slice(-1)
  t.match(ended, { outcome: 'aborted' })
  t.ok(ended!.chunksSent < 1e5, `${ended!.chunksSent} of a million pieces were sent`)
})

t.test('an unknown version has an error that its clients read', async t => {
  for (const [method, path] of [
    ['POST', '/v5/ai/language-model'],
    ['GET', '/v5/ai/config'],
    ['POST', '/v1/realtime/client-secrets'],
  ] as const) {
    const { status, body } = await answerOf(
      fetch(`${gateway.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
        ...(method === 'POST' && { body: '{}' }),
      }),
    )
    t.match({ status, body }, { status: 404, body: { error: { message: String, type: 'not_found' } } }, path)
  }
})

async function answerOf(response: Promise<Response>): Promise<{ status: number; body: unknown }> {
  const got = await response
  return { status: got.status, body: await got.json() }
}

/** A search tool of a provider, as its package makes one. */
function searchTool(major: number, id = 'openai.web_search'): never {
  const inputSchema = z.object({ query: z.string().optional() })
  const type = major === 5 ? 'provider-defined' : 'provider'
  return {
    type,
    id,
    name: 'web_search',
    args: {},
    inputSchema,
    outputSchema: z.any(),
    isProviderExecuted: true,
  } as never
}

/** By its name in this version. */
function imageOf(sdk: object): (options: never) => Promise<unknown> {
  const by = sdk as Record<string, (options: never) => Promise<unknown>>
  return by.generateImage ?? by.experimental_generateImage!
}
