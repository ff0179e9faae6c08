/** Addresses that clients give: what is fetched from them, and what is never even connected to. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once, setMaxListeners } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createListener, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { Client } from 'undici'
import { Fetcher } from '../../src/egress/fetcher.ts'
import { guardedConnector, isPublicAddress, type Resolve } from '../../src/egress/guard.ts'
import { ClientFetcher, type FetchBounds } from '../../src/egress/media.ts'
import { plainConnector } from '../../src/egress/paused-answers.ts'
import { SingleClient } from '../../src/egress/single-client.ts'
import type { socketConnector } from '../../src/egress/socket.ts'
import { errors, GatewayError } from '../../src/lib/error.ts'
import { insideHosts } from '../upstream/addresses.ts'

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const MIB = 1024 * 1024
const PARAM = 'messages[0].content[0].image_url.url'
const REFUSED = '400 url_not_allowed'
const TOO_LARGE = '413 request_too_large'

/** Counts who comes. */
let visits = 0
const canary = createListener(socket => {
  visits++
  socket.destroy()
}).listen(0, '::')
await once(canary, 'listening')
t.teardown(() => canary.close())
const { port } = canary.address() as { port: number }

/** What a server at a public address is asked, and answers. */
type Handler = (req: IncomingMessage, res: ServerResponse) => unknown
const routes: Record<string, Handler> = {}
const server = createServer((req, res) => routes[req.url!]!(req, res)).listen(0, '127.0.0.1')
await once(server, 'listening')
t.teardown(() => {
  server.close()
  server.closeAllConnections()
})
const origin = `http://127.0.0.1:${(server.address() as { port: number }).port}`

const publicly: Resolve = async () => ['93.184.216.34']
const never: Resolve = async name => {
  throw new Error(`${name} was looked up`)
}

/** Of any fetch, in bytes and milliseconds. */
const boundsOf = (size = 64 * MIB, time = 600_000, concurrency = 64): FetchBounds => ({
  concurrency,
  image_size: size,
  image_time: time,
  audio_size: size,
  audio_time: time,
})

interface Attempt {
  resolve?: Resolve
  bounds?: FetchBounds
  signal?: AbortSignal
  take?: (bytes: number) => void
}
/** All of a fetch but its address. */
const plain = () => ({ param: PARAM, tenant: 'org', signal: new AbortController().signal, take: () => {} })

/** The data URL, or status and code of the refusal. Audio is refused with every address that images are refused with. */
async function fetched(url: string, given: Attempt = {}): Promise<string> {
  const outcome = await fetchedAs('image', url, given)
  if (outcome === REFUSED) t.equal(await fetchedAs('audio', url, given), REFUSED, `audio at ${url}`)
  return outcome
}

async function fetchedAs(kind: 'image' | 'audio', url: string, given: Attempt = {}): Promise<string> {
  const { signal = new AbortController().signal, take = () => {} } = given
  const { resolve = never, bounds = boundsOf() } = given
  const fetcher = new ClientFetcher(new Fetcher([origin], resolve), bounds)
  try {
    const fetch = { url, param: PARAM, tenant: 'org', signal, take }
    if (kind === 'image') return await fetcher.image(fetch)
    const { pieces, contentType } = await fetcher.audio(fetch)
    t.ok(pieces.length < 100, 'whatever the pieces in which it came')
    return `${contentType} of ${Buffer.concat(pieces).length}`
  } catch (thrown) {
    const { status, code, param, message } = thrown as GatewayError
    t.equal(status === 400 ? param : PARAM, PARAM)
    t.notMatch(message, /127\.0\.0\.1|ECONN|ENOTFOUND|socket|resolve|ms\b/, 'a refusal says nothing of the inside')
    return `${status} ${code}`
  }
}

t.test('SI-01 an address is public only when all the world finds the same there', async t => {
  for (const address of ['93.184.216.34', '8.8.8.8', '2606:2800:220:1:248:1893:25c8:1946', '::ffff:8.8.8.8']) {
    t.ok(isPublicAddress(address), address)
  }
  const inside = `127.0.0.1 0.0.0.0 10.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1 169.254.169.254 100.64.0.1 192.0.0.1
    198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 ::1 :: ::ffff:127.0.0.1 ::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::
    2001::1 2001:db8::1 fe80::1 fe80::1%eth0 fec0::1 fd00:ec2::254 fc00::1 ff02::1 100::1 4000::1 localhost example.com`
  for (const address of [...inside.split(/\s+/), '', '127.1']) t.notOk(isPublicAddress(address), address)
})

