/** How a gateway is started with nothing but the package, as npx does it, and what the environment says of it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { Child } from '../helpers/child.ts'

/** An empty folder in which npm has installed the package. Of the ports, that of the admin listener has no variable. */
async function installed(t: Test, { workers = 1, below = '', without = [] as string[] } = {}) {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const base = await mkdtemp(join(tmpdir(), 'installed-'))
  t.teardown(() => rm(base, { recursive: true, force: true }))
  const dir = join(base, below)
  const own = join(dir, 'node_modules/model-gateway')
  await mkdir(own, { recursive: true })
  const { files } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { files: string[] }
  const packed = [...files, 'package.json'].filter(name => existsSync(join(root, name)))
  for (const name of packed) await cp(join(root, name), join(own, name), { recursive: true })
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (!name.startsWith('.') && !without.includes(name))
      await symlink(join(root, 'node_modules', name), join(dir, 'node_modules', name))
  }
  const config = join(own, 'config/gateway.yaml')
  const shipped = await readFile(config, 'utf8')
  await writeFile(
    config,
    shipped.replace('127.0.0.1:9901', '127.0.0.1:0').replace('drain:', `workers: ${workers}\n  drain:`),
  )

  const run = (name: string, args: string[] = [], env: Record<string, string> = {}) => {
    const child = new Child(join(own, 'bin', name), args, { env, cwd: dir, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] })
    t.teardown(() => child.kill('SIGKILL'))
    return child
  }
  const start = async (env: Record<string, string> = {}) => {
    const child = run('gateway.js', [], { HOME: dir, PORT: '0', GATEWAY_READY_FD: '3', ...env })
    const ready = JSON.parse(await child.firstLine(3, READY_MS)) as {
      listen: string
      admin: string
      key: string | null
    }
    return { child, ...ready }
  }
  const ended = async (name: string, args: string[], env?: Record<string, string>) => {
    const child = run(name, args, env)
    return { code: await child.exited, stdout: child.stdout, stderr: child.stderr }
  }
  return { dir, own, start, ended }
}
const READY_MS = 20_000

for (const workers of [1, 2]) {
  t.test(`workers: ${workers}: an empty folder suffices to start, and to operate what runs there`, async t => {
    const { dir, own, start, ended } = await installed(t, { workers })
    const { child, listen, admin, key } = await start()
    t.match(
      child.stdout,
      `config       packaged (\`npx model-gateway init\` copies it here)\n  data         ${dir}/data\n`,
    )
    const [, url, auth, body] = /curl (\S+) -H "Authorization: (Bearer \S+)" .* -d '(.+)'/.exec(child.stdout)!
    const headers = { authorization: auth!, 'content-type': 'application/json' }
    const answer = await fetch(url!, { method: 'POST', headers, body: body! })
    t.equal(answer.status, 200, 'the printed request works as printed')
    t.match([url, auth], [`http://${listen}/v1/chat/completions`, `Bearer ${key}`])
    t.strictSame(readdirSync(join(dir, 'data')).sort().slice(0, 2), ['admin.token', 'gateway.db'])
    t.notOk(existsSync(join(own, 'data')), 'the package stays as it was installed')
    const place = ['--admin', `http://${admin}`]
    t.match(await ended('gatewayctl.js', ['chat', 'hi', ...place]), { code: 0, stdout: /\S/ })
    t.match(await ended('gatewayctl.js', ['reload', ...place]), { code: 0, stdout: /^unchanged/ })
    t.match(await ended('gatewayctl.js', ['check']), {
      code: 0,
      stdout: /model-gateway\/config\/gateway\.yaml is valid/,
    })
    t.equal(await child.kill('SIGTERM'), 0)
  })
}

