/** What a TLS client reads: records, one after another, each in a turn of the loop that has room. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { TlsRecords } from '../../src/upstream/tls-records.ts'
import { inLoop } from '../helpers/in-loop.ts'
import { runs } from '../helpers/runs.ts'

const HANDSHAKE = 22
const DATA = 23
/** More than one turn has room for. */
const FULL_MS = 25

/** A record of TLS (RFC 8446 section 5.1). */
function recordOf(type: number, length: number): Buffer {
  const record = Buffer.alloc(5 + length, length % 251)
  record.writeUInt8(type, 0)
  record.writeUInt16BE(0x0303, 1)
  record.writeUInt16BE(length, 3)
  return record
}

const many = (count: number, type = DATA, length = 22) =>
  Buffer.concat(Array.from({ length: count }, () => recordOf(type, length)))

const server = createServer({ allowHalfOpen: true })
server.listen(0, '127.0.0.1')
await once(server, 'listening')
t.teardown(() => server.close())

/** A connection, and the server's end of it. */
async function connected(t: Test) {
  const connection = once(server, 'connection')
  const { port } = server.address() as AddressInfo
  const records = new TlsRecords({ host: '127.0.0.1', port }, 'org')
  const [there] = (await connection) as [Socket]
  there.on('error', () => undefined)
  t.teardown(() => {
    records.destroy()
    there.destroy()
  })
  return { records, there }
}

/** What the client gets, until the server has ended. */
async function read(records: TlsRecords): Promise<Buffer[]> {
  const pieces: Buffer[] = []
  records.on('data', (piece: Buffer) => pieces.push(piece))
  await once(records, 'end')
  return pieces
}

t.test('records come whole, one by one and in order, however they are cut', async t => {
  const length = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 16_640 }))
  await fc.assert(
    fc.asyncProperty(
      fc.array(length, { maxLength: 30 }),
      fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 0, max: 4 }),
      async (lengths, cuts, rest) => {
        const { records, there } = await connected(t)
        const sent = lengths.map(length => recordOf(DATA, length))
        // A record that the end of the connection cuts off.
        if (rest > 0) sent.push(recordOf(DATA, 9).subarray(0, rest))
        const got = read(records)
        const all = Buffer.concat(sent)
        for (let from = 0, nth = 0; from < all.length; nth++) {
          const cut = cuts[nth % cuts.length]!
          there.write(all.subarray(from, from + cut))
          from += cut
          if (nth % 3 === 0) await setImmediate()
        }
        there.end()
        const pieces = await got
        return pieces.length === sent.length && pieces.every((piece, at) => piece.equals(sent[at]!))
      },
    ),
    { numRuns: runs(30) },
  )
})

t.test('what is no TLS, and what breaks off, is for the client to judge', async t => {
  const { records, there } = await connected(t)
  there.end('HTTP/1.1 400 Bad Request\r\n\r\n')
  t.equal(String(Buffer.concat(await read(records))), 'HTTP/1.1 400 Bad Request\r\n\r\n')
  const broken = await connected(t)
  const failed = once(broken.records, 'error')
  broken.there.resetAndDestroy()
  t.match(await failed, [{ code: 'ECONNRESET' }])
})

t.test('a server that sends records without data is cut off', async t => {
  const rows: [
    says: string,
    count: number,
    handshakeEnded: boolean,
    bytesOf: (count: number) => number,
    ends: boolean,
  ][] = [
    ['tickets', 10, true, () => 0, false],
    ['updates of keys without end', 40, true, () => 0, true],
    ['data', 4000, true, count => count, false],
    ['now and then between much data', 200, true, count => Math.floor(count / 2) * 4 * 1024 * 1024, false],
    ['often between little data', 200, true, count => Math.floor(count / 2) * 100, true],
    ['a long chain', 200, false, () => 0, false],
    ['a handshake without end', 400, false, () => 0, true],
  ]
  for (const [says, count, handshakeEnded, bytesOf, ends] of rows) {
    const { records, there } = await connected(t)
    let given = 0
    records.progress = {
      handshakeEnded,
      get bytes() {
        return bytesOf(given)
      },
    }
    records.on('data', () => given++)
    const outcome = Promise.race([once(records, 'end').then(() => 'read'), once(records, 'error')])
    there.end(many(count, handshakeEnded ? DATA : HANDSHAKE))
    const ended = await outcome.catch((error: Error) => [error])
    if (ends) t.match(ended, [{ message: /too many TLS records without data/ }], says)
    else t.strictSame([ended, given], ['read', count], says)
  }
})

t.test('nothing is given to a client that does not read, nor between stop and go', async t => {
  const { records, there } = await connected(t)
  const pieces: Buffer[] = []
  records.on('data', (piece: Buffer) => {
    pieces.push(piece)
    if (pieces.length === 2) records.pause()
    if (pieces.length === 5) records.stop()
  })
  there.end(many(10))
  const settled = async () => {
    for (let turns = 0; turns < 20; turns++) await setImmediate()
    return pieces.length
  }
  while (pieces.length < 2) await setImmediate()
  t.equal(await settled(), 2)
  records.resume()
  while (pieces.length < 5) await setImmediate()
  t.equal(await settled(), 5)
  t.equal(records.received, 5 * 27)
  const ended = once(records, 'end')
  records.go()
  await ended
  t.equal(pieces.length, 10)
})

t.test('of records that take long one turn has one that waited and a new one, of all connections', async t => {
  const seen: number[] = []
  await inLoop(async turn => {
    const all = [await connected(t), await connected(t), await connected(t)]
    const ended = all.map(({ records }) => once(records, 'end'))
    for (const { records, there } of all) {
      there.end(many(3))
      records.on('data', () => {
        seen.push(turn())
        for (const from = performance.now(); performance.now() - from < FULL_MS; );
      })
    }
    await Promise.all(ended)
  })
  const inTurn = (at: number) => seen.filter(other => other === at).length
  t.ok(seen.length === 9 && seen.every(at => inTurn(at) <= 2), `${seen}`)
})

t.test('the connection below is kept alive: what is set for the TLS client above does not reach it', async t => {
  const { port } = server.address() as AddressInfo
  const connection = once(server, 'connection')
  const records = new TlsRecords({ host: '127.0.0.1', port }, 'org')
  const { _handle: handle } = records.below as unknown as { _handle: Record<string, unknown> }
  const set: unknown[][] = []
  handle.setKeepAlive = (...given: unknown[]) => set.push(given)
  await Promise.all([once(records.below, 'connect'), connection])
  t.strictSame(set, [[true, 60]], 'in seconds')
  records.destroy()
})

t.test('a connection that has nothing to read keeps no place to read to', async t => {
  const before = process.memoryUsage().arrayBuffers
  for (let count = 0; count < 50; count++) await connected(t)
  const each = (process.memoryUsage().arrayBuffers - before) / 50 / 1024
  t.ok(each < 16, `${Math.round(each)} KiB for each`)
})
