/** Collects what configuration may name: wires and filters of the package and of plugins, and the endpoints. */
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { register } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { plugin as anthropic } from '../../plugins/anthropic.ts'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { plugin as bfl } from '../../plugins/bfl.ts'
import { plugin as bytedance } from '../../plugins/bytedance.ts'
import { plugin as cohere } from '../../plugins/cohere.ts'
import { plugin as deepgram } from '../../plugins/deepgram.ts'
import { plugin as elevenlabs } from '../../plugins/elevenlabs.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as jina } from '../../plugins/jina.ts'
import { plugin as mistral } from '../../plugins/mistral.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import { plugin as openaiResponses } from '../../plugins/openai-responses.ts'
import { plugin as typesafe } from '../../plugins/typesafe.ts'
import { plugin as voyage } from '../../plugins/voyage.ts'
import { plugin as xai } from '../../plugins/xai.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { FilterFactory } from '../core/filter.ts'
import type { Operation } from '../core/operation.ts'
import type { LoadedModule, Plugin } from '../core/plugin.ts'
import type { Translator } from '../core/translator.ts'
import { endpoints } from '../endpoints/index.ts'
import { filters } from '../filters/index.ts'
import { unknownName } from '../lib/nearest.ts'
import { sha256 } from '../lib/opaque.ts'
import { atMost } from '../lib/timer.ts'
import { operations } from '../operations/index.ts'

const OWN_PLUGINS: Record<string, Plugin> = {
  openai,
  anthropic,
  mistral,
  cohere,
  gemini,
  bedrock,
  'openai-responses': openaiResponses,
  voyage,
  jina,
  typesafe,
  elevenlabs,
  deepgram,
  xai,
  bfl,
  bytedance,
}
/** Time limit for loading a module: reloads wait for it. */
const LOAD_MS = 5_000
const MODULE = /(?<!\.d)\.(js|mjs|ts)$/
/** The bundle places it beside this module; absent when the code runs from its sources. */
const IMPORTS = new URL('./plugin-imports.js', import.meta.url)
/** Per process: all modules go through one loader. */
let hooked = false

/** Loads plugin code once per file: a module cannot be unloaded, so a changed one needs a restart. */
export class Registry {
  readonly wires = new Map<string, Translator>()
  readonly filters = new Map<string, FilterFactory>(filters.map(factory => [factory.name, factory]))
  readonly operations: Readonly<Record<string, Operation>>
  readonly endpoints: readonly Endpoint[]
  /** Loaded modules by path. */
  readonly #loaded = new Map<string, LoadedModule>()

  /** With the plugins of the package, and `more` operations and endpoints. */
  constructor(more: { operations?: readonly Operation[]; endpoints?: readonly Endpoint[] } = {}) {
    const added = (more.operations ?? []).map(operation => [operation.name, operation] as const)
    this.operations = { ...operations, ...Object.fromEntries(added) }
    this.endpoints = [...endpoints, ...(more.endpoints ?? [])]
    for (const [name, plugin] of Object.entries(OWN_PLUGINS)) this.#add(name, plugin)
  }

  get modules(): LoadedModule[] {
    return [...this.#loaded.values()]
  }

  /**
   * Loads modules with the sources of another process: their files may have changed since, or be gone. Throws an
   * Error that names the file.
   */
  async adopt(modules: readonly LoadedModule[]): Promise<void> {
    const isStale = await Promise.all(modules.map(async one => (await textOf(one.path)) !== one.source))
    const stale = modules.filter((_, index) => isStale[index])
    if (stale.length > 0) {
      register('./plugin-loader-hooks.js', import.meta.url, { data: stale.map(one => [addressOf(one), one.source]) })
    }
    for (const module of modules) await this.#import(module)
  }

  /**
   * Loads the modules of `folder` that are not loaded; returns those that have changed since. Throws an Error that
   * names the file, of which nothing is added then.
   */
  async load(folder: string): Promise<string[]> {
    const changed: string[] = []
    for (const name of (await readdir(folder)).filter(file => MODULE.test(file)).sort()) {
      const path = join(folder, name)
      const source = await readFile(path, 'utf8')
      const loaded = this.#loaded.get(path)
      if (loaded === undefined) await this.#import({ path, source })
      else if (loaded.source !== source) changed.push(path)
    }
    return changed
  }

  async #import(module: LoadedModule): Promise<void> {
    if (!hooked && existsSync(IMPORTS)) register(IMPORTS)
    hooked = true
    this.#add(module.path, await importPlugin(module))
    this.#loaded.set(module.path, module)
  }

  #add(path: string, { wires = [], filters = [] }: Plugin): void {
    for (const { wire, op } of wires) {
      if (typeof wire !== 'string' || wire === '') throw new Error(`${path}: a wire has no name; set "wire"`)
      if (!Object.hasOwn(this.operations, op)) {
        throw new Error(
          `${path}: the wire "${wire}" has an ${unknownName('operation', String(op), Object.keys(this.operations))}`,
        )
      }
      if (this.wires.has(wire)) throw new Error(`${path}: the wire "${wire}" already exists`)
    }
    for (const { name } of filters) {
      if (this.filters.has(name)) throw new Error(`${path}: the filter "${name}" already exists`)
    }
    for (const wire of wires) this.wires.set(wire.wire, wire)
    for (const factory of filters) this.filters.set(factory.name, factory)
  }
}

const textOf = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(() => undefined)

/** Node caches a failed module by its URL: a corrected one needs another URL. */
const addressOf = ({ path, source }: LoadedModule): string => `${pathToFileURL(path).href}?${sha256(source)}`

async function importPlugin(loaded: LoadedModule): Promise<Plugin> {
  const { path } = loaded
  let module: { plugin?: Plugin }
  try {
    const loading = import(addressOf(loaded)) as Promise<{ plugin?: Plugin }>
    const inTime = await atMost(LOAD_MS, loading, undefined)
    if (!inTime) throw new Error(`it did not load within ${LOAD_MS / 1000} s`)
    module = inTime
  } catch (cause) {
    throw new Error(`${path}: the plugin cannot be loaded: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    })
  }
  if (!module.plugin) throw new Error(`${path}: a plugin must export "plugin", an object with "wires" or "filters"`)
  return module.plugin
}
