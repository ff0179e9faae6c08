/** Providers that cannot be reached, or that answer what nobody should: what becomes of it, at what cost. */

import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createServer as createSecure, type TlsOptions } from 'node:tls'
import t, { type Test } from 'tap'
import type { Json } from '../../src/json/json.ts'
import { makeAuthority } from '../helpers/certificates.ts'
import { Child } from '../helpers/child.ts'
import { TIMINGS, timing } from '../helpers/figure.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants, isErrorBody, metric } from '../helpers/invariants.ts'
import { CLOSED_PORT, type Step, startUpstream } from '../helpers/upstream.ts'

const MIB = 2 ** 20
/** MiB the process may grow by for one answer: its bound of 32, and what the garbage collector has not freed yet. */
const ANSWER = 128
const CONNECT_MS = 500
const REQUESTS = 400
/** Longer than the tests may take: what comes all the same has waited for none of it. */
const NEVER = '1h'
const patient = { connect: NEVER, first_event: NEVER, idle: NEVER, total: NEVER }
/** Of these a provider meets the first alone. */
const hasty = { ...patient, connect: `${CONNECT_MS}ms` }
const WAITING = 200

/** A listener that speaks no HTTP; `seen` is what it was sent. */
async function listener(t: Test | typeof import('tap').t, serve: (socket: Socket) => void, secure?: TlsOptions) {
  const seen: Buffer[] = []
  const handle = (socket: Socket) => {
    socket.on('error', () => undefined).on('data', (chunk: Buffer) => seen.push(chunk))
    serve(socket)
  }
  const server = secure ? createSecure(secure, handle) : createServer(handle)
  server.on('tlsClientError', () => undefined).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { port: (server.address() as { port: number }).port, text: () => Buffer.concat(seen).toString('latin1') }
}

/** The gateway trusts it. */
const authority = makeAuthority(t)
const { certificate } = authority

const upstream = await startUpstream(t)
const refused = `http://127.0.0.1:${CLOSED_PORT}/v1`
const chat = {
  id: 'x',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
}
const text = JSON.stringify(chat)
const answered = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`
const hello = (socket: Socket) => socket.once('data', () => socket.end(answered))
const here = 'IP:127.0.0.1'
const plain = await listener(t, hello)
const trusted = await listener(t, hello, certificate('good', here, 2))
const untrusted = {
  selfsigned: await listener(t, hello, certificate('self', here)),
  othername: await listener(t, hello, certificate('other', 'DNS:provider.example', 2)),
  expired: await listener(t, hello, certificate('expired', here, -1)),
  ancient: await listener(t, hello, {
    ...certificate('ancient', here, 2),
    minVersion: 'TLSv1',
    maxVersion: 'TLSv1',
    ciphers: 'DEFAULT@SECLEVEL=0',
  }),
}
const hole = await blackHole()

/** A port whose connections are never taken: its process is stopped, and its queue is full. */
async function blackHole(): Promise<number> {
  const child = new Child(join(import.meta.dirname, '../helpers/stopped.mjs'), [], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const { port } = JSON.parse(await child.firstLine(1, 10_000)) as { port: number }
  child.signal('SIGSTOP')
  const queued = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
  t.teardown(async () => {
    for (const socket of queued) socket.destroy()
    await child.kill('SIGKILL')
  })
  return port
}

const unreachable: Record<string, { says: string; url: string }> = {
  refused: { says: 'refuses the connection', url: refused },
  nowhere: { says: 'has a name that does not exist', url: 'https://provider.invalid/v1' },
  unnamed: { says: 'has a name server that fails', url: 'https://fails.example/v1' },
  silent: { says: 'has a name server that never answers', url: 'https://hangs.example/v1' },
  plain: { says: 'speaks no TLS where it should', url: `https://127.0.0.1:${plain.port}/v1` },
  selfsigned: { says: 'signed its certificate itself', url: `https://127.0.0.1:${untrusted.selfsigned.port}/v1` },
  othername: { says: 'shows the certificate of another', url: `https://127.0.0.1:${untrusted.othername.port}/v1` },
  expired: { says: 'shows a certificate that has expired', url: `https://127.0.0.1:${untrusted.expired.port}/v1` },
  ancient: { says: 'speaks TLS 1.0', url: `https://127.0.0.1:${untrusted.ancient.port}/v1` },
  hole: { says: 'takes no connection', url: `http://127.0.0.1:${hole}/v1` },
}

