/** Reads all configuration files: `gateway.yaml`, and every `*.yaml` of the folders that it names. */
import type { Dirent } from 'node:fs'
import { readdir, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { objectIn } from '../json/json.ts'
import { sha256 } from '../lib/opaque.ts'
import { secretPaths } from './auth.ts'
import { filesOfEgress } from './egress.ts'
import { withEnvironment } from './environment.ts'
import { ConfigError } from './error.ts'
import { type ConfigFile, FileReader, type LoadOptions } from './file.ts'
import { configureReader, type OutsideValue } from './outside.ts'
import { modelsBelow, PACKAGED, packagedManifest, providersBelow } from './overlay.ts'
import { systemErrorText } from './reference.ts'
import { type GatewayFile, gatewayFile } from './schemas/gateway.ts'
import { type ModelsFile, modelsFile } from './schemas/models.ts'
import { type ProviderFile, providerFile } from './schemas/provider.ts'
import { type RoutesFile, routesFile } from './schemas/routes.ts'
import { Source } from './source.ts'

/** Parts of the catalogue, and their folders by default. */
const FOLDERS = { models: './models.d', providers: '../providers.d' }
type Part = keyof typeof FOLDERS

/** All files of one configuration, before they are linked. */
export interface ConfigFiles {
  /** Base of the relative paths in `gateway.yaml`; absolute. */
  readonly folder: string
  readonly gateway: ConfigFile<GatewayFile>
  readonly models: readonly ConfigFile<ModelsFile>[]
  readonly providers: readonly ConfigFile<ProviderFile>[]
  readonly routes: readonly ConfigFile<RoutesFile>[]
  /** Hash of the effective configuration, without comments and layout. */
  readonly version: string
}

/** All values of references that a `SecretReader` has read. */
export const outsideValues = ({ gateway, models, providers, routes }: ConfigFiles): OutsideValue[] =>
  [gateway, ...models, ...providers, ...routes].flatMap(({ outside }) => outside)

export type { LoadOptions } from './file.ts'

/** Restores files that another process has read and sent as JSON. */
export function revived(files: ConfigFiles): ConfigFiles {
  const revive = <T>(file: ConfigFile<T>) => ({ ...file, source: new Source(file.source.name, file.source.text) })
  const { gateway, models, providers, routes } = files
  return {
    ...files,
    gateway: revive(gateway),
    models: models.map(revive),
    providers: providers.map(revive),
    routes: routes.map(revive),
  }
}

/** Loads once. Throws a ConfigError. */
export const loadFiles = (path: string, options: LoadOptions): Promise<ConfigFiles> => new Loader(path, options).load()

/** Reads only `gateway.yaml`, before the stores and plugins that linking needs. Throws a ConfigError. */
export function loadGateway(path: string, options: LoadOptions): Promise<ConfigFile<GatewayFile>> {
  const absolute = resolve(path)
  const name = relative(dirname(dirname(absolute)), absolute)
  return gatewayReader(options).read(absolute, name)
}

function gatewayReader(options: LoadOptions) {
  const { env, secrets: reader } = options
  const prepare = async (plain: unknown, source: Source, folder: string, noted: Set<string>) => {
    if (reader) await configureReader(objectIn(plain), source, { folder, env, reader, noted })
  }
  const adapt = (value: GatewayFile) => withEnvironment(value, env)
  return new FileReader(gatewayFile, options, { adapt, named: filesOfEgress, ...(reader && { prepare }) })
}

/** Loads repeatedly: an unchanged file is read and hashed, not parsed. */
export class Loader {
  readonly #path: string
  readonly #folder: string
  readonly #gateway: FileReader<GatewayFile>
  readonly #models: FileReader<ModelsFile>
  readonly #providers: FileReader<ProviderFile>
  readonly #routes: FileReader<RoutesFile>
  #paths: readonly string[]

  constructor(path: string, options: LoadOptions) {
    this.#path = resolve(path)
    this.#folder = dirname(this.#path)
    this.#gateway = gatewayReader(options)
    this.#models = new FileReader(modelsFile, options)
    this.#providers = new FileReader(providerFile, options, {
      secrets: secretPaths,
      base: packagedManifest,
      named: filesOfEgress,
    })
    this.#routes = new FileReader(routesFile, options)
    this.#paths = [this.#path]
  }

  /** Absolute paths of the files and folders that the last load depended on, even if it failed. */
  get paths(): readonly string[] {
    const readers = [this.#gateway, this.#models, this.#providers, this.#routes]
    return [...new Set([...this.#paths, ...readers.flatMap(({ references }) => references)])]
  }

  async load(): Promise<ConfigFiles> {
    const gateway = await this.#gateway.read(this.#path, this.#name(this.#path))
    const folderOf = (key: Part) => resolve(this.#folder, gateway.value.catalog[key] ?? FOLDERS[key])
    const { plugins, routes: routesFolder } = gateway.value.catalog
    const more = [plugins, routesFolder].flatMap(path => (path === undefined ? [] : resolve(this.#folder, path)))
    this.#paths = [this.#path, folderOf('models'), folderOf('providers'), ...more]
    const models = await this.#readAll(this.#models, modelsBelow, folderOf('models'), gateway, 'models')
    const providers = await this.#readAll(this.#providers, providersBelow, folderOf('providers'), gateway, 'providers')
    const routes = await this.#readRoutes(gateway)
    const files = [gateway, ...models, ...providers, ...routes]
    const version = sha256(files.map(file => file.digest).join()).slice(0, 12)
    return { folder: this.#folder, gateway, models, providers, routes, version }
  }

  async #readRoutes({ source, value }: ConfigFile<GatewayFile>): Promise<ConfigFile<RoutesFile>[]> {
    const { routes } = value.catalog
    if (routes === undefined) return []
    const folder = resolve(this.#folder, routes)
    const paths = await this.#list(folder).catch((thrown: unknown) => {
      if (thrown instanceof ConfigError) throw thrown
      throw source.error(`the folder "${folder}" cannot be read: ${systemErrorText(thrown)}`, ['catalog', 'routes'])
    })
    this.#routes.keep(paths)
    const files: ConfigFile<RoutesFile>[] = []
    for (const path of paths) files.push(await this.#routes.read(path, this.#name(path)))
    return files
  }

  async #readAll<T>(
    reader: FileReader<T>,
    below: (packaged: readonly ConfigFile<T>[], own: readonly ConfigFile<T>[]) => ConfigFile<T>[],
    folder: string,
    { source, value: { catalog } }: ConfigFile<GatewayFile>,
    key: Part,
  ): Promise<ConfigFile<T>[]> {
    let paths: string[] = []
    try {
      paths = await this.#list(folder)
    } catch (thrown) {
      if (thrown instanceof ConfigError) throw thrown
      // A start from the package needs no files of the operator.
      const isNeedless = catalog.extends !== undefined && catalog[key] === undefined && isMissing(thrown)
      if (!isNeedless) {
        throw source.error(`the folder "${folder}" cannot be read: ${systemErrorText(thrown)}`, ['catalog', key])
      }
    }
    // The packaged configuration itself stands in the folders that it extends.
    const isPackaged = catalog.extends === undefined || folder === resolve(PACKAGED[key])
    const packaged = isPackaged ? [] : await this.#list(PACKAGED[key])
    reader.keep([...packaged, ...paths])
    const read = async (paths: readonly string[]) => {
      const files: ConfigFile<T>[] = []
      for (const path of paths) files.push(await reader.read(path, this.#name(path)))
      return files
    }
    const own = await read(paths)
    return [...below(await read(packaged), own), ...own]
  }

  /** YAML files of a folder, by name. Ignores hidden files: editors and Kubernetes use them. */
  async #list(folder: string): Promise<string[]> {
    const entries = await readdir(folder, { withFileTypes: true })
    const paths: string[] = []
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (entry.name.startsWith('.')) continue
      if (entry.name.endsWith('.yml')) throw this.#refuse(join(folder, entry.name), 'rename it to end in ".yaml"')
      if (!entry.name.endsWith('.yaml')) continue
      if (await escapes(folder, entry)) {
        throw this.#refuse(
          join(folder, entry.name),
          'it is a link to a file outside of its folder; copy that file here',
        )
      }
      paths.push(join(folder, entry.name))
    }
    return paths
  }

  #refuse(path: string, why: string): ConfigError {
    return new ConfigError(this.#name(path), { line: 1, column: 1 }, why)
  }

  #name(path: string): string {
    const name = relative(dirname(this.#folder), path)
    return leaves(name) ? path : name
  }
}

async function escapes(folder: string, entry: Dirent): Promise<boolean> {
  if (!entry.isSymbolicLink()) return false
  const target = await realpath(join(folder, entry.name)).catch(() => undefined)
  // Reading a dangling link reports it.
  return target !== undefined && leaves(relative(await realpath(folder), target))
}

const isMissing = (thrown: unknown): boolean => (thrown as NodeJS.ErrnoException).code === 'ENOENT'
const leaves = (path: string): boolean => path === '..' || path.startsWith(`..${sep}`) || isAbsolute(path)
