/** The admin listener over real sockets, with a fake gateway behind it. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { checkSender } from '../../src/admin/guard.ts'
import { adminListener } from '../../src/admin/server.ts'
import { adminToken } from '../../src/admin/token.ts'
import { ConfigError } from '../../src/config/error.ts'
import type { Log } from '../../src/core/ports.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { raw } from '../helpers/raw.ts'
import { CANARY, type Fake, fakeContext, TOKEN } from './fake.ts'

interface Sent {
  status: number
  headers: Headers
  text: string
  json<T = object>(): T
}

interface Admin {
  context: Fake
  address: string
  port: number
  logged: object[]
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Sent>
  command(name: string, args?: unknown): Promise<Sent>
}

async function start(t: Test): Promise<Admin> {
  const context = fakeContext()
  const logged: object[] = []
  const keep = (fields: object) => logged.push(fields)
  const log: Log = { debug: keep, info: keep, warn: keep, error: keep }
  const listener = await adminListener({ context, token: TOKEN, listen: '127.0.0.1:0', log })
  t.teardown(() => listener.close())
  const send: Admin['send'] = async (method, path, body, headers = { authorization: `Bearer ${TOKEN}` }) => {
    const payload = typeof body === 'string' || body === undefined ? body : JSON.stringify(body)
    const init = { method, headers, ...(payload !== undefined && { body: payload }) }
    const response = await fetch(`http://${listener.address}${path}`, init)
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: <T>() => JSON.parse(text) as T }
  }
  const command: Admin['command'] = (name, args) => send('POST', `/commands/${name}`, args)
  const port = Number(listener.address.split(':')[1])
  return { context, address: listener.address, port, logged, send, command }
}

t.test('AT-20 probes and metrics are open, all other paths require the token', async t => {
  const { send } = await start(t)
  const none = {}
  const wrong = { authorization: 'Bearer not-the-token' }
  const right = { authorization: `bearer ${TOKEN}` }
  const cases: [string, string, Record<string, string>, number][] = [
    ['GET', '/live', none, 200],
    ['HEAD', '/live', none, 200],
    ['GET', '/ready', none, 200],
    ['GET', '/metrics', none, 200],
    ['GET', '/live', wrong, 200],
    ['GET', '/config', none, 401],
    ['GET', '/config', wrong, 401],
    ['GET', '/config', { authorization: TOKEN }, 401],
    ['GET', '/config', { authorization: 'Bearer ' }, 401],
    ['GET', '/config', { authorization: `Bearer ${TOKEN}x` }, 401],
    ['GET', '/config', { authorization: `Basic ${TOKEN}` }, 401],
    ['GET', `/config?token=${TOKEN}`, none, 401],
    ['GET', '/config', right, 200],
    ['GET', '/config?pretty', right, 200],
    ['POST', '/reload', none, 401],
    ['POST', '/drain', none, 401],
    ['POST', '/commands/status', none, 401],
    ['GET', '/nothing', none, 401],
    ['GET', '/nothing', right, 404],
    ['GET', '/__proto__', right, 404],
    ['POST', '/commands/toString', right, 404],
    ['GET', '/reload', right, 405],
    ['POST', '/live', none, 405],
    ['GET', '/commands/status', right, 405],
  ]
  for (const [method, path, headers, status] of cases) {
    const answer = await send(method, path, undefined, headers)
    t.equal(answer.status, status, `${method} ${path} with ${JSON.stringify(headers)} is ${status}`)
    if (status < 400) continue
    t.match(answer.json(), { error: { message: String, type: 'invalid_request_error', code: String } })
    t.equal(answer.headers.get('cache-control'), 'no-store')
  }
  t.equal((await send('GET', '/reload')).headers.get('allow'), 'POST')
  t.match((await send('GET', '/metrics')).headers.get('content-type'), /^text\/plain; version=0\.0\.4/)
})

t.test('the refusal of an unknown path or command lists those that exist', async t => {
  const { send, command } = await start(t)
  t.match((await send('GET', '/nothing')).text, /\/live, \/ready, \/metrics, \/config, \/reload, \/drain/)
  t.match((await command('keys.make')).text, /keys\.create, keys\.list, keys\.update, keys\.revoke, keys\.roll/)
})

t.test('AT-20 PA-03 only names of this machine are accepted as Host, and no Origin', async t => {
  const { port } = await start(t)
  const ask = async (lines: string, version = '1.1') =>
    (await raw(port, `GET /live HTTP/${version}\r\n${lines}\r\n`, { responses: 1 })).status
  const cases: [string, number][] = [
    ['Host: localhost', 200],
    ['Host: LocalHost:9901', 200],
    ['Host: 127.0.0.1:1', 200],
    ['Host: 127.8.9.10', 200],
    ['Host: [::1]:9901', 200],
    ['Host: evil.example', 403],
    ['Host: localhost.evil.example', 403],
    ['Host: 127.0.0.1.evil.example', 403],
    ['Host: 127.0.0.1:9901:evil', 403],
    ['Host: evil.example@127.0.0.1', 403],
    ['Host: 0.0.0.0', 403],
    ['Host: 192.168.0.1', 403],
    ['Host: [::ffff:127.0.0.1]', 403],
    ['Host: ', 403],
    ['Host: localhost\r\nOrigin: http://localhost:9901', 403],
    ['Host: localhost\r\nOrigin: null', 403],
    ['Host: localhost\r\nOrigin: ', 403],
  ]
  for (const [lines, status] of cases) t.equal(await ask(`${lines}\r\n`), status, JSON.stringify(lines))
  t.equal(await ask('', '1.0'), 403, 'a request without Host is refused')
})

t.test('the address that it listens on is accepted as Host', t => {
  const accepts = (host: string, listenHost: string, localAddress: string) => {
    try {
      checkSender({ headers: { host }, socket: { localAddress } } as IncomingMessage, listenHost)
      return true
    } catch (thrown) {
      if (thrown instanceof GatewayError && thrown.status === 403) return false
      throw thrown
    }
  }
  t.ok(accepts('10.0.0.5:9901', '10.0.0.5', '10.0.0.5'))
  t.ok(accepts('Gateway.internal:9901', 'gateway.internal', '10.0.0.5'))
  t.ok(accepts('10.0.0.5:9901', '0.0.0.0', '10.0.0.5'))
  t.ok(accepts('10.0.0.5:9901', '[::]', '::ffff:10.0.0.5'), 'on a socket of both families')
  t.ok(accepts('[fd00::5]:9901', '[::]', 'fd00::5'))
  t.notOk(accepts('10.0.0.6:9901', '0.0.0.0', '10.0.0.5'))
  t.notOk(accepts('evil.example', '0.0.0.0', '10.0.0.5'))
  t.end()
})

t.test('bodies are bounded and must be JSON that fits the command', async t => {
  const { send, port } = await start(t)
  const cases: [string, unknown, number, RegExp][] = [
    ['keys.create', 'x'.repeat(1024 * 1024 + 1), 413, /larger than the limit of 1048576 bytes/],
    ['keys.create', '{"project":', 400, /not valid JSON/],
    ['keys.create', '[]', 400, /must be a JSON object; keys\.create takes project, name, expires/],
    ['keys.create', '"default"', 400, /must be a JSON object/],
    ['keys.create', {}, 400, /"project\\" is missing; keys\.create takes/],
    [
      'keys.create',
      { projct: 'default', project: 'default' },
      400,
      /Unknown argument \\"projct\\"; keys\.create takes/,
    ],
    ['keys.create', '{"project":"default","__proto__":{"name":"x"}}', 400, /Unknown argument \\"__proto__\\"/],
    ['keys.create', { project: 7 }, 400, /"project\\" must be the id or the name of a project/],
    ['keys.create', { project: 'default', expires: 'soon' }, 400, /must be a time such as 12h, 30d or 52w/],
    ['keys.create', { project: 'default', expires: '0d' }, 400, /must be a time such as/],
    ['usage', { groupBy: 'week' }, 400, /must be one of provider, model, app, api_key, project, member, day/],
    ['usage', { from: '2026-1-1' }, 400, /must be a date such as/],
    ['usage', { to: '2026-02-30' }, 400, /2026-02-30\\" is not a date/],
    ['usage', { from: '2026-02-02', to: '2026-02-01' }, 400, /from\\" \(2026-02-02\) is later than/],
    ['status', { verbose: true }, 400, /status takes no arguments/],
    ['explain', { endpoint: 'chta' }, 404, /no endpoint \\"chta\\". Endpoints: chat, models/],
    ['keys.revoke', { id: 'k9' }, 404, /no key \\"k9\\"/],
  ]
  for (const [name, body, status, message] of cases) {
    const answer = await send('POST', `/commands/${name}`, body)
    t.equal(answer.status, status, `${name}: ${message}`)
    t.match(answer.text, message)
  }
  const head = `POST /commands/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKEN}\r\n`
  const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
  const endless = await raw(port, `${head}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(17)}`, { responses: 1 })
  t.equal(endless.status, 413, 'a body of no declared length is bounded, too')
})

t.test('commands show the state of the gateway without secrets', async t => {
  const { command, context, send } = await start(t)
  const cases: [string, object, object][] = [
    ['keys.create', { project: 'p', name: 'n' }, { id: 'k2', key: 'mgw_new', name: 'n', project: 'p' }],
    [
      'keys.list',
      {},
      [
        { id: 'k1', spent: '0.25' },
        { id: 'k2', spent: '0' },
      ],
    ],
    ['keys.revoke', { id: 'k1' }, { id: 'k1', status: 'revoked' }],
    ['keys.roll', { id: 'k1' }, { id: 'k3', key: 'mgw_rolled' }],
    [
      'providers.list',
      {},
      [
        {
          id: 'live-one',
          status: 'live',
          models: 1,
          wires: { chat: 'openai.chat' },
          credentials: [{ source: 'platform', fingerprint: 'f1e2d3' }],
        },
        { id: 'keyless', status: 'no credential', credentials: [] },
        { id: 'local', status: 'live' },
      ],
    ],
    [
      'models.list',
      {},
      [
        {
          id: 'acme-large',
          live: true,
          contextLength: 200_000,
          providers: [
            { provider: 'live-one', live: true, inputPerMillion: '2.5', outputPerMillion: '10' },
            { provider: 'keyless', live: false, pricing: null, inputPerMillion: null },
            { provider: 'local', live: false },
          ],
        },
      ],
    ],
    ['usage.check', {}, { differences: [] }],
    [
      'status',
      {},
      { version: '0.1.0', configVersion: 'abc123', database: 'ok', models: 1, providers: 3, liveProviders: 2 },
    ],
  ]
  for (const [name, args, expected] of cases) {
    const answer = await command(name, args)
    t.equal(answer.status, 200, name)
    t.match(answer.json(), expected)
    t.notMatch(answer.text, CANARY)
  }
  t.notMatch((await send('GET', '/config')).text, CANARY)

  t.strictSame(
    (await command('models.list', { query: 'ACME-L' })).json<unknown[]>().length,
    1,
    'names are found in any case',
  )
  t.strictSame(
    (await command('models.list', { query: 'keyless' })).json<unknown[]>().length,
    1,
    'and by their providers',
  )
  t.strictSame((await command('models.list', { query: 'other' })).json(), [])

  const before = Date.now()
  await command('keys.create', { project: 'p', expires: '30d' })
  const { name, expiresAt } = context.created[1]!
  t.match(name, /^key of \d{4}-\d{2}-\d{2}$/)
  t.ok(expiresAt! >= before + 30 * 86_400_000 && expiresAt! <= Date.now() + 30 * 86_400_000)
})

t.test('explain shows which filters run once per request and which once per attempt', async t => {
  const { command } = await start(t)
  const chat = (await command('explain', { endpoint: 'chat' })).json()
  t.strictSame(chat, {
    endpoint: 'chat',
    method: 'POST',
    path: '/v1/chat/completions',
    compat: { reasoning_content: true },
    chain: 'inference',
    filters: [
      { name: 'auth', runs: 'once per request', needs: [], gives: ['principal'] },
      { name: 'route', runs: 'once per request', needs: ['principal'], gives: ['target'], options: { attempts: 3 } },
      { name: 'translate', runs: 'once per attempt', needs: ['target'], gives: ['outbound'] },
    ],
    end: 'provider',
  })
  t.strictSame((await command('explain', { endpoint: '/v1/chat/completions' })).json(), chat, 'a path will do')
  t.match((await command('explain', { endpoint: 'models' })).json(), { end: 'local' })
})

t.test('usage counts whole UTC days, both ends included, thirty by default', async t => {
  const { command, context } = await start(t)
  const january = { from: Date.UTC(2026, 0, 30), to: Date.UTC(2026, 1, 1) }
  const ask = async (args: object) => {
    context.queries.length = 0
    return (await command('usage', { from: '2026-01-30', to: '2026-01-31', ...args })).json()
  }
  const all = await ask({})
  t.match(all, { from: '2026-01-30', to: '2026-01-31', totals: { requests: 12, cost: '1.2345' } })
  t.notMatch(all, { groups: Array })
  t.strictSame(context.queries, [january])

  t.match(await ask({ organization: 'o', project: 'p', groupBy: 'model' }), {
    totals: { requests: 12, inputTokens: 3400, cost: '1.2345', creditsCost: '1.2345', byokCost: '0', storageCost: '0' },
    groupBy: 'model',
    groups: [
      { id: 'acme-large', requests: 12, cost: '1.2345' },
      { id: 'demo', requests: 1, cost: '0' },
    ],
  })
  t.strictSame(context.queries, [{ ...january, orgId: 'o', projectId: 'p' }])
  t.match(await ask({ key: 'k2' }), { totals: { requests: 12 } })
  t.strictSame(context.queries, [{ ...january, keyId: 'k2' }])
  for (const what of ['organization', 'project', 'key']) {
    t.match(await ask({ [what]: 'nope' }), { error: { message: `There is no ${what} "nope".` } })
  }

  const before = Date.now()
  await command('usage')
  const { from, to } = context.queries[0]!
  t.equal(to - from, 30 * 86_400_000)
  t.ok(to > before && to - 86_400_000 <= Date.now(), 'today is the last day')
})

t.test('ready names the part that is missing and nothing else', async t => {
  const { command, send, context } = await start(t)
  context.databaseFault = 'disk I/O error in /var/lib/secret/path'
  const down = await send('GET', '/ready', undefined, {})
  t.equal(down.status, 503)
  t.strictSame(down.json(), { status: 'not ready', reason: 'the database is down' })
  t.match((await command('status')).json(), { ready: false, reason: 'the database is down' }, 'status says the same')
  context.databaseFault = undefined
  t.equal((await send('POST', '/drain')).status, 202)
  t.equal(context.drained, 1)
  const draining = await send('GET', '/ready', undefined, {})
  t.equal(draining.status, 503)
  t.strictSame(draining.json(), { status: 'not ready', reason: 'starting or draining' })
  t.equal((await send('GET', '/live', undefined, {})).status, 200, 'a draining gateway lives')
})

t.test('a refused reload says where the fault is', async t => {
  const { send, context } = await start(t)
  t.strictSame((await send('POST', '/reload')).json(), {
    changed: true,
    version: 'def456',
    restartNeeded: [],
    warnings: [],
  })
  context.reloadFault = new ConfigError('config/gateway.yaml', { line: 7, column: 3 }, 'unknown key "sever"')
  const refused = await send('POST', '/reload')
  t.equal(refused.status, 400)
  t.match(refused.json(), { error: { message: 'config/gateway.yaml:7:3: unknown key "sever"', code: 'bad_request' } })
})

t.test('an unforeseen failure is logged and shows nothing', async t => {
  const { command, context, logged } = await start(t)
  context.storeFault = new Error('SQLITE_CORRUPT in /var/lib/gateway.db')
  const answer = await command('keys.revoke', { id: 'k1' })
  t.equal(answer.status, 500)
  t.notMatch(answer.text, 'SQLITE')
  t.strictSame(logged, [{ err: context.storeFault, path: '/commands/keys.revoke' }])
})

t.test('an address that is taken or unreadable is refused at start', async t => {
  const { address, context } = await start(t)
  const log: Log = { debug() {}, info() {}, warn() {}, error() {} }
  await t.rejects(adminListener({ context, token: TOKEN, listen: address, log }), { code: 'EADDRINUSE' })
  await t.rejects(adminListener({ context, token: TOKEN, listen: '9901', log }), /write host:port/)
})

t.test('the token file is made once, for its owner only, and an empty one is refused', t => {
  const dir = mkdtempSync(join(tmpdir(), 'admin-token-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const path = join(dir, 'data', 'admin.token')
  const token = adminToken(path)
  t.match(token, /^[A-Za-z0-9_-]{43}$/)
  t.equal(statSync(path).mode & 0o777, 0o600)
  t.equal(readFileSync(path, 'utf8').trim(), token)
  t.equal(adminToken(path), token, 'the second start finds it')
  writeFileSync(path, '\n')
  t.throws(() => adminToken(path), /holds no admin token .*delete it to get a new one/)
  t.end()
})
