/** Who serves the public port: this process, or workers that it leads. */
import type { AdminContext } from '../admin/context.ts'
import { explainRoute } from '../routing/explain.ts'
import { type Components, drainTimes, listenerOf, warmUp } from './components.ts'
import { version } from './version.ts'

export interface ServingMode extends Pick<AdminContext, 'explainRoute' | 'metrics' | 'state'> {
  /** `host:port` as it came to be; empty until `listen` has resolved. */
  readonly address: string
  /** Rejects with what the operating system says of the address. */
  listen(): Promise<void>
  /**
   * Reads the configuration again. Rejects with a ConfigError, and then nothing changed; or, when a worker does not come
   * along, with what it says.
   */
  reload: AdminContext['reload']
  /** Lets what runs end. */
  drain(): Promise<void>
  /** A drain that runs waits for no client any more. */
  abortDrain(): void
}

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
    state: () => ({
      ...processState(components),
      listen: listener.address,
      ready: listener.accepting,
      inFlight: listener.inFlight,
    }),
    explainRoute: question => explainRoute(manager.current, services, question),
    drain: () => listener.drain(drainTimes(components)),
    abortDrain: () => listener.abortDrain(),
  }
}

/** What this process knows of itself. */
export const processState = ({ reloads, file }: Components) => ({
  version,
  publicUrl: file.server.public_url,
  uptimeMs: Date.now() - reloads.startedAt,
  pid: process.pid,
  lastReload: reloads.last,
})
