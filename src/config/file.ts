/** Reads one kind of configuration file; parses only files that changed since the last reading. */
import { createHmac } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { Schema } from '../core/schema.ts'
import { nearest } from '../lib/nearest.ts'
import { sha256 } from '../lib/opaque.ts'
import { MASK } from '../secrets/mask.ts'
import { type NamedFile, withContents } from './contents.ts'
import { ConfigError } from './error.ts'
import { parseFile } from './large.ts'
import {
  type OutsideValue,
  outsideIn,
  outsideOf,
  resolveOutside,
  type SecretReader,
  shownReferences,
} from './outside.ts'
import { parsedAtBuild } from './parsed.ts'
import {
  type Env,
  expand,
  isReferred,
  type Lack,
  lacking,
  type References,
  referencedFiles,
  resolveReferences,
  systemErrorText,
  unresolved,
  variablesIn,
} from './reference.ts'
import { type Path, Source, samePath } from './source.ts'
import { check } from './validate.ts'
import { type Expanded, expandReferences } from './yaml.ts'

const MAX_FILE_BYTES = 1024 * 1024
/** Values frozen before yielding to the event loop. */
const VALUES_BEFORE_YIELD = 10_000
/** Sections where a reference may be shown: addresses and paths contain no secret. */
const OPEN = new Set<unknown>(['server', 'catalog', 'base_url'])
const ADDRESS: Path = ['base_url']

/** A variable that a secret or an address refers to and that has no value; `near` is the nearest name of the environment. */
export interface UnsetVariable {
  readonly name: string
  readonly of: 'secret' | 'address'
  /** The value that refers to it. */
  readonly path: Path
  readonly lack: Lack
  readonly near?: string | undefined
}

/** One file that has been read, validated and expanded. */
export interface ConfigFile<T> {
  readonly source: Source
  /** Deeply frozen. */
  readonly value: T
  /** Paths in `value` that must not be shown. */
  readonly secrets: readonly Path[]
  /** Paths of the values that come from the environment or from files, and not from a default. */
  readonly referred: readonly Path[]
  /** Environment variables of its secret, and those of its address. */
  readonly variables: Readonly<Record<'secret' | 'address', readonly string[]>>
  /** Variables of its secret and of its address that have no value of their own. */
  readonly unset: readonly UnsetVariable[]
  /** Files referenced as `${file:…}`, as absolute paths. */
  readonly references: readonly string[]
  /** Contents of the files that its values name, by key; undefined where they name none. */
  readonly contents?: Readonly<Record<string, string>>
  /** Values that a `SecretReader` has read. */
  readonly outside: readonly OutsideValue[]
  /** Hash of the effective values; secrets count by fingerprint, `own` variables by name. */
  readonly digest: string
}

/** A printable fingerprint of a secret, to tell two secrets apart. */
export const fingerprint = (secret: string): string =>
  createHmac('sha256', 'model-gateway credential fingerprint').update(secret).digest('hex').slice(0, 7)

/** A copy of the values to show: secrets are `***`, references to commands and secret managers as they are written. */
export function shown<T>(file: Pick<ConfigFile<T>, 'value' | 'secrets' | 'outside'>): T {
  const { value, secrets, outside } = file
  const hidden = secrets.map(path => ({ path, by: () => MASK }))
  return replaced(value, [...hidden, ...outside.map(({ path, shown }) => ({ path, by: () => shown }))])
}

/** A copy with the strings at some paths replaced; an empty one stays empty. Must not be modified. */
function replaced<T>(value: T, places: readonly { path: Path; by: (text: string) => string }[]): T {
  if (places.length === 0) return value
  const copy = structuredClone(value)
  for (const { path, by } of places) {
    const holder = path.slice(0, -1).reduce<unknown>((value, step) => (value as Record<string, unknown>)[step], copy)
    const values = holder as Record<string, unknown>
    const key = String(path.at(-1))
    if (values[key] !== '' && values[key] !== undefined) values[key] = by(String(values[key]))
  }
  return copy
}

