/** A private Redis for tests, behind a proxy that can hang, cut and refuse. Tests without the binary are skipped. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Scope } from './child.ts'

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

/** A TCP port of loopback that leads to the socket file of a server. */
export class RedisProxy {
  readonly #to: string
  readonly #open = new Set<Socket>()
  #server: Server
  #port = 0
  /** Bytes pass in neither direction; connections stay open. */
  #hangs = false

  constructor({ socket }: RedisServer) {
    this.#to = socket
    this.#server = this.#made()
  }

  get address(): string {
    return `redis://127.0.0.1:${this.#port}`
  }

  async listen(): Promise<void> {
    await new Promise<void>(resolve => this.#server.listen(this.#port, '127.0.0.1', resolve))
    this.#port = (this.#server.address() as { port: number }).port
  }

  hang(): void {
    this.#hangs = true
    for (const socket of this.#open) socket.pause()
  }

  resume(): void {
    this.#hangs = false
    for (const socket of this.#open) socket.resume()
  }

  /** Cuts all connections and takes no others. */
  async refuse(): Promise<void> {
    const closed = new Promise(resolve => this.#server.close(resolve))
    for (const socket of this.#open) socket.destroy()
    await closed
    this.#server = this.#made()
  }

  async end(): Promise<void> {
    for (const socket of this.#open) socket.destroy()
    await new Promise(resolve => this.#server.close(resolve))
  }

  #made(): Server {
    return createServer({ pauseOnConnect: false }, client => {
      const server = connect(this.#to)
      for (const [from, to] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#open.add(from)
        from.on('data', bytes => to.write(bytes))
        from.on('error', () => to.destroy())
        from.on('close', () => {
          this.#open.delete(from)
          to.destroy()
        })
        if (this.#hangs) from.pause()
      }
    })
  }
}

/** Starts a proxy that ends with the test. */
export async function proxyFor(t: Scope, server: RedisServer): Promise<RedisProxy> {
  const proxy = new RedisProxy(server)
  t.teardown(() => proxy.end())
  await proxy.listen()
  return proxy
}
