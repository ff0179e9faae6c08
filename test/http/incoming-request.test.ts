/** Bodies in many small chunks: as they were sent, and not parsed after a last answer. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { endLast } from '../../src/http/closing.ts'
import { Connections } from '../../src/http/connections.ts'
import { IncomingRequest } from '../../src/http/incoming-request.ts'
import { raw } from '../helpers/raw.ts'
import { runs } from '../helpers/runs.ts'

const KIB = 1024
/** Chunks of one byte in 64 KiB of the wire, which are one read of a socket. */
const READ = Math.ceil((64 * KIB) / 6)
const head = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
const ones = (count: number) => '1\r\na\r\n'.repeat(count)
const END = '0\r\n\r\n'

type Serve = (req: IncomingRequest, res: ServerResponse) => void

/** A listener's reading without its endpoints; `first` is its first request. */
async function listening(t: Test, serve: Serve): Promise<{ port: number; first: Promise<IncomingRequest> }> {
  const server = createServer({ IncomingMessage: IncomingRequest, highWaterMark: 16 * KIB }, serve)
  const connections = new Connections(
    1000,
    () => undefined,
    thrown => t.fail(String(thrown)),
  )
  server.on('connection', socket => connections.accept(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const first = once(server, 'request').then(([req]) => req as IncomingRequest)
  return { port: (server.address() as AddressInfo).port, first }
}

t.test('a body arrives as it was sent, in whatever chunks, and whenever it is read', async t => {
  let received: (body: Buffer) => void = () => undefined
  let delay = 0
  const { port } = await listening(t, async (req, res) => {
    for (let turns = 0; turns < delay; turns++) await turn()
    const pieces: Buffer[] = []
    for await (const piece of req) pieces.push(piece as Buffer)
    received(Buffer.concat(pieces))
    res.end()
  })
  const size = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 10_000 }))
  const sizes = fc.array(fc.tuple(size, fc.integer({ min: 1, max: 400 })), { maxLength: 30 })
  await fc.assert(
    fc.asyncProperty(sizes, fc.integer({ min: 0, max: 20 }), async (rows, turns) => {
      const lengths = rows.flatMap(([bytes, times]) => Array<number>(bytes > 100 ? 1 : times).fill(bytes))
      const chunks = lengths.map((bytes, at) => Buffer.alloc(bytes, at))
      delay = turns
      const body = new Promise<Buffer>(resolve => {
        received = resolve
      })
      const framed = chunks.flatMap(chunk => [
        Buffer.from(`${chunk.length.toString(16)}\r\n`),
        chunk,
        Buffer.from('\r\n'),
      ])
      const { status } = await raw(port, Buffer.concat([Buffer.from(head), ...framed, Buffer.from(END)]), {
        responses: 1,
      })
      return status === 200 && (await body).equals(Buffer.concat(chunks))
    }),
    { numRuns: runs(300) },
  )
})

t.test('after the last answer of a connection few chunks are parsed, and the client gets the answer', async t => {
  const { port, first } = await listening(t, (req, res) => {
    res.writeHead(401, { 'content-length': 2, connection: 'close' })
    endLast(req, res, 'no')
  })
  const { status, body, closed } = await raw(port, head + ones(10 * READ))
  t.strictSame([status, body, closed], [401, 'no', 'fin'])
  const req = await first
  await once(req.socket, 'close')
  t.ok(req.chunks < 3 * READ, `${req.chunks} chunks`)
})

t.test('a large upload behind the last answer is read to its end', async t => {
  const { port, first } = await listening(t, (req, res) => {
    res.writeHead(401, { 'content-length': 2, connection: 'close' })
    endLast(req, res, 'no')
  })
  const chunk = `64\r\n${'a'.repeat(100)}\r\n`
  const { status, closed } = await raw(port, head + chunk.repeat(5000) + END)
  t.strictSame([status, closed], [401, 'fin'])
  t.ok((await first).complete)
})