/** Where references find their values. */
export interface LoadOptions {
  readonly env: Env
  /** Variables whose values change with every start: digests and versions exclude the values. */
  readonly own?: ReadonlySet<string>
  /** Reads what is neither a variable nor a file. */
  readonly secrets?: SecretReader | undefined
}

interface ReaderOptions<T> {
  /** Called with the values of the file before its references are used. Adds the files that it reads to `noted`. */
  readonly prepare?: (plain: unknown, source: Source, folder: string, noted: Set<string>) => Promise<void>
  readonly secrets?: (value: unknown) => readonly Path[]
  readonly adapt?: (value: T) => T
  readonly base?: FindBase
  readonly named?: (value: T) => readonly NamedFile[]
}

/** Finds the file that a file with these values extends: its text, and its values under those of the extending file. */
type FindBase = (plain: unknown, source: Source) => Promise<Extended | undefined>
interface Extended {
  readonly text: string
  readonly values: unknown
}

/** Caches files by path and content; `keep` drops those that are gone. */
export class FileReader<T> {
  readonly #schema: Schema<T>
  readonly #env: Env
  readonly #own: ReadonlySet<string>
  /** Paths of the secrets of this kind of file; their variables may be unset. */
  readonly #secrets: (value: unknown) => readonly Path[]
  readonly #adapt: (value: T) => T
  readonly #base: FindBase
  readonly #named: (value: T) => readonly NamedFile[]
  readonly #reader: SecretReader | undefined
  readonly #prepare: ReaderOptions<T>['prepare']
  readonly #cache = new Map<string, { readonly key: string; readonly file: ConfigFile<T> }>()
  /** Files that the last reading of each file depended on, by its path. */
  readonly #references = new Map<string, Set<string>>()

  /**
   * `secrets` finds the paths of secrets; `adapt` transforms a file's values, and the digest excludes its changes. `base`
   * finds the file that a file extends, `named` the files whose contents belong to it.
   */
  constructor(
    schema: Schema<T>,
    { env, own = new Set(), secrets: reader }: LoadOptions,
    {
      secrets = () => [],
      adapt = value => value,
      base = () => Promise.resolve(undefined),
      named = () => [],
      prepare,
    }: ReaderOptions<T> = {},
  ) {
    this.#schema = schema
    this.#env = env
    this.#own = own
    this.#reader = reader
    this.#prepare = prepare
    this.#secrets = secrets
    this.#adapt = adapt
    this.#base = base
    this.#named = named
  }

