/** Sockets that rest: what comes meanwhile stays with the system, and is read at once. Which of them rest, and when. */
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createSecure } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Pool } from 'undici'
import {
  type Sending,
  SocketClient,
  type SocketClientOptions,
  socketConnector,
  type UpstreamSocket,
} from '../../src/egress/socket.ts'
import { ReadCoalescer, Trickle } from '../../src/upstream/read-coalescer.ts'

/** A TLS without certificates. */
const cipher = 'PSK-AES128-GCM-SHA256'
const psk = { identity: 'test', psk: Buffer.alloc(16, 7) }
const secure = { ciphers: cipher, maxVersion: 'TLSv1.2', pskCallback: () => psk } as const

const servers = {
  http: (serve: RequestListener) => createServer(serve),
  https: (serve: RequestListener) => createSecure({ ...secure, pskCallback: () => psk.psk }, serve),
}

/** A provider's answer, as its provider writes it and as its caller gets it. */
async function answerOver(t: Test, scheme: keyof typeof servers) {
  const begun = new Promise<ServerResponse>(resolve => {
    const server = servers[scheme]((_req, res) => resolve(res.writeHead(200)))
    server.listen(0, '127.0.0.1')
    const connect = socketConnector({ timeout: 1000, ...secure, checkServerIdentity: () => undefined } as object)
    t.teardown(() => void server.close())
    void once(server, 'listening').then(() => {
      const { port } = server.address() as AddressInfo
      const pool = new Pool(`${scheme}://127.0.0.1:${port}`, {
        connect,
        factory: (origin, options) => new SocketClient(origin, options as SocketClientOptions),
      })
      t.teardown(() => pool.destroy())
      const sending: Sending = { path: '/', method: 'GET', caller }
      pool.dispatch(sending, {
        onRequestStart() {},
        onResponseStart() {},
        onResponseData: (_controller, piece) => {
          pieces.push(String(piece))
          heard()
        },
        onResponseEnd: () => end(),
        onResponseError: (_controller, error) => t.fail(error),
      })
    })
  })
  const caller: { line: UpstreamSocket | undefined } = { line: undefined }
  const pieces: string[] = []
  let heard = () => {}
  let end = () => {}
  const ended = new Promise<void>(resolve => {
    end = resolve
  })
  const next = () =>
    new Promise<void>(resolve => {
      heard = resolve
    })
  const res = await begun
  /** Resolves when it has been there to read for a few turns of the event loop. */
  const write = async (text: string) => {
    await new Promise<void>(resolve => void res.write(text, () => resolve()))
    for (let turn = 0; turn < 3; turn++) await setImmediate()
  }
  return { pieces, next, ended, write, end: () => res.end(), socket: () => caller.line!.socket! }
}

for (const scheme of ['http', 'https'] as const) {
  t.test(`a socket that rests reads nothing, and all of it afterwards, over ${scheme}`, async t => {
    const { pieces, next, ended, write, end, socket } = await answerOver(t, scheme)
    const first = next()
    await write('one ')
    await first
    socket().pause()
    const before = socket().bytesRead
    for (const text of ['two ', 'three ', 'four ']) await write(text)
    t.equal(socket().bytesRead, before)
    t.strictSame(pieces, ['one '])
    const large = 'x'.repeat(300_000)
    socket().resume()
    await write(large)
    end()
    await ended
    t.equal(pieces.join(''), `one two three four ${large}`)
  })
}

/** A socket as `Gathering` knows it. */
function sleeper() {
  let wake = () => {}
  const socket = {
    resting: false,
    pause: () => {
      socket.resting = true
    },
    resume: () => {
      socket.resting = false
      wake()
    },
    woken: () =>
      new Promise<void>(resolve => {
        wake = resolve
      }),
  }
  return socket as unknown as Socket & typeof socket
}
const small = { pieces: 1, bytes: 200 }
/** Deliveries that make a process a busy one, at time `now`. */
function busy(gathering: ReadCoalescer, now: number) {
  const others = sleeper()
  for (let n = 0; n < 8; n++) gathering.delivered(others, new Trickle(now), small, now)
  return others.resting
}

t.test('sockets rest when there is much to do, and go on together', async t => {
  const gathering = new ReadCoalescer(10)
  t.equal(busy(gathering, 1000), false, 'a few deliveries keep nothing waiting')
  const [one, two] = [sleeper(), sleeper()]
  const woken = [one.woken(), two.woken()]
  const trickle = new Trickle(1002)
  gathering.delivered(one, trickle, small, 1003)
  gathering.delivered(two, new Trickle(970), { pieces: 3, bytes: 600 }, 1004)
  t.equal(one.resting, true, 'more than a few')
  t.equal(two.resting, true, 'also after a silence, when several pieces came')
  await Promise.all(woken)
  t.equal(one.resting || two.resting, false)
  gathering.delivered(one, trickle, small, 1011)
  t.equal(one.resting, false, 'a tick later a few deliveries are free again')
})

t.test('a socket does not rest when nothing is to be gained by it', t => {
  for (const [what, ms, taken, silence] of [
    ['a piece that comes after a silence', 10, small, 10],
    ['a large piece', 10, { pieces: 1, bytes: 11_000 }, 1],
    ['nothing is to be gathered', 0, small, 0],
    ['nor where several pieces came', 0, { pieces: 2, bytes: 400 }, 0],
  ] as const) {
    const gathering = new ReadCoalescer(ms)
    busy(gathering, 1000)
    const socket = sleeper()
    gathering.delivered(socket, new Trickle(1000 - silence), taken, 1000)
    t.equal(socket.resting, false, what)
  }
  t.end()
})

t.test('a stream that brings much does not rest, not for its small pieces either', t => {
  const gathering = new ReadCoalescer(10)
  const socket = sleeper()
  const trickle = new Trickle(1002)
  const rests: number[] = []
  for (let now = 1002; now < 1100; now++) {
    busy(gathering, now)
    const bytes = now >= 1060 ? 200 : now % 3 === 0 ? 60_000 : 3_000
    gathering.delivered(socket, trickle, { pieces: 2, bytes }, now)
    if (socket.resting) rests.push(now)
    gathering.wake(socket)
  }
  const little = Array.from({ length: 28 }, (_, at) => 1072 + at)
  t.strictSame(rests, little, 'until it has brought little for all of a tick')
  t.end()
})

t.test('a socket whose reader has left reads on at once', t => {
  const gathering = new ReadCoalescer(100)
  busy(gathering, 1000)
  const socket = sleeper()
  gathering.delivered(socket, new Trickle(1000), small, 1000)
  t.equal(socket.resting, true)
  gathering.wake(socket)
  t.equal(socket.resting, false)
  t.end()
})
