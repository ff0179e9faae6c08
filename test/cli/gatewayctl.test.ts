/** `gatewayctl` against the real admin listener of a fake gateway. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { text as readAll, buffer as readBytes } from 'node:stream/consumers'
import type { Command } from 'commander'
import t, { type Test } from 'tap'
import { table } from '../../src/admin/command.ts'
import { adminListener } from '../../src/admin/server.ts'
import { buildProgram, run } from '../../src/cli/program.ts'
import { ConfigError } from '../../src/config/error.ts'
import { START } from '../../src/config/locate.ts'
import type { Log } from '../../src/core/ports.ts'
import { errors } from '../../src/lib/error.ts'
import { type Fake, fakeContext, TOKEN } from '../admin/fake.ts'
import { CLOSED_PORT } from '../helpers/upstream.ts'

interface Ran {
  code: number
  stdout: string
  stderr: string
  json<T = object>(): T
}

interface Shell {
  context: Fake
  /** Address of the admin listener. */
  admin: string
  /** An empty folder, where the commands run. */
  dir: string
  /** Runs in this process; the token is in the environment unless `env` is given. Bytes in the output are latin1 text. */
  ctl(args: string[], env?: Record<string, string>, input?: string, isTerminal?: boolean): Promise<Ran>
}

const log: Log = { debug() {}, info() {}, warn() {}, error() {} }

type Refusals = readonly (readonly [args: string[], code: number, said: RegExp])[]

async function refuses(t: Test, command: (args: string[]) => Promise<Ran>, rows: Refusals): Promise<void> {
  for (const [args, code, said] of rows) {
    const ran = await command(args)
    t.equal(ran.code, code, args.join(' '))
    t.match(ran.stderr, said, args.join(' '))
  }
}

async function shell(t: Test): Promise<Shell> {
  const context = fakeContext()
  const listener = await adminListener({ context, token: TOKEN, listen: '127.0.0.1:0', log })
  t.teardown(() => listener.close())
  const admin = `http://${listener.address}`
  const dir = t.testdir({})
  const ctl: Shell['ctl'] = async (
    args,
    env = { GATEWAY_ADMIN: admin, GATEWAY_ADMIN_TOKEN: TOKEN },
    input = '',
    isTerminal = false,
  ) => {
    const output = { stdout: '', stderr: '' }
    const code = await run(args, {
      env,
      cwd: dir,
      out: content => {
        output.stdout += content.toString('latin1')
      },
      isTerminal,
      ...(isTerminal && {
        progress: (text: string) => {
          output.stderr += text
        },
      }),
      err: text => {
        output.stderr += text
      },
      in: async () => input,
    })
    return { code, ...output, json: <T>() => JSON.parse(output.stdout) as T }
  }
  return { context, admin, dir, ctl }
}

