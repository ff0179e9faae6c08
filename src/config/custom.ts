/** Providers that an organization declares for itself: manifests as in `providers.d`, but untrusted. */
import { isPublicHost } from '../core/address.ts'
import type { Catalog } from '../core/catalog.ts'
import { REGION } from '../core/provider-settings.ts'
import type { Mapping, Model, Provider } from '../core/translator.ts'
import { isObject } from '../json/json.ts'
import { urlOf } from '../lib/url.ts'
import { capped, cappedKeys, refuseBeyond } from './custom-caps.ts'
import { ConfigError } from './error.ts'
import type { ConfigFile } from './file.ts'
import { located, parseFile } from './large.ts'
import { linkMappings, newModel } from './mapping.ts'
import { linkProvider, type WireRegistries } from './provider.ts'
import type { MappingEntry } from './schemas/offer.ts'
import { mappingsIn, type ProviderFile, providerFile } from './schemas/provider.ts'
import { MODEL_ID } from './schemas/terms.ts'
import { type Path, Source } from './source.ts'
import { check } from './validate.ts'
import type { Bounds } from './yaml.ts'

/** Limits what custom providers may use and reach. */
export interface CustomOptions extends WireRegistries {
  /** Allows private addresses: for local engines and tests. */
  readonly allowPrivate: boolean
}

/** A valid manifest. */
interface Declaration {
  readonly provider: string
  readonly models: readonly string[]
  /** The manifest to store, as JSON. */
  readonly manifest: string
}

const NAME = 'manifest'
/** Characters above which a thread parses: the dearest text takes 3 ms per kilobyte. */
const MIN_THREAD_CHARACTERS = 8 * 1024
const MAX_YAML_CHARACTERS = 64 * 1024
/** Bounds of the stored JSON. It has quotes that YAML can omit. Linking takes about a microsecond per value. */
const STORED_BOUNDS: Bounds = { characters: 2 * MAX_YAML_CHARACTERS, values: 10_000 }
const MAX_MODELS = 200
/** In the JSON of a manifest that is not parsed. */
const PROVIDER = /"provider":"([a-z0-9-]{1,64})"/
/** Names with another meaning in requests and rules. */
const RESERVED = ['auto', 'custom', 'dynamic', 'smart']
/** Keys for operators only: they concern the gateway's own network. */
const OPERATORS = ['allow_http', 'open', 'discover', 'organizations', 'egress'] as const
/** Headers that hold a credential or belong to the connection. */
const FOREIGN_HEADERS =
  /^(?:(?:proxy-)?authorization|.*api-?key.*|cookie|.*token.*|.*secret.*|host|content-.*|transfer-encoding|connection|te|upgrade|expect)$/s

/**
 * Rejects with a ConfigError whose position is known. An error in a value that contains a secret does not repeat the
 * value. A long text is parsed in a thread; `shared` is read after that.
 */
export async function readManifest(
  orgId: string,
  text: string,
  shared: () => Catalog,
  options: CustomOptions,
): Promise<Declaration> {
  const source = new Source(NAME, text)
  // `error` would parse the whole text to find the position.
  if (text.length > MAX_YAML_CHARACTERS) throw source.errorAt(0, `expected at most ${MAX_YAML_CHARACTERS} characters`)
  try {
    return declarationOf(
      orgId,
      source,
      await parseFile(source, MIN_THREAD_CHARACTERS, STORED_BOUNDS),
      shared(),
      options,
    )
  } catch (thrown) {
    throw await located(thrown, MIN_THREAD_CHARACTERS)
  }
}

