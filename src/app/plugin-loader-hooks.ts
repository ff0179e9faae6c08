/** Module hook: loads plugins with the sources that the primary process loaded, whatever their files contain now. */
import type { InitializeHook, LoadHook } from 'node:module'

/** Module URL → source text. */
let kept: ReadonlyMap<string, string> = new Map()

export const initialize: InitializeHook<readonly (readonly [string, string])[]> = modules => {
  kept = new Map(modules)
}

export const load: LoadHook = (url, context, next) => {
  const source = kept.get(url)
  if (source === undefined) return next(url, context)
  return { format: context.format ?? 'module', source, shortCircuit: true }
}
