/** Gathers what configuration may name: wires and filters of the package, of plugins, and the endpoints. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { plugin as anthropic } from '../plugins/anthropic.ts'
import { plugin as bedrock } from '../plugins/bedrock.ts'
import { plugin as cohere } from '../plugins/cohere.ts'
import { plugin as gemini } from '../plugins/gemini.ts'
import { plugin as mistral } from '../plugins/mistral.ts'
import { plugin as openai } from '../plugins/openai.ts'
import { plugin as openaiResponses } from '../plugins/openai-responses.ts'
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
}
const MODULE = /(?<!\.d)\.(js|mjs|ts)$/

/** Plugin code is loaded once for each file: a module cannot be unloaded, so a changed one needs a restart. */
export class Registry {
  readonly wires = new Map<string, Translator>()
  readonly filters = new Map<string, FilterFactory>(filters.map(factory => [factory.name, factory]))
  readonly endpoints: readonly Endpoint[] = endpoints
  readonly #loaded = new Set<string>()

  /** With the plugins of the package. */
  constructor() {
    for (const [name, plugin] of Object.entries(OWN_PLUGINS)) this.#add(name, plugin)
  }

  /** Loads the modules of `folder` that are not loaded yet. Throws an Error that names the file. */
  async load(folder: string): Promise<void> {
    for (const name of (await readdir(folder)).filter(file => MODULE.test(file)).sort()) {
      const path = join(folder, name)
      if (this.#loaded.has(path)) continue
      this.#add(path, await importPlugin(path))
      this.#loaded.add(path)
    }
  }

  #add(path: string, plugin: Plugin): void {
    for (const wire of plugin.wires ?? []) {
      if (this.wires.has(wire.wire)) throw new Error(`${path}: the wire "${wire.wire}" exists already`)
      this.wires.set(wire.wire, wire)
    }
    for (const factory of plugin.filters ?? []) {
      if (this.filters.has(factory.name)) throw new Error(`${path}: the filter "${factory.name}" exists already`)
      this.filters.set(factory.name, factory)
    }
  }
}

async function importPlugin(path: string): Promise<Plugin> {
  let module: { plugin?: Plugin }
  try {
    module = (await import(pathToFileURL(path).href)) as { plugin?: Plugin }
  } catch (cause) {
    throw new Error(`${path}: the plugin cannot be loaded: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    })
  }
  if (!module.plugin) throw new Error(`${path}: a plugin must export "plugin", an object with "wires" or "filters"`)
  return module.plugin
}
