/** The schema of `config/gateway.yaml`. docs/reference/configuration.md says what each option is for. Unknown keys are rejected. */
import { type Infer, s } from '../../core/schema.ts'
import { alertsEntry } from '../alerts.ts'
import { customProvidersEntry } from '../custom-caps.ts'
import { plansEntry } from '../plans.ts'
import { egressEntry } from './egress.ts'
import { endUsersEntry } from './end-users.ts'
import { mcpEntry } from './mcp.ts'
import { realtimeEntry } from './realtime.ts'
import { secretsEntry } from './secrets.ts'
import { called, reached, someSize, someTime, text, url } from './terms.ts'

const port = '(?:\\d{1,4}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5])'
const address = s.string({
  pattern: `^(\\[[0-9a-fA-F:]+\\]|[^:\\s]+):${port}$`,
  description: 'a host and a port of up to 65535, such as "127.0.0.1:8080"',
})
const webOrigin = s.string({
  format: 'origin',
  pattern: '^(?:\\*|null|[A-Za-z][A-Za-z0-9+.-]*://[^\\s/?#@,*]+)$',
  description: 'an origin such as "https://app.example.com", or "*" for all',
})

/** The filter's own schema validates its options. */
const options = called('options such as "{ rpm: 600 }"', s.record(s.unknown()))
const filterEntry = called(
  'a filter such as "auth", or with options "auth: { optional: true }"',
  s.either(s.string(), s.record(options)),
)
const chain = s.array(filterEntry, { minItems: 1 })
/** A filter of a chain: its name, or its name with options. */
export type ChainEntry = Infer<typeof filterEntry>

const someWorkers = 'a number of processes from 1 to 256, or "auto"'
/** Serving processes; `auto` is one per core. */
const workers = s.either(
  called(someWorkers, s.integer({ minimum: 1, maximum: 256 })),
  called(someWorkers, s.enum('auto')),
)

/** Export by OTLP, read at start. Without `otlp.endpoint`, the variables `OTEL_EXPORTER_OTLP_*` name the collector. */
const telemetryEntry = s.object({
  otlp: s.default(
    s.object({
      endpoint: s.optional(url),
      headers: s.default(s.record(s.string()), {}),
      traces: s.default(s.boolean(), true),
      metrics: s.default(s.boolean(), true),
      sample: s.default(s.number({ minimum: 0, maximum: 1 }), 1),
    }),
    {},
  ),
  content: s.default(s.boolean(), false),
})

/** Other gateways whose clients are served; a name alone turns it on. */
const compatEntry = s.optional(
  s.either(
    called('"litellm", or "{ litellm: true }"', s.enum('litellm')),
    s.object({ litellm: s.optional(s.boolean()) }),
  ),
)

const claimValues = called(
  'a text such as "platform", perhaps with "*"',
  s.either(text, s.array(text, { minItems: 1 })),
)

/** The identity provider that signs people in to the page at `/ui`, beside the admin token. */
const oidcEntry = s.object({
  issuer: url,
  client_id: text,
  client_secret: s.optional(text),
  redirect_url: s.optional(
    s.string({
      pattern: '^https?://[^\\s/?#@]+/ui/sign-in/callback$',
      description: 'an address that ends with "/ui/sign-in/callback"',
    }),
  ),
  scopes: s.default(s.array(text, { contains: { const: 'openid' }, description: 'scopes with "openid" among them' }), [
    'openid',
    'email',
    'profile',
  ]),
  allow: s.default(s.record(claimValues), {}),
})

const upTo1000 = called('a number from 1 to 1000', s.integer({ minimum: 1, maximum: 1000 }))

