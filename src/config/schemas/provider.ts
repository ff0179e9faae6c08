/** The schema of `providers.d/<id>.yaml`. Unknown keys are rejected. */
import { type Infer, s } from '../../core/schema.ts'
import { providerEgressEntry } from './egress.ts'
import { type MappingEntry, mapping, openEntry } from './offer.ts'
import { date, list, mapOf, name, someTime, text, url } from './terms.ts'

const id = s.string({
  pattern: '^[a-z0-9][a-z0-9-]{0,63}$',
  description: 'a provider id of lower-case letters, digits and "-", such as "acme"',
})

const region = s.string({ pattern: '^[a-z0-9-]{1,64}$', description: 'a region such as "us-east-1"' })
const scheme = s.enum('bearer', 'header', 'query', 'aws-sigv4', 'gcp-oauth', 'none')
const perMinute = s.optional(s.integer({ minimum: 1, maximum: 1_000_000_000 }))

const authFields = {
  secret: s.optional(s.string()),
  header: s.optional(s.string({ pattern: '^[A-Za-z0-9-]{1,64}$', description: 'a header name such as "x-api-key"' })),
  prefix: s.optional(s.string({ pattern: '^[A-Za-z]{1,32} $', description: 'a word and a space, such as "Token "' })),
  parameter: s.optional(text),
  region: s.optional(region),
  service: s.optional(s.string({ pattern: '^[a-z0-9-]{1,64}$', description: 'a service such as "bedrock"' })),
  scope: s.optional(text),
  source: s.optional(s.enum('default')),
  profile: s.optional(text),
}

/** One of several credentials of a provider; what it omits it has from what stands around or before it. */
const credential = s.object({
  scheme: s.optional(scheme),
  ...authFields,
  name: s.optional(s.string({ pattern: '^[A-Za-z0-9._ -]{1,64}$', description: 'a name such as "team-a"' })),
  weight: s.optional(s.number({ exclusiveMinimum: 0, maximum: 1000, description: 'a number above 0, up to 1000' })),
  rpm: perMinute,
  tpm: perMinute,
  regions: s.optional(list(region, { minItems: 1 })),
})
/** A valid credential of a list. */
export type CredentialEntry = Infer<typeof credential>

const CREDENTIALS = { minItems: 1, maxItems: 100 }
const auth = s.object({
  scheme,
  ...authFields,
  secrets: s.optional(s.array(credential, CREDENTIALS)),
})

const passed = s.string({
  pattern: '^[A-Za-z0-9._-]{0,64}\\*?$',
  minLength: 1,
  description: 'a token such as "context-1m-2025-08-07", or the beginning of some and "*"',
})

const nativeName = s.string({
  pattern: '^[A-Za-z0-9._-]{0,64}\\*?$',
  minLength: 1,
  description: 'a name such as "inference_geo", or the beginning of some and "*"',
})

/** Codes for errors of a provider. The first three blame its account, the others the request. */
const meaning = s.enum(
  'insufficient_quota',
  'invalid_api_key',
  'rate_limit_exceeded',
  'context_length_exceeded',
  'content_filter',
)

/** `providers.d/<id>.yaml`. */
export const providerFile = s.object({
  provider: id,
  extends: s.optional(s.enum('packaged')),
  name,
  enabled: s.default(s.boolean(), true),
  base_url: url,
  allow_http: s.default(s.boolean(), false),
  auth: s.objectOr(auth, credential, CREDENTIALS),
  headers: s.default(mapOf(s.string()), {}),
  pass_headers: s.default(mapOf(list(passed, { minItems: 1 })), {}),
  native_fields: s.optional(list(nativeName, { minItems: 1 })),
  native_tools: s.optional(list(nativeName, { minItems: 1 })),
  wires: mapOf(s.string()),
  quirks: s.default(
    s.object({
      drop: s.default(list(text), []),
      rename: s.default(mapOf(text), {}),
      default: s.default(mapOf(s.unknown()), {}),
      clamp: s.default(mapOf(s.array(s.number(), { minItems: 2, maxItems: 2 })), {}),
    }),
    {},
  ),
  timeouts: s.default(
    s.object({
      connect: s.default(s.duration(), '5s'),
      first_event: s.optional(someTime),
      idle: s.default(s.duration(), '120s'),
      total: s.default(someTime, '900s'),
    }),
    {},
  ),
  concurrency: s.default(s.integer({ minimum: 1, maximum: 100_000 }), 256),
  egress: providerEgressEntry,
  inline_media: s.optional(s.boolean()),
  reasoning_replay: s.optional(s.enum('reasoning', 'reasoning_content', 'reasoning_details')),
  error_codes: s.optional(mapOf(meaning)),
  error_phrases: s.optional(mapOf(meaning)),
  priority: s.default(s.number({ minimum: 0 }), 1),
  priced_at: s.optional(date),
  data_policy: s.optional(
    s.object({
      trains_on_data: s.optional(s.boolean()),
      logs_prompts: s.optional(s.boolean()),
      retention: s.optional(s.string()),
      headquarters: s.optional(s.string()),
      soc2: s.optional(s.enum('1', '2')),
      iso27001: s.optional(s.boolean()),
      gdpr: s.optional(s.boolean()),
    }),
  ),
  models: s.arrayOr('open', mapping, { description: 'a list of models, or "open"' }),
  open: s.optional(openEntry),
  discover: s.default(s.boolean(), false),
  organizations: s.optional(s.arrayOr('all', text, { minItems: 1, description: 'a list of organizations, or "all"' })),
})
/** A valid manifest, with defaults; times are milliseconds. */
export type ProviderFile = Infer<typeof providerFile>

/** Models of the catalogue that a provider serves. */
export const mappingsIn = ({ models }: Pick<ProviderFile, 'models'>): readonly MappingEntry[] =>
  models === 'open' ? [] : models
