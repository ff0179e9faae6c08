/** What is measured of a request when it is over. */
import t from 'tap'
import type { Attempt } from '../../src/core/attempt.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Log, Metrics, Services } from '../../src/core/ports.ts'
import { telemetry } from '../../src/filters/telemetry.ts'
import { errors, type GatewayError } from '../../src/lib/error.ts'
import { type ExchangeFacts, exchange, principal } from '../core/kit.ts'
import { principalOf } from '../core/principal.ts'
import { target } from '../plugins/wire-kit.ts'

type Times = Parameters<Metrics['request']>[1]

function measured(attempts: Attempt[], stream = false): Times {
  let times: Times | undefined
  const metrics: Partial<Metrics> = {
    attempt() {},
    request(_, at) {
      times = at
    },
  }
  const filter = telemetry.create({ log: 'none' }, { metrics } as unknown as Services)
  const ex = exchange({ request: { model: 'm', messages: [], stream } })
  const { start } = ex.timings
  Object.assign(ex.timings, { sent: start + 10_010, answered: start + 10_030, firstToken: start + 10_030 })
  ex.timings.end = start + 10_040
  ex.attempts.push(...attempts)
  filter.finish!(ex, true)
  return times!
}

const one = {
  target: target(),
  status: 200,
  succeeded: true,
  errorType: 'none',
  durationMs: 30,
  startedMs: 0,
  reason: null,
} as const
const failed = {
  target: target(),
  status: 0,
  succeeded: false,
  errorType: 'timeout',
  durationMs: 10_000,
  startedMs: 0,
  reason: 'upstream_timeout',
} as const

t.test('the wait for a provider that failed is not reported as time of the gateway', async t => {
  t.equal(Math.round(measured([one]).overheadSeconds! * 1000), 10_020, 'before it was sent, and after it was answered')
  const twice = measured([failed, one])
  t.equal(twice.overheadSeconds, undefined)
  t.equal(Math.round(twice.seconds * 1000), 10_040)
})

t.test('the time to the first token is that of streams alone', async t => {
  t.equal(Math.round(measured([one], true).firstTokenSeconds! * 1000), 10_030)
  t.equal(measured([one]).firstTokenSeconds, undefined)
})

t.test('offers of own providers are counted under one name, whatever tenants call them', async t => {
  const counted: string[] = []
  const metrics: Partial<Metrics> = {
    attempt: (provider, model) => void counted.push(`${provider} ${model}`),
    request: ({ provider, model }) => void counted.push(`${provider} ${model}`),
  }
  const filter = telemetry.create({ log: 'none' }, { metrics } as unknown as Services)
  const own = target({ provider: { id: 'secret-ai', owner: 'org-1' } })
  const ex = exchange({ request: { model: 'm', messages: [] } })
  ex.target = own
  ex.attempts.push({ ...one, target: own })
  filter.finish!(ex, true)
  const replay = exchange({
    request: { model: 'm', messages: [] },
    snapshot: {
      catalog: { models: new Map(), aliases: new Map(), providers: new Map([[own.provider.id, own.provider]]) },
    },
  })
  for (const provider of ['secret-ai', 'gone-ai']) {
    replay.answer.cached = { provider, model: 'm', externalId: 'm', logId: '', at: 0 }
    filter.finish!(replay, true)
  }
  t.strictSame(counted, Array(4).fill('custom *'))
})

interface Line {
  readonly level: string
  readonly message: string
  readonly fields: Record<string, unknown>
}

/** A filter that keeps its log lines, and the clock that it reads. */
function logging(selected: 'none' | 'errors' | 'all' = 'errors') {
  const lines: Line[] = []
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, message, fields: fields as Record<string, unknown> })
  const log: Log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  const metrics: Partial<Metrics> = { attempt() {}, request() {}, refusal() {} }
  const clock = { now: 0 }
  const services = { metrics, log, now: () => clock.now } as unknown as Services
  const filter = telemetry.create({ log: selected }, services)
  const finish = (ex: Exchange) => void filter.finish!(ex, true)
  return { lines, clock, finish }
}

/** A request of the usual key that has ended; `failure` makes it a failed one. */
function ended(facts: ExchangeFacts, status: number, failure?: GatewayError, attempts: Attempt[] = []): Exchange {
  const ex = exchange({ request: { model: 'small', messages: [] }, principal, ...facts })
  ex.attempts.push(...attempts)
  ex.timings.end = ex.timings.start + 40
  Object.assign(ex.answer, { status, failure, outcome: failure ? 'error' : 'ok' })
  return ex
}

