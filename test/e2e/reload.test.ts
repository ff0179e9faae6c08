/** Configuration that changes under traffic, and metrics that strange names do not grow. */
import { spawnSync } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { judged, timing } from '../helpers/figure.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants, metric } from '../helpers/invariants.ts'
import { inspected, memory } from '../helpers/memory.ts'
import { raw } from '../helpers/raw.ts'
import { runs } from '../helpers/runs.ts'
import { readEvents } from '../helpers/sse.ts'
import { startUpstream } from '../helpers/upstream.ts'

const RELOADS = judged ? 200 : 125
/** From then on memory may grow by no more than the margin, in MiB; one kept snapshot for each reload makes 3. */
const WARM = judged ? 50 : 25
const MARGIN = { heap: 2, rss: 16 }
/** What is kept grows in every round; what the allocators hold grows once, as traffic happens to fall. */
const ROUNDS = 3
const STRANGERS = runs(10_000)
/** Fewer than may wait on a connection: in a full turn of the loop they do. */
const PER_SOCKET = 100

const model = (id: string) => ({ id, name: id, family: 'test', input: ['text'], output: ['text'] })
const upstream = await startUpstream(t)
await upstream.script('steady', [{ delayMs: 20, usage: { prompt: 100, completion: 10 } }])
await upstream.script('extra', [{ usage: { prompt: 100, completion: 10 } }])
const gateway = await startGateway(t, {
  providers: { steady: { base_url: upstream.url('steady'), models: [testMapping] } },
  models: [model('test'), model('spare')],
  env: inspected,
  // A machine that is busy with other things is not judged here.
  config: { endpoints: { chat: { ratelimit: { rpm: 1_000_000 }, admission: { lag: '60s' } } } },
})
const { pid } = gateway

const EXTRA = 'providers.d/extra.yaml'
const GATEWAY = 'config/gateway.yaml'
const extra = `provider: extra
name: Extra
base_url: ${upstream.url('extra')}
auth: { scheme: bearer, secret: sk-extra }
wires: { chat: openai.chat }
timeouts: { idle: 90s }
models:
  - model: spare
    id: spare-1
    pricing: { prompt: "1", completion: "2" }
`
const settings = await readFile(gateway.configPath, 'utf8')
const originals: Record<string, string> = { [EXTRA]: extra, [GATEWAY]: settings }

interface Answer {
  usage: { cost: number }
}
interface Load {
  /** Resolves when so many more were answered. */
  more(count: number): Promise<void>
  /** Ends it; resolves with what went wrong, and what the answers cost, each cost once. */
  stop(): Promise<{ answers: number; failures: string[]; costs: number[] }>
}
/** So many clients, every other of which streams, ask for `test` again and again. */
function load(clients: number): Load {
  const failures: string[] = []
  const costs = new Set<number>()
  let answers = 0
  let stopped = false
  const ask = async (stream: boolean) => {
    const response = await gateway.chat({ model: 'test', stream, messages: [{ role: 'user', content: 'Hi' }] })
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
    const read = stream ? await readEvents<Answer>(response) : { data: [(await response.json()) as Answer] }
    if ('terminator' in read && read.terminator === null) throw new Error('the stream was cut')
    costs.add(read.data.at(-1)!.usage.cost)
    answers++
  }
  const running = Array.from({ length: clients }, async (_, n) => {
    while (!stopped) await ask(n % 2 === 0).catch(error => void failures.push(String(error)))
  })
  return {
    async more(count) {
      const wanted = answers + count
      // Failures are reported by `stop`.
      while (answers < wanted && failures.length === 0) await sleep(10)
    },
    async stop() {
      stopped = true
      await Promise.all(running)
      return { answers, failures, costs: [...costs].sort() }
    },
  }
}

/** Milliseconds until `done` holds; gives up after thirty seconds. */
async function until(done: () => Promise<boolean>): Promise<number> {
  const start = performance.now()
  while (!(await done())) {
    if (performance.now() - start > 30_000) return Number.POSITIVE_INFINITY
    await sleep(10)
  }
  return performance.now() - start
}

/** The cost of an answer of `spare`, or the code of its refusal. */
async function spare(): Promise<number | string> {
  const response = await gateway.chat({ model: 'spare', messages: [{ role: 'user', content: 'Hi' }] })
  const body = (await response.json()) as Answer & { error?: { code: string } }
  return body.error?.code ?? body.usage.cost
}

