/** A private Redis for tests, behind a proxy that can hang, cut and refuse. Tests without the binary are skipped. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Scope } from './child.ts'
import { TcpProxy } from './proxy.ts'

const binary = ['redis-server', 'valkey-server'].find(name => spawnSync(name, ['--version']).status === 0)

/** Options of a tap test that needs Redis: skipped, by name, where there is no binary. */
export const needsRedis = { skip: binary === undefined && 'Redis is not installed', timeout: 30_000 }

/** A server at a socket file, without persistence. */
export class RedisServer {
  readonly socket: string
  readonly #folder = mkdtempSync(join(tmpdir(), 'redis-'))
  readonly #args: readonly string[]
  #process: ChildProcess | undefined

  constructor(args: readonly string[] = []) {
    this.socket = join(this.#folder, 'redis.sock')
    this.#args = args
  }

  /** `unix://` with the path of the socket file. */
  get address(): string {
    return `unix://${this.socket}`
  }

  /** Resolves when it takes connections; an earlier run has left nothing. */
  async start(): Promise<void> {
    const args = ['--port', '0', '--unixsocket', this.socket, '--save', '', '--appendonly', 'no']
    const child = spawn(binary!, [...args, '--dir', this.#folder, ...this.#args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#process = child
    process.once('exit', () => child.kill('SIGKILL'))
    for await (const line of createInterface({ input: child.stdout! })) {
      if (/ready to accept connections/i.test(line)) break
    }
    child.stdout!.resume()
  }

  /** Sends one command, by a connection of its own. */
  async run(command: string): Promise<void> {
    const socket = connect(this.socket)
    socket.end(`${command}\r\n`)
    for await (const _ of socket);
  }

  /** Kills it, so that it loses everything. */
  async kill(): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise(resolve => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }

  async end(): Promise<void> {
    await this.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Starts a server that ends with the test. */
export async function redisFor(t: Scope, args: readonly string[] = []): Promise<RedisServer> {
  const server = new RedisServer(args)
  t.teardown(() => server.end())
  await server.start()
  return server
}

/** A proxy in front of a Redis. */
export class RedisProxy extends TcpProxy {
  get address(): string {
    return `redis://127.0.0.1:${this.port}`
  }
}

/** Starts a proxy that ends with the test. */
export async function proxyFor(t: Scope, { socket }: RedisServer): Promise<RedisProxy> {
  const proxy = new RedisProxy(socket)
  t.teardown(() => proxy.end())
  await proxy.listen()
  return proxy
}
