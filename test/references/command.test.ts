/** Commands that print secrets: what they get, what their output is, and how their failures are told. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { outputOf } from '../../src/references/command.ts'

const folder = t.testdir({ 'token.txt': 'of the folder\n' })
const env = { PATH: process.env.PATH, ACME: 'variable', GATEWAY_MASTER_KEY: 'master-key-of-the-gateway' }
const run = (command: readonly string[], timeoutMs?: number) =>
  outputOf(command, { folder, env, ...(timeoutMs !== undefined && { timeoutMs }) })
const node = (code: string, ...args: string[]) => run([process.execPath, '-e', code, ...args])
const failure = (running: Promise<string>) =>
  running.then(
    text => `no failure: ${text}`,
    (thrown: Error) => thrown.message,
  )

t.test('the newline at the end is removed, and nothing else', async t => {
  const rows: [printed: string, text: string][] = [
    ['sk-1', 'sk-1'],
    ['sk-1\n', 'sk-1'],
    ['sk-1\r\n', 'sk-1'],
    ['sk-1\n\n', 'sk-1\n'],
    [' sk ü ', ' sk ü '],
  ]
  for (const [printed, text] of rows)
    t.equal(await node(`process.stdout.write(process.argv[1])`, printed), text, JSON.stringify(printed))
})

t.test('no shell reads the arguments, and the folder is that of the configuration', async t => {
  t.equal(await node('console.log(process.argv[1])', '$(id); `id` | cat > x'), '$(id); `id` | cat > x')
  t.equal(await run(['cat', 'token.txt']), 'of the folder')
})

t.test('a command gets the environment without the variables of the gateway, and no input', async t => {
  const code = `process.stdin.on('data', () => {}).on('end', () => console.log(JSON.stringify(
    [process.env.ACME, process.env.GATEWAY_MASTER_KEY ?? null])))`
  t.strictSame(JSON.parse(await node(code)), ['variable', null])
})

t.test('a failure says how the command ended, and nothing that it printed', async t => {
  const loud = `console.log('sk-printed'); console.error('sk-printed');`
  const rows: [command: readonly string[], said: string, timeoutMs?: number][] = [
    [[process.execPath, '-e', `${loud} process.exitCode = 3`], 'ended with status 3'],
    [[process.execPath, '-e', `${loud} process.kill(process.pid, 'SIGTERM')`], 'was ended by SIGTERM'],
    [[process.execPath, '-e', `console.log('')`], 'printed nothing'],
    [['true'], 'printed nothing'],
    [[process.execPath, '-e', 'process.stdout.write(Buffer.from([0xff]))'], 'printed something else than UTF-8 text'],
    [[process.execPath, '-e', `process.stdout.write('x'.repeat(65537))`], 'printed more than 65536 bytes'],
    [['yes', 'sk-printed'], 'printed more than 65536 bytes'],
    [['no-such-command-of-ours'], 'cannot be started: it was not found'],
    [[join(folder, 'token.txt')], 'cannot be started: permission denied'],
    [['sleep', '600'], 'took longer than 0.05 s', 50],
  ]
  for (const [command, said, timeoutMs] of rows)
    t.equal(await failure(run(command, timeoutMs)), said, command.join(' ').slice(0, 60))
})

t.test('what a command has started ends with it', async t => {
  writeFileSync(join(folder, 'spawn.sh'), 'sleep 600 &\necho $! > child.pid\nyes\n', { mode: 0o700 })
  t.equal(await failure(run(['sh', 'spawn.sh'])), 'printed more than 65536 bytes')
  const pid = Number(await run(['cat', 'child.pid']))
  const isGone = await run([
    'sh',
    '-c',
    `while kill -0 ${pid} 2>/dev/null && ! grep -q "^State:.Z" /proc/${pid}/status
    do sleep 0.05; done; echo gone`,
  ])
  t.equal(isGone, 'gone')
})
