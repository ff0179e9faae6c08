/** Files + registries → snapshot. */
import type { Catalog } from '../core/catalog.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { McpOptions } from '../core/mcp.ts'
import { unknownName } from '../lib/nearest.ts'
import { listOf, matcher } from '../limits/names.ts'
import { checkAlerts } from './alerts.ts'
import { linkCatalog } from './catalog.ts'
import type { ConfigFile } from './file.ts'
import type { ConfigFiles } from './load.ts'
import { checkPlans, linkPlans } from './plans.ts'
import type { Registries } from './registries.ts'
import { linkRoutes, optionsOf } from './routes.ts'
import { endUserOptions } from './schemas/end-users.ts'
import type { GatewayFile } from './schemas/gateway.ts'
import { realtimeOptions } from './schemas/realtime.ts'
import { ConfigSnapshot } from './snapshot.ts'
import type { Path, Source } from './source.ts'
import { modelIssue } from './virtual-models.ts'

/** Throws a ConfigError with the position of the first error. */
export function link(files: ConfigFiles, registries: Registries): ConfigSnapshot {
  const catalog = linkCatalog(files, registries)
  checkLimitModels(files.gateway.source, files.gateway.value, [], catalog)
  const { routes, filters } = linkRoutes(files.gateway, registries)
  checkMatches(files.gateway, registries.endpoints)
  checkPlans(files.gateway, registries.endpoints)
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

/** Refuses endpoints that do not exist, and tags without a value, in what limits are for. */
function checkMatches({ value, source }: ConfigFile<GatewayFile>, endpoints: readonly Endpoint[]): void {
  const names = endpoints.map(({ name }) => name)
  for (const { options, path } of optionsOf(value, 'ratelimit')) {
    const { limits = [] } = options as { readonly limits?: readonly { readonly match?: Match }[] }
    for (const [index, { match: { endpoint = [], tags = [] } = {} }] of limits.entries()) {
      const at = [...path, 'limits', index, 'match']
      const unknown = listOf(endpoint).find(name => !names.some(matcher(name)!))
      if (unknown !== undefined) throw source.error(unknownName('endpoint', unknown, names), [...at, 'endpoint'])
      const bare = listOf(tags).find(tag => !/[=*]/.test(tag))
      if (bare !== undefined) throw source.error(`expected a tag with its value, such as "${bare}=*"`, [...at, 'tags'])
    }
  }
}

type Match = Readonly<Partial<Record<'endpoint' | 'tags', string | readonly string[]>>>

function linkMcp({ value: { mcp, server } }: ConfigFile<GatewayFile>): McpOptions {
  const { public_url: url } = server
  return {
    site: {
      publicUrl: url === undefined ? undefined : new URL(url),
      hosts: new Set(mcp.hosts.map(name => name.toLowerCase())),
      origins: new Set(mcp.origins.map(name => name.toLowerCase())),
    },
    nanoBanana: mcp.nano_banana,
    maxSaved: mcp.max_saved,
    streams: {
      perKey: mcp.streams.per_key,
      perOrganization: mcp.streams.per_organization,
      perProcess: mcp.streams.per_process,
    },
    oauth: {
      readsDocuments: mcp.client_metadata === 'auto' ? isHttps(url) : mcp.client_metadata === 'on',
      redirectSchemes: new Set(mcp.redirect_schemes),
      codeMs: mcp.code,
      accessTokenMs: mcp.access_token,
      refreshTokenMs: mcp.refresh_token,
      loginCodeMs: mcp.login_code,
      limits: {
        register: mcp.limits.register,
        consent: mcp.limits.consent,
        clientAuth: mcp.limits.client_auth,
      },
    },
  }
}

const isHttps = (url: string | undefined): boolean => url?.startsWith('https:') ?? false
