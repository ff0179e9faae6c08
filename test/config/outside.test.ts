/** References to commands in configuration files: which are read, when, and what failures say. */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { effectiveConfig, referencesIn } from '../../src/config/effective.ts'
import { Loader } from '../../src/config/load.ts'
import { ConfigManager } from '../../src/config/manager.ts'
import type { Target } from '../../src/core/translator.ts'
import { Secrets } from '../../src/references/index.ts'
import { credentialRenewal } from '../../src/references/renewal.ts'
import { maskAll } from '../../src/secrets/known.ts'
import { startConnectProxy } from '../helpers/connect-proxy.ts'
import { startVault } from '../helpers/vault.ts'
import {
  acme,
  base,
  env,
  type Files,
  fakeRegistries,
  GATEWAY,
  gatewayYaml,
  PROVIDER,
  providerYaml,
  ref,
  refusal,
  writeFiles,
} from './kit.ts'

const root = t.testdir({})
const PATH = process.env.PATH!
/** A command that prints a file, and notes that it ran. */
const counting = (file: string) => `[sh, -c, "echo ran >> runs; cat ${file}"]`
const withCommands = (commands: string) => `${gatewayYaml}secrets: { exec: { ${commands} } }\n`
const withSecret = (text: string) => providerYaml.replace(/secret: "[^"]*"/, () => `secret: "${text}"`)

function managed(files: Files, isRead = true) {
  const folder = mkdtempSync(join(root, 'outside-'))
  const given = { ...env, PATH, TOKEN_FILE: 'token' }
  const path = writeFiles(folder, { ...base, ...files })
  const secrets = new Secrets({ env: given, isRead })
  const manager = new ConfigManager({ path, env: given, secrets, registries: fakeRegistries() })
  const write = (file: string, text: string) => writeFiles(folder, { [file]: text })
  return { folder, manager, secrets, loader: new Loader(path, { env: given, secrets }), write }
}
const secretsOf = (manager: ConfigManager) => acme(manager.current).credentials.map(({ secret }) => secret)

t.test('a command gives a secret, at the start and again at each reload', async t => {
  const { manager, write, folder } = managed({
    [GATEWAY]: withCommands(`ACME: ${counting(ref('TOKEN_FILE'))}`),
    [PROVIDER]: withSecret(ref('exec:ACME')),
    'config/token': 'sk-acme-first\n',
    'config/runs': '',
  })
  await manager.start()
  t.strictSame(secretsOf(manager), ['sk-acme-first'])
  t.equal(maskAll('it is sk-acme-first'), 'it is ***', 'and the log does not show it')
  const { version } = manager.current
  t.match(await manager.reload(), { changed: false })
  write('config/token', 'sk-acme-second\n')
  t.match(await manager.reload(), { changed: true })
  t.strictSame(secretsOf(manager), ['sk-acme-second'])
  t.not(manager.current.version, version)
  t.equal(await runs(folder), 3)
})

const runs = async (folder: string) => {
  const { readFile } = await import('node:fs/promises')
  return (await readFile(join(folder, 'config/runs'), 'utf8')).split('\n').length - 1
}

t.test('a command runs once for all files, and not for a comment', async t => {
  const { manager, folder } = managed({
    [GATEWAY]: `${withCommands(`ACME: ${counting('token')}, OTHER: ${counting('token')}`)}# ${ref('exec:OTHER')}\n`,
    [PROVIDER]: `${withSecret(ref('exec:ACME'))}# ${ref('exec:OTHER')} ${ref('exec:NONE')}\n`,
    'providers.d/second.yaml': withSecret(`${ref('exec:ACME')}, sk-second`).replace('acme', 'second'),
    'config/token': 'sk-acme-first\n',
  })
  await manager.start()
  t.strictSame(secretsOf(manager), ['sk-acme-first'])
  t.equal(await runs(folder), 1)
})

t.test('a failing command refuses the start with its place, and keeps the last configuration at a reload', async t => {
  const files = {
    [GATEWAY]: withCommands('ACME: [sh, -c, "echo sk-printed; exit $(cat status)"]'),
    [PROVIDER]: withSecret(`prefix-${ref('exec:ACME')}`),
    'config/status': '7',
  }
  const said = `${PROVIDER}:4:33: the reference "${ref('exec:ACME')}" cannot be read: its command ended with status 7`
  t.equal(await refusal(managed(files).manager.start()), said)
  const { manager, write } = managed({ ...files, 'config/status': '0' })
  await manager.start()
  const { version } = manager.current
  write('config/status', '7')
  t.equal(await refusal(manager.reload()), said)
  t.equal(manager.current.version, version)
  t.strictSame(secretsOf(manager), ['prefix-sk-printed'])
  write('config/status', '0')
  t.match(await manager.reload(), { changed: false })
})

