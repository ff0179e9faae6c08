/** Secrets of Vault: both versions of key-value stores, tokens, roles, namespaces, policies and failures. */
import t, { type Test } from 'tap'
import { loadFiles } from '../../src/config/load.ts'
import type { SecretSettings } from '../../src/config/schemas/secrets.ts'
import { Secrets } from '../../src/references/index.ts'
import { maskAll } from '../../src/secrets/known.ts'
import {
  base,
  GATEWAY,
  gatewayYaml,
  KEY,
  PROVIDER,
  providerYaml,
  ref,
  refusal,
  TEAM,
  writeFiles,
} from '../config/kit.ts'
import { startConnectProxy } from '../helpers/connect-proxy.ts'
import { DELETED, startVault } from '../helpers/vault.ts'

type Options = Parameters<typeof startVault>[1]
type VaultSettings = Partial<SecretSettings['vault']>

const account = { type: 'service_account', private_key: 'key' }
const mounts = (): Options['mounts'] => ({
  'secret/': {
    version: 2,
    secrets: {
      acme: { key: 'sk-acme-v2', port: 8080, on: true, empty: '', nothing: null, account },
      'team/a b': { key: 'sk-team' },
      gone: DELETED,
    },
  },
  'kv/': { version: 1, secrets: { acme: { key: 'sk-acme-v1' }, 'data/acme': { key: 'sk-of-data' } } },
  'team/kv/': { version: 2, secrets: { acme: { key: 'sk-deep' } } },
})

