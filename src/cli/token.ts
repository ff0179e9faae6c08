/** Finds the admin token. */
import { readFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { expand, resolveReferences } from '../config/reference.ts'
import { errorCode, Failure, type Io } from './io.ts'

const TOKEN_FILE = 'admin.token'
const CONFIG_FILE = 'config/gateway.yaml'

export interface TokenPlaces {
  readonly tokenFile?: string | undefined
  readonly config?: string | undefined
}

/** `from` says where the token stood; without a token, `looked` says where it was sought. */
export type FoundToken =
  | { readonly token: string; readonly from: string }
  | { readonly token: undefined; readonly looked: readonly string[] }

/**
 * In this order: `--token-file`, `GATEWAY_ADMIN_TOKEN`, `./data/admin.token`, beside the database that the
 * configuration file names. A file that was named but cannot be read is a failure, a place that is empty is not.
 */
export async function findToken({ tokenFile, config }: TokenPlaces, io: Io): Promise<FoundToken> {
  if (tokenFile !== undefined) {
    const path = resolve(io.cwd, tokenFile)
    const token = await readIfThere(path)
    if (token === undefined) throw new Failure(`there is no token file ${path}; pass the right one as --token-file`)
    return { token: token.trim(), from: path }
  }
  const given = io.env.GATEWAY_ADMIN_TOKEN
  if (given) return { token: given.trim(), from: 'GATEWAY_ADMIN_TOKEN' }

  const local = join(io.cwd, 'data', TOKEN_FILE)
  const looked = [local]
  let token = await readIfThere(local)
  if (token !== undefined) return { token: token.trim(), from: local }
  const beside = await besideDatabase(resolve(io.cwd, configPath(config, io)), io.env)
  if (beside === undefined || beside === local) return { token: undefined, looked }
  looked.push(beside)
  token = await readIfThere(beside)
  return token === undefined ? { token, looked } : { token: token.trim(), from: beside }
}

/** The configuration file: `--config`, `GATEWAY_CONFIG`, `./config/gateway.yaml`. */
export const configPath = (option: string | undefined, { env }: Io): string =>
  option ?? (env.GATEWAY_CONFIG || CONFIG_FILE)

/**
 * Where the gateway that runs on this configuration file keeps its token; undefined when the file does not say.
 * Other faults of the file do not matter here: `gatewayctl reload` is how their positions are learnt.
 */
async function besideDatabase(config: string, env: Io['env']): Promise<string | undefined> {
  const text = await readIfThere(config)
  if (text === undefined) return undefined
  const { parseDocument } = await import('./yaml.ts')
  const sqlite = parseDocument(text).getIn(['stores', 'sqlite'])
  if (typeof sqlite !== 'string') return undefined
  const path = expand(sqlite, await resolveReferences(sqlite, dirname(config), env), () => '')
  return join(dirname(resolve(dirname(config), path)), TOKEN_FILE)
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
