/** Metrics, log and event-loop lag. */
import { spawnSync } from 'node:child_process'
import t, { type Test } from 'tap'
import { parseExposition } from '../../src/cli/operation.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { Lag } from '../../src/telemetry/load.ts'
import { createLog, logLevel, type logLevels } from '../../src/telemetry/log.ts'
import { PrometheusMetrics } from '../../src/telemetry/metrics.ts'

function metricsOf(t: Test): PrometheusMetrics {
  const lag = new Lag()
  t.teardown(() => lag.close())
  return new PrometheusMetrics({ version: '1.2.3', lag })
}

const at = { seconds: 0.5, firstTokenSeconds: 0.1, overheadSeconds: 0.0002 }

/** Everything that the port and the reload can tell. */
function feed(metrics: PrometheusMetrics): void {
  metrics.inFlight(1)
  metrics.request({ endpoint: 'chat', provider: 'acme', model: 'acme-large', outcome: 'ok' }, at)
  metrics.tokens('acme', 'acme-large', 'prompt', 100)
  metrics.tokens('acme', 'acme-large', 'prompt', 20)
  metrics.cost('acme', 'acme-large', 0.25)
  metrics.attempt('acme', 'acme-large', 'ok')
  metrics.refusal('auth', 'invalid_api_key')
  metrics.retryBudgetSpent('acme-large')
  metrics.ruleApplied('house.yaml#1', 'deny')
  metrics.unpriced('acme', 'acme-large')
  metrics.reload('changed', 'v1', 1_000_000)
  metrics.reload('changed', 'v2', 2_000_000)
  metrics.reload('failed', 'v2', 3_000_000)
}

async function read(metrics: PrometheusMetrics) {
  const text = await metrics.text()
  const samples = parseExposition(text)
  const of = (name: string, labels: object = {}) =>
    samples.filter(sample => sample.name === name && Object.entries(labels).every(([k, v]) => sample.labels[k] === v))
  return { text, samples, of, value: (name: string, labels?: object) => of(name, labels)[0]?.value }
}

t.test('what is counted is what is exposed', async t => {
  const metrics = metricsOf(t)
  feed(metrics)
  const { of, value, text, samples } = await read(metrics)
  const model = { provider: 'acme', model: 'acme-large' }
  const cases: [string, object, number][] = [
    ['gateway_requests_total', { endpoint: 'chat', outcome: 'ok', ...model }, 1],
    ['gateway_request_duration_seconds_sum', { endpoint: 'chat', provider: 'acme' }, 0.5],
    ['gateway_time_to_first_token_seconds_count', { endpoint: 'chat', provider: 'acme' }, 1],
    ['gateway_overhead_seconds_bucket', { endpoint: 'chat', le: '0.0001' }, 0],
    ['gateway_overhead_seconds_bucket', { endpoint: 'chat', le: '0.00025' }, 1],
    ['gateway_tokens_total', { kind: 'prompt', ...model }, 120],
    ['gateway_cost_usd_total', model, 0.25],
    ['gateway_attempts_total', { outcome: 'ok', ...model }, 1],
    ['gateway_filter_refusals_total', { filter: 'auth', code: 'invalid_api_key' }, 1],
    ['gateway_retry_budget_spent_total', { model: 'acme-large' }, 1],
    ['gateway_unpriced_requests_total', model, 1],
    ['gateway_requests_in_flight', {}, 1],
    ['gateway_build_info', { version: '1.2.3' }, 1],
    ['gateway_config_reloads_total', { result: 'changed' }, 2],
    ['gateway_config_reloads_total', { result: 'failed' }, 1],
    ['gateway_config_reloads_total', { result: 'unchanged' }, 0],
    ['gateway_config_reload_successful', {}, 0],
    ['gateway_config_reload_last_success_seconds', {}, 2000],
  ]
  for (const [name, labels, expected] of cases) t.equal(value(name, labels), expected, name)
  t.strictSame(
    of('gateway_config_info').map(sample => sample.labels),
    [{ version: 'v2' }],
    'only the configuration in force is shown',
  )
  for (const quantile of ['0.5', '0.99', '1']) t.type(value('gateway_event_loop_lag_seconds', { quantile }), 'number')
  t.type(value('process_resident_memory_bytes'), 'number')
  const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  t.equal(samples.length, lines.length, 'every line is a sample')
  t.equal(metrics.contentType, 'text/plain; version=0.0.4; charset=utf-8')
})

