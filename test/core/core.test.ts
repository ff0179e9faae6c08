/** The vocabulary: money, usage, exchanges, what errors mean, and what wires share. */
import fc from 'fast-check'
import t from 'tap'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import { budgetOf, effortOf } from '../../src/core/effort.ts'
import { type Event, isContent } from '../../src/core/event.ts'
import { formatMoney } from '../../src/core/money.ts'
import { estimateTokens, mergeUsage, type Usage } from '../../src/core/usage.ts'
import { asError, errors, GatewayError } from '../../src/lib/error.ts'
import { shortId } from '../../src/lib/id.ts'
import { seal, unseal } from '../../src/wire/seal.ts'
import {
  guessStatus,
  readProviderError,
  redactMessage,
  upstreamError,
  upstreamErrorFrom,
} from '../../src/wire/upstream-error.ts'
import { parseDataUrl, pathSegment, textOf, toolArguments, withoutSpace } from '../../src/wire/wire.ts'
import { cpuMs } from '../helpers/cpu.ts'
import { runs } from '../helpers/runs.ts'
import { target } from '../plugins/wire-kit.ts'
import { dialects, echoes, errorCodes, inUse } from './dialects.ts'
import { exchange, text } from './kit.ts'
import { base, flat } from './prices.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261120 })

t.test('cumulative reports are merged by maximum, and nonsense is ignored', async t => {
  const usage: Usage = { prompt: 5, completion: 0 }
  mergeUsage(usage, { prompt: 9, completion: 3 })
  mergeUsage(usage, { prompt: 7, completion: 3, input_cache_read: 0 })
  for (const wrong of [Number.NaN, -1, -0.5, Infinity, 1e300, 1e9 + 1, '12', null, undefined, {}]) {
    mergeUsage(usage, { prompt: wrong, image: wrong } as Usage)
  }
  t.strictSame(usage, { prompt: 9, completion: 3, input_cache_read: 0 })
  t.strictSame([0, 1, 4, 5].map(estimateTokens), [0, 1, 1, 2])
})

t.test('usage that was not reported is estimated from what was sent and delivered', async t => {
  const call = { id: 'c', type: 'function', function: { name: 'name', arguments: '{"k":1}.' } }
  const messages = [
    { role: 'user', content: 'x'.repeat(40) },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'x'.repeat(8) },
        { type: 'image_url', image_url: { url: 'u' } },
      ],
    },
    { role: 'assistant', content: null, tool_calls: [call] },
  ]
  const delivered = [text('x'.repeat(30)), { type: 'tool', choice: 0, index: 0, name: 'nine char', args: '{}' }]
  const rows: [says: string, reported: Usage, cut: boolean, last: boolean, usage: Usage, estimated: boolean][] = [
    ['nothing', {}, false, true, { prompt: 1615, completion: 11 }, true],
    ['only the prompt', { prompt: 3 }, false, true, { prompt: 3, completion: 11 }, true],
    ['only the completion', { completion: 2 }, false, true, { prompt: 1615, completion: 2 }, true],
    ['all', { prompt: 3, completion: 2 }, false, true, { prompt: 3, completion: 2 }, false],
    ['all, before the cut', { prompt: 3, completion: 2 }, true, true, { prompt: 3, completion: 2 }, false],
    [
      'all, before anything was delivered',
      { prompt: 3, completion: 2 },
      true,
      false,
      { prompt: 3, completion: 11 },
      true,
    ],
    ['all, early, of a whole answer', { prompt: 3, completion: 2 }, false, false, { prompt: 3, completion: 2 }, false],
    ['only the prompt, before the cut', { prompt: 3 }, true, false, { prompt: 3, completion: 11 }, true],
    ['only the completion, before the cut', { completion: 20 }, true, true, { prompt: 1615, completion: 20 }, true],
    ['nothing before the cut', {}, true, true, { prompt: 1615, completion: 11 }, true],
  ]
  for (const [says, reported, cut, last, usage, estimated] of rows) {
    const ex = exchange({ request: { model: 'm', messages } })
    const report: Event = { type: 'usage', usage: reported }
    ex.observe(last ? [...(delivered as Event[]), report] : [report, ...(delivered as Event[])])
    ex.meter.complete(cut)
    ex.meter.complete(cut)
    t.strictSame([ex.usage, ex.estimated], [usage, estimated], says)
  }
  const pages: [says: string, cut: boolean, last: Usage | undefined, usage: Usage, estimated: boolean][] = [
    ['pages before the cut', true, undefined, { prompt: 3 + 100, completion: 1 }, true],
    ['pages that a report counts', true, { prompt: 90, completion: 2 }, { prompt: 90, completion: 2 }, false],
    ['pages that none counts to the end', false, { completion: 2 }, { prompt: 3, completion: 2 }, false],
  ]
  for (const [says, cut, last, usage, estimated] of pages) {
    const ex = exchange({ request: { model: 'm', messages } })
    ex.observe([{ type: 'usage', usage: { prompt: 3, completion: 1 } }, text('x')])
    for (const read of [300, 100]) ex.observe([{ type: 'usage', usage: { prompt: 3, completion: 1 }, read }])
    if (last) ex.observe([{ type: 'usage', usage: last }])
    ex.meter.complete(cut)
    ex.meter.complete(cut)
    t.strictSame([ex.usage, ex.estimated], [usage, estimated], says)
  }
  const unread = exchange()
  unread.meter.complete(true)
  t.strictSame(unread.usage, { prompt: 0, completion: 0 }, 'a request that was never read')
})

