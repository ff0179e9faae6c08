/** What the public listener refuses before anything runs: bodies that are no requests, and abuse of HTTP itself. */
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { groupsOf, openBooks } from '../helpers/books.ts'
import { TIMINGS, timing } from '../helpers/figure.ts'
import { isErrorBody, metric } from '../helpers/invariants.ts'
import { type RawInput, type RawResult, raw } from '../helpers/raw.ts'
import { plainGateway } from './plain.ts'

/** Of `POST /v1/chat/completions`, in bytes. */
const BODY_LIMIT = 32 * 1024 * 1024
const MAX_DEPTH = 128
const MAX_LAG_MS = 50

const { upstream, gateway } = await plainGateway()

const group = groupsOf(t, { gateway, upstream, books: openBooks(t, gateway) })

const question = '"model":"test","messages":[{"role":"user","content":"Hi"}]'
const valid = `{${question}}`
const bearer = `Authorization: Bearer ${gateway.key}`
const head = (...lines: string[]) => `${lines.map(line => `${line}\r\n`).join('')}\r\n`
const get = (target: string, ...headers: string[]) => head(`GET ${target} HTTP/1.1`, 'Host: gateway', ...headers)
/** The head of a chat request; `framing` says where its body ends. */
const chat = (...framing: string[]) =>
  head('POST /v1/chat/completions HTTP/1.1', 'Host: gateway', bearer, 'Content-Type: application/json', ...framing)
const lengthOf = (body: string | Buffer) => `Content-Length: ${Buffer.byteLength(body)}`
const post = (body: string) => send([chat(lengthOf(body)), body], 1)
const chunk = (body: string | Buffer) => [`${Buffer.byteLength(body).toString(16)}\r\n`, body, '\r\n']
const send = (input: RawInput, responses?: number) => raw(gateway.port, input, responses ? { responses } : {})

/** Calls to providers, for each of which money is reserved. */
const attempts = async () => metric(await gateway.metrics(), 'gateway_attempts_total')
/** Requests that came past the edge, to whatever endpoint. */
const served = async () => metric(await gateway.metrics(), 'gateway_requests_total')

function checkRefusal(t: Test, result: RawResult, statuses: number[], codes?: string[]): void {
  t.ok(statuses.includes(result.status), `${statuses.join(' or ')}, and it was: ${result.statusLine || 'no answer'}`)
  t.equal(result.headers['content-type'], 'application/json')
  t.match(result.headers['x-request-id'], /^[A-Za-z0-9._:-]{1,128}$/)
  t.ok(result.complete, 'the answer is whole')
  if (!result.complete) return
  const body = JSON.parse(result.body) as { error: { code: string } }
  t.ok(isErrorBody(body), 'the body is an error')
  if (codes) t.ok(codes.includes(body.error.code), `${codes.join(' or ')}, and it was: ${body.error.code}`)
}

/** A refusal after which nothing on the connection is read: one answer, whatever followed the request. */
function checkClosing(t: Test, result: RawResult, statuses: number[], codes?: string[]): void {
  checkRefusal(t, result, statuses, codes)
  t.equal(result.responses.length, 1, 'there is one answer')
  t.not(result.closed, null, 'the connection is closed')
}

group('MF-01 a body that is not a JSON object is refused, and reaches no provider', async t => {
  const before = await attempts()
  for (const body of ['{"model":', '{}}', '', 'null', '[]', '"x"', '1']) {
    await t.test(body || 'nothing', async t => {
      checkRefusal(t, await post(body), [400], ['invalid_json', 'invalid_parameters'])
    })
  }
  t.equal((await upstream.record()).length, 0)
  t.equal(await attempts(), before)
})

/** Bodies of so many levels in all. */
const places: Record<string, (levels: number) => string> = {
  'messages[0].content': levels =>
    `{"model":"test","messages":[{"role":"user","content":${'['.repeat(levels - 3)}${']'.repeat(levels - 3)}}]}`,
  'tools[0].function.parameters': levels =>
    `{${question},"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{},"a":${'{"a":'.repeat(levels - 6)}{}${'}'.repeat(levels - 6)}}}}]}`,
  'an unknown key': levels => `{${question},"x":${'[{"a":'.repeat((levels - 1) / 2)}1${'}]'.repeat((levels - 1) / 2)}}`,
}