t.test('two scrapes of the same counts are the same', async t => {
  const metrics = metricsOf(t)
  feed(metrics)
  await metrics.text()
  t.equal((await read(metrics)).value('gateway_tokens_total'), 120)
})

t.test('two gateways in one process do not mix', async t => {
  const [one, two] = [metricsOf(t), metricsOf(t)]
  feed(one)
  t.equal((await read(two)).value('gateway_tokens_total'), undefined)
})

t.test('ten thousand unknown models stay within the bound, and nothing goes uncounted', async t => {
  const metrics = metricsOf(t)
  const requests = 10_000
  for (let i = 0; i < requests; i++) {
    const [provider, model] = [`provider-${i}`, `model-${i}\n"}`]
    metrics.request({ endpoint: 'chat', provider, model, outcome: 'ok' }, at)
    metrics.tokens(provider, model, 'prompt', 1)
    metrics.cost(provider, model, 1)
    metrics.attempt(provider, model, `outcome-${i}`)
    metrics.unpriced(provider, model)
    metrics.refusal(`filter-${i}`, `code-${i}`)
  }
  const started = performance.now()
  const { of, samples, text, value } = await read(metrics)
  t.comment(`${text.length} bytes in ${Math.round(performance.now() - started)} ms`)
  const counters = ['requests', 'tokens', 'cost_usd', 'attempts', 'unpriced_requests', 'filter_refusals']
  for (const name of counters.map(counter => `gateway_${counter}_total`)) {
    t.ok(of(name).length <= 2001, `${name} has ${of(name).length} series`)
    t.equal(
      of(name).reduce((sum, sample) => sum + Number(sample.value), 0),
      requests,
      `${name} counts all`,
    )
  }
  const histograms = samples.filter(sample => sample.name.startsWith('gateway_request_duration_seconds'))
  t.ok(histograms.length <= 2015, `a histogram has ${histograms.length} lines`)
  t.ok(Number(value('gateway_requests_total', { endpoint: 'chat', provider: 'other', model: 'other' })) > 8000)

  const series = samples.length
  metrics.request({ endpoint: 'chat', provider: 'late', model: 'late', outcome: 'ok' }, at)
  t.equal((await read(metrics)).samples.length, series, 'one more model adds no series')
})

t.test('numbers that are none are left out', async t => {
  const metrics = metricsOf(t)
  const labels = { endpoint: 'chat', provider: 'acme', model: 'acme-large', outcome: 'ok' }
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, -1, undefined as unknown as number]) {
    metrics.tokens('acme', 'acme-large', 'prompt', bad)
    metrics.cost('acme', 'acme-large', bad)
    metrics.request(labels, { seconds: bad, overheadSeconds: bad })
  }
  const { value } = await read(metrics)
  t.equal(value('gateway_tokens_total'), 0)
  t.equal(value('gateway_cost_usd_total'), 0)
  t.equal(value('gateway_requests_total'), 4)
  t.equal(value('gateway_request_duration_seconds_sum'), 0, 'a clock that went back counts as no time')
  t.equal(value('gateway_request_duration_seconds_count'), 1)
})

t.test('a gauge that cannot be read has no line', async t => {
  const metrics = metricsOf(t)
  let isBroken = false
  const read = async () => {
    if (isBroken) throw new Error('no disk')
    return 7
  }
  metrics.observed({ name: 'gateway_free_bytes', help: 'Free.', aggregator: 'first', read })
  metrics.observed({
    ...{ name: 'gateway_up', help: 'Up.', labels: ['provider'], aggregator: 'min' },
    read: () => [{ labels: { provider: 'one' }, value: 1 }],
  })
  const before = await metrics.text()
  t.match(before, /^gateway_free_bytes 7$/m)
  t.match(before, /^gateway_up\{provider="one"\} 1$/m)
  isBroken = true
  t.notMatch(await metrics.text(), /^gateway_free_bytes \d/m)
})