t.test('an exchange reads its input once, and prices what it has seen', async t => {
  let reads = 0
  const body = () => Promise.resolve({ model: `m${++reads}`, messages: [{ role: 'user', content: 'x' }] })
  const ex = exchange({ body, headers: { 'x-request-id': 'mine', accept: ['a', 'b'] } })
  t.equal(await ex.readRequest(), await ex.readRequest())
  t.strictSame([reads, ex.chat.model, ex.id, ex.http.header('accept')], [1, 'm1', 'mine', undefined])
  t.not(exchange({ headers: { 'x-request-id': 'a b' } }).id, 'a b')

  t.equal(ex.meter.cost, null, 'no target, no price')
  ex.target = target({ mapping: { price: flat(base) } })
  ex.observe([{ type: 'start' }, { type: 'usage', usage: { prompt: 1000 } }, { type: 'tier', tier: 'flex' }])
  t.strictSame([ex.timings.firstToken, ex.answer.servedTier, formatMoney(ex.meter.cost!.total)], [0, 'flex', '0.0025'])
  ex.observe([text('x'), { type: 'usage', usage: { completion: 500 } }])
  t.ok(ex.timings.firstToken > 0)
  t.equal(formatMoney(ex.meter.cost!.total), '0.0075')
  const billed = { prompt: 100, completion: 50 }
  ex.observe([{ type: 'usage', usage: { completion: 500 }, billed }])
  t.equal(formatMoney(ex.meter.cost!.total), '0.00075', 'what is billed is paid')
  t.equal(ex.usage.prompt, 1000, 'what was used is told')
  ex.answer.cached = { provider: 'p', model: 'm', externalId: 'e', logId: 'l', at: 0 }
  t.equal(ex.meter.cost?.total, 0n, 'a replay costs nothing')
})

t.test('a client sees everything but start, usage, tier and error', async t => {
  const kinds = [
    'start',
    'text',
    'refusal',
    'reasoning',
    'tool',
    'image',
    'source',
    'native',
    'finish',
    'usage',
    'tier',
    'result',
    'error',
  ]
  const unseen = kinds.filter(type => !isContent({ type } as Event))
  t.strictSame(unseen, ['start', 'usage', 'tier', 'error'])
})

const withCodes = target({ provider: { errorCodes } })
const withSecret = target({ secret: inUse })

t.test('every dialect of a refusal is read, and decides whether another provider may answer', async t => {
  for (const [name, status, body, verdict] of dialects) {
    const error = upstreamErrorFrom(status, typeof body === 'string' ? body : JSON.stringify(body), withCodes)
    const { code, failover, param, message, upstreamStatus } = error
    const got = { status: error.status, code, failover, param, ...(verdict.message === undefined ? {} : { message }) }
    t.strictSame(got, { param: null, ...verdict }, name)
    t.equal(upstreamStatus, status, name)
    t.not(message, '', name)
  }
})

