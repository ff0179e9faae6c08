/** In Node's loader: plugins import `model-gateway/plugin` of the gateway that runs, wherever they stand. */
import type { ResolveHook } from 'node:module'

/** Bundled beside this module. */
const FACADE = new URL('./plugin.js', import.meta.url).href

export const resolve: ResolveHook = (specifier, context, next) =>
  specifier === 'model-gateway/plugin' ? { url: FACADE, shortCircuit: true } : next(specifier, context)
