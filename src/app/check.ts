/** Checks configuration files with the gateway's own loader, without opening a store or a port. */
import { access } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { litellm } from '../compat/litellm/index.ts'
import { DEFAULT_ADMIN, DEFAULT_LISTEN } from '../config/environment.ts'
import { ConfigError } from '../config/error.ts'
import { located } from '../config/large.ts'
import { link } from '../config/link.ts'
import { type ConfigFiles, loadFiles, loadGateway } from '../config/load.ts'
import type { Env } from '../config/reference.ts'
import type { ConfigSnapshot } from '../config/snapshot.ts'
import { warningsOf } from '../config/without-effect.ts'
import { offerOf } from '../core/offer.ts'
import type { Services } from '../core/ports.ts'
import { DEMO_BASE_URL, DEMO_URL } from '../demo/address.ts'
import { isCallbackAllowed } from '../egress/callbacks.ts'
import { Secrets } from '../references/index.ts'
import { checkPlace } from '../stores/open.ts'
import { Registry } from './registry.ts'

/** Counts the parts of a valid configuration. */
interface CheckSummary {
  readonly version: string
  readonly models: number
  readonly providers: number
  readonly mappings: number
  /** `<provider>/<model>` of the mappings without a price that do not say `unpriced`. */
  readonly unpriced: string[]
  /** Lines as of `warningsOf`. */
  readonly warnings: readonly string[]
  /** References that were not read, with the place of each, and why where they were to be read. */
  readonly unread: readonly string[]
}

/** Throws what readCatalog throws. */
export async function checkConfig(path: string, options?: CheckOptions): Promise<CheckSummary> {
  const snapshot = await readCatalog(path, { ...options, isTolerant: options?.secrets === true })
  checkListeners(snapshot.files)
  await checkStores(snapshot.files)
  const { version, catalog, files } = snapshot
  const mappings = [...catalog.models.values()].flatMap(model => model.mappings)
  const unpriced = mappings.filter(mapping => !mapping.price && !mapping.unpriced)
  return {
    version,
    models: catalog.models.size,
    providers: catalog.providers.size,
    mappings: mappings.length,
    unpriced: unpriced.map(offerOf),
    warnings: await warningsOf(snapshot),
    unread: await unreadIn(files),
  }
}

/** Refuses one address for both listeners. */
function checkListeners({ gateway: { source, value } }: ConfigFiles): void {
  const { listen = DEFAULT_LISTEN, admin = DEFAULT_ADMIN } = value.server
  if (listen === admin && !listen.endsWith(':0'))
    throw source.error(`${admin} is the address of server.listen, too; choose another port`, ['server', 'admin'])
}

/** Refuses places that no store can be at, as the start does. */
async function checkStores({ folder, gateway: { source, value } }: ConfigFiles): Promise<void> {
  for (const option of ['redis', 'postgres', 'sqlite'] as const) {
    const place = option === 'sqlite' ? resolve(folder, value.stores.sqlite) : value.stores[option]
    const refuse = (thrown: Error) => Promise.reject(source.error(thrown.message, ['stores', option]))
    if (place !== undefined) await checkPlace(option, place).catch(refuse)
  }
}

/** A line for each reference of a file that was not read, with file, line and column. */
async function unreadIn({ gateway, models, providers, routes }: ConfigFiles): Promise<string[]> {
  const lines: string[] = []
  for (const { source, outside } of [gateway, ...models, ...providers, ...routes]) {
    for (const { name, path, isUnread, why = `\${${name}} was not read` } of outside)
      if (isUnread) lines.push(String(await located(source.error(why, path))))
  }
  return lines
}

/**
 * `plugins`: whether to run the modules of `catalog.plugins`, which may do anything. `secrets`: whether to run commands and
 * to ask secret managers. `env`: by default the process's.
 */
interface CheckOptions {
  readonly plugins?: boolean | undefined
  readonly secrets?: boolean | undefined
  /** Whether secrets that cannot be read are listed, in place of an error for the first. */
  readonly isTolerant?: boolean
  readonly env?: Env | undefined
}

/** Reads the files without serving them. Throws a ConfigError whose text starts with `file:line:column`. */
export async function readCatalog(
  path: string,
  { plugins = false, secrets: isRead = false, isTolerant = false, env = process.env }: CheckOptions = {},
): Promise<ConfigSnapshot> {
  const secrets = new Secrets({ env, isRead, isTolerant })
  const options = { env: { [DEMO_URL]: DEMO_BASE_URL, ...env }, own: new Set([DEMO_URL]), secrets }
  const registry = new Registry()
  const { value: file, source } = await loadGateway(path, options)
  if (file.catalog.plugins) {
    const folder = resolve(dirname(resolve(path)), file.catalog.plugins)
    await (plugins ? registry.load(folder) : access(folder)).catch(thrown => {
      throw source.error(thrown instanceof Error ? thrown.message : String(thrown), ['catalog', 'plugins'])
    })
  }
  const { wires, filters, endpoints, operations } = registry
  const terminal = () => Promise.reject(new Error('a configuration check serves no requests'))
  try {
    const files = await loadFiles(path, options)
    const compat = { litellm: litellm({ isAdmin: () => false }) }
    return await link(files, { wires, filters, endpoints, operations, compat, services, terminal, isCallbackAllowed })
  } catch (thrown) {
    if (plugins || !file.catalog.plugins || !(thrown instanceof ConfigError)) throw thrown
    const message = `${thrown.message}; if a plugin defines it, run the plugins with --plugins`
    throw new ConfigError(thrown.file, thrown.position, message, thrown)
  }
}

/** Filters take ports when created and use them when serving, which a check never does: all ports are inert. */
const services = new Proxy({} as Services, { get: () => Object.freeze({}) })
