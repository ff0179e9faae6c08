/** Sockets to providers: how many at once, to which addresses, and for how long. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import { sharedLookup } from '../../src/egress/guard.ts'
import { errors, type GatewayError } from '../../src/lib/error.ts'
import { Transport } from '../../src/upstream/transport.ts'
import type { UpstreamRequest } from '../../src/upstream/upstream-request.ts'
import type { UpstreamResponse } from '../../src/upstream/upstream-response.ts'

const timeouts = { connect: 1000, idle: 5000 }

/** A server that holds its answers; `connections` counts who came. */
async function provider(t: Test) {
  const held: ServerResponse[] = []
  const sockets: Socket[] = []
  const server = createServer((_req, res) => void held.push(res)).listen(0, '127.0.0.1')
  server.on('connection', socket => sockets.push(socket))
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const next = async () => {
    while (held.length === 0) await setImmediate()
    return held.shift()!
  }
  return { port: (server.address() as { port: number }).port, next, sockets }
}
const callTo = (baseUrl: string, owner?: string, concurrency = 2): UpstreamRequest => ({
  provider: { id: 'p', owner, concurrency },
  method: 'POST',
  baseUrl,
  path: '/x',
  headers: [],
  body: '{}',
  timeouts,
  firstEventMs: 5000,
  remainingMs: 100_000,
  signal: new Cancellation(),
  receipt: { atProvider: false },
  tenant: 'org-1',
})
/** The status of the answer, or the code of the failure. */
const outcome = (sent: Promise<UpstreamResponse>) =>
  sent.then(
    ({ status }) => status,
    (error: GatewayError) => error.code,
  )
async function readAll(incoming: UpstreamResponse): Promise<void> {
  while (await incoming.take());
}

t.test('UF-02 concurrent requests share one lookup of a name', async t => {
  const asked: { name: string; done: (error: Error | null, found: { address: string; family: number }[]) => void }[] =
    []
  const lookup = sharedLookup((name, _options, done) => void asked.push({ name, done }))
  const got: unknown[] = []
  for (let n = 0; n < 200; n++) lookup('hangs.example', { all: true }, (error, found) => got.push([error, found]))
  lookup('other.example', {}, (error, address, family) => got.push([error, address, family]))
  t.strictSame(
    asked.map(({ name }) => name),
    ['hangs.example', 'other.example'],
  )
  asked[1]!.done(null, [{ address: '1.2.3.4', family: 4 }])
  t.strictSame(got, [[null, '1.2.3.4', 4]], 'one that hangs keeps no other waiting')
  asked[0]!.done(new Error('SERVFAIL'), [])
  t.equal(got.length, 201)
  lookup('hangs.example', { all: true }, (error, found) => got.push([error, found]))
  asked[2]!.done(null, [])
  t.match(got.at(-1), [{ message: /no address/ }, []], 'and the next one asks anew')
})

t.test('OB-08 only so many calls to a provider are open, until they are answered or left', async t => {
  const { port, next } = await provider(t)
  const transport = new Transport()
  t.teardown(() => transport.close())
  const url = `http://127.0.0.1:${port}/v1`
  const first = transport.send(callTo(url))
  const left = callTo(url)
  const second = transport.send(left)
  const busy = await transport.send(callTo(url)).catch((error: GatewayError) => error)
  t.match(busy, { status: 529, code: 'overloaded', failover: true, upstreamStatus: undefined })
  t.equal(
    await outcome(transport.send({ ...callTo(url), provider: { id: 'q', concurrency: 1 }, signal: aborted() })),
    'request_cancelled',
  )

  ;(await next()).end('{}')
  ;(await next()).write('{')
  await readAll(await first)
  const third = transport.send(callTo(url))
  t.equal(await outcome(transport.send(callTo(url))), 'overloaded')
  left.signal.abort(errorOf(busy))
  await second
    .then(
      incoming => incoming.take(),
      () => undefined,
    )
    .catch(() => undefined)
  const fourth = transport.send(callTo(url))
  ;(await next()).end('{}')
  ;(await next()).end('{}')
  for (const answer of [third, fourth]) await readAll(await answer)
  t.equal(await outcome(transport.send(callTo('http://127.0.0.1:1/v1'))), 'fetch_failed')
  t.equal(await outcome(transport.send(callTo('http://127.0.0.1:1/v1'))), 'fetch_failed', 'failures take no place')
  const owned = [callTo(url, 'org-1', 1), callTo(url, 'org-2', 1)].map(call =>
    new Transport({ allowPrivate: true }).send(call),
  )
  for (const answer of owned) {
    ;(await next()).end('{}')
    await readAll(await answer)
  }
})