/** Connects as a client would that was told to fetch from there. */
async function connected(host: string, resolve: Resolve, build?: typeof socketConnector): Promise<string> {
  if (!URL.canParse(`http://${host}:${port}/`)) return 'not a URL'
  const client = new Client(`http://${host}:${port}`, {
    connect: guardedConnector({ timeoutMs: 1000, resolve, build }),
  })
  try {
    await client.request({ method: 'GET', path: '/' })
    return 'connected'
  } catch (thrown) {
    return (thrown as Error).constructor.name
  } finally {
    await client.destroy()
  }
}

t.test('SI-01 no connection opens to an internal address, however it is spelled', async t => {
  const loopback: Resolve = async name => (name.includes('localhost') ? ['127.0.0.1', '::1'] : never(name))
  for (const host of insideHosts) {
    const outcome = await connected(host, loopback)
    t.ok(['ForbiddenAddress', 'not a URL'].includes(outcome), `${host}: ${outcome}`)
    t.equal(
      await fetched(URL.canParse(`https://${host}/`) ? `https://${host}/x.png` : 'https://localhost/', {
        resolve: loopback,
      }),
      REFUSED,
    )
  }
  t.equal(visits, 0)
})

t.test('SI-02 a name is condemned by any address of its own that is not public, and by the peer', async t => {
  const rows: [says: string, addresses: string[]][] = [
    ['private', ['10.0.0.1']],
    ['public and private', ['93.184.216.34', '127.0.0.1']],
    ['public IPv4 and private IPv6', ['93.184.216.34', '::1']],
    ['a mapped address', ['::ffff:127.0.0.1']],
    ['none', []],
    ['what is no address', ['example.com']],
  ]
  for (const [says, addresses] of rows)
    t.equal(await connected('rebind.example', async () => addresses), 'ForbiddenAddress', says)
  const many = Array.from({ length: 65 }, (_, nth) => `93.184.216.${nth}`)
  t.equal(await connected('many.example', async () => many), 'Error', 'more than a site has')
  t.equal(visits, 0)

  let asked = 0
  const rebinding: Resolve = async () => [['93.184.216.34'], ['127.0.0.1']][asked++]!
  const seen: string[] = []
  const build = ((options: { lookup: (name: string, options: object, done: (...found: unknown[]) => void) => void }) =>
    (_to: unknown, callback: (error: Error, socket: null) => void) =>
      options.lookup('rebind.example', { all: true }, (_error, found) => {
        for (const { address } of found as { address: string }[]) seen.push(address)
        callback(new RangeError('nothing is connected here'), null)
      })) as typeof socketConnector
  await connected('rebind.example', rebinding, build)
  t.strictSame([asked, seen], [1, ['93.184.216.34']], 'what was checked is what is connected: nobody asks twice')

  let destroyed = 0
  const diverted = (() => (_to: unknown, callback: (error: null, socket: object) => void) =>
    callback(null, { remoteAddress: '127.0.0.1', destroy: () => destroyed++ })) as typeof socketConnector
  t.equal(await connected('public.example', publicly, diverted), 'ForbiddenAddress')
  t.equal(destroyed, 1, 'a connection that came out inside is closed')
})

t.test(
  'SI-03, SI-04 only https and its port are tried, without credentials, and redirects are judged anew',
  async t => {
    const urls = ['http://public.example/', 'https://public.example:8443/', 'https://user@public.example/']
    urls.push(
      'https://user:pass@public.example/',
      'ftp://public.example/',
      'file:///etc/passwd',
      'gopher://public.example/',
    )
    urls.push(
      'data:image/png;base64,AAAA',
      'javascript:1',
      `http://127.0.0.1:${port}/`,
      `https://127.0.0.1:${port}/`,
      'x',
    )
    for (const url of urls) t.equal(await fetched(url, { resolve: publicly }), REFUSED, url)

    const redirect =
      (status: number, location: string): Handler =>
      (_req, res) =>
        res.writeHead(status, { location }).end()
    routes['/image'] = (_req, res) => res.end(png)
    for (const status of [301, 302, 303, 307, 308]) {
      for (const to of [
        ...urls.slice(0, -1),
        `//127.0.0.1:${port}/`,
        'https://[::1]/',
        'https://169.254.169.254/latest/meta-data',
      ]) {
        routes['/away'] = redirect(status, to)
        t.equal(await fetched(`${origin}/away`, { resolve: publicly }), REFUSED, `${status} to ${to}`)
      }
      routes['/near'] = redirect(status, '/image')
      t.match(await fetched(`${origin}/near`), /^data:image\/png/, `${status} to a place that is allowed`)
    }
    for (let hop = 1; hop <= 6; hop++) routes[`/hop${hop}`] = redirect(302, hop === 1 ? '/image' : `/hop${hop - 1}`)
    t.match(await fetched(`${origin}/hop3`), /^data:image\/png/)
    for (const hops of [4, 6]) t.equal(await fetched(`${origin}/hop${hops}`), REFUSED, `${hops} hops`)
    routes['/circle'] = redirect(302, '/circle')
    t.equal(await fetched(`${origin}/circle`), REFUSED)
    t.equal(visits, 0)
  },
)

