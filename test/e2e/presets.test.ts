/** Request fields that virtual models set: client wires, provider wires and operations (docs/virtual-models.md). */
import t from 'tap'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { type Received, scripted } from '../helpers/scripted.ts'

type Tree = Record<string, unknown>

const provider = await scripted(t)
provider.answers({ status: 400, json: { error: { message: 'enough', type: 'invalid_request_error' } } })
const priced = { pricing: { prompt: '1', completion: '1' }, supports: ['streaming', 'tools', 'json_output'] }
const at = (id: string, wires: Tree, models: Tree[], auth?: Tree): [string, Tree] => [
  id,
  { base_url: `${provider.url}/${id}`, wires, models, ...(auth && { auth }) },
]
const chats = {
  openai: 'openai.chat',
  claude: 'anthropic.messages',
  answers: 'openai.responses',
  google: 'gemini.generate',
} as const
type Wire = keyof typeof chats
const chatModels = Object.keys(chats).map(id => ({ id, name: id, family: 'test', input: ['text'], output: ['text'] }))
const media = [
  { id: 'vectors', output: ['embedding'] },
  { id: 'pictures', output: ['image'], operations: ['images', 'image_edits'] },
  { id: 'voice', output: ['audio'], operations: ['speech'], tokenizer: 'characters' },
  { id: 'ears', input: ['audio'], output: ['text'], operations: ['transcriptions'] },
  { id: 'sorted', output: ['text'], operations: ['rerank'] },
].map(one => ({ name: one.id, family: 'test', input: ['text'], ...one }))
const routes = {
  virtual_models: [
    ...Object.keys(chats).map(use => ({
      id: `set-${use}`,
      use: [use],
      defaults: { max_tokens: 77, top_p: 0.5 },
      overrides: { temperature: 0.25 },
      system: 'Be brief.',
    })),
    { id: 'outer', use: ['set-openai'], defaults: { max_tokens: 5 }, overrides: { user: null }, system: 'Outer.' },
    { id: 'stopping', use: ['openai'], defaults: { stop: ['END'], seed: 7 } },
    { id: 'two', use: ['openai', 'claude'], defaults: { provider: { only: ['claude'] } } },
    { id: 'anywhere', use: ['openai', 'claude'], overrides: { provider: null, routing: null } },
    { id: 'set-vectors', use: ['vectors'], defaults: { dimensions: 64 } },
    { id: 'set-pictures', use: ['pictures'], defaults: { n: 2, size: '512x512' }, overrides: { quality: 'low' } },
    { id: 'set-voice', use: ['voice'], defaults: { voice: 'anna' }, overrides: { speed: 1.5 } },
    { id: 'set-ears', use: ['ears'], defaults: { language: 'de' }, overrides: { temperature: 0.5 } },
    { id: 'set-sorted', use: ['sorted'], defaults: { top_n: 1 } },
  ],
}
const gateway = await startGateway(t, {
  models: [...chatModels, ...media],
  providers: Object.fromEntries([
    ...Object.entries(chats).map(([id, wire]) => {
      const auth = id === 'claude' ? { scheme: 'header', header: 'x-api-key', secret: 'sk-any-secret' } : undefined
      return at(id, { chat: wire }, [{ ...testMapping, ...priced, model: id, id: `${id}-1` }], auth)
    }),
    at(
      'media',
      {
        embeddings: 'openai.embeddings',
        images: 'openai.images',
        image_edits: 'openai.image-edits',
        speech: 'openai.speech',
        transcriptions: 'openai.transcriptions',
        rerank: 'jina.rerank',
      },
      [
        { model: 'vectors', pricing: { prompt: '1' } },
        { model: 'pictures', pricing: { request: '0.01' } },
        { model: 'voice', pricing: { prompt: '15' } },
        { model: 'ears', pricing: { input_audio_hour: '0.1' } },
        { model: 'sorted', pricing: { prompt: '1' } },
      ],
    ),
  ]),
  config: { catalog: { routes: './routes.d' } },
  files: { 'config/routes.d/own.yaml': JSON.stringify(routes) },
})