t.test('slow calls of one tenant do not take all places of a provider beside another one', async t => {
  const { port, next } = await provider(t)
  const transport = new Transport()
  t.teardown(() => transport.close())
  const send = (tenant: string) => transport.send({ ...callTo(`http://127.0.0.1:${port}/v1`, undefined, 4), tenant })
  const alone = Array.from({ length: 4 }, () => send('a'))
  t.equal(await outcome(send('b')), 'overloaded', 'alone it may have all of them')
  for (const answer of alone.splice(0)) {
    ;(await next()).end('{}')
    await readAll(await answer)
  }
  const calls = [send('a'), send('a')]
  t.equal(await outcome(send('a')), 'overloaded', 'and half of them once another one has asked')
  calls.push(send('b'), send('b'))
  for (const answer of calls) {
    ;(await next()).end('{}')
    await readAll(await answer)
  }
})

t.test('all own providers of one organization share a cap, whatever each of them may have', async t => {
  const { port, next } = await provider(t)
  const transport = new Transport({ allowPrivate: true })
  t.teardown(() => transport.close())
  const send = (id: string, owner?: string) => {
    const given = { id, owner, concurrency: 3, ...(owner && { ownerConcurrency: 2 }) }
    return transport.send({ ...callTo(`http://127.0.0.1:${port}/v1`), provider: given })
  }
  const first = send('p', 'org-1')
  const others = [send('q', 'org-1'), send('p', 'org-2'), send('p')]
  t.equal(await outcome(send('r', 'org-1')), 'overloaded')
  ;(await next()).end('{}')
  await readAll(await first)
  others.push(send('r', 'org-1'))
  t.equal(await outcome(send('p', 'org-1')), 'overloaded')
  for (const answer of others) {
    ;(await next()).end('{}')
    await readAll(await answer)
  }
})
const errorOf = (thrown: unknown) => thrown as GatewayError
function aborted(): Cancellation {
  const signal = new Cancellation()
  signal.abort({ status: 499, code: 'request_cancelled' } as GatewayError)
  return signal
}

t.test("SI-01, SI-02 an organization's own provider is reached at public addresses only", async t => {
  const { port, next, sockets } = await provider(t)
  const inside = async () => ['127.0.0.1']
  for (const host of ['127.0.0.1', 'localhost', 'rebind.example', '[::ffff:127.0.0.1]', '2130706433']) {
    const transport = new Transport({ resolve: inside })
    t.equal(await outcome(transport.send(callTo(`http://${host}:${port}/v1`, 'org-1'))), 'fetch_failed', host)
    await transport.close()
  }
  t.equal(sockets.length, 0, 'nobody connected')
  for (const [owner, allowPrivate] of [
    [undefined, false],
    ['org-1', true],
  ] as const) {
    const transport = new Transport({ allowPrivate, resolve: inside })
    const sent = transport.send(callTo(`http://127.0.0.1:${port}/v1`, owner))
    ;(await next()).end('{}')
    t.equal(await outcome(sent), 200, `${owner}, ${allowPrivate}`)
    await transport.close()
  }
})

t.test('CF-06 sockets of an address that no provider uses any more are closed', async t => {
  const [gone, used, other] = [await provider(t), await provider(t), await provider(t)]
  const transport = new Transport()
  t.teardown(() => transport.close())
  const ask = async ({ port, next }: typeof gone) => {
    const sent = transport.send(callTo(`http://127.0.0.1:${port}/v1`))
    ;(await next()).end('{}')
    await readAll(await sent)
  }
  await ask(gone)
  const running = transport.send(callTo(`http://127.0.0.1:${used.port}/v1`))
  const answer = await used.next()
  const closed = once(gone.sockets[0]!, 'close')
  const { now } = performance
  t.intercept(performance, 'now', { value: () => now.call(performance) + 61_000 })
  await ask(other)
  await closed
  answer.end('{}')
  await readAll(await running)
  t.equal((await running).status, 200, 'one that runs is not given up')
})

t.test('pieces of a stream that come close together are taken together while there is much to do', async t => {
  const { port, next } = await provider(t)
  const transport = new Transport({ gatherMs: 200 })
  t.teardown(() => transport.close())
  const sent = transport.send(callTo(`http://127.0.0.1:${port}/v1`))
  const answer = await next()
  const write = async (text: string) => {
    await new Promise<void>(resolve => void answer.write(text, () => resolve()))
    for (let turn = 0; turn < 3; turn++) await setImmediate()
  }
  const taken: string[] = []
  const take = async (incoming: UpstreamResponse) => {
    const pieces = await incoming.take()
    if (pieces) taken.push(pieces.join(''))
    return pieces !== undefined
  }
  await write('first ')
  const incoming = await sent
  await take(incoming)
  incoming.committed(true)
  for (let n = 0; n < 17; n++) {
    await write('.')
    await take(incoming)
  }
  for (const text of ['a', 'b', 'c']) await write(text)
  await take(incoming)
  t.strictSame(taken, ['first ', ...Array.from({ length: 17 }, () => '.'), 'abc'])
  incoming.release()
  await write('left over')
  answer.end()
  t.notOk(await take(incoming))
})

