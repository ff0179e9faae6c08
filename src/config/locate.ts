/** Which configuration counts: the one that is named, the one of the working folder, or the one of the package. */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Env } from './reference.ts'

/** Where the package keeps what an operator may edit a copy of. */
export const PACKAGE = fileURLToPath(new URL('../../', import.meta.url))
/** Of the package and of the working folder. */
export const CONFIG_FILE = 'config/gateway.yaml'

export interface Located {
  /** As it was given or found, to be shown. */
  readonly path: string
  /** The package's own: its database belongs into the working folder, not into the package. */
  readonly packaged: boolean
}

/**
 * `option` (`--config`), `GATEWAY_CONFIG`, `./config/gateway.yaml`, the package's. Throws an Error for a file that is
 * named and is not there.
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