t.test('init copies two files, once, and the next start uses them over the packaged catalogue', async t => {
  const { dir, own, start, ended } = await installed(t)
  const first = await start()
  await first.child.kill('SIGTERM')
  await mkdir(join(dir, 'config'))
  await writeFile(join(dir, 'config/of-another.txt'), '')
  t.match(await ended('gateway.js', ['init']), { code: 0, stdout: /^Copied .*npx model-gateway /s })
  t.strictSame(
    [readdirSync(join(dir, 'config')), readdirSync(join(dir, 'providers.d'))],
    [['gateway.yaml', 'of-another.txt'], ['acme.yaml']],
  )
  const config = join(dir, 'config/gateway.yaml')
  const shipped = await readFile(join(own, 'config/gateway.yaml'), 'utf8')
  const copied = await readFile(config, 'utf8')
  const [, schema] = /\$schema=(\S+)/.exec(copied)!
  t.ok(existsSync(join(dir, 'config', schema!)), 'editors find the schema')
  t.equal(copied.replace(schema!, './schema/gateway.json'), shipped)
  await writeFile(config, copied.replace('30s', '31s'))
  t.match(await ended('gateway.js', ['init']), {
    code: 1,
    stdout: '',
    stderr: /config\/gateway\.yaml and providers\.d\/acme\.yaml already exist in .* nothing was copied/,
  })
  await rm(join(dir, 'providers.d'), { recursive: true })
  t.match(await ended('gateway.js', ['init']), { code: 1, stderr: /config\/gateway\.yaml already exists in / })
  t.notOk(existsSync(join(dir, 'providers.d')), 'nothing else is written either')
  const listed = await ended('gatewayctl.js', ['models', 'check', '--json'])
  t.ok((JSON.parse(listed.stdout) as { models: number }).models > 50, 'the packaged models are there')
  t.match(await ended('gatewayctl.js', ['check']), { code: 0, stdout: /config\/gateway\.yaml is valid/ })

  const { child, key, admin } = await start()
  t.match(child.stdout, /config {7}config\/gateway\.yaml\n/)
  t.equal(key, null, 'the data is the same')
  const shown = await ended('gatewayctl.js', ['config', '--json', '--admin', `http://${admin}`])
  t.match(JSON.parse(shown.stdout), { gateway: { server: { drain: 31_000 } } })
  await mkdir(join(dir, 'providers.d'))
  await writeFile(join(dir, 'providers.d/mine.yaml'), 'provider: ollama\nextends: packaged\nname: Mine\n')
  t.match(await ended('gatewayctl.js', ['reload', '--admin', `http://${admin}`]), { code: 0 })
  const providers = await ended('gatewayctl.js', ['providers', 'list', '--admin', `http://${admin}`])
  t.match(providers.stdout, /\bMine\b/, 'a file of a folder that did not exist at the start is live')
})

t.test('HOST, PORT and GATEWAY_DATA go before the file', async t => {
  // Where npx keeps what it was told to run.
  const { dir, start, ended } = await installed(t, { below: '_npx/0a1b2c' })
  const { child, listen, admin } = await start({ HOST: '127.0.0.2', GATEWAY_DATA: './elsewhere' })
  t.match(listen, /^127\.0\.0\.2:[1-9]\d*$/)
  t.match(child.stdout, 'npx -p model-gateway gatewayctl providers list\n', 'a command that npx finds')
  t.ok(existsSync(join(dir, 'elsewhere/gateway.db')))
  t.notOk(existsSync(join(dir, 'data')))
  const place = ['--admin', `http://${admin}`]
  t.match(await ended('gatewayctl.js', ['chat', 'hi', ...place], { GATEWAY_DATA: 'elsewhere' }), { code: 0 })
  t.match(readFileSync(join(dir, 'elsewhere/token.address'), 'utf8'), `http://${admin}\n`)
  t.match(await ended('gatewayctl.js', ['status'], { GATEWAY_DATA: 'elsewhere' }), { code: 0 })
  t.match(await ended('gatewayctl.js', ['status', ...place]), { code: 1, stderr: /no admin token in .*\/data\/admin/ })
  await child.kill('SIGTERM')
})

