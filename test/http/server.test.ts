/** How a listener ends, how many connections it takes, and how many requests of each it serves at once. */
import { EventEmitter, once } from 'node:events'
import { Agent, createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import type { Log, Services } from '../../src/core/ports.ts'
import type { Snapshot } from '../../src/core/snapshot.ts'
import { stopListening } from '../../src/http/closing.ts'
import { Connection } from '../../src/http/connection.ts'
import { connectionsWithin, openFiles } from '../../src/http/connections.ts'
import { Cors } from '../../src/http/cors.ts'
import { drain } from '../../src/http/drain.ts'
import { InFlightRequests } from '../../src/http/in-flight-requests.ts'
import { Listener } from '../../src/http/server.ts'
import { pause } from '../helpers/pause.ts'

/** A listener without endpoints. */
const bare = (
  current = () => ({ match: () => undefined, routes: () => [] }) as unknown as Snapshot,
  error: Log['error'] = () => undefined,
) =>
  new Listener({
    listen: '127.0.0.1:0',
    limits: { heartbeat: 15_000, hold: 10_000, request: 60_000, minRate: 4096 },
    headerTimeout: 15_000,
    writeStall: 60_000,
    maxConnections: 10,
    origins: [],
    current,
    ...({ load: { memory: () => 0 }, metrics: { refusal() {} }, log: { error } } as unknown as Pick<
      Services,
      'memory' | 'load' | 'metrics' | 'log'
    >),
  })

t.test('a drain that is aborted before it has begun waits for nothing', { timeout: 20_000 }, async t => {
  const listener = bare()
  await listener.listen()
  t.ok(listener.accepting)
  const status = await new Promise(resolve =>
    get(`http://${listener.address}/`, ({ statusCode }) => resolve(statusCode)),
  )
  t.equal(status, 404)
  listener.abortDrain()
  // Its own time limit is what would notice a wait.
  await listener.drain({ delay: 60_000, drain: 60_000 })
  t.notOk(listener.accepting)
})

t.test('a request that comes while the listener closes is served on the connection that was made before', async t => {
  const listener = bare()
  await listener.listen()
  const port = Number(listener.address.split(':').at(-1))
  const socket = connect(port, '127.0.0.1')
  while (listener.connections === 0) await turn()
  const drained = listener.drain({ delay: 0, drain: 10_000 })
  const isRefused = () =>
    new Promise(resolve => {
      const other = connect(port, '127.0.0.1', () => resolve(other.destroy() && false))
      other.once('error', () => resolve(true))
    })
  while (!(await isRefused()));
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const answer = Buffer.concat(await socket.toArray()).toString()
  t.match(answer, /^HTTP\/1\.1 404 /)
  t.match(answer, /\r\nconnection: close\r\n/i)
  await drained
})

t.test('connections that wait to be accepted as a listener closes are served', async t => {
  const listener = bare()
  await listener.listen()
  const port = Number(listener.address.split(':').at(-1))
  // The system makes all of them within this turn of the event loop, and the gateway accepts none in it.
  const sockets = Array.from({ length: 8 }, () => connect(port, '127.0.0.1'))
  const drained = listener.drain({ delay: 0, drain: 10_000 })
  const answers = await Promise.all(
    sockets.map(async socket => {
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      return Buffer.concat(await socket.toArray()).toString()
    }),
  )
  for (const answer of answers) t.match(answer, /^HTTP\/1\.1 404 /)
  await drained
})

t.test('a connection is kept for the delay of a drain, and its next answer is its last', async t => {
  const listener = bare()
  await listener.listen()
  const port = Number(listener.address.split(':').at(-1))
  const socket = connect(port, '127.0.0.1')
  const asked = async () => {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    const [answer] = (await once(socket, 'data')) as [Buffer]
    return answer.toString().match(/^connection: .*/im)?.[0]
  }
  const drained = listener.drain({ delay: 2000, drain: 10_000 })
  t.equal(await asked(), 'Connection: keep-alive')
  t.equal(await asked(), 'Connection: keep-alive', 'a client opens no other one')
  const isRefused = () =>
    new Promise(resolve => {
      const other = connect(port, '127.0.0.1', () => resolve(other.destroy() && false))
      other.once('error', () => resolve(true))
    })
  while (!(await isRefused())) await pause()
  t.equal(await asked(), 'connection: close')
  await drained
})

t.test('an error of ours in a listener ends its connection, is logged, and reaches no other', async t => {
  const logged: unknown[] = []
  let isBroken = true
  const current = () => {
    if (isBroken) throw new Error('broken')
    return { match: () => undefined, routes: () => [] } as unknown as Snapshot
  }
  const listener = bare(current, (fields, message) => logged.push({ fields, message }))
  await listener.listen()
  const port = Number(listener.address.split(':').at(-1))
  const requests = {
    request: 'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
    'requests together': 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20),
    upgrade: 'GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    expectation: 'GET / HTTP/1.1\r\nHost: x\r\nExpect: a\r\n\r\n',
  }
  for (const [what, text] of Object.entries(requests)) {
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    socket.on('error', () => undefined)
    await once(socket, 'close')
    t.match(logged.splice(0), [{ fields: { err: { message: 'broken' } }, message: 'connection failed' }], what)
  }
  isBroken = false
  const [response] = (await once(get(`http://${listener.address}/`), 'response')) as [IncomingMessage]
  t.equal(response.statusCode, 404)
  response.resume()
  listener.abortDrain()
  await listener.drain({ delay: 60_000, drain: 60_000 })
})