/** Reads references at a server of the test's own. */
async function reading(
  t: Test,
  options: Partial<Options> = {},
  settings: VaultSettings = {},
  env: Record<string, string> = {},
) {
  const vault = await startVault(t, { mounts: mounts(), ...options })
  const secrets = new Secrets({
    env: { VAULT_ADDR: vault.url, VAULT_TOKEN: 'hvs.operator', HOME: t.testdirName, ...env },
  })
  secrets.configure({ exec: {}, vault: { auth_path: 'approle', ...settings }, aws: {}, gcp: {} }, '.')
  const read = async (name: string) => {
    const found = await secrets.read(`vault:${name}`)
    return 'value' in found ? found.value : found.issue().replace(/^.*" cannot be read: /, 'failed: ')
  }
  return { vault, secrets, read }
}

t.test('fields of both versions are read by the path of the command line, and by that of the API', async t => {
  const { read, vault } = await reading(t)
  const rows: [name: string, value: string][] = [
    ['secret/acme#key', 'sk-acme-v2'],
    ['secret/data/acme#key', 'sk-acme-v2'],
    ['/secret/acme/#key', 'sk-acme-v2'],
    ['secret/team/a b#key', 'sk-team'],
    ['kv/acme#key', 'sk-acme-v1'],
    ['kv/data/acme#key', 'sk-of-data'],
    ['team/kv/acme#key', 'sk-deep'],
    ['team/kv/data/acme#key', 'sk-deep'],
    ['secret/acme#port', '8080'],
    ['secret/acme#on', 'true'],
    ['secret/acme#account', JSON.stringify(account)],
  ]
  for (const [name, value] of rows) t.equal(await read(name), value, name)
  const reads = vault.requests.filter(line => line === 'GET /v1/secret/data/acme')
  t.equal(reads.length, 3, 'once for each way that the path is written')
})

t.test('without an answer about mounts the content of a path shows the version', async t => {
  const policies: Record<string, Partial<Options>> = {
    'the mounts are secret': { tellsMounts: false },
    'only data may be read': { tellsMounts: false, policy: path => /^(?:secret|team\/kv)\/data\/|^kv\//.test(path) },
  }
  for (const [name, options] of Object.entries(policies)) {
    const { read } = await reading(t, options)
    t.equal(await read('secret/acme#key'), 'sk-acme-v2', name)
    t.equal(await read('secret/data/acme#key'), 'sk-acme-v2', name)
    t.equal(await read('team/kv/data/acme#key'), 'sk-deep', name)
    t.equal(await read('kv/acme#key'), 'sk-acme-v1', name)
  }
  const { read, vault } = await reading(t, { tellsMounts: false }, { kv_version: 2 })
  t.equal(await read('secret/acme#key'), 'sk-acme-v2')
  t.equal(await read('team/kv/data/acme#key'), 'sk-deep')
  t.strictSame(vault.requests, ['GET /v1/secret/data/acme', 'GET /v1/team/kv/data/acme'], 'a version that is said')
  const one = await reading(t, { tellsMounts: false }, { kv_version: 1 })
  t.equal(await one.read('kv/data/acme#key'), 'sk-of-data')
})

t.test('the token is that of the settings, of the environment, or of the file of the command line', async t => {
  const HOME = t.testdir({ '.vault-token': 'hvs.file\n' })
  const rows: [token: string, settings: VaultSettings, env: Record<string, string>][] = [
    ['hvs.settings', { token: 'hvs.settings' }, { HOME }],
    ['hvs.variable', {}, { VAULT_TOKEN: 'hvs.variable', HOME }],
    ['hvs.file', {}, { VAULT_TOKEN: '', HOME }],
  ]
  for (const [token, settings, env] of rows) {
    const { vault, read } = await reading(t, {}, settings, env)
    vault.tokens.clear()
    vault.tokens.add(token)
    t.equal(await read('secret/acme#key'), 'sk-acme-v2', token)
    t.equal(maskAll(`the token ${token}`), 'the token ***')
  }
  t.match(
    await (await reading(t, {}, {}, { VAULT_TOKEN: '', HOME: '/nowhere' })).read('secret/acme#key'),
    /there is no token/,
  )
})

t.test('a role signs in once, and again when its token has ended', async t => {
  const role = { role_id: 'role-of-the-gateway', secret_id: 'secret-of-the-role' }
  const roles = { [role.role_id]: role.secret_id }
  const { vault, read, secrets } = await reading(t, { roles }, role)
  vault.tokens.clear()
  const logins = () => vault.requests.filter(line => line === 'POST /v1/auth/approle/login').length
  const all = await Promise.all(['secret/acme#key', 'kv/acme#key', 'secret/acme#port'].map(read))
  t.strictSame(all, ['sk-acme-v2', 'sk-acme-v1', '8080'])
  secrets.renew()
  t.equal(await read('secret/acme#key'), 'sk-acme-v2')
  t.equal(logins(), 1)
  vault.tokens.clear()
  secrets.renew()
  t.equal(await read('secret/acme#key'), 'sk-acme-v2', 'revoked')
  t.equal(logins(), 2)
  t.equal(maskAll(`${role.secret_id} gave hvs.role-2`), '*** gave ***')

  const short = await reading(t, { roles, lease: 1 }, role)
  await short.read('secret/acme#key')
  t.ok(
    short.vault.requests.filter(line => line.startsWith('POST')).length > 1,
    'a token that lasts no longer is not kept',
  )
  const wrong = await reading(t, { roles }, { ...role, secret_id: 'another-secret' })
  t.equal(
    await wrong.read('secret/acme#key'),
    'failed: the sign-in to Vault answered with status 400: invalid role or secret ID',
  )
  const elsewhere = await reading(t, { roles }, { ...role, auth_path: 'teams/approle' })
  t.match(await elsewhere.read('secret/acme#key'), /sign-in to Vault answered with status 404: no handler for route/)
})

t.test('a namespace goes with every request', async t => {
  const role = { role_id: 'role-of-the-gateway', secret_id: 'secret-of-the-role' }
  const options = { namespace: 'team', roles: { [role.role_id]: role.secret_id } }
  t.equal(await (await reading(t, options, { namespace: 'team' })).read('kv/acme#key'), 'sk-acme-v1')
  t.equal(await (await reading(t, options, role, { VAULT_NAMESPACE: 'team' })).read('kv/acme#key'), 'sk-acme-v1')
  t.match(await (await reading(t, options)).read('kv/acme#key'), /status 403: permission denied/)
})

t.test('a failure says what was wrong and shows no secret', async t => {
  const { read, vault, secrets } = await reading(t, { policy: path => !path.startsWith('kv/') })
  const rows: [name: string, said: string][] = [
    ['secret/acme#kye', 'failed: it has no field "kye"; did you mean "key"?'],
    ['secret/acme#empty', 'failed: its field "empty" is empty'],
    ['secret/acme#nothing', 'failed: its field "nothing" is empty'],
    ['secret/acme', `failed: it names no field; expected "${ref('vault:secret/acme#field')}"`],
    ['secret/acme#', `failed: expected a name such as "${ref('vault:secret/acme#key')}"`],
    ['secret#key', 'failed: expected a path in a mount of Vault, such as "secret/acme", got "secret"'],
    ['secret/../sys#key', 'failed: expected a path in a mount of Vault, such as "secret/acme", got "secret/../sys"'],
    ['secret/nowhere#key', 'failed: Vault has nothing at this path'],
    ['secret/gone#key', 'failed: Vault says that it was deleted'],
    ['kv/acme#key', 'failed: Vault answered with status 403: 1 error occurred: * permission denied'],
  ]
  for (const [name, said] of rows) t.equal(await read(name), said, name)
  vault.sealed = true
  secrets.renew()
  t.equal(await read('secret/acme#key'), 'failed: Vault answered with status 503: Vault is sealed')
  const away = await reading(t, {}, { address: 'http://127.0.0.1:1' })
  t.equal(await away.read('secret/acme#key'), 'failed: Vault at http://127.0.0.1:1 cannot be reached: ECONNREFUSED')
  const none = await reading(t, {}, {}, { VAULT_ADDR: 'vault' })
  t.match(await none.read('secret/acme#key'), /the address of Vault, "vault", is none such as/)
})

t.test('a secret is read through the proxy of gateway.yaml, and a refusal names it', async t => {
  const vault = await startVault(t, { mounts: mounts() })
  const port = Number(new URL(vault.url).port)
  const proxy = await startConnectProxy(t, { route: target => (target === 'vault.test:80' ? port : undefined) })
  const env = { VAULT_ADDR: 'http://vault.test', VAULT_TOKEN: 'hvs.operator', PROXY: `127.0.0.1:${proxy.port}` }
  const path = writeFiles(t.testdir(), {
    ...base,
    [GATEWAY]: `${gatewayYaml}egress: { proxy: "${ref('PROXY')}" }\n`,
    [PROVIDER]: providerYaml.replace(KEY, `"${ref('vault:secret/acme#key')}"`).replace(TEAM, 'team'),
  })
  const load = () => loadFiles(path, { env, secrets: new Secrets({ env }) })
  const { providers } = await load()
  t.match(providers[0]!.value.auth, { secret: 'sk-acme-v2' })
  t.ok(new Set(proxy.taken()).has('vault.test:80'))
  proxy.refuse(403)
  const refused = `Vault at http://vault.test cannot be reached: the proxy ${env.PROXY} refused the connection with status 403`
  t.match(await refusal(load()), refused)
})
