/** A scripted Vault that is as strict as the real one: paths, methods, tokens, namespaces, policies, answers of both versions. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Scope } from './child.ts'

type Tree = Record<string, unknown>

/** A secret of a store of version 2 that was deleted. */
export const DELETED = Symbol('deleted')

interface VaultOptions {
  /** Secrets by the path within their mount, of mounts such as `secret/`. */
  mounts: Record<string, { version: 1 | 2; secrets: Record<string, Tree | typeof DELETED> }>
  /** Paths of the API that a token may read; all by default. */
  policy?: (path: string) => boolean
  /** Without it, clients cannot ask for the version of a mount. */
  tellsMounts?: boolean
  namespace?: string
  roles?: Record<string, string>
  /** Seconds that a token of a role lasts. */
  lease?: number
}

/** A running server; its options and tokens may be changed. */
export interface Vault extends Required<Pick<VaultOptions, 'mounts'>> {
  readonly url: string
  readonly tokens: Set<string>
  /** Requests, as `GET /v1/…`. */
  readonly requests: string[]
  sealed: boolean
}

/** Starts the server with the token `hvs.operator`. */
export async function startVault(scope: Scope, options: VaultOptions): Promise<Vault> {
  const { mounts, policy = () => true, tellsMounts = true, namespace, roles = {}, lease = 3600 } = options
  const vault = { mounts, tokens: new Set(['hvs.operator']), requests: [] as string[], sealed: false, url: '' }
  let logins = 0

  const refused = (status: number, ...errors: string[]) => ({ status, body: { errors } })
  const envelope = (data: unknown, more: Tree = {}) => ({
    status: 200,
    body: {
      request_id: 'r',
      lease_id: '',
      renewable: false,
      lease_duration: 0,
      data,
      warnings: null,
      auth: null,
      ...more,
    },
  })
  const login = (role: string, body: string) => {
    const { role_id, secret_id } = JSON.parse(body) as Tree
    if (role !== 'approle') return refused(404, `no handler for route "auth/${role}/login". route entry not found.`)
    if (typeof role_id !== 'string' || roles[role_id] !== secret_id) return refused(400, 'invalid role or secret ID')
    const token = `hvs.role-${++logins}`
    vault.tokens.add(token)
    return envelope(null, { auth: { client_token: token, lease_duration: lease, renewable: true, policies: ['x'] } })
  }
  const kv = (path: string) => {
    const mount = Object.keys(mounts).find(name => path.startsWith(name))
    if (mount === undefined) return refused(404, `no handler for route "${path}". route entry not found.`)
    const { version, secrets } = mounts[mount]!
    const within = path.slice(mount.length)
    if (version === 2 && !within.startsWith('data/')) {
      const warning = 'Invalid path for a versioned K/V secrets engine.'
      return { status: 404, body: { ...envelope(null).body, warnings: [warning] } }
    }
    const secret = secrets[version === 2 ? within.slice(5) : within]
    const metadata = { created_time: '2026-01-01T00:00:00Z', custom_metadata: null, destroyed: false, version: 3 }
    if (secret === DELETED)
      return {
        status: 404,
        body: envelope({ data: null, metadata: { ...metadata, deletion_time: '2026-02-01T00:00:00Z' } }).body,
      }
    if (!secret) return refused(404)
    return envelope(version === 1 ? secret : { data: secret, metadata: { ...metadata, deletion_time: '' } })
  }
  const mountOf = (path: string) => {
    const mount = Object.keys(mounts).find(name => path.startsWith(name))
    if (mount === undefined || !tellsMounts)
      return refused(
        403,
        `preflight capability check returned 403, please ensure client's policies grant access to path "${path}/"`,
      )
    const { version } = mounts[mount]!
    return envelope({ accessor: 'kv_1', path: mount, type: 'kv', options: version === 2 ? { version: '2' } : null })
  }
  const answer = (request: IncomingMessage, body: string) => {
    const { method, headers } = request
    const path = decodeURIComponent(request.url!.replace(/^\/v1\//, ''))
    if (!request.url!.startsWith('/v1/') || path.endsWith('/')) return refused(404)
    if (vault.sealed) return refused(503, 'Vault is sealed')
    if (headers['x-vault-namespace'] !== namespace) return refused(403, 'permission denied')
    const role = /^auth\/(.+)\/login$/.exec(path)?.[1]
    if (role !== undefined) {
      if (method !== 'POST' && method !== 'PUT') return refused(405, 'unsupported operation')
      return headers['x-vault-token'] === undefined ? login(role, body) : refused(400, 'a token came with a sign-in')
    }
    if (method !== 'GET') return refused(405, 'unsupported operation')
    if (!vault.tokens.has(String(headers['x-vault-token'])))
      return refused(403, '2 errors occurred:\n\t* permission denied\n\t* invalid token\n\n')
    if (path.startsWith('sys/internal/ui/mounts/')) return mountOf(path.slice('sys/internal/ui/mounts/'.length))
    return policy(path) ? kv(path) : refused(403, '1 error occurred:\n\t* permission denied\n\n')
  }

  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      vault.requests.push(`${request.method} ${request.url}`)
      const { status, body: said } = answer(request, body)
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(said))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  scope.teardown(() => void server.close())
  vault.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return vault
}
