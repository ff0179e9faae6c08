/** What TLS of servers that others name may cost. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import t from 'tap'
import type { buildConnector } from 'undici'
import { boundedConnector } from '../../src/egress/connector.ts'

const to = (port: number): buildConnector.Options => ({
  ...{ hostname: '127.0.0.1', host: `127.0.0.1:${port}`, protocol: 'https:', port: String(port) },
})
const connect = (port: number, options: buildConnector.BuildOptions = {}) =>
  new Promise<Socket>((resolve, reject) => {
    boundedConnector(options)(to(port), (error, socket) => (error ? reject(error) : resolve(socket)))
  })

const portOf = (server: Server): number => (server.address() as AddressInfo).port

/** TLS_DHE_* of IANA's registry that OpenSSL has. */
const DHE = [
  ...[
    0x0016, 0x0032, 0x0033, 0x0038, 0x0039, 0x0040, 0x0044, 0x0045, 0x0067, 0x006a, 0x006b, 0x0087, 0x0088, 0x009e,
    0x009f,
  ],
  ...[
    0x00a2, 0x00a3, 0x00aa, 0x00ab, 0x00be, 0x00c4, 0xc052, 0xc053, 0xc07c, 0xc07d, 0xc09e, 0xc09f, 0xc0a2, 0xc0a3,
    0xccaa,
  ],
]
const ECDHE_RSA_AES_128_GCM = 0xc02f

/** Those that a ClientHello offers (RFC 8446 section 4.1.2), in one record. */
function suitesIn(hello: Buffer): number[] {
  const session = 5 + 4 + 2 + 32
  const at = session + 1 + hello[session]!
  return Array.from({ length: hello.readUInt16BE(at) / 2 }, (_, nth) => hello.readUInt16BE(at + 2 + 2 * nth))
}

t.test('no server gets to choose a group of its own to compute with', async t => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const connecting = connect(portOf(server))
  const [socket] = (await once(server, 'connection')) as [Socket]
  const [hello] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  await t.rejects(connecting)
  const suites = suitesIn(hello)
  t.ok(suites.includes(ECDHE_RSA_AES_128_GCM))
  t.strictSame(
    suites.filter(suite => DHE.includes(suite)),
    [],
  )
})
