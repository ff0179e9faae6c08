/** Where callbacks go: to public addresses over https, as they were checked, and nowhere that an answer names. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { HttpCallbackPoster } from '../../src/egress/callbacks.ts'

t.test('J12 an address inside is refused in every spelling when a job is created', async t => {
  const poster = new HttpCallbackPoster()
  for (const url of [
    'https://127.0.0.1/',
    'https://127.1/',
    'https://2130706433/',
    'https://0x7f000001/',
    'https://0177.0.0.1/',
    'https://0/',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[0:0:0:0:0:ffff:7f00:1]/',
    'https://localhost/',
    'https://hook.localhost./',
    'https://127.0.0.1.nip.io/',
    'https://10.1.2.3/',
    'https://100.64.0.1/',
    'https://169.254.169.254/',
    'https://[fd00::1]/',
    'https://[fe80::1]/',
    'https://192.0.2.1/',
    'https://printer.local/',
    'https://db.internal/',
    'http://hook.example/',
    'https://user:password@hook.example/',
    'https://hook.example/#x',
    'https://hook.example:22/',
    `https://hook.example/${'x'.repeat(2048)}`,
    'no address',
  ]) {
    t.throws(() => poster.check(url, []), { code: 'url_not_allowed' }, url)
  }
  for (const url of ['https://hook.example/', 'https://hook.example:8443/in?a=b', 'https://1.1.1.1/']) {
    t.doesNotThrow(() => poster.check(url, []), url)
  }
})

t.test('J12 a name that leads inside when its callback is delivered gets nothing', async t => {
  for (const addresses of [['127.0.0.1'], ['1.1.1.1', '10.0.0.1'], ['::1'], []]) {
    const asked: string[] = []
    const poster = new HttpCallbackPoster(async name => {
      asked.push(name)
      return addresses
    })
    await t.rejects(poster.post('https://hook.example/in', [], {}, '{}', 30_000), {
      message: 'it could not be reached',
    })
    t.same(asked, ['hook.example'], 'it is resolved once')
  }
})

/** Its answers to what is posted to it, by path. */
async function receiver(
  t: Pick<Test, 'teardown'>,
  answer: (path: string, res: ServerResponse) => void,
): Promise<{ origin: string; paths: string[] }> {
  const paths: string[] = []
  const server = createServer((req, res) => {
    paths.push(req.url!)
    req.resume()
    answer(req.url!, res)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, paths }
}

t.test('J12 a redirect is not followed, and a long answer is read as far as it is kept', async t => {
  const { origin, paths } = await receiver(t, (path, res) => {
    if (path === '/moved') res.writeHead(302, { location: '/inside' }).end()
    else res.end('a'.repeat(1_000_000))
  })
  const poster = new HttpCallbackPoster()
  t.match(await poster.post(`${origin}/moved`, [origin], {}, '{}', 30_000), { status: 302 })
  const { status, text } = await poster.post(`${origin}/long`, [origin], {}, '{}', 30_000)
  t.same([status, text.length], [200, 4000])
  t.same(paths, ['/moved', '/long'])
})

t.test('SI-07 of an answer of 2 GB, only the beginning is read', async t => {
  let closed: (sent: number) => void = () => undefined
  const sent = new Promise<number>(resolve => {
    closed = resolve
  })
  const { origin } = await receiver(t, (_, res) => {
    const { socket } = res
    res.writeHead(200, { 'content-length': String(2 ** 31) })
    const file = Readable.from(pieces(2 ** 15))
    res.on('close', () => closed(socket!.bytesWritten))
    file.pipe(res)
  })
  const { status, text } = await new HttpCallbackPoster().post(`${origin}/in`, [origin], {}, '{}', 30_000)
  t.same([status, text.length], [200, 4000])
  t.ok((await sent) < 2 ** 25, 'no more than the buffers of both sockets hold')
})

t.test('SI-07 a receiver without an answer in time fails the attempt, wherever the answer stops', async t => {
  const { origin } = await receiver(t, (path, res) => {
    if (path === '/head') res.socket!.write('HTTP/1.1 200 OK\r\nx-one: 1\r\n')
    else if (path === '/body') res.writeHead(200).write('begun')
  })
  const poster = new HttpCallbackPoster()
  for (const path of ['/silent', '/head'])
    await t.rejects(poster.post(origin + path, [origin], {}, '{}', 50), { message: 'it did not answer in time' }, path)
  /** A busy machine may need longer for the head. */
  const begun = (ms: number): ReturnType<typeof poster.post> =>
    poster.post(`${origin}/body`, [origin], {}, '{}', ms).catch(thrown => {
      if (ms > 10_000) throw thrown
      return begun(4 * ms)
    })
  t.same(await begun(50), { status: 200, text: 'begun' }, 'its status counts')
})

/** Pieces of 64 KiB. */
function* pieces(count: number): Generator<Buffer> {
  for (let n = 0; n < count; n++) yield Buffer.alloc(65_536, 'a')
}