/** The request that the provider got. */
async function sent(path: string, body: unknown, headers?: Record<string, string | null>): Promise<Received> {
  const before = provider.got.length
  const answer = await gateway.post(path, body, headers)
  if (provider.got.length !== before + 1) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return provider.last()
}
const sentJson = async (path: string, body: unknown) => (await sent(path, body)).json as Tree

type Fields = { system?: string; max?: number; temperature?: number }
/** The same request on each client wire; one of Messages always has a limit. */
const clients: Record<string, (model: string, fields: Fields) => [path: string, body: Tree]> = {
  chat: (model, { system, max, temperature }) => [
    '/v1/chat/completions',
    {
      model,
      messages: [...(system ? [{ role: 'system', content: system }] : []), { role: 'user', content: 'Hi' }],
      ...(max && { max_tokens: max }),
      ...(temperature && { temperature }),
    },
  ],
  messages: (model, { system, max = 40, temperature }) => [
    '/v1/messages',
    {
      model,
      max_tokens: max,
      messages: [{ role: 'user', content: 'Hi' }],
      ...(system && { system: [{ type: 'text', text: system, cache_control: { type: 'ephemeral' } }] }),
      ...(temperature && { temperature }),
    },
  ],
  responses: (model, { system, max, temperature }) => [
    '/v1/responses',
    {
      model,
      input: 'Hi',
      ...(system && { instructions: system }),
      ...(max && { max_output_tokens: max }),
      ...(temperature && { temperature }),
    },
  ],
  gemini: (model, { system, max, temperature }) => [
    `/v1beta/models/${model}:generateContent`,
    {
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
      ...(system && { systemInstruction: { parts: [{ text: system }] } }),
      generationConfig: { ...(max && { maxOutputTokens: max }), ...(temperature && { temperature }) },
    },
  ],
}
const textOf = (value: unknown): string => JSON.stringify(value)
/** Reads a body of each provider wire. */
const read: Record<Wire, (body: Tree) => { system: string; max: unknown; temperature: unknown; topP: unknown }> = {
  openai: body => ({
    system: (body.messages as { role: string; content: string }[])
      .filter(({ role }) => role === 'system')
      .map(({ content }) => content)
      .join('|'),
    max: body.max_tokens ?? body.max_completion_tokens,
    temperature: body.temperature,
    topP: body.top_p,
  }),
  claude: body => ({
    system:
      typeof body.system === 'string'
        ? body.system
        : (body.system as { text: string }[]).map(({ text }) => text).join('|'),
    max: body.max_tokens,
    temperature: body.temperature,
    topP: body.top_p,
  }),
  answers: body => ({
    system: [
      ...(body.instructions ? [String(body.instructions).replaceAll('\n\n', '|')] : []),
      ...(Array.isArray(body.input) ? body.input : [])
        .filter(({ role }: Tree) => role === 'system')
        .map(({ content }: Tree) => (typeof content === 'string' ? content : textOf(content))),
    ].join('|'),
    max: body.max_output_tokens,
    temperature: body.temperature,
    topP: body.top_p,
  }),
  google: body => {
    const config = body.generationConfig as Tree
    return {
      system: (body.systemInstruction as { parts: { text: string }[] }).parts.map(({ text }) => text).join('|'),
      max: config.maxOutputTokens,
      temperature: config.temperature,
      topP: config.topP,
    }
  },
}

for (const wire of Object.keys(chats) as Wire[]) {
  for (const [client, ask] of Object.entries(clients)) {
    t.test(
      `${client} over ${chats[wire]}: defaults fill, overrides replace, the system prompt comes first`,
      async t => {
        const bare = read[wire](await sentJson(...ask(`set-${wire}`, {})))
        // Claude takes either of the two.
        const topP = wire === 'claude' ? undefined : 0.5
        const limit = client === 'messages' ? 40 : 77
        t.strictSame(bare, { system: 'Be brief.', max: limit, temperature: 0.25, topP })
        const own = read[wire](await sentJson(...ask(`set-${wire}`, { system: 'Mine.', max: 30, temperature: 0.9 })))
        t.strictSame(own, { system: 'Be brief.|Mine.', max: 30, temperature: 0.25, topP })
      },
    )
  }
}

