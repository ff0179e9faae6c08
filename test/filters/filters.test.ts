/** Filters, each alone: quirks, limits, the response cache and keys. */

import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Event } from '../../src/core/event.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { FilterFactory } from '../../src/core/filter.ts'
import type { CachedReply, Metrics, Principal, Quota, Services } from '../../src/core/ports.ts'
import type { Quirks } from '../../src/core/provider-settings.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { FanOut, Mapping, Target, Translator } from '../../src/core/translator.ts'
import type { WireRequest } from '../../src/core/wire.ts'
import { auth } from '../../src/filters/auth.ts'
import { cache } from '../../src/filters/cache.ts'
import { ratelimit } from '../../src/filters/ratelimit/index.ts'
import { translate } from '../../src/filters/translate/index.ts'
import { applyQuirks } from '../../src/filters/translate/quirks.ts'
import type { Json } from '../../src/json/json.ts'
import { errors, GatewayError } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import type { ImageRequest } from '../../src/operations/images/request.ts'
import { Base64Slice } from '../../src/operations/images/request.ts'
import { byName, eventsOf, exchange, principal, text, thrown } from '../core/kit.ts'
import { deepFreeze, target } from '../plugins/wire-kit.ts'
import { lenient } from '../policy/kit.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261120 })

const request = { model: 'acme-large', messages: [{ role: 'user', content: 'x'.repeat(40) }] }
const ok = (...batches: Event[][]): Reply => ({ status: 200, headers: [], events: eventsOf(...batches) })
const finish: Event = { type: 'finish', choice: 0, reason: 'stop' }
const silent: Partial<Metrics> = { cacheLookup() {} }
const made = <O>(factory: FilterFactory<O>, options: O, services: object) =>
  factory.create(options, {
    now: () => 1_000_000,
    memory: roomy(),
    metrics: silent,
    ...services,
  } as unknown as Services)
const roomy = (bytes = 2 ** 26) => new MemoryBudget(bytes, { memory: () => 0 })
/** The reply of a filter, read to its end, or what it throws. */
async function run<O>(factory: FilterFactory<O>, options: O, services: object, ex: Exchange, reply = ok()) {
  const filter = made(factory, options, services)
  try {
    const answer = await filter.handle!(ex, async () => reply)
    for await (const batch of answer.events) ex.observe(batch)
    return answer
  } catch (error) {
    return error as GatewayError
  }
}

t.test('what quirks add to a request and change in it is bounded, and each object is copied once', async t => {
  const none: Quirks = { drop: new Set<string>(), rename: {}, default: {}, clamp: {} }
  const bent = (quirks: Partial<Quirks>, body: Json) => {
    applyQuirks(target({ provider: { id: 'acme', quirks: { ...none, ...quirks } } }).provider, body)
    return body
  }
  const messages = (count: number) => Array.from({ length: count }, () => ({ role: 'user', a: 1 }))
  const long = 'x'.repeat(60_000)
  const refused: [says: string, quirks: Partial<Quirks>, message: RegExp][] = [
    ['a default', { default: { 'messages.*.big': long } }, /quirks of provider "acme" would add more than 1048576/],
    ['a name', { rename: { 'messages.*.role': long } }, /would add more than 1048576/],
    [
      'many quirks',
      { drop: new Set(Array.from({ length: 3000 }, (_, at) => `messages.*.k${at}`)) },
      /would look at more than 250000 objects/,
    ],
  ]
  for (const [says, quirks, message] of refused) {
    const error = thrown(() => bent(quirks, { messages: messages(60_000) }))
    t.match(error, { status: 400, failover: true, message }, says)
  }
  const drop = new Set(Array.from({ length: 20_000 }, (_, at) => `schema.k${at}`))
  const schema = deepFreeze(Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`k${at}`, at])))
  t.equal(Object.keys(bent({ drop }, { schema }).schema as Json).length, 80_000, 'to copy it for each takes minutes')
  t.match(bent({ default: { 'messages.*.b': 'y' } }, { messages: messages(50_000) }), { messages: [{ b: 'y' }] })
})