t.test('a wrong reference is refused with what would be right', async t => {
  const commands = withCommands('ACME: [echo, sk-1]')
  const rows: [files: Files, said: string][] = [
    [
      { [GATEWAY]: commands, [PROVIDER]: withSecret(ref('exec:ACMEE')) },
      `${PROVIDER}:4:33: the reference "${ref('exec:ACMEE')}" cannot be read: "secrets.exec" has no command "ACMEE"; did you mean "ACME"?`,
    ],
    [
      { [PROVIDER]: withSecret(ref('exec:ACME')) },
      `${PROVIDER}:4:33: the reference "${ref('exec:ACME')}" cannot be read: "secrets.exec" has no command "ACME"; none is known`,
    ],
    [
      { [GATEWAY]: withCommands('ACME: echo') },
      `${GATEWAY}:18:26: expected a command and its arguments, such as ["pass", "show", "acme"], got "echo"`,
    ],
    [
      { [GATEWAY]: withCommands('ACME: []') },
      `${GATEWAY}:18:26: expected a command and its arguments, such as ["pass", "show", "acme"], got an empty list`,
    ],
    [
      { [GATEWAY]: `${gatewayYaml}secrets: { exe: {} }\n` },
      `${GATEWAY}:18:12: unknown key "exe"; did you mean "exec"?`,
    ],
    [{ [GATEWAY]: `${gatewayYaml}secrets: text\n` }, `${GATEWAY}:18:10: expected a mapping, got another value`],
    [
      { [GATEWAY]: withCommands(`ACME: [echo, "${ref('exec:ACME')}"]`) },
      `${GATEWAY}:18:33: expected "${ref('NAME')}" or "${ref('file:path')}", got "${ref('exec:ACME')}"`,
    ],
    [
      { [GATEWAY]: withCommands(`ACME: [echo, "${ref('NOWHERE')}"]`) },
      `${GATEWAY}:18:33: the environment variable "NOWHERE" is not set`,
    ],
  ]
  for (const [files, said] of rows)
    for (const isRead of [true, false]) t.equal(await refusal(managed(files, isRead).manager.start()), said)
})

t.test('a variable of that name with a default is a variable', async t => {
  const { manager } = managed({ [PROVIDER]: withSecret(ref('exec:-sk-acme-default')) })
  await manager.start()
  t.strictSame(secretsOf(manager), ['sk-acme-default'])
})

t.test('without reading, no command runs, and each reference is listed with its place', async t => {
  const { loader, folder } = managed(
    {
      [GATEWAY]: withCommands(`ACME: ${counting('token')}`),
      [PROVIDER]: withSecret(ref('exec:ACME'))
        .replace('https://api.acme.example/v1/', () => `"${ref('exec:ACME')}"`)
        .replace(`"${ref('TEAM')}"`, () => `"Team ${ref('exec:ACME')}"`),
      'config/runs': '',
    },
    false,
  )
  const { providers } = await loader.load()
  t.strictSame(
    providers[0]?.outside.map(({ name, path, isUnread }) => [name, path, isUnread]),
    [
      ['exec:ACME', ['base_url'], true],
      ['exec:ACME', ['auth', 'secret'], true],
      ['exec:ACME', ['headers', 'X-Team'], true],
    ],
  )
  t.equal(await runs(folder), 0)
})

t.test(
  'a provider that refuses a secret has it read again once a minute at most, with its place in the manifest',
  async t => {
    const { manager, write, folder } = managed({
      [GATEWAY]: withCommands(`ACME: ${counting('token')}, OTHER: ${counting('other')}`),
      [PROVIDER]: withSecret(`sk-acme-fixed, ${ref('exec:ACME')}`),
      'providers.d/second.yaml': withSecret(ref('exec:OTHER')).replace('acme', 'second'),
      'providers.d/third.yaml': withSecret('sk-third').replace('acme', 'third'),
      'providers.d/fourth.yaml': withSecret(ref('file:../config/file')).replace('acme', 'fourth'),
      'config/file': 'sk-fourth-first\n',
      'config/token': 'sk-acme-first\n',
      'config/other': 'sk-other\n',
    })
    await manager.start()
    const logged: string[] = []
    const note = (_fields: object, message: string) => void logged.push(message)
    const renewed = credentialRenewal({
      manager: () => manager,
      renew: provider => manager.renew(provider),
      log: { debug: note, info: note, warn: note, error: note },
    })
    const targetOf = (id: string, at: number) => {
      const provider = manager.current.catalog.providers.get(id)!
      return { provider, credential: provider.credentials[at] } as Target
    }
    const refused = targetOf('acme', 1)
    const fixed = targetOf('acme', 0)
    t.equal(await renewed(targetOf('third', 0)), undefined, 'what stands in the file is not read')
    t.equal(await runs(folder), 2)
    t.equal(await renewed(targetOf('second', 0)), undefined, 'the same secret')
    t.equal(await runs(folder), 3)

    write('config/token', 'sk-acme-second\n')
    write('config/other', 'sk-other-second\n')
    const both = await Promise.all([renewed(refused), renewed(refused), renewed(fixed)])
    t.strictSame(
      both.map(credential => credential?.secret),
      ['sk-acme-second', 'sk-acme-second', undefined],
    )
    t.equal(await runs(folder), 4)
    t.strictSame(secretsOf(manager), ['sk-acme-fixed', 'sk-acme-second'])
    t.equal((await renewed(refused))?.secret, 'sk-acme-second', 'a later refusal of the old one')
    write('config/token', 'sk-acme-third\n')
    t.equal(await renewed(targetOf('acme', 1)), undefined, 'too soon')
    t.equal(await renewed(targetOf('second', 0)), undefined)
    t.equal(await runs(folder), 4)

    const ofFile = targetOf('fourth', 0)
    write('config/file', 'sk-fourth-second\n')
    t.equal((await renewed(ofFile))?.secret, 'sk-fourth-second', 'a file whose watch has not reported it yet')
    t.equal(await runs(folder), 4)

    await manager.reload()
    t.strictSame(secretsOf(manager), ['sk-acme-fixed', 'sk-acme-third'], 'a reload reads all')
    t.strictSame(logged, [])
  },
)