const promtool = spawnSync('promtool', ['--version']).status === 0
t.test('promtool finds no fault', { skip: !promtool && 'promtool is not installed' }, async t => {
  const metrics = metricsOf(t)
  feed(metrics)
  const check = spawnSync('promtool', ['check', 'metrics'], { input: await metrics.text(), encoding: 'utf8' })
  t.strictSame([check.status, check.stdout, check.stderr], [0, '', ''])
})

t.test('lag is seen while a tick is overdue, follows a loop that stays late, and falls when it recovers', t => {
  let fire = () => {}
  t.intercept(globalThis, 'setInterval', {
    value: (tick: () => void) => {
      fire = tick
      return { unref() {} }
    },
  })
  let now = 0
  let used = 0
  const lag = new Lag({ now: () => now, used: () => used })
  t.teardown(() => lag.close())
  const pass = (ms: number, ownMs = ms) => {
    now += ms
    used += ownMs
  }
  const tick = (lateMs: number, ownMs?: number) => {
    pass(100 + lateMs, ownMs)
    fire()
  }
  t.equal(lag.lagMs(), 0)
  tick(0)
  t.equal(lag.lagMs(), 0)
  pass(500)
  t.equal(lag.lagMs(), 100, 'a quarter of what is overdue, before the tick comes')
  fire()
  t.equal(lag.lagMs(), 100)
  tick(400)
  t.equal(lag.lagMs(), 175)
  for (let ticks = 0; ticks < 20; ticks++) tick(400)
  t.ok(lag.lagMs() > 395, 'a loop that stays late is as late as that')
  for (let ticks = 0; ticks < 6; ticks++) tick(0)
  t.ok(lag.lagMs() < 100)
  lag.forget()
  t.equal(lag.lagMs(), 0)
  for (let ticks = 0; ticks < 20; ticks++) tick(400, 50)
  t.ok(lag.lagMs() <= 50, 'time that other processes took is not ours')
  pass(1000, 10)
  t.ok(lag.lagMs() <= 50)
  t.end()
})

t.test('the distribution of lag is of the time since it was last asked for', async t => {
  const began = performance.now()
  const lag = new Lag()
  t.teardown(() => lag.close())
  const first = lag.sample()
  t.strictSame(first, { p50: 0, p99: 0, max: 0, sum: 0, count: 0 })
  let sample = first
  // The monitor counts from its second turn on, so blocks are repeated until one has been seen.
  while (sample.max < 0.02) {
    await new Promise(resolve => setTimeout(resolve, 20))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60)
    await new Promise(resolve => setTimeout(resolve, 1))
    sample = lag.sample()
  }
  t.ok(sample.max <= (performance.now() - began) / 1000, 'in seconds, of those that have passed')
  t.ok(sample.sum > 0 && sample.count > 0)
  t.ok(sample.p50 <= sample.p99 && sample.p99 <= sample.max + 0.001)
})

/** A log whose lines are kept. */
function logTo(level: (typeof logLevels)[number]) {
  const lines: string[] = []
  return { log: createLog(level, { write: line => void lines.push(line) }), lines }
}

t.test('what a provider says of an account, which may repeat a prompt, is in no line about its error', t => {
  const { log, lines } = logTo('info')
  const detail = 'PROMPTCANARY is not allowed'
  const error = new GatewayError({
    status: 502,
    type: 'upstream_error',
    code: 'upstream_error',
    message: 'It failed.',
    detail,
  })
  log.warn({ err: error }, 'job step failed')
  log.warn({ err: new Error('outer', { cause: error }) }, 'job step failed')
  t.match(lines.join(''), 'It failed.')
  t.notMatch(lines.join(''), 'PROMPTCANARY')
  t.end()
})

