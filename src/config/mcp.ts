/** The `mcp` section of `gateway.yaml`: accepted host names and origins, and models of its tools. */
import type { McpOptions } from '../core/mcp.ts'
import { s } from '../core/schema.ts'
import type { ConfigFile } from './file.ts'
import type { GatewayFile } from './schemas/gateway.ts'

const host = s.string({
  pattern: '^(\\[[0-9a-fA-F:]+\\]|[^:\\s/@]+)(:\\d{1,5})?$',
  description: 'a host and perhaps a port, such as "gateway.internal:8080"',
})
const origin = s.string({
  pattern: '^https?://[^\\s/?#@,*]+$',
  description: 'an origin such as "https://app.example.com"',
})

export const mcpEntry = s.default(
  s.object({
    /** Additional host names of this server. */
    hosts: s.default(s.array(host), []),
    /** Web origins that may call it. */
    origins: s.default(s.array(origin), []),
    /** The model of the tool `generate-nano-banana`. */
    nano_banana: s.default(s.string({ minLength: 1, maxLength: 256 }), 'gemini-3-pro-image'),
  }),
  {},
)

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
  }
}
