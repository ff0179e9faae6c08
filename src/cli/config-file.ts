/** Reads the configuration file of the gateway that commands are for. */
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { locateConfig } from '../config/locate.ts'
import { type Env, expand, resolveReferences } from '../config/reference.ts'
import { errorCode, Failure, type Io } from './io.ts'

/** A text of the configuration file, with its references resolved. */
export interface Configured {
  readonly text: string
  /** The file, as it was given or found. */
  readonly file: string
  /** Where the file is: its relative paths begin there. */
  readonly folder: string
}

/** Whether an option or a variable names the file. One of the working folder may come from a stranger. */
export const isNamed = (option: string | undefined, { GATEWAY_CONFIG }: Env): boolean =>
  Boolean(option ?? GATEWAY_CONFIG)

/**
 * The text at `path`; undefined for the packaged file, and where the file does not determine it. Other errors in the file
 * are ignored here: `gatewayctl reload` reports their positions. `option`: `--config`; `instead`: the option that makes
 * the file irrelevant. References of an unnamed file are not resolved.
 */
export async function configured(
  option: string | undefined,
  { env, cwd }: Io,
  path: readonly string[],
  instead: string,
): Promise<Configured | undefined> {
  const { path: file, packaged } = locateConfig(option, env, cwd)
  if (packaged) return undefined
  const folder = dirname(resolve(cwd, file))
  const yaml = await readIfThere(resolve(cwd, file), instead)
  if (yaml === undefined) return undefined
  const { parseDocument } = await import('./yaml.ts')
  const written = parseDocument(yaml).getIn(path)
  if (typeof written !== 'string') return undefined
  const references = isNamed(option, env) ? await resolveReferences(written, folder, env) : new Map()
  let isWhole = true
  const text = expand(written, references, () => {
    isWhole = false
    return ''
  })
  return isWhole ? { text, file, folder } : undefined
}

/** Undefined for a file that is not there; throws a Failure for one that cannot be read. */
export async function readIfThere(path: string, instead: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (thrown) {
    const code = errorCode(thrown)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new Failure(`cannot read ${path} (${code}); run as the user of the gateway, or pass ${instead}`)
  }
}
