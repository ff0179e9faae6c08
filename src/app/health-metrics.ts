/** Gauges of a process's health that are read at each scrape. */
import { readdir, stat, statfs } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { ProviderHealth } from '../core/ports.ts'
import { certificateEnds } from '../egress/connector.ts'
import type { PrometheusMetrics } from '../telemetry/metrics.ts'

/** Where the gauges read. */
interface HealthSources {
  /** Path of the database. */
  readonly database: string
  readonly metrics: PrometheusMetrics
  /** Share of the heap in use. */
  memory(): number
  /** Rejects when the database is down. */
  ping(): Promise<void>
  /** Undefined where none is configured. */
  readonly redis: { readonly up: boolean; readonly nodes: number } | undefined
  providers(): readonly ProviderHealth[]
}

const isServing = ({ status }: ProviderHealth): boolean => status === 'live' || status === 'degraded'

/** Registers the gauges. */
export function reportHealth({ database, metrics, memory, ping, redis, providers }: HealthSources): void {
  const ofProviders =
    (read: (one: ProviderHealth) => number, isCounted = (_: ProviderHealth) => true) =>
    () =>
      providers()
        .filter(isCounted)
        .map(one => ({ labels: { provider: one.id }, value: read(one) }))
  const served = new Set<string>()
  metrics.observed({
    name: 'gateway_provider_up',
    labels: ['provider'],
    help: 'Whether a provider can serve (1): it has a credential that works and an offer whose circuit is closed. Providers without a credential, and engines that have not answered yet, have no sample.',
    aggregator: 'min',
    read: ofProviders(
      one => (isServing(one) ? 1 : 0),
      one => {
        if (isServing(one)) served.add(one.id)
        return one.status !== 'no credential' && (one.status !== 'no answer' || served.has(one.id))
      },
    ),
  })
  metrics.observed({
    name: 'gateway_circuits_open',
    labels: ['provider'],
    help: 'Offers, and polls of offers, whose circuit is not closed.',
    aggregator: 'max',
    read: ofProviders(({ broken }) => broken.length),
  })
  metrics.observed({
    name: 'gateway_credentials_failing',
    labels: ['provider'],
    help: 'Credentials that a provider has refused or throttled.',
    aggregator: 'max',
    read: ofProviders(({ credentials }) => credentials.filter(({ circuit }) => circuit !== 'closed').length),
  })
  metrics.observed({
    name: 'gateway_upstream_certificate_end_seconds',
    labels: ['host'],
    help: 'When the certificate of a provider, or of another server that the configuration names, ends: Unix time, as the last connection of a day saw it.',
    // Another process may have seen the certificate before it was renewed.
    aggregator: 'max',
    read: () => certificateEnds().map(({ host, end }) => ({ labels: { host }, value: end })),
  })
  metrics.observed({
    name: 'gateway_database_up',
    help: 'Whether the database can be read, and took the last write (1).',
    aggregator: 'min',
    read: () =>
      ping().then(
        () => 1,
        () => 0,
      ),
  })
  metrics.observed({
    name: 'gateway_heap_used_ratio',
    help: 'Share of the heap limit in use, from 0 to 1.',
    aggregator: 'max',
    read: memory,
  })
  if (redis) {
    metrics.observed({
      name: 'gateway_redis_up',
      help: 'Whether Redis is used (1). At 0 its breaker is open, and each node takes its share of limits.',
      aggregator: 'min',
      read: () => (redis.up ? 1 : 0),
    })
    metrics.observed({
      name: 'gateway_redis_nodes',
      help: 'Processes that serve requests with this Redis, as it said last.',
      aggregator: 'max',
      read: () => redis.nodes,
    })
  }
  if (database === ':memory:') return
  metrics.observed({
    name: 'gateway_disk_free_bytes',
    help: 'Bytes that are free where the database is.',
    aggregator: 'first',
    async read() {
      const { bavail, bsize } = await statfs(dirname(database))
      return bavail * bsize
    },
  })
  metrics.observed({
    name: 'gateway_spool_bytes',
    help: 'Bytes of request rows that wait beside the database to be entered.',
    aggregator: 'first',
    read: () => spooledBytes(database),
  })
}

async function spooledBytes(database: string): Promise<number> {
  const folder = dirname(database)
  const prefix = `spool-${basename(database)}-`
  const names = (await readdir(folder)).filter(name => name.startsWith(prefix) && name.endsWith('.jsonl'))
  // A file may be entered and removed meanwhile.
  const sizes = names.map(async name => (await stat(join(folder, name)).catch(() => undefined))?.size ?? 0)
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}
