/** A small configuration, and registries that depend on nothing but the contracts. */

import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { openAiChat } from '../../src/codecs/openai-chat.ts'
import { ConfigError } from '../../src/config/error.ts'
import { link } from '../../src/config/link.ts'
import { loadFiles } from '../../src/config/load.ts'
import type { Registries } from '../../src/config/registries.ts'
import type { ConfigSnapshot } from '../../src/config/snapshot.ts'
import type { Codec } from '../../src/core/codec.ts'
import type { Endpoint } from '../../src/core/endpoint.ts'
import type { Facet, Filter, FilterFactory } from '../../src/core/filter.ts'
import type { Services } from '../../src/core/ports.ts'
import { value } from '../../src/core/reply.ts'
import { type Schema, s } from '../../src/core/schema.ts'
import type { Translator } from '../../src/core/translator.ts'
import { operations } from '../../src/operations/index.ts'

/** `${NAME}` as files hold it. */
export const ref = (name: string): string => `\${${name}}`

/** As the base configuration's provider writes its secret and its header. */
export const KEY = `"${ref('ACME_API_KEY')}"`
export const TEAM = `"${ref('TEAM')}"`

export const GATEWAY = 'config/gateway.yaml'
export const MODELS = 'config/models.d/acme.yaml'
export const PROVIDER = 'providers.d/acme.yaml'

export type Files = Readonly<Record<string, string>>

export const gatewayYaml = `server: { listen: 127.0.0.1:0, drain: 30s }
stores: { sqlite: ../data/gateway.db }
catalog: { models: ./models.d, providers: ../providers.d }
chains:
  inference:
    - admission: { in_flight: 10, lag: 200ms }
    - auth
    - ratelimit: { rpm: 600 }
    - cache: { max_entry: 1MiB }
    - route
    - translate
    - billing
  local:
    - auth: { optional: true }
    - ratelimit
endpoints:
  chat: { ratelimit: { rpm: 100 } }
`
export const modelsYaml = `models:
  - id: acme-large
    name: Acme Large
    family: acme
    aliases: [acme-l]
    created: 2026-01-31
    input: [text, image]
    output: [text]
    context_length: 200000
  - id: acme-embed
    name: Acme Embed
    family: acme
    input: [text]
    output: [embedding]
`
export const providerYaml = `provider: acme
name: Acme AI
base_url: https://api.acme.example/v1/
auth: { scheme: bearer, secret: ${KEY} }
wires: { chat: openai.chat }
headers: { X-Team: ${TEAM} }
timeouts: { idle: 90s }
models:
  - model: acme-large
    id: acme-large-2026-01
    pricing: { prompt: "2.50", completion: "10.00", input_cache_read: "0.25", request: "0.001" }
    supports: [streaming, tools]
`
export const base: Files = {
  [GATEWAY]: gatewayYaml,
  [MODELS]: modelsYaml,
  [PROVIDER]: providerYaml,
}
export const env = { ACME_API_KEY: 'sk-acme-one, sk-acme-two', TEAM: 'team-secret', DRAIN: '30s' }

/** Returns the path of `gateway.yaml`. */
export function writeFiles(folder: string, files: Files): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return join(folder, GATEWAY)
}

/** One call of a factory's `create`. */
export interface Made {
  readonly name: string
  readonly options: unknown
  readonly filter: Filter
  disposed: number
}

export interface FakeRegistries extends Registries {
  readonly made: Made[]
  readonly logged: string[]
  readonly filters: Map<string, FilterFactory>
}