const changes: { says: string; run: () => Promise<unknown>; gives: number | string }[] = [
  { says: 'a new file', run: () => gateway.writeFile(EXTRA, extra), gives: 0.00012 },
  {
    says: 'a price that is edited in place',
    run: () => writeFile(join(gateway.dir, EXTRA), extra.replace('prompt: "1"', 'prompt: "3"')),
    gives: 0.00032,
  },
  { says: 'a file that is removed', run: () => rm(join(gateway.dir, EXTRA)), gives: 'model_not_supported' },
  { says: 'a file that comes back', run: () => gateway.writeFile(EXTRA, extra), gives: 0.00012 },
]

t.test('a change in providers.d is soon live, without a restart', async t => {
  t.equal(await spare(), 'model_not_supported')
  const traffic = load(2)
  for (const { says, run, gives } of changes) {
    await run()
    const value = await until(async () => (await spare()) === gives)
    t.ok(value < Number.POSITIVE_INFINITY, `${says} is live`)
    timing(t, { id: 'CF', what: `until ${says} is live`, value, unit: 'ms', atMost: 1000 })
  }
  t.match(await traffic.stop(), { failures: [], costs: [0.00012] })
  t.equal(gateway.pid, pid)
})

/** Where the word stands in the settings that have it moved or removed; both count from 1. */
function place(word: string, from: string, to: string): string {
  const before = settings.replace(from, to).split(word)[0]!.split('\n')
  return `${before.length}:${before.at(-1)!.length + 1}`
}
const above: [string, string] = ['    - route:', '    - translate\n    - route:']
const open: [string, string] = ['    - auth\n', '']
const duration = 'expected a duration with a unit, such as "30s"'

/** What is replaced by what, and what is said of it. */
const faults: [says: string, file: string, from: string, to: string, said: string][] = [
  ['bad YAML', EXTRA, '  - model', '\t- model', '8:1: tabs are not allowed as indentation; use spaces'],
  ['a brace that stays open', EXTRA, 'chat }', 'chat', '6:1: Flow map in block collection must .* end with a }'],
  ['an unknown key', EXTRA, 'name:', 'nmae:', '2:1: unknown key "nmae"; did you mean "name"\\?'],
  ['no unit', EXTRA, '90s', '90', `6:19: ${duration}, got 90`],
  ['a wrong unit', EXTRA, '90s', '90KiB', `6:19: ${duration}, got "90KiB"`],
  ['an unknown wire', EXTRA, '.chat', '.caht', '5:16: unknown wire "openai.caht"; did you mean "openai.chat"\\?'],
  ['an unknown model', EXTRA, ': spare\n', ': spar\n', '8:12: unknown model "spar"; did you mean "spare"\\?'],
  ['no auth', EXTRA, 'auth: { scheme: bearer, secret: sk-extra }\n', '', '1:1: missing key "auth"'],
  ['no secret', EXTRA, ', secret: sk-extra', '', '4:7: auth scheme "bearer" needs the key "secret"'],
  ['an empty file', EXTRA, extra, '', '1:1: the file is empty'],
  [
    'translate above route',
    ...[GATEWAY, ...above],
    `${place('translate', ...above)}: filter "translate" needs "target", .*; put "route" above it`,
  ],
  [
    'a chain without auth',
    ...[GATEWAY, ...open],
    `${place('ratelimit', ...open)}: filter "ratelimit" needs "principal", .*; put "auth" above it`,
  ],
] as [string, string, string, string, string][]

t.test('CF-01 a broken file is refused with its place and a suggestion, and traffic goes on', async t => {
  const traffic = load(2)
  const reloads = async (result: string) => metric(await gateway.metrics(), 'gateway_config_reloads_total', { result })!
  for (const [says, file, from, to, said] of faults) {
    const failed = await reloads('failed')
    await gateway.writeFile(file, originals[file]!.replace(from, to))
    await until(async () => (await reloads('failed')) > failed)
    t.equal(metric(await gateway.metrics(), 'gateway_config_reload_successful'), 0, `${says}: /metrics shows it`)

    const expected = new RegExp(`^${file}:${said}$`)
    const answer = await gateway.admin('POST', '/reload')
    t.equal(answer.status, 400)
    t.match(((await answer.json()) as { error: { message: string } }).error.message, expected, says)
    const status = await (await gateway.admin('POST', '/commands/status', {})).json()
    t.match(status, { lastReload: { ok: false, error: expected } })
    t.equal(await spare(), 0.00012, 'what was in force stays in force')
    await traffic.more(2)

    await gateway.writeFile(file, originals[file]!)
    t.equal((await gateway.admin('POST', '/reload')).status, 200)
    t.equal(metric(await gateway.metrics(), 'gateway_config_reload_successful'), 1)
  }
  const { answers, failures, costs } = await traffic.stop()
  t.strictSame({ failures, costs }, { failures: [], costs: [0.00012] })
  t.ok(answers >= 2 * faults.length, `${answers} answers`)
})

