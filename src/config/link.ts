/** Files + registries → snapshot. */
import type { Catalog } from '../core/catalog.ts'
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
import type { Path, Source } from './source.ts'
import { modelIssue } from './virtual-models.ts'

/** Throws a ConfigError with the position of the first error. */
export function link(files: ConfigFiles, registries: Registries): ConfigSnapshot {
  const catalog = linkCatalog(files, registries)
  checkLimitModels(files.gateway.source, files.gateway.value, [], catalog)
  const { routes, filters } = linkRoutes(files.gateway, registries)
  const plans = linkPlans(files.gateway.value.plans)
  const mcp = linkMcp(files.gateway)
  const realtime = realtimeOptions(files.gateway.value.realtime)
  checkAlerts(files.gateway, registries.isCallbackAllowed ?? (() => true))
  const endUsers = endUserOptions(files.gateway.value.end_users)
  return new ConfigSnapshot(
    files,
    { catalog, plans, mcp, realtime, endUsers },
    routes,
    filters,
    registries.services.log,
  )
}

/** Refuses an unknown model of an `on_limit`, wherever the file has one. */
function checkLimitModels(source: Source, value: unknown, path: Path, catalog: Catalog): void {
  if (typeof value !== 'object' || value === null) return
  for (const [key, one] of Object.entries(value)) {
    const at = [...path, Array.isArray(value) ? Number(key) : key]
    const use = key === 'on_limit' ? (one as { readonly use?: unknown } | null)?.use : undefined
    const issue = typeof use === 'string' ? modelIssue(use, catalog) : undefined
    if (issue !== undefined) throw source.error(issue, [...at, 'use'])
    checkLimitModels(source, one, at, catalog)
  }
}
