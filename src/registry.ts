/** Gathers what configuration may name: wires and filters of the package, of plugins, and the endpoints. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { plugin as anthropic } from '../plugins/anthropic.ts'
import { plugin as bedrock } from '../plugins/bedrock.ts'
import { plugin as cohere } from '../plugins/cohere.ts'
import { plugin as gemini } from '../plugins/gemini.ts'
import { plugin as jina } from '../plugins/jina.ts'
import { plugin as mistral } from '../plugins/mistral.ts'
import { plugin as openai } from '../plugins/openai.ts'
import { plugin as openaiResponses } from '../plugins/openai-responses.ts'
import { plugin as voyage } from '../plugins/voyage.ts'
import type { Endpoint } from './core/endpoint.ts'
import type { FilterFactory } from './core/filter.ts'
import type { Plugin, Translator } from './core/translator.ts'
import { endpoints } from './endpoints/index.ts'
import { filters } from './filters/index.ts'

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
}
/** A module may do something when it is loaded, but not for ever: nothing else is reloaded meanwhile. */
const LOAD_MS = 5_000
const MODULE = /(?<!\.d)\.(js|mjs|ts)$/

/** Plugin code is loaded once for each file: a module cannot be unloaded, so a changed one needs a restart. */
export class Registry {
  readonly wires = new Map<string, Translator>()
  readonly filters = new Map<string, FilterFactory>(filters.map(factory => [factory.name, factory]))
  readonly endpoints: readonly Endpoint[] = endpoints
  /** Hash of each loaded module, by its path. */
  readonly #loaded = new Map<string, string>()

  /** With the plugins of the package. */
  constructor() {
    for (const [name, plugin] of Object.entries(OWN_PLUGINS)) this.#add(name, plugin)
  }

  /** Paths of the modules that were loaded from folders. */
  get modules(): string[] {
    return [...this.#loaded.keys()]
  }

  /**
   * Loads the modules of `folder` that are not loaded yet; returns those that have changed since they were. Throws an
   * Error that names the file, and then nothing of that file is added. With `only`, modules of other paths are left for
   * a later call.
   */
  async load(folder: string, only?: readonly string[]): Promise<string[]> {
    const changed: string[] = []
    for (const name of (await readdir(folder)).filter(file => MODULE.test(file)).sort()) {
      const path = join(folder, name)
      if (only && !only.includes(path)) continue
      const digest = createHash('sha256')
        .update(await readFile(path))
        .digest('hex')
      const loaded = this.#loaded.get(path)
      if (loaded === undefined) {
        this.#add(path, await importPlugin(path, digest))
        this.#loaded.set(path, digest)
      } else if (loaded !== digest) changed.push(path)
    }
    return changed
  }

  #add(path: string, { wires = [], filters = [] }: Plugin): void {
    for (const { wire } of wires) {
      if (this.wires.has(wire)) throw new Error(`${path}: the wire "${wire}" exists already`)
    }
    for (const { name } of filters) {
      if (this.filters.has(name)) throw new Error(`${path}: the filter "${name}" exists already`)
    }
    for (const wire of wires) this.wires.set(wire.wire, wire)
    for (const factory of filters) this.filters.set(factory.name, factory)
  }
}

/** Node remembers a module that failed by its address: mended, it must have another one. */
async function importPlugin(path: string, digest: string): Promise<Plugin> {
  let module: { plugin?: Plugin }
  try {
    module = await inTime(import(`${pathToFileURL(path).href}?${digest}`) as Promise<{ plugin?: Plugin }>)
  } catch (cause) {
    throw new Error(`${path}: the plugin cannot be loaded: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    })
  }
  if (!module.plugin) throw new Error(`${path}: a plugin must export "plugin", an object with "wires" or "filters"`)
  return module.plugin
}

async function inTime<T>(loading: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it takes longer than ${LOAD_MS / 1000} s`)), LOAD_MS)
  })
  try {
    return await Promise.race([loading, late])
  } finally {
    clearTimeout(timer)
  }
}
