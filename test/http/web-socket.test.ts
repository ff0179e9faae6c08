/** What one end of a WebSocket takes of bytes that come at once. */
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { MessageListener, MessageSocket } from '../../src/core/message-socket.ts'
import { acceptMessages } from '../../src/http/web-socket.ts'

/** A frame of a client, whose mask changes nothing. */
const frame = (head: number, payload = '') =>
  Buffer.concat([Buffer.from([head, 0x80 | payload.length, 0, 0, 0, 0]), Buffer.from(payload)])
/** The same with a longer payload. */
function longFrame(payload: Buffer): Buffer {
  const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
  head.writeUInt32BE(payload.length, 6)
  return Buffer.concat([head, payload])
}
const times = (count: number, ...frames: Buffer[]) => Buffer.alloc(count * size(frames), Buffer.concat(frames))
const size = (frames: readonly Buffer[]) => frames.reduce((sum, { length }) => sum + length, 0)
const ping = frame(0x89)
const pong = frame(0x8a)
const text = frame(0x81, '1')
const fragments = [frame(0x01), ...Array.from({ length: 500 }, () => frame(0x00)), frame(0x80, '1')]

const nothing = {
  message: () => {},
  pinged: () => {},
  pong: () => {},
  read: () => {},
  drained: () => {},
  closed: () => {},
}

/** A server's end whose client has sent `bytes` in one write. */
async function flooded(t: Test, bytes: Buffer): Promise<MessageSocket> {
  const { socket, client } = await connected(t)
  client.write(bytes)
  return socket
}

/** A server's end, and the connection of its client. */
async function connected(t: Test): Promise<{ socket: MessageSocket; client: Socket }> {
  const server = createServer()
  t.teardown(() => server.close())
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const accepted = new Promise<MessageSocket>(resolve => {
    server.once('upgrade', (req: IncomingMessage, socket: Socket, head: Buffer) =>
      resolve(acceptMessages(req, socket, head, { limit: 1_000_000, protocol: 'a', headers: [] })),
    )
  })
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.on('error', () => undefined)
  client.resume()
  t.teardown(() => client.destroy())
  client.write(
    'GET / HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n' +
      'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  return { socket: await accepted, client }
}

t.test('of frames that come at once, one message, ping or pong is taken in one turn of the loop', async t => {
  const rows: [says: string, bytes: Buffer, count: number][] = [
    ['pings', times(50, ping), 50],
    ['pongs', times(5000, pong), 5000],
    ['messages', times(5000, text), 5000],
    ['empty messages', times(5000, frame(0x81)), 5000],
    ['messages of empty fragments', times(20, ...fragments), 20],
  ]
  for (const [says, bytes, count] of rows) {
    const socket = await flooded(t, bytes)
    let turn = 0
    let ticking = setImmediate(function tick() {
      turn++
      ticking = setImmediate(tick)
    })
    const turns: number[] = []
    await new Promise<void>(resolve => {
      const take = () => {
        turns.push(turn)
        if (turns.length === count) resolve()
      }
      socket.open({ ...nothing, message: take, pinged: take, pong: take })
    })
    clearImmediate(ticking)
    socket.destroy()
    t.equal(new Set(turns).size, count, says)
  }
})

t.test('a socket that is destroyed is closed before all that was read is gone through', async t => {
  const socket = await flooded(t, times(10_000, pong))
  let pongs = 0
  const code = await new Promise<number>(closed => {
    const listener: MessageListener = {
      ...nothing,
      closed,
      pong() {
        if (++pongs === 10) socket.destroy()
      },
    }
    socket.open(listener)
  })
  t.strictSame([code, pongs], [1006, 10])
})

t.test('a large message comes, and the end behind it, however its reader pauses', async t => {
  const { socket, client } = await connected(t)
  const payload = Buffer.alloc(900_000, 'a')
  const log: string[] = []
  const code = new Promise<number>(closed => {
    socket.open({
      ...nothing,
      closed,
      message: message => log.push(`${message?.length}`),
      read() {
        socket.pause()
        setImmediate(() => socket.resume())
      },
    })
  })
  const close = Buffer.concat([Buffer.from([0x88, 0x82, 0, 0, 0, 0]), Buffer.from([1000 >> 8, 1000 & 255])])
  client.write(Buffer.concat([longFrame(payload), text, longFrame(payload), close]))
  t.equal(await code, 1000)
  t.strictSame(log, ['900000', '1', '900000'])
})
