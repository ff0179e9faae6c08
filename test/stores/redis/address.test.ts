/** Addresses of Redis, in every form. */
import t from 'tap'
import { readRedisAddress } from '../../../src/stores/redis/address.ts'

t.test('every form of an address is read', async t => {
  const server = (host: string, port: number) => ({ host, port })
  const rows: [address: string, read: object][] = [
    ['redis://cache', { kind: 'server', servers: [server('cache', 6379)], database: 0, tls: false }],
    [
      'redis://u:p%40ss@10.0.0.1:7000/3',
      { username: 'u', password: 'p@ss', servers: [server('10.0.0.1', 7000)], database: 3 },
    ],
    ['redis://:secret@[::1]:6380', { username: undefined, password: 'secret', servers: [server('::1', 6380)] }],
    ['redis://secret@cache', { username: undefined, password: 'secret' }],
    ['rediss://cache:6380', { kind: 'server', tls: true, servers: [server('cache', 6380)] }],
    ['unix:///run/redis.sock', { kind: 'socket', path: '/run/redis.sock' }],
    [
      'redis+sentinel://:p@s1,s2:26380/main/2',
      {
        kind: 'sentinel',
        servers: [server('s1', 26_379), server('s2', 26_380)],
        master: 'main',
        database: 2,
        password: 'p',
      },
    ],
    [
      'rediss+cluster://c1:7001,c2:7002',
      { kind: 'cluster', tls: true, servers: [server('c1', 7001), server('c2', 7002)] },
    ],
  ]
  for (const [address, read] of rows) t.match(readRedisAddress(address), read, address)
})

t.test('a wrong address is refused with what is wrong, without its password', async t => {
  const rows: [address: string, says: RegExp][] = [
    ['http://x:hidden@cache', /has another form\. Write "redis:/],
    ['cache:6379', /has another form/],
    ['redis://:hidden@a,b', /names several hosts/],
    ['redis://:hidden@cache:99999', /no valid host and port/],
    ['redis://:hidden@/0', /no valid host and port/],
    ['redis://:hidden@cache/main', /no valid database number/],
    ['redis+sentinel://:hidden@s1', /names no master/],
    ['redis+cluster://:hidden@c1/2', /clusters do not have/],
    ['unix://', /another form|no socket file/],
    ['redis://%zz:hidden@cache', /not percent-encoded/],
  ]
  for (const [address, says] of rows) {
    try {
      readRedisAddress(address)
      t.fail(address)
    } catch (thrown) {
      t.match(String(thrown), says, address)
      t.notMatch(String(thrown), /hidden/)
    }
  }
})
