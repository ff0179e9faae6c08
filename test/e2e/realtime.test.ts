/** Realtime sessions over the whole gateway: the official client, rules, money, and both ends behaving badly. */
import { once } from 'node:events'
import { connect } from 'node:net'
import OpenAI from 'openai'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { type Gateway, startGateway, upstreamSecret } from '../helpers/gateway.ts'
import { metric } from '../helpers/invariants.ts'
import { type ClientOptions, RealtimeClient, refusalOf } from '../helpers/realtime-client.ts'
import {
  type ProviderSession,
  type RealtimeProvider,
  realtimeProvider,
  respond,
  type SentEvent,
  usualCreated,
  usualTake,
} from '../helpers/realtime-provider.ts'

let provider: RealtimeProvider
let gateway: Gateway
const rpm = 1_000_000
t.before(async () => {
  provider = await realtimeProvider(t)
  gateway = await startGateway(t, {
    providers: {
      acme: {
        base_url: provider.url,
        wires: { realtime: 'openai.realtime', transcriptions: 'openai.transcriptions' },
        models: [
          {
            model: 'voice',
            id: 'rt-1',
            // Nano-USD per token: text 4000 in and 16,000 out, audio 32,000 in and 64,000 out.
            pricing: { prompt: '4', completion: '16', input_audio: '32', output_audio: '64', input_cache_read: '0.4' },
            supports: ['realtime', 'tools'],
          },
          { model: 'scribe', id: 'scribe-1', pricing: { input_audio_hour: '3.6' }, supports: ['realtime'] },
        ],
      },
    },
    models: [
      {
        ...{ id: 'voice', name: 'voice', family: 'test', input: ['text', 'audio'], output: ['text', 'audio'] },
        operations: ['realtime'],
        aliases: ['speaker'],
      },
      {
        ...{ id: 'scribe', name: 'scribe', family: 'test', input: ['audio'], output: ['text'] },
        operations: ['transcriptions', 'realtime'],
      },
    ],
    config: {
      realtime: { per_key: 12, message: '1MiB', spend: '0.01' },
      endpoints: { realtime: { ratelimit: { rpm } } },
    },
  })
})
t.beforeEach(() => {
  Object.assign(provider, { take: usualTake, created: usualCreated, refuse: undefined })
})

class Client extends RealtimeClient {
  constructor(query = '?model=voice', options: ClientOptions = {}) {
    super(gateway, query, options)
  }
}
const command = <T = Record<string, string>>(name: string, args: object = {}) => commandsOf(gateway)<T>(name, args)
const money = (organization: string) => command('credits.show', { organization })
let organizations = 0
async function payer(amount: string) {
  const name = `rt-${++organizations}`
  await command('orgs.create', { name })
  const project = await command('projects.create', { organization: name, name: 'p' })
  if (amount !== '0') await command('credits.add', { organization: name, amount })
  const { key, id } = await command('keys.create', { project: project.id, name: 'k' })
  return { name, key: key!, id: id! }
}
/** Until nothing is held: settlements of ends that nobody waits for have come then. */
async function settled(organization: string) {
  for (;;) {
    const now = await money(organization)
    if (now.held === '0') return now.used!
    await new Promise(resolve => setImmediate(resolve))
  }
}
const mint = (session: object, more: object = {}, key?: string) =>
  gateway.post('/v1/realtime/client_secrets', { session, ...more }, key ? { authorization: `Bearer ${key}` } : {})
const codeOf = async (answer: Response) => [
  answer.status,
  ((await answer.json()) as { error?: { code: string } }).error?.code,
]

