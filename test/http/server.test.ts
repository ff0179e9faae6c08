/** How a listener ends, and how many connections it takes. */
import { get } from 'node:http'
import t from 'tap'
import type { Services } from '../../src/core/ports.ts'
import type { Snapshot } from '../../src/core/snapshot.ts'
import { connectionsWithin, openFiles } from '../../src/http/descriptors.ts'
import { Flights } from '../../src/http/flights.ts'
import { Listener } from '../../src/http/server.ts'

t.test('a drain that is hurried before it has begun waits for nothing', { timeout: 20_000 }, async t => {
  const listener = new Listener({
    listen: '127.0.0.1:0',
    pace: { heartbeat: 15_000, hold: 10_000, request: 60_000 },
    headerTimeout: 15_000,
    writeStall: 60_000,
    maxConnections: 10,
    current: () => ({ match: () => undefined }) as unknown as Snapshot,
    ...({ load: { memory: () => 0 }, metrics: { refusal() {} } } as unknown as Pick<
      Services,
      'room' | 'load' | 'metrics' | 'log'
    >),
  })
  await listener.listen()
  t.ok(listener.accepting)
  const status = await new Promise(resolve =>
    get(`http://${listener.address}/`, ({ statusCode }) => resolve(statusCode)),
  )
  t.equal(status, 404)
  listener.hurry()
  const began = performance.now()
  await listener.drain({ delay: 60_000, drain: 60_000 })
  t.ok(performance.now() - began < 10_000)
  t.notOk(listener.accepting)
})
t.test('streams say heartbeats after so much silence, and none where it is 0s', async t => {
  const rows: [pace: { heartbeat: number; hold: number; request: number }, tickMs: number, ticks: number][] = [
    [{ heartbeat: 15_000, hold: 10_000, request: 120_000 }, 1000, 15],
    [{ heartbeat: 1000, hold: 10_000, request: 120_000 }, 250, 4],
    [{ heartbeat: 0, hold: 10_000, request: 120_000 }, 1000, Number.POSITIVE_INFINITY],
    [{ heartbeat: 0, hold: 400, request: 120_000 }, 100, Number.POSITIVE_INFINITY],
    [{ heartbeat: 1, hold: 0, request: 120_000 }, 10, 1],
  ]
  for (const [pace, tickMs, ticks] of rows) {
    const timers = t.capture(globalThis, 'setInterval', () => ({ unref() {} }) as NodeJS.Timeout)
    const flights = new Flights(pace, () => undefined)
    const [{ args }] = timers() as unknown as [{ args: [() => void, number] }]
    timers.restore()
    const said: unknown[] = []
    const sink = { begun: true, tick: (...given: unknown[]) => said.push(given) }
    const endpoint = { codec: { heartbeat: { text: ': hi\n\n' } } }
    flights.enter({ endpoint, streaming: true } as never, {} as never, sink as never, {} as never)
    args[0]()
    t.strictSame([args[1], said], [tickMs, [[': hi\n\n', ticks]]], JSON.stringify(pace))
    flights.close()
  }
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
