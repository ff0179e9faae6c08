/** Secrets by reference: the examples of docs/secrets.md, rotation, failing sources, and what is shown of them. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { parse } from 'yaml'
import { commandsOf } from '../helpers/commands.ts'
import { type GatewayOptions, startGateway } from '../helpers/gateway.ts'
import { root } from '../helpers/sources.ts'
import { startVault } from '../helpers/vault.ts'

type Tree = Record<string, unknown>

const page = readFileSync(join(root, 'docs/secrets.md'), 'utf8')
/** The values of the first block of the page that begins with this comment and holds this text. */
const printed = (file: string, text: string): Tree => {
  const blocks = [...page.matchAll(/^```yaml\n# (\S+)\n(.*?)^```$/gms)]
  return parse(blocks.find(([, name, block]) => name === file && block!.includes(text))![2]!) as Tree
}

/** Accepts the credentials that `accepted` does, and keeps what it was shown. */
let accepted = (_secret: string): boolean => false
const shown: string[] = []
const provider = createServer((request, response) => {
  const secret = String(request.headers.authorization).replace('Bearer ', '')
  shown.push(secret)
  const isRight = accepted(secret)
  response.writeHead(isRight ? 200 : 401, { 'content-type': 'application/json' })
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const wrong = { error: { message: `Wrong key ${secret}`, type: 'invalid_request_error', code: 'invalid_api_key' } }
  response.end(JSON.stringify(isRight ? { id: 'c', object: 'chat.completion', choices, usage } : wrong))
})
await new Promise<void>(resolve => provider.listen(0, '127.0.0.1', resolve))
t.teardown(() => void provider.close())
const base_url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`

/** A folder of programs, for the variable `PATH`. */
const programs = mkdtempSync(join(tmpdir(), 'programs-'))
t.teardown(() => rmSync(programs, { recursive: true, force: true }))
function program(name: string, script: string): void {
  writeFileSync(join(programs, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(programs, name), 0o700)
}
const PATH = `${programs}:/usr/bin:/bin`

/** A gateway of the examples of the page that hold this text, with other settings of `secrets`. */
async function gatewayOf(text: string, more: Partial<GatewayOptions> = {}, secrets: Tree = {}) {
  const manifest = printed('providers.d/acme.yaml', text)
  return startGateway(t, {
    ...more,
    providers: { acme: { ...manifest, base_url } },
    config: { secrets: { ...(printed('config/gateway.yaml', text).secrets as Tree), ...secrets }, ...more.config },
    env: { PATH, ...more.env },
  })
}
const ask = (gateway: Awaited<ReturnType<typeof gatewayOf>>) =>
  gateway.chat({ model: 'acme-large', messages: [{ role: 'user', content: 'Hi' }] })

t.test('a command gives all workers one secret, though it prints another one each time', async t => {
  // The number of the reading is the end of the secret.
  program('pass', 'echo x >> ran; [ ! -e failing ] || exit 5; echo "$1-$2-$(wc -l < ran)"')
  accepted = secret => secret.startsWith('show-model-gateway/acme-')
  const gateway = await gatewayOf('exec:', { config: { server: { workers: 2 } } })
  const command = commandsOf(gateway)
  const logged = () => `${gateway.stdout()}${gateway.stderr()}`
  // The watch begins with a reload, after which nothing else reads.
  while (!logged().includes('"configuration loaded"')) await sleep(50)
  t.equal((await gateway.admin('POST', '/reload')).status, 200)
  shown.length = 0
  for (let i = 0; i < 4; i++) t.equal((await ask(gateway)).status, 200)
  t.equal(new Set(shown).size, 1, 'the workers share it')

  await gateway.writeFile('config/failing', '')
  const refused = await gateway.admin('POST', '/reload')
  t.equal(refused.status, 400)
  const why = /its command ended with status 5/
  t.match(await refused.text(), why)
  t.match(await command('status'), { lastReload: { ok: false, error: why } })
  for (let i = 0; i < 4; i++) t.equal((await ask(gateway)).status, 200)
  t.equal(new Set(shown).size, 1, 'the last secret stays')

  // The provider accepts later readings alone: as if the secret had been rotated.
  rmSync(join(gateway.dir, 'config/failing'))
  const readings = () => readFileSync(join(gateway.dir, 'config/ran'), 'utf8').split('\n').length - 1
  const before = readings()
  accepted = secret => Number(secret.split('-').at(-1)) > before
  const all = await Promise.all(Array.from({ length: 8 }, () => ask(gateway)))
  t.strictSame(
    all.map(({ status }) => status),
    Array(8).fill(200),
    'a refused request goes on with the secret as it is now',
  )
  t.equal(readings(), before + 1)
  t.match(await command('status'), { lastReload: { ok: true } })
  accepted = () => false
  for (let i = 0; i < 4; i++) t.equal((await ask(gateway)).status, 502)
  t.equal(readings(), before + 1, 'and it is read again once a minute at most')
  t.notMatch(logged(), 'show-model-gateway')
})

t.test('a role of Vault reads a secret that only its own token may read', async t => {
  const role = { id: 'role-of-the-gateway', secret: 'secret-of-the-role' }
  const vault = await startVault(t, {
    mounts: { 'secret/': { version: 2, secrets: { acme: { key: 'sk-acme-of-vault' } } } },
    roles: { [role.id]: role.secret },
  })
  vault.tokens.clear()
  accepted = secret => secret === 'sk-acme-of-vault'
  const { vault: example } = printed('config/gateway.yaml', 'vault:').secrets as { vault: Tree }
  const gateway = await gatewayOf(
    'vault:',
    { env: { VAULT_ROLE_ID: role.id }, files: { 'config/secret-id': `${role.secret}\n` } },
    { vault: { ...example, address: vault.url, role_id: `\${VAULT_ROLE_ID}`, secret_id: `\${file:secret-id}` } },
  )
  t.equal((await ask(gateway)).status, 200)
  const config = await (await gateway.admin('GET', '/config')).text()
  t.match(config, `"secret":"\${vault:secret/acme#key}"`)
  t.match(await commandsOf(gateway)('status'), { references: [`\${vault:secret/acme#key}`] })
  const signedIn = await fetch(`${gateway.adminUrl}/ui/sign-in`, {
    ...{ method: 'POST', redirect: 'manual', body: new URLSearchParams({ token: gateway.token }) },
  })
  const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
  const page = await (await fetch(`${gateway.adminUrl}/ui/config?part=providers:acme`, { headers: { cookie } })).text()
  t.match(page, `secret: \${vault:secret/acme#key}`)
  t.notMatch(`${config}${page}`, /sk-acme-of-vault|secret-of-the-role/)
  accepted = secret => secret === 'sk-acme-rotated'
  vault.mounts['secret/']!.secrets.acme = { key: 'sk-acme-rotated' }
  t.equal((await ask(gateway)).status, 200, 'a rotated secret serves the request that shows it')
  vault.sealed = true
  const refused = await gateway.admin('POST', '/reload')
  t.match(await refused.text(), /Vault answered with status 503: Vault is sealed/)
  t.equal((await ask(gateway)).status, 200)
  t.notMatch(`${gateway.stdout()}${gateway.stderr()}`, /sk-acme-of-vault|sk-acme-rotated|secret-of-the-role|hvs\.role/)
})