group('MF-02, MF-03 a body that nests too deep is refused by its shape, at no cost to others', async t => {
  for (const [place, nested] of Object.entries(places)) {
    for (const levels of [MAX_DEPTH + 1, 1001, 10_001, 1_000_001]) {
      await t.test(`${levels} levels in ${place}`, async t => {
        let value = Number.POSITIVE_INFINITY
        for (let tries = 0; tries < TIMINGS; tries++) {
          await gateway.metrics()
          checkRefusal(t, await post(nested(levels)), [400], ['too_deep'])
          const lag = metric(await gateway.metrics(), 'gateway_event_loop_lag_seconds', { quantile: '1' })!
          value = Math.min(value, 1000 * lag)
        }
        const what = `others wait for ${levels} levels in ${place}`
        timing(t, { id: 'MF-02', what, value, unit: 'ms', atMost: MAX_LAG_MS })
      })
    }
  }
  t.equal((await upstream.record()).length, 0)
  const deepest = places['tools[0].function.parameters']!(MAX_DEPTH)
  t.equal((await post(deepest)).status, 200, 'the deepest that is allowed is served')
  t.equal((await post(`{"model":"test","messages":[{"role":"user","content":"${'['.repeat(10_000)}"}]}`)).status, 200)
  const [entry] = await upstream.record('a')
  const given = JSON.parse(deepest) as { tools: unknown }
  t.same((entry!.body as typeof given).tools, given.tools, 'and reaches the provider as it was')
  await upstream.reset()
})

/** A valid request of exactly so many bytes; what fills it up is an unknown key, which no provider gets. */
const sized = (bytes: number) => Buffer.from(`${valid.slice(0, -1)},"pad":"${' '.repeat(bytes - valid.length - 9)}"}`)

group('MF-13 a body is accepted up to the limit, and cut off beyond it', async t => {
  for (const bytes of [BODY_LIMIT - 1, BODY_LIMIT]) {
    const body = sized(bytes)
    const chunked = [chat('Transfer-Encoding: chunked'), ...chunk(body), '0\r\n\r\n']
    t.equal((await send([chat(lengthOf(body)), body], 1)).status, 200, `${bytes} bytes by length`)
    t.equal((await send(chunked, 1)).status, 200, `${bytes} bytes in chunks`)
  }
  t.equal((await upstream.record()).length, 4)
  await upstream.reset()

  const over = sized(BODY_LIMIT + 1)
  const inputs: [string, RawInput][] = [
    ['announced, and none of it sent', chat(lengthOf(over))],
    ['announced and sent', [chat(lengthOf(over)), over]],
    ['announced by somebody who waits to be told to go on', chat(lengthOf(over), 'Expect: 100-continue')],
    ['in chunks, of which the last is not sent', [chat('Transfer-Encoding: chunked'), ...chunk(over)]],
    ['in chunks, and twice as much', [chat('Transfer-Encoding: chunked'), ...chunk(over), ...chunk(over)]],
  ]
  await Promise.all(
    inputs.map(async ([says, input]) => {
      const result = await send(input)
      await t.test(`one byte too many, ${says}`, async t => checkClosing(t, result, [413], ['request_too_large']))
    }),
  )
  t.equal((await upstream.record()).length, 0)
})

group('a body in very many tiny chunks is refused, and one in a chunk for each token of its JSON is not', async t => {
  const chunked = (chunks: readonly string[]) => [
    chat('Transfer-Encoding: chunked'),
    chunks.map(one => chunk(one).join('')).join(''),
  ]
  const messages = Array.from({ length: 1000 }, () => ({ role: 'user', content: 'Hi' }))
  const tokens = JSON.stringify({ model: 'test', messages }).match(/"[^"]*"|[^"]/g) ?? []
  t.ok(tokens.length > 9000)
  t.equal((await send([...chunked(tokens), '0\r\n\r\n'], 1)).status, 200)
  t.equal((await upstream.record()).length, 1)
  await upstream.reset()
  const input = chunked([...' '.repeat(100_000)])
  checkClosing(t, await send(input), [400], ['bad_request'])
  t.equal((await upstream.record()).length, 0)
})

group('a body that an endpoint does not read is dropped where it is small, and else ends the connection', async t => {
  const models = (framing: string, body: string) => get('/v1/models', bearer, framing) + body
  const coding = 'Transfer-Encoding: chunked'
  const byteChunks = (count: number) => chunk('a').join('').repeat(count)
  t.equal((await send(models(lengthOf('{}'), '{}') + get('/v1/models', bearer), 2)).responses.length, 2)
  for (const body of ['', byteChunks(100)]) {
    t.equal((await send(models(coding, `${body}0\r\n\r\n`), 1)).status, 200)
  }
  const stream = get('/mcp', bearer, 'Accept: text/event-stream', coding).replace(
    'gateway',
    `127.0.0.1:${gateway.port}`,
  )
  const ended = await send(socket => {
    socket.write(stream)
    socket.once('data', () => socket.write(byteChunks(2000)))
  })
  t.match(ended, { status: 200, complete: false })
  t.not(ended.closed, null, 'the stream is cut off')
  const answered = await send(socket => {
    socket.setNoDelay(true)
    socket.write(get('/v1/models', bearer, `Content-Length: ${64 * 1024}`))
    socket.once('data', async () => {
      for (let sent = 0; sent < 60_000 && socket.writable; sent++) {
        socket.write('a')
        await turn()
      }
    })
  })
  t.match(answered, { status: 200, complete: true })
  t.not(answered.closed, null, 'pieces without end behind a whole answer end the connection')
})

