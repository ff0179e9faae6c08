/** Diagnoses an installation: machine, configuration, stores, and the way to each provider. */
import { dirname } from 'node:path'
import type { Catalog } from '../core/catalog.ts'
import { isLive } from '../core/offer.ts'
import type { Credential } from '../core/provider-settings.ts'
import type { Provider } from '../core/translator.ts'
import { DEMO_ORIGIN } from '../demo/address.ts'
import { ProxyError } from '../egress/tunnel.ts'
import type { Egress } from '../lib/egress.ts'
import type { Maintenance } from '../stores/maintenance.ts'
import { authorized } from '../upstream/sign.ts'

/** One line of the result. */
export interface Finding {
  readonly status: 'ok' | 'warn' | 'fail'
  readonly what: string
  /** The remedy; null when nothing is to be done. */
  readonly remedy: string | null
}

/** The head of an answer. `date`: Unix milliseconds of its header, if it has one. */
export interface Answered {
  readonly status: number
  readonly date: number | undefined
  /** Whether a gateway answered. */
  readonly isGateway: boolean
}

/** The machine, so that tests replace it. */
export interface Machine {
  /** `process.version`. */
  readonly node: string
  readonly version: string
  now(): number
  /** Rejects with the system's error where nothing can listen. `address` is `host:port`. */
  listen(address: string): Promise<void>
  /** Files that this process may open; undefined where the system does not say. */
  maxFiles(): number | undefined
  /** Rejects for a folder that this process cannot write, or make. */
  write(folder: string): Promise<void>
  freeBytes(folder: string): Promise<number>
  /** Sends a GET request; rejects with the system's error, or a ProxyError. `headers`: names and values in turn. */
  get(url: string, headers?: readonly string[], egress?: Egress): Promise<Answered>
}

/** The installation. Its functions, and `schema` of its stores, reject with an error for people. */
export interface Installation {
  readonly listen: string
  readonly admin: string
  readonly maxConnections: number
  /** Path of the database file; in its folder are also the files that stand beside any database. */
  readonly database: string
  /** Path of the configuration file. */
  readonly config: string
  /** Rejects with the reason where Redis cannot be used; undefined where none is configured. */
  readonly redis: (() => Promise<void>) | undefined
  stores(): Promise<Pick<Maintenance, 'name' | 'schema'>>
  catalog(): Promise<{ readonly version: string; readonly catalog: Pick<Catalog, 'providers' | 'open' | 'egress'> }>
}

const MIN_NODE = [20, 19] as const
const MIB = 1024 * 1024
const FAIL_FREE_BYTES = 100 * MIB
const WARN_FREE_BYTES = 1024 * MIB
/** A request holds a socket of its client and one of its provider. */
const FILES_PER_CONNECTION = 2
/** AWS and Google refuse signatures that are five minutes off. */
const FAIL_SKEW_MS = 300_000
const WARN_SKEW_MS = 30_000
/** Names below `invalid` never exist (RFC 2606). */
const NOWHERE = 'http://gateway-doctor.invalid/'

const ok = (what: string): Finding => ({ status: 'ok', what, remedy: null })
const warn = (what: string, remedy: string): Finding => ({ status: 'warn', what, remedy })
const fail = (what: string, remedy: string): Finding => ({ status: 'fail', what, remedy })

/** Never rejects. With `probe`, credentials are shown to their providers, by free requests alone. */
export async function diagnose(place: Installation, machine: Machine, probe: boolean): Promise<Finding[]> {
  const read = await place.catalog().catch((thrown: unknown) => textOf(thrown))
  const own = [
    node(machine.node),
    ok(`gateway ${machine.version}`),
    typeof read === 'string'
      ? fail(`configuration: ${read}`, 'correct the file; `gatewayctl check` reads it again')
      : ok(`configuration ${place.config}: valid, version ${read.version}`),
    await schema(place),
    ...(place.redis ? [await redis(place.redis)] : []),
    await folder(dirname(place.database), machine),
    await port('public', place.listen, machine),
    await port('admin', place.admin, machine),
    files(place, machine),
  ]
  if (typeof read === 'string') return own
  const { providers, open } = read.catalog
  const proxies = await Promise.all(proxiesOf(read.catalog).map(one => proxy(one, machine)))
  const found = await Promise.all(
    [...providers.values()].map(one => provider(one, open?.get(one.id)?.searched === true, machine, probe)),
  )
  return [
    ...own,
    ...proxies,
    clock(found.flatMap(({ skewMs }) => skewMs ?? [])),
    ...found.flatMap(({ findings }) => findings),
  ]
}