t.test('an image is known by its first bytes, whatever its server calls it', async t => {
  const begins: Record<string, Buffer> = {
    'image/png': png,
    'image/jpeg': Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), Buffer.alloc(20)]),
    'image/gif': Buffer.from('GIF89a and so on, to its end'),
    'image/webp': Buffer.from('RIFF\0\0\0\0WEBPVP8 and so on'),
  }
  for (const [type, bytes] of Object.entries(begins)) {
    routes['/typed'] = (req, res) => {
      t.match(req.headers, { 'accept-encoding': 'identity', accept: /image/ })
      t.strictSame(Object.keys(req.headers).sort(), ['accept', 'accept-encoding', 'connection', 'host'])
      res.writeHead(200, { 'content-type': 'text/html' }).end(bytes)
    }
    t.equal(await fetched(`${origin}/typed`), `data:${type};base64,${bytes.toString('base64')}`)
  }
  routes['/pieces'] = async (_req, res) => {
    for (const byte of png) {
      res.write(Buffer.from([byte]))
      await setImmediate()
    }
    res.end()
  }
  t.equal(await fetched(`${origin}/pieces`), `data:image/png;base64,${png.toString('base64')}`)
})

const bomb = gzipSync(Buffer.alloc(50 * MIB))

/** What a server gives that is no image, or not one that can be had. */
const wrong: [says: string, handler: Handler, outcome: string][] = [
  [
    'interim answers without end',
    (_, res) => {
      for (let count = 0; count < 17; count++) res.writeProcessing()
      res.end(png)
    },
    REFUSED,
  ],
  ['a page', (_req, res) => res.end('<html>'.repeat(10)), '400 not_an_image'],
  [
    'an SVG',
    (_req, res) => res.writeHead(200, { 'content-type': 'image/svg+xml' }).end('<svg onload="x()"/>'),
    '400 not_an_image',
  ],
  ['nothing', (_req, res) => res.end(), '400 not_an_image'],
  ['too little', (_req, res) => res.end(png.subarray(0, 3)), '400 not_an_image'],
  ['a page that never ends', (_req, res) => flood(res, Buffer.alloc(MIB, 'x')), '400 image_too_large'],
  ['404', (_req, res) => res.writeHead(404).end(png), '400 not_an_image'],
  ['206', (_req, res) => res.writeHead(206).end(png), '400 not_an_image'],
  ['a redirect to nowhere', (_req, res) => res.writeHead(302).end(), '400 not_an_image'],
  ['a redirect that cannot be read', (_req, res) => res.writeHead(302, { location: 'http://[' }).end(), REFUSED],
  [
    'a compressed image',
    (_req, res) => res.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(png)),
    '400 not_an_image',
  ],
  ['a gzip bomb', (_req, res) => res.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb), '400 not_an_image'],
  [
    'a gigabyte, announced',
    (_req, res) => res.writeHead(200, { 'content-length': 1024 * MIB }).write(png),
    '400 image_too_large',
  ],
  [
    'a gigabyte, unannounced',
    (_req, res) => flood(res, Buffer.concat([png, Buffer.alloc(MIB)])),
    '400 image_too_large',
  ],
  [
    'half of what it announced',
    (_req, res) => res.writeHead(200, { 'content-length': 1000 }).write(png, () => res.destroy()),
    REFUSED,
  ],
  ['no answer', () => {}, REFUSED],
  ['a head and nothing more', (_req, res) => res.writeHead(200).flushHeaders(), REFUSED],
  ['a drip', (_req, res) => drip(res), REFUSED],
  ['headers without end', req => req.socket.write(`HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(10_000)}`), REFUSED],
  ['another protocol', req => req.socket.end('SSH-2.0-OpenSSH_9.2\r\n'), REFUSED],
  ['a closed connection', req => req.socket.destroy(), REFUSED],
]
/** Those that nothing but time ends. */
const SILENT = ['no answer', 'a head and nothing more', 'a drip']
function flood(res: ServerResponse, piece: Buffer): void {
  const more = () => {
    while (!res.destroyed && res.write(piece));
  }
  res.on('drain', more)
  more()
}
function drip(res: ServerResponse): void {
  res.write(png)
  const timer = setInterval(() => res.write('x'), 10)
  res.once('close', () => clearInterval(timer))
}

