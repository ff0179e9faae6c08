/** `gatewayctl` as it is shipped, from a folder that knows nothing of the gateway: what a bundle loads late is there. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Child } from '../helpers/child.ts'
import { plainGateway } from './plain.ts'

const bin = join(import.meta.dirname, '../../bin/gatewayctl.js')
const { gateway } = await plainGateway()

t.test('the shipped command does what each of its commands loads code for', async t => {
  const place = ['--admin', gateway.adminUrl, '--config', gateway.configPath]
  const commands: [args: string[], said: RegExp, env?: Record<string, string>][] = [
    [['status', ...place], /^state +ready$/m],
    [['config', ...place], /^providers:/m],
    [['config', '--json', ...place], /^\{/],
    [['reload', ...place], /version [0-9a-f]{12}/],
    [['keys', 'list', ...place], /default/],
    [['metrics', ...place], /gateway_requests_total/],
    [['check', '--config', gateway.configPath], /is valid: version/],
    [['chat', 'Hello', '--stream', '--model', 'test', '--url', gateway.url], /\S/, { GATEWAY_API_KEY: gateway.key }],
    [['chat', 'Hello', '--model', 'test', ...place], /\S/],
    [['keys', 'list', ...place], /^\S+ +gatewayctl .* expired /m],
  ]
  for (const [args, said, env = {}] of commands) {
    const ctl = new Child(bin, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    t.equal(await ctl.exited, 0, `${args.join(' ')}: ${ctl.stderr}`)
    t.match(ctl.stdout, said, args.join(' '))
  }
})

/** Says what it was told, and whether its key is good; ends with 3. */
const tool = (key: string) => `#!${process.execPath}
const { env, argv } = process
fetch(${JSON.stringify(`${gateway.url}/v1/key`)}, { headers: { authorization: 'Bearer ' + env.${key} } }).then(({ status }) => {
  console.log(JSON.stringify({ key: env.${key}, args: argv.slice(2), status, env }))
  process.exitCode = 3
})
`
const KEYS: Record<string, string> = {
  claude: 'ANTHROPIC_AUTH_TOKEN',
  gemini: 'GEMINI_API_KEY',
  codex: 'MODEL_GATEWAY_API_KEY',
  opencode: 'MODEL_GATEWAY_API_KEY',
}

t.test('launch starts a tool with a key of its own, which is gone when the tool has ended', async t => {
  const dir = t.testdir()
  const place = ['--admin', gateway.adminUrl, '--config', gateway.configPath]
  const launch = async (name: string, ...args: string[]) => {
    const env = { PATH: dir, HOME: dir }
    const ctl = new Child(bin, [...place, 'launch', name, '--url', `${gateway.url}/v1`, ...args], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    return { code: await ctl.exited, stdout: ctl.stdout, stderr: ctl.stderr }
  }
  for (const [name, variable] of Object.entries(KEYS)) {
    writeFileSync(join(dir, name), tool(variable), { mode: 0o755 })
    const { code, stdout, stderr } = await launch(name, '--model', 'test', '--', '-p', 'do it')
    t.equal(code, 3, `${name}: ${stderr}`)
    const { key, args, status, env } = JSON.parse(stdout)
    t.strictSame([args.slice(-2), status], [['-p', 'do it'], 200], name)
    t.match(JSON.stringify([env, args]), gateway.url, `${name} knows the address`)
    t.match(JSON.stringify([env, args]), 'test', `${name} knows the model`)
    t.equal((await gateway.get('/v1/key', { authorization: `Bearer ${key}` })).status, 401, `${name}: the key is gone`)
    const shown = await launch(name, '--print')
    t.match(shown, { code: 0, stdout: /^export [A-Z_]+=/ }, name)
    t.match(shown.stdout, 'mgw_YOUR_KEY')
  }
  const settings = async (...args: string[]) => (await launch('codex', '--print', ...args)).stdout
  t.match(await settings('--model', 'test'), 'web_search=', 'codex offers no search to a model without one')
  t.notMatch(await settings('--model', 'a/searching'), 'web_search=')
  t.notMatch(await settings('--model', 'searching:floor'), 'web_search=')
  t.match(await settings(), /model=.*auto[\s\S]*web_search=/, 'what auto means may have none')
  const limits = {
    codex: /model_context_window=128000/,
    claude: /CLAUDE_CODE_MAX_CONTEXT_TOKENS=128000/,
    opencode: /"modalities":\{"input":\["text","image"\],.*"limit":\{"context":128000,"output":4096\}/,
    gemini: /"compressionThreshold":0\.06103515625/,
  }
  for (const [name, said] of Object.entries(limits)) {
    t.match((await launch(name, '--model', 'test', '--print')).stdout, said, `${name} knows the limits of the model`)
    t.notMatch((await launch(name, '--print')).stdout, said, `${name}: no model is named`)
  }
  const helpers = (await launch('gemini', '--model', 'test', '--print')).stdout
  t.match(helpers, /\{"match":\{"model":"gemini-3-flash-base"\},"modelConfig":\{"model":"test"\}\}/)
  rmSync(join(dir, 'claude'))
  t.match(await launch('claude'), { code: 1, stderr: /install it: npm install -g @anthropic-ai\/claude-code/ })
  t.match(await launch('vim'), { code: 2 })
})

t.test('a tool that is interrupted ends, and its key with it', async t => {
  const dir = t.testdir()
  const waiting = `#!${process.execPath}
console.log(process.env.ANTHROPIC_AUTH_TOKEN)
setInterval(() => {}, 1e6)
`
  writeFileSync(join(dir, 'claude'), waiting, { mode: 0o755 })
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    const args = ['--admin', gateway.adminUrl, '--config', gateway.configPath, 'launch', 'claude', '--url', gateway.url]
    const ctl = new Child(bin, args, { env: { PATH: dir, HOME: dir }, stdio: ['ignore', 'pipe', 'pipe'] })
    const key = (await ctl.firstLine(1, 60_000)).trim()
    const asked = () => gateway.get('/v1/key', { authorization: `Bearer ${key}` })
    t.equal((await asked()).status, 200, `${signal}: the key is good while the tool runs`)
    ctl.signal(signal)
    t.equal(await ctl.exited, code, `${signal}: ${ctl.stderr}`)
    t.equal((await asked()).status, 401, `${signal}: the key is gone`)
  }
})
