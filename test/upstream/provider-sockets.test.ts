import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { ProviderSocket } from '../../src/core/ports.ts'
import type { Provider } from '../../src/core/translator.ts'
import { errors, type GatewayError } from '../../src/lib/error.ts'
import { InFlightCounts } from '../../src/upstream/in-flight-count.ts'
import { type ProviderSocketsOptions, UpstreamSockets } from '../../src/upstream/provider-sockets.ts'
import { Transport } from '../../src/upstream/transport.ts'
import { exchange } from '../core/kit.ts'
import { principalOf } from '../core/principal.ts'
import { realtimeProvider } from '../helpers/realtime-provider.ts'
import { target } from '../plugins/wire-kit.ts'

const LIMIT = 1024 * 1024

async function started(t: Test, options: ProviderSocketsOptions = {}) {
  const provider = await realtimeProvider(t)
  const sockets = new UpstreamSockets(options)
  const open = (orgId: string, given: Partial<Provider> = {}, path = '/realtime', signal = new Cancellation()) => {
    const to = target({ provider: { baseUrl: provider.url, ...given } })
    const ex = exchange({ target: to, principal: principalOf({ orgId }) })
    const call = {
      id: ex.id,
      trace: undefined,
      tenant: ex.caller.tenant,
      target: to,
      signal,
      maxMessageBytes: LIMIT,
    }
    return sockets.open({ ...call, request: { path, body: {} } })
  }
  return { provider, open }
}
/** The code of a refusal. */
const refused = (opening: Promise<ProviderSocket>) =>
  opening.then(
    () => 'opened',
    (error: GatewayError) => error.code,
  )
const ignore = () => undefined
/** Resolves when the socket is closed on both sides. */
function closed({ socket }: ProviderSocket, close = () => socket.close(1000, '')): Promise<void> {
  return new Promise(resolve => {
    socket.open({
      message: ignore,
      pinged: ignore,
      pong: ignore,
      read: ignore,
      drained: ignore,
      closed: () => resolve(),
    })
    close()
  })
}

t.test('a session counts as a call to its provider until its socket is closed', async t => {
  const { provider, open } = await started(t)
  const first = await open('a', { concurrency: 2 })
  await open('a', { concurrency: 2 })
  t.equal(await refused(open('a', { concurrency: 2 })), 'overloaded')
  t.equal(provider.sessions.length, 2, 'the provider receives no third handshake')
  await closed(first)
  const cut = await open('a', { concurrency: 2 })
  t.equal(await refused(open('a', { concurrency: 2 })), 'overloaded')
  await closed(cut, () => provider.last().socket.destroy())
  t.equal(await refused(open('a', { concurrency: 2 })), 'opened', 'a cut connection counts no longer')
})

t.test('a session that is not opened counts no longer', async t => {
  const { provider, open } = await started(t)
  provider.refuse = { status: 503, body: 'busy' }
  for (let tries = 0; tries < 3; tries++) t.not(await refused(open('a', { concurrency: 1 })), 'overloaded')
  const nowhere = { concurrency: 1, baseUrl: 'http://127.0.0.1:1/v1' }
  for (let tries = 0; tries < 3; tries++) t.equal(await refused(open('a', nowhere)), 'fetch_failed')
  provider.refuse = undefined
  t.equal(await refused(open('a', { concurrency: 1 })), 'opened')
})

t.test('an organization has half of the sessions of a provider beside another one', async t => {
  const { open } = await started(t)
  const alone = await Promise.all(Array.from({ length: 4 }, () => open('a', { concurrency: 4 })))
  t.equal(await refused(open('b', { concurrency: 4 })), 'overloaded')
  await Promise.all(alone.map(one => closed(one)))
  for (const outcome of ['opened', 'opened', 'overloaded']) {
    t.equal(await refused(open('a', { concurrency: 4 })), outcome)
  }
  t.equal(await refused(open('b', { concurrency: 4 })), 'opened')
})

t.test('sessions and other calls to a provider are counted together', async t => {
  const inFlight = new InFlightCounts()
  const transport = new Transport({ inFlight })
  t.teardown(() => transport.close())
  const { open } = await started(t, { inFlight })
  const given = { id: 'one', concurrency: 1 }
  const call = () => {
    const ex = exchange({ principal: principalOf({ orgId: 'a' }) })
    return transport.send({
      ...{ provider: given, method: 'POST', baseUrl: 'http://127.0.0.1:1/v1', path: '/x', headers: [], body: '{}' },
      ...{ timeouts: { connect: 1000, idle: 1000 }, firstEventMs: 1000, remainingMs: 1000 },
      ...{ signal: ex.signal, receipt: { atProvider: false }, tenant: 'a' },
    })
  }
  await t.rejects(call(), { code: 'fetch_failed' })
  await open('a', given)
  await t.rejects(call(), { code: 'overloaded' })
})

t.test("an organization's own provider is reached at public addresses only", async t => {
  const resolve = async () => ['127.0.0.1']
  const { provider, open } = await started(t, { resolve })
  const { port } = new URL(provider.url)
  for (const host of ['127.0.0.1', 'localhost', 'rebind.example', '[::ffff:127.0.0.1]', '2130706433']) {
    const own = { owner: 'a', baseUrl: `http://${host}:${port}/v1` }
    t.equal(await refused(open('a', own)), 'fetch_failed', host)
  }
  t.equal(provider.sessions.length, 0, 'nothing connected')
  const { open: allowed } = await started(t, { resolve, allowPrivate: true })
  t.equal(await refused(allowed('a', { owner: 'a' })), 'opened')
})

t.test('a client that leaves ends the opening of its session, wherever that is', async t => {
  const rows: [says: string, scheme: string, answer: string][] = [
    ['in the TLS handshake', 'https', ''],
    ['before the answer', 'http', ''],
    ['in a refusal', 'http', 'HTTP/1.1 503 Busy\r\ncontent-length: 9\r\n\r\n'],
  ]
  for (const [says, scheme, answer] of rows) {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const inFlight = new InFlightCounts()
    const { open } = await started(t, { inFlight })
    const signal = new Cancellation()
    const given = { concurrency: 1, baseUrl: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/v1` }
    const opening = refused(open('a', given, '/realtime', signal))
    const [socket] = (await once(server, 'connection')) as [Socket]
    socket.on('error', ignore)
    await once(socket, 'data')
    if (answer) await new Promise<unknown>(resolve => socket.write(answer, resolve))
    const over = new Promise<unknown>(resolve => socket.once('close', resolve))
    socket.resume()
    signal.abort(errors.aborted())
    t.equal(await opening, 'request_cancelled', says)
    await over
    t.not(await refused(open('a', { ...given, baseUrl: 'http://127.0.0.1:1/v1' })), 'overloaded', 'it counts no longer')
  }
  const { open } = await started(t)
  const gone = new Cancellation()
  gone.abort(errors.aborted())
  t.equal(await refused(open('a', {}, '/realtime', gone)), 'request_cancelled', 'before it connects')
})
