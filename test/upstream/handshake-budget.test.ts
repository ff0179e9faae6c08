/** Time of the event loop that TLS handshakes with servers of others may take. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { createServer } from 'node:tls'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { buildConnector } from 'undici'
import { withBudget } from '../../src/upstream/connector.ts'
import { type Handshake, HandshakeBudget } from '../../src/upstream/handshake-budget.ts'
import { socketConnector } from '../../src/upstream/upstream-socket.ts'
import { makeAuthority } from '../helpers/certificates.ts'
import { runs } from '../helpers/runs.ts'

/** The connection to a server. */
class Connection {
  bytes = 0
  isRead = true
  readonly handshake: Handshake

  constructor(budget: HandshakeBudget, tenant: string) {
    this.handshake = budget.begin(tenant, {
      received: () => this.bytes,
      pause: () => {
        this.isRead = false
      },
      resume: () => {
        this.isRead = true
      },
    })
  }
}

function started() {
  const clock = { now: 1000, cpu: 0 }
  const budget = new HandshakeBudget({ now: () => clock.now, cpu: () => clock.cpu })
  return {
    clock,
    budget,
    open: (tenant: string) => new Connection(budget, tenant),
    /** Milliseconds in one turn of the loop, in which `connections` get bytes. */
    turn(ms: number, connections: readonly Connection[] = [], cpu = ms) {
      for (const connection of connections) connection.bytes += 1000
      clock.now += ms
      clock.cpu += cpu
    },
    /** Turns without work. */
    rest(ms: number) {
      for (let passed = 0; passed < ms; passed += 5) {
        clock.now += 5
        budget.tick()
      }
    },
  }
}

const readOf = (connections: readonly Connection[]) => connections.map(({ isRead }) => isRead)
const NONE = [false, false, false, false, false, false]

t.test('one handshake of a tenant is read until one has succeeded, then four at a time, without a wait', async t => {
  const { budget, open, turn } = started()
  const all = Array.from({ length: 6 }, () => open('a'))
  t.strictSame(readOf(all), [true, ...NONE.slice(1)])
  t.ok(open('b').isRead, 'others do not wait for it')
  turn(2, all.slice(0, 1))
  budget.end(all[0]!.handshake, true)
  t.strictSame(readOf(all.slice(1)), [true, true, true, true, false])
  budget.end(all[2]!.handshake, true)
  t.strictSame(readOf(all.slice(5)), [true])
})

t.test('a server that is slow gives way to others of its tenant', async t => {
  const { open, rest } = started()
  const [slow, other] = [open('a'), open('a')]
  rest(5)
  t.strictSame(readOf([slow, other]), [true, false])
  rest(5)
  t.strictSame(readOf([slow, other]), [false, true])
  rest(10)
  t.strictSame(readOf([slow, other]), [true, false])
})

t.test('handshakes of a tenant that took the loop wait until that is paid, then go one at a time', async t => {
  const { budget, open, rest, turn } = started()
  const dear = () => {
    const connection = open('a')
    turn(400, [connection])
    budget.end(connection.handshake, false)
  }
  budget.end(open('a').handshake, true)
  dear()
  const good = [open('a'), open('a')]
  t.strictSame(readOf(good), [true, true], '395 ms are within the burst')
  turn(400, good.slice(0, 1))
  budget.tick()
  t.strictSame(readOf(good), [false, false], 'what has begun is not read on')
  const late = open('a')
  t.notOk(late.isRead)
  t.ok(open('b').isRead, 'and others go on')
  rest(5300)
  t.strictSame(readOf([...good, late]), [false, false, false], '270 ms are owed')
  rest(200)
  t.equal(readOf([...good, late]).filter(Boolean).length, 1)
})

t.test('only those are charged that got bytes in a long turn, and none that succeed', async t => {
  const { budget, open, rest, turn } = started()
  const [own, silent, other] = [open('a'), open('b'), open('c')]
  for (let count = 0; count < 2; count++) {
    turn(300, [own, other])
    budget.tick()
  }
  t.strictSame(readOf([own, silent, other]), [false, true, false])
  budget.end(other.handshake, true)
  t.ok(open('c').isRead, 'what was charged is given back')
  budget.end(own.handshake, false)
  t.notOk(open('a').isRead)
  turn(1000, [silent], 10)
  budget.tick()
  t.ok(open('b').handshake && silent.isRead, 'a machine without CPU time charges nobody')
  rest(10)
})

