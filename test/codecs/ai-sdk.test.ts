/**
 * The AI SDK's protocol: what becomes of call options, and of an answer's events, in its three versions.
 * `test/golden/ai-sdk` holds a call with the chat request that it becomes, and answers as each version has them.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { fieldOf } from '../../src/codecs/ai-sdk/fields.ts'
import { aiSdk } from '../../src/codecs/ai-sdk.ts'
import { carry } from '../../src/codecs/carried-reasoning.ts'
import { Cancellation } from '../../src/core/cancel.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Event } from '../../src/core/event.ts'
import { Exchange } from '../../src/core/exchange.ts'
import type { Principal, Services } from '../../src/core/ports.ts'
import type { Snapshot } from '../../src/core/snapshot.ts'
import { aiSdkEndpoints } from '../../src/endpoints/ai-sdk.ts'
import type { Json } from '../../src/json/json.ts'
import { asError, errors, GatewayError } from '../../src/lib/error.ts'
import { meters } from '../../src/metering/meter.ts'
import { thrown } from '../core/kit.ts'
import { principalOf } from '../core/principal.ts'
import { cpuMs } from '../helpers/cpu.ts'
import { deepFreeze } from '../plugins/wire-kit.ts'
import { choices, files, hi, options, results, searches, text, user, wrong } from './ai-sdk-calls.ts'

type Number = 2 | 3 | 4
const numbers: readonly Number[] = [2, 3, 4]
const golden = (name: string) =>
  JSON.parse(readFileSync(new URL(`../golden/ai-sdk/${name}.json`, import.meta.url), 'utf8'))

function exchange(prefix = '/v4/ai', headers: Record<string, string> = {}): Exchange {
  const endpoint = aiSdkEndpoints.find(({ path }) => path === `${prefix}/language-model`)!
  const given = { 'ai-language-model-id': 'acme/m', ...headers }
  const body = () => Promise.reject(new Error('is not read here'))
  return new Exchange({
    meters,
    snapshot: {} as Snapshot,
    endpoint,
    headers: given,
    query: '',
    signal: new Cancellation(),
    body,
  })
}
const versioned = (number: Number, streams: boolean): Exchange =>
  exchange('/v1/ai', {
    'ai-language-model-specification-version': String(number),
    'ai-language-model-streaming': String(streams),
  })
const decode = (body: unknown, ex = exchange()): ChatRequest => aiSdk.decode(deepFreeze(body), ex)
const asked = { model: 'acme/m', messages: [{ role: 'user', content: 'Hi' }], stream: false }

t.test('a golden call becomes its chat request', async t => {
  t.strictSame(decode(golden('agent.call')), golden('agent.request'))
})

t.test('credits are read by regular keys, and not by those that stand in client programs', async t => {
  const services = { ledger: { balance: async () => ({ balance: 1_500_000_000n, used: 0n }) } } as unknown as Services
  const read = async (path: string, principal?: Principal) => {
    const endpoint = aiSdkEndpoints.find(one => one.path === path)!
    if (endpoint.serve === 'upstream') throw new Error('is served here')
    const ex = exchange()
    ex.caller.principal = principal
    return endpoint.serve(ex, services).catch(asError)
  }
  for (const path of ['/v1/credits', '/v4/ai/credits']) {
    t.match(await read(path, principalOf()), { status: 200 }, path)
    t.match(await read(path), { status: 401 }, path)
    for (const kind of ['publishable', 'session'] as const) {
      t.match(await read(path, principalOf({ kind })), { status: 403, code: 'permission_denied' }, `${path} ${kind}`)
    }
  }
})

t.test('each option has its chat form', async t => {
  for (const [given, becomes] of options) {
    t.strictSame(decode({ prompt: hi, ...given }), { ...asked, ...becomes }, JSON.stringify(given))
  }
})

t.test('a choice among tools, of which those of providers become the search or a warning', async t => {
  for (const [tools, toolChoice, sent, becomes] of choices) {
    const says = JSON.stringify([tools, toolChoice])
    const { tools: left = [], tool_choice } = decode({ prompt: hi, tools, toolChoice })
    t.strictSame(
      left!.map(tool => (tool.type === 'function' ? tool.function.name : tool.type)),
      sent,
      says,
    )
    t.strictSame(tool_choice, becomes, says)
  }
})

t.test("a provider's tool whose id is no text becomes a warning", async t => {
  const id = JSON.parse('{"toString":null}') as object
  for (const number of numbers) {
    const ex = versioned(number, false)
    ex.request = decode({ prompt: hi, tools: [{ type: 'provider', id, name: 'x', args: {} }] }, ex)
    const { warnings } = JSON.parse(String(aiSdk.encoder(ex).end()))
    t.equal(warnings.length, 1, String(number))
  }
})

t.test("search tools of every provider are the gateway's search", async t => {
  for (const [id, args, becomes] of searches) {
    const { tools } = decode({ prompt: hi, tools: [{ type: 'provider', id, name: 'x', args }] })
    t.strictSame(tools, [{ type: 'web_search', ...becomes }], id)
  }
})

t.test('files in every encoding', async t => {
  for (const [says, part, becomes] of files) {
    const { messages } = decode({ prompt: [user(text('a'), { type: 'file', ...part })] })
    t.strictSame(messages[0]!.content, [text('a'), becomes], says)
  }
})

t.test('an image of an earlier answer stays with its turn, and its wire decides on it', async t => {
  for (const data of ['iVBORw0KGgo=', { type: 'data', data: 'iVBORw0KGgo=' }]) {
    const image = { type: 'file', mediaType: 'image/png', data }
    const pdf = { type: 'file', mediaType: 'application/pdf', data }
    const ex = versioned(4, false)
    const prompt = [...hi, { role: 'assistant', content: [text('Here:'), image, pdf] }, ...hi]
    ex.request = decode({ prompt }, ex)
    const url = 'data:image/png;base64,iVBORw0KGgo='
    t.strictSame((ex.request as ChatRequest).messages[1], {
      role: 'assistant',
      content: 'Here:',
      images: [{ type: 'image_url', image_url: { url } }],
    })
    const { warnings } = JSON.parse(String(aiSdk.encoder(ex).end()))
    t.match(warnings, [{ message: /^prompt\[1\]\.content\[2\]: a part of type "file"/ }])
    t.equal(warnings.length, 1)
  }
})

t.test('results of tools in every form', async t => {
  for (const [output, content, is_error] of results) {
    const part = { type: 'tool-result', toolCallId: 'c', toolName: 'f', output }
    const ran = { type: 'tool-call', toolCallId: 'c', toolName: 'f', input: { a: 1 } }
    const approval = { type: 'tool-approval-response', approvalId: 'a', approved: true }
    const prompt = [...hi, { role: 'assistant', content: [ran] }, { role: 'tool', content: [part, approval] }]
    const { messages } = decode({ prompt })
    const result = { role: 'tool', tool_call_id: 'c', content, ...(is_error && { is_error }) }
    t.strictSame(messages[2], result, JSON.stringify(output))
  }
})

t.test('a refusal names the member that its caller wrote', async t => {
  for (const [says, body, param] of wrong) {
    const ex = exchange()
    const error = thrown(() => decode(body, ex)) as GatewayError
    t.ok(error instanceof GatewayError, `${says}: ${error}`)
    t.strictSame([error.status, error.param && fieldOf(error.param, ex)], [400, param], says)
  }
  const nameless = thrown(() => decode({ prompt: hi }, exchange('/v4/ai', { 'ai-language-model-id': '' })))
  t.match(nameless, { status: 400, param: 'ai-language-model-id' })
})

t.test('the header says the version, else the prefix', async t => {
  const rows: [prefix: string, header: string | undefined, number: Number][] = [
    ['/v1/ai', undefined, 2],
    ['/v2/ai', undefined, 2],
    ['/v3/ai', undefined, 3],
    ['/v4/ai', undefined, 4],
    ['/v4/ai', '2', 2],
    ['/v1/ai', '4', 4],
    ['/v3/ai', '2', 3],
    ['/v4/ai', '5', 4],
    ['/v4/ai', 'constructor', 4],
  ]
  for (const [prefix, header, number] of rows) {
    const ex = exchange(prefix, header === undefined ? {} : { 'ai-language-model-specification-version': header })
    ex.request = decode({ prompt: hi, seed: 1 }, ex)
    const { finishReason, warnings } = JSON.parse(String(aiSdk.encoder(ex).end()))
    const says = `${prefix} ${header}`
    t.equal(typeof finishReason, number === 2 ? 'string' : 'object', says)
    t.equal(warnings[0].type, number === 2 ? 'unsupported-setting' : 'unsupported', says)
  }
})

/** What is written of batches of events in answer to a call. */
function written(number: Number, streams: boolean, body: Json, batches: Event[][], fails = false): string {
  const ex = versioned(number, streams)
  ex.request = decode({ prompt: hi, ...body }, ex)
  const encoder = aiSdk.encoder(ex)
  let out = ''
  for (const batch of batches) {
    ex.observe(batch)
    out += encoder.write(batch) ?? ''
  }
  return out + String((fails ? encoder.fail(errors.truncated()) : encoder.end()) ?? '')
}

