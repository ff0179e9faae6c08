/** Status of the gateway. */
import { s } from '../../core/schema.ts'
import { type CommandTable, command } from '../command.ts'
import type { AdminContext } from '../context.ts'
import { providerStatus } from './providers.ts'

/** `"ok"`, or the error of the database. */
export async function databaseStatus(context: AdminContext): Promise<string> {
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
  const providers = [...catalog.providers.values()]
  return {
    ...(await context.state()),
    configVersion,
    database: await databaseStatus(context),
    models: catalog.models.size,
    providers: providers.length,
    liveProviders: providers.filter(provider => providerStatus(provider, catalog) === 'live').length,
  }
}

/** `status`. */
export const statusCommands: CommandTable = {
  status: command(s.object({}), (_, context) => status(context)),
}
