/** A client of the admin listener. */
import { DEFAULT_ADMIN as DEFAULT_ADDRESS } from '../config/environment.ts'
import { START } from '../config/locate.ts'
import { isObject, jsonIn, objectIn } from '../json/json.ts'
import { configured, isNamed } from './config-file.ts'
import { call, parseUrl, readText, unreachable } from './http.ts'
import { Failure, type Io } from './io.ts'
import { addressBeside, type FoundToken, findToken, type TokenPlaces } from './token.ts'

const DEFAULT_ADMIN = `http://${DEFAULT_ADDRESS}`

/** Requests to the admin listener, with its token. */
export interface Admin {
  url(): Promise<URL>
  /** Body of the answer as text; throws a Failure for any error status but `accepted`. */
  text(method: 'GET' | 'POST', path: string, body?: unknown, accepted?: number): Promise<string>
  /** Returns the answer as JSON. Gateway and command line are one package, so `T` is not verified. */
  json<T>(method: 'GET' | 'POST', path: string, body?: unknown, accepted?: number): Promise<T>
  command<T>(name: string, args?: object): Promise<T>
}

/** Where options say that the admin listener and its token are. */
type AdminPlaces = TokenPlaces & { readonly admin?: string | undefined }

/** `because`: what names the address, for messages. */
interface Address {
  readonly url: URL
  readonly because: string
}

/**
 * In order: `--admin`, `GATEWAY_ADMIN`, `server.admin` of a named configuration file, the address beside the token, the
 * default. An unnamed file of the working folder gives no address: the token would go wherever it says.
 */
async function addressOf({ admin, config, tokenFile }: AdminPlaces, io: Io): Promise<Address> {
  const given = admin ?? io.env.GATEWAY_ADMIN
  if (given) return { url: parseUrl(given, DEFAULT_ADMIN), because: '' }
  const named = isNamed(config, io.env) ? await configured(config, io, ['server', 'admin'], '--admin') : undefined
  const token = named ? undefined : await findToken({ tokenFile, config }, io)
  const found = named ?? (token?.token !== undefined && token.file ? await addressBeside(token.file) : undefined)
  if (!found) return { url: parseUrl(DEFAULT_ADMIN, DEFAULT_ADMIN), because: '' }
  const url = parseUrl(found.text, DEFAULT_ADMIN)
  // A gateway that listens on every address is reached at this machine's own.
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  if (url.hostname === '[::]') url.hostname = '[::1]'
  return { url, because: `, which ${named ? 'server.admin in ' : ''}${found.file} names` }
}

/**
 * Finds address and token at the first request, which rejects with a Failure where the address is no URL. `silenceMs`:
 * time without data after which a request fails.
 */
export function connect(options: AdminPlaces, io: Io, silenceMs?: number): Admin {
  let found: Promise<Address> | undefined
  const address = () => {
    found ??= addressOf(options, io)
    return found
  }

  async function text(method: 'GET' | 'POST', path: string, body?: unknown, accepted?: number): Promise<string> {
    const { url, because } = await address()
    const found = await findToken(options, io)
    const headers: Record<string, string> = { 'x-gateway-actor': actorOf(io) }
    if (found.token !== undefined) headers.authorization = `Bearer ${found.token}`
    try {
      const response = await call(new URL(path, url), { method, headers, body, silenceMs })
      const answer = await readText(response)
      if (response.statusCode! < 400 || response.statusCode === accepted) return answer
      if (response.statusCode === 401) throw new Failure(refusedToken(found), parseError(answer))
      throw adminError(url, response.statusCode!, answer)
    } catch (thrown) {
      if (!unreachable(thrown)) throw thrown
      throw new Failure(`cannot reach the gateway at ${url.origin}${because}; start it with ${START} or pass --admin`)
    }
  }

  const url = async () => (await address()).url

  async function json<T>(method: 'GET' | 'POST', path: string, body?: unknown, accepted?: number): Promise<T> {
    const answer = await text(method, path, body, accepted)
    try {
      return JSON.parse(answer) as T
    } catch {
      throw new Failure(notAdmin(await url()))
    }
  }

  return { url, text, json, command: (name, args = {}) => json('POST', `/commands/${name}`, args) }
}

/** Name of the operator in the audit log: `GATEWAY_ACTOR`, else the user of the machine. */
function actorOf({ env }: Io): string {
  const name = env.GATEWAY_ACTOR || env.USER || env.LOGNAME || 'gatewayctl'
  return name.replace(/[^\x20-\x7e]/g, '?').slice(0, 100)
}

const notAdmin = (url: URL): string =>
  `${url.origin} answers, but not as an admin listener; pass the address of server.admin as --admin`

function adminError(url: URL, status: number, answer: string): Failure {
  const error = parseError(answer)
  const isPublic = status === 404 && error?.message.startsWith('There is no endpoint /')
  return error && !isPublic ? new Failure(error.message, error) : new Failure(`${notAdmin(url)} (status ${status})`)
}

/** The `error` object of an error answer, or undefined for any other text. */
export function parseError(answer: string): { message: string } | undefined {
  const { error } = objectIn(jsonIn(answer))
  return isObject(error) && typeof error.message === 'string' ? (error as { message: string }) : undefined
}

function refusedToken(found: FoundToken): string {
  if (found.token !== undefined) return `the gateway refused the admin token from ${found.from}; pass --token-file`
  return (
    `no admin token in ${found.looked.join(' or ')}; pass the file beside the gateway's database as --token-file, ` +
    'or set GATEWAY_ADMIN_TOKEN'
  )
}