t.test('quirks bend the body, and not what it shares with the request', async t => {
  const none: Quirks = { drop: new Set<string>(), rename: {}, default: {}, clamp: {} }
  const tool = (fields: Json) => ({ type: 'function', function: fields })
  const rows: [says: string, quirks: Partial<Quirks>, body: Json, bent: Json][] = [
    ['drop', { drop: new Set(['a', 'missing']) }, { a: 1, b: 2 }, { b: 2 }],
    ['drop within', { drop: new Set(['a.b', 'c.d']) }, { a: { b: 1, c: 2 } }, { a: { c: 2 } }],
    [
      'drop in every element',
      { drop: new Set(['tools.*.function.strict']) },
      { tools: [tool({ strict: true, name: 'f' }), 'x', tool({})] },
      { tools: [tool({ name: 'f' }), 'x', tool({})] },
    ],
    ['drop within what is no object', { drop: new Set(['a.b.c', 'd.*.e']) }, { a: 1, d: null }, { a: 1, d: null }],
    ['rename', { rename: { a: 'b', missing: 'x' } }, { a: null, c: 1 }, { b: null, c: 1 }],
    [
      'rename within',
      { rename: { 'messages.*.name': 'author' } },
      { messages: [{ name: 'n' }, {}] },
      { messages: [{ author: 'n' }, {}] },
    ],
    ['default', { default: { a: 1, b: 1, c: 1 } }, { b: 0, c: null }, { a: 1, b: 0, c: 1 }],
    ['default within what is there', { default: { 'a.x': 1, 'b.x': 1 } }, { a: {} }, { a: { x: 1 } }],
    [
      'clamp',
      { clamp: { a: [0, 1], b: [0, 1], c: [0, 1], d: [0, 1] } },
      { a: 2, b: -1, c: 0.5, d: '9' },
      { a: 1, b: 0, c: 0.5, d: '9' },
    ],
    [
      'clamp in every element',
      { clamp: { 'a.*.n': [1, 2] } },
      { a: [{ n: 0 }, { n: 9 }] },
      { a: [{ n: 1 }, { n: 2 }] },
    ],
    [
      'a field is clamped and filled before it gets its new name',
      { rename: { a: 'b' }, clamp: { a: [0, 1] }, default: { c: 5 } },
      { a: 9 },
      { b: 1, c: 5 },
    ],
  ]
  for (const [says, quirks, body, bent] of rows) {
    const { provider } = target({ provider: { quirks: deepFreeze({ ...none, ...quirks }) } })
    const shared = deepFreeze(structuredClone(body))
    for (const time of ['once', 'twice']) {
      const own = { ...shared }
      applyQuirks(provider, own)
      t.strictSame(own, bent, `${says}, ${time}`)
    }
    t.strictSame(shared, body, says)
  }
})

t.test('a request is encoded for its target, without what the mapping does not accept', async t => {
  const encoded: unknown[] = []
  const translator = {
    ...target().translator,
    encode(input: ChatRequest, _to: unknown, stream: boolean) {
      const { messages: _, model: __, ...rest } = input
      encoded.push([rest, stream])
      return { path: '/chat', body: { temperature: input.temperature } }
    },
  }
  const asked = deepFreeze({
    ...request,
    stream: true,
    temperature: 1,
    max_tokens: 5,
    reasoning: { effort: 'low' },
    user: 'u',
  })
  const all = { stream: true, temperature: 1, max_tokens: 5, reasoning: { effort: 'low' }, user: 'u' }
  const { temperature: _, reasoning: __, user: ___, ...few } = all
  const streaming = { supports: new Set(['streaming'] as const) }
  const rows: [says: string, mapping: Partial<Mapping>, sent: Json, stream: boolean][] = [
    ['all of the wire', streaming, all, true],
    ['a model that does not stream', {}, all, false],
    ['none', { parameters: new Set() }, few, false],
    ['some', { parameters: new Set(['temperature', 'user']) }, { ...few, temperature: 1, user: 'u' }, false],
    ['reasoning', { parameters: new Set(['reasoning_effort']) }, { ...few, reasoning: { effort: 'low' } }, false],
  ]
  for (const [says, mapping, sent, stream] of rows) {
    const quirks = { drop: new Set<string>(), rename: { temperature: 'heat' }, default: {}, clamp: {} }
    const ex = exchange({
      request: asked,
      target: { ...target({ mapping, provider: { quirks } }), translator } as never,
    })
    await run(translate, {}, {}, ex)
    t.strictSame(encoded.pop(), [sent, stream], says)
    t.ok('heat' in ex.outbound.request!.body, says)
  }
})