/** Parts without what only one request has. */
function parsed(sse: string): Json[] {
  const events = sse.split('\n\n')
  t.strictSame(events.slice(-2), ['data: [DONE]', ''])
  return events.slice(0, -2).map(event => bare(JSON.parse(event.slice('data: '.length))))
}
function bare({ generationId: _g, ...part }: Json): Json {
  const { type, providerMetadata, usage, rawValue } = part
  if (type === 'response-metadata') return { type }
  if (rawValue) return { type, delta: (rawValue as { choices: Json[] }).choices[0]?.delta }
  const own = (providerMetadata as { gateway?: Json } | undefined)?.gateway
  if (own?.routing) delete part.providerMetadata
  if (usage) delete (usage as Json).raw
  return JSON.parse(JSON.stringify(part).replaceAll(/srvtoolu_\w+|call_\w{20}/g, 'id'))
}
const of = (table: Json, number: Number) => table[number] ?? table.all

t.test('golden events become their answer in each version, whole and streamed', async t => {
  for (const { says, call, batches, fails, whole, parts } of golden('answers')) {
    for (const number of numbers) {
      t.strictSame(
        parsed(written(number, true, call, batches, fails)),
        of(parts, number),
        `${says}, ${number}, streamed`,
      )
      if (fails || call.includeRawChunks) continue
      const answer = bare(JSON.parse(written(number, false, call, batches)))
      t.strictSame(answer, of(whole, number), `${says}, ${number}, whole`)
    }
  }
})

