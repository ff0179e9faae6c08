/** Aliases of models: those in a model's entry, and those in the `aliases` of a models file. */
import type { Catalog } from '../core/catalog.ts'
import type { Mapping, Model } from '../core/translator.ts'
import { unknownName } from '../lib/nearest.ts'
import type { ConfigFile } from './file.ts'
import type { ModelsFile } from './schemas/models.ts'
import { MODEL_ID } from './schemas/terms.ts'
import type { Path, Source } from './source.ts'

type Files = readonly ConfigFile<ModelsFile>[]

/** One alias as written in a file. */
interface Written {
  readonly alias: string
  /** Id of a model, or `<provider>/<model>`. */
  readonly target: string
  readonly source: Source
  readonly path: Path
  /** Whether the alias is the key or the value at `path`. */
  readonly at: 'key' | 'value'
}

/** Names with another meaning in requests. */
export const RESERVED = ['auto']

/** All aliases of the models files. */
interface Aliases {
  /** Aliases by model id. */
  readonly byModel: ReadonlyMap<string, readonly string[]>
  /** Aliases of single offers. */
  readonly pinned: readonly Written[]
}

/** Throws a ConfigError. `ids`: all model ids. */
export function readAliases(files: Files, ids: ReadonlySet<string>): Aliases {
  const models = new Map<string, string>()
  const pinned = new Map<string, Written>()
  for (const written of [...entryAliases(files), ...lineAliases(files)]) {
    const { alias, source, path, at } = written
    const standsFor = models.get(alias) ?? pinned.get(alias)?.target
    const taken = ids.has(alias) ? 'is the id of a model' : standsFor && `already names "${standsFor}"`
    if (taken) throw source.error(`the alias "${alias}" ${taken}`, path, at)
    if (RESERVED.includes(alias)) throw source.error(`"${alias}" is reserved`, path, at)
    if (!MODEL_ID.test(alias)) {
      throw source.error(`expected an alias of letters, digits and ".", "_", ":", "-", got "${alias}"`, path, at)
    }
    if (written.target.includes('/')) pinned.set(alias, written)
    else models.set(alias, modelOf(written, ids, models))
  }
  const byModel = new Map<string, string[]>()
  for (const [alias, id] of models) byModel.set(id, [...(byModel.get(id) ?? []), alias])
  return { byModel, pinned: [...pinned.values()] }
}

function* entryAliases(files: Files): Generator<Written> {
  for (const { source, value } of files) {
    for (const [index, { id, aliases }] of value.models.entries()) {
      for (const [position, alias] of aliases.entries()) {
        yield { alias, target: id, source, path: ['models', index, 'aliases', position], at: 'value' }
      }
    }
  }
}

function* lineAliases(files: Files): Generator<Written> {
  for (const { source, value } of files) {
    for (const [alias, target] of Object.entries(value.aliases)) {
      yield { alias, target, source, path: ['aliases', alias], at: 'key' }
    }
  }
}

function modelOf({ target, source, path }: Written, ids: ReadonlySet<string>, known: ReadonlyMap<string, string>) {
  const id = ids.has(target) ? target : known.get(target)
  if (id === undefined) throw source.error(unknownName('model', target, [...ids, ...known.keys()]), path)
  return id
}

/** The offers named by aliases. Throws a ConfigError. */
export function linkPinned({ pinned }: Aliases, catalog: Catalog): ReadonlyMap<string, string> {
  const linked = new Map<string, string>()
  for (const { alias, target, source, path } of pinned) {
    const issue = offerIssue(target, catalog)
    if (issue !== undefined) throw source.error(issue, path)
    linked.set(alias, target)
  }
  return linked
}

/** Why `<provider>/<model>` names no offer; undefined for one that does. */
export function offerIssue(target: string, { models, providers, open }: Catalog): string | undefined {
  const [id = ''] = target.split('/', 1)
  if (!providers.has(id)) return unknownName('provider', id, providers.keys())
  const name = target.slice(id.length + 1)
  const offers: Mapping[] = [...models.values()].flatMap(({ mappings }) =>
    mappings.filter(({ provider }) => provider.id === id),
  )
  const names = offers.flatMap(({ model, externalId }) => [...namesOf(model), externalId])
  if (names.includes(name) || open?.get(id)?.find(name)) return undefined
  return `${unknownName('model', name, names)} (of the provider "${id}")`
}

const namesOf = ({ id, aliases }: Model): readonly string[] => [id, ...aliases]