const json = (body: unknown): Step => ({ raw: [JSON.stringify(body)], headers: { 'content-type': 'application/json' } })
const http = (...lines: string[]): Step => ({ socket: [`${lines.join('\r\n')}\r\n\r\n`] })
/** What is no answer. */
const answers: { says: string; step: Step }[] = [
  { says: '204', step: { status: 204 } },
  { says: '301', step: { status: 301, headers: { location: '/a/v1/chat/completions' } } },
  { says: '101', step: http('HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: x') },
  { says: 'a page', step: { fault: 'html' } },
  { says: 'nothing', step: { fault: 'empty' } },
  { says: 'an error with 200', step: { fault: 'error-in-200' } },
  { says: 'no choices', step: json({ id: 'x', object: 'chat.completion' }) },
  { says: 'choices that are none', step: json({ choices: 'none' }) },
  { says: 'an empty list of choices', step: json({ choices: [] }) },
  { says: 'a list', step: json([]) },
  { says: 'a text', step: json('Hi') },
  {
    says: 'a gigabyte',
    step: { raw: ['{"x":"', { text: 'x'.repeat(MIB), times: 1024 }], headers: { 'content-type': 'application/json' } },
  },
  {
    says: 'headers of 2 MB',
    step: { socket: ['HTTP/1.1 200 OK\r\n', { text: `x: ${'y'.repeat(1000)}\r\n`, times: 2000 }] },
  },
  {
    says: 'a length that is too long',
    step: {
      socket: [
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length + 10}\r\n\r\n${text}`,
      ],
    },
  },
  {
    says: 'a length that is too short',
    step: {
      socket: [
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length - 10}\r\n\r\n${text}`,
      ],
    },
  },
  { says: 'two lengths', step: http('HTTP/1.1 200 OK', 'content-length: 2', 'content-length: 3', '', '{}') },
  {
    says: 'a length and chunks',
    step: http('HTTP/1.1 200 OK', 'content-length: 2', 'transfer-encoding: chunked', '', '2', '{}', '0'),
  },
  { says: 'garbage', step: { socket: ['\u0000\u0001\u0002garbage\r\n\r\n'] } },
  { says: 'another protocol', step: { socket: ['SSH-2.0-OpenSSH_9.2\r\n'] } },
]

/** What blames the caller, and what the caller is told. */
const blaming: Record<string, number> = { 400: 400, 413: 413, 415: 415, 422: 400 }

/** Answers, and closes every fifth connection when it has become idle, and every tenth one just as it is used again. */
const idle = new Set<Socket>()
let served = 0
let used = 0
const brief = await listener(t, socket => {
  socket.once('close', () => idle.delete(socket))
  let rest = ''
  socket.on('data', chunk => {
    if (idle.delete(socket) && ++used % 10 === 0) {
      socket.destroy()
      return
    }
    rest += chunk.toString('latin1')
    const [, length] = /content-length: (\d+)\r\n/i.exec(rest) ?? []
    if (length === undefined || rest.length < rest.indexOf('\r\n\r\n') + 4 + Number(length)) return
    rest = ''
    socket.write(answered)
    idle.add(socket)
    // All of them would leave none to be used again where the machine is slow.
    if (++served % 5 === 0) setTimeout(() => idle.has(socket) && socket.destroy(), 7)
  })
})

