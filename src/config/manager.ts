/** Holds the configuration in force; replaces it by one assignment or not at all. */
import { resolve } from 'node:path'
import { knowSecrets } from '../secrets/known.ts'
import { staticDifferences } from './effective.ts'
import { located } from './large.ts'
import { link } from './link.ts'
import { type ConfigFiles, Loader, type LoadOptions, outsideValues } from './load.ts'
import type { Registries } from './registries.ts'
import type { ConfigSnapshot } from './snapshot.ts'
import { warningsOf } from './without-effect.ts'

type Outcome =
  | ({ readonly ok: true; readonly changed: boolean } & Remarks)
  | { readonly ok: false; readonly error: unknown }
/** Result of a reload. `version` is the one in force, `at` is Unix milliseconds. */
export type ReloadResult = Outcome & { readonly version: string; readonly at: number }

/** Lists what an operator should look at in a valid configuration. */
interface Remarks {
  /** Plugin files that have changed since they were loaded; the loaded code stays in use. */
  readonly restartNeeded: readonly string[]
  /** Lines as of `warningsOf`. */
  readonly warnings: readonly string[]
}

/** A reload that succeeded. */
interface Reloaded extends Remarks {
  readonly changed: boolean
  readonly version: string
  readonly previous: string
}

/** Sources and callbacks of a `ConfigManager`. */
interface ManagerOptions extends LoadOptions {
  /** Path of `gateway.yaml`. */
  readonly path: string
  /** Read at every reload, so that names added by plugins are known. */
  readonly registries: Registries
  /**
   * Loads the modules of `folder` before linking; returns the paths of those that have changed since they were loaded.
   */
  readonly loadPlugins?: (folder: string) => Promise<readonly string[]>
  /** Called after every reload, for logs and metrics. */
  readonly onResult?: (result: ReloadResult) => void
}

/** `start` must resolve before `current` is read. A failed reload leaves the snapshot as it is. */
export class ConfigManager {
  readonly #options: ManagerOptions
  readonly #loader: Loader
  #current: ConfigSnapshot | undefined
  #turn: Promise<unknown> = Promise.resolve()

  constructor(options: ManagerOptions) {
    this.#options = options
    this.#loader = new Loader(options.path, options)
  }

  /** The snapshot for new exchanges. */
  get current(): ConfigSnapshot {
    if (!this.#current) throw new Error('call start() first')
    return this.#current
  }

  /** Paths to watch. */
  get paths(): readonly string[] {
    return this.#loader.paths
  }

  /**
   * Reads all files, or takes those of another process, `given`, whose plugins the registries already contain. Throws a
   * ConfigError.
   */
  async start(given?: ConfigFiles): Promise<ConfigSnapshot> {
    const files = given ?? (await this.#loader.load())
    if (!given) await this.#loadPlugins(files)
    this.#current = this.#link(files)
    return this.#current
  }

  /** Reads all files again, after any running reload. Rejects with a ConfigError and changes nothing. */
  reload(): Promise<Reloaded> {
    return this.#inTurn(() => {
      this.#options.secrets?.renew()
      return this.#reload()
    })
  }

  /** Whether the manifest of a provider refers to files, or to what a `SecretReader` reads. */
  refersOutside(provider: string): boolean {
    return this.#namesOf(provider).length > 0
  }

  /**
   * Reloads with the secrets of a provider as they are now; undefined where they were read again a short time ago. Rejects
   * as `reload` does.
   */
  renew(provider: string): Promise<Reloaded | undefined> {
    return this.#inTurn(async () =>
      this.#options.secrets?.renew(this.#namesOf(provider)) ? this.#reload() : undefined,
    )
  }

  #namesOf(provider: string): string[] {
    const file = this.current.files.providers.find(({ value }) => value.provider === provider)
    return file ? [...file.outside.map(({ name }) => name), ...file.references.map(path => `file:${path}`)] : []
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#turn.then(work)
    this.#turn = run.catch(() => undefined)
    return run
  }

  async #reload(): Promise<Reloaded> {
    const before = this.current
    const report = (outcome: Outcome) =>
      this.#options.onResult?.({ ...outcome, version: this.current.version, at: Date.now() })
    let remarks: Remarks
    try {
      const files = await this.#loader.load()
      const restartNeeded = await this.#loadPlugins(files)
      const { providers } = before.catalog
      const wasLive = (id: string) => (providers.get(id)?.credentials.length ?? 0) > 0
      if (files.version !== before.version) this.#replace(before, files)
      remarks = { restartNeeded, warnings: await warningsOf(this.current, files, wasLive) }
    } catch (thrown) {
      const error = await located(thrown)
      report({ ok: false, error })
      throw error
    }
    const { version } = this.current
    const changed = version !== before.version
    report({ ok: true, changed, ...remarks })
    return { changed, version, previous: before.version, ...remarks }
  }

  async #loadPlugins({ folder, gateway }: ConfigFiles): Promise<readonly string[]> {
    const { plugins } = gateway.value.catalog
    if (plugins === undefined) return []
    try {
      return (await this.#options.loadPlugins?.(resolve(folder, plugins))) ?? []
    } catch (thrown) {
      throw gateway.source.error(thrown instanceof Error ? thrown.message : String(thrown), ['catalog', 'plugins'])
    }
  }

  #replace(before: ConfigSnapshot, files: ConfigFiles): void {
    refuseStaticChanges(before.files, files)
    this.#current = this.#link(files)
    before.retire()
  }

  #link(files: ConfigFiles): ConfigSnapshot {
    const snapshot = link(files, this.#options.registries)
    const { providers, egress } = snapshot.catalog
    const password = egress?.proxy?.password
    const { oidc } = files.gateway.value.admin
    knowSecrets('configuration', [
      ...outsideValues(files).map(({ value }) => value),
      ...[...providers.values()].flatMap(({ credentials, sentSecrets, egress }) => [
        ...credentials.map(({ secret }) => secret),
        ...(sentSecrets?.secrets ?? []),
        ...(egress?.proxy?.password ? [egress.proxy.password] : []),
      ]),
      ...(password ? [password] : []),
      ...(oidc?.client_secret === undefined ? [] : [oidc.client_secret]),
      ...files.gateway.value.alerts.flatMap(({ secret, url, format }) => [
        ...(secret === undefined ? [] : [secret]),
        ...(format === 'slack' && url !== undefined ? [url] : []),
      ]),
    ])
    return snapshot
  }
}

function refuseStaticChanges(before: ConfigFiles, after: ConfigFiles): void {
  const fields = staticDifferences(before.gateway.value, after.gateway.value)
  if (fields.length === 0) return
  const message = `${fields.join(', ')} cannot change while the gateway runs; restart it, or undo the change`
  throw after.gateway.source.error(message, fields[0]!.split('.'))
}
