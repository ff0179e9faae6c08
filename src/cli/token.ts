/** Finds the admin token. */
import { dirname, join, resolve } from 'node:path'
import { urlOf } from '../lib/url.ts'
import { type Configured, configured, isNamed, readIfThere } from './config-file.ts'
import { Failure, type Io } from './io.ts'

const TOKEN_FILE = 'admin.token'
const ADDRESS_FILE = 'token.address'
const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|\[::1\]|localhost)$/
const OPTION = '--token-file'

/** Paths that options name; `config` is that of `gateway.yaml`. */
export interface TokenPlaces {
  readonly tokenFile?: string | undefined
  readonly config?: string | undefined
}

/** `from`: where the token was found; `file`: its path; `looked`: the places searched without success. */
export type FoundToken =
  | { readonly token: string; readonly from: string; readonly file: string | undefined }
  | { readonly token: undefined; readonly looked: readonly string[] }

/**
 * Searches in order: `--token-file`, `GATEWAY_ADMIN_TOKEN`, beside the database of a named configuration file, the
 * folder `GATEWAY_DATA` or `./data`, beside the database of `./config/gateway.yaml`. A named file that cannot be read is
 * a failure; an empty place is not.
 */
export async function findToken({ tokenFile, config }: TokenPlaces, io: Io): Promise<FoundToken> {
  if (tokenFile !== undefined) {
    const file = resolve(io.cwd, tokenFile)
    const token = await readIfThere(file, OPTION)
    if (token === undefined) throw new Failure(`there is no token file ${file}; pass the right one as --token-file`)
    return { token: token.trim(), from: file, file }
  }
  const { GATEWAY_ADMIN_TOKEN: given, GATEWAY_DATA: data } = io.env
  if (given) return { token: given.trim(), from: 'GATEWAY_ADMIN_TOKEN', file: undefined }

  const local = resolve(io.cwd, data || 'data', TOKEN_FILE)
  const beside = await besideDatabase(config, io)
  const isOnly = beside !== undefined && isNamed(config, io.env)
  const looked = isOnly ? [beside] : [...new Set([local, beside ?? local])]
  for (const file of looked) {
    const token = await readIfThere(file, OPTION)
    if (token !== undefined) return { token: token.trim(), from: file, file }
  }
  return { token: undefined, looked }
}

/**
 * The address that the gateway wrote beside its token; undefined without one. Throws a Failure for another machine's:
 * the folder may be a stranger's.
 */
export async function addressBeside(tokenFile: string): Promise<Configured | undefined> {
  const file = join(dirname(tokenFile), ADDRESS_FILE)
  const text = (await readIfThere(file, '--admin'))?.trim()
  if (!text) return undefined
  if (LOOPBACK.test(urlOf(text)?.hostname ?? '')) return { text, file, folder: dirname(file) }
  throw new Failure(`${file} names an address that is not on this machine; pass it as --admin if it is the right one`)
}

/** The token file of the gateway that uses this configuration file; undefined when the file does not determine it. */
async function besideDatabase(option: string | undefined, io: Io): Promise<string | undefined> {
  if (io.env.GATEWAY_DATA) return undefined
  const sqlite = await configured(option, io, ['stores', 'sqlite'], OPTION)
  return sqlite && join(dirname(resolve(sqlite.folder, sqlite.text)), TOKEN_FILE)
}
