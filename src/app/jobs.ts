/** Assembles the job engine. */

import { dirname, resolve } from 'node:path'
import type { ConfigManager } from '../config/manager.ts'
import type { GatewayFile } from '../config/schemas/gateway.ts'
import type { Catalog } from '../core/catalog.ts'
import { labelsOfReplay } from '../core/offer.ts'
import type { Policies } from '../core/policy.ts'
import type { Log, Services, Stores } from '../core/ports.ts'
import { HttpCallbackPoster } from '../egress/callbacks.ts'
import type { Fetcher } from '../egress/fetcher.ts'
import { nameServers } from '../egress/guard.ts'
import type { JobMetrics, JobsContext } from '../jobs/context.ts'
import { Jobs } from '../jobs/runner.ts'
import type { Egress } from '../lib/egress.ts'
import { PollHealth } from '../routing/health.ts'
import { FileBlobs } from '../stores/blobs.ts'
import type { Keyring } from '../stores/keyring.ts'
import type { PrometheusMetrics } from '../telemetry/metrics.ts'
import { UpstreamJobCaller } from '../upstream/job-caller.ts'
import type { RenewCredential } from '../upstream/provider-call.ts'
import type { Transport } from '../upstream/transport.ts'
import type { AlertServices } from './alerts.ts'
import type { CleanupStack } from './cleanup.ts'
import type { Registry } from './registry.ts'

const TOKEN_PURPOSE = 'video-content/v1'
const SWEEP_MS = 3_600_000

/** The parts of the job engine. */
interface JobParts {
  readonly file: GatewayFile
  /** Path of `gateway.yaml`. */
  readonly config: string
  readonly stores: Stores
  readonly policies: Policies
  readonly transport: Transport
  readonly fetcher: Fetcher
  readonly circuits: Services['circuits']
  readonly registry: Registry
  readonly metrics: PrometheusMetrics
  readonly log: Log
  readonly alerts: AlertServices
  /** `host:port` of the public listener, once it listens. */
  readonly served: { at: string }
  readonly keyring: () => Keyring
  readonly manager: () => ConfigManager
  readonly egress: () => Egress | undefined
  readonly renewed: RenewCredential
}

/** Organizations choose the names of their own providers and models: these are no labels. */
const labeled = (metrics: JobMetrics, catalog: () => Catalog): JobMetrics => ({
  ...metrics,
  poll: (provider, outcome) => metrics.poll(labelsOfReplay({ provider, model: '' }, catalog()).provider, outcome),
  ended: ({ state, ...offer }, seconds) => metrics.ended({ ...labelsOfReplay(offer, catalog()), state }, seconds),
})

/** Does not start the engine. */
export function createJobs(parts: JobParts): Jobs {
  const { file, stores, policies, transport, fetcher, circuits, registry, metrics, log, keyring, manager, alerts } =
    parts
  const { server, jobs } = file
  const kinds = new Map<string, NonNullable<ReturnType<JobsContext['kinds']['get']>>>()
  for (const { job } of Object.values(registry.operations)) if (job) kinds.set(job.kind, job)
  const catalog = () => manager().current.catalog
  metrics.jobCounts(async () => {
    const { running, bytes } = await stores.jobs.counts()
    return {
      bytes,
      running: running.map(one => ({ ...one, provider: labelsOfReplay({ ...one, model: '' }, catalog()).provider })),
    }
  })
  return new Jobs({
    ...{ store: stores.jobs, policies, kinds, log, wires: registry.wires, catalog },
    metrics: labeled(metrics.jobs, catalog),
    options: () => manager().current.files.gateway.value.jobs,
    caller: new UpstreamJobCaller(transport, fetcher, parts.renewed),
    health: new PollHealth({ circuits, log }),
    poster: new HttpCallbackPoster(nameServers(), parts.egress),
    alerts: alerts.callbacks,
    blobs: new FileBlobs(resolve(dirname(resolve(parts.config)), jobs.blobs)),
    tokenKeys: () => keyring().derived(TOKEN_PURPOSE),
    publicUrl: () => (server.public_url ?? `http://${parts.served.at}`).replace(/\/$/, ''),
    now: Date.now,
    random: Math.random,
  })
}

/** Runs the engine until `cleanup` closes; polls then have `graceMs` to end. */
export function runJobs(
  jobs: Jobs,
  parts: Pick<JobParts, 'file' | 'config' | 'stores' | 'log'>,
  graceMs: number,
  cleanup: CleanupStack,
): void {
  const blobs = new FileBlobs(resolve(dirname(resolve(parts.config)), parts.file.jobs.blobs))
  const sweep = () =>
    void blobs
      .sweep(names => parts.stores.jobs.blobs(names), Date.now())
      .catch((err: unknown) => parts.log.warn({ err }, 'removal of unreferenced results failed'))
  const timer = setInterval(sweep, SWEEP_MS)
  timer.unref()
  jobs.engine.start()
  cleanup.add(async () => {
    clearInterval(timer)
    await jobs.engine.stop(graceMs)
  })
}
