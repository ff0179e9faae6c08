/** A TCP balancer over gateways: new connections go in turn to those that say they are ready. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Gateway } from '../helpers/gateway.ts'

const LOOK_MS = 50

export class Balancer {
  readonly #gateways: readonly Gateway[]
  readonly #ready = new Set<Gateway>()
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer(client => this.#serve(client))
  #turn = 0
  #closed = false

  constructor(gateways: readonly Gateway[]) {
    this.#gateways = gateways
  }

  /** Resolves with its address once all gateways are ready. */
  async listen(): Promise<string> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    for (const gateway of this.#gateways) void this.#watch(gateway)
    for (const gateway of this.#gateways) await this.ready(gateway)
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Resolves when the gateway gets new connections. */
  async ready(gateway: Gateway): Promise<void> {
    while (!this.#ready.has(gateway)) await sleep(LOOK_MS)
  }

  close(): void {
    this.#closed = true
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  async #watch(gateway: Gateway): Promise<void> {
    while (!this.#closed) {
      const status = await gateway.admin('GET', '/ready').then(
        ({ status }) => status,
        () => 0,
      )
      if (status === 200) this.#ready.add(gateway)
      else this.#ready.delete(gateway)
      await sleep(LOOK_MS)
    }
  }

  #serve(client: Socket): void {
    const ready = [...this.#ready]
    const gateway = ready[this.#turn++ % ready.length]
    if (!gateway) {
      client.destroy()
      return
    }
    const server = connect(gateway.port, '127.0.0.1')
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket)
      socket.setNoDelay(true).pipe(other)
      socket.on('error', () => other.destroy())
      socket.once('close', () => this.#sockets.delete(socket))
    }
  }
}
