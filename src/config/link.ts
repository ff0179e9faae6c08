/** Files + registries → snapshot. */
import { checkAlerts } from './alerts.ts'
import { linkCatalog } from './catalog.ts'
import type { ConfigFiles } from './load.ts'
import { linkMcp } from './mcp.ts'
import { linkPlans } from './plans.ts'
import type { Registries } from './registries.ts'
import { linkRoutes } from './routes.ts'
import { endUserOptions } from './schemas/end-users.ts'
import { realtimeOptions } from './schemas/realtime.ts'
import { ConfigSnapshot } from './snapshot.ts'
import { modelIssue } from './virtual-models.ts'

/** Throws a ConfigError with the position of the first error. */
export function link(files: ConfigFiles, registries: Registries): ConfigSnapshot {
  const catalog = linkCatalog(files, registries)
  const { routes, filters } = linkRoutes(files.gateway, registries)
  const plans = linkPlans(files.gateway.value.plans)
  const mcp = linkMcp(files.gateway)
  const realtime = realtimeOptions(files.gateway.value.realtime)
  checkAlerts(files.gateway, registries.isCallbackAllowed ?? (() => true))
  const endUsers = endUserOptions(files.gateway.value.end_users)
  const action = endUsers?.limit?.onLimit
  const issue = typeof action === 'object' ? modelIssue(action.use, catalog) : undefined
  if (issue) throw files.gateway.source.error(issue, ['end_users', 'default_limit', 'on_limit', 'use'])
  return new ConfigSnapshot(
    files,
    { catalog, plans, mcp, realtime, endUsers },
    routes,
    filters,
    registries.services.log,
  )
}
