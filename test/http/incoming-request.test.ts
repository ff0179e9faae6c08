/** Bodies in many small chunks: put together as they arrive, in turns with others, and not parsed after a last answer. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { ChunkTurns } from '../../src/http/chunk-turns.ts'
import { endLast } from '../../src/http/closing.ts'
import { Connections } from '../../src/http/connections.ts'
import { IncomingRequest } from '../../src/http/incoming-request.ts'
import { inLoop } from '../helpers/in-loop.ts'
import { raw } from '../helpers/raw.ts'
import { runs } from '../helpers/runs.ts'

const KIB = 1024
/** Chunks of one byte in 64 KiB of the wire, which are one read of a socket. */
const READ = Math.ceil((64 * KIB) / 6)
/** Chunks that a turn takes before others wait. */
const FULL = 4096
const head = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
const ones = (count: number) => '1\r\na\r\n'.repeat(count)
const END = '0\r\n\r\n'

type Serve = (req: IncomingRequest, res: ServerResponse) => void

/** A listener's reading without its endpoints; `first` is its first request. */
async function listening(t: Test, serve: Serve): Promise<{ port: number; first: Promise<IncomingRequest> }> {
  const server = createServer({ IncomingMessage: IncomingRequest, highWaterMark: 16 * KIB }, serve)
  const connections = new Connections(1000, () => undefined)
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

t.test('what is not read yet is kept in few pieces', async t => {
  const { port, first } = await listening(t, () => undefined)
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.write(head)
  const req = await first
  const count = 12_000
  for (let sent = 0; sent < count; sent += 20) {
    socket.write(ones(20))
    while (req.chunks < sent + 20) await turn()
  }
  let pieces = 0
  req.on('data', () => pieces++)
  socket.write(END)
  await once(req, 'end')
  t.equal(req.bytes, count)
  t.ok(pieces < 50, `${pieces} pieces`)
})

t.test('a turn of the loop parses the chunks of one or two reads, however many connections have some', async t => {
  const CONNECTIONS = 20
  const COUNT = 2 * READ
  await inLoop(async turnNow => {
    const parsed = new Map<number, number>()
    let begun = 0
    const { port } = await listening(t, (req, res) => {
      begun++
      let before = 0
      const push = req.push.bind(req)
      req.push = (...given) => {
        const more = push(...given)
        parsed.set(turnNow(), (parsed.get(turnNow()) ?? 0) + req.chunks - before)
        before = req.chunks
        return more
      }
      req.on('end', () => res.end()).resume()
    })
    const sockets = Array.from({ length: CONNECTIONS }, () => connect(port, '127.0.0.1'))
    const answers = sockets.map(socket => once(socket, 'data'))
    for (const socket of sockets) socket.write(head)
    while (begun < CONNECTIONS) await turn()
    for (const socket of sockets) socket.write(ones(COUNT) + END)
    for (const [answer] of await Promise.all(answers)) t.match(String(answer), /^HTTP\/1\.1 200 /)
    for (const socket of sockets) socket.destroy()
    const most = Math.max(...parsed.values())
    t.equal(
      [...parsed.values()].reduce((sum, count) => sum + count),
      CONNECTIONS * COUNT,
    )
    t.ok(most <= FULL + 4 * CONNECTIONS + 2 * READ, `${most} chunks in one turn`)
  })
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

t.test('where a turn is full, others wait until it ends, and bodies behind them in their order', async t => {
  const said: string[] = []
  const socket = (name: string, isPaused = false) => ({
    destroyed: false,
    isPaused: () => isPaused,
    pause: () => said.push(`${name} pauses`),
    resume: () => said.push(`${name} resumes`),
  })
  const turns = new ChunkTurns()
  const [sender, other, paused, gone, left] = [
    socket('sender'),
    socket('other'),
    socket('paused', true),
    socket('gone'),
    socket('left'),
  ]
  const body = (name: string, chunks: number) => ({
    socket: socket(name) as never,
    resume: () => {
      said.push(`${name} goes on`)
      return chunks
    },
  })
  for (const each of [sender, other, paused, gone, left]) turns.open(each as never)
  turns.close(left as never)
  for (let count = 0; count < FULL; count++) turns.take(sender as never)
  t.strictSame(said, [])
  t.notOk(turns.take(sender as never))
  for (let count = 0; count < 100; count++) turns.take(sender as never)
  t.strictSame(said.splice(0), ['other pauses', 'gone pauses'])
  gone.destroyed = true
  const whole = body('whole', 1)
  for (const each of [body('large', FULL), whole, body('half', FULL / 2), body('last', FULL)]) turns.wait(each)
  turns.leave(whole)
  await turn()
  t.strictSame(said.splice(0), ['other resumes'])
  t.ok(turns.take(sender as never), 'a new turn')
  await turn()
  t.strictSame(said.splice(0), ['large goes on'])
  await turn()
  t.strictSame(said.splice(0), ['half goes on', 'last goes on'])
  await turn()
  t.strictSame(said.splice(0), [])
  turns.close(gone as never)
  turns.wait(body('kept', FULL))
  const full = async () => {
    for (let count = 0; count < FULL + 100; count++) turns.take(sender as never)
    await turn()
  }
  await full()
  t.strictSame(said.splice(0), ['other pauses', 'other resumes'])
  await full()
  t.strictSame(said, ['other pauses', 'other resumes', 'kept goes on'], 'in the second full turn at the latest')
})

/** A socket whose chunks of a body never end, or that brings none. */
class EndlessSocket {
  readonly destroyed = false
  /** Polls in which it was read. */
  polls = 0
  readonly #turns: ChunkTurns
  readonly #chunks: number
  readonly #reads: number
  readonly #body = { socket: this as never, resume: () => this.#goOn() }
  #isPaused = false
  #waits = false
  #came = 0

  /** `chunks`: of one read; `reads`: of one poll. */
  constructor(turns: ChunkTurns, chunks: number, reads = 1) {
    this.#turns = turns
    this.#chunks = chunks
    this.#reads = reads
    turns.open(this as never)
  }

  isPaused = () => this.#isPaused

  pause(): void {
    this.#isPaused = true
  }

  /** Of the connection. */
  resume(): void {
    this.#isPaused = false
  }

  /** Where the socket is not paused: read again and again until it is. */
  poll(): void {
    if (this.#isPaused || this.#waits) return
    this.polls++
    for (let read = 0; read < this.#reads && !this.#waits; read++) {
      for (let count = 0; count < this.#chunks; count++) {
        this.#came++
        if (this.#turns.take(this as never) || this.#waits) continue
        this.#waits = true
        this.#turns.wait(this.#body)
      }
    }
  }

  #goOn(): number {
    const came = this.#came
    this.#came = 0
    this.#waits = false
    return came
  }
}

t.test('sockets that every poll reads first keep neither others nor their own bodies', async t => {
  const POLLS = 200
  const reads = [
    [READ, 1],
    [FULL / 2 + 1, 1],
    [1424, 1],
    [1424, 32],
    [300, 32],
  ] as const
  const rows = [1, 4, 8].flatMap(senders => reads.map(([chunks, reads]) => ({ senders, chunks, reads })))
  for (const { senders, chunks, reads } of rows) {
    const turns = new ChunkTurns()
    const bodies = Array.from({ length: senders }, () => new EndlessSocket(turns, chunks, reads))
    const other = new EndlessSocket(turns, 0)
    for (let poll = 0; poll < POLLS; poll++) {
      for (const each of [...bodies, other]) each.poll()
      await turn()
    }
    const said = `${senders} bodies, ${reads} times ${chunks} chunks`
    t.ok(other.polls >= POLLS / 2 - 2 * senders, `${said}: another is read in ${other.polls} polls`)
    const least = Math.min(...bodies.map(({ polls }) => polls))
    t.ok(least >= POLLS / (4 * senders) - 2, `${said}: each is read in ${least} polls`)
  }
})
