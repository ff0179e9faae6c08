/** Finds the admin token. */
import { readFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { locateConfig } from '../config/locate.ts'
import { expand, resolveReferences } from '../config/reference.ts'
import { errorCode, Failure, type Io } from './io.ts'

const TOKEN_FILE = 'admin.token'

/** Paths that options name; `config` is that of `gateway.yaml`. */
export interface TokenPlaces {
  readonly tokenFile?: string | undefined
  readonly config?: string | undefined
}

/** `from`: where the token was found; `looked`: the places searched without success. */
type FoundToken =
  | { readonly token: string; readonly from: string }
  | { readonly token: undefined; readonly looked: readonly string[] }

/**
 * Searches in order: `--token-file`, `GATEWAY_ADMIN_TOKEN`, the folder `GATEWAY_DATA`, or `./data` and then beside the
 * database of the configuration file. A named file that cannot be read is a failure; an empty place is not.
 */
export async function findToken({ tokenFile, config }: TokenPlaces, io: Io): Promise<FoundToken> {
  if (tokenFile !== undefined) {
    const path = resolve(io.cwd, tokenFile)
    const token = await readIfThere(path)
    if (token === undefined) throw new Failure(`there is no token file ${path}; pass the right one as --token-file`)
    return { token: token.trim(), from: path }
  }
  const { GATEWAY_ADMIN_TOKEN: given, GATEWAY_DATA: data } = io.env
  if (given) return { token: given.trim(), from: 'GATEWAY_ADMIN_TOKEN' }

  const local = resolve(io.cwd, data || 'data', TOKEN_FILE)
  const looked = [local]
  let token = await readIfThere(local)
  if (token !== undefined) return { token: token.trim(), from: local }
  const beside = await besideDatabase(config, io)
  if (beside === undefined || beside === local) return { token: undefined, looked }
  looked.push(beside)
  token = await readIfThere(beside)
  return token === undefined ? { token, looked } : { token: token.trim(), from: beside }
}

/**
 * The token file of the gateway that uses this configuration file; undefined when the file does not determine it or is
 * irrelevant. Other errors in the file are ignored here: `gatewayctl reload` reports their positions.
 */
async function besideDatabase(option: string | undefined, { env, cwd }: Io): Promise<string | undefined> {
  if (env.GATEWAY_DATA) return undefined
  const { path: config, packaged } = locateConfig(option, env, cwd)
  if (packaged) return undefined
  const folder = dirname(resolve(cwd, config))
  const text = await readIfThere(resolve(cwd, config))
  if (text === undefined) return undefined
  const { parseDocument } = await import('./yaml.ts')
  const sqlite = parseDocument(text).getIn(['stores', 'sqlite'])
  if (typeof sqlite !== 'string') return undefined
  const path = expand(sqlite, await resolveReferences(sqlite, folder, env), () => '')
  return join(dirname(resolve(folder, path)), TOKEN_FILE)
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (thrown) {
    const code = errorCode(thrown)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new Failure(`cannot read ${path} (${code}); run as the user of the gateway, or pass --token-file`)
  }
}
