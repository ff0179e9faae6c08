/** Module hook: loads plugins with the sources that the primary process loaded, whatever their files contain now. */
import type { InitializeHook, LoadHook } from 'node:module'

/** Module URL → source text. */
let kept: ReadonlyMap<string, string> = new Map()

/** Called by Node's `register` with the `data` that it was given. */
export const initialize: InitializeHook<readonly (readonly [string, string])[]> = modules => {
  kept = new Map(modules)
}

/** Leaves every other module to the next hook. */
export const load: LoadHook = (url, context, next) => {
  const source = kept.get(url)
  if (source === undefined) return next(url, context)
  return { format: context.format ?? 'module', source, shortCircuit: true }
}
