/**
 * Every client × every wire × whose credential: who a provider is told of. On the operator's credentials a project's
 * values are its own; with an organization's own key they are what its client wrote.
 */
import t, { type Test } from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { type Gateway, startGateway, upstreamSecret } from '../helpers/gateway.ts'
import { RealtimeClient } from '../helpers/realtime-client.ts'
import { realtimeProvider } from '../helpers/realtime-provider.ts'
import { scripted } from '../helpers/scripted.ts'
import { everyWire } from './matrix/gateway.ts'
import { type ChatWire, wires } from './matrix/wires.ts'

type Tree = Record<string, unknown>

/** Fields that a client writes, and that every wire takes as they are. */
const WRITTEN = 'ann_1'
const MADE = /^[0-9a-f]{32}$/
const messages = [{ role: 'user', content: 'Hi' }]
const all = { user: WRITTEN, safety_identifier: WRITTEN, prompt_cache_key: WRITTEN, user_id: WRITTEN }
const metadata = { user_id: WRITTEN }

interface Client {
  readonly path: (model: string) => string
  readonly body: (model: string) => Tree
  readonly headers?: (model: string) => Record<string, string>
  /** Changes of its fields beside those of `fieldsOf`. */
  readonly lacks?: readonly string[]
  /** The client's own wire, and what goes to it. */
  readonly native?: Readonly<Record<string, readonly string[]>>
}

const clients: Readonly<Record<string, Client>> = {
  'chat completions': {
    path: () => '/v1/chat/completions',
    body: model => ({ model, messages, ...all, metadata, max_tokens: 99 }),
  },
  'streamed chat completions': {
    path: () => '/v1/chat/completions',
    body: model => ({ model, messages, ...all, metadata, max_tokens: 99, stream: true }),
  },
  completions: {
    path: () => '/v1/completions',
    body: model => ({ model, prompt: 'Hi', ...all, max_tokens: 99 }),
    lacks: ['prompt_cache_key'],
  },
  responses: {
    path: () => '/v1/responses',
    body: model => ({ model, input: 'Hi', ...all, user_id: undefined, metadata, max_output_tokens: 99 }),
    native: {
      'openai.responses': ['user', 'safety_identifier', 'prompt_cache_key', 'metadata.user_id'],
    },
  },
  'client metadata of responses': {
    path: () => '/v1/responses',
    body: model => ({
      ...{ model, input: 'Hi', max_output_tokens: 99 },
      client_metadata: { installation_id: WRITTEN, turn: { id: WRITTEN } },
    }),
    lacks: ['user', 'prompt_cache_key', 'metadata.user_id', 'labels.user', 'requestMetadata.user'],
    native: { 'openai.responses': ['client_metadata.installation_id', 'client_metadata.turn'] },
  },
  messages: {
    path: () => '/v1/messages',
    body: model => ({ model, messages, metadata, max_tokens: 99 }),
    lacks: ['prompt_cache_key'],
  },
  'messages of an agent': {
    path: () => '/v1/messages',
    body: model => ({
      ...{ model, messages, max_tokens: 99 },
      metadata: { user_id: JSON.stringify({ session_id: WRITTEN }) },
    }),
  },
  generateContent: {
    path: model => `/v1beta/models/${model}:generateContent`,
    body: () => ({ contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }),
    lacks: ['user', 'prompt_cache_key', 'metadata.user_id', 'labels.user', 'requestMetadata.user'],
  },
  'labels of generateContent': {
    path: model => `/v1beta/models/${model}:generateContent`,
    body: model => ({
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
      ...(model === 'vertexgemini' && { labels: { user: WRITTEN, team: WRITTEN } }),
    }),
    lacks: ['user', 'prompt_cache_key', 'metadata.user_id', 'requestMetadata.user'],
    native: { 'gemini.vertex': ['labels.user', 'labels.team'] },
  },
  'AI SDK': {
    path: () => '/v4/ai/language-model',
    headers: model => ({
      ...{ 'ai-language-model-id': model, 'ai-language-model-specification-version': '4' },
      'ai-language-model-streaming': 'false',
    }),
    body: () => ({
      prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
      providerOptions: { gateway: { user: WRITTEN } },
    }),
    lacks: ['prompt_cache_key'],
  },
}