t.test('a call that warns of all it holds is warned of a hundred of them, and tools are repeated in short', async t => {
  const ex = versioned(2, false)
  const part = { type: 'custom', kind: 'a.b' }
  const tool = { type: 'provider-defined', id: 'acme.x', name: 'x', args: { text: 'a'.repeat(10_000) } }
  const prompt = [...hi, { role: 'assistant', content: Array.from({ length: 50_000 }, () => part) }]
  const used = cpuMs(() => {
    ex.request = decode({ prompt, tools: Array.from({ length: 1000 }, () => tool) }, ex)
  })
  t.ok(used < 2000, `${Math.round(used)} ms of CPU`)
  const { warnings } = JSON.parse(String(aiSdk.encoder(ex).end()))
  t.equal(warnings.length, 100)
  t.ok(JSON.stringify(warnings).length < 20_000)
  ex.request = decode({ prompt: hi, tools: [tool] }, ex)
  const [one] = JSON.parse(String(aiSdk.encoder(ex).end())).warnings
  t.strictSame(one.tool, { type: 'provider-defined', id: 'acme.x', name: 'x', args: {} })
})

t.test('long arguments of a tool are not written to be left out, nor those of tools without a warning', async t => {
  let written = 0
  const toJSON = () => {
    written++
    return {}
  }
  const tools = (count: number, text: string) =>
    Array.from({ length: count }, () => ({ type: 'provider-defined', id: 'acme.x', name: 'x', args: { text, toJSON } }))
  const ex = versioned(2, false)
  decode({ prompt: hi, tools: tools(1, 'a'.repeat(4096)) }, ex)
  t.equal(written, 0)
  decode({ prompt: hi, tools: tools(200, 'a') }, ex)
  t.equal(written, 100)
})

t.test('what a part claims to carry counts with the body, and what was not made here says nothing', async t => {
  const says = (carried: unknown) =>
    decode({
      prompt: [...hi, { role: 'assistant', content: [{ ...text('a'), providerOptions: { gateway: { carried } } }] }],
    }).messages[1]!
  const native = [{ type: 'server_tool_use', id: 'x', provider: 'p' }]
  t.strictSame(says(carry({ native })).provider_native_blocks, native)
  const deep = carry({ native: [JSON.parse(`${'{"a":'.repeat(500)}1${'}'.repeat(500)}`)] })
  for (const forged of [deep, 'eyJtZ3c', carry({ native }).slice(0, 30), 1, { native }, null]) {
    t.strictSame(says(forged), { role: 'assistant', content: 'a' }, String(forged).slice(0, 20))
  }
})

t.test('names of members that clients of the protocol refuse stay inside of what carries them', async t => {
  const block = JSON.parse('{"type":"x","__proto__":{"a":1},"constructor":{"prototype":{}}}')
  const tools = [{ type: 'provider', id: 'openai.web_search', name: 's', args: {} }]
  const events: Event[] = [
    { type: 'native', choice: 0, provider: 'p', block },
    { type: 'source', choice: 0, url: 'https://a' },
    { type: 'finish', choice: 0, reason: 'stop' },
  ]
  const out = written(3, true, { tools }, [events])
  t.notMatch(out, '__proto__')
  t.notMatch(out, '"prototype"')
})

t.test('calls that their provider gives one id have two', async t => {
  const tool = (index: number): Event => ({ type: 'tool', choice: 0, index, id: 'c', name: 'f', args: '{}' })
  const { content } = JSON.parse(
    written(3, false, {}, [[tool(0), tool(1), { type: 'finish', choice: 0, reason: 'tool_calls' }]]),
  )
  t.match(content, [{ toolCallId: 'c' }, { toolCallId: /^call_\w+_1$/ }])
})