t.test('requests that stand for one have a bounded length in all', async t => {
  const large = 'x'.repeat(20 * 1024 * 1024)
  const encoded: number[] = []
  const ask = async (fanOut: Partial<FanOut>, parts: number) => {
    const translator: Translator = {
      ...target().translator,
      encode(input) {
        encoded.push((input as ImageRequest).n)
        return { path: '/', body: { large } }
      },
      fanOut: {
        split: input => Array.from({ length: parts }, (_, n) => ({ ...input, n }) as never),
        count: () => parts,
        join: () => [],
        ...fanOut,
      },
    }
    const ex = exchange({ request, target: { ...target(), translator } })
    const got = await run(translate, {}, {}, ex)
    return got instanceof GatewayError ? got : ex.outbound.parts?.length
  }
  t.equal(await ask({ repeats: true }, 6), 6)
  t.strictSame(encoded.splice(0), [0, 1, 2, 3, 4, 5])
  t.match(await ask({ repeats: true }, 7), { status: 400, param: 'n', failover: true, message: /fewer images/ })
  t.strictSame(encoded.splice(0), [0], 'the others are not made')
  t.equal(await ask({}, 6), 6)
  t.match(await ask({}, 20), { status: 400, param: 'prompt', failover: true, message: /fewer texts/ })
  t.strictSame(encoded.splice(6), [0, 1, 2, 3, 4, 5, 6], 'as many are made as may be')
})

t.test('what only one wire can carry is not sent by another', async t => {
  const foreign: Translator = {
    ...target().translator,
    wire: 'other',
    encode: () => ({ path: '/canonical', body: {} }),
  }
  const translator: Translator = {
    ...foreign,
    wire: 'w',
    native: {
      wire: 'w',
      withMedia: body => body,
      encode: (_body, _input, _to, _stream, headers) => ({ path: '/native', body: { ...headers } }),
    },
  }
  const ask = async (speaks: Translator, only: string | undefined, body: Json = {}) => {
    const ex = exchange({ request, target: { ...target(), translator: speaks } })
    ex.input.native = { wire: 'w', body, headers: { beta: 'x' }, only }
    const got = await run(translate, {}, {}, ex)
    return got instanceof GatewayError ? got : ex.outbound.request
  }
  t.strictSame(await ask(translator, 'container'), { path: '/native', body: { beta: 'x' } })
  t.strictSame(await ask(foreign, undefined), { path: '/canonical', body: {} })
  t.match(await ask(foreign, 'container'), {
    status: 400,
    param: 'container',
    failover: true,
    upstreamStatus: undefined,
    message:
      '"container" can only be sent to providers that speak w, and "acme-large" at acme uses other: ' +
      'leave it out, or choose another model.',
  })
  const body = { input: [{}, { type: 'agent_message' }], messages: [{ content: [{ type: 'x'.repeat(200) }] }] }
  const told = async (only: string) => ((await ask(foreign, only, body)) as GatewayError).message
  t.match(await told('input[1].type'), '"input[1].type" is "agent_message", which can only be sent to')
  t.match(await told('messages[0].content[0].type'), /is "x{100}", which/)
  t.match(await told('input[0].type'), '"input[0].type" can only be sent to', 'a type that is not there')
  t.match(await told('tools[3].type'), '"tools[3].type" can only be sent to', 'a place that is not there')
})

t.test('what is sent with other bounds, or with marks for a cache, is said until the next attempt', async t => {
  const limit = Number.POSITIVE_INFINITY
  const marked: WireRequest = { path: '/', body: {}, output: { limit }, cacheMark: '1h' }
  const encode = (_: object, to: Target) => (to.baseUrl ? marked : plain)
  const plain = { path: '/', body: {} }
  const ex = exchange({
    request,
    target: { ...target(), baseUrl: 'x', translator: { ...target().translator, encode } },
  })
  await run(translate, {}, {}, ex)
  t.strictSame([ex.outbound.output, ex.outbound.cacheMark], [{ limit }, '1h'])
  ex.committed()
  t.strictSame([ex.outbound.output, ex.outbound.cacheMark], [{ limit }, '1h'], 'also when the request is let go')
  ex.target = { ...ex.target!, baseUrl: undefined }
  await run(translate, {}, {}, ex)
  t.strictSame([ex.outbound.output, ex.outbound.cacheMark], [undefined, undefined])
})

