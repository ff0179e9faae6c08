/** The schema of the `mcp` section of `gateway.yaml`. */
import { s } from '../../core/schema.ts'
import { someTime } from './terms.ts'

const host = s.string({
  pattern: '^(\\[[0-9a-fA-F:]+\\]|[^:\\s/@]+)(:\\d{1,5})?$',
  description: 'a host and perhaps a port, such as "gateway.internal:8080"',
})
const origin = s.string({
  format: 'origin',
  pattern: '^https?://[^\\s/?#@,*]+$',
  description: 'an origin such as "https://app.example.com"',
})

const scheme = s.string({
  pattern: '^(?!(?:https?|javascript|data|file|blob|about|vbscript|ws|wss|ftp)$)[a-z][a-z0-9+.-]{0,40}$',
  description: 'the scheme of a program, such as "cursor"',
})
const count = s.integer({ minimum: 1, maximum: 1_000_000 })
const attempts = s.integer({ minimum: 1 })

/** The section; lifetimes are milliseconds once parsed. */
export const mcpEntry = s.default(
  s.object({
    hosts: s.default(s.array(host), []),
    origins: s.default(s.array(origin), []),
    client_metadata: s.default(s.enum('auto', 'on', 'off'), 'auto'),
    redirect_schemes: s.default(s.array(scheme), ['cursor', 'vscode', 'vscode-insiders', 'windsurf']),
    code: s.default(someTime, '60s'),
    access_token: s.default(someTime, '1h'),
    refresh_token: s.default(someTime, '30d'),
    login_code: s.default(someTime, '10m'),
    limits: s.default(
      s.object({
        register: s.default(attempts, 10),
        consent: s.default(attempts, 10),
        client_auth: s.default(attempts, 20),
      }),
      {},
    ),
    nano_banana: s.default(s.string({ minLength: 1, maxLength: 256 }), 'gemini-3-pro-image'),
    max_saved: s.default(s.size(), '10GiB'),
    streams: s.default(
      s.object({
        per_key: s.default(count, 16),
        per_organization: s.default(count, 250),
        per_process: s.default(count, 1000),
      }),
      {},
    ),
  }),
  {},
)