/** The fields of a wire by which its providers know end users and cached prompts. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  'openai.chat': ['user', 'prompt_cache_key'],
  'openai.responses': ['prompt_cache_key'],
  'anthropic.messages': ['metadata.user_id'],
  'anthropic.vertex': ['metadata.user_id'],
  'gemini.vertex': ['labels.user'],
  'bedrock.converse': ['requestMetadata.user'],
  'mistral.chat': ['prompt_cache_key'],
}
const fieldsOf = ({ lacks = [], native = {} }: Client, { wire }: ChatWire): readonly string[] =>
  native[wire] ?? (FIELDS[wire] ?? []).filter(name => !lacks.includes(name))

const at = (body: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((value, name) => (value as Tree | undefined)?.[name], body)

interface Caller {
  readonly organization: string
  readonly project: string
  readonly key: string
}

let made = 0
async function callerOf(gateway: Gateway, mode: 'credits' | 'api-keys', organization?: string): Promise<Caller> {
  const command = commandsOf(gateway)
  const name = `identities ${++made}`
  const org = organization ?? (await command<{ id: string }>('orgs.create', { name })).id
  if (!organization) await command('credits.add', { organization: org, amount: '100' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization: org, name, mode })
  return { organization: org, project, key: (await command<{ key: string }>('keys.create', { project })).key }
}

/** Two projects on the operator's credentials, and one of the first organization with its own keys at `providers`. */
async function callersOf(gateway: Gateway, providers: readonly string[]) {
  const one = await callerOf(gateway, 'credits')
  const [same, other] = [await callerOf(gateway, 'credits', one.organization), await callerOf(gateway, 'credits')]
  const own = await callerOf(gateway, 'api-keys', one.organization)
  const { organization } = one
  const command = commandsOf(gateway)
  for (const provider of providers) {
    await command('provider-keys.add', { organization, provider, secret: upstreamSecret })
  }
  return { one, same, other, own }
}
const as = ({ key }: Pick<Caller, 'key'>, headers = {}) => ({ authorization: `Bearer ${key}`, ...headers })

/** The values of one project are made, its own, and the same again; those of own keys are as they were written. */
function check(t: Test, says: string, fields: readonly string[], bodies: readonly unknown[]): void {
  const [one, again, same, other, own] = bodies
  for (const path of fields) {
    const made = [one, same, other].map(body => at(body, path))
    for (const value of made) t.match(value, MADE, `${says}: ${path} is made`)
    t.equal(new Set(made).size, 3, `${says}: ${path} of another project is another one`)
    t.equal(at(again, path), made[0], `${says}: ${path} of a project is the same again`)
    t.match(JSON.stringify(at(own, path)), WRITTEN, `${says}: ${path} of an own key is as it was written`)
  }
  for (const body of [one, again, same, other]) t.notMatch(JSON.stringify(body), WRITTEN, `${says}: nothing as written`)
}

const chat = await everyWire()
const chatCallers = await callersOf(
  chat.gateway,
  wires.map(({ id }) => id),
)
for (const [name, client] of Object.entries(clients)) {
  t.test(`${name}: providers know end users of a project as the gateway names them`, async t => {
    const { gateway, upstream } = chat
    const { one, same, other, own } = chatCallers
    for (const wire of wires) {
      const { id } = wire
      const bodies: unknown[] = []
      for (const caller of [one, one, same, other, own]) {
        const sent = await gateway.post(client.path(id), client.body(id), as(caller, client.headers?.(id)))
        t.equal(sent.status, 200, `${name} to ${id}: ${await sent.text()}`)
        bodies.push((await upstream.record(id)).at(-1)!.body)
      }
      check(t, `${name} to ${id}`, fieldsOf(client, wire), bodies)
      if (fieldsOf(client, wire).length > 0) t.match(JSON.stringify(bodies[4]), WRITTEN, id)
    }
  })
}

