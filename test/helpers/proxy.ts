/** A TCP proxy in front of a store, which can hang, cut and refuse, and lead elsewhere. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Scope } from './child.ts'

/** A port of loopback that leads to the path of a socket file, or to another port of loopback. */
export class TcpProxy {
  #to: string | number
  readonly #open = new Set<Socket>()
  #server: Server
  #port = 0
  /** Bytes pass in neither direction; connections stay open. */
  #hangs = false
  #lost: RegExp | undefined

  constructor(to: string | number) {
    this.#to = to
    this.#server = this.#made()
  }

  /** The same in every run of `listen`. */
  get port(): number {
    return this.#port
  }

  /** New connections lead there. */
  lead(to: string | number): void {
    this.#to = to
  }

  async listen(): Promise<void> {
    await new Promise<void>(resolve => this.#server.listen(this.#port, '127.0.0.1', resolve))
    const address = this.#server.address()
    if (typeof address === 'object' && address) this.#port = address.port
  }

  hang(): void {
    this.#hangs = true
    for (const socket of this.#open) socket.pause()
  }

  resume(): void {
    this.#hangs = false
    for (const socket of this.#open) socket.resume()
  }

  /** Drops pieces that a client sends and that match; none where it is undefined. */
  lose(lost: RegExp | undefined): void {
    this.#lost = lost
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
    return createServer(client => {
      const server = typeof this.#to === 'string' ? connect(this.#to) : connect(this.#to, '127.0.0.1')
      for (const [from, to] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#open.add(from)
        from.on('data', bytes => {
          if (from !== client || !this.#lost?.test(bytes.toString('latin1'))) to.write(bytes)
        })
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
export async function proxyTo(t: Scope, to: string | number): Promise<TcpProxy> {
  const proxy = new TcpProxy(to)
  t.teardown(() => proxy.end())
  await proxy.listen()
  return proxy
}
