/** HTTP as nobody should speak it: what the public listener makes of it, and that it goes on for everybody else. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { groupsOf, openBooks } from '../helpers/books.ts'
import { timing } from '../helpers/figure.ts'
import { startGateway } from '../helpers/gateway.ts'
import { isErrorBody, metric } from '../helpers/invariants.ts'
import { type RawInput, type RawResult, raw } from '../helpers/raw.ts'
import { startUpstream } from '../helpers/upstream.ts'

const HEADER_MS = 1000
const REQUEST_MS = 1500
const DRIP_MS = 250

const upstream = await startUpstream(t)
const gateway = await startGateway(t, {
  providers: { a: { base_url: upstream.url('a') } },
  config: { endpoints: { chat: { ratelimit: { rpm: 100_000 } } } },
})
/** One that waits for nobody, for clients that have it wait. */
const hasty = await startGateway(t, {
  providers: { a: { base_url: upstream.url('a') } },
  config: { server: { header_timeout: `${HEADER_MS}ms`, request_timeout: `${REQUEST_MS}ms` } },
})

const group = groupsOf(t, { gateway, upstream, books: openBooks(t, gateway) })
const hastyGroup = groupsOf(t, { gateway: hasty, upstream, books: openBooks(t, hasty) })

const bearer = `Authorization: Bearer ${gateway.key}`
const head = (...lines: string[]) => `${lines.map(line => `${line}\r\n`).join('')}\r\n`
const get = (target: string, ...headers: string[]) => head(`GET ${target} HTTP/1.1`, 'Host: gateway', ...headers)
const post = (...headers: string[]) =>
  head('POST /v1/chat/completions HTTP/1.1', 'Host: gateway', 'Content-Type: application/json', ...headers)
const body = '{"model":"test","messages":[{"role":"user","content":"Hi"}]}'
const asked = post(bearer, `Content-Length: ${body.length}`) + body
const send = (input: RawInput, responses?: number) => raw(gateway.port, input, responses ? { responses } : {})
const hits = async () => (await upstream.record()).length

/** One error of ours, then the end of the connection. */
function checkClosed(t: Test, result: RawResult, statuses: number[], says: string): void {
  t.ok(
    statuses.includes(result.status),
    `${says}: ${statuses.join(' or ')}, and it was ${result.statusLine || 'nothing'}`,
  )
  t.ok(isErrorBody(JSON.parse(result.body || 'null')), `${says}: the body is an error`)
  t.equal(result.responses.filter(({ status }) => status >= 200).length, 1, says)
  t.not(result.closed, null, `${says}: the connection is closed`)
}

group('PA-03, PA-05 two hosts or two credentials are one too many', async t => {
  const other = 'Bearer mgw_other'
  checkClosed(t, await send(head('GET /v1/models HTTP/1.1', 'Host: a', 'Host: b', bearer)), [400], 'two hosts')
  checkClosed(t, await send(head('GET /v1/models HTTP/1.1', 'Host: a', 'host: a', bearer)), [400], 'a host twice')
  checkClosed(t, await send(head('GET /v1/models HTTP/1.1', bearer)), [400], 'no host')
  const rows: [says: string, headers: string[], status: number, code?: string][] = [
    ['two authorizations', [bearer, `Authorization: ${other}`], 400, 'ambiguous_credentials'],
    ['two x-api-keys', [`x-api-key: ${gateway.key}`, 'x-api-key: mgw_other'], 400, 'ambiguous_credentials'],
    ['one of each, different', [bearer, 'x-api-key: mgw_other'], 400, 'ambiguous_credentials'],
    ['one of each, equal', [bearer, `x-api-key: ${gateway.key}`], 200],
    ['an authorization twice', [bearer, bearer], 200],
    ['an x-api-key twice', [`x-api-key: ${gateway.key}`, `X-API-Key: ${gateway.key}`], 200],
    ['a name with underscores', ['x_api_key: mgw_other', bearer], 200],
    ['only a name with underscores', [`x_api_key: ${gateway.key}`], 401, 'invalid_api_key'],
  ]
  for (const [says, headers, status, code] of rows) {
    const result = await send(get('/v1/key', ...headers), 1)
    t.equal(result.status, status, says)
    if (code) t.match(JSON.parse(result.body), { error: { code } }, says)
  }
})

