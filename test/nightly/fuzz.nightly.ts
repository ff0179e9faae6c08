/** Bodies, commands and events in which something is not as it should be: the gateway refuses them and never fails. */
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import t from 'tap'
import { commands } from '../../src/admin/commands/index.ts'
import { endpoints } from '../../src/endpoints/index.ts'
import { figure } from '../helpers/figure.ts'
import { startGateway } from '../helpers/gateway.ts'
import { RealtimeClient } from '../helpers/realtime-client.ts'

const RUNS = Number(process.env.FUZZ_REQUESTS ?? 500)
const SEED = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31))
const EVENTS_PER_SESSION = 30

const root = fileURLToPath(new URL('../../', import.meta.url))
const shipped = (path: string) => readFileSync(join(root, path), 'utf8')
const rpm = 1_000_000
const gateway = await startGateway(t, {
  providers: {},
  config: { endpoints: Object.fromEntries(endpoints.map(({ name }) => [name, { ratelimit: { rpm } }])) },
  files: {
    'providers.d/demo.yaml': shipped('providers.d/demo.yaml'),
    'config/models.d/demo.yaml': shipped('config/models.d/demo.yaml'),
  },
})
const tool = { name: 'weather', description: 'Tells it', parameters: { type: 'object', properties: { city: {} } } }
const asked = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'weather', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: 'c', content: 'rain' },
]
/** A body that each endpoint accepts. */
const BODIES: Readonly<Record<string, object>> = {
  '/v1/chat/completions': {
    ...{
      model: 'demo',
      messages: asked,
      tools: [{ type: 'function', function: tool }],
      tool_choice: 'auto',
      stop: ['x'],
    },
    ...{ temperature: 0.5, max_tokens: 20, response_format: { type: 'json_object' }, stream: true, n: 1 },
    ...{ stream_options: { include_usage: true }, provider: { order: ['demo'] }, models: ['demo'], user: 'ann' },
  },
  '/v1/messages': {
    ...{ model: 'demo', max_tokens: 20, system: [{ type: 'text', text: 'Be brief.' }], stream: true },
    messages: [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'weather', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'rain' }] },
    ],
    tools: [{ name: 'weather', input_schema: tool.parameters, cache_control: { type: 'ephemeral' } }],
    tool_choice: { type: 'auto' },
  },
  '/v1/messages/count_tokens': { model: 'demo', messages: [{ role: 'user', content: 'Hello' }] },
  '/v1/responses': {
    ...{ model: 'demo', instructions: 'Be brief.', stream: true, tools: [{ type: 'function', ...tool }], store: false },
    input: [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
      { type: 'function_call', call_id: 'c', name: 'weather', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: 'rain' },
    ],
    ...{ reasoning: { effort: 'low' }, text: { format: { type: 'text' } } },
  },
  '/v1/completions': { model: 'demo', prompt: ['Hello'], max_tokens: 5, echo: false },
  '/v1beta/models/demo:generateContent': {
    contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
    tools: [{ functionDeclarations: [{ name: 'weather', parameters: { type: 'OBJECT' } }] }],
    generationConfig: { maxOutputTokens: 5, stopSequences: ['x'] },
  },
  '/v1beta/models/demo:countTokens': { contents: [{ parts: [{ text: 'Hello' }] }] },
  '/v1beta/models/demo-embed:batchEmbedContents': {
    requests: [{ model: 'models/demo-embed', content: { parts: [{ text: 'a' }] } }],
  },
  '/v1/embeddings': { model: 'demo-embed', input: ['a', 'b'], dimensions: 8, encoding_format: 'base64' },
  '/v1/moderations': { model: 'demo-moderation', input: ['a'] },
  '/v1/rerank': { model: 'demo-rerank', query: 'a', documents: ['a', { text: 'b' }], top_n: 1 },
  '/v1/ocr': {
    model: 'demo-ocr',
    document: { type: 'document_url', document_url: 'data:application/pdf;base64,AAAA' },
  },
  '/v1/systemone': {
    ...{ model: 'demo-decision', state: { a: 1 } },
    questions: { sure: { type: 'noul', instructions: 'Sure?', criteria: { true: null } } },
  },
  '/v1/audio/speech': { model: 'demo-speech', input: 'a', voice: 'alloy', response_format: 'wav', speed: 1 },
  '/v1/images/generations': { model: 'demo-image', prompt: 'a', n: 1, size: '256x256', response_format: 'b64_json' },
  '/v1/videos': { model: 'demo-video', prompt: 'a', seconds: '4', size: '1280x720' },
  '/v1/sessions': { customer: 'ann', scope: { models: ['demo'], maxSpend: '1' }, ttlSeconds: 60 },
  '/v1/realtime/client_secrets': {
    session: { type: 'realtime', model: 'demo-realtime' },
    expires_after: { seconds: 60 },
  },
  '/mcp': { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_models', arguments: {} } },
}
const EVENTS: readonly object[] = [
  { type: 'session.update', session: { type: 'realtime', instructions: 'Be brief.', output_modalities: ['text'] } },
  {
    type: 'conversation.item.create',
    item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'a' }] },
  },
  { type: 'input_audio_buffer.append', audio: 'AAAA' },
  { type: 'input_audio_buffer.commit' },
  { type: 'conversation.item.truncate', item_id: 'i', content_index: 0, audio_end_ms: 1 },
  { type: 'response.create', response: { max_output_tokens: 5, tools: [{ type: 'function', ...tool }] } },
  { type: 'response.cancel' },
]

