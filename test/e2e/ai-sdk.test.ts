/** The AI SDK's own clients, unmodified, over providers of three wires. */
import type * as ai6 from 'ai-6'
import t from 'tap'
import { z } from 'zod'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { startUpstream } from '../helpers/upstream.ts'

const upstream = await startUpstream(t, { key: upstreamSecret })
const header = (name: string) => ({ scheme: 'header', header: name, secret: upstreamSecret })
const supports = [...testMapping.supports, 'web_search']
const pricing = { ...testMapping.pricing, web_search: '0.01' }
const offer = (model: string, id: string) => ({ ...testMapping, supports, pricing, model, id })
const gateway = await startGateway(t, {
  providers: {
    openai: { base_url: upstream.url('openai'), models: [offer('gpt', 'gpt-1')] },
    anthropic: {
      base_url: upstream.url('anthropic'),
      auth: header('x-api-key'),
      headers: { 'anthropic-version': '2023-06-01' },
      wires: { chat: 'anthropic.messages' },
      models: [{ ...offer('claude', 'claude-sonnet-5'), reasoning_efforts: ['none', 'low', 'medium', 'high'] }],
    },
    google: {
      base_url: `${upstream.url('google').replace(/\/v1$/, '')}/v1beta`,
      auth: header('x-goog-api-key'),
      wires: { chat: 'gemini.generate' },
      models: [offer('gemini', 'gemini-3.5-flash')],
    },
  },
})

/** By a variable name: the types of the three differ where the tests do not. */
const load = async (major: number): Promise<typeof ai6> => import(`ai-${major}`)
const sdks = [
  { sdk: await load(5), prefix: '/v1/ai', major: 5 },
  { sdk: await load(6), prefix: '/v3/ai', major: 6 },
  { sdk: await load(7), prefix: '/v4/ai', major: 7 },
]
const models = ['openai/gpt', 'anthropic/claude', 'google/gemini']
const play = (model: string, ...steps: Parameters<typeof upstream.script>[1]) =>
  upstream.script(model.split('/')[0]!, steps)
const usage = { prompt: 40, completion: 9, reasoning: 0 }