group('PA-06 what is too long is refused by its length', async t => {
  checkClosed(t, await send(get('/v1/models', `X-Long: ${'x'.repeat(20_000)}`)), [431], 'a header of 20 KB')
  checkClosed(t, await send(get(`/v1/models?${'x'.repeat(20_000)}`)), [431], 'a target of 20 KB')
  checkClosed(t, await send(get(`/${'x'.repeat(8192)}`)), [414, 431], 'a target of 8,193 bytes')
  t.equal((await send(get(`/v1/models?${'x'.repeat(8192 - 11)}`, bearer), 1)).status, 200, 'one of 8,192 bytes')
})

group('PA-08 a method that a path does not have is told which it has', async t => {
  const rows: [method: string, target: string, status: number, allow?: string][] = [
    ['TRACE', '/v1/models', 405, 'GET, HEAD'],
    ['PUT', '/v1/chat/completions', 405, 'POST'],
    ['DELETE', '/v1/chat/completions', 405, 'POST'],
    ['GET', '/v1/chat/completions', 405, 'POST'],
    ['POST', '/v1/models', 405, 'GET, HEAD'],
    ['POST', '/', 405, 'GET, HEAD'],
    ['OPTIONS', '/v1/models', 405, 'GET, HEAD'],
    ['OPTIONS', '/v1/chat/completions', 405, 'POST'],
    ['PROPFIND', '/nothing', 404],
  ]
  for (const [method, target, status, allow] of rows) {
    const result = await send(head(`${method} ${target} HTTP/1.1`, 'Host: g', bearer, 'X-Canary: tr4ce'), 1)
    t.equal(result.status, status, `${method} ${target}`)
    if (allow) t.equal(result.headers.allow, allow)
    t.notMatch(result.body, 'tr4ce', 'nothing is echoed')
  }
  const ten = await send(`${get('/nothing')}${head('DELETE /v1/models HTTP/1.1', 'Host: g')}`.repeat(5), 10)
  t.strictSame(
    ten.responses.map(({ status }) => status),
    Array.from({ length: 5 }, () => [404, 405]).flat(),
    'a request without a body does not cost its connection',
  )
  const unread = head('POST /nothing HTTP/1.1', 'Host: g', `Content-Length: ${body.length}`) + body
  checkClosed(t, await send(unread), [404], 'one with a body that nobody reads does')
  checkClosed(t, await send(head('FOO /v1/models HTTP/1.1', 'Host: g')), [400], 'FOO')
  const tunnel = await send(head('CONNECT 127.0.0.1:80 HTTP/1.1', 'Host: g'))
  t.not(tunnel.closed, null, 'CONNECT opens no tunnel')
  t.not(tunnel.status, 200)
})

group('PA-08 HEAD is answered wherever GET is: the same head, and no body', async t => {
  const lines = (head: string) =>
    head.split('\r\n').filter(line => !/^(?:date|x-request-id|ratelimit[\w-]*|x-ratelimit-[\w-]*):/i.test(line))
  for (const target of ['/', '/v1/models', '/v1/key', '/v1/models?mapped']) {
    const wanted = await send(get(target, bearer), 1)
    const answers = await send(get(target, bearer).replace('GET', 'HEAD') + get('/nothing', 'Connection: close'))
    const [first, second] = answers.bytes.toString().split('\r\n\r\n')
    t.strictSame(lines(first!), lines(wanted.bytes.toString().split('\r\n\r\n')[0]!), target)
    t.match(second, /^HTTP\/1\.1 404 /, 'what follows is the next answer')
  }
  const refused = await send(head('HEAD /v1/key HTTP/1.1', 'Host: g', 'x-api-key: mgw_wrong', 'Connection: close'))
  t.match(refused.bytes.toString(), /^HTTP\/1\.1 401 [\s\S]*\r\n\r\n$/)
  const posted = await send(head('HEAD /v1/messages HTTP/1.1', 'Host: g', 'Connection: close'))
  t.match(posted.bytes.toString(), /^HTTP\/1\.1 405 [\s\S]*\r\nallow: POST\r\n[\s\S]*\r\n\r\n$/)
})