t.test('the sockets that are bundled in place of all of undici can be asked for an answer', async t => {
  const { port, next } = await provider(t)
  const parts = new URL('../../build/undici.js', import.meta.url).href
  const { Agent } = (await import(parts)) as typeof import('undici')
  const agent = new Agent()
  t.teardown(() => agent.destroy())
  const answer = agent.request({ origin: `http://127.0.0.1:${port}`, path: '/token', method: 'POST', body: 'a=b' })
  ;(await next()).end('{"token":1}')
  t.strictSame(await (await answer).body.json(), { token: 1 })
})

t.test('an answer that cannot be cancelled is read on when its client has left, until the process ends', async t => {
  const { port, next } = await provider(t)
  const transport = new Transport()
  t.teardown(() => transport.close())
  const begun = async () => {
    const call = { ...callTo(`http://127.0.0.1:${port}/v1`, undefined, 9), cancellable: false }
    const sent = transport.send(call)
    const answer = await next()
    answer.write('one')
    const incoming = await sent
    await incoming.take()
    call.signal.abort(errors.aborted())
    return { answer, incoming, signal: call.signal }
  }
  const whole = await begun()
  // More than is read of others.
  whole.answer.end('x'.repeat(2 * 1024 * 1024))
  let length = 0
  for (let pieces = await whole.incoming.take(); pieces; pieces = await whole.incoming.take()) {
    for (const piece of pieces) length += piece.length
  }
  t.equal(length, 2 * 1024 * 1024)
  const cut = await begun()
  cut.signal.cut()
  t.equal(await readAll(cut.incoming).catch((error: GatewayError) => error.code), 'request_cancelled')
})

t.test('a client that does not read has left when its total time is over, or its provider breaks off', async t => {
  const { port, next } = await provider(t)
  const transport = new Transport()
  t.teardown(() => transport.close())
  const now = performance.now
  t.teardown(() => Object.assign(performance, { now }))
  // Unread, it is looked after as often as it would be for silence, which the second row leaves out.
  const rows: [says: string, laterMs: number, idle: number, breaks: boolean, end: string | undefined][] = [
    ['what comes within a moment is still read', 200_000, 20, false, undefined],
    ['what is there is read', 11_000, 60_000, true, 'fetch_failed'],
  ]
  for (const [says, laterMs, idle, breaks, end] of rows) {
    const call = { ...callTo(`http://127.0.0.1:${port}/v1`, undefined, 9), timeouts: { ...timeouts, idle } }
    const sent = transport.send(call)
    const answer = await next()
    answer.write('x'.repeat(64 * 1024))
    const incoming = await sent
    while (incoming.line!.socket!.bytesRead < 40_000) await setImmediate()
    incoming.committed(true)
    performance.now = () => now.call(performance) + laterMs
    if (breaks) answer.destroy()
    else {
      await call.signal.until(new Promise(() => undefined))
      answer.end('x')
    }
    let length = 0
    const take = async () => {
      for (let pieces = await incoming.take(); pieces; pieces = await incoming.take()) {
        for (const piece of pieces) length += piece.length
      }
    }
    t.equal(await take().catch((error: GatewayError) => error.code), end, says)
    t.ok(length > 32 * 1024, says)
    t.match(call.signal.reason, { status: 499, message: /read too slowly/ }, says)
    performance.now = now
  }
})