const body = `${(11).toString(16)}\r\n{"a":"b  "}\r\n0\r\n\r\n`
/** Framings that two servers could read in two ways, each before a request that only one of them would see. */
const ambiguous: [says: string, request: string, statuses?: number[]][] = [
  ['Content-Length before Transfer-Encoding', chat('Content-Length: 5', 'Transfer-Encoding: chunked') + body],
  ['Transfer-Encoding before Content-Length', chat('Transfer-Encoding: chunked', 'Content-Length: 5') + body],
  ['two equal lengths', chat('Content-Length: 2', 'Content-Length: 2') + valid],
  ['two lengths', chat('Content-Length: 2', `Content-Length: ${valid.length}`) + valid],
  ['a list of lengths', `${chat('Content-Length: 2, 2')}{}`],
  ['a signed length', `${chat('Content-Length: +2')}{}`],
  ['a negative length', `${chat('Content-Length: -1')}{}`],
  ['a hexadecimal length', `${chat('Content-Length: 0x2')}{}`],
  ['a length of 2^64', `${chat('Content-Length: 18446744073709551616')}{}`],
  ['a space before the colon', `${chat('Content-Length : 2')}{}`],
  ['a folded header', `${chat('X-Folded: a', ' b', 'Content-Length: 2')}{}`],
  ['Transfer-Encoding: xchunked', chat('Transfer-Encoding: xchunked') + body],
  ['Transfer-Encoding: chunked, identity', chat('Transfer-Encoding: chunked, identity') + body],
  ['Transfer-Encoding: chunked, chunked', chat('Transfer-Encoding: chunked, chunked') + body],
  ['two codings in two headers', chat('Transfer-Encoding: chunked', 'Transfer-Encoding: identity') + body],
  ['a vertical tab before the coding', chat('Transfer-Encoding: \vchunked') + body],
  ['bare line feeds', `${chat(lengthOf(valid)).replaceAll('\r\n', '\n')}${valid}`],
  ['a bare carriage return', `${chat('X-Bare: a\rTransfer-Encoding: chunked', 'Content-Length: 2')}{}`],
  ['a NUL in a header', `${chat('X-Nul: a\0b', 'Content-Length: 2')}{}`],
]
/** What `node:http` itself accepts. */
const accepted: typeof ambiguous = [
  ['Transfer-Encoding: gzip, chunked', chat('Transfer-Encoding: gzip, chunked') + body, [400, 501]],
  ['gzip and chunked in two headers', chat('Transfer-Encoding: gzip', 'Transfer-Encoding: chunked') + body, [400, 501]],
  ['chunks on HTTP/1.0', chat('Transfer-Encoding: chunked').replace('HTTP/1.1', 'HTTP/1.0') + body, [400, 501]],
]
for (const [id, what, cases] of [
  ['PA-01', 'a framing that can be read in two ways is refused', ambiguous],
  ['PA-02', 'a coding that only an intermediary would undo is refused', accepted],
] as const) {
  group(`${id} ${what}, with all that follows it`, async t => {
    const before = await served()
    for (const [says, request, statuses = [400]] of cases) {
      await t.test(says, async t => checkClosing(t, await send(request + get('/v1/models', bearer)), statuses))
    }
    t.equal(await served(), before, 'neither the request nor the one in its shadow reached an endpoint')
    t.equal((await upstream.record()).length, 0)
  })
}

group('PA-04 too many headers are refused, and never cut down to fewer', async t => {
  const before = await served()
  for (const count of [101, 1001, 3000]) {
    const others = Array.from({ length: count - 2 }, () => 'a:b')
    const answer = await send(get('/v1/key', ...others, bearer))
    checkClosing(t, answer, [431])
    t.match(answer.bytes.toString(), '"code":"too_many_headers"', 'on every version of Node')
  }
  t.equal(await served(), before)
  const most = Array.from({ length: 98 }, () => 'a:b')
  t.equal((await send(get('/v1/key', ...most, bearer), 1)).status, 200, 'a hundred are served, the last of them too')
})

group('PA-07 a target that is no plain path of an endpoint leads nowhere', async t => {
  const before = await served()
  const targets = [
    '//',
    '//evil/x',
    'http://evil/v1/models',
    '/\\evil',
    '*',
    '/%',
    '/v1/%2e%2e/admin',
    '/v1/../metrics',
  ]
  targets.push(
    '/v1/models%00',
    '/V1/Models',
    '/v1//models',
    '/v1/models/',
    '/v1/models;x',
    'http://[',
    'v1/models',
    '/é',
  )
  for (const target of targets) {
    await t.test(target, async t => checkRefusal(t, await send(get(target, bearer), 1), [400, 404]))
  }
  t.equal(await served(), before)
  t.equal((await send(get('/v1/models?x=//evil', bearer), 1)).status, 200)
})