t.test('phrases of a manifest say what a message means', t => {
  const errorPhrases = [
    ['incorrect api key', 'invalid_api_key'],
    ['reached your specified api usage limits', 'insufficient_quota'],
    ['too many tokens: ', 'context_length_exceeded'],
  ] as const
  const to = target({ provider: { errorPhrases }, secret: 'secret-0123456789' })
  const rows: [number, string, object][] = [
    [400, 'Incorrect API key provided: xa***yz.', { status: 502, code: 'upstream_credential', failover: true }],
    [400, 'You have reached your specified API usage limits.', { code: 'upstream_credential', failover: true }],
    [429, 'You have reached your specified API usage limits.', { code: 'upstream_quota', failover: true }],
    [400, 'Too many tokens: size limit exceeded by 9 tokens.', { status: 400, code: 'context_length_exceeded' }],
    [400, "unknown tool 'incorrect api key'", { status: 400, code: null, failover: false }],
  ]
  for (const [status, message, expected] of rows) t.match(upstreamError(status, { message }, to), expected, message)
  const spent = { message: 'You have reached your specified API usage limits.', param: 'model' }
  t.match(upstreamError(400, spent, to), { failover: true, param: null }, 'a field beside it is not at fault')
  t.end()
})

t.test("a provider's words about the operator's account are for the log alone", t => {
  const account = 'arn:aws:iam::123456789012:user/jo of projects/acme-7 (jo@acme.example) has 3 USD left'
  const named = /arn:aws|123456789012|acme|USD/
  const secret = 'secret-0123456789'
  const operators = target({ secret })
  const credential = { id: 'k', source: 'byok', secret, fingerprint: 'f' } as const
  for (const status of [401, 402, 403, 404, 408, 429, 500, 502, 503, 504, 529]) {
    const shown = upstreamError(status, { message: account }, operators)
    t.notMatch(shown.message, named, `${status}`)
    t.equal(shown.detail, account, `${status}: it is kept apart`)
    const own = upstreamError(status, { message: account }, { ...operators, credential })
    t.match(own, { message: account, detail: undefined }, `${status}: an organization reads of its own account`)
  }
  const refused = upstreamError(400, { message: `top_p: not allowed for ${account}` }, operators)
  t.match(refused.message, /^top_p: not allowed for /, 'what blames the request stays useful')
  t.notMatch(refused.message, /arn:aws|123456789012|acme/)
  for (const text of [
    'Project 8473920112 lacks it',
    'team 7f3c2a9e-11aa',
    'org-a1b2c3d4e5',
    'project_number:84739201',
  ]) {
    t.match(upstreamError(400, { message: text }, operators).message, /\*\*\*/, text)
  }
  const plain = "'messages.1.content': a string of at most 32768 characters is expected in project mode"
  t.equal(upstreamError(400, { message: plain }, operators).message, plain)
  t.end()
})

t.test('a message shows no secret that a provider echoes, however long it is', async t => {
  for (const [said, shown] of echoes) t.equal(redactMessage(said, inUse), shown)
  const cut = redactMessage(`${'x'.repeat(4990)} ${inUse}`, inUse)
  t.ok(cut.length <= 5000)
  t.notMatch(cut, /sk-live/, 'not even the part of a secret that would fit')
  t.equal(redactMessage('x'.repeat(6000)).length, 5000)
  t.equal(redactMessage('a short secret stays', 'short'), 'a short secret stays')
  const parts = 'AKIAEXAMPLE:wJalrXUtnFEMI:IQoJb3JpZ2lu'
  t.equal(redactMessage(`AKIAEXAMPLE and IQoJb3JpZ2lu of ${parts}`, parts), '*** and *** of ***')
  t.match(
    upstreamErrorFrom(401, JSON.stringify({ detail: [{ input: inUse }] }), withSecret).detail ?? '',
    /"input":"\*\*\*"/,
  )
})