t.test('a failed request has one line with its key, project, models, attempts, tokens and cost', async t => {
  const { lines, finish } = logging()
  const at = target({ provider: { id: 'one' } })
  const broken = errors.invalidAnswer('it broke off: PROMPT', 200)
  const ex = ended({ target: at }, 200, broken, [failed, { ...one, target: at, errorType: 'upstream_error' }])
  Object.assign(ex.usage, { prompt: 7, completion: 3 })
  finish(ex)
  t.match(lines, [
    {
      level: 'info',
      message: 'answer broke off',
      fields: {
        request_id: ex.id,
        log_id: ex.logId,
        endpoint: 'chat',
        organization: 'org-1',
        project: 'project-1',
        key_id: 'key-1',
        requested_model: 'small',
        used_model: at.mapping.model.id,
        used_provider: 'one',
        status: 200,
        outcome: 'error',
        attempts: [
          { provider: target().provider.id, status: 0, error_type: 'timeout', duration_ms: 10_000 },
          { provider: 'one', status: 200, error_type: 'upstream_error', duration_ms: 30 },
        ],
        prompt_tokens: 7,
        completion_tokens: 3,
        duration_ms: 40,
      },
    },
  ])
  t.equal(lines.length, 1)
  t.notMatch(JSON.stringify(lines), 'PROMPT')
})

t.test('every failed request and failover is logged, and no request that succeeds at once', async t => {
  const { lines, finish } = logging()
  finish(ended({}, 200, undefined, [one]))
  t.strictSame(lines, [])
  finish(ended({}, 200, undefined, [failed, one]))
  finish(ended({}, 400, errors.invalidParameters('PROMPT is not a number', 'temperature')))
  finish(ended({}, 404, errors.modelNotFound('small')))
  finish(ended({}, 502, errors.allProvidersFailed('PROMPT'), [failed, failed]))
  t.strictSame(
    lines.map(({ message, fields }) => [message, fields.code]),
    [
      ['request failed over', undefined],
      ['request failed', 'invalid_parameters'],
      ['request failed', 'model_not_found'],
      ['request failed', 'all_providers_failed'],
    ],
  )
  t.notMatch(JSON.stringify(lines), 'PROMPT')
  finish(ended({}, 0, errors.invalidAnswer('it has closed the connection'), [one]))
  t.match(lines.at(-1), { message: 'request failed', fields: { status: 502 } }, 'a session, which an upgrade answers')
  for (const unavailable of [errors.billingUnavailable, errors.storeUnavailable]) {
    finish(ended({}, 503, unavailable(new Error('Query read timeout'))))
    t.match(lines.at(-1)?.fields.err, { message: 'Query read timeout' }, 'clients do not see the cause')
  }
})

t.test('a request that its client caused to fail counts as refused, and not as an error', async t => {
  const outcomes: string[] = []
  const metrics: Partial<Metrics> = {
    attempt() {},
    refusal() {},
    request: ({ outcome }) => void outcomes.push(outcome),
  }
  const { finish } = telemetry.create({ log: 'none' }, { metrics } as unknown as Services)
  finish!(ended({}, 200), true)
  finish!(ended({}, 401, errors.invalidKey()), true)
  finish!(ended({}, 429, errors.rateLimited('/v1', 1)), true)
  finish!(ended({}, 502, errors.allProvidersFailed('')), true)
  finish!(ended({}, 200, errors.invalidAnswer('it broke off', 200)), true)
  t.strictSame(outcomes, ['ok', 'refused', 'refused', 'error', 'error'])
})

t.test(
  'refusals that a client can repeat are counted by key, and one line each ten seconds stands for them',
  async t => {
    const { lines, clock, finish } = logging()
    const limited = (keyId: string) => ended({ principal: principalOf({ keyId }) }, 429, errors.rateLimited('/v1', 1))
    for (let count = 0; count < 100; count++) finish(limited('key-1'))
    finish(limited('key-2'))
    const unknown = exchange({})
    for (let count = 0; count < 50; count++) {
      Object.assign(unknown.answer, { status: 401, outcome: 'error', failure: errors.invalidKey() })
      finish(unknown)
    }
    clock.now = 10_000
    finish(limited('key-1'))
    const shown = lines.map(({ fields }) => [fields.status, fields.key_id, fields.unlogged])
    t.strictSame(shown, [
      [429, 'key-1', undefined],
      [429, 'key-2', undefined],
      [401, undefined, undefined],
      [429, 'key-1', 99],
    ])
  },
)

t.test('a rate limit of providers is a failed request, and not sampled', async t => {
  const { lines, finish } = logging()
  const limited = { ...failed, status: 429, errorType: 'rate_limited' } as const
  for (let count = 0; count < 3; count++) finish(ended({}, 429, errors.upstreamRateLimited(1), [limited]))
  t.equal(lines.length, 3)
})