t.test('every command prints one JSON value under --json, and something legible without', async t => {
  const { ctl, context } = await shell(t)
  const cases: [string[], object, RegExp][] = [
    [
      ['keys', 'create', '--project', 'default', '--name', 'mine', '--expires', '30d'],
      { id: 'k2', key: 'mgw_new', name: 'mine', project: 'default' },
      /^key {6}mgw_new\nid {7}k2\n/,
    ],
    [
      ['keys', 'list'],
      [{ id: 'k1' }, { id: 'k2' }],
      /^id {2}name {11}project[\s\S]*\nk2 .* rpm 30, concurrency 4 +2026/,
    ],
    [['keys', 'list', '--project', 'empty'], [], /^no keys; create one with `gatewayctl keys create/],
    [['keys', 'revoke', 'k1'], { id: 'k1', status: 'revoked' }, /^revoked k1 \(first\)\n$/],
    [['keys', 'roll', 'k1'], { id: 'k3', key: 'mgw_rolled' }, /^key {6}mgw_rolled\n/],
    [
      ['reload'],
      { changed: true, version: 'def456', restartNeeded: [], warnings: [] },
      /^now running version def456\n$/,
    ],
    [
      ['explain', 'chat'],
      { endpoint: 'chat', end: 'provider' },
      /from top to bottom\ncompat \{"reasoning_content":true\}\n\nfilter[\s\S]*\{"attempts":3\}\ntranslate +once per attempt +target +outbound/,
    ],
    [
      ['route', 'explain', '--model', 'acme-large', '--stream', '--prompt', '2000', '--session', 's'],
      { reason: 'weighted-score', candidates: [{ offer: 'live-one/acme-large', score: 0.0429 }, {}] },
      /^acme-large: live-one\/acme-large \(weighted-score\)\n\n#[\s\S]*open 13s +open 1s\n[\s\S]*local\/acme-large.*1\.5000\n[\s\S]*no credential\n$/,
    ],
    [
      ['providers', 'list'],
      [{ id: 'live-one' }, { id: 'keyless' }, {}],
      /keyless +keyless inc\. +no credential +1 +- +KEYLESS_API_KEY\n/,
    ],
    [
      ['providers', 'health'],
      [{ id: 'live-one', status: 'live', credentials: [{ circuit: 'closed' }], broken: [] }, { id: 'keyless' }, {}],
      /live-one +live +f1e2d3 closed +\d+ +-?\n/,
    ],
    [['models', 'list'], [{ id: 'acme-large' }], /acme-large +live-one +yes +200000 +2\.5 +10 +acme-l\n/],
    [['models', 'list', 'nothing-like-it'], [], /^model/],
    [
      ['usage', '--group-by', 'model'],
      { totals: { cost: '1.2345' } },
      /cost USD +1\.2345 \(1\.2345 of credits.*\nstorage USD +0\n\nmodel +requests/,
    ],
    [['usage', 'check'], { differences: [] }, /^no differences\n$/],
    [
      ['status'],
      { version: '0.1.0', database: 'ok', publicUrl: 'https://gateway.example.com' },
      /^state +ready\n[\s\S]*\npublic URL +https:\/\/gateway\.example\.com\nprocess +4242, up 1d 2h\n/,
    ],
    [['config'], { stores: { sqlite: '../data/gateway.db' } }, /^stores:\n {2}sqlite: \.\.\/data\/gateway\.db\n/],
    [['health'], { status: 'ready' }, /^ready\n$/],
    [['drain'], { draining: true, inFlight: 3 }, /^draining; 3 in flight\n$/],
    [
      ['metrics'],
      [
        { name: 'up', labels: { a: 'b"c' }, value: 1 },
        { name: 'warm', value: '+Inf' },
      ],
      /^# HELP up Up\.\n/,
    ],
  ]
  for (const [args, value, legible] of cases) {
    const name = args.join(' ')
    const machine = await ctl([...args, '--json'])
    t.match([machine.code, machine.stderr], [0, ''], name)
    t.match(machine.json(), value, name)
    const human = await ctl(args)
    t.match([human.code, human.stderr], [0, ''], name)
    t.match(human.stdout, legible, name)
  }
  t.match(context.created[0], { project: 'default', name: 'mine', expiresAt: Number })
  t.match((await ctl(['--json', 'status'])).json(), { pid: 4242 }, 'global options may stand before the command')
})

t.test('status says whether Redis is used, and what follows where it is not', async t => {
  const { ctl, context } = await shell(t)
  t.notMatch((await ctl(['status'])).stdout, /^redis/m, 'none is configured')
  let isAway = false
  const ping = async () => {
    if (isAway) throw new Error('connect ECONNREFUSED')
  }
  Object.assign(context, { redis: { nodes: 3, ping } })
  t.match((await ctl(['status'])).stdout, /^redis +ok, 3 processes$/m)
  isAway = true
  t.match(
    (await ctl(['status'])).stdout,
    /^redis +away, each process takes its share of limits: connect ECONNREFUSED, 3/m,
  )
})

t.test('a command that needs the database names its error while it is away', async t => {
  const { ctl, context } = await shell(t)
  const broken = () => Promise.reject(new Error('connect ECONNREFUSED 127.0.0.1:5432'))
  Object.assign(context.usage, { check: broken })
  t.match(await ctl(['usage', 'check']), { code: 1, stderr: 'Internal Server Error\n' }, 'the database answers')
  context.databaseFault = 'connect ECONNREFUSED 127.0.0.1:5432'
  t.match(await ctl(['usage', 'check']), {
    code: 1,
    stderr: 'The database does not answer: connect ECONNREFUSED 127.0.0.1:5432\n',
  })
})

t.test('health says by its status whether the gateway is ready, and needs no token', async t => {
  const { ctl, context, admin } = await shell(t)
  t.match(await ctl(['health'], { GATEWAY_ADMIN: admin }), { code: 0, stdout: 'ready\n' })
  context.ready = false
  t.match(await ctl(['health'], { GATEWAY_ADMIN: admin }), { code: 1, stdout: 'not ready: starting or draining\n' })
  const closed = { GATEWAY_ADMIN: `http://127.0.0.1:${CLOSED_PORT}` }
  t.match(await ctl(['health'], closed), { code: 1, stdout: '', stderr: /^cannot reach the gateway at / })
})

t.test('arguments reach the gateway', async t => {
  const { ctl, context } = await shell(t)
  await ctl(['usage', '--project', 'p', '--key', 'k2', '--from', '2026-01-01', '--to', '2026-01-31'])
  t.strictSame(context.queries, [{ projectId: 'p', keyId: 'k2', from: Date.UTC(2026, 0, 1), to: Date.UTC(2026, 1, 1) }])
})

t.test('a refusal is one line and exit code 1, and an error object under --json', async t => {
  const { ctl, context, admin } = await shell(t)
  context.reloadFault = new ConfigError('config/gateway.yaml', { line: 7, column: 3 }, 'unknown key "sever"\nand more')
  context.differences = ['organization default: balance differs by 1', 'request x has no row']
  const closed = `http://127.0.0.1:${CLOSED_PORT}`
  const cases: [string[], RegExp][] = [
    [['reload'], /^config\/gateway\.yaml:7:3: unknown key "sever"; and more$/],
    [['keys', 'revoke', 'k9'], /^There is no key "k9"\.$/],
    [['keys', 'create', '--project', 'p', '--expires', 'soon'], /"expires" must be a time such as 12h, 30d or 52w/],
    [['explain', 'chta'], /Endpoints: chat, models/],
    [['route', 'explain', '--model', 'nothing'], /"nothing" does not exist/],
    [['usage', '--from', 'yesterday'], /"from" must be a date such as 2026-01-31/],
    [
      ['status', '--admin', closed],
      /^cannot reach the gateway at http:\/\/127\.0\.0\.1:\d+; start it with `npx model-gateway` in \/\S+ or pass --admin$/,
    ],
    [
      ['status', '--admin', 'ftp://x'],
      /^"ftp:\/\/x" is not an http\(s\) address; write it like http:\/\/127\.0\.0\.1:9901$/,
    ],
    [
      ['status', '--token-file', 'none.token'],
      /^there is no token file .*none\.token; pass the right one as --token-file$/,
    ],
    [['chat', 'hi', '--project', 'nope'], /^There is no project "nope"\.$/],
    [['chat', 'hi', '--admin', closed], /^cannot reach the gateway at .*pass --admin$/],
    [
      ['chat', 'hi', '--key-stdin'],
      /^no secret on standard input; write it there: `gatewayctl chat --key-stdin < file`$/,
    ],
    [['status', '--admin', 'http://me:hunter2@x'], /^an address must not contain a password; write it like [^@]*$/],
    [['chat', 'hi', '--url', 'ftp://x'], /write it like http:\/\/127\.0\.0\.1:8080$/],
    [['chat', 'hi', '--url', closed], /^cannot reach the gateway at .*pass --url$/],
  ]
  for (const [args, message] of cases) {
    const name = args.join(' ')
    const { code, stdout, stderr } = await ctl(args)
    t.match([code, stdout], [1, ''], name)
    t.match(stderr.replace(/\n$/, ''), message, name)
    t.equal(stderr.split('\n').length, 2, `${name}: one line`)
    const machine = await ctl([...args, '--json'])
    t.equal(machine.code, 1)
    t.match(machine.json(), { error: { message: String } }, name)
  }
  t.match((await ctl(['keys', 'revoke', 'k9', '--json'])).json(), { error: { type: 'invalid_request_error' } })
  const check = await ctl(['usage', 'check'])
  t.match([check.code, check.stdout], [0, /balance differs by 1\nrequest x has no row\n/])

  const other = createServer((_, response) => response.end('<html>')).listen(0, '127.0.0.1')
  t.teardown(() => other.close())
  await new Promise(resolve => other.once('listening', resolve))
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
  t.match((await ctl(['status', '--admin', url])).stderr, /answers, but not as an admin listener/)
  const client = createServer((_, response) =>
    response.writeHead(404).end('{"error":{"message":"There is no endpoint /commands/status."}}'),
  ).listen(0, '127.0.0.1')
  t.teardown(() => client.close())
  await new Promise(resolve => client.once('listening', resolve))
  const publicUrl = `http://127.0.0.1:${(client.address() as AddressInfo).port}`
  t.match(
    (await ctl(['status', '--admin', publicUrl])).stderr,
    /answers, but not as an admin listener; pass the address/,
  )
  t.match((await ctl(['chat', 'hi', '--url', url])).stderr, /^the answer is not JSON; pass the gateway's/)

  const wrong = await ctl(['status'], { GATEWAY_ADMIN: admin, GATEWAY_ADMIN_TOKEN: 'wrong' })
  t.equal(wrong.stderr, 'the gateway refused the admin token from GATEWAY_ADMIN_TOKEN; pass --token-file\n')
})

const SECRET = 'Zq8vK2mN4pR6tW9xB3cD5fG7'

t.test('wrong use is exit code 2', async t => {
  const { ctl } = await shell(t)
  const cases: [string[], RegExp][] = [
    [[], /Usage: gatewayctl/],
    [['keys'], /Usage: gatewayctl keys/],
    [['kesy'], /unknown command 'kesy'[\s\S]*Did you mean keys\?/],
    [['keys', 'create'], /required option '--project <project>' not specified/],
    [['keys', 'revoke'], /missing required argument 'id'/],
    [['status', 'now'], /too many arguments/],
    [['status', '--colour'], /unknown option '--colour'/],
    [['route', 'explain', '--model', 'm', '--prompt', 'long'], /"long" is not a whole number/],
    [['route', 'explain', '--model', 'm', '--routing', 'fast'], /Allowed choices are auto, price/],
    [
      ['usage', '--group-by', 'week'],
      /Allowed choices are provider, model, app, api_key, project, member, day, end_user, tag:KEY/,
    ],
    [['explain'], /missing required argument 'endpoint'/],
    [['chat', 'hi', '--key', SECRET], /--key takes no secret.*; set GATEWAY_API_KEY, or write .* --key-stdin$/m],
    [['chat', 'hi', `--key=${SECRET}`], /--key takes no secret/],
    [['provider-keys', 'add', '--secret', SECRET], /--secret takes no secret.*; write the secret to standard input$/m],
    [['provider-keys', 'add', '--key', SECRET], /--key takes no secret/],
    [
      ['--token', SECRET, 'status'],
      /--token takes no secret.*; set GATEWAY_ADMIN_TOKEN, or name its file with --token-file$/m,
    ],
    [['usage', '--key', `mgw_${SECRET}`], /^error: argument 3 is an API key, but every user .*; name a key by its id/],
    [['keys', 'revoke', `mgw_es_${SECRET}`], /argument 3 is an API key/],
    [['iam', 'add', `--key=mgw_${SECRET}`], /argument 3 is an API key/],
  ]
  for (const [args, message] of cases) {
    const { code, stdout, stderr } = await ctl(args)
    t.match([code, stdout], [2, ''], args.join(' '))
    t.match(stderr, message, args.join(' '))
    t.notMatch(stderr, SECRET, 'no secret is repeated')
  }
  t.match(await ctl(['--version']), { code: 0, stdout: /^\d+\.\d+\.\d+\n$/, stderr: '' })
  const help = await ctl(['--help'])
  t.match([help.code, help.stderr], [0, ''])
  t.match(help.stdout, /keys[\s\S]*reload[\s\S]*check[\s\S]*explain[\s\S]*chat/)
})

t.test('the token is looked for in the documented order', async t => {
  const { ctl, dir, admin } = await shell(t)
  const write = (path: string, content: string) => {
    const full = join(dir, path)
    mkdirSync(resolve(full, '..'), { recursive: true })
    writeFileSync(full, content)
  }
  const status = (args: string[] = [], env: Record<string, string> = {}) =>
    ctl(['status', '--json', '--admin', admin, ...args], env)
  const config = (sqlite: string) => `stores: { sqlite: "${sqlite}" }\n`

  const none = await status()
  t.equal(none.code, 1)
  t.match(
    none.stderr,
    /^no admin token in .*\/data\/admin\.token; pass the file .* --token-file, or set GATEWAY_ADMIN_TOKEN\n$/,
  )

  write('etc/gateway.yaml', config(`../var/\${NAME}/gateway.db`))
  write('var/prod/admin.token', `${TOKEN}\n`)
  t.equal((await status(['--config', 'etc/gateway.yaml'], { NAME: 'prod' })).code, 0, 'beside the database')
  t.equal((await status([], { GATEWAY_CONFIG: 'etc/gateway.yaml', NAME: 'prod' })).code, 0, 'of GATEWAY_CONFIG')
  write('etc/gateway.yaml', config(`\${VAR:-../var}/\${NAME}/gateway.db`))
  t.equal((await status(['--config', 'etc/gateway.yaml'], { NAME: 'prod' })).code, 0, 'with what stands for a variable')
  t.equal((await status()).code, 1)
  write('config/gateway.yaml', config('../elsewhere/gateway.db'))
  t.match((await status()).stderr, /no admin token in .*data\/admin\.token or .*elsewhere\/admin\.token;/)
  write('elsewhere/admin.token', TOKEN)
  t.equal((await status()).code, 0, 'of ./config/gateway.yaml')

  write('config/gateway.yaml', `chains: [ }\n${config('../elsewhere/gateway.db')}`)
  t.equal((await status()).code, 0, 'even when that file has faults')

  write('data/admin.token', 'stale')
  t.match(
    (await status()).stderr,
    /refused the admin token from .*\/data\/admin\.token/,
    './data comes before the config',
  )
  t.equal((await status([], { GATEWAY_ADMIN_TOKEN: TOKEN })).code, 0, 'the environment comes before ./data')
  write('given.token', ` ${TOKEN}\n`)
  const both = await status(['--token-file', 'given.token'], { GATEWAY_ADMIN_TOKEN: 'wrong' })
  t.equal(both.code, 0, '--token-file comes first')
  t.match((await ctl(['metrics', '--admin', admin], {})).stdout, /^# HELP up/, 'metrics need none')
})

t.test('a file of the working folder says neither where the token goes nor what is read', async t => {
  const { ctl, admin, dir } = await shell(t)
  const asked: string[] = []
  const stranger = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization}`)
    response.end('{}')
  })
  await new Promise<void>(resolve => stranger.listen(0, '127.0.0.1', resolve))
  t.teardown(() => stranger.close())
  const { port } = stranger.address() as AddressInfo
  for (const folder of ['config', 'data', 'etc', 'var']) mkdirSync(join(dir, folder))
  const write = (path: string, text: string) => writeFileSync(join(dir, path), text)
  write('secret', TOKEN)
  for (const address of [
    `127.0.0.1:${port}`,
    `http://127.0.0.1:${port}/\${SECRET}`,
    `127.0.0.1:${port}/\${file:../secret}`,
  ]) {
    write('config/gateway.yaml', `server: { admin: "${address}" }\nstores: { sqlite: "../\${SECRET}/gateway.db" }\n`)
    await ctl(['status'], { GATEWAY_ADMIN_TOKEN: TOKEN, SECRET: 'hidden' })
    await ctl(['launch', 'codex', '--print'], { GATEWAY_ADMIN_TOKEN: TOKEN, SECRET: 'hidden' })
  }
  t.strictSame(asked, [])
  write('data/admin.token', TOKEN)
  write('data/token.address', `${admin}\n`)
  t.equal((await ctl(['status'], {})).code, 0, 'token and address are a pair')
  t.equal((await ctl(['status', '--token-file', 'data/admin.token'], {})).code, 0)
  write('data/token.address', 'http://gateway.example:9901\n')
  t.match(
    (await ctl(['status'], {})).stderr,
    /token\.address names an address that is not on this machine; pass .*--admin/,
  )
  write('data/admin.token', 'of another gateway')
  write('var/admin.token', TOKEN)
  write('etc/gateway.yaml', `server: { admin: "${new URL(admin).host}" }\nstores: { sqlite: ../var/gateway.db }\n`)
  t.equal((await ctl(['status', '--config', 'etc/gateway.yaml'], {})).code, 0, 'the token of a named file goes first')
})

t.test('the admin listener is the one that the configuration file names', async t => {
  const { ctl, admin, dir } = await shell(t)
  const { port } = new URL(admin)
  mkdirSync(join(dir, 'etc'))
  const status = (args: string[] = [], env: Record<string, string> = {}) =>
    ctl(['status', '--json', ...args], { GATEWAY_ADMIN_TOKEN: TOKEN, ...env })
  const named = ['--config', 'etc/gateway.yaml']
  for (const address of [`127.0.0.1:${port}`, `0.0.0.0:${port}`, `127.0.0.1:\${PORT}`]) {
    writeFileSync(join(dir, 'etc/gateway.yaml'), `server: { admin: "${address}" }\n`)
    t.equal((await status(named, { PORT: port })).code, 0, address)
  }
  t.equal((await status([], { GATEWAY_CONFIG: 'etc/gateway.yaml', PORT: port })).code, 0, 'of GATEWAY_CONFIG')
  const closed = `127.0.0.1:${CLOSED_PORT}`
  writeFileSync(join(dir, 'etc/gateway.yaml'), `server: { admin: "${closed}" }\n`)
  t.equal(
    (await status(named)).stderr,
    `cannot reach the gateway at http://${closed}, which server.admin in etc/gateway.yaml names; ` +
      `start it with ${START} or pass --admin\n`,
  )
  t.equal((await status([...named, '--admin', admin])).code, 0, '--admin comes first')
  t.equal((await status(named, { GATEWAY_ADMIN: admin })).code, 0, 'GATEWAY_ADMIN comes before the file')
})

t.test('image writes a picture into a file, and never over one that it was not given', async t => {
  const { ctl, admin, dir } = await shell(t)
  const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
  const got: unknown[] = []
  const body = JSON.stringify({ data: [{ b64_json: png.toString('base64') }] })
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const asked = JSON.parse(await readAll(request)) as { model: string; prompt: string }
    got.push([request.url, asked])
    const answer = asked.prompt === 'nothing' ? '{"data":[]}' : body
    const served = { 'x-gateway-provider': 'acme', 'x-gateway-model': asked.model, 'x-gateway-cost': '0.04' }
    response.writeHead(200, served).end(answer)
  }
  const server = createServer(serve).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await new Promise(resolve => server.once('listening', resolve))
  const url = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const env = { GATEWAY_ADMIN: admin, GATEWAY_ADMIN_TOKEN: TOKEN, GATEWAY_API_KEY: 'mgw_env' }
  const first = await ctl(['image', 'a cat', '--size', '1024x1024', '--url', url], env)
  t.match(first, { code: 0, stdout: 'image.png\n', stderr: '[acme/demo-image, $0.04]\n' })
  t.strictSame(got.pop(), ['/v1/images/generations', { model: 'demo-image', prompt: 'a cat', size: '1024x1024' }])
  t.ok(readFileSync(join(dir, 'image.png')).equals(png))
  const json = await ctl(['image', 'a cat', '--json', '--url', url], env)
  t.match([json.code, json.stdout, json.stderr], [0, `${body}\n`, ''])
  writeFileSync(join(dir, 'mine.png'), 'old')
  t.equal((await ctl(['image', 'a cat', '--out', 'mine.png', '--model', 'm', '--url', url], env)).code, 0)
  t.ok(readFileSync(join(dir, 'mine.png')).equals(png))
  const rows: [args: string[], code: number, said: RegExp][] = [
    [['a cat', '--out', 'no/such/folder.png'], 1, /^cannot write no\/such\/folder\.png: ENOENT$/m],
    [['nothing'], 1, /^the answer contains no image$/m],
    [['a cat', '--key', 'secret'], 2, /--key takes no secret/],
  ]
  await refuses(t, args => ctl(['image', ...args, '--url', url], env), rows)
  writeFileSync(join(dir, 'image.png'), 'old')
  for (const file of ['image-2.png', 'image-3.png']) {
    t.match(await ctl(['image', 'a cat', '--url', url], env), { code: 0, stdout: `${file}\n` })
    t.ok(readFileSync(join(dir, file)).equals(png))
  }
  t.equal(readFileSync(join(dir, 'image.png'), 'utf8'), 'old')
  got.length = 0
  t.equal((await ctl(['image', 'a cat', '--out', 'no/such/folder.png', '--url', url], env)).code, 1)
  t.strictSame(got, [], 'no image is paid for that nobody gets')
})

