/** Every endpoint that names a model, asked for a virtual model, and for names that rules move and refuse. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { wavHead } from '../../src/lib/wav.ts'
import { callAiSdk } from '../helpers/ai-sdk-chat.ts'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { untilInFlight } from '../helpers/invariants.ts'
import { callTool } from '../helpers/mcp.ts'
import { RealtimeClient } from '../helpers/realtime-client.ts'
import type { SentEvent } from '../helpers/realtime-provider.ts'
import { scripted } from '../helpers/scripted.ts'

type Tree = Record<string, unknown>

const file = (path: string) => parse(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')) as Tree
const demo = file('providers.d/demo.yaml') as { wires: Tree; models: ({ model: string } & Tree)[] }
const { models } = file('config/models.d/demo.yaml') as { models: ({ id: string } & Tree)[] }
const failing = await scripted(t)
failing.answers({ status: 503, json: { error: { message: 'down' } } })
/** A list without one of its items. */
const without = (all: unknown, one: string) => (all as string[] | undefined)?.filter(other => other !== one) ?? []
/** A twin of each demo model whose provider is down. */
const twins = demo.models.map(one => ({ ...one, model: `${one.model}-twin`, supports: without(one.supports, 'tools') }))
const ids = models.map(({ id }) => id)
const TEXT = 'Use another model.'
const gateway = await startGateway(t, {
  models: [
    ...models.map(one => ({ ...one, context_length: 9000, aliases: [] })),
    ...models.map(one => ({
      ...one,
      id: `${one.id}-twin`,
      context_length: 7000,
      aliases: [],
      input: without(one.input, 'image'),
    })),
  ],
  providers: { demo, down: { base_url: failing.url, wires: demo.wires, models: twins } },
  config: {
    catalog: { routes: './routes.d' },
    jobs: { poll: '20ms', poll_max: '40ms' },
    mcp: { nano_banana: 'any-demo-image' },
  },
  files: {
    'config/routes.d/all.yaml': JSON.stringify({
      virtual_models: ids.map(id => ({ id: `any-${id}`, use: [`${id}-twin`, id] })),
      rules: [
        { match: { model: 'denied-*' }, deny: TEXT },
        ...ids.map(id => ({ match: { model: `moved-${id}` }, use: id })),
        ...ids.map(id => ({ match: { model: `over-${id}` }, use: `any-${id}` })),
      ],
    }),
  },
})
const command = commandsOf(gateway)

/** What a client sees of one request. */
interface Seen {
  readonly status: number
  readonly body: unknown
  readonly headers?: Headers
}
interface AiSdkMetadata {
  readonly usedModel: string
  readonly routing: { readonly originalModelId: string }
}
interface Row {
  readonly model: string
  readonly ask: (model: string, headers: Record<string, string>) => Promise<Seen>
  /** The refusal in the client's own shape. */
  readonly refusal?: unknown
  /** Where its answer has metadata. */
  readonly metadata?: (body: never) => unknown
  /** No request under its id is recorded. */
  readonly unrecorded?: true
  /** The gateway answers by itself where no target counts. */
  readonly estimated?: true
}

const seen = async (answer: Response): Promise<Seen> => {
  const bytes = Buffer.from(await answer.arrayBuffer())
  const isJson = answer.headers.get('content-type')?.startsWith('application/json')
  return {
    status: answer.status,
    body: isJson ? (JSON.parse(String(bytes)) as unknown) : String(bytes),
    headers: answer.headers,
  }
}
const json =
  (path: string, body: Tree): Row['ask'] =>
  async (model, headers) =>
    seen(await gateway.post(path, { model, ...body }, headers))
const form =
  (path: string, fields: () => Record<string, string | Blob>): Row['ask'] =>
  async (model, headers) => {
    const data = new FormData()
    for (const [name, value] of Object.entries({ model, ...fields() })) data.set(name, value)
    return seen(
      await fetch(`${gateway.url}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.key}`, ...headers },
        body: data,
      }),
    )
  }