t.test('a connection that asks for another protocol again and again gathers no listeners', async t => {
  const listener = bare()
  await listener.listen()
  const warnings: Error[] = []
  const warned = (warning: Error) => warnings.push(warning)
  process.on('warning', warned)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const headers = { connection: 'Upgrade', upgrade: 'h2c' }
  for (let count = 0; count < 20; count++) {
    const request = get(`http://${listener.address}/`, { agent, headers })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    t.equal(response.statusCode, 404)
    response.resume()
    await once(response, 'end')
  }
  await turn()
  process.off('warning', warned)
  agent.destroy()
  t.strictSame(warnings.map(String), [])
  listener.abortDrain()
  await listener.drain({ delay: 60_000, drain: 60_000 })
})

t.test('streams say heartbeats after so much silence, and none where it is 0s', async t => {
  const rows: [timeouts: { heartbeat: number; hold: number; request: number }, tickMs: number, ticks: number][] = [
    [{ heartbeat: 15_000, hold: 10_000, request: 120_000 }, 1000, 15],
    [{ heartbeat: 1000, hold: 10_000, request: 120_000 }, 250, 4],
    [{ heartbeat: 0, hold: 10_000, request: 120_000 }, 1000, Number.POSITIVE_INFINITY],
    [{ heartbeat: 0, hold: 400, request: 120_000 }, 100, Number.POSITIVE_INFINITY],
    [{ heartbeat: 1, hold: 0, request: 120_000 }, 10, 1],
  ]
  for (const [timeouts, tickMs, ticks] of rows) {
    const timers = t.capture(globalThis, 'setInterval', () => ({ unref() {} }) as NodeJS.Timeout)
    const flights = new InFlightRequests({ ...timeouts, minRate: 4096 }, () => undefined)
    const [{ args }] = timers() as unknown as [{ args: [() => void, number] }]
    timers.restore()
    const said: unknown[] = []
    const sink = { begun: true, check: () => undefined, tick: (...given: unknown[]) => said.push(given) }
    const endpoint = { codec: { heartbeat: { text: ': hi\n\n' } } }
    flights.enter(
      { endpoint, streaming: true, caller: {}, answer: {} } as never,
      {} as never,
      sink as never,
      {} as never,
    )
    args[0]()
    t.strictSame([args[1], said], [tickMs, [[': hi\n\n', ticks]]], JSON.stringify(timeouts))
    flights.close()
  }
})