t.test('speak writes audio into a file or a pipe, and never to a terminal', async t => {
  const { ctl, admin, dir } = await shell(t)
  const got: unknown[] = []
  const sound = Buffer.from([0xff, 0xfb, 0x90, 0x00, 0x80])
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const asked = JSON.parse(await readAll(request)) as { model: string; input: string }
    got.push([request.url, asked])
    const type = asked.model === 'page' ? 'text/html' : 'audio/mpeg'
    const served = { 'content-type': type, 'x-gateway-provider': 'acme', 'x-gateway-model': asked.model }
    if (asked.model === 'gone') {
      const message = 'The model "gone" does not exist.'
      response.writeHead(404).end(JSON.stringify({ error: { message, type: 'x', param: 'model', code: 'y' } }))
    } else if (asked.model === 'cut') {
      response.writeHead(200, served)
      response.write(sound, () => response.destroy())
    } else response.writeHead(200, asked.model === 'say' ? { ...served, 'x-gateway-cost': '0.001' } : served).end(sound)
  }
  const server = createServer(serve).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await new Promise(resolve => server.once('listening', resolve))
  const url = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const env = { GATEWAY_ADMIN: admin, GATEWAY_ADMIN_TOKEN: TOKEN, GATEWAY_API_KEY: 'mgw_env' }
  const say = (...args: string[]) => ctl(['speak', 'Hi', ...args, '--url', url], env)

  writeFileSync(join(dir, 'hi.MP3'), 'old and longer than what is written')
  const first = await say('--out', 'hi.MP3', '--model', 'say', '--voice', 'alloy')
  t.match(first, { code: 0, stdout: 'hi.MP3\n', stderr: '[acme/say, $0.001]\n' })
  const body = { model: 'say', input: 'Hi', voice: 'alloy', response_format: 'mp3' }
  t.strictSame(got.pop(), ['/v1/audio/speech', body], 'the format is what the name ends with')
  t.ok(readFileSync(join(dir, 'hi.MP3')).equals(sound))
  await say('--out', 'hi.mp3', '--model', 'say', '--format', 'wav')
  t.match(got.pop(), ['/v1/audio/speech', { response_format: 'wav' }], '--format comes first')

  const piped = await say()
  t.match(piped, { code: 0, stderr: '[acme/demo-speech, its price is in the usage]\n' })
  t.equal(piped.stdout, sound.toString('latin1'), 'byte for byte')
  t.strictSame(got.pop(), ['/v1/audio/speech', { model: 'demo-speech', input: 'Hi' }])
  const json = await say('--json', '--model', 'say')
  const head = { content_type: 'audio/mpeg', provider: 'acme', model: 'say', cost: '0.001', bytes: 5 }
  t.strictSame([json.code, json.json(), json.stderr], [0, { ...head, audio: sound.toString('base64') }, ''])
  const saved = await say('--json', '--model', 'say', '--out', 'other.wav')
  t.strictSame([saved.code, saved.json(), saved.stderr], [0, { ...head, file: 'other.wav' }, ''])

  got.splice(0)
  t.match(await ctl(['speak', 'Hi', '--url', url], env, '', true), { code: 1, stdout: '', stderr: /terminal.* --out/ })
  t.strictSame(got, [], 'nothing is paid for what cannot be heard')
  t.equal((await ctl(['speak', 'Hi', '--out', 'a.mp3', '--url', url], env, '', true)).code, 0)
  const rows: [args: string[], code: number, said: RegExp][] = [
    [['--out', 'no/such/folder.mp3'], 1, /^cannot write no\/such\/folder\.mp3: ENOENT$/m],
    [['--model', 'gone', '--out', 'hi.MP3'], 1, /^The model "gone" does not exist\.$/m],
    [['--model', 'cut', '--out', 'cut.mp3'], 1, /^the audio broke off after \d bytes$/m],
    [['--model', 'page'], 1, /^the answer is not audio; pass the gateway's public listener as --url$/m],
    [['--format', 'ogg'], 2, /Allowed choices are mp3, opus/],
    [['--key', 'secret'], 2, /--key takes no secret/],
  ]
  await refuses(t, args => say(...args), rows)
  t.ok(readFileSync(join(dir, 'hi.MP3')).equals(sound), 'a refusal leaves the file as it was')
})