const messages = [{ role: 'user', content: 'Who answers?' }]
const contents = [{ role: 'user', parts: [{ text: 'Who answers?' }] }]
const google =
  (call: string, body: Tree): Row['ask'] =>
  async (model, headers) =>
    seen(await gateway.post(`/v1beta/models/${model}:${call}`, body, headers))
const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const png = () => new Blob([Buffer.from(pixel.split(',')[1]!, 'base64')], { type: 'image/png' })
const sound = () => new Blob([wavHead(16_000, 3200), Buffer.alloc(3200)])

const OPENAI = { error: { message: TEXT, code: 'model_denied', param: 'model' } }
const GOOGLE = { error: { code: 403, status: 'PERMISSION_DENIED', message: TEXT } }
const ANTHROPIC = { type: 'error', error: { type: 'permission_error', message: TEXT } }

const rows: Record<string, Row> = {
  chat: { model: 'demo', ask: json('/v1/chat/completions', { messages }), metadata: ({ metadata }: Tree) => metadata },
  'legacy completions': {
    model: 'demo',
    ask: json('/v1/completions', { prompt: 'Who?' }),
    metadata: ({ metadata }: Tree) => metadata,
  },
  messages: {
    model: 'demo',
    ask: json('/v1/messages', { messages, max_tokens: 9 }),
    metadata: ({ metadata }: Tree) => metadata,
    refusal: ANTHROPIC,
  },
  'count_tokens of Messages': {
    model: 'demo',
    ask: json('/v1/messages/count_tokens', { messages }),
    refusal: ANTHROPIC,
    estimated: true,
  },
  responses: { model: 'demo', ask: json('/v1/responses', { input: 'Who?' }), metadata: ({ gateway }: Tree) => gateway },
  'Gemini generateContent': {
    model: 'demo',
    ask: google('generateContent', { contents }),
    metadata: ({ gateway }: Tree) => gateway,
    refusal: GOOGLE,
  },
  'Gemini countTokens': { model: 'demo', ask: google('countTokens', { contents }), refusal: GOOGLE, estimated: true },
  'AI SDK': {
    model: 'demo',
    ask: async (model, headers) =>
      seen(
        await callAiSdk(
          gateway,
          model,
          { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Who?' }] }] },
          'whole',
          headers,
        ),
      ),
    metadata: ({ providerMetadata: { gateway } }: { providerMetadata: { gateway: AiSdkMetadata } }) => ({
      requested_model: gateway.routing.originalModelId,
      used_model: gateway.usedModel.replace('demo/', ''),
    }),
    refusal: { error: { message: TEXT } },
  },
  embeddings: { model: 'demo-embed', ask: json('/v1/embeddings', { input: 'a' }) },
  'Gemini embedContent': {
    model: 'demo-embed',
    ask: google('embedContent', { content: contents[0]! }),
    metadata: ({ gateway }: Tree) => gateway,
    refusal: GOOGLE,
  },
  images: { model: 'demo-image', ask: json('/v1/images/generations', { prompt: 'a cat' }) },
  'edits of images': { model: 'demo-image', ask: form('/v1/images/edits', () => ({ prompt: 'a cat', image: png() })) },
  speech: { model: 'demo-speech', ask: json('/v1/audio/speech', { input: 'Hi', response_format: 'wav', voice: 'a' }) },
  transcriptions: { model: 'demo-transcribe', ask: form('/v1/audio/transcriptions', () => ({ file: sound() })) },
  translations: { model: 'demo-transcribe', ask: form('/v1/audio/translations', () => ({ file: sound() })) },
  moderations: { model: 'demo-moderation', ask: json('/v1/moderations', { input: 'words' }) },
  OCR: { model: 'demo-ocr', ask: json('/v1/ocr', { document: { type: 'image_url', image_url: pixel } }) },
  rerank: { model: 'demo-rerank', ask: json('/v1/rerank', { query: 'q', documents: ['a', 'b'] }) },
  'rerank of Cohere': { model: 'demo-rerank', ask: json('/v2/rerank', { query: 'q', documents: ['a', 'b'] }) },
  decisions: {
    model: 'demo-decision',
    ask: json('/v1/systemone', { state: 'x', questions: { a: { type: 'noul', instructions: 'x' } } }),
  },
  videos: { model: 'demo-video', ask: json('/v1/videos', { prompt: 'a cat', seconds: 4 }) },
  'the chat tool of MCP': {
    model: 'demo',
    ask: (model, headers) => tool('chat', { model, messages }, headers),
    refusal: { isError: true, content: [{ text: new RegExp(TEXT) }] },
    unrecorded: true,
  },
  'the image tool of MCP': {
    model: 'demo-image',
    ask: (model, headers) => tool('generate-image', { model, prompt: 'a cat' }, headers),
    refusal: { isError: true, content: [{ text: new RegExp(TEXT) }] },
    unrecorded: true,
  },
  'realtime sessions': {
    model: 'demo-realtime',
    async ask(model, headers) {
      return talked(new RealtimeClient(gateway, `?model=${model}`, { headers }))
    },
  },
  'realtime sessions that transcribe': {
    model: 'demo-realtime',
    unrecorded: true,
    async ask(model) {
      const client = new RealtimeClient(gateway, `?intent=transcription&model=${model}`)
      return opened(client, () => client.until('session.created'))
    },
  },
  'models that transcribe within sessions': {
    model: 'demo-transcribe',
    unrecorded: true,
    refusal: { error: { message: TEXT } },
    async ask(model) {
      const client = new RealtimeClient(gateway, '?model=any-demo-realtime')
      const session = { type: 'realtime', model: 'any-demo-realtime', audio: { input: { transcription: { model } } } }
      return opened(client, async () => {
        await client.until('session.created')
        client.send({ type: 'session.update', session })
        return client.until('session.updated', 'error')
      })
    },
  },
  'models that transcribe, of a client secret': {
    model: 'demo-transcribe',
    unrecorded: true,
    refusal: { error: { message: TEXT } },
    async ask(model) {
      const session = { type: 'realtime', model: 'demo-realtime', audio: { input: { transcription: { model } } } }
      const minted = await seen(await gateway.post('/v1/realtime/client_secrets', { session }))
      if (minted.status !== 200) return minted
      const client = new RealtimeClient(gateway, '', { key: (minted.body as { value: string }).value })
      return opened(client, () => client.until('session.created'))
    },
  },
  'realtime sessions by a client secret': {
    model: 'demo-realtime',
    async ask(model, headers) {
      const session = { type: 'realtime', model }
      const minted = await seen(await gateway.post('/v1/realtime/client_secrets', { session }))
      if (minted.status !== 200) return minted
      const { value } = minted.body as { value: string }
      return talked(new RealtimeClient(gateway, '', { key: value, headers }))
    },
  },
}

async function tool(name: string, args: Tree, headers: Record<string, string>): Promise<Seen> {
  const body = await callTool(gateway, name, args, headers)
  return { status: body.isError ? 403 : 200, body }
}

const talked = (client: RealtimeClient): Promise<Seen> =>
  opened(client, async () => {
    await client.until('session.created')
    client.send({ type: 'response.create' })
    return client.until('response.done')
  })

/** What a session has told, or the answer that refuses it. */
async function opened(client: RealtimeClient, talk: () => Promise<SentEvent>): Promise<Seen> {
  const refused = new Promise<Seen>(resolve =>
    client.ws.once('unexpected-response', (_request, answer) => {
      void answer.toArray().then((chunks: Buffer[]) => {
        resolve({ status: answer.statusCode!, body: JSON.parse(Buffer.concat(chunks).toString()) })
      })
    }),
  )
  const answered = (async (): Promise<Seen> => {
    const body = await talk()
    await client.end()
    return { status: body.type === 'error' ? 403 : 200, body }
  })()
  answered.catch(() => undefined)
  return Promise.race([refused, answered])
}

const cases: { name: string; id: string; requested: string; used: string | undefined }[] = []
let asked = 0
const idOf = () => ({ 'x-request-id': `virtual-${++asked}` })

for (const [name, { model, ask, metadata, refusal = OPENAI, unrecorded, estimated }] of Object.entries(rows)) {
  t.test(`${name}: a virtual model, and names that rules move and refuse`, async t => {
    for (const called of [`any-${model}`, `moved-${model}`, `over-${model}`]) {
      const id = idOf()
      const answer = await ask(called, id)
      t.equal(answer.status, 200, `${called}: ${JSON.stringify(answer.body)?.slice(0, 300)}`)
      if (metadata) t.match(metadata(answer.body as never), { requested_model: called, used_model: model })
      if (!unrecorded)
        cases.push({ name, id: id['x-request-id'], requested: called, used: estimated ? undefined : model })
    }
    const before = failing.got.length
    const refused = await ask(`denied-${model}`, idOf())
    t.equal(refused.status, 403)
    t.match(refused.body, refusal)
    t.equal(failing.got.length, before, 'no provider is asked')
  })
}

t.test('the log names the requested and the used model of each of them', async t => {
  await untilInFlight(gateway, 0)
  const books = openBooks(t, gateway)
  const row = books.prepare('SELECT requested_model, model FROM requests WHERE request_id = ?')
  for (const { name, id, requested, used } of cases) {
    // A video has its row once it is made, and a session once its last response is settled.
    let found = row.get(id)
    while (!found) {
      await new Promise(resolve => setTimeout(resolve, 20))
      found = row.get(id)
    }
    t.match(found, { requested_model: requested, ...(used !== undefined && { model: used }) }, `${name}: ${requested}`)
  }
})

t.test('each is listed with what its targets share, and explained', async t => {
  interface Entry {
    id: string
    operations: string[]
    context_length?: number
    architecture: { input_modalities: string[] }
    supported_parameters: string[]
  }
  const { data } = (await (await gateway.get('/v1/models')).json()) as { data: Entry[] }
  const entryOf = (id: string) => data.find(one => one.id === id)
  for (const { model } of Object.values(rows)) {
    const [own, any] = [entryOf(model), entryOf(`any-${model}`)]
    const shared = entryOf(`${model}-twin`)?.operations.filter(one => own?.operations.includes(one))
    t.strictSame(any?.operations, shared, model)
    t.equal(any?.context_length, 7000)
    const { input_modalities } = own!.architecture
    t.strictSame(any?.architecture.input_modalities, without(input_modalities, 'image'))
    t.notOk(any?.supported_parameters.includes('tools'))
    t.match(await command('route.explain', { model: `any-${model}` }), {
      model: `any-${model}`,
      candidates: [{ offer: `down/${model}-twin` }, { offer: `demo/${model}` }],
    })
    const moved = await command<{ rule: string; choice: string }>('route.explain', { model: `moved-${model}` })
    t.match(moved, { rule: /^all.yaml#/, choice: `demo/${model}` })
    t.match(await command('route.explain', { model: `denied-${model}` }).catch(String), new RegExp(TEXT))
  }
})

t.test('other lists name them, too', async t => {
  const tools = await callTool(gateway, 'list-models', { limit: 1000 })
  const listed = (tools.structuredContent as { models: { id: string }[] }).models.map(({ id }) => id)
  t.ok(listed.includes('any-demo'), 'list-models')
  const images = await callTool(gateway, 'list-image-models', {})
  t.match(JSON.stringify(images.structuredContent), '"any-demo-image"')
  t.match(await (await gateway.get('/v1beta/models', { 'x-goog-api-key': gateway.key })).text(), 'models/any-demo')
  t.match(await (await gateway.get('/v4/ai/config')).text(), '"any-demo"')
})

t.test('the fixed model of an MCP tool may be a virtual one', async t => {
  const made = await callTool(gateway, 'generate-nano-banana', { prompt: 'a cat' })
  t.match(made, { content: [{ type: 'image' }] }, JSON.stringify(made).slice(0, 300))
})

t.test('the books are sound', async t => {
  await untilInFlight(gateway, 0)
  t.strictSame(await command('usage.check'), { differences: [] })
})
