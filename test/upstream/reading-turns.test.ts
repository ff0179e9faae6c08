/** How much of one answer is read in a turn of the event loop, however fast its provider sends it. */
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { Dispatcher } from 'undici'
import { Cancellation } from '../../src/core/cancel.ts'
import { AbandonedAnswers } from '../../src/upstream/abandoned-answers.ts'
import { InFlightCount } from '../../src/upstream/in-flight-count.ts'
import { ReadCoalescer } from '../../src/upstream/read-coalescer.ts'
import type { UpstreamRequest } from '../../src/upstream/upstream-request.ts'
import { UpstreamResponse } from '../../src/upstream/upstream-response.ts'

/** What one read of a full socket brings, and how often it is read in one turn. */
const READ = 64 * 1024
const READS = 32

/** A socket that is always full, as the system reads one: paused, it keeps what comes next. */
class FullSocket {
  paused = false
  aborted = false
  pauses = 0
  resumes = 0
  readonly response: UpstreamResponse
  readonly #pieces: readonly Buffer[]
  #unread = 0

  constructor(piece: number, overhead = 0) {
    this.#pieces = Array.from({ length: Math.floor(READ / (piece + overhead)) }, () => Buffer.alloc(piece, 'x'))
    const sent: UpstreamRequest = {
      provider: { id: 'p', owner: undefined, concurrency: 9 },
      method: 'POST',
      baseUrl: 'http://p',
      path: '/',
      headers: [],
      body: undefined,
      timeouts: { connect: 1000, idle: 60_000 },
      firstEventMs: 9000,
      remainingMs: 60_000,
      signal: new Cancellation(),
      receipt: { atProvider: false },
      tenant: 'org-1',
    }
    this.response = new UpstreamResponse(
      sent,
      undefined,
      new InFlightCount(),
      new ReadCoalescer(0),
      new AbandonedAnswers(),
    )
    this.response.onRequestStart(this.controller)
    this.response.onResponseStart(this.controller, 200, {})
  }

  readonly controller = {
    pause: () => {
      this.paused = true
      this.pauses++
    },
    resume: () => {
      this.paused = false
      this.resumes++
    },
    abort: () => {
      this.aborted = true
    },
  } satisfies Partial<Dispatcher.DispatchController> as unknown as Dispatcher.DispatchController

  /** One turn of the loop: after each read, what waits for its data goes on. */
  async turn(): Promise<void> {
    for (let read = 0; read < READS && !this.paused && !this.aborted; read++) {
      for (; this.#unread < this.#pieces.length; this.#unread++) {
        this.response.onResponseData(this.controller, this.#pieces[this.#unread]!)
        if (this.paused) {
          this.#unread++
          break
        }
      }
      if (this.#unread === this.#pieces.length) this.#unread = 0
      await new Promise(process.nextTick)
    }
  }
}

for (const [what, piece, overhead] of [
  ['as they come', READ, 0],
  ['in pieces of 2 KiB', 2048, 8],
  ['in pieces of 16 bytes', 16, 6],
] as const) {
  t.test(`a reader that keeps up with a full socket lets others go on: chunks ${what}`, async t => {
    const socket = new FullSocket(piece, overhead)
    const { response } = socket
    let taken = 0
    const reading = (async () => {
      for (let chunks = await response.take(); chunks; chunks = await response.take()) {
        for (const { length } of chunks) taken += length
      }
    })().catch(() => undefined)
    for (let turn = 0; turn < 10; turn++) {
      const before = taken
      await socket.turn()
      await setImmediate()
      await setImmediate()
      t.ok(taken > before, 'it goes on')
      t.ok(taken - before <= 2 * READ, `${taken - before} bytes in one turn`)
    }
    response.destroy()
    await reading
  })
}

t.test('a stream of small pieces is never paused, and waits for no turn before 64 KiB', async t => {
  const socket = new FullSocket(READ)
  const { response } = socket
  for (let at = 0; at < 200; at++) {
    response.onResponseData(socket.controller, Buffer.alloc(250))
    await response.take()
  }
  t.equal(socket.pauses, 0)
  for (let at = 0; at < 800; at++) {
    response.onResponseData(socket.controller, Buffer.alloc(250))
    await response.take()
    if (socket.paused) await setImmediate()
  }
  t.equal(socket.pauses, socket.resumes)
  t.ok(socket.pauses <= 4, `${socket.pauses} of a thousand pieces`)
  response.destroy()
})

t.test(
  'reading does not go on when the answer has ended or broken within its turn, or its reader does not take',
  async t => {
    for (const end of ['onResponseEnd', 'destroy'] as const) {
      const { response, controller, ...socket } = new FullSocket(READ)
      response.onResponseData(controller, Buffer.alloc(READ))
      await response.take()
      response[end]()
      await setImmediate()
      t.equal(socket.resumes, 0, end)
    }
    const socket = new FullSocket(READ)
    socket.response.onResponseData(socket.controller, Buffer.alloc(READ))
    await socket.response.take()
    socket.response.onResponseData(socket.controller, Buffer.alloc(READ))
    await setImmediate()
    t.equal(socket.resumes, 0)
    await socket.response.take()
    await setImmediate()
    t.equal(socket.resumes, 1)
    socket.response.destroy()
  },
)

t.test('a provider that sends on behind the end of its answer is cut off', async t => {
  for (const [piece, least] of [
    [READ, READ],
    [1, 1000],
  ] as const) {
    const socket = new FullSocket(piece, 5)
    Object.assign(socket.response, { line: { socket: { writableLength: 0, destroy() {} } } })
    socket.response.release()
    let sent = 0
    for (; !socket.aborted && sent < 2 ** 20; sent += piece) {
      socket.response.onResponseData(socket.controller, Buffer.alloc(piece))
    }
    t.ok(socket.aborted)
    t.ok(sent >= least && sent <= 6 * READ, `${sent} bytes in pieces of ${piece}`)
  }
})
