/**
 * Every block that README and docs print is checked or runs: YAML by the loader, JSON by its parser, commands against
 * what there is, `curl` against a gateway of the packaged configuration. `<!-- not run: why -->` before a block leaves
 * it out.
 */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Command } from 'commander'
import { transform } from 'esbuild'
import t, { type Test } from 'tap'
import { parse, stringify } from 'yaml'
import { readCatalog } from '../../src/app/check.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { Child } from '../helpers/child.ts'
import { root } from '../helpers/sources.ts'

interface Block {
  readonly place: string
  readonly language: string
  readonly text: string
  /** Why it is left out. */
  readonly unrun: string | undefined
}

const pages = ['README.md', ...readdirSync(join(root, 'docs')).map(name => `docs/${name}`)].filter(name =>
  name.endsWith('.md'),
)
const textOf = (page: string): string => readFileSync(join(root, page), 'utf8')
const BLOCK = /(?:^ *<!-- not run: ([^>]+) -->\n\n?)?^( *)```(\w*)\n(.*?)^ *```$/gms

const blocks: Block[] = pages.flatMap(page => {
  const all = textOf(page)
  return [...all.matchAll(BLOCK)].map(([, unrun, indent = '', language = '', text = ''], n) => ({
    place: `${page}, block ${n + 1}`,
    language,
    text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    unrun,
  }))
})
const running = blocks.filter(({ unrun }) => unrun === undefined)

const folder = async (t: Pick<Test, 'teardown'>): Promise<string> => {
  const made = await mkdtemp(join(tmpdir(), 'printed-'))
  t.teardown(() => rm(made, { recursive: true, force: true }))
  return made
}

const ROUTED = { models: './models.d', providers: '../providers.d', routes: './routes.d' }
/** A provider that pages of routes name. */
const claude = {
  provider: 'claude',
  name: 'Claude',
  base_url: 'https://claude.example/v1',
  auth: { scheme: 'bearer', secret: 'sk-any' },
  wires: { chat: 'anthropic.messages' },
  models: [{ model: 'second', id: 'second-1', pricing: { prompt: '1', completion: '1' } }],
}

/** Loads a file, or a part of `gateway.yaml`, over the packaged catalogue. */
async function loaded(t: Test, text: string): Promise<void> {
  const dir = await folder(t)
  const shipped = parse(textOf('config/gateway.yaml')) as object
  const values = parse(text) as Record<string, unknown>
  const files: Record<string, string> = { 'config/gateway.yaml': stringify(shipped) }
  const isRoutes = 'virtual_models' in values || 'rules' in values
  if ('provider' in values) files['providers.d/printed.yaml'] = text
  else if ('models' in values || 'aliases' in values) files['config/models.d/printed.yaml'] = text
  else if (isRoutes) {
    files['config/routes.d/printed.yaml'] = text
    files['config/gateway.yaml'] = stringify({ ...shipped, catalog: { extends: 'packaged', ...ROUTED } })
    files['providers.d/claude.yaml'] = stringify(claude)
  } else files['config/gateway.yaml'] = stringify({ ...shipped, ...values })
  const models = ['acme-large', 'first', 'second', 'third'].map(id => {
    return { id, name: id, family: 'acme', input: ['text', 'image'], output: ['text'] }
  })
  files['config/models.d/acme.yaml'] = stringify({ models })
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, name)), { recursive: true })
    await writeFile(join(dir, name), text)
  }
  await readCatalog(join(dir, 'config/gateway.yaml'))
}