t.test('chat asks the public listener as any client would', async t => {
  const { ctl, context, admin } = await shell(t)
  const asked: { path: string | undefined; authorization: string | undefined; body: unknown }[] = []
  const metadata = { used_provider: 'demo', used_model: 'demo', routing: [{}, {}] }
  const usage = { prompt_tokens: 5, completion_tokens: 7, cost: 0.001 }
  const whole = { choices: [{ message: { content: 'Hello.' } }], usage, metadata }
  let stream = ''
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const body = JSON.parse(await readAll(request)) as { model: string; stream: boolean }
    asked.push({ path: request.url, authorization: request.headers.authorization, body })
    if (body.model === 'gone') {
      const message = 'The model "gone" does not exist.'
      response.writeHead(404).end(JSON.stringify({ error: { message, type: 'x', param: 'model', code: 'y' } }))
    } else if (body.stream) response.end(stream)
    else response.end(JSON.stringify(whole))
  }
  const server = createServer(serve).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await new Promise(resolve => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  context.listen = `0.0.0.0:${port}`
  const env = { GATEWAY_ADMIN: admin, GATEWAY_ADMIN_TOKEN: TOKEN, GATEWAY_API_KEY: 'mgw_env' }

  const plain = await ctl(['chat', 'Hi there'], env)
  t.match(plain, { code: 0, stdout: 'Hello.\n', stderr: '[demo/demo, 2 attempts, 5 + 7 tokens, $0.001]\n' })
  t.strictSame(asked.pop(), {
    path: '/v1/chat/completions',
    authorization: 'Bearer mgw_env',
    body: { model: 'demo', messages: [{ role: 'user', content: 'Hi there' }], stream: false },
  })

  const url = `127.0.0.1:${port}/v1/`
  const json = await ctl(['chat', 'Hi', '--json', '--stream', '--model', 'm', '--key-stdin', '--url', url], {}, 'k\n')
  t.match([json.code, json.json(), json.stderr], [0, whole, ''])
  t.match(asked.pop(), { path: '/v1/chat/completions', authorization: 'Bearer k', body: { model: 'm', stream: false } })

  const { GATEWAY_API_KEY: _, ...withoutKey } = env
  t.match(await ctl(['chat', 'Hi'], withoutKey), { code: 0, stdout: 'Hello.\n' }, 'the admin token suffices')
  t.match(asked.pop(), { authorization: 'Bearer mgw_es_lent' })
  t.strictSame(context.lent.splice(0), ['begin default', 'end s1'])
  t.match(await ctl(['chat', 'Hi', '--model', 'gone', '--project', 'shop'], withoutKey), { code: 1 })
  t.strictSame(context.lent.splice(0), ['begin shop', 'end s1'], 'ended after a refusal too')
  context.storeFault = errors.storeUnavailable(new Error('no disk'))
  t.match(await ctl(['chat', 'Hi'], withoutKey), { code: 0, stdout: 'Hello.\n', stderr: /^the session of .* minute: / })
  context.storeFault = undefined
  context.lent.splice(0)
  asked.splice(0)

  const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`
  const piece = (content: string) => event({ choices: [{ delta: { content } }] })
  stream = `${piece('Hel')}: comment\n\n${piece('lo.')}${event({ choices: [], usage, metadata })}data: [DONE]\n\n`
  t.match(await ctl(['chat', 'Hi', '--stream'], env), {
    code: 0,
    stdout: 'Hello.\n',
    stderr: '[demo/demo, 2 attempts, 5 + 7 tokens, $0.001]\n',
  })
  stream = `${piece('Hel')}${event({ error: { message: 'The upstream broke.' } })}data: [DONE]\n\n`
  t.match(await ctl(['chat', 'Hi', '--stream'], env), { code: 1, stdout: 'Hel', stderr: 'The upstream broke.\n' })
  stream = piece('Hel')
  t.match(await ctl(['chat', 'Hi', '--stream'], env), {
    code: 1,
    stderr: 'the stream ended before the answer was complete\n',
  })
  t.match(await ctl(['chat', 'Hi', '--model', 'gone'], env), { code: 1, stderr: 'The model "gone" does not exist.\n' })
  t.strictSame(context.lent, [], "a key of one's own is used where there is one")
})

t.test('transcribe sends a file as it is, says how far it is, and prints the transcript', async t => {
  const { ctl, admin, dir } = await shell(t)
  const got: { path: string | undefined; form: FormData }[] = []
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const type = { 'content-type': request.headers['content-type']! }
    const form = (await new Response(await readBytes(request), { headers: type }).formData()) as FormData
    got.push({ path: request.url, form })
    if (form.get('model') === 'gone') {
      const message = 'The model "gone" does not exist.'
      response.writeHead(404).end(JSON.stringify({ error: { message, type: 'x', param: 'model', code: 'y' } }))
      return
    }
    const served = { 'x-gateway-provider': 'acme', 'x-gateway-model': 'hear', 'x-gateway-cost': '0.001' }
    response.writeHead(200, served).end(form.get('response_format') === 'json' ? '{"text":"Hi."}' : 'Hi.\n')
  }
  const server = createServer(serve).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await new Promise(resolve => server.once('listening', resolve))
  const url = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const env = { GATEWAY_ADMIN: admin, GATEWAY_ADMIN_TOKEN: TOKEN, GATEWAY_API_KEY: 'mgw_env' }
  const large = Buffer.alloc(17 * 1024 * 1024, 'sound')
  writeFileSync(join(dir, 'my "speech".WAV'), large)
  writeFileSync(join(dir, 'small'), 'RIFF')
  writeFileSync(join(dir, 'empty.mp3'), '')

  const first = await ctl(
    ['transcribe', 'my "speech".WAV', '--model', 'hear', '--format', 'srt', '--url', url],
    env,
    '',
    true,
  )
  const remarks = 'sent 8 of 17 MiB\nsent 16 of 17 MiB\nupload complete; waiting for the transcript\n'
  t.match(first, { code: 0, stdout: 'Hi.\n', stderr: `${remarks}[acme/hear, $0.001]\n` })
  t.equal((await ctl(['transcribe', 'my "speech".WAV', '--url', url], env)).stderr, '[acme/hear, $0.001]\n')
  t.equal(got.length, 2, 'without a terminal no progress is shown')
  got.pop()
  const { path, form } = got.pop()!
  t.strictSame([path, form.get('model'), form.get('response_format')], ['/v1/audio/transcriptions', 'hear', 'srt'])
  const sent = form.get('file') as File
  t.equal(sent.name, 'audio.WAV', 'the name itself is not sent')
  t.ok(Buffer.from(await sent.arrayBuffer()).equals(large), 'byte for byte')

  t.match(await ctl(['transcribe', 'small', '--url', url], env), { code: 0, stderr: '[acme/hear, $0.001]\n' })
  t.match([...got.pop()!.form].slice(0, 2), [
    ['model', 'demo-transcribe'],
    ['response_format', 'text'],
  ])
  const json = await ctl(['transcribe', 'small', '--json', '--url', url], env)
  t.match([json.code, json.json(), json.stderr], [0, { text: 'Hi.' }, ''])
  t.equal((await ctl(['transcribe', 'empty.mp3', '--url', url], env)).code, 0, 'the gateway says what is wrong with it')
  t.equal((got.at(-1)!.form.get('file') as File).size, 0)

  const rows: [args: string[], code: number, said: RegExp][] = [
    [['small', '--model', 'gone'], 1, /^The model "gone" does not exist\.$/m],
    [['nothing.mp3'], 1, /^cannot read nothing\.mp3: ENOENT$/m],
    [['.'], 1, /^cannot read \.: not a file$/m],
    [['small', '--format', 'xml'], 2, /Allowed choices are json, text, srt/],
    [['small', '--key', 'secret'], 2, /--key takes no secret/],
  ]
  await refuses(t, args => ctl(['transcribe', ...args, '--url', url], env), rows)
})

t.test('what makes a thing is create everywhere, and add as well', t => {
  const program = buildProgram({ env: {}, cwd: '.', out() {}, err() {} })
  const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)]
  const makers = all(program).filter(command => command.name() === 'create')
  t.ok(makers.length >= 8, `${makers.length} commands`)
  for (const command of makers) t.ok(command.aliases().includes('add'), String(command.parent?.name()))
  const added = all(program).filter(command => command.name() === 'add')
  t.strictSame(
    added.map(command => command.parent?.name()),
    ['credits'],
    'money is added to what is there',
  )
  t.end()
})

t.test('models check warns of prices and models, and fails on them under --strict alone', async t => {
  const { ctl, dir } = await shell(t)
  const write = (path: string, lines: readonly string[]) => {
    mkdirSync(resolve(dir, path, '..'), { recursive: true })
    writeFileSync(join(dir, path), `${lines.join('\n')}\n`)
  }
  const names = ['old', 'fresh', 'undated', 'unpriced', 'allowed', 'refused', 'free', 'gone', 'dropped', 'ended']
  const end: Record<string, string> = {
    gone: ', deactivated_at: 2020-01-01',
    ended: ', deactivated_at: 2020-01-01',
    fresh: ', deactivated_at: 2999-01-01',
  }
  const model = (id: string) =>
    `  - { id: ${id}, name: A, family: acme, input: [text], output: [text]${end[id] ?? ''} }`
  const manifest = (id: string, head: readonly string[], offers: readonly string[]) => [
    `provider: ${id}`,
    'name: Acme',
    'base_url: http://127.0.0.1:1/v1',
    'auth: { scheme: none }',
    'wires: { chat: openai.chat }',
    ...head,
    'models:',
    ...offers.map(offer => `  - { model: ${offer} }`),
  ]
  const today = new Date().toISOString().slice(0, 10)
  const price = 'pricing: { prompt: "1", completion: "2" }'
  write('config/gateway.yaml', [
    'server: {}',
    'stores: { sqlite: ../data/gateway.db }',
    'catalog: { models: ./models.d, providers: ../providers.d }',
    'chains:',
    '  inference: [auth, ratelimit, route, translate, billing]',
    '  local: [auth: { optional: true }]',
  ])
  write('config/models.d/acme.yaml', ['models:', ...names.map(model)])
  write(
    'providers.d/acme.yaml',
    manifest(
      'acme',
      ['priced_at: 2020-02-29'],
      [
        `old, ${price}`,
        `fresh, ${price}, priced_at: ${today}`,
        'unpriced',
        'allowed, unpriced: allow',
        'refused, unpriced: refuse',
        'free, pricing: { prompt: "0", completion: "0" }',
        `gone, ${price}`,
        `dropped, ${price}, deactivated_at: 2020-01-01`,
      ],
    ),
  )
  write('providers.d/other.yaml', manifest('other', [], [`undated, ${price}`, `fresh, ${price}, priced_at: ${today}`]))
  const warnings = [
    { model: 'old', provider: 'acme', warning: 'old price', since: '2020-02-29' },
    { model: 'undated', provider: 'other', warning: 'undated price' },
    { model: 'unpriced', provider: 'acme', warning: 'no price' },
    { model: 'gone', warning: 'deactivated', since: '2020-01-01' },
    { model: 'dropped', provider: 'acme', warning: 'deactivated', since: '2020-01-01' },
  ]
  const machine = await ctl(['models', 'check', '--json'], {})
  t.match([machine.code, machine.stderr], [0, ''])
  t.strictSame(machine.json(), { today, models: 10, providers: 2, offers: 10, warnings })
  const human = await ctl(['models', 'check'], {})
  const rows =
    /^model +provider +warning +since\nold +acme +old price +2020-02-29\n[\s\S]*\n5 warnings: 10 offers of 10/
  t.match([human.code, human.stdout, human.stderr], [0, rows, ''])
  const strict = await ctl(['models', 'check', '--strict', '--json'], {})
  t.match([strict.code, strict.json<{ warnings: object }>().warnings, strict.stderr], [1, warnings, ''])
  const patient = await ctl(['models', 'check', '--older-than', '99999', '--json'], {})
  t.strictSame(patient.json<{ warnings: object }>().warnings, warnings.slice(1))
  t.match(await ctl(['models', 'check', '--older-than', 'old'], {}), { code: 2, stderr: /whole number of days/ })
  write('config/models.d/acme.yaml', ['models:', model('fresh')])
  write('providers.d/acme.yaml', manifest('acme', [], [`fresh, ${price}, priced_at: ${today}`]))
  write('providers.d/other.yaml', manifest('other', [], [`fresh, ${price}, priced_at: ${today}`]))
  t.match(await ctl(['models', 'check', '--strict'], {}), {
    code: 0,
    stdout: 'no warnings: 2 offers of 1 models by 2 providers\n',
  })
})

t.test('check needs no gateway', async t => {
  const { ctl, dir } = await shell(t)
  const manifest = (model: string) =>
    [
      'provider: acme',
      'name: Acme',
      'base_url: http://127.0.0.1:1/v1',
      'auth: { scheme: none }',
      'wires: { chat: openai.chat }',
      `models: [{ model: ${model} }]`,
    ].join('\n')
  const files: Record<string, string> = {
    'config/gateway.yaml': [
      'server: {}',
      'stores: { sqlite: ../data/gateway.db }',
      'catalog: { models: ./models.d, providers: ../providers.d }',
      'chains:',
      '  inference: [auth, ratelimit, route, translate, billing]',
      '  local: [auth: { optional: true }]',
    ].join('\n'),
    'config/models.d/acme.yaml': 'models: [{ id: acme-large, name: A, family: acme, input: [text], output: [text] }]\n',
    'providers.d/acme.yaml': manifest('acme-large'),
  }
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(resolve(dir, path, '..'), { recursive: true })
    writeFileSync(join(dir, path), content)
  }
  const machine = await ctl(['check', '--json'], {})
  t.match([machine.code, machine.stderr], [0, ''])
  t.match(machine.json(), { version: String, models: 1, providers: 1, mappings: 1, unpriced: [/acme/] })
  const human = await ctl(['check', '--config', 'config/gateway.yaml'], { GATEWAY_CONFIG: 'none.yaml' })
  t.match(human, {
    code: 0,
    stdout: /^config\/gateway\.yaml is valid: version \w+, 1 providers, 1 models, 1 offers\n$/,
    stderr: /^warning: no price is known for .*acme/,
  })
  const secret = (name: string) =>
    manifest('acme-large').replace('scheme: none', `scheme: bearer, secret: "\${${name}}"`)
  writeFileSync(join(dir, 'providers.d/acme.yaml'), secret('ACME_KYE'))
  const warning =
    'providers.d/acme.yaml:4:33: the provider "acme" has no credential, because the environment variable "ACME_KYE" is not set'
  const misspelled = await ctl(['check'], {})
  t.match(misspelled, { code: 0, stdout: / is valid/, stderr: `\nwarning: ${warning}\n` })
  t.match(await ctl(['check', '--strict'], {}), { code: 1, stderr: `\nwarning: ${warning}\n` })
  const strict = await ctl(['check', '--strict', '--json'], {})
  t.match([strict.code, strict.json()], [1, { warnings: [warning] }])
  writeFileSync(join(dir, 'providers.d/acme.yaml'), secret('OPENAI_API_KEY'))
  t.match(await ctl(['check', '--strict'], {}), { code: 0 }, 'a variable of the packaged manifests may be unset')
  writeFileSync(join(dir, 'providers.d/acme.yaml'), secret('ACME_KYE:-'))
  t.match(await ctl(['check', '--strict'], {}), { code: 0 }, 'a variable with an empty default may be unset')
  writeFileSync(join(dir, 'providers.d/acme.yaml'), secret('exec:ACME'))
  const commands =
    'secrets: { exec: { ACME: [sh, -c, "echo sk-acme-printed >> ran; cat ran; exit $(cat status)"] }, vault: { address: "http://127.0.0.1:1", token: t } }\n'
  writeFileSync(join(dir, 'config/gateway.yaml'), `${files['config/gateway.yaml']}\n${commands}`)
  writeFileSync(join(dir, 'config/status'), '0')
  const unread = `providers.d/acme.yaml:4:33: \${exec:ACME} was not read`
  t.match(await ctl(['check', '--strict'], {}), { code: 0, stderr: `\nnote: ${unread}; --secrets reads it\n` })
  t.match((await ctl(['check', '--json'], {})).json(), { unread: [unread] })
  t.notOk(existsSync(join(dir, 'config/ran')), 'and its command has not run')
  const whole = await ctl(['check', '--secrets'], {})
  t.match(whole, { code: 0, stdout: / is valid/ })
  t.notMatch(whole.stderr, /note/)
  writeFileSync(join(dir, 'config/status'), '9')
  const failed = await ctl(['check', '--secrets'], {})
  t.match(failed, { code: 1, stdout: '', stderr: /^providers\.d\/acme\.yaml:4:33: .* ended with status 9\n$/m })
  writeFileSync(
    join(dir, 'providers.d/acme.yaml'),
    secret('exec:ACME').replace('name: ', `name: ${'$'}{vault:kv/acme#name}-`),
  )
  const both = await ctl(['check', '--secrets', '--json'], {})
  t.match(
    [both.code, both.json()],
    [1, { unread: [/:2:7: .*Vault at .* cannot be reached/, /:4:33: .* ended with status 9/] }],
  )
  t.notMatch(`${whole.stdout}${whole.stderr}${failed.stderr}`, /sk-acme-printed/)
  writeFileSync(join(dir, 'config/gateway.yaml'), files['config/gateway.yaml']!)
  writeFileSync(join(dir, 'providers.d/acme.yaml'), manifest('acme-lrage'))
  t.match(await ctl(['check'], {}), {
    code: 1,
    stdout: '',
    stderr: /^providers\.d\/acme\.yaml:6:\d+: .*acme-lrage.*\n$/,
  })
})