t.test('rate limit headers are structured fields, and never negative', async t => {
  const quota = fc.record({
    allowed: fc.boolean(),
    remaining: fc.nat(600),
    resetMs: fc.oneof(fc.integer({ min: -5000, max: 90_000 }), fc.double({ min: 0, max: 61_000, noNaN: true })),
  })
  const headersOf = async (taken: Quota | Promise<Quota>) => {
    const ex = exchange({ request, principal })
    const got = await run(ratelimit, { rpm: 600, rules: [], limits: [] }, { counters: { take: () => taken } }, ex, ok())
    return {
      headers: got instanceof GatewayError ? got.headers : byName(ex.answer.headers),
      refused: got instanceof GatewayError && got.status === 429,
    }
  }
  const holds = fc.asyncProperty(quota, async taken => {
    const { headers, refused } = await headersOf(taken)
    const [, remaining, reset] = /^"requests";r=(\d+);t=(\d+)$/.exec(headers.ratelimit!)!
    return (
      refused === !taken.allowed &&
      headers['ratelimit-policy'] === '"requests";q=600;w=60' &&
      Number(remaining) === taken.remaining &&
      Number(reset) >= 1 &&
      Number(reset) <= 60 &&
      headers['ratelimit-limit'] === '600' &&
      headers['x-ratelimit-limit'] === '600' &&
      headers['ratelimit-remaining'] === remaining &&
      headers['x-ratelimit-remaining'] === remaining &&
      headers['ratelimit-reset'] === reset &&
      headers['x-ratelimit-reset'] === String(1000 + Number(reset)) &&
      headers['retry-after'] === (refused ? reset : undefined)
    )
  })
  await t.resolves(fc.assert(holds))
  const later = Promise.resolve({ allowed: true, remaining: 3, resetMs: 1000 })
  t.match((await headersOf(later)).headers, { ratelimit: '"requests";r=3;t=1' }, 'a counter may answer later')
  const taken: unknown[] = []
  const counters = { take: (...args: unknown[]) => taken.push(args) && { allowed: true, remaining: 0, resetMs: 0 } }
  await run(ratelimit, { rpm: 7, rules: [], limits: [] }, { counters }, exchange({ principal }))
  await run(ratelimit, { rpm: 7, rules: [], limits: [] }, { counters }, exchange())
  t.strictSame(taken, [['org-1 chat', 7, 60_000]], 'one counter for an organization and endpoint; none without')
})

/** What the cache asks for and keeps. */
function memory() {
  const entries = new Map<string, CachedReply>()
  const asked: string[] = []
  const get = (key: string) => {
    asked.push(key)
    return entries.get(key)
  }
  return { asked, entries, cache: { get, set: (key: string, reply: CachedReply) => void entries.set(key, reply) } }
}
const caching: Principal = { ...principal, cacheTtlMs: 60_000 }
async function keyOf(facts: {
  request?: object
  principal?: Principal
  version?: string
  endpoint?: string
  native?: object
  headers?: Record<string, string>
}): Promise<string> {
  const { asked, cache: store } = memory()
  const { version = 'v1', endpoint = 'chat', native, headers, ...rest } = facts
  const ex = exchange({ request, principal: caching, target: target(), snapshot: { version }, ...rest })
  Object.assign(ex, {
    endpoint: { ...ex.endpoint, name: endpoint },
    readRequest: () => Promise.resolve(ex.chat),
  })
  Object.assign(ex.input, { native: native && { wire: 'w', body: native, headers } })
  await run(cache, { max_entry: 1000 }, { cache: store }, ex)
  return asked[0]!
}