for (const { sdk, prefix, major } of sdks) {
  const provider = sdk.createGateway({ baseURL: `${gateway.url}${prefix}`, apiKey: gateway.key })

  t.test(`AI SDK ${major} lists models and reads credits`, async t => {
    const { models: listed } = await provider.getAvailableModels()
    t.ok(listed.some(({ id }) => id === 'openai/gpt'))
    t.match(await provider.getCredits(), { balance: /^-?\d+(\.\d+)?$/, totalUsed: /^\d+(\.\d+)?$/ })
  })

  for (const model of models) {
    t.test(`AI SDK ${major} with ${model}: text, streams, objects and tools`, async t => {
      await play(model, { text: 'Hello there', usage })
      const whole = await sdk.generateText({ model: provider(model), prompt: 'Hi', maxRetries: 0 })
      t.equal(whole.text, 'Hello there')
      t.match(whole.usage, { inputTokens: 40, outputTokens: 9, totalTokens: 49 })
      t.equal(whole.finishReason, 'stop')

      await play(model, { chunks: ['one ', 'two'], usage })
      const errors: unknown[] = []
      const onError = ({ error }: { error: unknown }) => void errors.push(error)
      const stream = sdk.streamText({ model: provider(model), prompt: 'Hi', maxRetries: 0, onError })
      t.equal(await stream.text, 'one two')
      t.match(await stream.usage, { inputTokens: 40, outputTokens: 9 })

      const weather = sdk.tool({
        description: 'Weather of a city',
        inputSchema: z.object({ city: z.string() }),
        execute: async ({ city }: { city: string }) => `cold in ${city}`,
      })
      const called = ['Oslo', 'Rome'].map(city => ({ name: 'weather', args: { city } }))
      await play(model, { toolCalls: called, usage }, { text: 'Cold', usage })
      const loop = sdk.streamText({
        model: provider(model),
        prompt: 'Weather?',
        tools: { weather },
        stopWhen: sdk.stepCountIs(3),
        maxRetries: 0,
        onError,
      })
      t.equal(await loop.text, 'Cold')
      const steps = await loop.steps
      t.same(
        steps[0]!.toolResults.map(({ output }) => output),
        ['cold in Oslo', 'cold in Rome'],
      )

      await play(model, { text: '{"surname":"Lovelace"}', usage })
      const schema = z.object({ surname: z.string() })
      const { object } = await sdk.generateObject({ model: provider(model), prompt: 'Who?', schema, maxRetries: 0 })
      t.same(object, { surname: 'Lovelace' })

      await play(model, { reasoning: 'Let me think', text: 'Done', usage })
      const gatewayOptions = { gateway: { reasoning_effort: 'high' } }
      const thought = await sdk.generateText({
        model: provider(model),
        prompt: 'Hi',
        providerOptions: gatewayOptions,
        maxRetries: 0,
      })
      t.match({ text: thought.text, reasoning: thought.reasoningText }, { text: 'Done', reasoning: 'Let me think' })
      t.same(errors, [])
    })
  }

  t.test(`AI SDK ${major} raises the class of each error`, async t => {
    const failure = (wanted: object) => t.rejects(sdk.generateText({ maxRetries: 0, prompt: 'Hi', ...wanted } as never))
    await failure({ model: provider('openai/none') })
    const unknown = await sdk
      .generateText({ model: provider('openai/none'), prompt: 'Hi', maxRetries: 0 })
      .catch((error: unknown) => error)
    t.match(unknown, { name: 'GatewayModelNotFoundError', statusCode: 404, modelId: 'openai/none' })
    await play('openai/gpt', { chunks: ['one ', 'two '], fault: 'error-event', afterChunks: 1 })
    const seen: unknown[] = []
    const stream = sdk.streamText({
      model: provider('openai/gpt'),
      prompt: 'Hi',
      maxRetries: 0,
      onError: ({ error }) => void seen.push(error),
    })
    await stream.consumeStream()
    t.equal(seen.length, 1)
    t.equal(await stream.finishReason, 'error')
    const embedding = sdk.embed({ model: provider.textEmbeddingModel('openai/x'), value: 'a', maxRetries: 0 })
    t.match(await embedding.catch((error: unknown) => error), { statusCode: 404, message: /\/v1\/embeddings/ })
  })

  t.test(`AI SDK ${major}: options reach the provider that they name, and warnings the caller`, async t => {
    await play('openai/gpt', { text: 'ok', usage })
    const options = { openai: { user: 'for-openai' }, anthropic: { metadata: { userId: 'for-anthropic' } } }
    const stream = sdk.streamText({
      model: provider('openai/gpt'),
      prompt: 'Hi',
      seed: 1,
      topK: 2,
      stopSequences: ['x'],
      providerOptions: options,
      maxRetries: 0,
    })
    t.equal(await stream.text, 'ok')
    t.equal((await stream.warnings)?.length, 3)
    const sent = (await upstream.record('openai')).at(-1)!
    t.match(sent.body, { user: /^[0-9a-f]{32}$/ })
    t.notMatch(JSON.stringify(sent.body), 'for-anthropic')
  })

  t.test(
    `AI SDK ${major}: files arrive, searches are reported under the caller's name, and an abort reaches the provider`,
    async t => {
      const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
      for (const model of models) {
        await play(model, { text: 'A pixel', usage })
        const content = [
          { type: 'text' as const, text: 'What?' },
          { type: 'image' as const, image: Buffer.from(pixel, 'base64') },
        ]
        await sdk.generateText({ model: provider(model), messages: [{ role: 'user', content }], maxRetries: 0 })
        const sent = (await upstream.record(model.split('/')[0]!)).at(-1)!
        t.match(JSON.stringify(sent.body), pixel, model)
      }

      await play('openai/gpt', { text: 'News', usage })
      const body = {
        prompt: [{ role: 'user', content: [{ type: 'text', text: 'What is new?' }] }],
        tools: [
          { type: 'provider', id: 'openai.web_search', name: 'search', args: { searchContextSize: 'low' } },
          { type: 'provider', id: 'acme.x', name: 'other', args: {} },
        ],
        toolChoice: { type: 'tool', toolName: 'search' },
      }
      const told = await fetch(`${gateway.url}${prefix}/language-model`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${gateway.key}`,
          'content-type': 'application/json',
          'ai-language-model-id': 'openai/gpt',
          'ai-language-model-streaming': 'false',
        },
        body: JSON.stringify(body),
      })
      const answer: unknown = await told.json()
      t.match(answer, {
        content: [
          { type: 'text', text: 'News' },
          { type: 'tool-call', toolName: 'search', input: '{"query":"What is new?"}', providerExecuted: true },
          { type: 'tool-result', toolName: 'search' },
        ],
        warnings: [{ type: major === 5 ? 'unsupported-tool' : 'unsupported' }],
      })
      if (!told.ok) t.comment(JSON.stringify(answer))

      const before = (await upstream.record('openai')).length
      await play('openai/gpt', { chunks: ['one ', 'two ', 'three'], hold: 1 })
      let at = 0
      const abort = new AbortController()
      const stream = sdk.streamText({
        model: provider('openai/gpt'),
        prompt: 'Hi',
        abortSignal: abort.signal,
        maxRetries: 0,
        onError: () => undefined,
      })
      for await (const part of stream.fullStream) {
        if (part.type !== 'text-delta') continue
        at = performance.now()
        abort.abort()
      }
      const asked = await upstream.record('openai', { requests: before + 1, ended: before + 1 })
      const left = performance.now() - at
      t.equal(asked.at(-1)!.outcome, 'aborted')
      t.comment(`the provider's stream ended ${Math.round(left)} ms after the abort`)
    },
  )
}

t.test('unknown paths and wrong methods below a prefix answer in the form of the protocol', async t => {
  const headers = { authorization: `Bearer ${gateway.key}` }
  for (const prefix of ['/v1/ai', '/v2/ai', '/v3/ai', '/v4/ai']) {
    const unknown = await fetch(`${gateway.url}${prefix}/nothing`, { headers })
    t.match(
      { status: unknown.status, body: await unknown.json() },
      { status: 404, body: { error: { type: 'not_found' } } },
    )
    t.equal(unknown.headers.get('access-control-allow-origin'), '*')
    const wrong = await fetch(`${gateway.url}${prefix}/language-model`, { headers })
    t.match({ status: wrong.status, body: await wrong.json() }, { status: 405, body: { error: { message: String } } })
    const denied = await fetch(`${gateway.url}${prefix}/config`)
    t.match(await denied.json(), { error: { type: 'authentication_error' } })
  }
})
