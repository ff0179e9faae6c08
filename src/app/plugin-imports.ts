/** Module hook: resolves `model-gateway/plugin` to the running gateway, wherever the plugin is. */
import type { ResolveHook } from 'node:module'

/** The bundle places it beside this module. */
const FACADE = new URL('./plugin.js', import.meta.url).href

/** Leaves every other specifier to the next hook. */
export const resolve: ResolveHook = (specifier, context, next) =>
  specifier === 'model-gateway/plugin' ? { url: FACADE, shortCircuit: true } : next(specifier, context)
