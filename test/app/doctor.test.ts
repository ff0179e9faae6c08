/** `doctor`, on machines that exist only here. */
import t from 'tap'
import { type Answered, diagnose, type Finding, type Installation, type Machine } from '../../src/app/doctor.ts'
import { StoreError } from '../../src/core/ports.ts'
import type { Provider, Translator } from '../../src/core/translator.ts'
import { DEMO_BASE_URL } from '../../src/demo/address.ts'
import { silent } from '../plugins/wire-kit.ts'

const NOW = Date.UTC(2026, 0, 2, 12)
const SECRET = 'sk-canary-0123456789abcdef'

const provider = (id: string, rest: Partial<Provider> = {}): Provider => ({
  id,
  name: id,
  baseUrl: `https://${id}.example/v1`,
  auth: { scheme: 'bearer' },
  headers: { 'x-version': '1' },
  passHeaders: {},
  credentials: [{ id: 'c1', source: 'platform', secret: SECRET, fingerprint: 'f' }],
  wires: new Map([['chat', { wire: 'openai.chat' } as Translator]]),
  quirks: { drop: new Set(), rename: {}, default: {}, clamp: {} },
  timeouts: { connect: 1, firstEvent: 1, idle: 1, total: 1 },
  concurrency: 1,
  priority: 1,
  dataPolicy: silent,
  reasoningReplay: undefined,
  ...rest,
})
const failing = (code: string) => () => Promise.reject(Object.assign(new Error('no'), { code }))
const answer = (status = 404, rest: Partial<Answered> = {}): Answered => ({
  status,
  date: NOW,
  isGateway: false,
  ...rest,
})

const machine = (rest: Partial<Machine> = {}): Machine => ({
  node: 'v20.19.0',
  version: '0.1.0',
  now: () => NOW,
  listen: async () => {},
  maxFiles: () => 65_536,
  write: async () => {},
  freeBytes: async () => 8 * 1024 ** 3,
  get: async () => answer(),
  ...rest,
})
const storesAt =
  (present: number | undefined, name = '/data/gateway.db') =>
  async () => ({ name, schema: async () => ({ present, known: 3 }) })
const place = (providers: readonly Provider[] = [], rest: Partial<Installation> = {}): Installation => ({
  listen: '127.0.0.1:8080',
  admin: '127.0.0.1:9901',
  maxConnections: 10_000,
  database: '/data/gateway.db',
  config: '/etc/gateway.yaml',
  redis: undefined,
  stores: storesAt(3),
  catalog: async () => ({
    version: 'abc',
    catalog: { providers: new Map(providers.map(one => [one.id, one])), open: new Map() },
  }),
  ...rest,
})
const lines = (findings: readonly Finding[]): string[] => findings.map(({ status, what }) => `${status} ${what}`)
const found = async (at: Installation, on: Machine = machine(), probe = false) => lines(await diagnose(at, on, probe))

t.test('a machine in order has no failure', async t => {
  t.strictSame(await found(place([provider('acme')])), [
    'ok Node v20.19.0',
    'ok gateway 0.1.0',
    'ok configuration /etc/gateway.yaml: valid, version abc',
    'ok schema 3 of /data/gateway.db',
    'ok folder /data: writable, 8192 MiB free',
    'ok public port 127.0.0.1:8080: free',
    'ok admin port 127.0.0.1:9901: free',
    'ok open files: 65536',
    "ok clock: 0 s off the providers'",
    'ok acme: credential set',
    'ok acme: acme.example reached',
  ])
})

t.test('each fault of the machine is found, with a remedy', async t => {
  const cases: readonly (readonly [expected: string, at: Partial<Installation>, on: Partial<Machine>])[] = [
    ['fail Node v20.18.1', {}, { node: 'v20.18.1' }],
    ['fail Node v18.20.0', {}, { node: 'v18.20.0' }],
    [
      'fail configuration: gateway.yaml:1:1: no',
      { catalog: () => Promise.reject(new Error('gateway.yaml:1:1: no')) },
      {},
    ],
    ['warn no database /data/gateway.db', { stores: storesAt(undefined) }, {}],
    ['warn schema 2 of /data/gateway.db, 3 is current', { stores: storesAt(2) }, {}],
    ['ok schema 4 of /data/gateway.db', { stores: storesAt(4) }, {}],
    ['ok schema 3 of stores.postgres', { stores: storesAt(3, 'stores.postgres') }, {}],
    ['fail database: it is newer', { stores: () => Promise.reject(new StoreError('it is newer')) }, {}],
    ['ok stores.redis: answers', { redis: async () => {} }, {}],
    ['warn stores.redis: no', { redis: failing('ECONNREFUSED') }, {}],
    ['fail folder /data: EACCES', {}, { write: failing('EACCES') }],
    ['fail folder /data: writable, 50 MiB free', {}, { freeBytes: async () => 50 * 1024 ** 2 }],
    ['warn folder /data: writable, 500 MiB free', {}, { freeBytes: async () => 500 * 1024 ** 2 }],
    ['fail public port 127.0.0.1:8080: EACCES', {}, { listen: failing('EACCES') }],
    ['fail admin port 127.0.0.1:9901: EADDRNOTAVAIL', {}, { listen: failing('EADDRNOTAVAIL') }],
    ['fail public port 127.0.0.1:8080: another program uses it', {}, { listen: failing('EADDRINUSE') }],
    [
      'ok admin port 127.0.0.1:9901: a gateway runs',
      {},
      { listen: failing('EADDRINUSE'), get: async () => answer(200, { isGateway: true }) },
    ],
    ['warn open files: 1024; 10000 connections need 20000', {}, { maxFiles: () => 1024 }],
    ['ok open files: the system names no limit', {}, { maxFiles: () => undefined }],
    ['warn clock: no provider answered to compare it with', {}, { get: failing('ENOTFOUND') }],
    ["warn clock: 60 s off the providers'", {}, { now: () => NOW - 60_000 }],
    ["fail clock: 600 s off the providers'", {}, { now: () => NOW + 600_000 }],
  ]
  for (const [expected, at, on] of cases) {
    const findings = await diagnose(place([provider('acme')], at), machine(on), false)
    t.ok(lines(findings).includes(expected), `${expected}: ${lines(findings).join(', ')}`)
    t.ok(
      findings.every(({ status, remedy }) => (remedy === null) === (status === 'ok')),
      'a remedy for each fault',
    )
  }
})