group('CORS: a page of any origin may read all that is answered below /v1, and nothing else', async t => {
  const origin = 'Origin: https://app.example'
  const length = `Content-Length: ${body.length}`
  const streamed = body.replace('{', '{"stream":true,')
  const rows: [says: string, request: RawInput, status: number][] = [
    ['the catalogue', get('/v1/models', origin), 200],
    ['a head', head('HEAD /v1/models HTTP/1.1', 'Host: g', origin, 'Connection: close'), 200],
    ['an answer', post(bearer, origin, length) + body, 200],
    ['a stream', post(bearer, origin, `Content-Length: ${streamed.length}`) + streamed, 200],
    ['no key', get('/v1/key', origin), 401],
    ['a body that is no JSON', `${post(bearer, origin, 'Content-Length: 1')}x`, 400],
    ['a body that is too large', post(bearer, origin, 'Content-Length: 99999999'), 413],
    ['an unknown path', get('/v1/nothing', origin), 404],
    ['another method', get('/v1/messages', origin), 405],
    ['two keys', get('/v1/key', 'x-api-key: a', 'x-api-key: b', origin), 400],
    ['a target that is too long', get(`/v1/${'x'.repeat(8192)}`, origin), 414],
    ['too many headers', get('/v1/models', origin, ...Array.from({ length: 120 }, () => 'a:b')), 431],
    ['an expectation', post(origin, 'Expect: x', length), 417],
  ]
  const seen = new Set<string>()
  for (const [says, request, status] of rows) {
    const { headers, status: got } = await send(request, 1)
    t.strictSame([got, headers['access-control-allow-origin']], [status, '*'], says)
    t.notOk(headers['access-control-allow-credentials'], says)
    const exposed = (headers['access-control-expose-headers'] ?? '').split(', ')
    t.ok(exposed.includes('retry-after') && exposed.includes('request-id'), says)
    for (const name of Object.keys(headers)) {
      if (/^(?:x-|ratelimit|retry-after)/.test(name) && name !== 'x-accel-buffering') seen.add(name)
    }
    t.strictSame(
      [...seen].filter(name => !exposed.includes(name)),
      [],
      'headers of ours are exposed',
    )
  }
  t.ok(seen.has('ratelimit') && seen.has('x-ratelimit-reset') && seen.has('x-request-id'))
  const unread = await send(get('/v1/models', origin, `X-Long: ${'x'.repeat(20_000)}`))
  t.strictSame([unread.status, unread.headers['access-control-allow-origin']], [431, '*'], 'nor what cannot be read')
  const plain = await send(get('/v1/models'), 1)
  t.equal(plain.headers['access-control-allow-origin'], '*', 'also where no page asks')

  const others = ['/', '/nothing', '/v1', '/V1/models']
  for (const path of others) {
    t.notOk('access-control-allow-origin' in (await send(get(path, origin), 1)).headers, path)
  }
  for (const path of ['/live', '/metrics', '/commands/status']) {
    const admin = await raw(gateway.adminPort, get(path, 'Host: 127.0.0.1', origin).replace('Host: gateway\r\n', ''), {
      responses: 1,
    })
    t.ok(admin.status > 0 && !Object.keys(admin.headers).some(name => name.startsWith('access-control')), path)
  }
})

group('CORS: browsers are told what pages may send, without a key', async t => {
  const wanted = 'authorization,content-type,x-stainless-arch,anthropic-version'
  const preflight = (path: string, ...more: string[]) =>
    head(
      `OPTIONS ${path} HTTP/1.1`,
      ...['Host: g', 'Origin: https://app.example', 'Access-Control-Request-Method: POST', ...more],
    )
  const before = metric(await gateway.metrics(), 'gateway_requests_total')
  const rows: [path: string, methods: string][] = [
    ['/v1/chat/completions', 'POST'],
    ['/v1/messages?beta=true', 'POST'],
    ['/v1/models', 'GET, HEAD'],
    ['/v1/nothing', 'GET, HEAD, POST'],
  ]
  for (const [path, methods] of rows) {
    const result = await send(preflight(path, `Access-Control-Request-Headers: ${wanted}`) + get('/'), 2)
    const [first, second] = result.responses
    t.equal(second?.status, 200, 'the connection goes on')
    t.match(first, {
      status: 204,
      headers: {
        'access-control-allow-origin': '*',
        'access-control-allow-methods': methods,
        'access-control-allow-headers': wanted,
        'access-control-max-age': '86400',
        vary: 'access-control-request-headers',
        'x-request-id': String,
      },
    })
    t.notOk(first!.headers['content-length'] ?? first!.headers['transfer-encoding'])
  }
  const usual = await send(preflight('/v1/models'), 1)
  t.match(usual.headers['access-control-allow-headers'], /authorization, content-type, x-api-key/)
  const odd = await send(preflight('/v1/models', 'Access-Control-Request-Headers: a\tb, "c"'), 1)
  t.equal(odd.headers['access-control-allow-headers'], usual.headers['access-control-allow-headers'])
  const without = await send(head('OPTIONS /v1/models HTTP/1.1', 'Host: g', 'Origin: https://a.example'), 1)
  t.equal(without.status, 405, 'what asks for nothing is no preflight')
  t.equal((await send(preflight('/'), 1)).status, 405)
  t.equal(metric(await gateway.metrics(), 'gateway_requests_total'), before! + rows.length, 'no preflight is counted')
})