t.test('sessions of a project have values of their own, though they write the same', async t => {
  const { gateway, upstream } = chat
  const { one } = chatCallers
  const session = async (customer: string) => {
    const made = await gateway.post('/v1/sessions', { customer }, as(one))
    t.equal(made.status, 200, await made.clone().text())
    return { key: ((await made.json()) as { sessionToken: string }).sessionToken }
  }
  const [ann, bob] = [await session('ann'), await session('bob')]
  const users = new Set<unknown>()
  for (const [caller, user] of [
    [ann, 'x'],
    [ann, 'y'],
    [bob, 'x'],
    [one, 'x'],
    [one, 'y'],
    [ann, 'x'],
  ] as const) {
    t.equal((await gateway.chat({ model: 'chat', messages, user }, as(caller))).status, 200)
    users.add(at((await upstream.record('chat')).at(-1)!.body, 'user'))
  }
  t.equal(users.size, 5)
})

t.test('what is hashed of a request is bounded', async t => {
  const { gateway } = chat
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 'v']))
  const generate = '/v1beta/models/vertexgemini:generateContent'
  const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }]
  const long = 'x'.repeat(64 * 1024)
  for (const [path, body, param] of [
    [generate, { contents, labels: many(65) }, 'labels'],
    ['/v1/responses', { model: 'responses', input: 'Hi', client_metadata: many(65) }, 'client_metadata'],
    ['/v1/responses', { model: 'responses', input: 'Hi', client_metadata: { a: { b: long } } }, 'client_metadata.a'],
    ['/v1/chat/completions', { model: 'chat', messages, user: long }, 'user'],
  ] as const) {
    const refused = await gateway.post(path, body, as(chatCallers.one))
    t.equal(refused.status, 400, param)
    t.match(await refused.text(), `${param}: it may have at most 6`)
    t.equal((await gateway.post(path, body, as(chatCallers.own))).status, 200, `${param} of an own key`)
  }
  t.equal((await gateway.post(generate, { contents, labels: many(64) }, as(chatCallers.one))).status, 200)
})

t.test('an empty value is sent as it is', async t => {
  const { gateway, upstream } = chat
  const body = { model: 'chat', messages, user: '', metadata: { team: WRITTEN } }
  t.equal((await gateway.chat(body, as(chatCallers.one))).status, 200)
  t.strictSame(at((await upstream.record('chat')).at(-1)!.body, 'user'), '')
})

const media = await scripted(t)
media.answers({ status: 400, json: { error: { message: 'Not today.' } } })
const live = await realtimeProvider(t)
const draws = { input: ['text', 'image'], output: ['image'], family: 'test' }
const OFFERS: Readonly<Record<string, Tree>> = {
  vectors: { wires: { embeddings: 'openai.embeddings' } },
  pictures: { wires: { images: 'openai.images', image_edits: 'openai.image-edits' } },
  painter: { wires: { chat: 'openai.chat' } },
  artist: { wires: { chat: 'gemini.vertex' } },
  counter: { wires: { chat: 'anthropic.messages' } },
  renamed: {
    wires: { chat: 'openai.chat' },
    quirks: { rename: { user: 'end_user' }, default: { prompt_cache_key: 'operator' } },
  },
  live: { base_url: live.url, wires: { realtime: 'openai.realtime' } },
}
const MODELS: Readonly<Record<string, Tree>> = {
  vectors: { input: ['text'], output: ['embedding'] },
  pictures: draws,
  painter: draws,
  artist: draws,
  live: { input: ['text', 'audio'], output: ['text', 'audio'], operations: ['realtime'] },
}
const pricing = { prompt: '1', completion: '2', image_output: '3', input_audio: '4', output_audio: '5' }
const rest = await startGateway(t, {
  models: Object.keys(OFFERS).map(id => ({
    id,
    name: id,
    family: 'test',
    input: ['text'],
    output: ['text'],
    ...MODELS[id],
  })),
  providers: Object.fromEntries(
    Object.entries(OFFERS).map(([id, offer]) => {
      const supports = id === 'live' ? ['realtime'] : ['streaming', 'tools']
      return [
        id,
        { base_url: `${media.url}/${id}`, models: [{ model: id, id: `${id}-1`, pricing, supports }], ...offer },
      ]
    }),
  ),
})
const callers = await callersOf(rest, Object.keys(OFFERS))

