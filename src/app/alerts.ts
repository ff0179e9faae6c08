/** Assembles the watch of limits and credits. */
import { Alerts } from '../alerts/alerts.ts'
import type { ConfigManager } from '../config/manager.ts'
import type { Log, Stores } from '../core/ports.ts'
import type { AlertCallbacks } from '../jobs/context.ts'
import type { LimitWatch } from '../limits/alerts.ts'
import type { PrometheusMetrics } from '../telemetry/metrics.ts'

/** The parts of the watch. */
interface AlertParts {
  readonly stores: Pick<Stores, 'alerts'>
  readonly metrics: Pick<PrometheusMetrics, 'alert'>
  readonly log: Log
  readonly manager: () => ConfigManager
  readonly wake: () => void
}

/** The watch, and what delivers its callbacks. */
export interface AlertServices {
  readonly watch: LimitWatch
  readonly callbacks: AlertCallbacks
}

/** Watches by the configuration in force. */
export function createAlerts({ stores, metrics, log, manager, wake }: AlertParts): AlertServices {
  const count = (on: string, outcome: string) => metrics.alert(on, outcome)
  const watch = new Alerts({
    entries: () => manager().current.files.gateway.value.alerts,
    store: () => stores.alerts,
    ...{ log, count, wake },
    now: Date.now,
  })
  return {
    watch,
    callbacks: {
      messageOf: id => watch.messageOf(id),
      count,
      charged: job => {
        if (!watch.isOn) return
        const look = async () => {
          const caller = await stores.alerts.callerOf(job.orgId, job.keyId)
          const limits = job.hold.budgets === null ? [] : (JSON.parse(job.hold.budgets) as string[])
          const { orgId, projectId, keyId } = job
          const endUser = job.labels?.endUser ?? undefined
          watch.settled({ orgId, projectId, keyId, ...caller, endUser }, await stores.alerts.standing(orgId, limits))
        }
        look().catch((err: unknown) => log.warn({ err }, 'alerts not checked after a job'))
      },
      prune: (before, limit) => stores.alerts.prune(before, limit),
    },
  }
}