  /** Absolute paths of the files that the last readings depended on, even if these failed. */
  get references(): readonly string[] {
    return [...this.#references.values()].flatMap(paths => [...paths])
  }

  /** `name` identifies the file in errors. Throws a ConfigError. Yields to the event loop between steps. */
  async read(path: string, name: string): Promise<ConfigFile<T>> {
    const file = await this.#read(path, name)
    const noted = this.#references.get(path)!
    return withContents(file, this.#named(file.value), dirname(path), noted)
  }

  async #read(path: string, name: string): Promise<ConfigFile<T>> {
    const source = new Source(name, await readText(path, name))
    const folder = dirname(path)
    const parse = async () => parsedAtBuild(source.text) ?? (await parseFile(source))
    // Reads secrets for values alone: a comment runs no command.
    const inner = await resolveReferences(source.text, folder, this.#env)
    const noted = new Set(referencedFiles(inner, folder))
    this.#references.set(path, noted)
    const early = this.#prepare !== undefined || outsideIn(source.text).length > 0 ? await parse() : undefined
    await this.#prepare?.(early, source, folder, noted)
    const outside = await resolveOutside(early === undefined ? [] : outsideOf(early), this.#reader)
    const written = new Map([...inner, ...outside])
    const key = sha256(JSON.stringify([source.text, ...written]))
    const known = this.#cache.get(path)
    if (known?.key === key) return known.file

    const own = early ?? (await parse())
    const base = await this.#base(own, source)
    const plain = base ? base.values : own
    const all = base ? await resolveReferences(source.text + base.text, folder, this.#env) : written
    const references = base ? new Map([...all, ...outside]) : written
    const ofSecrets = this.#secrets(plain)
    const { value, expanded } = expandReferences(plain, source, references, ofSecrets)
    await turn()
    const secrets = expanded.map(({ path }) => path).filter(at => !OPEN.has(at[0]))
    for (const at of ofSecrets) if (!secrets.some(known => samePath(known, at))) secrets.push(at)
    const result = check(this.#schema, value, secrets)
    if ('issue' in result) throw source.error(result.issue.message, result.issue.path, result.issue.at)
    await turn()
    const effective = this.#adapt(result.value)
    await deepFreeze(effective)
    await turn()
    const counted = unresolved(references, this.#own)
    const places = expanded.flatMap(({ path, text }) => {
      const shown = expand(text, counted, () => '')
      return shown === expand(text, references, () => '') ? [] : [{ path, by: () => shown }]
    })
    const variables = {
      secret: [...new Set(ofSecrets.flatMap(path => variablesAt(path, expanded)))],
      address: variablesAt(ADDRESS, expanded).filter(name => !this.#own.has(name)),
    }
    const hashed = secrets.map(path => ({ path, by: fingerprint }))
    const file: ConfigFile<T> = {
      source,
      value: effective,
      secrets,
      referred: expanded.filter(({ text }) => isReferred(text, references)).map(({ path }) => path),
      variables,
      unset: (['secret', 'address'] as const).flatMap(of =>
        [...lacking(references, variables[of])].map(([name, lack]) => {
          const readers = of === 'secret' ? ofSecrets : [ADDRESS]
          const path = readers.find(at => variablesAt(at, expanded).includes(name))!
          return { name, of, path, lack, near: nearest(name, Object.keys(this.#env)) }
        }),
      ),
      references: referencedFiles(references, folder),
      outside: expanded.flatMap(({ path, text }) =>
        outsideIn(text).flatMap(name => outsideValue(name, path, text, references)),
      ),
      digest: sha256(JSON.stringify(replaced(replaced(result.value, places), hashed))),
    }
    this.#cache.set(path, { key, file })
    return file
  }

  /** Drops the cached files except these. */
  keep(paths: readonly string[]): void {
    for (const known of [this.#cache, this.#references]) {
      for (const path of known.keys()) if (!paths.includes(path)) known.delete(path)
    }
  }
}

const variablesAt = (at: Path, expanded: readonly Expanded[]): string[] =>
  expanded.filter(({ path }) => samePath(path, at)).flatMap(({ text }) => variablesIn(text))

function outsideValue(name: string, path: Path, text: string, references: References): OutsideValue[] {
  const found = references.get(name)
  if (!found || !('value' in found)) return []
  const { value, isUnread = false, why } = found
  return [{ name, path, shown: shownReferences(text), value, isUnread, why }]
}

async function readText(path: string, name: string): Promise<string> {
  const refuse = (why: string, cause?: unknown) => new ConfigError(name, { line: 1, column: 1 }, why, cause)
  try {
    const facts = await stat(path)
    if (!facts.isFile()) throw refuse('expected a file')
    if (facts.size > MAX_FILE_BYTES) throw refuse(`the file is larger than 1 MiB (${facts.size} bytes); split it`)
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(path))
  } catch (thrown) {
    if (thrown instanceof ConfigError) throw thrown
    if (thrown instanceof TypeError) throw refuse('expected UTF-8 text', thrown)
    throw refuse(`the file cannot be read: ${systemErrorText(thrown)}`, thrown)
  }
}

/** Freezes in steps, yielding to the event loop in between. */
async function deepFreeze(value: unknown): Promise<void> {
  const left = [value]
  for (let count = 1; left.length > 0; count++) {
    const one = left.pop()
    if (typeof one !== 'object' || one === null || Object.isFrozen(one)) continue
    Object.freeze(one)
    for (const inner of Object.values(one)) left.push(inner)
    if (count % VALUES_BEFORE_YIELD === 0) await turn()
  }
}