/** The request to each, and the field that its provider gets. */
const REQUESTS: readonly [says: string, path: string, body: Tree, field: string][] = [
  ['a field with a new name', '/v1/chat/completions', { model: 'renamed', messages, user: WRITTEN }, 'end_user'],
]
for (const [says, path, body, field] of REQUESTS) {
  t.test(`${says}: providers know end users of a project as the gateway names them`, async t => {
    const { one, same, other, own } = callers
    const bodies: unknown[] = []
    for (const caller of [one, one, same, other, own]) {
      const before = media.got.length
      await (await rest.post(path, body, as(caller))).text()
      t.equal(media.got.length, before + 1, says)
      bodies.push(media.last().json)
    }
    check(t, says, [field], bodies)
  })
}

t.test('the forms of edits, and what an operator writes, are no exceptions', async t => {
  const picture = new Blob([Buffer.from('89504e470d0a1a0a0000000d4948445200000001000000010806000000', 'hex')], {
    type: 'image/png',
  })
  for (const caller of [callers.one, callers.own]) {
    const form = new FormData()
    for (const [name, value] of Object.entries({ model: 'pictures', prompt: 'x', user: WRITTEN }))
      form.append(name, value)
    form.append('image', picture, 'a.png')
    await (await fetch(`${rest.url}/v1/images/edits`, { method: 'POST', headers: as(caller), body: form })).text()
    const [, value] = /name="user"\r\n(?:[^\r]+\r\n)*\r\n(.*)\r\n/.exec(media.last().body.toString('latin1')) ?? []
    t.equal(value, caller.organization)
  }
  await (await rest.post('/v1/chat/completions', { model: 'renamed', messages }, as(callers.one))).text()
  t.match(media.last().json, { prompt_cache_key: 'operator' })
  const counted = { model: 'counter', messages, metadata }
  await (await rest.post('/v1/messages/count_tokens', counted, as(callers.one))).text()
  t.match(media.last().path, /count_tokens/)
  t.notMatch(media.last().body.toString(), WRITTEN)
})

t.test('embeddings and images name the organization alone, whatever the caller writes', async t => {
  for (const [path, body, field] of [
    ['/v1/embeddings', { model: 'vectors', input: 'a' }, 'user'],
    ['/v1/images/generations', { model: 'pictures', prompt: 'a cat' }, 'user'],
    ['/v1/images/generations', { model: 'painter', prompt: 'a cat' }, 'user'],
    ['/v1/images/generations', { model: 'artist', prompt: 'a cat' }, 'labels.user'],
  ] as const) {
    for (const caller of Object.values(callers)) {
      for (const user of [undefined, WRITTEN]) {
        await (await rest.post(path, { ...body, user }, as(caller))).text()
        t.equal(at(media.last().json, field), caller.organization, `${body.model} ${caller.key}`)
      }
    }
  }
})

t.test('realtime sessions take identities with own keys alone', async t => {
  for (const caller of [callers.one, callers.own]) {
    const client = await new RealtimeClient(rest, '?model=live', { key: caller.key }).opened()
    for (const [name, value] of Object.entries(all)) {
      client.send({ type: 'session.update', session: { type: 'realtime', [name]: value } })
      if (caller === callers.own) await client.until('session.updated')
      else t.match(await client.until('error'), { error: { param: `session.${name}` } })
      client.send({ type: 'response.create', response: { [name]: value } })
      if (caller === callers.own) await client.until('response.done')
      else t.match(await client.until('error'), { error: { param: `response.${name}` } })
    }
    await client.end()
    const sent = JSON.stringify(live.last().got)
    if (caller === callers.own) t.match(sent, WRITTEN)
    else t.notMatch(sent, WRITTEN)
  }
})
