/** Providers that cannot be reached, or that answer what nobody should: what becomes of it, at what cost. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createSecure } from 'node:tls'
import t, { type Test } from 'tap'
import { Child } from '../helpers/child.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants, isErrorBody } from '../helpers/invariants.ts'
import { closedPort, type Step, startUpstream } from '../helpers/upstream.ts'

type Json = Record<string, unknown>

const MIB = 2 ** 20
const CONNECT_MS = 500
const timeouts = { connect: `${CONNECT_MS}ms`, first_event: '2s', idle: '2s', total: '10s' }

/** A listener that speaks no HTTP; `seen` is what it was sent. */
async function listener(
  t: Test | typeof import('tap').t,
  serve: (socket: Socket) => void,
  secure?: { key: Buffer; cert: Buffer },
) {
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

/** Certificates that nobody should trust. */
function certificate(...more: string[]): { key: Buffer; cert: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), 'tls-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync('openssl', [...request, '-keyout', key, '-out', cert, ...more], { stdio: 'ignore' })
  return { key: readFileSync(key), cert: readFileSync(cert) }
}

const upstream = await startUpstream(t)
const refused = `http://127.0.0.1:${await closedPort()}/v1`
const hello = (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}')
const plain = await listener(t, hello)
const selfSigned = await listener(
  t,
  hello,
  certificate('-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'),
)
const otherName = await listener(t, hello, certificate('-subj', '/CN=example.com', '-days', '1'))
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

const unreachable: Record<string, { says: string; url: string; refusedAt?: number }> = {
  refused: { says: 'refuses the connection', url: refused },
  nowhere: { says: 'has a name that does not exist', url: 'https://provider.invalid/v1' },
  plain: { says: 'speaks no TLS where it should', url: `https://127.0.0.1:${plain.port}/v1` },
  selfsigned: { says: 'signed its certificate itself', url: `https://127.0.0.1:${selfSigned.port}/v1` },
  othername: { says: 'shows the certificate of another', url: `https://127.0.0.1:${otherName.port}/v1` },
  hole: { says: 'takes no connection', url: `http://127.0.0.1:${hole}/v1` },
}

const json = (body: unknown): Step => ({ raw: [JSON.stringify(body)], headers: { 'content-type': 'application/json' } })
const http = (...lines: string[]): Step => ({ socket: [`${lines.join('\r\n')}\r\n\r\n`] })
const chat = {
  id: 'x',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
}
const text = JSON.stringify(chat)
/** What is no answer; `stream` tells that it is none to a stream either. */
const answers: { says: string; step: Step; status?: number }[] = [
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

const serve = (id: string, base_url: string, model: string, priority: number) => ({
  [id]: { base_url, timeouts, priority, models: [{ ...testMapping, model, id: `${id}-1` }] },
})
/** Every case has providers of its own, so that none has a past with another. */
const gateway = await startGateway(t, {
  providers: Object.assign(
    {},
    ...Object.entries(unreachable).flatMap(([id, { url }]) => [
      serve(`${id}-a`, url, `${id}-alone`, 1),
      serve(`${id}-b`, url, `${id}-pair`, 2),
      serve(`${id}-c`, upstream.url('good'), `${id}-pair`, 1),
    ]),
    ...answers.flatMap((_, n) => [
      serve(`wrong${n}`, upstream.url(`wrong${n}`), `wrong${n}`, 1),
      serve(`bad${n}`, upstream.url(`wrong${n}`), `pair${n}`, 2),
      serve(`good${n}`, upstream.url('good'), `pair${n}`, 1),
    ]),
    serve('early', upstream.url('early'), 'early', 1),
  ),
  // A machine that is busy with other things is not judged here.
  config: { endpoints: { chat: { ratelimit: { rpm: 100_000 }, admission: { lag: '60s' } } } },
})

const ask = (model: string, content = 'Hi') => gateway.chat({ model, messages: [{ role: 'user', content }] })
const usedBy = async (response: Response) =>
  ((await response.json()) as { metadata: { used_provider: string; routing: Json[] } }).metadata

for (const [id, { says, url }] of Object.entries(unreachable)) {
  const group = { refused: 'UF-01', nowhere: 'UF-02', hole: 'UF-04' }[id] ?? 'UF-03'
  t.test(`${group} a provider that ${says} is not reached in time, and another one answers`, async t => {
    const start = performance.now()
    const alone = await ask(`${id}-alone`)
    const ms = performance.now() - start
    t.equal(alone.status, 502)
    const body = (await alone.json()) as { error: Json }
    t.match(body, { error: { type: 'upstream_error', code: 'fetch_failed' } })
    t.ok(isErrorBody(body))
    t.notMatch(String(body.error.message), new RegExp(new URL(url).host), 'the error does not show the address')
    t.ok(ms < CONNECT_MS + 1500, `after ${Math.round(ms)} ms`)
    const pair = await ask(`${id}-pair`)
    t.equal(pair.status, 200)
    const { used_provider, routing } = await usedBy(pair)
    t.equal(used_provider, `${id}-c`)
    t.match(routing, [{ provider: `${id}-b`, status_code: 0, succeeded: false }, { succeeded: true }])
  })
}

t.test('UF-03 no key is sent before the certificate is good', async t => {
  for (const { text } of [plain, selfSigned, otherName]) t.notMatch(text(), /sk-upstream|authorization|POST/i)
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
    t.ok(grown < 150, `${Math.round(grown)} MiB`)
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
