/** Finds the configuration file: the named one, the one in the working folder, or the packaged one. */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Env } from './reference.ts'

/** The root folder of the package. */
export const PACKAGE = fileURLToPath(new URL('../../', import.meta.url))
/** The start command, and the folder in which npx finds it: npm has no package of this name yet. */
export const START = `\`npx model-gateway\` in ${resolve(PACKAGE.split(/[\\/]node_modules[\\/]/)[0]!)}`
/** Path below the package and below the working folder. */
export const CONFIG_FILE = 'config/gateway.yaml'

/** The file that was found. */
export interface Located {
  /** As given or found, for messages. */
  readonly path: string
  /** Whether it is the packaged file: its database belongs in the working folder, not in the package. */
  readonly packaged: boolean
}

/**
 * In order: `option` (`--config`), `GATEWAY_CONFIG`, `./config/gateway.yaml`, the package's. Throws an Error when a
 * named file does not exist.
 */
export function locateConfig(option: string | undefined, env: Env, cwd: string): Located {
  const given = option ?? env.GATEWAY_CONFIG
  if (given) {
    if (isThere(resolve(cwd, given))) return { path: given, packaged: false }
    const where = option === undefined ? 'GATEWAY_CONFIG' : '--config'
    throw new Error(
      `there is no file ${resolve(cwd, given)}, which ${where} names; name one that exists, or make ` +
        `./${CONFIG_FILE} with \`npx model-gateway init\` and leave ${where} out`,
    )
  }
  if (isThere(resolve(cwd, CONFIG_FILE))) return { path: CONFIG_FILE, packaged: false }
  return { path: resolve(PACKAGE, CONFIG_FILE), packaged: true }
}

const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined
