/** Where callbacks go: to public addresses over https, as they were checked, and nowhere that an answer names. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { HttpCallbackPoster } from '../../src/upstream/callback-poster.ts'

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

t.test('J12 a redirect is not followed, and a long answer is read as far as it is kept', async t => {
  const paths: string[] = []
  const server = createServer((req, res) => {
    paths.push(req.url!)
    req.resume()
    if (req.url === '/moved') res.writeHead(302, { location: '/inside' }).end()
    else res.end('a'.repeat(1_000_000))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const poster = new HttpCallbackPoster()
  t.match(await poster.post(`${origin}/moved`, [origin], {}, '{}', 30_000), { status: 302 })
  const { status, text } = await poster.post(`${origin}/long`, [origin], {}, '{}', 30_000)
  t.same([status, text.length], [200, 4000])
  t.same(paths, ['/moved', '/long'])
})