/** Polling, retention and callbacks of jobs. */
const jobsEntry = s.object({
  poll: s.default(s.duration(), '5s'),
  poll_max: s.default(s.duration(), '30s'),
  timeout: s.default(someTime, '60m'),
  keep: s.default(s.duration(), '7d'),
  lease: s.default(s.duration(), '30s'),
  concurrency: s.default(upTo1000, 16),
  results: s.default(s.enum('auto', 'keep', 'proxy'), 'auto'),
  blobs: s.default(text, '../data/blobs'),
  max_result: s.default(s.size(), '2GiB'),
  max_kept: s.default(s.size(), '100GiB'),
  streams: s.default(called('a number from 1 to 10000', s.integer({ minimum: 1, maximum: 10_000 })), 256),
  callback_concurrency: s.default(upTo1000, 100),
  callback_per_organization: s.default(upTo1000, 10),
  callback_per_host: s.default(upTo1000, 8),
  callback_retry: s.default(s.duration(), '30s'),
  callback_attempts: s.default(upTo1000, 8),
  callback_timeout: s.default(s.duration(), '30s'),
  callback_to: s.default(s.array(reached), []),
})

/** `config/gateway.yaml`. `server`, `stores` and `telemetry` are read at start, the rest at every reload. */
export const gatewayFile = s.object({
  server: s.object({
    listen: s.optional(address),
    admin: s.optional(address),
    public_url: s.optional(url),
    demo: s.default(s.enum('auto', 'on', 'off'), 'auto'),
    drain: s.optional(s.duration()),
    drain_delay: s.default(s.duration(), '0s'),
    header_timeout: s.default(s.duration(), '15s'),
    request_timeout: s.default(s.duration(), '120s'),
    min_rate: s.default(s.size(), '4KiB'),
    write_stall: s.default(s.duration(), '60s'),
    heartbeat: s.default(s.duration(), '15s'),
    hold: s.default(s.duration(), '10s'),
    gather: s.default(s.duration(), '10ms'),
    max_connections: s.default(s.integer({ minimum: 1 }), 10_000),
    buffer: s.default(someSize, '256MiB'),
    cache: s.default(s.size(), '64MiB'),
    linger: s.default(
      s.object({
        time: s.default(s.duration(), '2s'),
        size: s.default(s.size(), '1MiB'),
        per_organization: s.default(s.integer({ minimum: 1 }), 64),
      }),
      {},
    ),
    fetch_from: s.optional(s.array(reached)),
    fetch: s.default(
      s.object({
        concurrency: s.default(s.integer({ minimum: 1 }), 64),
        image_size: s.default(someSize, '20MiB'),
        image_time: s.default(someTime, '10s'),
        audio_size: s.default(someSize, '64MiB'),
        audio_time: s.default(someTime, '60s'),
      }),
      {},
    ),
    cors: s.default(s.object({ origins: s.default(s.array(webOrigin), ['*']) }), {}),
    workers: s.default(workers, 1),
  }),
  auth: s.optional(options),
  stores: s.object({
    sqlite: s.default(text, '../data/gateway.db'),
    postgres: s.optional(text),
    redis: s.optional(text),
    keep_requests: s.default(s.duration(), '90d'),
  }),
  catalog: s.object({
    extends: s.optional(s.enum('packaged')),
    models: s.optional(text),
    providers: s.optional(text),
    routes: s.optional(text),
    plugins: s.optional(text),
  }),
  chains: s.record(chain),
  endpoints: s.default(s.record(s.record(options)), {}),
  plans: plansEntry,
  custom_providers: customProvidersEntry,
  jobs: s.default(jobsEntry, {}),
  mcp: mcpEntry,
  realtime: realtimeEntry,
  telemetry: s.default(telemetryEntry, {}),
  secrets: s.optional(secretsEntry),
  admin: s.default(s.object({ oidc: s.optional(oidcEntry) }), {}),
  end_users: endUsersEntry,
  egress: egressEntry,
  compat: compatEntry,
  alerts: alertsEntry,
})
/** A valid `gateway.yaml`, with defaults; times are milliseconds, sizes bytes. */
export type GatewayFile = Infer<typeof gatewayFile>
