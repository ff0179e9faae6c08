/** One exploit of each kind against every endpoint that takes it: what one tenant sends never harms another one. */
import { connect, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { wavHead } from '../../src/lib/wav.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { unlimited } from '../helpers/rates.ts'
import { type Answer, scripted } from '../helpers/scripted.ts'

type Tree = Record<string, unknown>

const SECRET = 'sk-A8f3kQz91LmXw7Tn55Rb2Yc6Vd0Jh4Ge'
const MIB = 1024 * 1024
const json = 'application/json'
const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(24, 7)])
const wav = Buffer.concat([wavHead(8000, 8000), Buffer.alloc(8000)])
const picture = `data:image/png;base64,${png.toString('base64')}`

/** What a provider of each operation answers, by the last part of the path that it is called at. */
const small: Readonly<Record<string, object>> = {
  completions: {
    choices: [{ message: { content: 'a' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
  },
  messages: {
    type: 'message',
    content: [
      { type: 'thinking', thinking: 'hm', signature: 'SIGNATURE' },
      { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
    ],
    stop_reason: 'tool_use',
    usage: { input_tokens: 1, output_tokens: 1 },
  },
  embeddings: { data: [{ index: 0, object: 'embedding', embedding: [0.1] }], usage: { prompt_tokens: 1 } },
  generations: { data: [{ b64_json: png.toString('base64') }] },
  edits: { data: [{ b64_json: png.toString('base64') }] },
  transcriptions: { text: 'a', duration: 1 },
  moderations: { results: [{ flagged: false, categories: {}, category_scores: {} }] },
  rerank: { results: [{ index: 0, relevance_score: 0.5 }], meta: { billed_units: { search_units: 1 } } },
  ocr: { pages: [{ index: 0, markdown: 'a', images: [] }], usage_info: { pages_processed: 1 } },
  systemone: { answers: { q: { type: 'noul', noul: 0.5 } }, usage: { input_tokens: 1, output_tokens: 1 } },
}
type Serve = Extract<Answer, (...given: never) => unknown>
const usual: Serve = (res, { path }) => {
  const last = path.split('/').at(-1)!
  const [type, body] = last === 'speech' ? ['audio/wav', wav] : [json, JSON.stringify(small[last])]
  res.writeHead(200, { 'content-type': type }).end(body)
}

const rows: readonly [id: string, wires: Tree, model: Tree, mapping: Tree][] = [
  ['chat', { chat: 'openai.chat' }, { input: ['text', 'image', 'file'], output: ['text'] }, testMapping],
  [
    'claude',
    { chat: 'anthropic.messages' },
    { input: ['text'], output: ['text'] },
    { ...testMapping, reasoning_efforts: ['none', 'low'] },
  ],
  ['embeddings', { embeddings: 'openai.embeddings' }, { output: ['embedding'] }, { pricing: { prompt: '1' } }],
  [
    'images',
    { images: 'openai.images', image_edits: 'openai.image-edits' },
    { input: ['text', 'image'], output: ['image'] },
    { pricing: { per_image: { default: '0.04' } }, supports: ['vision'] },
  ],
  [
    'speech',
    { speech: 'openai.speech' },
    { output: ['audio'], tokenizer: 'characters' },
    { pricing: { prompt: '15' } },
  ],
  [
    'transcriptions',
    { transcriptions: 'openai.transcriptions' },
    { input: ['audio'], output: ['text'], operations: ['transcriptions'] },
    { pricing: { input_audio_hour: '0.36' } },
  ],
  [
    'moderations',
    { moderations: 'openai.moderations' },
    { input: ['text', 'image'], output: ['moderation'] },
    { pricing: { request: '0.002' }, supports: ['vision'] },
  ],
  ['rerank', { rerank: 'cohere.rerank' }, { output: ['rerank'] }, { pricing: { request: '0.002' } }],
  [
    'ocr',
    { ocr: 'mistral.ocr' },
    { input: ['text', 'image', 'file'], output: ['text'], operations: ['ocr'] },
    { pricing: { ocr_page: '0.004' } },
  ],
  ['decisions', { decisions: 'typesafe.decisions' }, { output: ['decision'] }, { pricing: { prompt: '10' } }],
]
const [cheap, dear] = await Promise.all([scripted(t), scripted(t)])
const offered = ({ url }: { url: string }, name: string, priority: number) =>
  rows.map(([id, wires, , mapping]) => [
    `${name}-${id}`,
    {
      base_url: url,
      wires,
      priority,
      auth: { scheme: 'bearer', secret: SECRET },
      models: [{ id: 'x-1', supports: [], ...mapping, model: id }],
    },
  ])
const media = ['images', 'speech', 'transcriptions', 'embeddings', 'moderations', 'rerank', 'ocr', 'systemone']
const gateway = await startGateway(t, {
  providers: Object.fromEntries([...offered(cheap, 'cheap', 2), ...offered(dear, 'dear', 1)]) as Record<string, Tree>,
  models: rows.map(([id, , model]) => ({
    id,
    name: id,
    family: 'test',
    stability: 'stable',
    input: ['text'],
    ...model,
  })),
  config: { endpoints: unlimited('chat', 'responses', ...media, 'mcp') },
})
const command = commandsOf(gateway)
async function newKey(name: string): Promise<string> {
  const { id: organization } = await command<{ id: string }>('orgs.create', { name })
  await command('credits.add', { organization, amount: '50' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
  return (await command<{ key: string }>('keys.create', { project, name: 'k' })).key
}
const [hostile, other] = await Promise.all([newKey('Hostile'), newKey('Other')])

interface Asked {
  readonly path: string
  readonly body: Tree | FormData
  readonly headers?: Readonly<Record<string, string>>
  /** Of the endpoint's body. */
  readonly limit?: number
}
function form(fields: Readonly<Record<string, string | Blob>>): FormData {
  const made = new FormData()
  for (const [name, value] of Object.entries(fields)) made.append(name, value)
  return made
}
const user = (content: unknown) => [{ role: 'user', content }]
const spoken = (model: string) => ({
  'ai-gateway-protocol-version': '0.0.1',
  'ai-language-model-specification-version': '3',
  'ai-language-model-streaming': 'false',
  'ai-language-model-id': model,
})
const tool = (name: string, args: Tree) => ({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: { name, arguments: args },
})
const asked = (path: string, body: Tree | FormData, more: Partial<Asked> = {}): Asked => ({ path, body, ...more })

/** A request of each endpoint, with this text and this model where it has one. */
const endpoints: Readonly<Record<string, (text?: string, model?: string) => Asked>> = {
  responses: (input = 'Hi', model = 'chat') => asked('/v1/responses', { model, input }),
  gemini: (text = 'Hi', model = 'chat') =>
    asked(`/v1beta/models/${model}:generateContent`, { contents: [{ role: 'user', parts: [{ text }] }] }),
  'AI SDK': (text = 'Hi', model = 'chat') =>
    asked('/v3/ai/language-model', { prompt: user([{ type: 'text', text }]) }, { headers: spoken(model) }),
  embeddings: (input = 'Hi', model = 'embeddings') => asked('/v1/embeddings', { model, input }),
  images: (prompt = 'Hi', model = 'images') => asked('/v1/images/generations', { model, prompt }, { limit: MIB }),
  edits: (prompt = 'Hi', model = 'images') =>
    asked('/v1/images/edits', { model, prompt, images: [{ image_url: picture }] }),
  'edits as a form': (prompt = 'Hi', model = 'images') =>
    asked('/v1/images/edits', form({ model, prompt, image: new Blob([png]) })),
  speech: (input = 'Hi', model = 'speech') =>
    asked('/v1/audio/speech', { model, input, voice: 'alloy', response_format: 'wav' }, { limit: 64 * 1024 }),
  transcriptions: (prompt = 'Hi', model = 'transcriptions') =>
    asked('/v1/audio/transcriptions', form({ model, prompt, file: new Blob([wav]) }), { limit: 25 * MIB }),
  moderations: (input = 'Hi', model = 'moderations') => asked('/v1/moderations', { model, input }),
  rerank: (query = 'Hi', model = 'rerank') => asked('/v1/rerank', { model, query, documents: ['a'] }),
  OCR: (name = 'Hi', model = 'ocr') =>
    asked('/v1/ocr', {
      model,
      document: { type: 'document_url', document_url: `https://a.example/${name}.pdf` },
    }),
  decisions: (state = 'Hi', model = 'decisions') =>
    asked('/v1/systemone', { model, state, questions: { q: { type: 'noul', instructions: 'a' } } }, { limit: 4 * MIB }),
  MCP: (text = 'Hi', model = 'chat') =>
    asked('/mcp', tool('chat', { model, messages: user(text) }), { limit: 4 * MIB }),
}

interface Got {
  readonly status: number
  readonly text: string
}
/** A tool's error counts as the status that it names. */
async function send(key: string, { path, body, headers = {} }: Asked): Promise<Got> {
  const isForm = body instanceof FormData
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, ...(!isForm && { 'content-type': json }), ...headers },
    body: isForm ? body : JSON.stringify(body),
  })
  const text = Buffer.from(await response.arrayBuffer()).toString('latin1')
  const failed = path === '/mcp' ? /"text":"(?:Error: (\d+)|Invalid arguments)/.exec(text) : undefined
  return { status: failed ? Number(failed[1] ?? 400) : response.status, text }
}
function both(answer: Answer): void {
  cheap.answers(answer)
  dear.answers(answer)
}

t.beforeEach(() => both(usual))

t.test('every endpoint serves', async t => {
  for (const [name, ask] of Object.entries(endpoints)) t.equal((await send(other, ask())).status, 200, name)
})

t.test('bodies that are declared large and drip keep no endpoint from serving others', async t => {
  const open: Socket[] = []
  for (const ask of Object.values(endpoints)) {
    const { path, body, headers = {}, limit = 32 * MIB } = ask()
    const type = body instanceof FormData ? 'multipart/form-data; boundary=x' : json
    const fields = Object.entries({ ...headers, 'content-type': type, 'content-length': limit })
    for (let count = 0; count < 8; count++) {
      const socket = connect(gateway.port, '127.0.0.1').on('error', () => undefined)
      const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nAuthorization: Bearer ${hostile}\r\n`
      socket.write(`${head}${fields.map(([field, value]) => `${field}: ${value}\r\n`).join('')}\r\n${' '.repeat(1000)}`)
      open.push(socket)
    }
  }
  for (const [name, ask] of Object.entries(endpoints)) t.equal((await send(other, ask())).status, 200, name)
  for (const socket of open) socket.destroy()
})

t.test('failures of one organization move no other one to a dearer provider', async t => {
  const fails: Serve = (res, got) => {
    if (!got.body.includes('FAILS')) return usual(res, got)
    return res.writeHead(500, { 'content-type': json }).end('{"error":{"message":"no"}}')
  }
  cheap.answers(fails)
  for (const [name, ask] of Object.entries(endpoints)) {
    for (let count = 0; count < 6; count++) await send(hostile, ask('FAILS'))
    const before = cheap.got.length
    t.equal((await send(hostile, ask())).status, 200)
    t.equal(cheap.got.length, before, `${name}: its own requests go to the dearer one`)
    t.equal((await send(other, ask())).status, 200)
    t.equal(cheap.got.length, before + 1, name)
  }
})

t.test('names of models that do not exist make no series of metrics', async t => {
  // What Node itself has open comes and goes.
  const series = async () => (await gateway.metrics()).match(/^(?!nodejs_active_)\w+\{[^}]*\}/gm) ?? []
  for (const [name, ask] of Object.entries(endpoints)) await send(hostile, ask(name, 'none-0'))
  const before = new Set(await series())
  for (const ask of Object.values(endpoints)) {
    for (let count = 0; count < 5; count++) await send(hostile, ask('Hi', `none-${count}`))
  }
  const added = (await series()).filter(name => !before.has(name))
  t.strictSame(added, [], 'series of gauges may end meanwhile, and none is new')
  t.notMatch(await gateway.metrics(), /none-/)
})

t.test('answers that nest too deep or hold too much are failures of their provider', async t => {
  const bodies = {
    'levels of lists': '['.repeat(300_000) + ']'.repeat(300_000),
    'levels of objects': `{"data":${'{"a":'.repeat(300_000)}1${'}'.repeat(300_000)}}`,
    values: `{"results":[${'{},'.repeat(600_000)}{}]}`,
  }
  for (const [says, body] of Object.entries(bodies)) {
    both({ type: json, body })
    for (const [name, ask] of Object.entries(endpoints)) {
      t.equal((await send(other, ask())).status, 502, `${says}, ${name}`)
    }
  }
})

t.test('a credential that a provider repeats is shown by no endpoint, in no encoding', async t => {
  const forms = [Buffer.from(SECRET).toString('base64'), `x${SECRET.slice(-12)}`]
  for (const said of forms) {
    const page = { index: 0, markdown: said, images: [] }
    const result = { flagged: true, categories: { [said]: true }, category_scores: { [said]: 1 } }
    const everywhere = {
      ...{ error: { message: `no ${said}`, code: said, type: said, param: said }, message: said, detail: said },
      ...{ text: said, model: said, id: said, pages: [page], results: [{ index: 0, relevance_score: 1, ...result }] },
      ...{ data: [{ b64_json: png.toString('base64'), revised_prompt: said }], usage_info: { pages_processed: 1 } },
      ...{ choices: [{ message: { content: said }, finish_reason: 'stop' }], duration: 1 },
    }
    for (const status of [200, 400]) {
      both({ status, json: everywhere })
      for (const [name, ask] of Object.entries(endpoints)) {
        const { text } = await send(other, ask())
        t.notOk(text.includes(said.slice(-12)), `${name}, ${status}, ${said}: ${text.slice(0, 200)}`)
      }
    }
  }
})

t.test('SI-01 addresses inside are refused wherever one may be given', async t => {
  const inside = ['168.63.129.16', '169.254.169.254', '[::ffff:169.254.169.254]', '0x7f.1', '[64:ff9b::a9fe:a9fe]']
  const part = (fields: Tree) => user([fields])
  const chat = (path: string, field: string, value: unknown) => asked(path, { model: 'chat', [field]: value })
  const taken: Readonly<Record<string, (url: string) => Asked>> = {
    'chat, an image': url => chat('/v1/chat/completions', 'messages', part({ type: 'image_url', image_url: { url } })),
    'chat, a file': url =>
      chat('/v1/chat/completions', 'messages', part({ type: 'file', file: { filename: 'a.pdf', file_data: url } })),
    'responses, an image': url => chat('/v1/responses', 'input', part({ type: 'input_image', image_url: url })),
    'responses, a file': url => chat('/v1/responses', 'input', part({ type: 'input_file', file_url: url })),
    gemini: fileUri => ({
      ...endpoints.gemini!(),
      body: { contents: [{ role: 'user', parts: [{ fileData: { mimeType: 'image/png', fileUri } }] }] },
    }),
    'AI SDK': data => ({
      ...endpoints['AI SDK']!(),
      body: { prompt: part({ type: 'file', mediaType: 'image/png', data }) },
    }),
    edits: image_url => asked('/v1/images/edits', { model: 'images', prompt: 'a', images: [{ image_url }] }),
    transcriptions: url => asked('/v1/audio/transcriptions', { model: 'transcriptions', url }),
    moderations: url =>
      asked('/v1/moderations', { model: 'moderations', input: [{ type: 'image_url', image_url: { url } }] }),
    OCR: document_url => asked('/v1/ocr', { model: 'ocr', document: { type: 'document_url', document_url } }),
  }
  const before = cheap.got.length + dear.got.length
  for (const [name, ask] of Object.entries(taken)) {
    for (const host of inside) {
      const { status, text } = await send(hostile, ask(`https://${host}/a`))
      t.match([status, text], [400, /url_not_allowed|URL_NOT_ALLOWED/], `${name}, ${host}: ${text.slice(0, 300)}`)
    }
  }
  t.equal(cheap.got.length + dear.got.length, before, 'none reaches a provider')
})

/** Of each client wire: a question to the signing model, and the turn that its answer comes back in. */
const turns: Readonly<Record<string, readonly [first: Asked, next: (answer: Tree) => Tree]>> = {
  responses: [
    asked('/v1/responses', {
      ...{ model: 'claude', input: user('Hi'), include: ['reasoning.encrypted_content'] },
      tools: [{ type: 'function', name: 'f', parameters: { type: 'object' } }],
    }),
    ({ output }) => {
      const result = { type: 'function_call_output', call_id: 'toolu_1', output: 'r' }
      return { input: [...user('Hi'), ...(output as Tree[]), result] }
    },
  ],
  gemini: [
    asked('/v1beta/models/claude:generateContent', {
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
      tools: [{ functionDeclarations: [{ name: 'f' }] }],
    }),
    ({ candidates }) => {
      const result = { role: 'user', parts: [{ functionResponse: { name: 'f', response: { r: 1 } } }] }
      const [{ content } = {}] = candidates as Tree[]
      return { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }, content, result] }
    },
  ],
  'AI SDK': [
    asked(
      '/v3/ai/language-model',
      {
        prompt: user([{ type: 'text', text: 'Hi' }]),
        tools: [{ type: 'function', name: 'f', inputSchema: { type: 'object' } }],
      },
      { headers: spoken('claude') },
    ),
    ({ content }) => {
      const parts = (content as Tree[]).map(part => ({ ...part, providerOptions: part.providerMetadata }))
      const output = { type: 'text', value: 'r' }
      const result = { type: 'tool-result', toolCallId: 'toolu_1', toolName: 'f', output }
      const before = user([{ type: 'text', text: 'Hi' }])
      return { prompt: [...before, { role: 'assistant', content: parts }, { role: 'tool', content: [result] }] }
    },
  ],
}

t.test('a signature comes back to its provider from the organization that it was made for alone', async t => {
  for (const [name, [first, next]] of Object.entries(turns)) {
    const answer = await send(other, first)
    const again = { ...first, body: { ...(first.body as Tree), ...next(JSON.parse(answer.text) as Tree) } }
    for (const [key, isOwn] of [
      [other, true],
      [hostile, false],
    ] as const) {
      t.equal((await send(key, again)).status, 200)
      t.equal(cheap.last().body.includes('SIGNATURE'), isOwn, name)
    }
  }
})

t.test('a body in a million chunks takes no more than its size', async t => {
  const before = await gateway.rss()
  const sent = connect(gateway.port, '127.0.0.1')
  const answered = buffer(sent)
  sent.write(`POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer ${hostile}\r\nContent-Type: ${json}\r\n`)
  sent.write(
    `Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${`10\r\n${' '.repeat(16)}\r\n`.repeat(MIB)}2\r\n{}\r\n0\r\n\r\n`,
  )
  t.match(String(await answered), /^HTTP\/1\.1 400 /)
  t.ok((await gateway.rss()) - before < 150 * MIB, 'it took 400 MiB')
})