t.test('what cannot be used is refused in words that say what to do', async t => {
  const { dir, ended } = await installed(t)
  const refusals: [args: string[], env: Record<string, string>, said: RegExp][] = [
    [[], { PORT: 'http' }, /^gateway: .* PORT is "http"; it must be a number from 0 to 65535\n/],
    [[], { PORT: '65536' }, /^gateway: .* PORT is "65536"; it must be a number from 0 to 65535\n/],
    [[], { HOST: 'http://0.0.0.0' }, /^gateway: .* HOST is "http:\/\/0\.0\.0\.0"; it must be a host .* without a port/],
    [[], { HOST: '0.0.0.0:80' }, /^gateway: .* HOST is "0\.0\.0\.0:80"; it must be a host .* without a port/],
    [
      ['--config', 'none.yaml'],
      {},
      /^gateway: there is no file .*none\.yaml, which --config names; .*model-gateway init/,
    ],
    [[], { GATEWAY_CONFIG: 'none.yaml' }, /^gateway: there is no file .*none\.yaml, which GATEWAY_CONFIG names/],
    [['start'], {}, /^gateway: unknown command "start"; run without a command to start the gateway\n\nusage: gateway /],
    [['--colour'], {}, /^gateway: Unknown option '--colour'/],
  ]
  const check = async ([args, env, said]: (typeof refusals)[number]) => {
    const { code, stdout, stderr } = await ended('gateway.js', args, env)
    t.match([code, stdout, stderr], [2, '', said], `${args.join(' ')} ${Object.entries(env).join(' ')}`)
  }
  await Promise.all(refusals.map(check))
  const [missing, foreign, uploads, nowhere, help, version] = await Promise.all([
    ended('gatewayctl.js', ['check', '--config', 'none.yaml']),
    ended('gateway.js', [], { HOST: '192.0.2.1', PORT: '0' }),
    ended('gateway.js', [], { UPLOAD_DIR: 'images', PORT: '0' }),
    ended('gateway.js', [], { GATEWAY_DATA: '/proc/none/data', PORT: '0' }),
    ended('gateway.js', ['--help']),
    ended('gateway.js', ['--version']),
  ])
  t.match(missing, { code: 1, stderr: /^there is no file / })
  t.match(foreign, { code: 1, stderr: /EADDRNOTAVAIL.*HOST/ })
  t.match(uploads, { code: 1, stderr: /^gateway: .* UPLOAD_DIR is "images"; it must be an absolute path\n$/ })
  t.match(nowhere, { code: 3, stderr: /Cannot write the database .*writable/ })
  t.match(help, { code: 0, stdout: /init[\s\S]*--config[\s\S]*GATEWAY_DATA/, stderr: '' })
  t.match(version, { code: 0, stdout: /^\d+\.\d+\.\d+\n$/ })
  t.notOk(existsSync(join(dir, 'config')))
})

const DRIVERS = ['better-sqlite3', 'better-sqlite3-napi']

/** What npm leaves of a driver that it could not build, and what a start says of it. */
const unusable: Readonly<Record<string, readonly [main: string | undefined, said: string]>> = {
  'no driver': [undefined, 'none is installed'],
  'a driver without its binary': [
    'module.exports = class { constructor() { throw new Error("Could not locate the bindings file. Tried:\\n a") } }',
    'better-sqlite3: Could not locate the bindings file. Tried',
  ],
  'a driver of another Node': [
    'throw Object.assign(new Error("compiled against a different Node.js version"), { code: "ERR_DLOPEN_FAILED" })',
    'better-sqlite3: compiled against a different Node.js version',
  ],
}

for (const [what, [main, said]] of Object.entries(unusable)) {
  t.test(`${what}: a start says what is missing and how to get it`, async t => {
    const { dir, ended } = await installed(t, { without: DRIVERS })
    if (main !== undefined) {
      await mkdir(join(dir, 'node_modules/better-sqlite3'))
      await writeFile(join(dir, 'node_modules/better-sqlite3/index.js'), main)
    }
    const { code, stderr } = await ended('gateway.js', [], { HOME: dir, PORT: '0' })
    t.equal(code, 3)
    t.ok(stderr.startsWith(`gateway: No SQLite driver can be used (${said}). Install `), stderr)
    t.match(stderr, /Node 22 or newer.* On Node 20 .*install scripts.*python3, make, a C\+\+ compiler/)
    t.equal(stderr.trim().split('\n').length, 1, 'no stack')
  })
}

t.test('without a driver everything but a start works', async t => {
  const { ended } = await installed(t, { without: DRIVERS })
  for (const args of [['--help'], ['check']]) {
    t.match(await ended('gatewayctl.js', args), { code: 0 }, `gatewayctl ${args.join(' ')}`)
  }
  for (const args of [['--help'], ['--version'], ['init']]) {
    t.match(await ended('gateway.js', args), { code: 0, stderr: '' }, `gateway ${args.join(' ')}`)
  }
})