t.test('AT-12 two requests share a cached answer only when they are the same request of the same tenant', async t => {
  const field = fc.constantFrom('model', 'messages', 'temperature', 'max_tokens', 'tools', 'user', 'n', 'reasoning')
  const one = fc.dictionary(field, fc.jsonValue({ maxDepth: 2 }), { noNullPrototype: true })
  const asText = (fields: object) => JSON.stringify(Object.entries(fields).sort(([x], [y]) => (x < y ? -1 : 1)))
  const holds = fc.asyncProperty(one, one, field, fc.jsonValue(), async (a, other, name, value) => {
    const key = await keyOf({ request: a })
    const turned = Object.fromEntries(Object.entries({ ...a, stream: true }).reverse())
    const same = (b: object) => asText(a) === asText(b)
    const changed = { ...a, [name]: value }
    return (
      key === (await keyOf({ request: turned })) &&
      (key === (await keyOf({ request: changed }))) === same(changed) &&
      (key === (await keyOf({ request: other }))) === same(other)
    )
  })
  await t.resolves(fc.assert(holds, { numRuns: 500 }))
  const keys = await Promise.all([
    keyOf({}),
    keyOf({ principal: { ...caching, orgId: 'org-2' } }),
    keyOf({ principal: { ...caching, projectId: 'project-2' } }),
    keyOf({ version: 'v2' }),
    keyOf({ endpoint: 'messages' }),
    keyOf({ native: { top_k: 5 } }),
    keyOf({ native: { top_k: 6 } }),
    keyOf({ native: { top_k: 6 }, headers: { beta: 'a' } }),
    keyOf({ native: { top_k: 6 }, headers: { beta: 'b' } }),
    keyOf({ principal: { ...caching, cacheTtlMs: 1000 } }),
  ])
  t.equal(new Set(keys).size, 10)
  const asks = { plugins: [{ id: 'response-healing' }], response_format: { type: 'json_object' } }
  const healed = { ...request, n: 2, ...asks }
  const streamed = await keyOf({ request: { ...healed, stream: true } })
  t.not(streamed, await keyOf({ request: healed }), 'of several choices only a whole answer is healed')
  t.equal(await keyOf({ principal: { ...caching, keyId: 'key-2' } }), keys[0], 'keys of one project share')
})

t.test('only a whole answer of bearable size is kept, and replayed to streams and whole answers', async t => {
  const gone = new Cancellation()
  gone.abort(errors.aborted())
  const long: Event = { type: 'finish', choice: 0, reason: 'length' }
  const bound = { outbound: { limit: { tokens: 300, by: 'credit' } } }
  const rows: [says: string, kept: boolean, reply: Reply, facts: Json][] = [
    ['a whole answer', true, ok([text('a')], [finish]), {}],
    ['a broken answer', false, ok([text('a')], [{ type: 'error', error: errors.truncated() }], [finish]), {}],
    ['an answer without an end', false, ok([text('a')]), {}],
    ['an answer to nobody', false, ok([text('a'), finish]), { signal: gone }],
    ['an answer that is too large', false, ok([text('a'.repeat(1000)), finish]), {}],
    ['an answer that the gateway cut', false, ok([text('a'), finish]), { after: { answer: { isCut: true } } }],
    ['an answer that a limit ended', false, ok([text('a'), finish]), { after: { answer: { stoppedBy: 'limit' } } }],
    ['an answer that the limit of its payer ended', false, ok([text('a'), long]), { after: bound }],
    ['an answer that ended within it, but was made for it', false, ok([text('a'), finish]), { after: bound }],
    ["an answer that its caller's limit ended", true, ok([text('a'), long]), {}],
    ['a project that does not cache', false, ok([text('a'), finish]), { principal }],
    ['a caller that does not want it', false, ok([text('a'), finish]), { headers: { 'x-no-cache': 'true' } }],
  ]
  for (const [says, kept, reply, { after = {}, ...facts }] of rows) {
    const { entries, cache: store } = memory()
    const ask = (stream: boolean, more: Json = facts) => {
      const ex = exchange({
        request: { ...request, stream },
        target: target(),
        principal: caching,
        snapshot: { version: 'v' },
        ...more,
      })
      ex.readRequest = () => Promise.resolve(ex.chat)
      return ex
    }
    const ex = ask(true)
    const { answer, outbound } = after as Json
    Object.assign(ex.answer, answer)
    Object.assign(ex.outbound, outbound)
    await run(cache, { max_entry: 500 }, { cache: store }, ex, reply)
    t.equal(entries.size, kept ? 1 : 0, says)
    const again = ask(false, {})
    const replay = await run(cache, { max_entry: 500 }, { cache: store }, again, ok())
    t.equal(byName(replay.headers as string[])['x-gateway-cache'], kept ? 'HIT' : 'MISS', says)
    t.strictSame(again.answer.cached?.externalId, kept ? 'acme-large-2026' : undefined, says)
  }
})

