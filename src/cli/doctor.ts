/** `gatewayctl doctor`: says what hinders the gateway on this machine, and what to do. */
import { readFileSync } from 'node:fs'
import { access, constants, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Command } from 'commander'
import type { Answered, Finding, Installation, Machine } from '../app/doctor.ts'
import { version } from '../app/version.ts'
import { DEFAULT_ADMIN, DEFAULT_LISTEN } from '../config/environment.ts'
import type { Egress } from '../lib/egress.ts'
import { printable } from '../lib/printable.ts'
import { CheckFailed, errorCode, type Io } from './io.ts'
import type { Open } from './session.ts'

const SILENCE_MS = 5_000
/** The head alone is read. */
const MAX_ANSWER_BYTES = 1024 * 1024

/** Adds `doctor`. */
export function addDoctor(program: Command, open: Open): void {
  program
    .command('doctor')
    .description(
      'check ports, limits, clock, disk, stores and providers of this machine; exit with status 1 on a failure',
    )
    .option('--plugins', 'run the modules of catalog.plugins, which may do anything')
    .option('--probe', "show each provider's credential to it, by a free request for its list of models")
    .action(async ({ plugins, probe = false }: { plugins?: boolean; probe?: boolean }, command: Command) => {
      const { io, config, print } = open(command)
      const [{ configuredStores }, { diagnose }, { readCatalog }] = await Promise.all([
        import('../app/maintenance.ts'),
        import('../app/doctor.ts'),
        import('../app/check.ts'),
      ])
      const stores = await configuredStores(config, io.env, io.cwd)
      const { listen = DEFAULT_LISTEN, admin = DEFAULT_ADMIN, max_connections: maxConnections } = stores.gateway.server
      const place: Installation = {
        ...{ listen, admin, maxConnections, database: stores.database, config: stores.config, redis: stores.redis },
        stores: stores.open,
        catalog: () => readCatalog(stores.config, { env: io.env, secrets: true, plugins }),
      }
      const findings = await diagnose(place, io.machine ?? machine, probe)
      print(findings, all => all.map(one => lineOf(one, io)).join(''))
      if (findings.some(({ status }) => status === 'fail')) throw new CheckFailed()
    })
}

/** Codes of ECMA-48: green, yellow, red. */
const COLOURS = { ok: 32, warn: 33, fail: 31 } as const

function lineOf({ status, what, remedy }: Finding, { isTerminal, env }: Io): string {
  const isColoured = isTerminal && !env.NO_COLOR && env.TERM !== 'dumb'
  const word = isColoured ? `\u001b[${COLOURS[status]}m${status}\u001b[0m` : status
  return `${word}${' '.repeat(6 - status.length)}${printable(remedy === null ? what : `${what}; ${remedy}`)}\n`
}

const machine: Machine = {
  node: process.version,
  version,
  now: Date.now,
  async listen(address) {
    const { createServer } = await import('node:net')
    const end = address.lastIndexOf(':')
    const server = createServer()
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(
        { host: address.slice(0, end).replace(/^\[|\]$/g, ''), port: Number(address.slice(end + 1)) },
        resolve,
      )
    })
    await new Promise(resolve => server.close(resolve))
  },
  maxFiles() {
    try {
      const [, limit] = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? []
      return limit === undefined || limit === 'unlimited' ? undefined : Number(limit)
    } catch {
      return undefined
    }
  },
  write: folder => access(folder, constants.W_OK).catch(thrown => orParent(thrown, folder, machine.write)),
  freeBytes: async folder => {
    try {
      const { bavail, bsize } = await statfs(folder)
      return bavail * bsize
    } catch (thrown) {
      return orParent(thrown, folder, machine.freeBytes)
    }
  },
  async get(url, headers = [], egress) {
    if (egress) return through(egress, url, headers)
    const { get } = url.startsWith('https:') ? await import('node:https') : await import('node:http')
    return new Promise((resolve, reject) => {
      const request = get(url, { agent: false, timeout: SILENCE_MS, headers: named(headers) }, response => {
        const { date, 'content-type': type } = response.headers
        // The public listener sends the first header, the admin listener the second.
        const isOurs = 'x-request-id' in response.headers || response.headers['cache-control'] === 'no-store'
        response.on('error', () => {}).destroy()
        resolve({
          status: response.statusCode!,
          date: date === undefined ? undefined : Date.parse(date),
          isGateway: isOurs && type === 'application/json',
        })
      })
      request.on('timeout', () => request.destroy(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })))
      request.on('error', reject)
    })
  },
}

/** As `get`, through the proxy and with the certificates of `egress`. */
async function through(egress: Egress, url: string, headers: readonly string[]): Promise<Answered> {
  const { Agents } = await import('../egress/agents.ts')
  const agents = new Agents(MAX_ANSWER_BYTES)
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })), SILENCE_MS)
  try {
    const { origin, pathname, search } = new URL(url)
    const answer = await agents.of(egress).request({
      ...{ origin, path: pathname + search, method: 'GET', headers: [...headers], signal: abort.signal },
    })
    // The agent's end is an error of what was not read.
    answer.body.on('error', () => undefined)
    const { date } = answer.headers
    return {
      status: answer.statusCode,
      date: date === undefined ? undefined : Date.parse(String(date)),
      isGateway: false,
    }
  } finally {
    clearTimeout(timer)
    await agents.destroy()
  }
}

/** A missing folder is made by the first start, where its parent can be written. */
function orParent<T>(thrown: unknown, folder: string, work: (folder: string) => Promise<T>): Promise<T> {
  if (errorCode(thrown) === 'ENOENT' && dirname(folder) !== folder) return work(dirname(folder))
  throw thrown
}

/** Node adds `host` to an object of headers only. */
const named = (headers: readonly string[]): Record<string, string> =>
  Object.fromEntries(headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1]!] as const] : [])))
