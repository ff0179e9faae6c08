/** One fetch and its policy: which addresses are tried, what is read, and what ends it. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { Fetcher, type FetchPolicy } from '../../src/egress/fetcher.ts'

/** A server that answers as told, and a fetcher that may reach it. */
async function serving(t: Test, answer: (res: ServerResponse) => void) {
  const server = createServer((_req, res) => answer(res))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const fetcher = new Fetcher([origin])
  return (changes: Partial<FetchPolicy> = {}) =>
    fetcher.read(new URL('/x', origin), {
      ...{ accept: '*/*', timeoutMs: 30_000, maxBytes: 10, tooLarge: () => new RangeError('too large') },
      ...changes,
    })
}

t.test('an address is tried when it has https on its own port and is public, or is of an allowed origin', async t => {
  const asked: string[] = []
  const fetcher = new Fetcher(['http://127.0.0.1:1'], async name => {
    asked.push(name)
    return []
  })
  const request = { headers: {}, timeoutMs: 30_000, signal: new AbortController().signal }
  for (const url of [
    'http://site.example/',
    'https://site.example:8443/',
    'https://user@site.example/',
    'http://user@127.0.0.1:1/',
    'ftp://site.example/',
  ]) {
    await t.rejects(fetcher.open(new URL(url), request), { name: 'AddressNotAllowed' }, url)
  }
  for (const url of ['https://10.0.0.1/', 'https://[::1]/'])
    await t.rejects(fetcher.open(new URL(url), request), Error, url)
  t.strictSame(asked, [], 'no name was looked up')
  await t.rejects(fetcher.open(new URL('https://site.example/'), request))
  await t.rejects(fetcher.open(new URL('https://port.example:8443/'), { ...request, anyPort: true }))
  t.strictSame(asked, ['site.example', 'port.example'])
  await t.rejects(fetcher.open(new URL('http://127.0.0.1:1/'), request), { code: 'ECONNREFUSED' })
})

t.test('content is read up to the bound, declared or not, and its memory is taken before', async t => {
  for (const isDeclared of [false, true]) {
    const taken: number[] = []
    let size = 10
    const read = await serving(t, res => {
      if (isDeclared) res.setHeader('content-length', size)
      else res.write('x')
      res.end('x'.repeat(isDeclared ? size : size - 1))
    })
    const take = (bytes: number) => void taken.push(bytes)
    t.equal((await read({ take })).content.toString(), 'xxxxxxxxxx')
    t.equal(
      taken.reduce((sum, bytes) => sum + bytes, 0),
      10,
    )
    size = 11
    await t.rejects(read(), RangeError)
    await t.rejects(
      read({
        maxBytes: 100,
        take() {
          throw new TypeError('no memory')
        },
      }),
      TypeError,
    )
  }
})

t.test('what the check refuses is not read, nor what stands beside a redirect', async t => {
  let status = 404
  const read = await serving(t, res => {
    res.writeHead(status, status === 302 ? { location: '/y' } : {})
    // It does not end.
    res.write('x'.repeat(100))
  })
  const check: FetchPolicy['check'] = head => {
    if (head.status === 404) throw new TypeError('not found')
  }
  await t.rejects(read({ check }), TypeError)
  status = 302
  const { content, header } = await read({ check })
  t.strictSame([content.length, header('location')], [0, '/y'])
})

t.test('time and signal end a fetch whose server is silent', async t => {
  const read = await serving(t, () => undefined)
  await t.rejects(read({ timeoutMs: 1 }), { name: 'TimeoutError' })
  const controller = new AbortController()
  const reading = read({ signal: controller.signal })
  const reason = new Error('the client has left')
  controller.abort(reason)
  await t.rejects(reading, reason)
})