t.test('an answer that is too large is not written to be measured', async t => {
  const { entries, cache: store } = memory()
  const written = () => t.fail('it is written')
  const parts: object[] = [{ b64: 'a'.repeat(600) }, new Base64Slice(Buffer.alloc(600, 'A'))]
  for (const part of parts) {
    const value = [Object.assign(part, { toJSON: written })]
    await run(cache, { max_entry: 500 }, { cache: store }, asked(), ok([{ type: 'result', value }, finish]))
  }
  t.equal(entries.size, 0)
})

/** An exchange of a project that caches, before it is routed. */
function asked(model = 'm'): Exchange {
  const ex = exchange({ request: { ...request, model }, principal: caching, snapshot: { version: 'v' } })
  ex.readRequest = () => Promise.resolve(ex.chat)
  return ex
}

t.test('a replay says of the model that was asked for what the first answer said', async t => {
  const rows: [model: string, requestedModel: string, requestedProvider: string | null][] = [
    ['large', 'large', null],
    ['l', 'large', null],
    ['acme/l', 'large', 'acme'],
    ['auto', 'auto', null],
  ]
  const { cache: store } = memory()
  const filter = made(cache, { max_entry: 500 }, { cache: store })
  for (const [model, ...expected] of rows) {
    const first = asked(model)
    const answer = await filter.handle!(first, async () => {
      const [model, provider] = expected
      Object.assign(first.requested, { model, provider })
      first.target = target()
      return ok([text('a'), finish])
    })
    for await (const batch of answer.events) first.observe(batch)
    const again = asked(model)
    await run(cache, { max_entry: 500 }, { cache: store }, again)
    t.ok(again.answer.cached, model)
    t.strictSame([again.requested.model, again.requested.provider], expected, model)
    t.match(again.answer.cached, { logId: first.logId, at: first.at }, 'it is the first answer')
    t.not(again.logId, first.logId)
  }
})

t.test('a replay takes memory until its client has taken it, a piece of a stream at a time', async t => {
  const { entries, cache: store } = memory()
  const long = `${'x'.repeat(32 * 1024 - 1)}\u{1f600}${'y'.repeat(40_000)}`
  const first = Object.assign(asked(), { target: target() })
  await run(cache, { max_entry: 2 ** 20 }, { cache: store }, first, ok([text(long), finish]))
  t.equal(entries.size, 1)
  const budget = roomy()
  const replay = async (stream: boolean, room = budget) => {
    const ex = asked()
    Object.assign(ex.chat, { stream })
    return made(cache, { max_entry: 1 }, { cache: store, memory: room }).handle!(ex, async () => ok())
  }
  const lengths: number[] = []
  let said = ''
  for await (const batch of (await replay(true)).events) {
    t.ok(budget.used >= 2 * long.length)
    const piece = batch.flatMap(event => (event.type === 'text' ? event.text : [])).join('')
    lengths.push(piece.length)
    said += piece
  }
  t.strictSame([said === long, lengths], [true, [32 * 1024 - 1, 32 * 1024, 7234]])
  t.equal(budget.used, 0)
  for await (const batch of (await replay(false)).events) t.strictSame(batch, [text(long), finish])
  await t.rejects(replay(true, roomy(1000)), { code: 'overloaded' })
})

t.test('of an answer that is too large nothing is held, and all of it passes', async t => {
  const { entries, cache: store } = memory()
  const filter = made(cache, { max_entry: 500 }, { cache: store })
  const answered = (events: Reply['events']) => {
    const ex = asked()
    ex.target = target()
    return filter.handle!(ex, async () => ({ status: 200, headers: [], events }))
  }

  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const passed: WeakRef<Event>[] = []
  async function* long() {
    for (let n = 0; n < 6; n++) {
      const batch = [text('a'.repeat(100))]
      passed.push(new WeakRef(batch[0]!))
      yield batch
    }
  }
  const events = (await answered(long())).events[Symbol.asyncIterator]()
  for (let n = 0; n < 6; n++) await events.next()
  // What a weak reference was made to lives until the turn of the event loop is over.
  await setImmediate()
  collect()
  const fitted = passed.slice(0, 3)
  t.ok(
    fitted.every(event => event.deref() === undefined),
    'not what fitted either',
  )

  const many = Array<Event>(300_000).fill(text('a'))
  let count = 0
  for await (const batch of (await answered(eventsOf(many, [finish]))).events) count += batch.length
  t.equal(count, many.length + 1, 'a batch may be of any length')
  t.equal(entries.size, 0)
})