t.test('tables are aligned and nothing in them steers the terminal', t => {
  t.equal(
    table(
      ['name', 'count', 'note'],
      [
        ['a', 5, 'x\ny'],
        ['längere', 1200, '\u001b[31mred\u202e'],
        ['c', 7, null],
      ],
    ),
    ['name     count  note', 'a            5  x y', 'längere   1200   [31mred', 'c            7  -', ''].join('\n'),
  )
  t.equal(
    table(
      ['id', 'price'],
      [
        ['a', '0.25'],
        ['b', null],
      ],
    ),
    'id  price\na    0.25\nb       -\n',
  )
  t.equal(table(['id', 'n'], []), 'id  n\n')
  t.equal(
    table(
      ['a', 'b'],
      [
        ['名前', 'x'],
        ['e\u0301', 'y'],
      ],
    ),
    'a     b\n名前  x\ne\u0301     y\n',
    'as wide as they are shown',
  )
  t.end()
})

t.test('the program itself ends with the code and leaves the streams apart', async t => {
  const { admin } = await shell(t)
  const script = resolve('bin/gatewayctl.js')
  const start = async (args: string[]) => {
    const env = { ...process.env, GATEWAY_ADMIN: admin, GATEWAY_ADMIN_TOKEN: TOKEN }
    const child = spawn(process.execPath, [script, ...args], { env })
    const closed = new Promise<number | null>(resolve => child.once('close', resolve))
    const [stdout, stderr, code] = await Promise.all([readAll(child.stdout), readAll(child.stderr), closed])
    return { code, stdout, stderr }
  }
  const [made, refused] = await Promise.all([
    start(['keys', 'create', '--project', 'default', '--json']),
    start(['keys', 'revoke', 'k9']),
  ])
  t.match([made.code, made.stderr], [0, ''])
  t.match(JSON.parse(made.stdout), { id: 'k2', key: 'mgw_new', project: 'default' })
  t.strictSame(refused, { code: 1, stdout: '', stderr: 'There is no key "k9".\n' })
})