t.test('no secret reaches the log, wherever it stands', t => {
  const own = `mgw_${'a1B2'.repeat(10)}`
  const key = 'sk-proj-CANARY0123456789'
  const plain = 'correct-horse-CANARY-staple'
  const circular: Record<string, unknown> = { name: 'loop' }
  circular.self = circular
  const cause = new Error(`upstream said: invalid key ${key}`)
  const error = Object.assign(new Error(`cannot call with Bearer ${plain}`, { cause }), {
    code: 'EFAIL',
    config: { headers: { authorization: plain } },
  })
  const fields: object[] = [
    { authorization: plain },
    { Authorization: plain, 'proxy-authorization': plain },
    { headers: { 'x-api-key': plain, cookie: plain, 'set-cookie': [plain] } },
    { key: plain, token: plain, secret: plain, password: plain },
    { apiKey: plain, client_secret: plain, accessToken: plain, ADMIN_TOKEN: plain, privateKey: plain },
    { token: [plain, { deep: plain }] },
    { list: [{ note: `uses ${key} today` }] },
    { note: `curl -H "Authorization: Bearer ${plain}" -H 'x-api-key: ${plain}'` },
    { note: `Basic ${plain}` },
    { url: `https://api.example/v1?key=${plain}&x=1`, again: `https://user:${plain}@api.example/` },
    { note: own, more: `ek_${'b'.repeat(30)}CANARY` },
    { note: `AIza${'c'.repeat(20)}CANARY` },
    { err: error },
    error,
    { err: new GatewayError({ status: 500, type: 'api_error', code: null, message: key, cause: error }) },
    { bytes: Buffer.from(plain), map: { a: { b: { c: { d: { e: { f: { g: plain } } } } } } } },
    circular,
  ]
  const { log, lines } = logTo('debug')
  for (const each of fields) log.error(each, 'failed')
  for (const text of [`with ${key}`, `Bearer ${plain}`, `made ${own}`]) log.info({}, text)
  t.equal(lines.length, fields.length + 3)
  for (const line of lines) {
    t.doesNotThrow(() => JSON.parse(line), 'every line is JSON')
    t.notMatch(line, /CANARY/)
    t.notMatch(line, own)
  }
  t.end()
})

t.test('what is no secret stays legible', t => {
  const { log, lines } = logTo('info')
  const cause = new Error('disk full')
  const error = Object.assign(new Error('write failed', { cause }), { code: 'ENOSPC', line: 7 })
  log.warn(
    { keyId: 'k1', tokens: 12, cost: 5n, at: new Date(0), models: ['sky-1'], none: null },
    'a "line"\nbreak \u001b[31m',
  )
  log.error({ err: error }, 'failed')
  const [first, second] = lines.map(line => JSON.parse(line) as Record<string, never>)
  t.match(first, {
    level: 'warn',
    time: /^\d{4}-\d{2}-\d{2}T/,
    keyId: 'k1',
    tokens: 12,
    cost: '5',
    at: '1970-01-01T00:00:00.000Z',
    models: ['sky-1'],
    none: null,
    msg: 'a "line"\nbreak \u001b[31m',
  })
  t.match(second, {
    level: 'error',
    err: {
      type: 'Error',
      message: 'write failed',
      code: 'ENOSPC',
      line: 7,
      stack: String,
      cause: { message: 'disk full' },
    },
  })
  for (const line of lines) {
    t.equal(line.indexOf('\n'), line.length - 1, 'one line')
    t.notOk(line.includes('\u001b'), 'nothing that steers a terminal')
  }
  t.end()
})

t.test('the level decides what is written', t => {
  const written = (level: (typeof logLevels)[number]) => {
    const { log, lines } = logTo(level)
    log.debug({}, 'd')
    log.info({}, 'i')
    log.warn({}, 'w')
    log.error({}, 'e')
    return lines.map(line => (JSON.parse(line) as { msg: string }).msg).join('')
  }
  t.equal(written('debug'), 'diwe')
  t.equal(written('info'), 'iwe')
  t.equal(written('warn'), 'we')
  t.equal(written('error'), 'e')
  t.equal(written('silent'), '')
  t.equal(logLevel(undefined), 'info')
  t.equal(logLevel(''), 'info')
  t.equal(logLevel('debug'), 'debug')
  t.throws(() => logLevel('loud'), /GATEWAY_LOG_LEVEL is "loud"; it must be one of debug, info, warn, error, silent/)
  t.end()
})
