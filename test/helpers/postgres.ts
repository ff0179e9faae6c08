/** A private PostgreSQL server for the tests of one file: on a free port, in a temporary folder, by an ordinary user. */

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import t from 'tap'

/** Below the ports that the kernel gives to connections: none takes one before its server listens. */
const [FIRST_PORT, LAST_PORT] = [15_000, 32_000]

const DEBIAN = '/usr/lib/postgresql'
/** The folder of the server's programs; undefined where none are installed. */
const programs = programsOf()
/** Value of tap's option `skip` for tests that need PostgreSQL. */
export const withoutPostgres: string | false = programs === undefined && 'PostgreSQL is not installed'

/** A running server. */
export interface PostgresServer {
  /** Connection string of a new database, a copy of `template` if given. */
  database(template?: string): Promise<string>
  /** Runs SQL as the superuser in the database that administration uses. */
  run(sql: string): Promise<readonly unknown[]>
  /** Process id of the postmaster. */
  readonly pid: number
  /** Port of loopback. */
  readonly port: number
  /** Starts another server that follows this one; this one waits for it before a commit is durable. */
  standby(): Promise<PostgresServer>
  /** Ends the server as a power cut would: all processes at once, without a checkpoint. */
  crash(): Promise<void>
  /** Starts it again in the same folder, at the same port. */
  start(): Promise<void>
}

interface ServerOptions {
  /** Port of the server that this one follows, as a copy of it. */
  readonly follows?: number
  /** Whether commits reach the disk, which tests of crashes need and all others pay for. */
  readonly fsync?: boolean
}

let shared: Promise<PostgresServer> | undefined
/** The server that the tests of this process share; it ends with them. */
export function postgresServer(): Promise<PostgresServer> {
  shared ??= startPostgres()
  return shared
}

/** Starts a server of its own, which ends with the process's tests. */
export async function startPostgres({ fsync = false, follows }: ServerOptions = {}): Promise<PostgresServer> {
  if (programs === undefined) throw new Error('PostgreSQL is not installed')
  const folder = mkdtempSync(join(tmpdir(), 'gateway-postgres-'))
  const user = ordinaryUser()
  if (user) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const [program, ...options] =
    follows === undefined
      ? ['initdb', '-U', 'gateway', '--auth=trust', '--no-sync', '-E', 'UTF8', '--locale=C']
      : ['pg_basebackup', '-U', 'gateway', '-h', '127.0.0.1', '-p', `${follows}`, '-R', '-c', 'fast', '--no-sync']
  const within = { ...user, cwd: folder, encoding: 'utf8' } as const
  const made = spawnSync(join(programs, program!), ['-D', data, ...options], within)
  if (made.status !== 0) throw new Error(`${program} failed: ${made.stderr}`)
  const port = await freePort()
  const settings = {
    fsync: fsync ? 'on' : 'off',
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: folder,
    shared_buffers: '32MB',
    max_connections: 200,
  }
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  let server: ReturnType<typeof spawn>
  const start = async () => {
    server = spawn(join(programs, 'postgres'), ['-D', data, ...args], {
      ...user,
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    await ready(server)
  }
  /** SIGINT ends connections in order, SIGQUIT at once and without a checkpoint. */
  const stop = async (signal: 'SIGINT' | 'SIGQUIT') => {
    if (server.exitCode !== null || server.signalCode !== null) return
    const ended = once(server, 'exit')
    server.kill(signal)
    await ended
  }
  await start()
  const kill = () => server.kill('SIGQUIT')
  process.once('exit', kill)
  const urlOf = (database: string) => `postgres://gateway@127.0.0.1:${port}/${database}`
  const admin = new pg.Pool({ connectionString: urlOf('postgres'), max: 1 })
  admin.on('error', () => {})
  t.teardown(async () => {
    process.off('exit', kill)
    await admin.end()
    await stop('SIGINT')
    rmSync(folder, { recursive: true, force: true })
  })
  let count = 0
  return {
    get pid() {
      return server.pid!
    },
    async database(template = 'template1') {
      const name = `test_${++count}`
      await admin.query(`CREATE DATABASE ${name} TEMPLATE ${template}`)
      return urlOf(name)
    },
    port,
    async standby() {
      const other = await startPostgres({ fsync, follows: port })
      await admin.query("ALTER SYSTEM SET synchronous_standby_names = '*'")
      await admin.query('SELECT pg_reload_conf()')
      return other
    },
    run: async sql => (await admin.query(sql)).rows,
    crash: () => stop('SIGQUIT'),
    start,
  }
}

/** Resolves when the server accepts connections; rejects with what it said when it ends before. */
function ready(server: ReturnType<typeof spawn>): Promise<void> {
  let said = ''
  return new Promise((resolve, reject) => {
    server.once('exit', () => reject(new Error(`postgres ended: ${said}`)))
    // It is read to the end, since a full pipe would stop the server.
    server.stderr!.setEncoding('utf8').on('data', (text: string) => {
      if (said.length < 10_000) said += text
      if (/ready to accept (?:read-only )?connections/.test(text)) resolve()
    })
  })
}

/** The server refuses to run as root. */
function ordinaryUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

/** Returns a port of loopback that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, LAST_PORT)
    const server = createServer()
    const taken = await new Promise<boolean>(resolve => {
      server.once('error', () => resolve(true)).listen(port, '127.0.0.1', () => resolve(false))
    })
    if (taken) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

function programsOf(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [...versions.map(version => join(DEBIAN, version, 'bin')), ...(process.env.PATH ?? '').split(':')]
  return folders.find(folder => existsSync(join(folder, 'initdb')))
}