group('PA-08 who asks at the address of another wire is refused in the form of that wire', async t => {
  const rows: [request: string, status: number, type: string][] = [
    [get('/v1/messages?beta=true'), 405, 'invalid_request_error'],
    [head('POST /v1/messages HTTP/1.1', 'Host: g', 'x-api-key: a', 'x-api-key: b'), 400, 'invalid_request_error'],
    [head('POST /v1/messages HTTP/1.1', 'Host: g', 'Expect: x', 'Content-Length: 2'), 417, 'invalid_request_error'],
  ]
  for (const [request, status, type] of rows) {
    const result = await send(request, 1)
    t.equal(result.status, status)
    const { error, ...rest } = JSON.parse(result.body) as { error: object }
    t.strictSame([rest, Object.keys(error)], [{ type: 'error' }, ['type', 'message']], `${status}`)
    t.match(error, { type })
  }
})

group('PA-09 other protocols, and other versions of this one, come to nothing', async t => {
  const rows: [says: string, bytes: string | Buffer][] = [
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['TLS', Buffer.from('16030100c8010000c40303', 'hex')],
    ['HTTP/0.9', 'GET /\r\n\r\n'],
    ['HTTP/9.9', head('GET / HTTP/9.9', 'Host: g')],
    ['SSH', 'SSH-2.0-OpenSSH_9.2\r\n'],
  ]
  for (const [says, bytes] of rows) checkClosed(t, await send(bytes), [400], says)
  for (const protocol of ['websocket', 'h2c']) {
    const upgrade = get('/', 'Connection: Upgrade', `Upgrade: ${protocol}`, 'Sec-WebSocket-Version: 13')
    const result = await send(upgrade, 1)
    t.strictSame(
      [result.status, result.headers.upgrade],
      [200, undefined],
      `${protocol}: served as if it had not asked`,
    )
  }
})

group('PA-10 a client that closes its side within a small body is told, and let go', async t => {
  const result = await send(socket => socket.end(post(bearer, 'Content-Length: 100') + body.slice(0, 9)))
  checkClosed(t, result, [400], 'half a body')
  t.equal(result.headers.connection, 'close')
})

