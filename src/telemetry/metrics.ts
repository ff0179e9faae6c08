/** The metrics port over prom-client, with its own registry, so that two gateways in one process do not mix. */
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { HealingSkipped, JobCounts, Metrics } from '../core/ports.ts'
import { counter, histogram, LagSummary } from './families.ts'
import type { Lag } from './load.ts'
import type { MetricFamily } from './merge.ts'

/** The gateway's own time starts at 50 µs, what it adds to a request that it only passes on. */
const OVERHEAD_BUCKETS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5]
const DURATION_BUCKETS = [0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
const FIRST_TOKEN_BUCKETS = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/**
 * Gauges of prom-client that are not shown. Names that end in `_total` are of counters; `nodejs_active_*` has the same
 * values. The distribution of the lag includes the interval of its monitor; `gateway_event_loop_lag_seconds` does not.
 */
const HIDDEN = [
  ...['handles', 'requests', 'resources'].map(name => `nodejs_active_${name}_total`),
  ...['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'].map(name => `nodejs_eventloop_lag_${name}_seconds`),
]
/** The interval of the monitor behind that distribution: each of its turns wakes an idle process. */
const UNUSED_MONITOR_MS = 60_000

/** Result of loading the configuration: a new snapshot, the same one, or a rejection that kept the old one. */
const reloadResults = ['changed', 'unchanged', 'failed'] as const
/** A value of the label `result` of reloads. */
type ReloadResult = (typeof reloadResults)[number]

const REDIS_BUCKETS = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2]
const JOB_BUCKETS = [10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200]

type Values = number | readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[]
/** A gauge that is read when it is scraped; `aggregator` combines the values of several processes. */
interface Observed {
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
  readonly aggregator: 'first' | 'min' | 'max' | 'sum'
  read(): Values | Promise<Values>
}

const UNLABELLED = 'none'

/** Each metric is limited to some 2,000 lines (`Series`): further models count as `other`. */
export class PrometheusMetrics implements Metrics {
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE
  readonly #registry = new Registry()
  #inFlight = 0
  #waiting = 0

