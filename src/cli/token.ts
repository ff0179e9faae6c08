/** Finds the admin token. */
import { dirname, join, resolve } from 'node:path'
import { configured, readIfThere } from './config-file.ts'
import { Failure, type Io } from './io.ts'

const TOKEN_FILE = 'admin.token'
const OPTION = '--token-file'

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
    const token = await readIfThere(path, OPTION)
    if (token === undefined) throw new Failure(`there is no token file ${path}; pass the right one as --token-file`)
    return { token: token.trim(), from: path }
  }
  const { GATEWAY_ADMIN_TOKEN: given, GATEWAY_DATA: data } = io.env
  if (given) return { token: given.trim(), from: 'GATEWAY_ADMIN_TOKEN' }

  const local = resolve(io.cwd, data || 'data', TOKEN_FILE)
  const looked = [local]
  let token = await readIfThere(local, OPTION)
  if (token !== undefined) return { token: token.trim(), from: local }
  const beside = await besideDatabase(config, io)
  if (beside === undefined || beside === local) return { token: undefined, looked }
  looked.push(beside)
  token = await readIfThere(beside, OPTION)
  return token === undefined ? { token, looked } : { token: token.trim(), from: beside }
}

/** The token file of the gateway that uses this configuration file; undefined when the file does not determine it. */
async function besideDatabase(option: string | undefined, io: Io): Promise<string | undefined> {
  if (io.env.GATEWAY_DATA) return undefined
  const sqlite = await configured(option, io, ['stores', 'sqlite'], OPTION)
  return sqlite && join(dirname(resolve(sqlite.folder, sqlite.text)), TOKEN_FILE)
}
