/** By which names a server is reached, and whose pages may call it. */
import t from 'tap'
import { baseOf, isOwnOrigin, type Site } from '../../src/core/site.ts'

const site = (publicUrl?: string, hosts: string[] = [], origins: string[] = []): Site => ({
  publicUrl: publicUrl === undefined ? undefined : new URL(publicUrl),
  hosts: new Set(hosts),
  origins: new Set(origins),
})

t.test(
  'a host is ours when it is the public one, one of the list, or the loopback of a server without a name',
  async t => {
    const rows: [says: string, site: Site, host: string | undefined, base: string | undefined][] = [
      ['the loopback', site(), '127.0.0.1:8080', 'http://127.0.0.1:8080'],
      ['its name', site(), 'LOCALHOST:8080', 'http://localhost:8080'],
      ['its IPv6 address', site(), '[::1]:8080', 'http://[::1]:8080'],
      ['another port', site(), 'localhost:8081', undefined],
      ['no port', site(), 'localhost', undefined],
      ['a foreign name', site(), 'evil.example', undefined],
      ['none', site(), undefined, undefined],
      ['the public name', site('https://gw.example.com/'), 'GW.example.com', 'https://gw.example.com'],
      ['with its own port', site('https://gw.example.com:8443'), 'gw.example.com:8443', 'https://gw.example.com:8443'],
      ['the loopback of a public server', site('https://gw.example.com'), 'localhost:8080', undefined],
      ['a loopback name that is public', site('http://localhost:9000'), 'localhost:9000', 'http://localhost:9000'],
      ['another one beside it', site('http://localhost:9000'), '127.0.0.1:8080', 'http://127.0.0.1:8080'],
      ['a further name', site('https://gw.example.com', ['in.example']), 'in.example', 'https://in.example'],
    ]
    for (const [says, given, host, base] of rows) t.equal(baseOf(given, host, 8080), base, says)
    t.equal(baseOf(site(), 'localhost', 80), 'http://localhost', 'clients leave the usual port out')
  },
)

t.test('an origin is ours when it is a base of ours, or stands in the list', async t => {
  const given = site('https://gw.example.com', ['in.example'], ['https://app.example'])
  const rows: [origin: string, isOwn: boolean][] = [
    ['https://gw.example.com', true],
    ['https://in.example', true],
    ['https://app.example', true],
    ['HTTPS://app.example', true],
    ['http://gw.example.com', false],
    ['https://gw.example.com.evil.example', false],
    ['null', false],
    ['file://', false],
    ['', false],
  ]
  for (const [origin, isOwn] of rows) t.equal(isOwnOrigin(given, origin, 8080), isOwn, origin)
  t.equal(isOwnOrigin(site(), 'http://127.0.0.1:8080', 8080), true)
  t.equal(isOwnOrigin(site(), 'https://127.0.0.1:8080', 8080), false)
})