t.test('the official client talks through us, and each response is charged as its provider says', async t => {
  const before = (await money('default')).used
  // The client insists on wss: its connection is one without TLS.
  const client = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1` })
  const createConnection = (() => connect(gateway.port, '127.0.0.1')) as typeof connect
  const official = new OpenAIRealtimeWS({ model: 'speaker', options: { createConnection } }, client)
  const texts: string[] = []
  official.on('response.output_text.delta', event => texts.push(event.delta))
  const created = new Promise<SentEvent>(resolve => official.on('session.created', event => resolve(event as never)))
  t.match(await created, {
    session: { model: 'voice', audio: { input: { turn_detection: { create_response: true } } } },
  })
  const done = new Promise<SentEvent>(resolve => official.on('response.done', event => resolve(event as never)))
  official.send({ type: 'response.create' })
  t.match(await done, { response: { status: 'completed', model: 'voice', usage: { total_tokens: 15 } } })
  // Ten tokens at 4000 and five at 16,000 nano-USD: it is charged already.
  const after = await money('default')
  t.equal((Number(after.used) - Number(before)).toFixed(9), '0.000120000')
  t.equal(texts.join(''), 'Hello')
  const session = provider.last()
  t.equal(session.url, '/v1/realtime?model=rt-1')
  t.equal(session.headers.authorization, `Bearer ${upstreamSecret}`)
  t.match(session.first, {
    type: 'session.update',
    session: { type: 'realtime', audio: { input: { turn_detection: { type: 'server_vad', create_response: false } } } },
  })
  official.close()
  t.same(await command('usage.check', {}), { differences: [] })
})

t.test('what cannot be opened is refused in plain HTTP, before the provider is called', async t => {
  const poor = await payer('0')
  const calls = provider.sessions.length
  const rows: [says: string, expected: unknown, client: () => Client][] = [
    ['no model', [400, 'invalid_parameters'], () => new Client('')],
    ['an unknown model', [404, 'model_not_found'], () => new Client('?model=nope')],
    ['a model of another endpoint', [400, 'model_not_supported'], () => new Client('?model=scribe')],
    ['a call', [400, 'invalid_parameters'], () => new Client('?model=voice&call_id=c')],
    ['a wrong key', [401, 'invalid_api_key'], () => new Client('?model=voice', { key: 'mgw_wrong' })],
    ['no credits', [402, 'billing_error'], () => new Client('?model=voice', { key: poor.key })],
    ['an unknown secret', [401, 'invalid_client_secret'], () => new Client('', { key: 'ek_unknown' })],
    ...['token', 'api_key', 'client_secret', 'key'].map((name): (typeof rows)[number] => [
      `${name} in the query`,
      [400, 'credentials_in_query'],
      () => new Client(`?model=voice&${name}=x`),
    ]),
    [
      'a key as a subprotocol',
      [401, 'invalid_client_secret'],
      () => new Client('?model=voice', { protocols: ['realtime', `openai-insecure-api-key.${gateway.key}`] }),
    ],
  ]
  for (const [says, expected, client] of rows) t.strictSame(await refusalOf(client()), expected, says)
  t.equal(provider.sessions.length, calls)
  const plain = await gateway.get('/v1/realtime?model=voice')
  t.strictSame([plain.status, plain.headers.get('upgrade')], [426, 'websocket'])
  provider.refuse = { status: 400, body: '{"error":{"message":"no such voice","type":"invalid_request_error"}}' }
  t.strictSame((await refusalOf(new Client()))[0], 400, 'what the provider says of the caller is passed on')
  provider.refuse = { status: 503, body: 'busy' }
  t.strictSame((await refusalOf(new Client()))[0], 502, 'what it says of itself is not')
  provider.refuse = undefined
  provider.created = () => ({ type: 'error', error: { type: 'server_error', message: 'down' } })
  t.strictSame((await refusalOf(new Client()))[0], 502)
  provider.created = () => ({ ...usualCreated(), more: 'x'.repeat(256 * 1024) })
  t.equal((await refusalOf(new Client()))[0], 502, 'a first event that would be read for long')
  provider.created = () => ({ ...usualCreated(), more: 'x'.repeat(250 * 1024) })
  await (await new Client().opened()).end()
  provider.created = usualCreated
})

t.test('intent=transcription opens a session that transcribes and answers nothing', async t => {
  const own = await payer('1')
  const client = await new Client('?intent=transcription&model=voice', { key: own.key }).opened()
  client.send({ type: 'response.create' })
  t.match(await client.until('error'), { error: { code: 'response_not_supported' } })
  provider.last().send({ type: 'input_audio_buffer.committed', item_id: 'item_t' })
  await client.until('input_audio_buffer.committed')
  provider.last().send({ type: 'conversation.item.input_audio_transcription.failed', item_id: 'item_t' })
  await client.until('conversation.item.input_audio_transcription.failed')
  await client.end()
  const { url, first, got } = provider.last()
  t.equal(url, '/v1/realtime?intent=transcription')
  t.match(first, { session: { audio: { input: { transcription: { model: 'rt-1' } } } } })
  t.notOk(got.some(({ type }) => type === 'response.create'))
  t.equal(await settled(own.name), '0')
})

t.test('a client secret opens sessions of its settings, for its key, for a while', async t => {
  const instructions = 'Be a secret pirate.'
  const settings = { output_modalities: ['text'], reasoning: { effort: 'low' }, parallel_tool_calls: false }
  const session = { type: 'realtime', model: 'voice', instructions, ...settings }
  const answer = await mint(session, { expires_after: { anchor: 'created_at', seconds: 1 } })
  const made = (await answer.json()) as { value: string; expires_at: number }
  t.equal(answer.status, 200)
  t.match(made, {
    value: /^ek_/,
    session: { id: /^sess_/, object: 'realtime.session', type: 'realtime', model: 'voice' },
  })
  t.notMatch(JSON.stringify(made), /pirate/)
  const seconds = made.expires_at - Date.now() / 1000
  t.ok(seconds > 5 && seconds < 12, 'ten seconds at least')
  const protocols = ['realtime', `openai-insecure-api-key.${made.value}`]
  const client = await new Client('', { protocols }).opened()
  t.equal(client.ws.protocol, 'realtime')
  client.send({ type: 'session.update', event_id: 'e1', session: { type: 'realtime', instructions: 'Other' } })
  t.match(await client.until('error'), { error: { code: 'instructions_locked', event_id: 'e1' } })
  client.send({ type: 'response.create', response: { instructions: 'Other' } })
  t.match(await client.until('error'), { error: { code: 'instructions_locked', param: 'response.instructions' } })
  client.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } })
  const updated = await client.until('session.updated')
  t.notMatch(JSON.stringify(updated), /pirate/)
  t.match(provider.last().first, { session: { instructions, ...settings } })
  await client.end()
  t.strictSame(await refusalOf(new Client('?model=scribe', { key: made.value })), [400, 'model_mismatch'])
  t.strictSame(
    await codeOf(await gateway.post('/v1/chat/completions', {}, { authorization: `Bearer ${made.value}` })),
    [403, 'permission_denied'],
  )
  const own = await payer('1')
  const other = (await (await mint(session, {}, own.key)).json()) as { value: string }
  await command('keys.revoke', { id: own.id })
  t.strictSame(
    await refusalOf(new Client('', { key: other.value })),
    [401, 'invalid_client_secret'],
    'it ends with its key',
  )
})

t.test('a client secret is refused for what its sessions could not do', async t => {
  const poor = await payer('0')
  const session = { type: 'realtime', model: 'voice' }
  const heard = (model: string) => ({ ...session, audio: { input: { transcription: { model } } } })
  const rows: [expected: unknown, session: object, key?: string][] = [
    [[400, 'invalid_request'], { ...session, temperature: 1 }],
    [
      [400, 'invalid_request'],
      { ...session, audio: { input: { turn_detection: { type: 'server_vad', idle_timeout_ms: 1 } } } },
    ],
    [[400, 'invalid_request'], { ...session, tracing: 'auto' }],
    [[400, 'tool_type_not_supported'], { ...session, tools: [{ type: 'mcp', server_url: 'https://a.example' }] }],
    [[400, 'prompt_not_supported'], { ...session, prompt: { id: 'p' } }],
    [[400, 'instructions_too_large'], { ...session, instructions: 'x'.repeat(70_000) }],
    [[404, 'model_not_found'], { ...session, model: 'nope' }],
    [[400, 'model_not_supported'], { ...session, model: 'scribe' }],
    [[400, 'transcription_model_not_supported'], heard('nope')],
    [[200, undefined], heard('scribe')],
    [[200, undefined], { type: 'transcription', audio: { input: { transcription: { model: 'scribe' } } } }],
    [[402, 'billing_error'], session, poor.key],
  ]
  for (const [expected, wanted, key] of rows) {
    t.strictSame(await codeOf(await mint(wanted, {}, key)), expected, JSON.stringify(wanted).slice(0, 100))
  }
  t.strictSame(await codeOf(await gateway.post('/v1/realtime/client_secrets', '{')), [400, 'invalid_json'])
})

t.test('events that would cost past our prices, or change what is fixed, never reach the provider', async t => {
  const client = await new Client().opened()
  const update = (session: object) => ({ type: 'session.update', event_id: 'u', session })
  const picture = { content: [{ type: 'input_image', image_url: 'http://169.254.169.254/latest' }] }
  const rows: [code: string, event: object | string][] = [
    ['model_locked', update({ type: 'realtime', model: 'scribe' })],
    ['tool_type_not_supported', update({ tools: [{ type: 'mcp', server_label: 'x', connector_id: 'c' }] })],
    ['prompt_not_supported', update({ prompt: { id: 'p' } })],
    ['unsupported_parameter', { type: 'response.create', response: { tracing: 'auto' } }],
    ['unsupported_parameter', update({ web_search: true })],
    [
      'unsupported_parameter',
      update({ audio: { input: { turn_detection: { type: 'server_vad', idle_timeout_ms: 5000 } } } }),
    ],
    ['transcription_model_required', update({ audio: { input: { transcription: {} } } })],
    ['transcription_model_not_supported', update({ audio: { input: { transcription: { model: 'whisper-9' } } } })],
    ['invalid_request', { type: 'session.update', session: 3 }],
    ['model_locked', { type: 'response.create', response: { model: 'scribe' } }],
    ['tool_type_not_supported', { type: 'response.create', response: { tools: [{ type: 'mcp' }] } }],
    ['invalid_request', { type: 'conversation.item.create', item: picture }],
    [
      'invalid_request',
      { type: 'conversation.item.create', item: { type: 'function_call_output', output: picture.content } },
    ],
    ['invalid_request', { type: 'response.create', response: { input: [picture] } }],
    ['unsupported_event', { type: 'transcription_session.update', session: {} }],
    ['invalid_json', '[1]'],
    ['invalid_json', '{"type":'],
    ['invalid_json', `{"type":"response.create","x":${'['.repeat(200)}${']'.repeat(200)}}`],
  ]
  for (const [code, event] of rows) {
    client.ws.send(typeof event === 'string' ? event : JSON.stringify(event))
    t.match(await client.until('error'), { error: { type: 'invalid_request_error', code } }, code)
  }
  client.ws.send(Buffer.from([1, 2, 3]))
  t.match(await client.until('error'), { error: { code: 'invalid_frame' } })
  t.strictSame(provider.last().got, [])
  // A name that stands twice is read in one way by all.
  client.ws.send('{"type":"response.create","type":"input_audio_buffer.clear"}')
  client.send(update({ model: 'speaker', audio: { input: { transcription: { model: 'scribe' } } } }))
  await client.until('session.updated')
  client.send(update({ audio: { input: { transcription: { model: 'scribe' }, turn_detection: null } } }))
  t.match(await client.until('session.updated'), {
    session: { audio: { input: { transcription: { model: 'scribe' } } } },
  })
  // OpenAI's agents ask for traces by default, and end with an error.
  client.send(update({ type: 'realtime', tracing: 'auto' }))
  t.match(await client.until('session.updated', 'error'), { session: { tracing: null } })
  t.match(provider.last().got, [
    { type: 'input_audio_buffer.clear' },
    { session: { model: 'rt-1', audio: { input: { transcription: { model: 'scribe-1' } } } } },
    { session: { audio: { input: { turn_detection: null } } } },
    { session: { type: 'realtime', tracing: null } },
  ])
  await client.end()
})

t.test('speech is answered through the money gate, and its transcript is charged', async t => {
  const own = await payer('1')
  provider.take = (session, event) => {
    usualTake(session, event)
    if (event.type !== 'input_audio_buffer.append') return
    session.send({ type: 'input_audio_buffer.committed', item_id: 'item_1' })
    const usage = { type: 'duration', seconds: 2 }
    session.send({
      ...{ type: 'conversation.item.input_audio_transcription.completed', item_id: 'item_1', transcript: 'Hi', usage },
    })
  }
  const client = await new Client('?model=voice', { key: own.key }).opened()
  client.send({ type: 'session.update', session: { audio: { input: { transcription: { model: 'scribe' } } } } })
  client.send({ type: 'input_audio_buffer.append', audio: Buffer.alloc(96_000).toString('base64') })
  await client.until('response.done')
  t.equal(provider.last().got.filter(({ type }) => type === 'response.create').length, 1, 'the gateway asks for it')
  // 0.00012 for the response, 2 s of 3.6 USD an hour for the transcript.
  t.equal(await settled(own.name), '0.00212')
  const update = { audio: { input: { turn_detection: { type: 'server_vad', create_response: false } } } }
  client.send({ type: 'session.update', session: update })
  t.match(await client.until('session.updated'), {
    session: { audio: { input: { turn_detection: { create_response: false } } } },
  })
  client.send({ type: 'input_audio_buffer.append', audio: 'AAAA' })
  client.send({ type: 'response.create' })
  await client.until('response.done')
  t.equal(
    provider.last().got.filter(({ type }) => type === 'response.create').length,
    2,
    'and not where nobody wants it',
  )
  await client.end()
  t.same(await command('usage.check', {}), { differences: [] })
})

t.test(
  'no response without money, beyond what a session may spend, beside another, or for a key that has ended',
  async t => {
    // 4096 tokens of audio are held for at 64,000 nano-USD: 0.26 USD.
    const poor = await payer('0.016')
    const short = await new Client('?model=voice', { key: poor.key }).opened()
    short.send({ type: 'response.create', event_id: 'mine' })
    t.match(await short.until('error'), { error: { code: 'insufficient_credits', event_id: 'mine' } })
    t.strictSame(provider.last().got, [])
    const less = await payer('0.2')
    const limited = await new Client('?model=voice', { key: less.key }).opened()
    limited.send({ type: 'response.create' })
    await limited.until('response.done')
    t.match(provider.last().got, [{ response: { max_output_tokens: 3125 } }], 'what there is money for')
    await limited.end()
    short.send({ type: 'response.create', response: { max_output_tokens: 10, output_modalities: ['text'] } })
    await short.until('response.done')
    await short.end()

    const own = await payer('5')
    const client = await new Client('?model=voice', { key: own.key }).opened()
    const session = provider.last()
    const waits: (() => void)[] = []
    provider.take = (to, event) => (event.type === 'response.create' ? waits.push(() => respond(to, dear)) : undefined)
    const dear = { usage: { input_tokens: 1000, output_tokens: 500 } }
    client.send({ type: 'response.create' })
    client.send({ type: 'response.create', event_id: 'second' })
    t.match(await client.until('error'), { error: { code: 'response_in_flight', event_id: 'second' } })
    waits.shift()!()
    await client.until('response.done')
    // 0.012 USD of 0.01.
    client.send({ type: 'response.create' })
    t.match(await client.until('error'), { error: { code: 'session_spend_limit' } })
    t.equal(session.got.filter(({ type }) => type === 'response.create').length, 1)
    await client.end()

    const late = await new Client('?model=voice', { key: own.key }).opened()
    await command('keys.revoke', { id: own.id })
    late.send({ type: 'response.create' })
    t.match(await late.until('error'), { error: { code: 'invalid_api_key' } })
    t.equal(await late.closed, 1008)
    t.equal(await settled(own.name), '0.012')
  },
)

t.test('M23 a response is charged once, as its provider reports it, whatever else that says', async t => {
  const own = await payer('5')
  const script: ((session: ProviderSession) => void)[] = []
  provider.take = (session, event) => {
    if (event.type === 'response.create') script.shift()?.(session)
    else if (event.type === 'session.update') usualTake(session, event)
  }
  const open = () => new Client('?model=voice', { key: own.key }).opened()
  let used = 0
  const charged = async (nano: number, says: string) => {
    used += nano
    t.equal(Number(await settled(own.name)).toFixed(9), (used / 1e9).toFixed(9), says)
  }
  const client = await open()
  script.push(session => {
    const id = respond(session)
    session.send({
      type: 'response.done',
      response: { id, status: 'completed', usage: { input_tokens: 9, output_tokens: 9 } },
    })
    session.send({ type: 'rate_limits.updated', rate_limits: [] })
    for (const delta of upstreamSecret.match(/.{1,5}/g)!) session.send({ type: 'x.text.delta', delta })
    session.send({ type: 'x.last', key: upstreamSecret })
  })
  client.send({ type: 'response.create' })
  const last = await client.until('x.last')
  t.equal(last.key, '***', 'credentials are masked')
  const pieces = client.got.filter(({ type }) => type === 'x.text.delta').map(({ delta }) => delta)
  t.notOk(pieces.join('').includes(upstreamSecret.slice(0, 18)), 'also in pieces')
  t.notOk(client.got.some(({ type }) => type === 'rate_limits.updated'))
  await charged(120_000, 'twice done, once charged')
  script.push(session => respond(session, { status: 'cancelled', usage: { input_tokens: 10, output_tokens: 1 } }))
  client.send({ type: 'response.create' })
  await client.until('response.done')
  await charged(56_000, 'cancelled, as it reports')
  script.push(session =>
    session.send({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'no', event_id: session.got.at(-1)?.event_id },
    }),
  )
  client.send({ type: 'response.create', event_id: 'refused' })
  t.match(await client.until('error'), { error: { message: 'no', event_id: 'refused' } })
  await charged(0, 'refused by the provider')
  await client.end()
})

t.test('a provider that fails ends the session with 1011, and what it had given is charged', async t => {
  const own = await payer('50')
  const audio = Buffer.alloc(48_000).toString('base64')
  const delta = (session: ProviderSession) => {
    session.send({ type: 'response.created', response: { id: `resp_x${Math.random()}` } })
    session.send({ type: 'response.output_audio.delta', delta: audio })
  }
  const after = (session: ProviderSession, then: () => void) => {
    delta(session)
    then()
  }
  // Of a second of audio 21 tokens at 64,000, and the instructions and tools of the session, which are none.
  const second = 1_344_000
  const rows: [says: string, nano: number, (session: ProviderSession) => void][] = [
    ['before any output', 0, session => session.socket.destroy()],
    ['in the middle of a response', second, session => after(session, () => session.ws.close(1011))],
    ['by what is no JSON', second, session => after(session, () => session.ws.send('{"type":'))],
    ['by binary', second, session => after(session, () => session.ws.send(Buffer.from('{}')))],
    [
      'by a message that is too large',
      second,
      session => after(session, () => session.ws.send(`"${'x'.repeat(2 ** 20)}"`)),
    ],
    [
      'by usage that cannot be read',
      second,
      session => {
        delta(session)
        session.send({
          type: 'response.done',
          response: { output: [{}], usage: { input_tokens: -5, output_tokens: 1e12 } },
        })
      },
    ],
    [
      'by a response of its own',
      0,
      session => {
        respond(session)
        respond(session)
      },
    ],
  ]
  let used = 0
  for (const [says, nano, fail] of rows) {
    provider.take = (session, event) => (event.type === 'response.create' ? fail(session) : usualTake(session, event))
    const client = await new Client('?model=voice', { key: own.key }).opened()
    client.send({ type: 'response.create' })
    t.match(await client.until('error'), { error: { code: 'upstream_unavailable' } }, says)
    t.equal(await client.closed, 1011, says)
    used += says.includes('its own') ? 120_000 : nano
    t.equal(Number(await settled(own.name)).toFixed(9), (used / 1e9).toFixed(9), says)
  }
  t.same(await command('usage.check', {}), { differences: [] })
})

t.test('a client that leaves has its response cancelled, and pays for what was made of it', async t => {
  const own = await payer('5')
  provider.take = (session, event) => {
    if (event.type === 'response.create') session.send({ type: 'response.created', response: { id: 'resp_left' } })
    if (event.type !== 'response.cancel')
      return usualTake(session, { ...event, type: event.type.replace('response.create', '') })
    session.send({
      type: 'response.done',
      response: { id: 'resp_left', status: 'cancelled', usage: { input_tokens: 10, output_tokens: 2 } },
    })
  }
  const client = await new Client('?model=voice', { key: own.key }).opened()
  client.send({ type: 'response.create' })
  await client.until('response.created')
  client.ws.terminate()
  await once(provider.last().ws, 'close')
  t.equal(await settled(own.name), '0.000072')
})

t.test('a client that leaves before its session is open ends the call of the provider at once', async t => {
  const ended = async (labels: Record<string, string> = {}) =>
    metric(await gateway.metrics(), 'gateway_requests_total', { endpoint: 'realtime', ...labels })!
  for (const leave of ['destroy', 'resetAndDestroy'] as const) {
    const [all, aborted] = [await ended(), await ended({ outcome: 'aborted' })]
    const called = new Promise<ProviderSession>(resolve => {
      provider.created = session => void resolve(session)
    })
    const client = connect(gateway.port, '127.0.0.1')
    const lines = ['host: x', `authorization: Bearer ${gateway.key}`, 'connection: upgrade', 'upgrade: websocket']
    const key = ['sec-websocket-version: 13', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==']
    client.write(`GET /v1/realtime?model=voice HTTP/1.1\r\n${[...lines, ...key].join('\r\n')}\r\n\r\n`)
    const { ws } = await called
    client[leave]()
    await once(ws, 'close')
    while ((await ended()) === all) await new Promise(resolve => setImmediate(resolve))
    // One that was not noticed ends as an error of the provider.
    t.equal(await ended({ outcome: 'aborted' }), aborted + 1, leave)
  }
})

t.test('M22 hostile frames end their own session alone', async t => {
  // A burst that is sent with the handshake, before there is a provider, arrives in order.
  const early = new Client()
  early.ws.once('open', () => {
    for (let at = 0; at < 50; at++) early.send({ type: 'input_audio_buffer.append', audio: 'AAAA', at })
    early.send({ type: 'response.create' })
  })
  await early.until('response.done')
  t.strictSame(
    provider.last().got.map(({ type, at }) => (type === 'response.create' ? 'create' : at)),
    [...Array(50).keys(), 'create'],
  )
  await early.end()

  const neighbor = await new Client().opened()
  const large = await new Client().opened()
  large.ws.send(JSON.stringify({ type: 'input_audio_buffer.append', audio: 'x'.repeat(2 ** 20) }))
  t.equal(await large.closed, 1009)

  const raw = async (bytes: Buffer | Buffer[]) => {
    const socket = connect(gateway.port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write(
      `GET /v1/realtime?model=voice HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${gateway.key}\r\nconnection: Upgrade\r\n` +
        'upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
        'sec-websocket-extensions: permessage-deflate\r\n\r\n',
    )
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    const ended = once(socket, 'close')
    await once(socket, 'data')
    for (const one of [bytes].flat()) socket.write(one)
    await ended
    return Buffer.concat(chunks)
  }
  const mask = Buffer.alloc(4)
  const frame = (head: number, payload: Buffer) =>
    Buffer.concat([Buffer.from([head, 0x80 | payload.length]), mask, payload])
  /** The code of the close frame that the answer ends with. */
  const codeIn = (answer: Buffer) => {
    const at = answer.lastIndexOf(0x88)
    return at < 0 ? undefined : answer.readUInt16BE(at + 2)
  }
  const bad = await raw(frame(0x81, Buffer.from([0xff, 0xfe])))
  t.equal(codeIn(bad), 1007, 'bad UTF-8')
  t.notMatch(bad.toString('latin1'), /sec-websocket-extensions/i, 'no compression is agreed on')
  t.equal(codeIn(await raw(frame(0xc1, Buffer.from('a')))), 1002, 'compressed all the same')
  t.equal(codeIn(await raw(Buffer.from([0x81, 0x01, 0x61]))), 1002, 'not masked')
  const fragments = [
    frame(0x01, Buffer.from('{')),
    ...Array.from({ length: 2000 }, () => frame(0x00, Buffer.from(' '))),
  ]
  t.equal(codeIn(await raw(fragments)), 1008, 'fragments without end')
  for (const head of [0x81, 0x89, 0x8a]) {
    const many = Buffer.concat(Array.from({ length: 5000 }, () => frame(head, Buffer.alloc(0))))
    t.equal(codeIn(await raw(many)), 1008, 'frames without content')
  }

  const flood = await new Client().opened()
  for (let sent = 0; sent < 5000; sent++) flood.ws.send('{}')
  neighbor.send({ type: 'response.create' })
  await neighbor.until('response.done')
  flood.ws.terminate()
  await neighbor.end()
})

t.test('a client that reads nothing is waited for within bounds, and delays no other session', async t => {
  const client = await new Client().opened()
  const session = provider.last()
  client.ws.pause()
  const audio = 'x'.repeat(256 * 1024)
  const most = 200
  let sent = 0
  while (sent < most && session.socket.writableLength < 4 * 1024 * 1024) {
    session.send({ type: 'conversation.item.added', audio })
    sent++
    await new Promise(resolve => setImmediate(resolve))
  }
  t.ok(session.socket.writableLength > 0, 'its provider has to wait')
  const other = await new Client().opened()
  other.send({ type: 'response.create' })
  await other.until('response.done')
  await other.end()
  client.ws.resume()
  for (let got = 0; got < sent; got++) await client.until('conversation.item.added')
  await client.end()
})

t.test('sessions are counted for their key and their organization', async t => {
  const own = await payer('5')
  const open: Client[] = []
  for (let at = 0; at < 12; at++) open.push(await new Client('?model=voice', { key: own.key }).opened())
  t.strictSame(await refusalOf(new Client('?model=voice', { key: own.key })), [429, 'rate_limit_exceeded'])
  await Promise.all(open.map(client => client.end()))
  let next = new Client('?model=voice', { key: own.key })
  // A place is free when its session has ended on both sides.
  for (;;) {
    const opened = await Promise.race([
      once(next.ws, 'open').then(() => true),
      once(next.ws, 'unexpected-response').then(() => false),
    ])
    if (opened) break
    next = new Client('?model=voice', { key: own.key })
  }
  await next.end()
})

t.test('a drain lets sessions go on for its time, and then says so', async t => {
  const client = await new Client().opened()
  gateway.signal('SIGTERM')
  gateway.signal('SIGTERM')
  t.match(await client.until('error'), { error: { code: 'server_shutting_down' } })
  t.equal(await client.closed, 1001)
})