const serve = (id: string, base_url: string, model: string, priority: number, timeouts: object = patient) => ({
  [id]: { base_url, timeouts, priority, models: [{ ...testMapping, model, id: `${id}-1` }] },
})
/** Who says nothing is given up at the limit for connecting; all others say at once that they cannot be reached. */
const timeoutsOf = (id: string) => (id === 'silent' || id === 'hole' ? hasty : patient)
/** Every case has providers of its own, so that none has a past with another. */
const gateway = await startGateway(t, {
  providers: Object.assign(
    {},
    ...Object.entries(unreachable).flatMap(([id, { url }]) => [
      serve(`${id}-a`, url, `${id}-alone`, 1, timeoutsOf(id)),
      serve(`${id}-b`, url, `${id}-pair`, 2, timeoutsOf(id)),
      serve(`${id}-c`, upstream.url('good'), `${id}-pair`, 1),
    ]),
    ...answers.flatMap((_, n) => [
      serve(`wrong${n}`, upstream.url(`wrong${n}`), `wrong${n}`, 1),
      serve(`bad${n}`, upstream.url(`wrong${n}`), `pair${n}`, 2),
      serve(`good${n}`, upstream.url('good'), `pair${n}`, 1),
    ]),
    ...Object.keys(blaming).flatMap(status => [
      serve(`a${status}`, upstream.url(`a${status}`), `blame${status}`, 2),
      serve(`b${status}`, upstream.url('good'), `blame${status}`, 1),
    ]),
    serve('early', upstream.url('early'), 'early', 1),
    serve('trusted', `https://127.0.0.1:${trusted.port}/v1`, 'trusted', 1),
    serve('brief', `http://127.0.0.1:${brief.port}/v1`, 'brief', 1),
    serve('endless', unreachable.silent!.url, 'endless', 1),
    serve('slow1', upstream.url('slow1'), 'slow', 2),
    serve('slow2', upstream.url('slow2'), 'slow', 1),
  ),
  env: {
    NODE_OPTIONS: `--require ${join(import.meta.dirname, '../helpers/names.cjs')}`,
    NODE_EXTRA_CA_CERTS: authority.path,
    NAMES: JSON.stringify({ 'hangs.example': 'hangs', 'fails.example': 'fails' }),
  },
  // A machine that is busy with other things is not judged here.
  config: {
    endpoints: { chat: { ratelimit: { rpm: 100_000 }, admission: { in_flight: 10_000, org_share: 1, lag: '60s' } } },
  },
})

const ask = (model: string, content = 'Hi', signal?: AbortSignal) =>
  gateway.chat({ model, messages: [{ role: 'user', content }] }, {}, signal)
const usedBy = async (response: Response) =>
  ((await response.json()) as { metadata: { used_provider: string; routing: Json[] } }).metadata

for (const [id, { says, url }] of Object.entries(unreachable)) {
  const group = { refused: 'UF-01', nowhere: 'UF-02', unnamed: 'UF-02', silent: 'UF-02', hole: 'UF-04' }[id] ?? 'UF-03'
  t.test(`${group} a provider that ${says} is not reached in time, and another one answers`, async t => {
    const alone = await ask(`${id}-alone`)
    t.equal(alone.status, 502)
    const body = (await alone.json()) as { error: Json }
    t.match(body, { error: { type: 'upstream_error', code: 'fetch_failed' } })
    t.ok(isErrorBody(body))
    t.notMatch(String(body.error.message), new RegExp(new URL(url).host), 'the error does not show the address')
    const pair = await ask(`${id}-pair`)
    t.equal(pair.status, 200)
    const { used_provider, routing } = await usedBy(pair)
    t.equal(used_provider, `${id}-c`)
    t.match(routing, [{ provider: `${id}-b`, status_code: 0, succeeded: false }, { succeeded: true }])
  })
}

t.test('UF-03 no key is sent before the certificate is good, and one that is good is taken', async t => {
  for (const { text } of [plain, ...Object.values(untrusted)]) t.notMatch(text(), /sk-upstream|authorization|POST/i)
  t.equal((await ask('trusted')).status, 200)
  t.match(trusted.text(), /authorization: Bearer sk-upstream/i)
})

/** The least of a few durations in milliseconds. */
async function least(run: () => Promise<unknown>, tries = TIMINGS): Promise<number> {
  let ms = Number.POSITIVE_INFINITY
  for (let n = 0; n < tries; n++) {
    const start = performance.now()
    await run()
    ms = Math.min(ms, performance.now() - start)
  }
  return ms
}

t.test('UF-01 a refused connection fails over at once, or is reported without a pause or a second try', async t => {
  for (const [model, provider, status] of [
    ['refused-alone', 'refused-a', 502],
    ['refused-pair', 'refused-b', 200],
  ] as const) {
    const tried = async () => metric(await gateway.metrics(), 'gateway_attempts_total', { provider })!
    const before = await tried()
    let asked = 0
    const value = await least(async () => {
      const response = await ask(model)
      t.equal(response.status, status)
      await response.text()
      asked++
    })
    const more = (await tried()) - before
    t.ok(
      more > 0 && more <= asked,
      `${model}: ${more} attempts of ${asked} requests, none of which waited for a deadline`,
    )
    timing(t, { id: 'UF-01', what: `a refused connection, ${model}`, value, unit: 'ms', atMost: 50 })
  }
})