function node(version: string): Finding {
  const [major = 0, minor = 0] = version.replace('v', '').split('.').map(Number)
  const isOld = major < MIN_NODE[0] || (major === MIN_NODE[0] && minor < MIN_NODE[1])
  return isOld ? fail(`Node ${version}`, `install Node ${MIN_NODE.join('.')} or newer`) : ok(`Node ${version}`)
}

async function schema({ stores }: Installation): Promise<Finding> {
  try {
    const opened = await stores()
    const { name } = opened
    const { present, known } = await opened.schema()
    if (present === undefined) return warn(`no database ${name}`, 'the first start makes one')
    if (present >= known) return ok(`schema ${present} of ${name}`)
    return warn(`schema ${present} of ${name}, ${known} is current`, 'a start, or `gatewayctl migrate`, updates it')
  } catch (thrown) {
    return fail(`database: ${textOf(thrown)}`, 'correct that, or restore a backup')
  }
}

async function redis(ping: () => Promise<void>): Promise<Finding> {
  try {
    await ping()
    return ok('stores.redis: answers')
  } catch (thrown) {
    return warn(`stores.redis: ${textOf(thrown)}`, 'correct that: until then each process takes its share of limits')
  }
}

async function folder(path: string, machine: Machine): Promise<Finding> {
  try {
    await machine.write(path)
    const free = await machine.freeBytes(path)
    const what = `folder ${path}: writable, ${Math.floor(free / MIB)} MiB free`
    if (free < FAIL_FREE_BYTES) return fail(what, 'make room: requests are refused when charges cannot be kept')
    return free < WARN_FREE_BYTES ? warn(what, 'make room soon') : ok(what)
  } catch (thrown) {
    return fail(`folder ${path}: ${codeOf(thrown)}`, 'let the user of the gateway write it')
  }
}

async function port(name: string, address: string, machine: Machine): Promise<Finding> {
  try {
    await machine.listen(address)
    return ok(`${name} port ${address}: free`)
  } catch (thrown) {
    const code = codeOf(thrown)
    const what = `${name} port ${address}: ${code}`
    if (code === 'EADDRNOTAVAIL') return fail(what, 'this machine has no such address; change it')
    if (code !== 'EADDRINUSE') return fail(what, 'take another port, or allow this user to listen on it')
    const url = `http://${address.replace(/^(?:0\.0\.0\.0|\[::\]):/, '127.0.0.1:')}/live`
    const answered = await machine.get(url).catch(() => undefined)
    if (answered?.isGateway) return ok(`${name} port ${address}: a gateway runs`)
    return fail(`${name} port ${address}: another program uses it`, 'stop that program, or take another port')
  }
}

function files({ maxConnections }: Installation, machine: Machine): Finding {
  const limit = machine.maxFiles()
  if (limit === undefined) return ok('open files: the system names no limit')
  const needed = maxConnections * FILES_PER_CONNECTION
  if (limit >= needed) return ok(`open files: ${limit}`)
  return warn(
    `open files: ${limit}; ${maxConnections} connections need ${needed}`,
    'raise LimitNOFILE or `ulimit -n`, or lower server.max_connections',
  )
}

function clock(skews: readonly number[]): Finding {
  if (skews.length === 0) return warn('clock: no provider answered to compare it with', 'run a time service')
  const skew = skews.toSorted((a, b) => a - b)[Math.floor(skews.length / 2)]!
  const what = `clock: ${Math.round(Math.abs(skew) / 1000)} s off the providers'`
  if (Math.abs(skew) > FAIL_SKEW_MS) return fail(what, 'run a time service: signed requests are refused')
  return Math.abs(skew) > WARN_SKEW_MS ? warn(what, 'run a time service') : ok(what)
}

/** Each proxy that is used, once, for any target. */
function proxiesOf({ egress, providers }: Pick<Catalog, 'providers' | 'egress'>): Egress[] {
  const found = new Map<string, Egress>()
  for (const one of [egress, ...[...providers.values()].filter(isLive).map(({ egress }) => egress)]) {
    const proxy = one?.proxy
    if (!proxy) continue
    const { protocol, name, authorization } = proxy
    const id = `${protocol} ${name} ${authorization}`
    if (!found.has(id)) found.set(id, { ...one, id: `doctor ${one.id}`, proxyFor: () => proxy })
  }
  return [...found.values()]
}