/** A server of raw sockets, whose address is returned. */
async function rawProvider(t: Test, serve: (socket: Socket) => void): Promise<string> {
  const sockets: Socket[] = []
  const server = createTcpServer(socket => {
    sockets.push(socket)
    serve(socket)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

t.test(
  'a provider that answers before it has read its request loses its socket, which would keep the request',
  async t => {
    let sockets = 0
    const address = await rawProvider(t, socket => {
      sockets++
      socket.pause().write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')
    })
    const transport = new Transport()
    t.teardown(() => transport.close())
    const body = Buffer.alloc(16 * 1024 * 1024)
    for (const given of [body, [body.subarray(0, 1024), body]]) {
      const incoming = await transport.send({ ...callTo(address), body: given })
      const { socket } = incoming.line!
      const closed = once(socket!, 'close')
      await readAll(incoming)
      await closed
      t.equal(incoming.status, 200)
    }
    t.equal(sockets, 2)
  },
)

t.test('a provider that sends interim answers without end has failed', async t => {
  const interim = 'HTTP/1.1 103 Early Hints\r\n\r\n'
  const final = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'
  let count = 0
  const address = await rawProvider(t, socket => {
    socket.on('error', () => undefined)
    socket.on('data', () => socket.write(interim.repeat(count) + final))
  })
  const transport = new Transport()
  t.teardown(() => transport.close())
  for (const [interims, expected] of [
    [16, 200],
    [17, 'timeout'],
    [10_000, 'timeout'],
  ] as const) {
    count = interims
    const sent = transport.send(callTo(address))
    t.equal(await outcome(sent), expected, `${interims} of them`)
    await sent.then(readAll).catch(() => undefined)
  }
})

t.test('a provider that stops at once is left at once when its client leaves, and has the request', async t => {
  const { port, next } = await provider(t)
  const transport = new Transport()
  t.teardown(() => transport.close())
  const call = { ...callTo(`http://127.0.0.1:${port}/v1`, undefined, 9), cancellable: true }
  const sent = transport.send(call)
  const answer = await next()
  const closed = new Promise<void>(resolve => void answer.on('close', resolve))
  answer.write('one')
  const incoming = await sent
  await incoming.take()
  call.signal.abort(errors.aborted())
  await closed
  t.equal(await readAll(incoming).catch((error: GatewayError) => error.code), 'request_cancelled')
  t.equal(call.receipt.atProvider, true, 'so that what was delivered is charged')
})

t.test('a call that ends while its socket connects takes the socket with it, and what it would have sent', async t => {
  const connected: Socket[] = []
  let arrived = () => {}
  const address = await rawProvider(t, socket => {
    connected.push(socket.on('error', () => undefined).resume())
    arrived()
  })
  const silent = address.replace('http:', 'https:')
  const transport = new Transport({ allowPrivate: true })
  t.teardown(() => transport.close())
  const body = Buffer.alloc(1024)
  for (const owner of [undefined, 'org-1']) {
    for (const given of [body, [body, body]]) {
      const call = { ...callTo(silent, owner), body: given, timeouts: { ...timeouts, connect: 600_000 } }
      const arrival = new Promise<void>(resolve => (arrived = resolve))
      const sent = transport.send(call)
      await arrival
      const closed = once(connected.at(-1)!, 'close')
      call.signal.abort(errors.aborted())
      t.equal(await outcome(sent), 'request_cancelled')
      await closed
    }
  }
  const count = connected.length
  const early = { ...callTo(silent), body: [body] }
  const sent = transport.send(early)
  early.signal.abort(errors.aborted())
  t.strictSame(await Promise.all([outcome(sent), outcome(transport.send(early))]), Array(2).fill('request_cancelled'))
  t.equal(await outcome(transport.send({ ...callTo(silent), firstEventMs: 1 })), 'timeout')
  arrived = () => {}
  const { port, next } = await provider(t)
  const other = transport.send(callTo(`http://127.0.0.1:${port}/v1`))
  ;(await next()).end('{}')
  await readAll(await other)
  t.ok(connected.length <= count + 1, 'what has ended before is not connected')
})

t.test('UF-13 a socket that ends without a byte of an answer was stale, and no other one was', async t => {
  const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'
  const rows: [says: string, isKept: boolean, bytes: string, stale: boolean][] = [
    ['a kept one that ends', true, '', true],
    ['a new one', false, '', false],
    ['half a head', true, 'HTTP/1.1 200 OK\r\ncontent-', false],
    ['no HTTP', true, 'hello\r\n\r\n', false],
    ['an interim answer', true, 'HTTP/1.1 103 Early Hints\r\n\r\n', false],
    ['half a body', true, answer.slice(0, -1), false],
  ]
  for (const [says, isKept, bytes, stale] of rows) {
    let requests = 0
    const url = await rawProvider(t, socket => {
      socket.on('data', () => {
        if (++requests === 1 && isKept) socket.write(answer)
        else socket.end(bytes)
      })
    })
    const transport = new Transport()
    t.teardown(() => transport.close())
    const read = async () => readAll(await transport.send(callTo(url)))
    if (isKept) await read()
    // The pool learns of the end of an answer after its reader.
    await setImmediate()
    t.match(await read().catch((error: GatewayError) => error), { code: 'fetch_failed', stale }, says)
  }
})
