/** `gatewayctl members login-link` and `oauth`, on stores as a gateway has them. */
import t from 'tap'
import { adminListener } from '../../src/admin/server.ts'
import { run } from '../../src/cli/program.ts'
import type { Log } from '../../src/core/ports.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { fakeContext, TOKEN } from '../admin/fake.ts'

type Tree = Record<string, string>

const log: Log = { debug() {}, info() {}, warn() {}, error() {} }
const stores = openSqlite(':memory:')
const { id: key, key: secret } = (await stores.accounts.bootstrap())!
const context = Object.assign(fakeContext(), stores)
const listener = await adminListener({ context, token: TOKEN, listen: '127.0.0.1:0', log })
t.teardown(async () => {
  await listener.close()
  await stores.close()
})

const ctl = async (...args: string[]) => {
  const said = { out: '', err: '' }
  const code = await run(args, {
    cwd: t.testdir({}),
    env: { GATEWAY_ADMIN: `http://${listener.address}`, GATEWAY_ADMIN_TOKEN: TOKEN, USER: 'ada' },
    out: text => {
      said.out += text
    },
    err: text => {
      said.err += text
    },
  })
  return { code, ...said }
}
const json = async <T = Tree>(...args: string[]): Promise<T> => {
  const { code, out, err } = await ctl(...args, '--json')
  t.same([code, err], [0, ''], args.join(' '))
  return JSON.parse(out) as T
}

t.test('a login code is shown once, and its address never holds it', async t => {
  const made = await json('members', 'login-link', 'owner@localhost', '--org', 'default', '--expires', '1h')
  t.same(Object.keys(made).sort(), ['code', 'expiresAt', 'member', 'organization', 'project', 'url'])
  t.match(made, { code: /^mgw_li_[\w-]{27}$/, member: 'owner@localhost', project: 'default' })
  t.equal(made.url, 'https://gateway.example.com/mcp')
  const { out } = await ctl('members', 'login-link', 'owner@localhost', '--org', 'default', '--project', 'default')
  t.match(out, /^code +mgw_li_/m)
  const wrong = await ctl('members', 'login-link', 'nobody', '--org', 'default')
  t.match([wrong.code, wrong.err], [1, /There is no member "nobody"/])
  t.equal((await ctl('members', 'login-link', 'owner@localhost', '--org', 'default', '--expires', '9d')).code, 1)
})

t.test('clients are made, listed and removed by their id, which is no secret', async t => {
  t.match((await ctl('oauth', 'clients', 'list')).out, /no clients/)
  const made = await json('oauth', 'clients', 'create', '--name', 'Robot', '--key', key, '--scope', 'usage:read')
  t.match(made, { clientId: /^mgw_cl_/, clientSecret: /^mgw_cs_/, name: 'Robot', key, scope: 'usage:read' })
  t.match((await ctl('oauth', 'clients', 'create', '--name', 'x', '--key', key)).out, /client secret +mgw_cs_/)
  const [first] = await json<Tree[]>('oauth', 'clients', 'list')
  t.match(first, { clientId: made.clientId, name: 'Robot', redirectUris: [], key, usedAt: null })
  t.match((await ctl('oauth', 'clients', 'list')).out, /Robot/)
  t.match((await ctl('oauth', 'clients', 'remove', made.clientId!)).out, /^removed mgw_cl_\S+ \(Robot\)\n$/)
  t.match(await ctl('oauth', 'clients', 'remove', made.clientId!), { code: 1, err: /no OAuth client with the id/ })
  t.match(await ctl('oauth', 'clients', 'remove', made.clientSecret!), { code: 2, err: /is an API key/ })
  const bad = ['oauth', 'clients', 'create', '--name', 'x', '--key', key, '--scope', 'admin']
  t.match(await ctl(...bad), { code: 1, err: /scope/ })
  t.equal((await ctl('oauth', 'clients', 'remove', secret)).code, 2, 'a key in the place of an id')
})

t.test('grants are listed and revoked', async t => {
  t.match((await ctl('oauth', 'grants', 'list')).out, /no grants in force/)
  const expiresAt = Date.now() + 60_000
  await stores.oauth.grants.begin({
    client: { id: 'https://app.example/c', name: 'App\u202e', isRegistered: false },
    proof: { keyId: key },
    scopes: ['usage:read'],
    resource: 'r',
    code: { hash: 'x', redirectUri: 'r', challenge: 'c', expiresAt },
  })
  const [grant] = await json<Tree[]>('oauth', 'grants', 'list', '--key', key, '--org', 'default')
  t.match(grant, { client: 'https://app.example/c', key, member: null, scope: 'usage:read', lastUsedAt: null })
  const { out } = await ctl('oauth', 'grants', 'list')
  t.match(out, /App +/)
  t.notMatch(out, /\u202e/, 'no name turns the line of a terminal round')
  t.match((await ctl('oauth', 'grants', 'revoke', grant!.id!)).out, /^revoked \S+ \(App\)\n$/)
  t.match(await ctl('oauth', 'grants', 'revoke', grant!.id!), { code: 1, err: /no grant in force/ })
  t.match(await stores.audit.list({ limit: 1 }), [{ action: 'oauth.revoke', actor: 'ada' }])
})
