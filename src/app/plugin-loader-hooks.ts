/** In Node's loader: modules as they were when the primary loaded them, whatever their files say now. */
import type { InitializeHook, LoadHook } from 'node:module'

/** Source texts by address. */
let kept: ReadonlyMap<string, string> = new Map()

export const initialize: InitializeHook<readonly (readonly [string, string])[]> = modules => {
  kept = new Map(modules)
}

export const load: LoadHook = (url, context, next) => {
  const source = kept.get(url)
  if (source === undefined) return next(url, context)
  return { format: context.format ?? 'module', source, shortCircuit: true }
}