t.test('UF-02 two hundred requests that wait for a name delay no other request', async t => {
  const inFlight = async () => metric(await gateway.metrics(), 'gateway_requests_in_flight')
  const leaving = new AbortController()
  let settled = 0
  const waiting = Array.from({ length: WAITING }, () =>
    ask('endless', 'Hi', leaving.signal)
      .catch(() => undefined)
      .finally(() => settled++),
  )
  while ((await inFlight()) !== WAITING) await sleep(5)
  for (let n = 0; n < 20; n++) {
    const response = await ask('trusted')
    t.equal(response.status, 200)
    await response.text()
  }
  t.strictSame([settled, await inFlight()], [0, WAITING], 'all of them still wait')
  leaving.abort()
  await Promise.all(waiting)
  while ((await inFlight()) !== 0) await sleep(5)
  const given = await Promise.all(Array.from({ length: WAITING }, () => ask('silent-alone')))
  t.strictSame([...new Set(given.map(({ status }) => status))], [502], 'who waits for no longer is told')
  for (const response of given) await response.text()
})

t.test('UF-07 a fault of the caller is reported to it, costs no retry, and counts against no provider', async t => {
  for (const [status, told] of Object.entries(blaming)) {
    await upstream.script(`a${status}`, [{ status: Number(status) }])
    for (let n = 0; n < 6; n++) {
      const response = await ask(`blame${status}`)
      t.equal(response.status, told, status)
      t.ok(isErrorBody(await response.json()))
    }
    t.equal((await upstream.record(`a${status}`)).length, 6)
    const explained = await gateway.admin('POST', '/commands/route.explain', { model: `blame${status}` })
    t.match(await explained.json(), {
      choice: `a${status}/blame${status}`,
      candidates: [{ circuit: 'closed', requests: 0 }],
    })
  }
})

t.test('UF-13 a provider that closes its idle sockets as they are used again costs no client an answer', async t => {
  const statuses = new Map<number, number>()
  let left = REQUESTS
  const client = async () => {
    while (left-- > 0) {
      const response = await ask('brief')
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
      await response.text()
    }
  }
  await Promise.all(Array.from({ length: 8 }, client))
  t.strictSame([...statuses], [[200, REQUESTS]])
  const broken = metric(await gateway.metrics(), 'gateway_attempts_total', {
    provider: 'brief',
    outcome: 'network_error',
  })
  t.ok(broken! > 0, `${broken} attempts met a socket that had just been closed`)
})

t.test('UF-19 no other provider is called while one reasons', async t => {
  await upstream.script('slow1', [{ hold: 0 }])
  const thinking = ask('slow')
  await upstream.record('slow1', { requests: 1 })
  // Nothing tells that nobody else is asked.
  await sleep(1000)
  await upstream.release('slow1')
  t.equal((await usedBy(await thinking)).used_provider, 'slow1')
  t.strictSame([(await upstream.record('slow1')).length, (await upstream.record('slow2')).length], [1, 0])
})

for (const [n, { says, step }] of answers.entries()) {
  t.test(`UF-10 UF-11 ${says} is no answer: 502, or another provider`, async t => {
    await upstream.script(`wrong${n}`, [step])
    const before = await gateway.rss()
    const alone = await ask(`wrong${n}`)
    t.equal(alone.status, 502)
    const body = await alone.json()
    t.match(body, { error: { type: 'upstream_error' } })
    t.ok(isErrorBody(body))
    const grown = ((await gateway.rss()) - before) / MIB
    t.ok(grown < ANSWER, `${Math.round(grown)} MiB`)
    const pair = await ask(`pair${n}`)
    t.equal(pair.status, 200)
    t.equal((await usedBy(pair)).used_provider, `good${n}`)
  })
}

t.test('UF-12 a provider that refuses a request before it has read it has refused it', async t => {
  await upstream.script('early', [{ fault: 'early' }])
  const response = await ask('early', 'x'.repeat(20_000_000))
  t.ok([413, 502].includes(response.status), `${response.status}`)
  t.ok(isErrorBody(await response.json()))
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
