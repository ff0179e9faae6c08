/** Answers that are not read while their provider ends, or breaks, the socket: they come whole, or fail; nothing else ends. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { Client } from 'undici'
import { boundedConnector } from '../../src/egress/connector.ts'
import { endsWhilePaused, plainConnector } from '../../src/egress/paused-answers.ts'
import { socketConnector } from '../../src/egress/socket.ts'

/** As much as undici holds of an answer before it pauses. */
const BODY = Buffer.alloc(64 * 1024, 'a')
const head = (...lines: string[]) => ['HTTP/1.1 200 OK', ...lines, '', ''].join('\r\n')
const close = 'Connection: close'

/** Requests an answer whose socket `end` ends, and reads it once the socket is closed. */
async function readLate(
  scope: { teardown(end: () => unknown): void },
  start: string,
  end: (socket: Socket) => unknown,
) {
  const server = createServer(socket => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.write(start + BODY.toString('latin1'), 'latin1', () => end(socket)))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  scope.teardown(() => server.close())
  let closed: Promise<void> | undefined
  const connect = endsWhilePaused(boundedConnector({}))
  const client = new Client(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    connect: (options, callback) =>
      connect(options, (...result) => {
        closed = new Promise(resolve => result[1]!.once('close', () => resolve()))
        callback(...result)
      }),
  })
  scope.teardown(() => client.destroy())
  const { body } = await client.request({ method: 'GET', path: '/' })
  body.on('error', () => undefined)
  await closed
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

t.test('an answer whose socket ends while it is paused comes whole', async t => {
  for (const [says, start] of [
    ['with its length', head(close, `Content-Length: ${BODY.length}`)],
    ['up to the end of the socket', head(close)],
  ] as const) {
    t.equal((await readLate(t, start, socket => socket.end())).length, BODY.length, says)
  }
})

t.test('one that is cut while it is paused fails', async t => {
  const short = head(close, `Content-Length: ${BODY.length + 1}`)
  for (const [says, end] of [
    ['an end', (socket: Socket) => socket.end()],
    ['a reset', (socket: Socket) => socket.resetAndDestroy()],
  ] as const) {
    await t.rejects(readLate(t, short, end), says)
  }
})

t.test('while an answer is paused again and again its socket is not read ahead', async t => {
  const BYTES = 4 * 1024 * 1024
  const chunk = `40\r\n${'a'.repeat(64)}\r\n`
  const answer = `${head('Transfer-Encoding: chunked')}${chunk.repeat(BYTES / 64)}0\r\n\r\n`
  const server = createServer(socket => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.write(answer))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  for (const [says, connector] of [
    ['as of providers', socketConnector()],
    ['as of addresses', plainConnector({})],
  ] as const) {
    let socket: Socket | undefined
    const client = new Client(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
      connect: (options, callback) =>
        connector(options, (...result) => {
          socket = result[1] ?? undefined
          callback(...result)
        }),
    })
    const { body } = await client.request({ method: 'GET', path: '/', highWaterMark: 4096 })
    let bytes = 0
    let most = 0
    for await (const piece of body) {
      bytes += (piece as Buffer).length
      most = Math.max(most, socket!.readableLength)
      await turn()
    }
    t.equal(bytes, BYTES, says)
    t.ok(most <= 256 * 1024, `${says}: ${most} bytes`)
    await client.destroy()
  }
})
