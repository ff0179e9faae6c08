/** Reads the address of Redis or Valkey: one server, a socket file, Sentinels or a cluster. */
import { StoreError } from '../../core/ports.ts'

/** Where a server listens. */
interface ServerPlace {
  readonly host: string
  readonly port: number
}

/** An address, read. `servers` are the Sentinels of `sentinel`, and some members of `cluster`. */
export interface RedisAddress {
  readonly kind: 'server' | 'socket' | 'sentinel' | 'cluster'
  readonly servers: readonly ServerPlace[]
  /** Path of the socket file. */
  readonly path: string
  /** Name under which the Sentinels know the server. */
  readonly master: string
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
  readonly tls: boolean
}

/** Schemes and forms, as messages and the schema of `gateway.yaml` show them. */
const REDIS_FORMS =
  '"redis://host:6379/0", "rediss://…" for TLS, "unix:///path", "redis+sentinel://host1,host2/master" or "redis+cluster://host1,host2"'
const PORT = { server: 6379, socket: 0, sentinel: 26_379, cluster: 6379 } as const
const FORM =
  /^(?<scheme>unix|rediss?)(?:\+(?<kind>sentinel|cluster))?:\/\/(?:(?<login>[^@/]*)@)?(?<hosts>[^/?#@]*)(?<path>\/[^?#]*)?$/
const HOST = /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<name>[^:[\]\s]+))(?::(?<port>\d{1,5}))?$/

/** Throws a StoreError that does not show the address, which may hold a password. */
export function readRedisAddress(address: string): RedisAddress {
  const { scheme, kind: named, login, hosts = '', path = '' } = FORM.exec(address)?.groups ?? {}
  if (scheme === undefined) throw wrong('has another form')
  const kind: RedisAddress['kind'] =
    scheme === 'unix' ? 'socket' : named === 'sentinel' || named === 'cluster' ? named : 'server'
  const [username, password] = loginOf(login)
  const shared = { kind, username, password, tls: scheme === 'rediss' }
  if (kind === 'socket') {
    if (hosts !== '' || path === '') throw wrong('names no socket file')
    return { ...shared, servers: [], path, master: '', database: 0 }
  }
  const servers = hosts.split(',').map(host => serverOf(host, PORT[kind]))
  if (kind === 'server' && servers.length > 1) throw wrong('names several hosts, which Sentinels and clusters have')
  const [first = '', second = '', ...others] = path.split('/').slice(1)
  const [master, number] = kind === 'sentinel' ? [first, second] : ['', first]
  if (kind === 'sentinel' && master === '') throw wrong('names no master after the Sentinels')
  if (others.length > 0 || (kind !== 'sentinel' && second !== '') || !/^\d{0,3}$/.test(number)) {
    throw wrong('has no valid database number')
  }
  if (kind === 'cluster' && Number(number) !== 0) throw wrong('names a database, which clusters do not have')
  return { ...shared, servers, path: '', master, database: Number(number) }
}

function serverOf(text: string, usual: number): ServerPlace {
  const { v6, name, port } = HOST.exec(text)?.groups ?? {}
  const host = v6 ?? name
  const number = Number(port ?? usual)
  if (host === undefined || number < 1 || number > 65_535) throw wrong('has no valid host and port')
  return { host, port: number }
}

/** `user:password`, `:password` or `password`, percent-encoded. */
function loginOf(login = ''): [username: string | undefined, password: string | undefined] {
  const colon = login.indexOf(':')
  try {
    const username = decodeURIComponent(login.slice(0, Math.max(0, colon)))
    const password = decodeURIComponent(login.slice(colon + 1))
    return [username || undefined, password || undefined]
  } catch {
    throw wrong('has a login that is not percent-encoded')
  }
}

const wrong = (how: string) => new StoreError(`The address in stores.redis ${how}. Write ${REDIS_FORMS}.`)