/** Reloads while clients ask: prices of 1 and 3 USD in turn. */
async function reloadUnderLoad(t: Test, times: number): Promise<number[]> {
  const traffic = load(judged ? 8 : 4)
  for (let n = 1; n <= times; n++) {
    const models = [{ ...testMapping, pricing: { prompt: n % 2 ? '3' : '1', completion: '2' } }]
    await gateway.writeProvider('steady', { name: `Steady ${n}`, base_url: upstream.url('steady'), models })
    const answer = await gateway.admin('POST', '/reload')
    if (answer.status !== 200) t.fail(`reload ${n}: ${await answer.text()}`)
  }
  const { answers, failures, costs } = await traffic.stop()
  t.strictSame(failures, [], `none of ${answers} requests failed`)
  return costs
}

t.test(`CF-04, CF-05 ${RELOADS} reloads under load fail no request, and leave no memory behind`, async t => {
  const version = async () => /gateway_config_info\{version="(\w+)"\}/.exec(await gateway.metrics())![1]
  const first = await version()
  await reloadUnderLoad(t, WARM)
  const rounds = [await memory(gateway)]
  const grown = (what: keyof typeof MARGIN) => rounds.at(-1)![what] - rounds.at(-2)![what]
  do {
    const costs = await reloadUnderLoad(t, RELOADS - WARM)
    t.strictSame(costs, [0.00012, 0.00032], 'every answer has the price of a version')
    rounds.push(await memory(gateway))
  } while (rounds.length <= ROUNDS && (grown('heap') >= MARGIN.heap || grown('rss') >= MARGIN.rss))
  t.comment(JSON.stringify(rounds))
  t.ok(grown('heap') < MARGIN.heap, `the heap grew by less than ${MARGIN.heap} MiB`)
  t.ok(grown('rss') < MARGIN.rss, `the process grew by less than ${MARGIN.rss} MiB`)
  t.not(await version(), first)
})

const promtool = (input: string) => spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' })
const skip = promtool('').error ? 'promtool is not installed' : false
t.test('the exposition passes promtool', { skip }, async t => {
  const { status, stdout, stderr } = promtool(await gateway.metrics())
  t.strictSame({ status, stdout, stderr }, { status: 0, stdout: '', stderr: '' })
})

/** Names and labels of all series of the gateway's own. */
const series = async () => [...(await gateway.metrics()).matchAll(/^(gateway_\S+) /gm)].map(match => match[1]).sort()

const request = (n: number, key: string, model: string) => {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] })
  const head = [
    ...[
      'POST /v1/chat/completions HTTP/1.1',
      'host: gateway',
      'content-type: application/json',
      `content-length: ${body.length}`,
    ],
    ...[`authorization: Bearer ${key}`, `x-source: stranger-${n}.example`],
    `connection: ${(n + 1) % PER_SOCKET === 0 ? 'close' : 'keep-alive'}`,
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
const strangers: { says: string; status: number; of: (n: number) => string }[] = [
  { says: 'unknown models', status: 404, of: n => request(n, gateway.key, `model-${n}`) },
  { says: 'unknown keys', status: 401, of: n => request(n, `mgw_${n}`, `model-${n}`) },
]

for (const { says, status, of } of strangers) {
  t.test(`SI-20 ${STRANGERS} distinct ${says} add no series`, async t => {
    await raw(gateway.port, of(0), { responses: 1 })
    const before = await series()
    const seen: number[] = []
    for (let sent = 0; sent < STRANGERS; sent += PER_SOCKET) {
      const bytes = Array.from({ length: PER_SOCKET }, (_, n) => of(sent + n)).join('')
      const { responses } = await raw(gateway.port, bytes, { timeoutMs: 20_000 })
      seen.push(...responses.map(response => response.status))
    }
    t.strictSame([seen.length, [...new Set(seen)]], [STRANGERS, [status]])
    t.strictSame(await series(), before)
  })
}

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream, { pid }))
