/** An HTTP proxy that opens tunnels, tells what it was asked for, and refuses as it is told to. */
import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Scope } from './child.ts'

interface ProxyOptions {
  /** Port of loopback that stands for a target, such as `acme.test:443`; undefined for a 502. */
  readonly route: (target: string) => number | undefined
  /** `user:password` that it asks for, by 407. */
  readonly login?: string
  /** To speak TLS. */
  readonly tls?: { key: Buffer; cert: Buffer }
}

export interface ConnectProxy {
  readonly port: number
  /** Targets asked for, since the last look. */
  taken(): string[]
  /** Status of every answer from now on, or silence; undefined opens tunnels again. */
  refuse(how: number | 'silence' | 'break' | undefined): void
  /** Number of tunnels that were opened. */
  readonly opened: number
  /** Breaks all tunnels. */
  cut(): void
}

/** Ends with the test. */
export async function startConnectProxy(t: Scope, { route, login, tls }: ProxyOptions): Promise<ConnectProxy> {
  const seen: string[] = []
  let opened = 0
  let refusal: number | 'silence' | 'break' | undefined
  const open = new Set<Socket>()
  const server = tls ? createHttpsServer(tls) : createHttpServer()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket)).on('error', () => undefined)
  })
  server.on('connect', ({ url = '', headers }: IncomingMessage, client: Socket, first: Buffer) => {
    client.on('error', () => undefined)
    seen.push(url)
    const expected = login && `Basic ${Buffer.from(login).toString('base64')}`
    const port = route(url)
    const status =
      refusal ?? (expected && headers['proxy-authorization'] !== expected ? 407 : port === undefined ? 502 : 200)
    if (status === 'silence') return
    if (status === 'break') return void client.destroy()
    if (status !== 200) return void client.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`)
    const target = connect(port!, '127.0.0.1', () => {
      opened++
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      target.write(first)
      target.pipe(client)
      client.pipe(target)
    })
    target.on('error', () => client.destroy())
    client.on('close', () => target.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const cut = () => {
    for (const socket of open) socket.destroy()
  }
  t.teardown(async () => {
    cut()
    await new Promise(resolve => server.close(resolve))
  })
  return {
    port: (server.address() as AddressInfo).port,
    taken: () => seen.splice(0),
    refuse(how) {
      refusal = how
    },
    get opened() {
      return opened
    },
    cut,
  }
}