/** Throws a ConfigError. Modifies `plain`. */
function declarationOf(
  orgId: string,
  source: Source,
  plain: unknown,
  shared: Catalog,
  options: CustomOptions,
): Declaration {
  refuseTooMany(plain, source)
  refuseReferences(plain, source)
  const manifest = JSON.stringify(plain)
  const caps = cappedKeys(plain)
  const file = fileOf(source, plain)
  if (shared.customCaps) refuseBeyond(file.value, caps, shared.customCaps, source)
  const { provider } = file.value
  const models = mappingsIn(file.value)
  if (shared.providers.has(provider)) {
    throw source.error(`"${provider}" is the id of a shared provider; choose another id`, ['provider'])
  }
  for (const [index, { model }] of models.entries()) {
    if (!shared.models.has(model) && !MODEL_ID.test(model)) {
      const message = `expected a model id of letters, digits and ".", "_", ":", "-", got "${model}"`
      throw source.error(message, ['models', index, 'model'])
    }
    const meant = shared.models.has(model) ? undefined : shared.aliases.get(model)
    if (meant) throw source.error(`"${model}" is an alias of "${meant.id}"; write that`, ['models', index, 'model'])
  }
  const linked = linkFile(orgId, file, modelsFor(shared, [file]), shared, options)
  return { provider, models: linked.map(({ model }) => model.id), manifest }
}

/**
 * The shared catalogue with an organization's own providers and models. Omits what no longer fits because the shared
 * catalogue has changed, and calls `warn` with the provider and the reason.
 */
export function linkCustom(
  orgId: string,
  manifests: readonly string[],
  shared: Catalog,
  options: CustomOptions,
  warn: (provider: string, why: string) => void,
): Catalog {
  const files: ConfigFile<ProviderFile>[] = []
  const attempt = (name: string, work: () => void) => {
    try {
      work()
    } catch (thrown) {
      if (!(thrown instanceof ConfigError)) throw thrown
      warn(name, thrown.message)
    }
  }
  for (const manifest of manifests) {
    if (manifest.length > STORED_BOUNDS.characters) {
      warn(
        PROVIDER.exec(manifest)?.[1] ?? 'unknown',
        `it has more than ${STORED_BOUNDS.characters} characters; declare a shorter one`,
      )
      continue
    }
    const plain: unknown = JSON.parse(manifest)
    attempt(String((plain as { provider?: unknown }).provider), () => {
      const file = fileOf(new Source(NAME, manifest), plain)
      if (shared.providers.has(file.value.provider)) throw file.source.error('a shared provider has this id now')
      if (file.value.enabled) files.push(file)
    })
  }
  const models = modelsFor(shared, files)
  const providers = new Map(shared.providers)
  for (const file of files) {
    attempt(file.value.provider, () => {
      for (const mapping of linkFile(orgId, file, models, shared, options)) {
        providers.set(mapping.provider.id, mapping.provider)
        ;(mapping.model.mappings as Mapping[]).push(mapping)
      }
    })
  }
  const all = new Map(shared.models)
  for (const [id, model] of models) if (Object.freeze(model.mappings).length > 0) all.set(id, model)
  // An alias of a model with own offers must refer to the merged model, as its id does.
  const aliases = new Map([...shared.aliases].map(([alias, model]) => [alias, all.get(model.id) ?? model]))
  return { ...shared, models: all, aliases, providers }
}

/** Throws a ConfigError. Modifies `plain`. */
function fileOf(source: Source, plain: unknown): ConfigFile<ProviderFile> {
  withoutSecret(plain, source)
  if (isObject(plain) && plain.extends !== undefined) {
    throw source.error('only operators extend packaged manifests; write the whole manifest', ['extends'], 'key')
  }
  const result = check(providerFile, plain, [['auth', 'secret']])
  if ('issue' in result) throw source.error(result.issue.message, result.issue.path, result.issue.at)
  const secrets = [['auth', 'secret']]
  const none = {
    referred: [],
    variables: { secret: [], address: [] },
    unset: [],
    references: [],
    outside: [],
    digest: '',
  }
  return { source, value: result.value, secrets, ...none }
}

/**
 * Sets a placeholder: schemes require a secret, which an organization adds separately, so that it is sealed under a
 * master key.
 */
