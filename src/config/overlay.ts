/** `extends: packaged`: own files add to the packaged catalogue and override it. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isObject, type Json } from '../json/json.ts'
import { unknownName } from '../lib/nearest.ts'
import type { ConfigFile } from './file.ts'
import { parseFile } from './large.ts'
import { PACKAGE } from './locate.ts'
import { parsedAtBuild } from './parsed.ts'
import type { ModelsFile } from './schemas/models.ts'
import type { ProviderFile } from './schemas/provider.ts'
import { Source } from './source.ts'

/** Folders of the packaged catalogue; absolute. */
export const PACKAGED = { models: join(PACKAGE, 'config/models.d'), providers: join(PACKAGE, 'providers.d') }

/** The packaged models files without the models and aliases that `own` files define. */
export function modelsBelow(
  packaged: readonly ConfigFile<ModelsFile>[],
  own: readonly ConfigFile<ModelsFile>[],
): ConfigFile<ModelsFile>[] {
  const entries = own.flatMap(({ value }) => value.models)
  const ids = new Set(entries.map(({ id }) => id))
  const names = new Set([
    ...ids,
    ...entries.flatMap(({ aliases }) => aliases),
    ...own.flatMap(({ value }) => Object.keys(value.aliases)),
  ])
  return packaged.map(file => {
    const { models, aliases } = file.value
    const value = {
      models: models.flatMap(entry => (ids.has(entry.id) ? [] : [withoutAliases(entry, names)])),
      aliases: Object.fromEntries(Object.entries(aliases).filter(([alias]) => !names.has(alias))),
    }
    return { ...file, value: Object.freeze(value) }
  })
}

function withoutAliases(entry: ModelsFile['models'][number], names: ReadonlySet<string>): typeof entry {
  if (!entry.aliases.some(alias => names.has(alias))) return entry
  return Object.freeze({ ...entry, aliases: entry.aliases.filter(alias => !names.has(alias)) })
}

/** The packaged manifests without those of providers that `own` files define. */
export function providersBelow(
  packaged: readonly ConfigFile<ProviderFile>[],
  own: readonly ConfigFile<ProviderFile>[],
): ConfigFile<ProviderFile>[] {
  const ids = new Set(own.map(({ value }) => value.provider))
  return packaged.filter(({ value }) => !ids.has(value.provider))
}

/**
 * The values of an own manifest over those of the packaged one. Mappings are merged by name, `models` by their `model`;
 * any other value and `pricing` are replaced. Own models come first: they keep their positions.
 */
function mergedManifest(own: Values, packaged: Values): Values {
  const { models: given = [], ...rest } = own
  const { models: base = [], ...below } = packaged
  const merged = merge(below, rest)
  if (own.auth !== undefined) merged.auth = mergedAuth(own.auth, below.auth)
  if (!Array.isArray(given) || !Array.isArray(base)) return { ...merged, models: own.models ?? base }
  const byModel = new Map(base.filter(isObject).map(entry => [entry.model, entry]))
  const models = given.map(entry => (isObject(entry) ? merge(byModel.get(entry.model) ?? {}, entry) : entry))
  const named = new Set(given.filter(isObject).map(({ model }) => model))
  return { ...merged, models: [...models, ...base.filter(entry => !isObject(entry) || !named.has(entry.model))] }
}

/** Several credentials replace the packaged one, and are used as it is. Another scheme uses its secret alone. */
function mergedAuth(own: unknown, packaged: unknown): unknown {
  if (!isObject(packaged)) return own
  const { secret, ...use } = packaged
  if (Array.isArray(own))
    return own.map(entry => (isObject(entry) && entry.scheme === undefined ? merge(use, entry) : entry))
  if (!isObject(own)) return own
  const base = own.scheme === undefined || own.scheme === packaged.scheme ? use : {}
  const isReplaced = own.secrets !== undefined || own.source !== undefined || own.scheme === 'none'
  return merge(isReplaced || secret === undefined ? base : { ...base, secret }, own)
}

type Values = Readonly<Json>

/** New mappings of both; `over` wins. */
function merge(under: Values, over: Values): Json {
  const all: Json = { ...under }
  for (const [key, value] of Object.entries(over)) {
    const below = Object.hasOwn(under, key) ? under[key] : undefined
    // A price is one statement: rates of two lists make no third one.
    all[key] = key !== 'pricing' && isObject(value) && isObject(below) ? merge(below, value) : value
  }
  return all
}

/**
 * The text of the packaged manifest that `plain` extends, and the values of both, references unresolved. Undefined when it
 * extends none. Throws a ConfigError when none has its name.
 */
export async function packagedManifest(
  plain: unknown,
  source: Source,
): Promise<{ text: string; values: Values } | undefined> {
  if (!isObject(plain) || plain.extends !== 'packaged') return undefined
  const names = (await readdir(PACKAGED.providers))
    .filter(name => name.endsWith('.yaml'))
    .map(name => name.slice(0, -5))
  const id = String(plain.provider)
  if (!names.includes(id)) throw source.error(unknownName('packaged provider', id, names), ['provider'])
  const path = join(PACKAGED.providers, `${id}.yaml`)
  const text = await readFile(path, 'utf8')
  const packaged = parsedAtBuild(text) ?? (await parseFile(new Source(path, text)))
  return { text, values: mergedManifest(plain, packaged as Values) }
}