t.test('reading an error never throws', async t => {
  const status = fc.constantFrom(400, 401, 402, 403, 404, 408, 413, 415, 422, 424, 429, 498, 500, 503, 524, 529)
  const keys = ['error', 'message', 'code', 'type', 'detail', 'param', 'base_resp', 'status_code', 'err_msg']
  const leaf = fc.jsonValue({ maxDepth: 2 })
  const object = (inner: fc.Arbitrary<unknown>) => fc.dictionary(fc.constantFrom(...keys), inner, { maxKeys: 3 })
  const tree = fc.oneof(leaf, object(fc.oneof(leaf, object(leaf))))
  const holds = fc.property(
    fc.oneof(
      tree.map(value => JSON.stringify(value)),
      fc.string(),
    ),
    status,
    (body, status) => {
      const error = upstreamErrorFrom(status, body, withSecret)
      return (
        error instanceof GatewayError && error.status >= 400 && error.message !== '' && error.message.length <= 5000
      )
    },
  )
  t.doesNotThrow(() => fc.assert(holds, { numRuns: runs(2000) }))
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(tree, value => void readProviderError(value)),
      { numRuns: runs(500) },
    ),
  )
  t.equal(readProviderError({ choices: [], message: 'x' }), undefined, 'an answer is no error')
  t.equal(readProviderError({ choices: [], error: null }), undefined)
})