t.test('the way to a provider fails in DNS, in TLS or between', async t => {
  for (const [code, said] of [
    ['ENOTFOUND', 'DNS has no answer (ENOTFOUND)'],
    ['EAI_AGAIN', 'DNS has no answer (EAI_AGAIN)'],
    ['CERT_HAS_EXPIRED', 'TLS fails (CERT_HAS_EXPIRED)'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'TLS fails (SELF_SIGNED_CERT_IN_CHAIN)'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'TLS fails (ERR_TLS_CERT_ALTNAME_INVALID)'],
    ['ETIMEDOUT', 'no connection (ETIMEDOUT)'],
    ['ECONNREFUSED', 'no connection (ECONNREFUSED)'],
  ] as const) {
    const all = await found(place([provider('acme')]), machine({ get: failing(code) }))
    t.ok(all.includes(`fail acme: acme.example: ${said}`), all.join(', '))
  }
  const engine = provider('engine', { auth: { scheme: 'none' }, credentials: [] })
  const searched = { searched: true, listed: [], find: () => undefined }
  const catalog = { providers: new Map([['engine', engine]]), open: new Map([['engine', searched]]) }
  const all = await found(
    place([], { catalog: async () => ({ version: 'abc', catalog }) }),
    machine({ get: failing('ECONNREFUSED') }),
  )
  t.ok(all.includes('warn engine: engine.example is not there'), 'an engine that comes and goes is no failure')
})

t.test('a provider without a credential, and the simulated one, are not connected to', async t => {
  const keyless = provider('keyless', { credentials: [], variables: { secret: ['KEYLESS_API_KEY'], address: [] } })
  const demo = provider('demo', { baseUrl: DEMO_BASE_URL, auth: { scheme: 'none' }, credentials: [] })
  const findings = await diagnose(
    place([keyless, demo]),
    machine({
      get: url => {
        throw new Error(`called ${url}`)
      },
    }),
    true,
  )
  t.match(findings.slice(-2), [
    { status: 'warn', what: 'keyless: no credential', remedy: 'set KEYLESS_API_KEY to use it' },
    { status: 'ok', what: 'demo: needs no credential' },
  ])
})

t.test('a probe shows a credential to the list of models alone, and judges by the answer', async t => {
  const cases: readonly (readonly [withIt: number, withoutIt: number, expected: string])[] = [
    [200, 401, 'ok acme: credential accepted'],
    [401, 401, 'fail acme: credential refused with status 401'],
    [403, 401, 'fail acme: credential refused with status 403'],
    [404, 404, 'warn acme: credential not judged: status 404'],
    [429, 401, 'warn acme: credential not judged: status 429'],
    [200, 200, 'warn acme: credential not judged: its list of models is public'],
  ]
  for (const [withIt, withoutIt, expected] of cases) {
    const called: string[] = []
    const get: Machine['get'] = async (url, headers = []) => {
      called.push(url)
      const isSigned = headers.includes(`Bearer ${SECRET}`)
      if (url.endsWith('/models')) t.ok(headers.includes('x-version'), 'with the headers of the provider')
      return answer(url.endsWith('/models') ? (isSigned ? withIt : withoutIt) : 404)
    }
    const findings = await diagnose(place([provider('acme')]), machine({ get }), true)
    t.equal(lines(findings).at(-1), expected)
    t.strictSame([...new Set(called)], ['https://acme.example/', 'https://acme.example/v1/models'])
    t.notMatch(JSON.stringify(findings), SECRET)
  }
  const aws = provider('aws', {
    auth: { scheme: 'aws-sigv4', service: 'bedrock', region: 'us-east-1' } as Provider['auth'],
  })
  t.match(await found(place([aws]), machine(), true), /aws: credential not judged/)
})
