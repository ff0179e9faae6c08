/** Status of the gateway. */
import type { ProviderState } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { type CommandTable, command } from '../command.ts'
import type { AdminContext } from '../context.ts'

/** Whether the gateway can serve requests; `reason` names the part that cannot. */
export interface Readiness {
  readonly ready: boolean
  readonly reason?: string
  /** `"ok"`, or the error of the database. */
  readonly database: string
}

/** The one answer for `/ready` and `status`. */
export async function readiness(context: AdminContext): Promise<Readiness> {
  const [{ ready }, database] = await Promise.all([context.state(), databaseStatus(context)])
  if (!ready) return { ready, reason: 'starting or draining', database }
  if (database !== 'ok') return { ready: false, reason: 'the database is down', database }
  return { ready, database }
}

async function databaseStatus(context: AdminContext): Promise<string> {
  try {
    await context.ping()
    return 'ok'
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown)
  }
}

/** What `gatewayctl status` shows. */
export type Status = Awaited<ReturnType<typeof status>>
async function status(context: AdminContext) {
  const { version: configVersion, catalog } = context.snapshot()
  const health = await context.providerHealth()
  const count = (...states: ProviderState[]) => health.filter(({ status }) => states.includes(status)).length
  return {
    ...(await context.state()),
    ...(await readiness(context)),
    configVersion,
    models: catalog.models.size,
    providers: catalog.providers.size,
    liveProviders: count('live', 'degraded'),
    failingProviders: count('degraded', 'failing', 'credential failing'),
  }
}

/** `status`. */
export const statusCommands: CommandTable = {
  status: command(s.object({}), (_, context) => status(context)),
}
