/** The schema of `config/gateway.yaml`. Unknown keys are rejected, as in every file. */
import { type Infer, s } from '../../core/schema.ts'
import { alertsEntry } from '../alerts.ts'
import { customProvidersEntry } from '../custom-caps.ts'
import { plansEntry } from '../plans.ts'
import { egressEntry } from './egress.ts'
import { endUsersEntry } from './end-users.ts'
import { jobsEntry } from './jobs.ts'
import { mcpEntry } from './mcp.ts'
import { realtimeEntry } from './realtime.ts'
import { secretsEntry } from './secrets.ts'
import { called, text, url } from './terms.ts'

const port = '(?:\\d{1,4}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5])'
const address = s.string({
  pattern: `^(\\[[0-9a-fA-F:]+\\]|[^:\\s]+):${port}$`,
  description: 'a host and a port of up to 65535, such as "127.0.0.1:8080"',
})
const origin = s.string({
  pattern: '^https?://[^\\s/?#@]+$',
  description: 'a scheme, a host and perhaps a port, such as "http://images.internal:9000"',
})
/** As browsers send it: without a path and without the default port of its scheme. */
const webOrigin = s.string({
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
      /** Base address of the collector; `/v1/traces` and `/v1/metrics` are added. */
      endpoint: s.optional(url),
      headers: s.default(s.record(s.string()), {}),
      traces: s.default(s.boolean(), true),
      metrics: s.default(s.boolean(), true),
      /** Share of the requests without a `traceparent` that are traced. */
      sample: s.default(s.number({ minimum: 0, maximum: 1 }), 1),
    }),
    {},
  ),
  /** Whether spans carry the text of prompts. */
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
  /** As its tokens name it. */
  issuer: url,
  client_id: text,
  /** Without one, the client is public. */
  client_secret: s.optional(text),
  /** Made of the address of the page by default. */
  redirect_url: s.optional(
    s.string({
      pattern: '^https?://[^\\s/?#@]+/ui/sign-in/callback$',
      description: 'an address that ends with "/ui/sign-in/callback"',
    }),
  ),
  scopes: s.default(s.array(text), ['openid', 'email', 'profile']),
  /** Claims that a person needs, each with one of its values. Without any, all people are refused. */
  allow: s.default(s.record(claimValues), {}),
})

/** `config/gateway.yaml`. `server`, `stores` and `telemetry` are read at start, the rest at every reload. */
export const gatewayFile = s.object({
  server: s.object({
    listen: s.optional(address),
    admin: s.optional(address),
    public_url: s.optional(url),
    /** Whether the simulated provider serves: `auto` while `listen` is a loopback address. */
    demo: s.default(s.enum('auto', 'on', 'off'), 'auto'),
    drain: s.optional(s.duration()),
    drain_delay: s.default(s.duration(), '0s'),
    /** For the head of a request. */
    header_timeout: s.default(s.duration(), '15s'),
    /** For the whole of a request's body. */
    request_timeout: s.default(s.duration(), '120s'),
    /** Bytes a second at which a body must come, over 10 s, and what waits for a client be taken, with `write_stall` to spare. */
    min_rate: s.default(s.size(), '4KiB'),
    /** A client that accepts no byte of its answer for so long is cut off. */
    write_stall: s.default(s.duration(), '60s'),
    /** A stream that sends nothing for so long sends a heartbeat; 0 for none. */
    heartbeat: s.default(s.duration(), '15s'),
    /** A stream without content begins so long after its request was read. */
    hold: s.default(s.duration(), '10s'),
    /** While a process is busy, the pieces of a stream that come within this time are passed on together. */
    gather: s.default(s.duration(), '10ms'),
    /** Maximum connections of each process. */
    max_connections: s.default(s.integer({ minimum: 1 }), 10_000),
    /** Memory of each process for bodies, fetched files and answers. */
    buffer: s.default(s.size(), '256MiB'),
    /** Memory of each process for cached answers, and for kept reasoning. */
    cache: s.default(s.size(), '64MiB'),
    /** Answers whose clients have left are read on for their usage. */
    linger: s.default(
      s.object({
        time: s.default(s.duration(), '2s'),
        size: s.default(s.size(), '1MiB'),
        /** At a time; eight times as many of all together. */
        per_organization: s.default(s.integer({ minimum: 1 }), 64),
      }),
      {},
    ),
    fetch_from: s.optional(s.array(origin)),
    /** Images and audio that are fetched from addresses of clients. */
    fetch: s.default(
      s.object({
        /** At a time, of one process. */
        concurrency: s.default(s.integer({ minimum: 1 }), 64),
        image_size: s.default(s.size(), '20MiB'),
        image_time: s.default(s.duration(), '10s'),
        audio_size: s.default(s.size(), '64MiB'),
        audio_time: s.default(s.duration(), '60s'),
      }),
      {},
    ),
    cors: s.default(s.object({ origins: s.default(s.array(webOrigin), ['*']) }), {}),
    workers: s.default(workers, 1),
  }),
  /** Options that the filter `auth` has in every chain, unless the chain says otherwise. */
  auth: s.optional(options),
  /**
   * `postgres`: takes the place of the file `sqlite`, beside which a node's own files stand. `redis`: what several nodes or
   * workers share. `keep_requests`: retention of request rows.
   */
  stores: s.object({
    sqlite: s.default(text, '../data/gateway.db'),
    postgres: s.optional(text),
    redis: s.optional(text),
    keep_requests: s.default(s.duration(), '90d'),
  }),
  catalog: s.object({
    /** Starts from the catalogue of the package; own files add to it and override it. */
    extends: s.optional(s.enum('packaged')),
    /** Folder of models files; `./models.d` by default. */
    models: s.optional(text),
    /** Folder of manifests; `../providers.d` by default. */
    providers: s.optional(text),
    /** Folder of routes files; without it there are none. */
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