/** Chunked bodies that are none. */
const chunked: [says: string, body: string, statuses: number[]][] = [
  ['a size that is no number', 'xyz\r\n{}\r\n0\r\n\r\n', [400]],
  ['a size with 0x', `0x${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`, [400]],
  ['a size of 17 digits', `FFFFFFFFFFFFFFFFF\r\n${body}\r\n0\r\n\r\n`, [400]],
  ['no line end after a chunk', `${body.length.toString(16)}\r\n${body}0\r\n\r\n`, [400]],
  ['bare line feeds', `${body.length.toString(16)}\n${body}\n0\n\n`, [400]],
  ['an extension of 20 KB', `${body.length.toString(16)};a=${'x'.repeat(20_000)}\r\n${body}\r\n0\r\n\r\n`, [400, 413]],
]
group('PA-10 a chunked body that is none is refused, and trailers mean nothing', async t => {
  const results = await Promise.all(
    chunked.map(([, chunks]) => send(post(bearer, 'Transfer-Encoding: chunked') + chunks)),
  )
  for (const [index, [says, , statuses]] of chunked.entries()) checkClosed(t, results[index]!, statuses, says)
  t.equal(await hits(), 0)
  const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n`
  const trailing = await send(`${post('Transfer-Encoding: chunked')}${chunk}${bearer}\r\nX: y\r\n\r\n`, 1)
  t.equal(trailing.status, 401, 'a credential in a trailer is none')
  const good = await send(`${post(bearer, 'Transfer-Encoding: chunked')}${chunk}Authorization: Bearer x\r\n\r\n`, 1)
  t.equal(good.status, 200)
})

group('PA-11 a client that waits to be told is told, or refused before it sends', async t => {
  const waiting = await send(
    [post(bearer, 'Expect: 100-continue', `Content-Length: ${body.length}`), { pauseMs: 50 }, body],
    1,
  )
  t.strictSame(
    waiting.responses.map(({ status }) => status),
    [100, 200],
  )
  const large = post(bearer, 'Expect: 100-continue', `Content-Length: ${64 * 1024 * 1024}`)
  checkClosed(t, await send(large), [413], 'too large')
  const unknown = post('Authorization: Bearer mgw_x', 'Expect: 100-continue', 'Content-Length: 10')
  t.strictSame(
    (await send(unknown, 1)).responses.map(({ status }) => status),
    [401],
    'nobody is told to go on in vain',
  )
  checkClosed(t, await send(post(bearer, 'Expect: junk', 'Content-Length: 2')), [417], 'junk')
})

group('PA-12 pipelined requests are answered in order, each by its own credential', async t => {
  const wrong = get('/v1/key', 'Authorization: Bearer mgw_x')
  const all = Array.from({ length: 100 }, (_, n) => (n % 3 === 0 ? wrong : get('/v1/key', bearer)))
  const { responses } = await send(all.join(''), 100)
  t.strictSame(
    responses.map(({ status }) => status),
    all.map(request => (request === wrong ? 401 : 200)),
  )
  const mixed = await send(get('/v1/key') + asked + get('/v1/models', bearer), 3)
  t.strictSame(
    mixed.responses.map(({ status }) => status),
    [401, 200, 200],
  )
  const patient = await send(socket => {
    const batch = get('/').repeat(100)
    let ends = 0
    socket.write(batch)
    socket.on('data', chunk => {
      const before = ends
      ends += chunk.toString('latin1').split('HTTP/1.1 200').length - 1
      if (Math.floor(ends / 100) > Math.floor(before / 100)) socket.write(ends < 1000 ? batch : get('/'))
    })
  })
  const answers = patient.responses.filter(({ status }) => status === 200)
  t.equal(answers.length, 1000, 'a connection carries a thousand requests')
  t.equal(answers.at(-1)?.headers.connection, 'close')
  t.not(patient.closed, null)
})

group('PA-12 of requests that wait for no answer a connection carries 127', async t => {
  const greedy = await send(get('/').repeat(300))
  t.strictSame(
    greedy.responses.map(({ status }) => status),
    [...Array.from({ length: 127 }, () => 200), 429],
  )
  t.match(greedy.responses.at(-1), {
    headers: { connection: 'close' },
    body: /fewer than 128 requests without an answer/,
  })
  t.not(greedy.closed, null)
  // The thousandth request of a connection, behind 127 without an answer.
  const last = await send(socket => {
    const batch = 109
    let ends = 0
    socket.write(get('/').repeat(batch))
    socket.on('data', chunk => {
      const before = ends
      ends += chunk.toString('latin1').split('HTTP/1.1 200').length - 1
      if (ends % batch === 0 && ends > before && ends <= 872) socket.write(get('/').repeat(ends < 872 ? batch : 128))
    })
  })
  t.equal(last.responses.length, 1000)
  t.match(last.responses.at(-1), { headers: { connection: 'close' } })
  t.not(last.closed, null)
  const flood = await send(get('/').repeat(2000))
  t.not(flood.closed, null, 'many more are not even kept')
  const expects = await send(get('/').repeat(20) + get('/', 'Expect: y') + get('/'))
  t.strictSame(
    expects.responses.map(({ status }) => status),
    [...Array.from({ length: 20 }, () => 200), 417],
    'a refused header is answered behind all that are before it',
  )
  const garbage = await send(`${get('/').repeat(20)}garbage\r\n\r\n`)
  t.strictSame(
    garbage.responses.map(({ status }) => status),
    [...Array.from({ length: 20 }, () => 200), 400],
    'what is no request is answered behind all that are',
  )
})

group('PA-13 what is no request after one that is gets 400, behind the answer to that', async t => {
  await upstream.script('a', [{ delayMs: 100 }])
  for (const garbage of ['garbage', '\0\0\0\0', '}}}}\r\n\r\n']) {
    const result = await send([asked, { pauseMs: 20 }, garbage])
    t.strictSame(
      result.responses.map(({ status }) => status),
      [200, 400],
      JSON.stringify(garbage),
    )
    t.not(result.closed, null)
  }
  t.equal(await hits(), 3)
})

hastyGroup('PA-14, PA-15 who is slow to ask is not waited for', async t => {
  /** Goes on until the other side has closed. */
  const slow = (first: string) =>
    raw(hasty.port, async socket => {
      for (let piece = first; !socket.destroyed; piece = 'x') {
        socket.write(piece)
        await sleep(DRIP_MS)
      }
    })
  const headers = slow('GET / HTTP/1.1\r\nHost: g\r\nX: ')
  const body = slow(post(`Authorization: Bearer ${hasty.key}`, 'Content-Length: 1000'))
  const silent = raw(hasty.port, [])
  const rows: [says: string, result: RawResult, limit: number][] = [
    ['slow headers', await headers, HEADER_MS],
    ['a slow body', await body, REQUEST_MS],
  ]
  for (const [says, result, limit] of rows) {
    checkClosed(t, result, [408], says)
    t.ok(result.ms > limit - 100, `${says}: after ${Math.round(result.ms)} ms`)
    timing(t, { id: 'PA-14', what: `${says} are refused after`, value: result.ms, unit: 'ms', atMost: limit + 2500 })
  }
  const { closed, ms } = await silent
  t.not(closed, null, 'who says nothing is let go')
  timing(t, { id: 'PA-14', what: 'who says nothing is let go after', value: ms, unit: 'ms', atMost: HEADER_MS + 2500 })
  t.equal(await hits(), 0)
})

hastyGroup('PA-16 two thousand who say nothing cost little, and are let go', async t => {
  const before = { rss: await hasty.rss(), descriptors: await hasty.descriptors() }
  const sockets = Array.from({ length: 2000 }, () =>
    connect(hasty.port, '127.0.0.1')
      .on('error', () => undefined)
      .resume(),
  )
  const closed = Promise.all(sockets.map(socket => once(socket, 'close')))
  await Promise.all(sockets.map(socket => once(socket, 'connect')))
  const each = ((await hasty.rss()) - before.rss) / sockets.length / 1024
  t.ok(each < 25, `${each.toFixed(1)} KB each`)
  t.equal((await hasty.chat('Hi')).status, 200, 'others are served')
  await closed
  while ((await hasty.descriptors()) > before.descriptors + 20) await sleep(20)
})

group('PA-19 a body that nobody asked for is read past, and the next request is read well', async t => {
  for (const method of ['GET', 'DELETE']) {
    const request = head(`${method} /v1/models HTTP/1.1`, 'Host: g', bearer, 'Content-Length: 44')
    const hidden = 'GET /v1/key HTTP/1.1\r\nHost: g\r\n\r\nxxxxxxxxxxxx'.slice(0, 44)
    const { responses } = await send(request + hidden + get('/v1/models', bearer), 2)
    t.equal(responses[0]?.status, method === 'GET' ? 200 : 405)
    t.ok(
      responses.length === 1 || responses[1]?.status === 200,
      `${method}: what follows is the next request, or nothing`,
    )
  }
  const large = head('GET /v1/models HTTP/1.1', 'Host: g', bearer, 'Content-Length: 1000000')
  const result = await send([large, 'x'.repeat(100_000)])
  t.equal(result.responses.length, 1)
  t.not(result.closed, null, 'one that is too large to read past ends the connection')
})

group('SI-08, SI-09 names and ids of a client reach no log, header or metric as they are', async t => {
  const hostile: [value: string, status: number][] = [
    ['a\u001b[31mred', 400],
    ['"}{"fake":1', 200],
    ['two words', 200],
    ['x'.repeat(4000), 200],
    ['$\u007bjndi:ldap://x}', 200],
    ['\u00e9\u2028', 200],
    ['<script>', 200],
  ]
  const length = `Content-Length: ${body.length}`
  for (const [value, status] of hostile) {
    const latin = Buffer.from(value, 'utf8').toString('latin1')
    const headers = [`x-request-id: ${latin}`, `user-agent: ${latin}`, `x-session-id: ${latin}`]
    const result = await send(Buffer.from(post(bearer, length, ...headers) + body, 'latin1'), 1)
    t.equal(result.status, status, value.slice(0, 20))
    t.match(result.headers['x-request-id'], /^[A-Za-z0-9._:-]{1,128}$/)
    const named = await send(Buffer.from(post(bearer, length, `x-source: ${latin}`) + body, 'latin1'), 1)
    t.equal(named.status, 400, 'an app has a plain name')
    const model = JSON.stringify({ model: value.slice(0, 200), messages: [{ role: 'user', content: 'Hi' }] })
    const wrong = await send(post(bearer, `Content-Length: ${Buffer.byteLength(model)}`) + model, 1)
    t.equal(wrong.status, 404)
    t.ok(isErrorBody(JSON.parse(wrong.body)))
  }
  const metrics = await gateway.metrics()
  for (const [value] of hostile) t.notOk(metrics.includes(value.slice(0, 40)), value.slice(0, 20))
  t.equal(metric(metrics, 'gateway_requests_total', { model: 'two words' }), 0)
  for (const line of gateway.stderr().split('\n').filter(Boolean)) t.doesNotThrow(() => JSON.parse(line), 'INV-6')
  const entries = await upstream.record('a')
  t.ok(
    entries.every(entry => !JSON.stringify(entry.headers).includes('fake')),
    'SI-12 nor the provider',
  )
})

group('SI-19, SI-20 names that every object has lead nowhere, and metrics are not for the public', async t => {
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '__defineGetter__']) {
    for (const path of [`/${name}`, `/v1/${name}`, `/v1/models/${name}/x`]) {
      t.equal((await send(get(path, bearer), 1)).status, 404, path)
    }
    t.equal((await send(get(`/v1/models?${name}=1&x[${name}]=1`, bearer), 1)).status, 200)
    t.equal((await send(get('/v1/models', bearer, `${name}: 1`), 1)).status, 200)
    const tools = [{ type: 'function', function: { name, parameters: {} } }]
    const asks = (fields: object) => {
      const text = JSON.stringify({ model: 'test', messages: [{ role: 'user', content: 'Hi' }], ...fields })
      return send(post(bearer, `Content-Length: ${text.length}`) + text, 1)
    }
    await upstream.script('a', [{ toolCalls: [{ name }] }])
    const called = JSON.parse((await asks({ tools })).body) as {
      choices: { message: { tool_calls: { function: { name: string } }[] } }[]
    }
    t.equal(called.choices[0]!.message.tool_calls[0]!.function.name, name)
    await upstream.script('a', [{}])
    t.equal((await asks({ model: `${name}/test` })).status, 404)
    t.equal((await asks({ routing: name })).status, 400)
    t.equal((await asks({ response_format: { type: name } })).status, 400)
  }
  for (const path of ['/metrics', '/live', '/ready', '/config', '/reload', '/drain', '/commands/status']) {
    t.equal((await send(get(path, bearer), 1)).status, 404, path)
  }
  const start = performance.now()
  t.ok((await gateway.metrics()).length < 1_000_000)
  timing(t, { id: 'SI-20', what: 'metrics', value: performance.now() - start, unit: 'ms', atMost: 500 })
})

group('SI-12 headers of a client, and of one hop, stay here', async t => {
  const headers = ['Cookie: a=b', 'X-Forwarded-For: 1.2.3.4', 'Forwarded: for=1.2.3.4', 'TE: trailers', 'Via: 1.1 x']
  headers.push('Connection: x-hop', 'X-Hop: 1', 'Proxy-Authorization: Basic x', 'Origin: https://evil.example')
  headers.push('OpenAI-Organization: org', 'anthropic-beta: x', 'X-Anything: y', 'Referer: https://evil.example/')
  t.equal((await send(post(bearer, `Content-Length: ${body.length}`, ...headers) + body, 1)).status, 200)
  const [entry] = await upstream.record('a')
  t.strictSame(
    Object.keys(entry!.headers)
      .filter(name => !['connection', 'host', 'content-length', 'content-type'].includes(name))
      .sort(),
    ['accept-encoding', 'authorization', 'user-agent', 'x-request-id'],
  )
})