t.test('members of a native body that the gateway does not know stay', async t => {
  const body = await sentJson('/v1/messages', {
    model: 'set-claude',
    max_tokens: 9,
    system: [{ type: 'text', text: 'Mine.', cache_control: { type: 'ephemeral' } }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }] }],
    metadata: { user_id: 'u' },
  })
  t.match(body, { max_tokens: 9, temperature: 0.25 })
  t.match(body.messages, [{ content: [{ cache_control: { type: 'ephemeral' } }] }])
  t.match(textOf(body.system), 'cache_control')
})

t.test('of nested virtual models the outer one wins', async t => {
  const body = await sentJson(...clients.chat!('outer', { system: 'Mine.' }))
  t.match(read.openai(body), { system: 'Outer.|Be brief.|Mine.', max: 5, temperature: 0.25 })
})

t.test('an operator sets fields that clients may not pass', async t => {
  t.match(await sentJson(...clients.chat!('stopping', {})), { stop: ['END'], seed: 7 })
})

t.test('providers are preferences as of a client', async t => {
  const { path } = await sent(...clients.chat!('two', {}))
  t.match(path, '/claude/')
})

t.test('an operator removes what a client says of routing', async t => {
  const [path, body] = clients.chat!('anywhere', {})
  for (const said of [
    { provider: { only: ['claude'] } },
    { provider: { max_price: { prompt: 0 } }, routing: 'price' },
  ]) {
    t.match((await sent(path, { ...body, ...said })).path, '/openai/')
  }
})

t.test('a legacy completion of several prompts begins each with the system prompt', async t => {
  const before = provider.got.length
  await gateway.post('/v1/completions', { model: 'set-openai', prompt: ['a', 'b'], max_tokens: 3 })
  for (const { json } of provider.got.slice(before)) {
    t.match(json, { messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user' }], temperature: 0.25 })
  }
})

t.test('a stream gets the same', async t => {
  const [path, body] = clients.chat!('set-openai', {})
  t.match(await sentJson(path, { ...body, stream: true }), { temperature: 0.25, max_tokens: 77 })
})

const picture = { model: 'set-pictures', prompt: 'a cat' }
t.test('embeddings, images, speech and rerank have their own fields', async t => {
  t.match(await sentJson('/v1/embeddings', { model: 'set-vectors', input: 'a' }), { dimensions: 64 })
  t.match(await sentJson('/v1/embeddings', { model: 'set-vectors', input: 'a', dimensions: 9 }), { dimensions: 9 })
  t.match(await sentJson('/v1/images/generations', picture), { n: 2, size: '512x512', quality: 'low' })
  const own = { ...picture, n: 1, quality: 'high', size: '1024x1024' }
  t.match(await sentJson('/v1/images/generations', own), { n: 1, size: '1024x1024', quality: 'low' })
  const speech = { model: 'set-voice', input: 'Hi', speed: 1 }
  t.match(await sentJson('/v1/audio/speech', speech), { voice: 'anna', speed: 1.5 })
  const rerank = { model: 'set-sorted', query: 'q', documents: ['a', 'b'] }
  t.match(await sentJson('/v1/rerank', rerank), { top_n: 1 })
})

t.test('a form has them, too', async t => {
  const form = (fields: Record<string, string>) => {
    const data = new FormData()
    for (const [name, value] of Object.entries(fields)) data.set(name, value)
    data.set('file', new Blob([Buffer.alloc(64, 'RIFF')]), 'a.wav')
    return data
  }
  const ask = async (fields: Record<string, string>) => {
    const { port, key } = gateway
    await fetch(`http://127.0.0.1:${port}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: form(fields),
    }).then(answer => answer.text())
    return provider.last().body.toString('latin1')
  }
  const part = (name: string, value: string) => new RegExp(`name="${name}"\\r\\n\\r\\n${value}\\r\\n`)
  const bare = await ask({ model: 'set-ears' })
  t.match(bare, part('language', 'de'))
  t.match(bare, part('temperature', '0.5'))
  const own = await ask({ model: 'set-ears', language: 'fr', temperature: '1' })
  t.match(own, part('language', 'fr'))
  t.match(own, part('temperature', '0.5'))
})