function withoutSecret(plain: unknown, source: Source): void {
  if (!isObject(plain)) return
  if (Array.isArray(plain.auth) || (isObject(plain.auth) && plain.auth.secrets !== undefined)) {
    throw source.error(
      'a manifest has one scheme and no secrets; add each with `gatewayctl provider-keys create`, they share the load',
      ['auth'],
    )
  }
  if (!isObject(plain.auth)) return
  if (plain.auth.secret !== undefined && plain.auth.secret !== '') {
    throw source.error('a manifest must not contain a secret; add it with `gatewayctl provider-keys create`', [
      'auth',
      'secret',
    ])
  }
  delete plain.auth.secret
  if (plain.auth.scheme !== 'none') plain.auth.secret = ''
}

/** Before anything looks at each of them. */
function refuseTooMany(plain: unknown, source: Source): void {
  if (isObject(plain) && Array.isArray(plain.models) && plain.models.length > MAX_MODELS)
    throw source.error(`expected at most ${MAX_MODELS} models`, ['models'])
}

/** Organizations must not read the environment and the files of the gateway. */
function refuseReferences(value: unknown, source: Source, path: Path = []): void {
  if (typeof value === 'string' && value.includes('${')) {
    throw source.error(`references such as "\${NAME}" are not resolved in an organization's manifest`, path)
  }
  if (typeof value !== 'object' || value === null) return
  for (const [key, inner] of Object.entries(value)) refuseReferences(inner, source, [...path, key])
}

/** Models that the files name: shared ones as copies with their mappings, new ones without. */
function modelsFor(shared: Catalog, files: readonly ConfigFile<ProviderFile>[]): Map<string, Model> {
  const models = new Map<string, Model>()
  for (const { value } of files) {
    for (const entry of mappingsIn(value)) {
      if (models.has(entry.model)) continue
      const known = shared.models.get(entry.model)
      models.set(entry.model, known ? joined(known) : modelOf(entry, value))
    }
  }
  return models
}

function joined(shared: Model): Model {
  const model: Model = { ...shared, mappings: [] }
  const mappings = shared.mappings.map(mapping => Object.freeze({ ...mapping, model }))
  return Object.assign(model, { mappings })
}

function modelOf({ model: id, wires, supports }: MappingEntry, file: ProviderFile): Model {
  const operations = Object.keys({ ...file.wires, ...wires })
  const input = supports.includes('vision') ? ['text', 'image'] : ['text']
  const output = operations.join() === 'embeddings' ? ['embedding'] : ['text']
  return { ...newModel(id, file.provider, input, output), operations }
}

/** Throws a ConfigError. */
function linkFile(
  orgId: string,
  file: ConfigFile<ProviderFile>,
  models: ReadonlyMap<string, Model>,
  { customCaps, egress }: Catalog,
  options: CustomOptions,
): readonly Mapping[] {
  const { source, value } = file
  if (RESERVED.includes(value.provider)) throw source.error(`"${value.provider}" is reserved`, ['provider'])
  if (value.models === 'open') throw source.error('expected a list of models: "open" is for the operator', ['models'])
  const foreignKey = OPERATORS.find(key => value[key])
  if (foreignKey) throw source.error(`only the operator of the gateway can set "${foreignKey}"`, [foreignKey], 'key')
  // They would be the operator's credentials, sent to an address of the organization.
  if (!Array.isArray(value.auth) && value.auth.source)
    throw source.error('only the operator of the gateway can set "source"', ['auth', 'source'], 'key')
  // A region would become part of the address that is checked here.
  if (value.base_url.includes(REGION))
    throw source.error(`"${REGION}" is not allowed in a custom provider's address`, ['base_url'])
  const url = urlOf(value.base_url)
  if (url && !options.allowPrivate && (url.protocol !== 'https:' || !isPublicHost(url.hostname))) {
    throw source.error('expected "https://" and a public host', ['base_url'])
  }
  const foreign = Object.keys(value.headers).find(name => FOREIGN_HEADERS.test(name.toLowerCase()))
  if (foreign !== undefined)
    throw source.error(`the header "${foreign}" cannot be set by a manifest`, ['headers', foreign], 'key')

  const linked = linkProvider(file, options, egress)
  const provider: Provider = Object.freeze({ ...(customCaps ? capped(linked, customCaps) : linked), owner: orgId })
  return [...linkMappings(file, provider, models, options)]
}
