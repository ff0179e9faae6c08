/** `gatewayctl doctor`: its output, its exit code, and this machine. */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Finding } from '../../src/app/doctor.ts'
import { run } from '../../src/cli/program.ts'
import { gatewayYaml } from '../config/kit.ts'
import { startConnectProxy } from '../helpers/connect-proxy.ts'
import { needsRedis, RedisServer } from '../helpers/redis.ts'
import { CLOSED_PORT } from '../helpers/upstream.ts'

const KEY = 'sk-canary-0123456789abcdef'

/** A provider on loopback that knows one key, and a configuration that names it. */
async function setUp(t: Test) {
  const server = createServer((request, response) => {
    response.statusCode = request.headers.authorization === `Bearer ${KEY}` && request.headers.host ? 200 : 401
    response.end('{}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const config = (listen: string) =>
    gatewayYaml.replace('listen: 127.0.0.1:0,', `listen: "${listen}", admin: 127.0.0.1:0,`)
  const acme = `provider: acme\nname: Acme\nbase_url: http://127.0.0.1:${port}/v1\nauth: { scheme: bearer, secret: "\${ACME_KEY:-}" }\nwires: { chat: openai.chat }\nmodels: []\n`
  const dir = t.testdir({
    config: { 'free.yaml': config('127.0.0.1:0'), 'taken.yaml': config(`127.0.0.1:${port}`), 'models.d': {} },
    'providers.d': { 'acme.yaml': acme },
  })
  const doctor = async (args: readonly string[], env: Record<string, string>, isTerminal = false) => {
    let out = ''
    const code = await run(['doctor', ...args], {
      env,
      cwd: dir,
      isTerminal,
      out: content => {
        out += content.toString()
      },
      err: text => t.equal(text, ''),
    })
    return { code, out, folder: join(dir, 'data') }
  }
  return Object.assign(doctor, { dir, port })
}

t.test('a failure is exit code 1; warnings are not', async t => {
  const doctor = await setUp(t)
  const well = await doctor(['--config', 'config/free.yaml', '--probe'], { ACME_KEY: KEY })
  t.equal(well.code, 0, well.out)
  t.match(well.out, `ok    folder ${well.folder}: writable`)
  t.match(well.out, /^warn {2}no database \S+; the first start makes one$/m)
  t.match(well.out, /^ok {4}acme: credential accepted$/m)
  const taken = await doctor(['--config', 'config/taken.yaml'], { ACME_KEY: KEY })
  t.match([taken.code, taken.out], [1, /^fail {2}public port \S+: another program uses it; stop that program/m])
  const refused = await doctor(['--config', 'config/free.yaml', '--probe'], { ACME_KEY: 'wrong-key-of-a-test' })
  t.match([refused.code, refused.out], [1, /^fail {2}acme: credential refused with status 401; replace it/m])
  t.notMatch(refused.out, 'wrong-key')
  const bare = await doctor(['--config', 'config/free.yaml', '--json'], {})
  t.equal(bare.code, 0)
  t.match((JSON.parse(bare.out) as Finding[]).at(-1), {
    status: 'warn',
    what: 'acme: no credential',
    remedy: 'set ACME_KEY to use it',
  })
})

t.test('doctor asks Redis, with its address', needsRedis, async t => {
  const doctor = await setUp(t)
  const server = new RedisServer()
  await server.start()
  t.teardown(() => server.end())
  const config = readFileSync(join(doctor.dir, 'config/free.yaml'), 'utf8')
  writeFileSync(
    join(doctor.dir, 'config/shared.yaml'),
    config.replace(/^stores: \{/m, `stores: { redis: "\${REDIS_URL}",`),
  )
  const asked = (REDIS_URL: string) => doctor(['--config', 'config/shared.yaml'], { REDIS_URL })
  t.match((await asked(server.address)).out, /^ok {4}stores\.redis: answers$/m)
  const wrong = await asked(`redis://127.0.0.1:${CLOSED_PORT}`)
  t.match([wrong.code, wrong.out], [0, /^warn {2}stores\.redis: connect ECONNREFUSED \S+; correct that/m])
})

t.test('colours are for terminals, and NO_COLOR turns them off', async t => {
  const doctor = await setUp(t)
  const config = ['--config', 'config/free.yaml']
  t.match((await doctor(config, {}, true)).out, '\u001b[33mwarn\u001b[0m  ')
  for (const [env, isTerminal] of [
    [{}, false],
    [{ NO_COLOR: '1' }, true],
    [{ TERM: 'dumb' }, true],
  ] as const) {
    t.notMatch((await doctor(config, env, isTerminal)).out, '\u001b')
  }
  t.notMatch((await doctor([...config, '--json'], {}, true)).out, '\u001b')
})

t.test('doctor tries each proxy, and each provider through its proxy', async t => {
  const doctor = await setUp(t)
  const route = (target: string) => (target === 'api.test:80' ? doctor.port : undefined)
  const proxy = await startConnectProxy(t, { route, login: 'me:canary-word' })
  const manifest = join(doctor.dir, 'providers.d/acme.yaml')
  const acme = readFileSync(manifest, 'utf8')
  writeFileSync(manifest, `${acme.replace(/http:.*/, 'http://api.test/v1')}allow_http: true\n`)
  writeFileSync(
    join(doctor.dir, 'config/proxied.yaml'),
    `${readFileSync(join(doctor.dir, 'config/free.yaml'), 'utf8')}egress: { proxy: "\${PROXY}" }\n`,
  )
  const name = `127.0.0.1:${proxy.port}`
  const ask = (login: string, at = name) =>
    doctor(['--config', 'config/proxied.yaml', '--probe'], { ACME_KEY: KEY, PROXY: `http://${login}@${at}` })
  const well = await ask('me:canary-word')
  t.equal(well.code, 0, well.out)
  t.match(well.out, `ok    proxy ${name}: answers\n`)
  t.match(well.out, `ok    acme: api.test reached through the proxy ${name}\n`)
  t.match(well.out, 'ok    acme: credential accepted\n')
  const wrong = await ask('me:canary-else')
  t.equal(wrong.code, 1)
  t.match(wrong.out, `fail  proxy ${name}: refuses user and password; correct them in the address of`)
  t.match(wrong.out, `fail  acme: api.test: the proxy ${name} refused the connection with status 407; allow`)
  const away = await ask('me:canary-word', '127.0.0.1:1')
  t.match(away.out, 'fail  the proxy 127.0.0.1:1 cannot be reached: ECONNREFUSED; start it, or correct the address')
  for (const { out } of [well, wrong, away]) t.notMatch(out, 'canary-')
})
