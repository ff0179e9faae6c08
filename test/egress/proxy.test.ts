/** Fetches and callbacks through a proxy: what others name is checked before the proxy hears of it. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import t from 'tap'
import { linkEgress, linkProviderEgress } from '../../src/config/egress.ts'
import { Source } from '../../src/config/source.ts'
import { HttpCallbackPoster } from '../../src/egress/callbacks.ts'
import { DocumentFetcher } from '../../src/egress/documents.ts'
import { Fetcher } from '../../src/egress/fetcher.ts'
import { socketConnector } from '../../src/egress/socket.ts'
import { makeAuthority } from '../helpers/certificates.ts'
import { startConnectProxy } from '../helpers/connect-proxy.ts'

const authority = makeAuthority(t)
const client = authority.certificate('client', 'DNS:gateway', 30)
const ca = readFileSync(authority.path)
const asked: { host: string | undefined; client: string | string[] | undefined; path: string | undefined }[] = []
const served = authority.certificate('served', 'DNS:pictures.example,DNS:hook.example,IP:8.8.8.8', 30)
const server = createServer({ ...served, ca, requestCert: true, rejectUnauthorized: false }, (req, res) => {
  const { headers, url, socket } = req as IncomingMessage & { socket: TLSSocket }
  asked.push({ host: headers.host, client: socket.getPeerCertificate().subject?.CN, path: url })
  res.setHeader('content-type', 'application/json')
  res.end('{"a":1}')
})
await once(server.listen(0, '127.0.0.1'), 'listening')
t.teardown(() => server.close())
const { port } = server.address() as AddressInfo
const proxy = await startConnectProxy(t, { route: target => (target.endsWith(':443') ? port : undefined) })

const source = new Source('gateway.yaml', '')
const value = { egress: { proxy: `http://127.0.0.1:${proxy.port}` } }
const shared = linkEgress({
  source,
  value: { egress: { ...value.egress, ca: 'ca' } },
  contents: { ca: ca.toString() },
})!
const own = linkProviderEgress(
  {
    source,
    value: { egress: { client_cert: 'cert', client_key: 'key' } },
    contents: { client_cert: client.cert.toString(), client_key: client.key.toString() },
  },
  shared,
)!
const egress = () => shared
const policy = { accept: '*/*', timeoutMs: 60_000, maxBytes: 1000, tooLarge: () => new Error('too large') }
const resolving =
  (...addresses: string[]) =>
  async () =>
    addresses

t.test('a proxy is asked for the address that was checked, and TLS for the name', async t => {
  for (const [addresses, target] of [
    [['8.8.8.8', '8.8.4.4'], '8.8.8.8:443'],
    [['2606:4700::1111'], '[2606:4700::1111]:443'],
  ] as const) {
    const fetcher = new Fetcher([], resolving(...addresses), egress)
    const { content } = await fetcher.read(new URL('https://pictures.example/a'), policy)
    t.equal(content.toString(), '{"a":1}')
    t.strictSame(proxy.taken(), [target])
    t.match(asked.splice(0), [{ host: 'pictures.example', path: '/a' }])
  }
  const fetcher = new Fetcher([], resolving(), egress)
  await fetcher.read(new URL('https://8.8.8.8/'), policy)
  t.strictSame(proxy.taken(), ['8.8.8.8:443'], 'an address in the URL is one, too')
})

t.test('a proxy is not asked for what is not public', async t => {
  const opened = proxy.opened
  for (const addresses of [['10.0.0.1'], ['8.8.8.8', '127.0.0.1'], ['169.254.169.254'], ['::1'], []]) {
    const fetcher = new Fetcher([], resolving(...addresses), egress)
    await t.rejects(fetcher.read(new URL('https://pictures.example/a'), policy))
  }
  const fetcher = new Fetcher([], resolving('8.8.8.8'), egress)
  for (const host of ['127.0.0.1', '10.0.0.1', '[::1]', '169.254.169.254', '192.168.1.1']) {
    await t.rejects(fetcher.read(new URL(`https://${host}/`), policy), host)
  }
  t.strictSame(proxy.taken(), [])
  t.equal(proxy.opened, opened)
})

t.test('a target that is exempt is connected to directly, and its peer is checked', async t => {
  const direct = linkEgress({ source, value: { egress: { ...value.egress, no_proxy: ['pictures.example'] } } })
  const fetcher = new Fetcher([], resolving('127.0.0.1'), () => direct)
  await t.rejects(fetcher.read(new URL('https://pictures.example/a'), policy))
  t.strictSame(proxy.taken(), [])
})

t.test('no certificate is shown at addresses that others gave', async t => {
  asked.length = 0
  const fetcher = new Fetcher([], resolving('8.8.8.8'), egress)
  await fetcher.read(new URL('https://pictures.example/a'), { ...policy, egress: own })
  t.match(asked, [{ client: undefined }])
})

t.test('callbacks and documents go through the proxy', async t => {
  proxy.taken()
  const poster = new HttpCallbackPoster(resolving('8.8.8.8'), egress)
  t.match(await poster.post('https://hook.example/in', [], {}, '{}', 60_000), { status: 200, text: '{"a":1}' })
  t.strictSame(proxy.taken(), ['8.8.8.8:443'])
  const documents = new DocumentFetcher(new Fetcher([], resolving('8.8.4.4'), egress))
  t.equal(await documents.read('https://pictures.example/client', 'reader'), '{"a":1}')
  t.strictSame(proxy.taken(), ['8.8.4.4:443'])
  const keys = await documents.readTrusted('https://pictures.example/keys', 60_000)
  t.strictSame(keys, { status: 200, text: '{"a":1}' })
  t.strictSame(proxy.taken(), ['pictures.example:443'], 'the proxy resolves what the operator has named')
})

t.test('a silent proxy takes no longer than the time of the fetch', async t => {
  proxy.refuse('silence')
  const fetcher = new Fetcher([], resolving('8.8.8.8'), egress)
  await t.rejects(fetcher.read(new URL('https://pictures.example/a'), { ...policy, timeoutMs: 50 }))
  const poster = new HttpCallbackPoster(resolving('8.8.8.8'), egress)
  await t.rejects(poster.post('https://hook.example/in', [], {}, '{}', 50), { message: 'it did not answer in time' })
  proxy.refuse(undefined)
})

t.test('a connection that is given up while it waits for a proxy or for TLS ends at once', async t => {
  const silent = createTcpServer().listen(0, '127.0.0.1')
  const sockets: Socket[] = []
  silent.on('connection', socket => void sockets.push(socket))
  await once(silent, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const { port } = silent.address() as AddressInfo
  const mute = await startConnectProxy(t, { route: () => port })
  for (const [at, wait] of [
    [port, () => once(silent, 'connection')],
    [mute.port, () => once(silent, 'connection')],
  ] as const) {
    const way = linkEgress({ source, value: { egress: { proxy: `http://127.0.0.1:${at}` } } })
    const connected = wait()
    const connecting = socketConnector({ egress: way })
    let socket: Socket | undefined
    const failed = new Promise<Error | null>(resolve => {
      const target = { hostname: 'api.example', host: 'api.example', protocol: 'https:', port: '443' }
      socket = connecting(target, (...[error]) => resolve(error))
    })
    const [peer] = (await connected) as [Socket]
    await once(peer, 'data')
    socket!.destroy(new Error('given up'))
    t.ok(await failed)
  }
})
