/** Modules that add wires and filters. */
import type { FilterFactory } from './filter.ts'
import type { Translator } from './translator.ts'

/** A plugin module that was loaded from a folder, and its text then. */
export interface LoadedModule {
  readonly path: string
  readonly source: string
}

/** Exports of a plugin module. */
export interface Plugin {
  readonly wires?: readonly Translator[]
  readonly filters?: readonly FilterFactory[]
}