const odd = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>(
    ...[-1, 0, 1e308, 2 ** 53, '', ' ', '\u0000', '__proto__', 'constructor', [], {}, null, true],
  ),
  fc
    .integer({ min: 1, max: 4000 })
    .map(depth => JSON.parse('['.repeat(depth % 400) + ']'.repeat(depth % 400) || '0') as unknown),
  fc.string({ unit: 'binary', maxLength: 50 }),
)
/** The paths to all that stands in a value. */
function paths(value: unknown, to: readonly string[] = []): (readonly string[])[] {
  const under = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return [...(to.length > 0 ? [to] : []), ...under.flatMap(([name, part]) => paths(part, [...to, name]))]
}
interface Change {
  readonly at: number
  readonly odd: unknown
  readonly kind: 'replace' | 'remove' | 'repeat' | 'add'
}
const changes = fc.array(
  fc.record<Change>({
    at: fc.nat(),
    odd,
    kind: fc.constantFrom('replace', 'replace', 'replace', 'remove', 'repeat', 'add'),
  }),
  { minLength: 1, maxLength: 3 },
)
function changed(value: object, all: readonly Change[]): object {
  const copy = structuredClone(value)
  for (const { at, odd, kind } of all) {
    const known = paths(copy)
    const path = known[at % known.length]
    if (!path) continue
    const last = path.at(-1)!
    const parent = path
      .slice(0, -1)
      .reduce((part, name) => part[name] as Record<string, unknown>, copy as Record<string, unknown>)
    if (kind === 'remove') delete parent[last]
    else if (kind === 'repeat' && Array.isArray(parent)) parent.push(structuredClone(parent[Number(last)]))
    else if (kind === 'add' && !Array.isArray(parent)) parent[`${last}x`] = odd
    else parent[last] = odd
  }
  return copy
}
const settings = { seed: SEED, numRuns: RUNS, endOnFailure: true }

t.test(`no request body is answered with a fault of ours (seed ${SEED})`, async t => {
  let accepted = 0
  for (const [path, body] of Object.entries(BODIES)) {
    const send = async (sent: object) => {
      const answer = await gateway.post(path, sent)
      await answer.arrayBuffer()
      return answer.status
    }
    t.equal((await send(body)) < 400, true, `${path}: the body as it is`)
    const property = fc.asyncProperty(changes, async all => {
      const status = await send(changed(body, all))
      if (status < 400) accepted++
      return status < 500 && status !== 429
    })
    await t.resolves(fc.assert(property, settings), path)
  }
  figure(t, { id: 'FZ-01', what: 'changed bodies that are accepted', value: accepted, unit: 'requests', atLeast: 1 })
  t.equal((await gateway.get('/')).status, 200)
})

/** Values that commands take, and some that none does. */
const argument = fc.oneof(
  fc.constantFrom('default', 'own', '1h', '0.5', 'on', 'off', 'ada@x.example', 'developer', 'demo', 'openai', '../x'),
  odd,
)

t.test(`no command is answered with a fault of ours (seed ${SEED})`, async t => {
  let accepted = 0
  for (const [name, { args }] of Object.entries(commands)) {
    const known = Object.keys((args.json.properties as object | undefined) ?? {})
    const named = known.length === 0 ? fc.constant('x') : fc.constantFrom(...known)
    const given = fc.oneof(fc.dictionary(named, argument, { maxKeys: 6 }), odd)
    const property = fc.asyncProperty(given, async args => {
      const answer = await gateway.admin('POST', `/commands/${name}`, args as object)
      await answer.arrayBuffer()
      if (answer.status === 200) accepted++
      return answer.status < 500 && answer.status !== 429
    })
    await t.resolves(fc.assert(property, { ...settings, numRuns: Math.ceil(RUNS / 10) }), name)
  }
  figure(t, { id: 'FZ-02', what: 'odd commands that are accepted', value: accepted, unit: 'commands', atLeast: 1 })
  t.equal((await gateway.get('/')).status, 200)
})

t.test(`no event of a realtime client is answered with a fault of ours (seed ${SEED})`, async t => {
  const events = fc.array(fc.tuple(fc.nat(), changes), { minLength: 1, maxLength: EVENTS_PER_SESSION })
  let refused = 0
  /** Whether all errors until the last event's blame the client. */
  const blamesClient = async (client: RealtimeClient): Promise<boolean> => {
    for (;;) {
      const { error } = (await client.until('error')) as { error?: { type?: string; event_id?: string } }
      if (error?.type !== 'invalid_request_error') return false
      if (error.event_id === 'last') return true
      refused++
    }
  }
  const property = fc.asyncProperty(events, async all => {
    const client = await new RealtimeClient(gateway, '?model=demo-realtime').opened()
    for (const [at, how] of all) client.send(changed(EVENTS[at % EVENTS.length]!, how))
    client.send({ type: 'unknown', event_id: 'last' })
    const holds = await blamesClient(client)
    await client.end()
    return holds
  })
  await t.resolves(fc.assert(property, { ...settings, numRuns: Math.ceil(RUNS / 10) }))
  figure(t, { id: 'FZ-03', what: 'odd realtime events that are refused', value: refused, unit: 'events', atLeast: 1 })
  t.equal((await gateway.get('/')).status, 200)
})
