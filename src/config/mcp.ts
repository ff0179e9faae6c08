/** The `mcp` section of `gateway.yaml`: accepted host names and origins, and models of its tools. */
import type { McpOptions } from '../core/mcp.ts'
import type { ConfigFile } from './file.ts'
import type { GatewayFile } from './schemas/gateway.ts'

/** Throws a ConfigError for a `server.public_url` that is not a URL. */
export function linkMcp({ value: { mcp, server }, source }: ConfigFile<GatewayFile>): McpOptions {
  const { public_url: url } = server
  if (url !== undefined && !URL.canParse(url)) {
    throw source.error('expected an address such as "https://gateway.example.com"', ['server', 'public_url'])
  }
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