t.test('origins that are listed may read answers, others may not, and none may where the list is empty', async t => {
  const request = (origin?: string, more: object = {}) =>
    ({ method: 'GET', headers: { ...(origin && { origin }), ...more } }) as unknown as IncomingMessage
  const asks = (origin: string) =>
    Object.assign(request(origin, { 'access-control-request-method': 'POST' }), { method: 'OPTIONS' })
  const [one, other] = ['https://one.example', 'https://other.example']
  const listed = new Cors(['HTTPS://One.example', 'null'])
  t.strictSame(listed.headers('/v1/models', request(one)).slice(0, 4), [
    'access-control-allow-origin',
    one,
    'vary',
    'origin',
  ])
  t.strictSame(listed.headers('/v1/models', request('null')).slice(0, 2), ['access-control-allow-origin', 'null'])
  for (const none of [undefined, other, `${one}:444`, `${one}.evil.example`, '*', '__proto__']) {
    t.strictSame(listed.headers('/v1/models', request(none)), ['vary', 'origin'], String(none))
  }
  t.strictSame(listed.headers('/', request(one)), [])
  t.strictSame(listed.unread, [])
  t.ok(listed.isPreflight('/v1/models', asks(other)))
  t.match(listed.preflight(asks(one), ['GET', 'HEAD']).join(), `access-control-allow-origin,${one},vary,origin,vary`)
  t.strictSame(listed.preflight(asks(other), ['GET']), ['vary', 'origin', 'vary', 'access-control-request-headers'])

  const off = new Cors([])
  t.strictSame([off.headers('/v1/models', request(one)), off.unread], [[], []])
  t.notOk(off.isPreflight('/v1/models', asks(one)))
  const all = new Cors([one, '*'])
  t.strictSame(all.headers('/v1/models', request(other)).slice(0, 3), [
    'access-control-allow-origin',
    '*',
    'access-control-expose-headers',
  ])
  t.strictSame(all.headers('/v1/models', request()), ['access-control-allow-origin', '*'])
})

t.test('a process takes as many connections as it has descriptors for, and for their calls', async t => {
  for (const [files, most] of [
    [150, 43],
    [1024, 480],
    [12_500, 10_436],
    [10, 1],
    [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  ] as const) {
    t.equal(connectionsWithin(files), most, `${files} files`)
  }
  t.ok(openFiles() > 100)
})

t.test('requests of a connection that come together are served in order, eight at a time', async t => {
  const socket = { remoteAddress: '192.0.2.1', destroyed: false } as Socket
  const connection = new Connection(socket, thrown => t.fail(String(thrown)))
  const served: number[] = []
  const answers: EventEmitter[] = []
  const take = (name: number, last = false) => {
    const res = new EventEmitter()
    connection.take(res as ServerResponse, () => {
      served.push(name)
      if (last) stopListening(socket)
      answers.push(res)
    })
  }
  const answer = () => {
    for (const res of answers.splice(0)) res.emit('close')
  }
  for (let name = 0; name < 20; name++) take(name, name === 17)
  t.equal(connection.unanswered, 20)
  t.strictSame(served, [0, 1, 2, 3, 4, 5, 6, 7], 'eight before any is answered')
  for (let turns = 0; answers.length > 0; turns++) {
    t.ok(turns < 20)
    answer()
    await turn()
  }
  t.strictSame(served, [...Array(18).keys()], 'none behind an answer that ends the connection')
})

t.test('a connection that goes idle during a drain is kept for the delay, and one that was idle is not', async t => {
  const made = () => {
    const socket = Object.assign(new Socket(), { closedAt: 0 })
    socket.destroySoon = () => {
      socket.closedAt ||= performance.now()
      open.delete(socket)
    }
    return socket
  }
  const open = new Set<ReturnType<typeof made>>()
  const [early, late] = [made(), made()]
  open.add(early)
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  let finish = () => {}
  const finished = new Promise<void>(resolve => (finish = resolve))
  const aborted = new Promise<void>(() => {})
  const nothing = () => {}
  const ends = { endConnections: nothing, abortAll: finish, destroyAll: nothing }
  const listener = { server, idleSockets: () => open, finished: () => finished, ...ends }
  const delay = 400
  const drained = drain(listener, { delay, drain: 60_000 }, aborted)
  while (early.closedAt === 0) await turn()
  const idleAt = performance.now()
  open.add(late)
  while (late.closedAt === 0) await turn()
  t.ok(late.closedAt - idleAt >= delay, 'its client had the delay to use it again')
  finish()
  await drained
})
