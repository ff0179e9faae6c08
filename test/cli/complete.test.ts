/** `gatewayctl completion` in shells, and the words that it offers. */
import { spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { adminListener } from '../../src/admin/server.ts'
import { run } from '../../src/cli/program.ts'
import type { Log } from '../../src/core/ports.ts'
import { fakeContext, TOKEN } from '../admin/fake.ts'
import { CLOSED_PORT } from '../helpers/upstream.ts'

const log: Log = { debug() {}, info() {}, warn() {}, error() {} }

async function ctl(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  let text = ''
  const out = (content: string | Buffer) => {
    text += content.toString()
  }
  const io = { env, cwd: '/', out, err: () => {} }
  t.equal(await run(args, io), 0, args.join(' '))
  return text
}
const wordsOf = (text: string): string[] => text.split('\n').flatMap(line => (line ? [line.split('\t')[0]!] : []))
const words = async (line: string, env?: Record<string, string>): Promise<string[]> =>
  wordsOf(await ctl(['__complete', ...line.split(' ')], env))

t.test('a command line goes on with commands, options and their values', async t => {
  t.strictSame(await words('ke'), ['keys'])
  t.strictSame(await words('keys r'), ['revoke', 'roll'])
  t.strictSame(await words('--json --config x.yaml keys li'), ['list'], 'behind options of every command')
  t.strictSame(await words('oauth '), ['clients', 'grants'])
  t.strictSame(await words('iam add --pricing '), ['free', 'paid'], 'an alias, and the values of an option')
  t.strictSame(await words('iam add --pricing=f'), ['--pricing=free'])
  t.strictSame(await words('orgs create --acc'), ['--account'])
  t.strictSame(await words('orgs list --js'), ['--json'])
  t.strictSame(await words('launch co'), ['codex'])
  t.notOk((await words('iam add --')).includes('--pricing-type'), 'hidden options are not offered')
  t.strictSame(await words('no such command'), [])
})

t.test('names come from the gateway; without one there are none', async t => {
  const context = fakeContext()
  const listener = await adminListener({ context, token: TOKEN, listen: '127.0.0.1:0', log })
  t.teardown(() => listener.close())
  const env = { GATEWAY_ADMIN: `http://${listener.address}`, GATEWAY_ADMIN_TOKEN: TOKEN }
  const models = await words('chat hello --model ', env)
  t.ok(models.includes('acme-large'), models.join(' '))
  const [key] = await words('keys revoke ', env)
  t.type(key, 'string', 'ids of keys')
  t.strictSame(await words(`keys revoke --admin ${env.GATEWAY_ADMIN} ${key}`, { GATEWAY_ADMIN_TOKEN: TOKEN }), [key])
  t.strictSame(await words('chat hello --model ', { GATEWAY_ADMIN: `http://127.0.0.1:${CLOSED_PORT}` }), [])
})

t.test('a name that a shell would read is not offered', async t => {
  const context = fakeContext()
  const [record] = await context.accounts.listKeys(undefined, {})
  const ids = ['$(reboot)', '`reboot`', 'a b', 'k;x', 'fine:1']
  const listener = await adminListener({
    context: {
      ...context,
      accounts: { ...context.accounts, listKeys: async () => ids.map(id => ({ ...record!, id })) },
    },
    token: TOKEN,
    listen: '127.0.0.1:0',
    log,
  })
  t.teardown(() => listener.close())
  const env = { GATEWAY_ADMIN: `http://${listener.address}`, GATEWAY_ADMIN_TOKEN: TOKEN }
  t.strictSame(await words('usage --key ', env), ['fine:1'])
})

/** A `gatewayctl` that offers two words, and prints the words that it got on standard error. */
const STUB = `#!/bin/sh
[ "$1" = completion ] && exec cat "$SCRIPT"
for word in "$@"; do printf '<%s>' "$word" >>"$GOT"; done
printf 'demo:one\\tthe first\\ndemo:two\\tthe second\\n'
`
const has = (shell: string): boolean => spawnSync(shell, ['--version']).status === 0

for (const [shell, script, got] of [
  [
    'bash',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell's variables
    'source "$SCRIPT"; COMP_LINE="gatewayctl chat --model demo:o"; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(gatewayctl chat --model demo : o); COMP_CWORD=5; _gatewayctl; printf "%s\\n" "${COMPREPLY[@]}"',
    'one\ntwo\n',
  ],
  ['fish', 'source $SCRIPT; complete -C "gatewayctl chat --model demo:o"', 'demo:one\tthe first\n'],
  [
    'zsh',
    'compdef() { :; }; _describe() { print -rl $found; }; source $SCRIPT; words=(gatewayctl chat --model demo:o); CURRENT=4; _gatewayctl',
    'demo\\:one:the first\ndemo\\:two:the second\n',
  ],
] as const) {
  t.test(`the script of ${shell} asks for the words of the line`, { skip: !has(shell) && `no ${shell}` }, async t => {
    const dir = t.testdir({ script: await ctl(['completion', shell]), gatewayctl: STUB })
    chmodSync(join(dir, 'gatewayctl'), 0o755)
    writeFileSync(join(dir, 'got'), '')
    const env = { PATH: `${dir}:${process.env.PATH}`, SCRIPT: join(dir, 'script'), GOT: join(dir, 'got'), HOME: dir }
    const ran = spawnSync(shell, ['-c', script], { env, encoding: 'utf8' })
    t.match([ran.status, ran.stderr], [0, ''])
    t.equal(ran.stdout, got)
    t.match(spawnSync('cat', [env.GOT], { encoding: 'utf8' }).stdout, '<__complete><chat><--model><demo:o>')
  })
}

t.test('each script is a file of its shell', async t => {
  t.match(await ctl(['completion', 'bash']), /complete -o default -F _gatewayctl gatewayctl\n$/)
  t.match(await ctl(['completion', 'zsh']), /^#compdef gatewayctl\n[\s\S]*_describe gatewayctl found/)
  t.match(await ctl(['completion', 'fish']), /complete -c gatewayctl -n __gatewayctl_find -f -a/)
})