t.test('a credential is looked up by its hash, and an ambiguous one is refused', async t => {
  const secret = 'mgw_0123456789'
  const hash = createHash('sha256').update(secret).digest('hex')
  const later = { ...principal, keyId: 'later', expiresAt: 1_000_001 }
  const found: Record<string, Principal> = {
    [hash]: principal,
    [createHash('sha256').update('expired').digest('hex')]: { ...principal, expiresAt: 1_000_000 },
    [createHash('sha256').update('later').digest('hex')]: later,
    [createHash('sha256').update('archived').digest('hex')]: { ...principal, archived: true },
    [createHash('sha256').update('denied').digest('hex')]: { ...principal, access: false, archived: true },
    [createHash('sha256').update('public').digest('hex')]: { ...principal, kind: 'publishable' },
    [createHash('sha256').update('session').digest('hex')]: { ...principal, keyId: 'session', kind: 'session' },
  }
  const keys = { find: (hash: string) => found[hash] }
  const down = { find: () => Promise.reject(new Error('disk full')) }
  const rows: [headers: Record<string, string>, got: string, store?: object][] = [
    [{ authorization: `Bearer ${secret}` }, 'key-1'],
    [{ authorization: `bearer  ${secret}` }, 'key-1'],
    [{ 'x-api-key': secret }, 'key-1'],
    [{ 'x-api-key': ` ${secret}` }, 'key-1'],
    [{ authorization: `Bearer ${secret}`, 'x-api-key': secret }, 'key-1'],
    [{ authorization: 'Bearer later' }, 'later', { find: async (hash: string) => found[hash] }],
    [{ authorization: `Bearer ${secret}`, 'x-api-key': 'other' }, '400 ambiguous_credentials'],
    [{}, '401 invalid_api_key'],
    [{ authorization: `Basic ${secret}` }, '401 invalid_api_key'],
    [{ authorization: secret }, '401 invalid_api_key'],
    [{ authorization: 'Bearer wrong' }, '401 invalid_api_key'],
    [{ authorization: 'Bearer expired' }, '401 invalid_api_key'],
    [{ authorization: `Bearer ${'x'.repeat(257)}` }, '401 invalid_api_key', down],
    [{ authorization: 'Bearer archived' }, '410 null'],
    [{ authorization: 'Bearer denied' }, '403 permission_denied'],
    [{ authorization: 'Bearer public' }, '403 permission_denied'],
    [{ authorization: 'Bearer session' }, 'session'],
    [{ authorization: 'Bearer session', 'x-source': 'my app' }, '400 invalid_parameters'],
    [{ authorization: 'Bearer wrong', 'x-source': 'my app' }, '401 invalid_api_key'],
    [{ authorization: `Bearer ${secret}` }, '503 store_unavailable', down],
  ]
  for (const [headers, got, store = keys] of rows) {
    const ex = exchange({ headers })
    const answer = await run(
      auth,
      { optional: false, trusted_proxies: [], jwt: [] },
      { keys: store, policies: lenient },
      ex,
    )
    const seen = answer instanceof GatewayError ? `${answer.status} ${answer.code}` : ex.caller.principal?.keyId
    t.equal(seen, got, JSON.stringify(headers))
  }
  const words = async (secret: string) => {
    const ex = exchange({ headers: { 'x-api-key': secret } })
    const got = await run(auth, { optional: false, trusted_proxies: [], jwt: [] }, { keys, policies: lenient }, ex)
    return got instanceof GatewayError ? got.message : ''
  }
  t.match(await words('wrong'), /^Incorrect API key provided: it is unknown/, 'clients tell the class by these words')
  t.match(await words('expired'), /^Incorrect API key provided: it has expired/)
  t.equal(
    await words('x'.repeat(257)),
    await words('wrong'),
    'a text that can be no key is not told from an unknown one',
  )
  const open = exchange()
  t.match(await run(auth, { optional: true, trusted_proxies: [], jwt: [] }, { keys, policies: lenient }, open), {
    status: 200,
  })
  t.equal(open.caller.principal, undefined)
  const wrong = exchange({ headers: { 'x-api-key': 'wrong' } })
  const answer = await run(auth, { optional: true, trusted_proxies: [], jwt: [] }, { keys, policies: lenient }, wrong)
  t.match(answer, { status: 401 }, 'a wrong one is refused all the same')
})