t.test('of a long error, no more is read than is shown of it with masks', async t => {
  const long = 'x'.repeat(1_000_000)
  for (const answer of [
    { error: { message: long, code: long, type: long, param: long } },
    { error: { other: long } },
    { error: { message: ['a', long] } },
    { error: { message: { [long]: long, __proto__: long } } },
    { error: long },
    { detail: [{ msg: long }] },
    { base_resp: { status_code: 1, status_msg: long } },
    { message: long },
  ]) {
    const lengths = Object.values(readProviderError(answer)!).map(field => (field as string | undefined)?.length ?? 0)
    t.ok(Math.max(...lengths) <= 20_000, `${Object.keys(answer)}: ${lengths}`)
  }
  let looked = 0
  const many = new Proxy(Array(1_000_000).fill([]), {
    get: (list, name) => {
      looked++
      return Reflect.get(list, name)
    },
  })
  const { message } = readProviderError({ error: { message: many } })!
  t.match(message, /^\[\[\],\[\],/)
  t.ok(looked < 100_000, `of a million values ${looked} are looked at`)
  const late = `${' '.repeat(100_000)}insufficient_quota`
  t.equal(guessStatus({ message: late }), 500, 'what stands behind that is not read')
  t.equal(upstreamError(400, { message: late }).code, null)
})

t.test('an error body that holds more than is read is its own message', t => {
  const fill = (text: string, count: number) => Array(count).fill(text).join()
  const echo = (count: number) => `{"detail":[{"msg":"Field required","input":[${fill('0', count)}]}]}`
  const deep = `{"error":{"message":${'['.repeat(200)}${']'.repeat(200)}}}`
  for (const [says, status, body, shown] of [
    ['as many values as are read', 422, echo(1900), /^\[{"msg":"Field required","input":\[0,0/],
    ['more values', 422, echo(2000), /^{"detail":\[{"msg":"Field required","input":\[0,0/],
    ['a list of more values', 422, `[${echo(2000)}]`, /^\[{"detail":\[{"msg":"Field required"/],
    ['more levels', 500, deep, /^{"error":{"message":\[{100}/],
    ['a page with as many commas', 502, `<p>${fill('a', 3000)}`, /answered with status 502/],
  ] as const) {
    const error = upstreamErrorFrom(status, body, withSecret)
    const said = error.detail ?? error.message
    t.match(said, shown, says)
    t.ok(said.length <= 5000, says)
  }
  const told = `{"code":"context_length_exceeded","input":[${fill('0', 3000)}]}`
  t.equal(upstreamErrorFrom(400, told).code, 'context_length_exceeded', 'it says what it is about all the same')
  t.end()
})

t.test('an error in an answer has the status that it would have had', async t => {
  const rows: [string, number][] = [
    ['429', 429],
    ['503', 503],
    ['200', 500],
    ['999', 500],
    ['insufficient_quota', 429],
    ['rate_limit_exceeded', 429],
    ['authentication_error', 401],
    ['permission_error', 403],
    ['not_found_error', 404],
    ['invalid_request_error', 400],
    ['overloaded_error', 503],
    ['The service is currently unavailable', 503],
    ['deadline exceeded', 504],
    ['something', 500],
    ['data_inspection_failed', 400],
    ['1026', 400],
    ['1261', 400],
    ['1113', 429],
  ]
  for (const [code, status] of rows) t.equal(guessStatus({ message: '', code }, withCodes), status, code)
  t.equal(guessStatus({ message: '', code: '1261' }), 500, 'a code that the manifest does not name')
  t.equal(guessStatus({ message: 'prompt is too long: 9 tokens > 8 maximum' }), 400)
  t.equal(guessStatus({ message: 'insufficient balance', code: '1008' }), 402)
})

t.test('a budget of reasoning becomes the nearest effort, and an effort a budget', async t => {
  const effort = (max_tokens: number, ...reasoningEfforts: string[]) =>
    effortOf({ model: 'm', messages: [], reasoning: { max_tokens } }, target({ mapping: { reasoningEfforts } }).mapping)
  const usual = [1, 1024, 1512, 1513, 2000, 3000, 3001, 32_000, 1e9].map(budget => effort(budget))
  t.strictSame(usual, ['low', 'low', 'low', 'medium', 'medium', 'medium', 'high', 'high', 'high'])
  const all = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
  const nearest = [1, 2000, 9999, 10_000, 10_001, 24_000, 24_001].map(budget => effort(budget, ...all))
  t.strictSame(nearest, ['low', 'medium', 'high', 'high', 'xhigh', 'xhigh', 'max'])
  t.equal(effort(1024, 'minimal', 'high'), 'minimal')
  t.equal(effort(50_000, 'high', 'max'), 'max')
  t.equal(effort(50_000, 'none'), undefined, 'a model that reasons or not takes no effort')
  const request: ChatRequest = { model: 'm', messages: [], reasoning: { effort: 'xhigh', max_tokens: 2000 } }
  t.equal(effortOf(request, target().mapping), 'medium', 'a budget overrides an effort')
  t.equal(budgetOf(request), 2000)
  const budgets = ['none', 'low', 'medium', 'high', 'xhigh', 'max'] as const
  t.strictSame(
    budgets.map(reasoning_effort => budgetOf({ model: 'm', messages: [], reasoning_effort })),
    [undefined, 1024, 2000, 4000, 16_000, 32_000],
  )
})

t.test('a data URL is read in every form that clients send', async t => {
  const rows: [url: string, mime: string | undefined, base64?: string][] = [
    ['data:image/png;base64,iVBO', 'image/png', 'iVBO'],
    ['data:image/png;charset=utf-8;base64,iVBO', 'image/png', 'iVBO'],
    ['DATA:Image/PNG;BASE64,iVBO', 'image/png', 'iVBO'],
    ['data:image/png;base64,iV\r\nBO\n', 'image/png', 'iVBO'],
    ['data:;base64,aGk=', 'text/plain', 'aGk='],
    ['data:,hi%20%C3%A9', 'text/plain', 'aGkgw6k='],
    ['data:text/plain;charset=utf-8,hi', 'text/plain', 'aGk='],
    ['data:text/plain,%', undefined],
    ['data:image/png;base64', undefined],
    ['https://acme.example/a.png', undefined],
    ['', undefined],
  ]
  for (const [url, mime, base64] of rows) t.strictSame(parseDataUrl(url), mime && { mime, base64 }, url)
  const plain = (length: number) => parseDataUrl(`data:,${'%41'.repeat(length / 3)}`)
  t.equal(plain(4_000_000)?.base64.length, 1_777_780)
  t.equal(plain(4_200_000), undefined, 'of much data only base64 is read')
  const took = cpuMs(() => parseDataUrl(`data:${';x'.repeat(1_000_000)}`))
  t.ok(took < 500, `${took} ms of CPU`)
  const spaced = `data:image/png;base64,${'A '.repeat(12_000_000)}`
  const tookSpaced = cpuMs(() => t.equal(parseDataUrl(spaced)!.base64.length, 12_000_000))
  t.ok(tookSpaced < 500, `${tookSpaced} ms of CPU for white space`)
})

t.test('white space is removed from any text', async t => {
  for (const [given, bare] of [
    ['', ''],
    ['{"a":1}', '{"a":1}'],
    [' { "a":\t"é 日 🙂"\r\n} ', '{"a":"é日🙂"}'],
    [' \n', ''],
  ] as const)
    t.equal(withoutSpace(given), bare, given)
})

t.test('arguments of a tool call are JSON text, whatever a provider made of them', async t => {
  const rows: [says: string, given: unknown, args: string][] = [
    ['text', '{"k":1}', '{"k":1}'],
    ['C17 an object', { k: [1] }, '{"k":[1]}'],
    ['C18 nothing', undefined, '{}'],
    ['C18 null', null, '{}'],
    ['C18 "null"', 'null', '{}'],
    ['C18 empty', '', '{}'],
    ['C19 encoded twice', '"{\\"k\\":1}"', '{"k":1}'],
    ['C19 a string that is no JSON', '"hello"', '"hello"'],
    ['C19 a string that is a number', '"1"', '"1"'],
    ['not JSON at all', '"{', '"{'],
  ]
  for (const [says, given, args] of rows) t.equal(toolArguments(given), args, says)
})

t.test('a model id is one segment of a path, or refused', async t => {
  for (const name of ['', '.', '..', 'a\\b', 'a\0b', 'a\nb', 'a\x7f', 'a\x85', '\ud800']) {
    t.throws(() => pathSegment(name), RangeError, JSON.stringify(name))
  }
  const rows = [
    ['acme-large', 'acme-large'],
    ['meta/llama', 'meta%2Fllama'],
    ['../../admin', '..%2F..%2Fadmin'],
    ['a?b=c#d', 'a%3Fb%3Dc%23d'],
    ['%2e%2e', '%252e%252e'],
    ['…', '%E2%80%A6'],
    ['arn:aws:x/y', 'arn%3Aaws%3Ax%2Fy'],
  ]
  for (const [name, segment] of rows) t.equal(pathSegment(name!), segment)
  const hostile = fc.constantFrom('a', '.', '..', '/', '\\', '%', '?', '#', ':', '\t', '…', '\ud83d', '\u202e', '@')
  const stays = fc.property(fc.array(hostile), pieces => {
    const name = pieces.join('')
    try {
      return new URL(`http://h/models/${pathSegment(name)}:run`).pathname.split('/').length === 3
    } catch (error) {
      return error instanceof RangeError
    }
  })
  t.doesNotThrow(() => fc.assert(stays))
})

t.test('a sealed value comes back byte for byte, and only to the provider that made it', async t => {
  const acme = target()
  const other = target({ provider: { id: 'acme-2' } })
  const holds = fc.property(fc.string(), value => {
    const sealed = seal(acme, value)
    return unseal(acme, sealed) === value && unseal(other, sealed) === undefined
  })
  t.doesNotThrow(() => fc.assert(holds))
  for (const none of [undefined, null, '', 'acme', 'acm:x', 'x']) t.equal(unseal(acme, none), undefined)
})

t.test('the text of a message is its string or its text parts', async t => {
  const image = { type: 'image_url', image_url: { url: 'u' } } as const
  t.strictSame([textOf('a'), textOf(null), textOf(undefined)], ['a', '', ''])
  t.equal(textOf([{ type: 'text', text: 'a' }, image, { type: 'text', text: 'b' }]), 'ab')
})

t.test('a GatewayError is copied with changes, and anything else becomes a 500 that shows nothing', async t => {
  const cause = new Error('secret')
  const error = errors.upstreamTimeout('idle').with({ retryAfterMs: 5, headers: { a: 'b' } })
  t.match(error, { status: 504, code: 'timeout', failover: true, upstreamStatus: 0, retryAfterMs: 5 })
  t.equal(asError(error), error)
  t.match(asError(cause), { status: 500, message: 'Internal Server Error', code: null, param: null, failover: false })
  t.equal(asError(cause).cause, cause)
})

t.test('ids of a process sort as they were made', async t => {
  const ids = Array.from({ length: 1000 }, shortId)
  t.strictSame([...ids].sort(), ids)
  t.equal(new Set(ids).size, ids.length)
})