t.test('a secret that cannot be read again leaves the configuration as it is', async t => {
  const { manager, write } = managed({
    [GATEWAY]: withCommands('ACME: [sh, -c, "echo sk-printed; exit $(cat status)"]'),
    [PROVIDER]: withSecret(ref('exec:ACME')),
    'config/status': '0',
  })
  await manager.start()
  write('config/status', '7')
  const { version } = manager.current
  t.match(await refusal(manager.renew('acme')), /its command ended with status 7$/)
  t.equal(manager.current.version, version)
  t.equal(await manager.renew('acme'), undefined, 'nor is it tried again at once')
  write('config/status', '0')
  t.match(await manager.reload(), { changed: false })
})

t.test('what is shown of the configuration is references, and never values', async t => {
  const { manager } = managed({
    [GATEWAY]: withCommands('ACME: [echo, sk-acme-printed-1234], HOST: [echo, api.acme.example]').replace(
      'sqlite: ../data/gateway.db',
      () => `sqlite: ../data/gateway.db, postgres: "postgres://gateway:${ref('exec:ACME')}@db.internal/gateway"`,
    ),
    [PROVIDER]: withSecret(`sk-written-in-the-file, ${ref('exec:ACME')}`)
      .replace('https://api.acme.example/v1/', () => `"https://${ref('exec:HOST')}/v1"`)
      .replace(
        `{ X-Team: "${ref('TEAM')}" }`,
        () => `{ Authorization: "Bearer ${ref('exec:ACME')}", X-Team: "${ref('TEAM')}" }`,
      ),
  })
  await manager.start()
  t.strictSame(secretsOf(manager), ['sk-written-in-the-file', 'sk-acme-printed-1234'])
  const { providers, gateway } = effectiveConfig(manager.current.files)
  t.match(providers, [
    {
      base_url: `***:***${ref('exec:HOST')}***`,
      auth: { secret: `***, ${ref('exec:ACME')}` },
      headers: { Authorization: `*** ${ref('exec:ACME')}`, 'X-Team': '***' },
    },
  ])
  t.match(gateway, { stores: { postgres: `***:***:${ref('exec:ACME')}***` } })
  t.notMatch(JSON.stringify([providers, gateway]), /sk-acme|sk-written|api\.acme|team-secret/)
  t.strictSame(referencesIn(manager.current.files), [ref('exec:ACME'), ref('exec:HOST')])
})

t.test('requests to a manager leave as the file says, unless that itself refers to one', async t => {
  const vault = await startVault(t, {
    mounts: { 'secret/': { version: 2, secrets: { acme: { key: 'sk-acme-of-vault' } } } },
  })
  const { port } = new URL(vault.url)
  const proxy = await startConnectProxy(t, { route: () => Number(port), login: 'gateway:password' })
  const egress = (password: string) =>
    `egress: { proxy: "http://gateway:${password}@127.0.0.1:${proxy.port}", no_proxy: [] }\n`
  const files = (password: string) => ({
    [GATEWAY]:
      `${gatewayYaml}${egress(password)}secrets:\n  vault: { address: "http://vault.test:8200", token: "${ref('exec:TOKEN')}" }\n` +
      '  exec: { TOKEN: [echo, hvs.operator], PASSWORD: [echo, password] }\n',
    [PROVIDER]: withSecret(ref('vault:secret/acme#key')),
  })
  const { manager } = managed(files('password'))
  await manager.start()
  t.strictSame(secretsOf(manager), ['sk-acme-of-vault'])
  t.strictSame([...new Set(proxy.taken())], ['vault.test:8200'])
  t.match(
    await refusal(managed(files('wrong')).manager.start()),
    /4:33: .*Vault at http:\/\/vault.test:8200 cannot be reached/,
  )
  proxy.taken()
  t.match(await refusal(managed(files(ref('exec:PASSWORD'))).manager.start()), /Vault at .* cannot be reached/)
  t.strictSame(proxy.taken(), [])
})
