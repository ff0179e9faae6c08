/**
 * Secrets of HashiCorp Vault, and of OpenBao, in key-value stores of both versions (docs/secrets.md#vault). Sources: "KV secrets
 * engine - HTTP API" and "AppRole auth method (API)" of Vault's documentation; its command line for defaults and mounts.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { VaultSettings } from '../config/schemas/secrets.ts'
import { isObject, objectIn } from '../json/json.ts'
import { knowSecrets } from '../secrets/known.ts'
import { type EndpointAnswer, type EndpointRequest, fieldsOf } from '../upstream/auth/endpoint.ts'
import { answerOf, type ManagerContext, managerError, type ReadSecret } from './manager.ts'

const WHO = 'Vault'
const DEFAULT_ADDRESS = 'https://127.0.0.1:8200'
/** A token of a role is not used in its last seconds. */
const MARGIN_MS = 10_000

/** Where a path leads: to a mount and its version. */
interface Mount {
  readonly path: string
  readonly version: number
}

/** A sign-in, and the time (Unix milliseconds) from which another one is needed. */
interface Login {
  readonly token: Promise<string>
  until: number
}

/** Reads secrets of the server that the settings and the environment name. */
export function vaultReader(settings: VaultSettings, context: ManagerContext): ReadSecret {
  const client = new VaultClient(settings, context)
  return path => client.read(path)
}

class VaultClient {
  readonly #settings: VaultSettings
  readonly #context: ManagerContext
  /** The token of a role. */
  #login: Login | undefined

  constructor(settings: VaultSettings, context: ManagerContext) {
    this.#settings = settings
    this.#context = context
  }

  async read(written: string): Promise<Readonly<Record<string, unknown>>> {
    const parts = written.split('/').filter(Boolean)
    const path = parts.join('/')
    if (parts.length < 2 || parts.some(part => part === '.' || part === '..'))
      throw new Error(`expected a path in a mount of Vault, such as "secret/acme", got "${written}"`)
    const mount = await this.#mountOf(path)
    if (mount) return this.#secretIn(await this.#get(dataPath(path, mount)), mount.version)
    // Without a mount the answer shows the version: version 2 has nothing at the path of version 1.
    const given = await this.#get(path)
    if (given.status === 200 || isDataPath(path)) return this.#secretIn(given)
    const [first = '', ...rest] = path.split('/')
    const versioned = await this.#get([first, 'data', ...rest].join('/'))
    return this.#secretIn(versioned.status === 200 ? versioned : given)
  }