const unused = (): never => {
  throw new Error('not called by these tests')
}
const translator = (wire: string): Translator => ({ op: 'chat', wire, encode: unused, decoder: unused, error: unused })
/** It passes on tokens of one header of its clients. */
const native = { wire: 'anthropic.messages', headers: ['anthropic-beta'], withMedia: unused, encode: unused }
const codec: Codec = { wire: 'fake', decode: unused, preset: openAiChat.preset, encoder: unused, error: unused }
/** Its wire says what it was made with. */
const choosy: Codec = {
  ...codec,
  compat: {
    options: s.object({ loud: s.default(s.boolean(), true), reasons: s.optional(s.boolean()) }),
    create: options => ({ ...codec, wire: JSON.stringify(options) }),
  },
}
const endpoint = (name: string, method: 'GET' | 'POST', path: string, chain: string): Endpoint => {
  const row = { name, method, path, chain, codec: name === 'chat' ? choosy : codec, bodyLimit: 1024 }
  return chain === 'local'
    ? { ...row, serve: () => Promise.resolve(value(name)) }
    : { ...row, operation: operations.chat, serve: 'upstream' }
}

export function fakeRegistries(): FakeRegistries {
  const made: Made[] = []
  const logged: string[] = []
  const filter = (
    name: string,
    options: Schema<unknown>,
    facets: { needs?: Facet[]; gives?: Facet[]; repeats?: boolean } = {},
  ): FilterFactory => ({
    name,
    options,
    ...facets,
    create(options) {
      const record: Made = { name, options, filter: { dispose: () => void record.disposed++ }, disposed: 0 }
      made.push(record)
      return record.filter
    },
  })
  const filters = [
    filter('admission', s.object({ in_flight: s.integer({ minimum: 1 }), lag: s.default(s.duration(), '500ms') })),
    filter('auth', s.object({ optional: s.default(s.boolean(), false) }), { gives: ['principal'] }),
    filter('ratelimit', s.object({ rpm: s.default(s.integer({ minimum: 1 }), 600) }), {
      needs: ['principal'],
      gives: ['quota'],
    }),
    filter('cache', s.object({ max_entry: s.default(s.size(), '64KiB') })),
    filter('route', s.object({}), { needs: ['principal'], gives: ['target'], repeats: true }),
    filter('translate', s.object({}), { needs: ['target'], gives: ['outbound'] }),
    filter('billing', s.object({}), { needs: ['target'], gives: ['charge'] }),
  ]
  const log = (_fields: object, message: string) => void logged.push(message)
  return {
    made,
    logged,
    wires: new Map([
      ['openai.chat', translator('openai.chat')],
      ['anthropic.messages', { ...translator('anthropic.messages'), native }],
    ]),
    filters: new Map(filters.map(factory => [factory.name, factory])),
    operations,
    endpoints: [
      endpoint('chat', 'POST', '/v1/chat/completions', 'inference'),
      endpoint('messages', 'POST', '/v1/messages', 'inference'),
      endpoint('models', 'GET', '/v1/models', 'local'),
      endpoint('key', 'GET', '/v1/key', 'local'),
    ],
    services: { log: { debug: log, info: log, warn: log, error: log } } as Services,
    terminal: () => Promise.resolve(value('upstream')),
  }
}

/** Loads and links files of a fresh folder. */
export async function linked(
  folder: string,
  files: Files,
  registries: Registries = fakeRegistries(),
  environment: Readonly<Record<string, string>> = env,
): Promise<ConfigSnapshot> {
  return link(await loadFiles(writeFiles(folder, files), { env: environment }), registries)
}

/** Loads the base configuration with these files, in a fresh folder of `root`. */
export const loadIn =
  (root: string) =>
  (files: Files, environment: Readonly<Record<string, string>> = env): Promise<ConfigSnapshot> =>
    linked(mkdtempSync(join(root, 'config-')), { ...base, ...files }, fakeRegistries(), environment)

/** `file` of the base configuration with one change, which must apply. */
export function edited(file: string, from: string, to: string): Files {
  const before = base[file]!
  if (!before.includes(from)) throw new Error(`${file} does not hold ${JSON.stringify(from)}`)
  return { [file]: before.replace(from, () => to) }
}

export async function refusal(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
  } catch (thrown) {
    return thrown instanceof ConfigError ? String(thrown) : `not a ConfigError: ${thrown}`
  }
  return 'not refused'
}

export const acme = (snapshot: ConfigSnapshot) => snapshot.catalog.providers.get('acme')!
export const mapping = (snapshot: ConfigSnapshot) => snapshot.catalog.models.get('acme-large')!.mappings[0]!