/** A gateway of the packaged configuration, as the start without any file makes it. */
async function start() {
  const cwd = await folder(t)
  const env = { HOME: cwd, PORT: '0', GATEWAY_ADMIN_LISTEN: '127.0.0.1:0', GATEWAY_READY_FD: '3' }
  const child = new Child(join(root, 'bin/gateway.js'), [], { env, cwd, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  const { listen, key } = JSON.parse(await child.firstLine(3, READY_MS)) as { listen: string; key: string }
  return { cwd, listen, key }
}
const READY_MS = 20_000
let started: ReturnType<typeof start> | undefined

/** Runs a block as a script; any status of an error fails it. */
async function run(text: string): Promise<void> {
  started ??= start()
  const { cwd, listen, key } = await started
  const script = text.replaceAll('127.0.0.1:8080', listen).replaceAll(/\bcurl /g, 'curl -sS --fail-with-body ')
  const env = { PATH: process.env.PATH, HOME: cwd, KEY: key }
  await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { cwd, env, timeout: 60_000 })
}

const program = buildProgram({ env: {}, cwd: '.', out() {}, err() {} })

/** What is wrong with the words behind `gatewayctl`; undefined for nothing. */
function faultOf(line: string): string | undefined {
  const [words = ''] = line.split(/ --(?= |$)| [<>|#] |&&|…/)
  let at: Command = program
  let takesValue = false
  for (const word of words.match(/"[^"]*"|\S+/g) ?? []) {
    if (takesValue) {
      takesValue = false
      continue
    }
    if (word.startsWith('-')) {
      const option = [...at.options, ...program.options].find(({ long, short }) => [long, short].includes(word))
      if (!option && word !== '--help') return `${at.name()} has no option ${word}`
      takesValue = option?.required ?? false
      continue
    }
    const next = at.commands.find(command => [command.name(), ...command.aliases()].includes(word))
    if (next) at = next
    else if (at.registeredArguments.length === 0) return `${at.name()} has no command ${word}`
  }
  return undefined
}

const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> }
/** Commands of the project that a test does not repeat, but that must exist. */
const known: readonly (readonly [RegExp, (name: string) => boolean])[] = [
  [/^npm (?:run )?([\w:]+)/, name => name === 'ci' || name === 'pack' || Object.hasOwn(scripts, name)],
  [/^node (\S+)/, path => existsSync(join(root, path))],
  [/^(?:\w+=\S+ )?npx (model-gateway)\b/, () => true],
]

/** Checks a block without a language: commands of the shell. */
async function checkCommands(t: Test, { place, text }: Block): Promise<void> {
  if (/\bcurl /.test(text)) {
    await t.resolves(run(text), place)
    return
  }
  const lines = text.replaceAll(/\\\n/g, '').split('\n').filter(Boolean)
  for (const line of lines.flatMap(line => line.replace(/ +#.*/, '').split(/ && /))) {
    const command = /^(?:npx )?gatewayctl (.*)/.exec(line)?.[1]
    if (command !== undefined) t.equal(faultOf(command), undefined, `${place}: ${line}`)
    else {
      const found = known.some(([pattern, exists]) => exists(pattern.exec(line)?.[1] ?? ''))
      t.ok(found, `${place}: "${line}" is a command of the project, or the block says why it is not run`)
    }
  }
}

/** Checks a script for a machine of its own: its syntax, files of the project that it names, and commands of `gatewayctl`. */
async function checkScript(t: Test, { place, text }: Block): Promise<void> {
  await t.resolves(promisify(execFile)('bash', ['-n', '-c', text]), place)
  for (const [, made, path] of text.matchAll(/(-keyout |-out |> |-p )?(?<![\w/])(deploy\/[\w./-]+)/g)) {
    // `kubectl exec deploy/gateway-…` names a deployment.
    const isMade = made !== undefined || path!.startsWith('deploy/gateway-')
    if (!isMade) t.ok(existsSync(join(root, path!)), `${place}: there is ${path}`)
  }
  for (const [, words] of text.replaceAll(/\\\n/g, '').matchAll(/\bgatewayctl ([^\n#|>]+)/g)) {
    t.equal(faultOf(words!.trim()), undefined, `${place}: gatewayctl ${words}`)
  }
}

const syntax: Readonly<Record<string, (t: Test, block: Block) => Promise<unknown>>> = {
  '': checkCommands,
  sh: checkScript,
  yaml: (t, { place, text }) => t.resolves(loaded(t, text), place),
  json: async (t, { place, text }) => t.doesNotThrow(() => JSON.parse(text), place),
  // A value on each line, with a comment behind it.
  jsonc: async (t, { place, text }) => {
    for (const line of text.trim().split('\n')) t.doesNotThrow(() => JSON.parse(line.replace(/ \/\/.*/, '')), place)
  },
  js: (t, { place, text }) => t.resolves(transform(text, { loader: 'ts' }), place),
}

for (const page of pages.filter(page => running.some(({ place }) => place.startsWith(page)))) {
  t.test(`the blocks of ${page} are what they say`, async t => {
    for (const block of running.filter(({ place }) => place.startsWith(page))) {
      const check = syntax[block.language]
      if (check) await check(t, block)
      else t.fail(`${block.place}: no check for ${block.language}; say before it why it is not run`)
    }
  })
}

t.test('most blocks run, and each that does not says why', t => {
  const unrun = blocks.filter(({ unrun }) => unrun !== undefined)
  t.ok(unrun.length <= blocks.length / 3, unrun.map(({ place, unrun }) => `${place}: ${unrun}`).join('\n'))
  t.end()
})

t.test('commands within sentences exist', t => {
  for (const page of pages) {
    for (const [, line] of textOf(page).matchAll(/`(?:npx )?gatewayctl ([^`]+)`/g)) {
      t.equal(faultOf(line!.replaceAll('\n', ' ')), undefined, `${page}: gatewayctl ${line}`)
    }
  }
  t.end()
})
