/** Serves the public port, in this process or in workers that it leads. */
import type { AdminContext } from '../admin/context.ts'
import { explainRoute } from '../routing/explain.ts'
import { type Components, drainListener, healthIn, listenerOf, warmUp } from './components.ts'
import { version } from './version.ts'

/** Serves the public port; the same for one process and for a primary with workers. */
export interface ServingMode extends Pick<AdminContext, 'explainRoute' | 'providerHealth' | 'metrics' | 'state'> {
  /** `host:port` in use; empty until `listen` has resolved. */
  readonly address: string
  /** Rejects with the listen error of the operating system. */
  listen(): Promise<void>
  /**
   * Reloads the configuration. Rejects with a ConfigError and changes nothing; or with the error of a worker that
   * failed to load it.
   */
  reload: AdminContext['reload']
  /** Reloads with the secrets of a provider as they are now. Rejects as `reload` does. */
  renew(provider: string): Promise<unknown>
  /** Waits for running requests to end. */
  drain(): Promise<void>
  /** Ends a running drain without waiting for clients. */
  abortDrain(): void
}

/** Serves by this process alone. */
export function singleProcess(components: Components): ServingMode {
  const { manager, metrics, services } = components
  const listener = listenerOf(components)
  return {
    get address() {
      return listener.address
    },
    metrics,
    async listen() {
      await listener.listen()
      warmUp(components)
    },
    reload: () => manager.reload(),
    renew: provider => manager.renew(provider),
    state: () => ({
      ...processState(components),
      listen: listener.address,
      ready: listener.accepting,
      inFlight: listener.inFlight,
    }),
    explainRoute: question => explainRoute(manager.current, services, question),
    providerHealth: () => healthIn(components),
    drain: () => drainListener(listener, components),
    abortDrain: () => listener.abortDrain(),
  }
}

/** State of this process, for `status`. */
export const processState = ({ reloads, file, stores }: Components) => ({
  version,
  publicUrl: file.server.public_url,
  uptimeMs: Date.now() - reloads.startedAt,
  pid: process.pid,
  lastReload: reloads.last,
  pools: stores.nodes?.pools(),
})