t.test('SI-05 what is no image is refused, and what is too much or too slow is cut', async t => {
  for (const [says, handler, outcome] of wrong) {
    routes['/wrong'] = handler
    const before = process.memoryUsage().rss
    const given = { bounds: boundsOf(8 * MIB, SILENT.includes(says) ? 300 : undefined) }
    t.equal(await fetched(`${origin}/wrong`, given), outcome, says)
    const grown = (process.memoryUsage().rss - before) / MIB
    t.ok(grown < 32, `${says}: ${Math.round(grown)} MiB`)
  }
})

t.test('SI-05 any file is audio, but no refusal, nothing and none that is too large', async t => {
  const rows: [says: string, handler: Handler, outcome: string][] = [
    ['audio', (_, res) => res.writeHead(200, { 'content-type': 'audio/mpeg' }).end('ID3'), 'audio/mpeg of 3'],
    ['what says no type', (_, res) => res.end('ID3'), ' of 3'],
    ['a refusal', (_, res) => res.writeHead(404).end('ID3'), REFUSED],
    ['nothing', (_, res) => res.end(), REFUSED],
    ['what is compressed', (_, res) => res.writeHead(200, { 'content-encoding': 'gzip' }).end('x'), REFUSED],
    ['a length that is too large', (_, res) => res.writeHead(200, { 'content-length': 9 }).end('123456789'), TOO_LARGE],
    ['more than there may be', (_, res) => res.write('12345') && res.end('6789'), TOO_LARGE],
    ['what breaks off', (_, res) => void res.write('1', () => res.destroy()), REFUSED],
  ]
  for (const [says, handler, outcome] of rows) {
    routes['/audio'] = handler
    t.equal(await fetchedAs('audio', `${origin}/audio`, { bounds: boundsOf(8) }), outcome, says)
  }
  routes['/audio'] = (_, res) => {
    for (let at = 0; at < 2000; at++) res.write('a')
    res.end()
  }
  t.equal(await fetchedAs('audio', `${origin}/audio`, { bounds: boundsOf(4000) }), ' of 2000', 'byte by byte')
  routes['/audio'] = (_, res) => res.end('ID3')
  const full = () => {
    throw errors.overloaded()
  }
  t.equal(await fetchedAs('audio', `${origin}/audio`, { take: full }), '529 overloaded')
})

t.test('SI-06 a refusal reveals nothing of the internal network', async t => {
  const blocked: [says: string, url: string, resolve: Resolve][] = [
    ['a name that leads inside', 'https://inside.example/', async () => ['10.0.0.1']],
    ['a name that leads nowhere', 'https://nowhere.example/', async () => Promise.reject(new Error('ENOTFOUND'))],
    ['an address inside', 'https://10.0.0.1/', never],
    ['a port', 'https://public.example:22/', publicly],
  ]
  let sockets = 0
  const count = () => void sockets++
  subscribe('net.client.socket', count)
  t.teardown(() => unsubscribe('net.client.socket', count))
  const told = new Set<string>()
  for (const [says, url, resolve] of blocked) {
    const refusal = new ClientFetcher(new Fetcher([], resolve), boundsOf())
      .image({ url, ...plain() })
      .catch((error: GatewayError) => error)
    const error = await Promise.race([refusal, setImmediate('it waits')])
    t.ok(error instanceof GatewayError, `${says} is refused in the same turn`)
    const { status, code, message } = error as GatewayError
    told.add(JSON.stringify({ status, code, message }))
  }
  t.equal(told.size, 1)
})