t.test('a handshake that succeeds clears no other one of its tenant', async t => {
  const { budget, open, turn } = started()
  budget.end(open('a').handshake, true)
  const [good, dear] = [open('a'), open('a')]
  turn(600, [good, dear])
  budget.end(good.handshake, true)
  t.notOk(open('a').isRead)
  budget.end(dear.handshake, true)
  t.ok(open('a').isRead)
})

t.test('a turn that is longer than any handshake is charged as the longest one', async t => {
  const { budget, open, rest, turn } = started()
  const honest = open('a')
  turn(3000, [honest])
  budget.tick()
  t.notOk(honest.isRead)
  rest(2100)
  t.ok(honest.isRead, 'it goes on within the time of a connect')
})

t.test('many short ends in one turn are charged, and the timer ends with the last handshake', async t => {
  const { budget, open, rest, turn } = started()
  budget.end(open('a').handshake, true)
  for (let count = 0; count < 60; count++) {
    const connection = open('a')
    if (connection.isRead) turn(15, [connection])
    budget.end(connection.handshake, false)
  }
  t.notOk(open('a').isRead)
  const other = started()
  const connection = other.open('a')
  t.ok(other.budget.isActive)
  other.budget.end(connection.handshake, true)
  other.rest(5)
  t.notOk(other.budget.isActive)
  rest(5)
})

t.test('dear handshakes take a burst and a twentieth of the loop, however they come', async () => {
  const step = fc.record({
    opened: fc.integer({ min: 0, max: 8 }),
    ms: fc.integer({ min: 30, max: 400 }),
    fails: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 60 }), steps => {
      const { budget, clock, open, turn, rest } = started()
      let openNow: Connection[] = []
      let taken = 0
      const from = clock.now
      for (const { opened, ms, fails } of steps) {
        for (let count = 0; count < opened; count++) openNow.push(open('a'))
        for (const connection of openNow) {
          if (!connection.isRead) continue
          turn(ms, [connection])
          taken += ms - 5
          if (fails) budget.end(connection.handshake, false)
          budget.tick()
        }
        if (fails) openNow = openNow.filter(({ isRead }) => !isRead)
        rest(20)
      }
      return taken <= 500 + 400 + (clock.now - from) / 20
    }),
    { numRuns: runs(200) },
  )
})

/** A server with a certificate, that greets; connects to it at the cost of a tenant. */
async function greeter(t: Test, budget: HandshakeBudget) {
  const pair = makeAuthority(t).certificate('server', 'IP:127.0.0.1')
  const server = createServer(pair, socket => socket.on('error', () => undefined).write('hello'))
  server.on('tlsClientError', () => undefined)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const port = String((server.address() as AddressInfo).port)
  const target = { hostname: '127.0.0.1', host: `127.0.0.1:${port}`, protocol: 'https:', port }
  return (tenant: string, options: buildConnector.BuildOptions = { ca: pair.cert }) =>
    new Promise<string>((resolve, reject) => {
      withBudget(socketConnector({ timeout: 60_000, ...options }), tenant, { budget })(target, (error, socket) => {
        if (!socket) return reject(error)
        socket.once('data', (data: Buffer) => {
          resolve(String(data))
          socket.destroy()
        })
      })
    })
}

t.test('only a certificate that is trusted clears a handshake', async t => {
  const ends: boolean[] = []
  class Recorded extends HandshakeBudget {
    override end(handshake: Handshake, succeeded: boolean) {
      ends.push(succeeded)
      super.end(handshake, succeeded)
    }
  }
  const budget = new Recorded()
  const greeting = await greeter(t, budget)
  t.strictSame(new Set(await Promise.all(Array.from({ length: 10 }, () => greeting('a')))), new Set(['hello']))
  t.strictSame(new Set(ends.splice(0)), new Set([true]))
  t.equal(await greeting('a', { rejectUnauthorized: false }), 'hello')
  await t.rejects(greeting('a', {}), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  t.strictSame(ends, [false, false])
  while (budget.isActive) await setImmediate()
})

t.test('the connection of a tenant that owes time is not read, and goes on when that is paid', async t => {
  const { budget, open, rest, turn } = started()
  turn(600, [open('a')])
  budget.tick()
  const greeting = await greeter(t, budget)
  let hasEnded = false
  const owing = greeting('a').finally(() => {
    hasEnded = true
  })
  for (let count = 0; count < 5; count++) t.equal(await greeting('b'), 'hello')
  t.notOk(hasEnded)
  rest(2000)
  // The first one of the tenant gets nothing, and gives way as time passes.
  while (!hasEnded) {
    await setImmediate()
    rest(5)
  }
  t.equal(await owing, 'hello')
})
