/** Finds the admin token. */
import { readFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { locateConfig } from '../config/locate.ts'
import { expand, resolveReferences } from '../config/reference.ts'
import { errorCode, Failure, type Io } from './io.ts'

const TOKEN_FILE = 'admin.token'

export interface TokenPlaces {
  readonly tokenFile?: string | undefined
  readonly config?: string | undefined
}

/** `from` says where the token stood; without a token, `looked` says where it was sought. */
export type FoundToken =
  | { readonly token: string; readonly from: string }
  | { readonly token: undefined; readonly looked: readonly string[] }

/**
 * In this order: `--token-file`, `GATEWAY_ADMIN_TOKEN`, the folder `GATEWAY_DATA`, or `./data` and then beside the
 * database that the configuration file names. A file that was named but cannot be read is a failure, a place that is
 * empty is not.
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
 * Where the gateway that runs on this configuration file keeps its token; undefined when the file does not say, or does
 * not count. Other faults of the file do not matter here: `gatewayctl reload` is how their positions are learnt.
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