  /** Undefined where the token may not ask, or the server does not know the question. */
  async #mountOf(path: string): Promise<Mount | undefined> {
    const { kv_version: version } = this.#settings
    if (version !== undefined) return { path: path.slice(0, path.indexOf(isDataPath(path) ? '/data/' : '/')), version }
    const { status, text } = await this.#get(`sys/internal/ui/mounts/${path}`)
    const { data } = fieldsOf(text)
    if (status !== 200 || !isObject(data) || typeof data.path !== 'string') return undefined
    const { version: told } = objectIn(data.options)
    return { path: data.path, version: String(told) === '2' ? 2 : 1 }
  }

  /** The fields in an answer. Throws an Error where it has none. */
  #secretIn({ status, text }: EndpointAnswer, version?: number): Readonly<Record<string, unknown>> {
    const { data, errors } = fieldsOf(text)
    if (isObject(data) && version !== 1 && isObject(data.metadata)) {
      if (isObject(data.data)) return data.data
      if (data.metadata.deletion_time || data.metadata.destroyed) throw new Error('Vault says that it was deleted')
    }
    if (status === 200 && isObject(data) && version !== 2) return data
    if (status === 404) throw new Error('Vault has nothing at this path')
    throw managerError(WHO, status, Array.isArray(errors) ? errors.join('; ') : undefined)
  }

  async #get(path: string): Promise<EndpointAnswer> {
    const before = this.#login
    const answer = await this.#send(path, { headers: { 'x-vault-token': await this.#token() } })
    // A token of a role may have been revoked.
    if (answer.status !== 403 || !before || before !== this.#login) return answer
    this.#login = undefined
    return this.#send(path, { headers: { 'x-vault-token': await this.#token() } })
  }

  #send(path: string, { headers, ...request }: Omit<EndpointRequest, 'deadlineMs'>): Promise<EndpointAnswer> {
    const { env } = this.#context
    const base = (this.#settings.address ?? (env.VAULT_ADDR || DEFAULT_ADDRESS)).replace(/(?<!\/)\/+$/, '')
    const url = `${base}/v1/${path.split('/').map(encodeURIComponent).join('/')}`
    if (!URL.canParse(url)) throw new Error(`the address of Vault, "${base}", is none such as "${DEFAULT_ADDRESS}"`)
    const namespace = this.#settings.namespace ?? env.VAULT_NAMESPACE
    const own = { 'x-vault-request': 'true', ...(namespace && { 'x-vault-namespace': namespace }) }
    return answerOf(WHO, this.#context, url, { ...request, headers: { ...own, ...headers } })
  }

  async #token(): Promise<string> {
    if (this.#settings.role_id !== undefined) return this.#roleToken()
    const { env, home } = this.#context
    const token = (
      this.#settings.token ??
      (env.VAULT_TOKEN || (await readFile(join(home, '.vault-token'), 'utf8').catch(() => '')))
    ).trim()
    if (token === '')
      throw new Error('there is no token for Vault: set "secrets.vault.token", or VAULT_TOKEN, or "role_id"')
    this.#know(token)
    return token
  }

  async #roleToken(): Promise<string> {
    if (this.#login && Date.now() < this.#login.until) return this.#login.token
    const login: Login = { token: this.#signIn(), until: Number.POSITIVE_INFINITY }
    this.#login = login
    login.token.catch(() => {
      if (this.#login === login) this.#login = undefined
    })
    return login.token
  }

  async #signIn(): Promise<string> {
    const { role_id, secret_id, auth_path: place } = this.#settings
    this.#know()
    const body = JSON.stringify({ role_id, ...(secret_id !== undefined && { secret_id }) })
    const { status, text } = await this.#send(`auth/${place}/login`, { method: 'POST', body, headers: JSON_BODY })
    const { auth, errors } = fieldsOf(text)
    if (status !== 200 || !isObject(auth) || typeof auth.client_token !== 'string') {
      const reason = Array.isArray(errors) ? errors.join('; ') : undefined
      throw managerError(`the sign-in to ${WHO}`, status, reason)
    }
    const { client_token: token, lease_duration: seconds } = auth
    this.#know(token)
    if (this.#login && typeof seconds === 'number' && seconds > 0)
      this.#login.until = Date.now() + seconds * 1000 - MARGIN_MS
    return token
  }

  /** Keeps out of logs what Vault gets. */
  #know(...tokens: readonly string[]): void {
    const { secret_id: secret } = this.#settings
    knowSecrets('vault', [...tokens, ...(secret === undefined ? [] : [secret])])
  }
}

const JSON_BODY = { 'content-type': 'application/json' }

const isDataPath = (path: string): boolean => path.split('/').slice(1, -1).includes('data')

/** Version 2 has its secrets below `data`, which a path may name. */
function dataPath(path: string, { path: mount, version }: Mount): string {
  if (version === 1) return path
  let base = mount.replace(/\/$/, '')
  // Vault names the mount with its namespace, which the path may leave out.
  while (!path.startsWith(`${base}/`) && base.includes('/')) base = base.slice(base.indexOf('/') + 1)
  const rest = path.slice(path.startsWith(`${base}/`) ? base.length + 1 : path.indexOf('/') + 1)
  const before = path.slice(0, -rest.length)
  return rest.startsWith('data/') ? path : `${before}data/${rest}`
}