  readonly #requests = counter(this.#registry, {
    name: 'gateway_requests_total',
    help: 'Requests by outcome: ok, refused (answered by a status of 400 to 499), error, aborted.',
    closed: ['endpoint', 'outcome'],
    open: ['provider', 'model'],
  })
  readonly #duration = histogram(this.#registry, {
    name: 'gateway_request_duration_seconds',
    help: 'Time from the first byte of a request to the last of its answer.',
    closed: ['endpoint', 'outcome'],
    open: ['provider', 'model'],
    buckets: DURATION_BUCKETS,
  })
  readonly #firstToken = histogram(this.#registry, {
    name: 'gateway_time_to_first_token_seconds',
    help: 'Time from the first byte of a streamed request to the first piece of content.',
    closed: ['endpoint', 'outcome'],
    open: ['provider', 'model'],
    buckets: FIRST_TOKEN_BUCKETS,
  })
  readonly #overhead = histogram(this.#registry, {
    name: 'gateway_overhead_seconds',
    help: "The gateway's own time: the whole request less the wait for the provider.",
    closed: ['endpoint'],
    buckets: OVERHEAD_BUCKETS,
  })
  readonly #jobPolls = counter(this.#registry, {
    name: 'gateway_job_polls_total',
    help: 'Polls of jobs at providers, by result.',
    closed: ['outcome'],
    open: ['provider'],
  })
  readonly #jobSeconds = histogram(this.#registry, {
    name: 'gateway_job_seconds',
    help: 'Duration of jobs, by final state.',
    closed: ['state'],
    open: ['provider', 'model'],
    buckets: JOB_BUCKETS,
  })
  readonly #jobClaimsLost = counter(this.#registry, {
    name: 'gateway_job_claims_lost_total',
    help: 'Writes to jobs rejected because another process had claimed the job.',
    closed: [],
  })
  readonly #callbacks = counter(this.#registry, {
    name: 'gateway_callbacks_total',
    help: 'Callback deliveries of jobs, by result.',
    closed: ['outcome'],
  })
  readonly #alerts = counter(this.#registry, {
    name: 'gateway_alerts_total',
    help: 'Alerts on limits and credits: those raised, and deliveries of their callbacks by result.',
    closed: ['on', 'outcome'],
  })
  /** Metrics of the job engine. */
  readonly jobs = {
    poll: (provider: string, outcome: string): void => this.#jobPolls.of(outcome, provider).add(1),
    ended: ({ provider, model, state }: Record<'provider' | 'model' | 'state', string>, seconds: number): void =>
      this.#jobSeconds.of(state, provider, model).observe(seconds),
    claimLost: (): void => this.#jobClaimsLost.of().add(1),
    callback: (outcome: string): void => this.#callbacks.of(outcome).add(1),
  }
  /** Counts an alert that was raised, or a delivery of one. */
  alert(on: string, outcome: string): void {
    this.#alerts.of(on, outcome).add(1)
  }
  readonly #redisSeconds = histogram(this.#registry, {
    name: 'gateway_redis_seconds',
    help: 'Time of commands to Redis, by result.',
    closed: ['outcome'],
    buckets: REDIS_BUCKETS,
  })
  readonly #tokens = counter(this.#registry, {
    name: 'gateway_tokens_total',
    help: 'Tokens by kind.',
    closed: ['kind'],
    open: ['provider', 'model'],
  })
  readonly #cost = counter(this.#registry, {
    name: 'gateway_cost_usd_total',
    help: 'Cost in USD.',
    closed: [],
    open: ['provider', 'model'],
  })
  readonly #attempts = counter(this.#registry, {
    name: 'gateway_attempts_total',
    help: 'Calls to providers, failover included.',
    closed: ['outcome'],
    open: ['provider', 'model'],
  })
  readonly #refusals = counter(this.#registry, {
    name: 'gateway_filter_refusals_total',
    help: 'Requests refused, by filter.',
    closed: ['filter'],
    open: ['code'],
  })
  readonly #retryBudgetSpent = counter(this.#registry, {
    name: 'gateway_retry_budget_spent_total',
    help: 'Requests that failed before all providers were tried because their retry budget was spent.',
    closed: [],
    open: ['model'],
  })
  readonly #rulesApplied = counter(this.#registry, {
    name: 'gateway_route_rules_applied_total',
    help: 'Requests that a rule of the configuration has moved, refused or copied, and copies that a bound prevented.',
    closed: ['action'],
    open: ['rule'],
  })
  readonly #unpriced = counter(this.#registry, {
    name: 'gateway_unpriced_requests_total',
    help: 'Requests served without a known price; no sum includes their cost.',
    closed: [],
    open: ['provider', 'model'],
  })
  readonly #unhealed = counter(this.#registry, {
    name: 'gateway_unhealed_answers_total',
    help: 'Answers whose requested JSON repair was skipped, by reason.',
    closed: ['reason'],
  })
  readonly #mcpCalls = counter(this.#registry, {
    name: 'gateway_mcp_calls_total',
    help: 'Tool calls of the MCP server.',
    closed: ['tool', 'outcome'],
  })
  readonly #oauth = counter(this.#registry, {
    name: 'gateway_oauth_total',
    help: 'Steps of OAuth clients of the MCP server.',
    closed: ['step', 'outcome'],
  })
  readonly #cacheLookups = counter(this.#registry, {
    name: 'gateway_cache_lookups_total',
    help: 'Lookups in the response cache, by result.',
    closed: ['result'],
  })
  readonly #reloads = counter(this.#registry, {
    name: 'gateway_config_reloads_total',
    help: 'Loads of the configuration by result.',
    closed: ['result'],
    aggregator: 'first',
  })
  readonly #reloadOk = this.#gauge(
    'gateway_config_reload_successful',
    'Whether the last load of the configuration succeeded (1) or failed (0).',
  )
  readonly #reloadAt = this.#gauge(
    'gateway_config_reload_last_success_seconds',
    'Time of the last successful load of the configuration, in Unix seconds.',
  )
  readonly #config = this.#gauge('gateway_config_info', 'The version of the configuration in force.', ['version'])

  constructor(options: { version: string; lag: Lag }) {
    this.#level('gateway_requests_in_flight', 'Requests in flight.', 'sum', () => this.#inFlight)
    this.#level('gateway_requests_waiting', 'Requests waiting for a permit.', 'sum', () => this.#waiting)
    new LagSummary(this.#registry, options.lag)
    this.#gauge('gateway_build_info', 'The version of the gateway.', ['version']).set({ version: options.version }, 1)
    for (const result of reloadResults) this.#reloads.of(result)
    collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: UNUSED_MONITOR_MS })
    for (const name of HIDDEN) this.#registry.removeSingleMetric(name)
  }

  request(
    labels: { endpoint: string; provider: string; model: string; outcome: string },
    at: { seconds: number; firstTokenSeconds?: number | undefined; overheadSeconds?: number | undefined },
  ): void {
    const { endpoint, provider, model, outcome } = labels
    this.#requests.of(endpoint, outcome, provider, model).add(1)
    this.#duration.of(endpoint, outcome, provider, model).observe(at.seconds)
    if (at.firstTokenSeconds !== undefined) {
      this.#firstToken.of(endpoint, outcome, provider, model).observe(at.firstTokenSeconds)
    }
    if (at.overheadSeconds !== undefined) this.#overhead.of(endpoint).observe(at.overheadSeconds)
  }

  /** Counts a command to Redis: `ok`, `timeout` or `error`. */
  redis(outcome: string, seconds: number): void {
    this.#redisSeconds.of(outcome).observe(seconds)
  }

  tokens(provider: string, model: string, kind: string, count: number): void {
    this.#tokens.of(kind, provider, model).add(count)
  }

  cost(provider: string, model: string, usd: number): void {
    this.#cost.of(provider, model).add(usd)
  }

  attempt(provider: string, model: string, outcome: string): void {
    this.#attempts.of(outcome, provider, model).add(1)
  }

  refusal(filter: string, code: string): void {
    this.#refusals.of(filter, code).add(1)
  }

  inFlight(delta: 1 | -1): void {
    this.#inFlight += delta
  }

  waiting(delta: 1 | -1): void {
    this.#waiting += delta
  }

  retryBudgetSpent(model: string): void {
    this.#retryBudgetSpent.of(model).add(1)
  }

  ruleApplied(rule: string, action: Parameters<Metrics['ruleApplied']>[1]): void {
    this.#rulesApplied.of(action, rule).add(1)
  }

  unpriced(provider: string, model: string): void {
    this.#unpriced.of(provider, model).add(1)
  }

  cacheLookup(result: 'hit' | 'miss'): void {
    this.#cacheLookups.of(result).add(1)
  }

  unhealed(reason: HealingSkipped): void {
    this.#unhealed.of(reason).add(1)
  }

  oauth(step: string, outcome: string): void {
    this.#oauth.of(step, outcome).add(1)
  }

  mcpCall(tool: string, outcome: 'ok' | 'error'): void {
    this.#mcpCalls.of(tool, outcome).add(1)
  }

  /** After every load, including the first. `version` is that of the snapshot in force, `at` Unix milliseconds. */
  reload(result: ReloadResult, version: string, at: number): void {
    this.#reloads.of(result).add(1)
    this.#reloadOk.set(result === 'failed' ? 0 : 1)
    if (result === 'failed') return
    this.#reloadAt.set(at / 1000)
    this.#config.reset()
    this.#config.set({ version }, 1)
  }

  /** Read from the store at every scrape: jobs that have not ended, and bytes of kept results. */
  jobCounts(read: () => Promise<JobCounts>): void {
    const results = this.#gauge('gateway_job_results_bytes', 'Bytes of kept results of jobs.')
    const help = 'Jobs that have not ended, by state and provider.'
    const labelNames = ['state', 'provider']
    const registers = [this.#registry]
    new Gauge({
      ...{ name: 'gateway_jobs', help, labelNames, registers, aggregator: 'first' },
      async collect() {
        try {
          const { running, bytes } = await read()
          results.set(bytes)
          this.reset()
          for (const { state, provider, count } of running) this.inc({ state, provider }, count)
        } catch {
          // Only a read of a store fails, and the store reports its own health.
        }
      },
    })
  }

  /** A gauge that is read at every scrape; when that fails, it has no line. Without labels, `read` returns its value. */
  observed({ name, help, aggregator, labels = [], read }: Observed): void {
    const registers = [this.#registry]
    // Without a name, a gauge that was reset would have a line that says 0.
    const labelNames = labels.length > 0 ? labels : [UNLABELLED]
    new Gauge({
      ...{ name, help, registers, labelNames, aggregator },
      async collect() {
        this.reset()
        try {
          const values = await read()
          if (typeof values === 'number') this.set(values)
          else for (const { labels, value } of values) this.set(labels, value)
        } catch {
          // No line says that nothing could be read.
        }
      },
    })
  }

  /** Connections of the public listener. */
  connections(read: () => number): void {
    this.#level('gateway_connections', 'Open connections of the public listener.', 'sum', read)
  }

  /** `read` resolves with USD. */
  overdraft(read: () => Promise<number>): void {
    const help = 'Sum of negative prepaid balances, in USD: answers that cost more than their holds.'
    this.#level('gateway_overdraft_usd', help, 'first', read)
  }

  /** Every series, for the reference. */
  async described(): Promise<readonly { name: string; type: string; help: string; labels: readonly string[] }[]> {
    const labels = new Map<string, readonly string[]>()
    for (const metric of this.#registry.getMetricsAsArray()) {
      const names: readonly string[] = Reflect.get(metric, 'labelNames')
      labels.set(
        metric.name,
        names.filter(name => name !== UNLABELLED),
      )
    }
    const all = await this.#registry.getMetricsAsJSON()
    return all.map(({ name, help, type }) => ({ name, help, type: String(type), labels: labels.get(name) ?? [] }))
  }

  /** The exposition in Prometheus' text format. */
  text(): Promise<string> {
    return this.#registry.metrics()
  }

  /** Returns the values in the form that `merge` takes. */
  async families(): Promise<MetricFamily[]> {
    const metrics = await this.#registry.getMetricsAsJSON()
    return metrics.map(({ type, ...metric }) => ({ ...metric, type: String(type) }))
  }

  /** Merged from several processes, the value of the first counts. */
  #gauge(name: string, help: string, labelNames: string[] = []) {
    return new Gauge({ name, help, labelNames, registers: [this.#registry], aggregator: 'first' })
  }

  /** A gauge that is read when it is scraped; when that fails, its previous value stays. */
  #level(name: string, help: string, aggregator: 'first' | 'sum', read: () => number | Promise<number>): void {
    new Gauge({
      ...{ name, help, aggregator, registers: [this.#registry] },
      async collect() {
        try {
          this.set(await read())
        } catch {
          // The store reports its own health.
        }
      },
    })
  }
}