/** A proxy that answers refuses a host that cannot exist. */
async function proxy(egress: Egress, machine: Machine): Promise<Finding> {
  const { name } = egress.proxy!
  const thrown = await machine.get(NOWHERE, [], egress).catch((thrown: unknown) => thrown)
  if (!(thrown instanceof ProxyError)) return ok(`proxy ${name}: answers`)
  if (thrown.status === 407) {
    return fail(`proxy ${name}: refuses user and password`, 'correct them in the address of `egress.proxy`')
  }
  if (thrown.status !== undefined) return ok(`proxy ${name}: answers`)
  return fail(thrown.message, 'start it, or correct the address of `egress.proxy`')
}

interface Judged {
  readonly findings: readonly Finding[]
  readonly skewMs?: number | undefined
}

/** `comes`: whether it is an engine that comes and goes. */
async function provider(one: Provider, comes: boolean, machine: Machine, probe: boolean): Promise<Judged> {
  const { id, auth, baseUrl, variables, egress } = one
  if (!isLive(one)) {
    const names = variables?.secret.join(' and ')
    return { findings: [warn(`${id}: no credential`, names ? `set ${names} to use it` : 'give it one to use it')] }
  }
  const credential = ok(`${id}: ${auth.scheme === 'none' ? 'needs no credential' : 'credential set'}`)
  const { origin, host, hostname, port, protocol } = new URL(baseUrl)
  if (origin === DEMO_ORIGIN) return { findings: [credential] }
  try {
    const { date } = await machine.get(`${origin}/`, [], egress)
    const proxy = egress?.proxyFor(hostname, port || (protocol === 'https:' ? '443' : '80'))
    const reached = `${host} reached${proxy ? ` through the proxy ${proxy.name}` : ''}`
    const findings = [credential, ok(`${id}: ${reached}`)]
    if (probe && auth.scheme !== 'none')
      for (const credential of one.credentials) findings.push(await probed(one, credential, machine))
    return { findings, skewMs: date === undefined ? undefined : machine.now() - date }
  } catch (thrown) {
    const [why, remedy] = whyOf(thrown)
    const finding = comes
      ? warn(`${id}: ${host} is not there`, 'start it to use it')
      : fail(`${id}: ${host}: ${why}`, remedy)
    return { findings: [credential, finding] }
  }
}

/** Asks for the list of models, with a credential and, as some lists are public, without it. */
async function probed(one: Provider, credential: Credential, machine: Machine): Promise<Finding> {
  const { headers } = one
  const auth = credential.auth ?? one.auth
  const id = credential.weight === undefined ? one.id : `${one.id} ${credential.label ?? credential.fingerprint}`
  if (auth.scheme === 'aws-sigv4')
    return warn(`${id}: credential not judged`, 'AWS has no free request at this address')
  const common = ['accept', 'application/json', 'user-agent', 'model-gateway', ...Object.entries(headers).flat()]
  try {
    const { path, headers: signed } = await authorized(one, '/models', [...common], credential)
    const base = one.baseUrl.replace(/\/$/, '')
    const { status } = await machine.get(base + path, signed, one.egress)
    if (status === 401 || status === 403) {
      return fail(
        `${id}: credential refused with status ${status}`,
        'replace it, or give it the permission to list models',
      )
    }
    if (status !== 200) return warn(`${id}: credential not judged: status ${status}`, 'send a request to try it')
    const { status: bare } = await machine.get(`${base}/models`, common, one.egress)
    if (bare === 200)
      return warn(`${id}: credential not judged: its list of models is public`, 'send a request to try it')
    return ok(`${id}: credential accepted`)
  } catch (thrown) {
    return fail(`${id}: credential cannot be used: ${textOf(thrown)}`, 'correct that, and try again')
  }
}

/** Reason and remedy for a system error of a connection. */
function whyOf(thrown: unknown): readonly [why: string, remedy: string] {
  if (thrown instanceof ProxyError)
    return [thrown.message, 'allow this host and port in the proxy, or add it to `no_proxy`']
  const code = codeOf(thrown)
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return [`DNS has no answer (${code})`, 'check the name and the resolver']
  if (/CERT|SELF_SIGNED|UNABLE_TO|TLS|SSL|EPROTO/.test(code)) {
    return [`TLS fails (${code})`, 'check the proxy on the way; `egress.ca` names further authorities']
  }
  return [`no connection (${code})`, 'check the firewall and the route']
}

const textOf = (thrown: unknown): string => (thrown instanceof Error ? String(thrown.message) : String(thrown))
const codeOf = (thrown: unknown): string => (thrown as NodeJS.ErrnoException).code ?? textOf(thrown)