t.test('a fetch ends with its request, or when there is no room; a crowd waits its turn', async t => {
  let open = 0
  let most = 0
  const held: ServerResponse[] = []
  routes['/held'] = (_req, res) => {
    most = Math.max(most, ++open)
    res.once('close', () => open--)
    held.push(res)
  }
  const stop = new AbortController()
  const left = fetched(`${origin}/held`, { signal: stop.signal })
  while (held.length === 0) await setImmediate()
  stop.abort()
  t.equal(await left, REFUSED)
  while (open > 0) await setImmediate()

  routes['/image'] = (_req, res) => res.end(png)
  const full = () => {
    throw errors.overloaded()
  }
  t.equal(await fetched(`${origin}/image`, { take: full }), '529 overloaded')

  held.length = 0
  const fetcher = new ClientFetcher(new Fetcher([origin]), boundsOf(MIB, 600_000, 8))
  const crowd = Array.from({ length: 20 }, () => fetcher.image({ url: `${origin}/held`, ...plain() }))
  while (held.length < 6) await setImmediate()
  for (let answered = 0; answered < crowd.length; answered++) {
    while (held.length === 0) await setImmediate()
    held.shift()!.end(png)
  }
  t.equal((await Promise.all(crowd)).length, 20)
  t.equal(most, 6, 'alone, a tenant leaves a quarter to others')
})

t.test('one tenant does not keep the pictures of another one waiting, and tenants take turns', async t => {
  const held: [path: string, res: ServerResponse][] = []
  const hold: Handler = (req, res) => held.push([req.url!, res])
  for (const path of ['/a', '/b', '/c']) routes[path] = hold
  const fetcher = new ClientFetcher(new Fetcher([origin]), boundsOf())
  const stop = new AbortController()
  setMaxListeners(0, stop.signal)
  t.teardown(() => stop.abort())
  const get = (tenant: string) => fetcher.image({ ...plain(), url: `${origin}/${tenant}`, tenant, signal: stop.signal })
  const settled = (all: Promise<string>[]) => Promise.allSettled(all)
  const arrived = async (count: number) => {
    while (held.length < count) await setImmediate()
  }
  const many = settled(Array.from({ length: 200 }, () => get('a')))
  await arrived(48)
  const other = settled(Array.from({ length: 20 }, () => get('b')))
  await arrived(64)
  t.equal(held.filter(([path]) => path === '/b').length, 16, 'a quarter is left for a newcomer')
  const third = settled([get('c')])
  const [, first] = held.shift()!
  first.end(png)
  await arrived(64)
  t.equal(held.at(-1)![0], '/b', 'who has waited for longest is next, but for those that have their share')
  held.shift()![1].end(png)
  await arrived(64)
  t.equal(held.at(-1)![0], '/c')
  stop.abort()
  for (const all of [many, other, third]) await all
})

t.test('a request that is given up ends with its socket and its reason, also where that still connects', async t => {
  const reason = new Error('given up')
  const sockets: Socket[] = []
  let come = () => {}
  let gone = () => {}
  const silent = createListener(socket => {
    sockets.push(socket.on('error', () => undefined).once('close', () => gone()))
    socket.resume()
    come()
  })
  await once(silent.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const at = `127.0.0.1:${(silent.address() as { port: number }).port}`
  for (const scheme of ['https', 'http']) {
    for (const body of [undefined, '{}']) {
      const controller = new AbortController()
      const opened = new Promise<void>(resolve => (come = resolve))
      const closed = new Promise<void>(resolve => (gone = resolve))
      // Without a timeout of its own.
      const options = { connect: plainConnector({ timeout: 0 }) }
      const client = new SingleClient(new URL(`${scheme}://${at}/x`), options, controller.signal)
      const method = body === undefined ? 'GET' : 'POST'
      const answer = t.rejects(client.request({ method, headers: {}, ...(body && { body }) }), reason, scheme)
      await opened
      controller.abort(reason)
      await Promise.all([answer, closed])
      await t.rejects(client.request({ headers: {} }), reason, 'and none begins')
      client.destroy()
    }
  }
  routes['/half'] = (_req, res) => res.write('a')
  const controller = new AbortController()
  const client = new SingleClient(new URL(`${origin}/half`), { connect: plainConnector({}) }, controller.signal)
  const { body } = await client.request({ headers: {} })
  controller.abort(reason)
  await t.rejects(body.text(), reason)
})
