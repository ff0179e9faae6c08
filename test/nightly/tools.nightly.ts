/**
 * The newest coding agents of npm, started by `gatewayctl launch` over every chat wire: files are written and changed, and
 * commands run, two at once. The files are looked at.
 */
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { manifestOf, wires } from '../e2e/matrix/wires.ts'
import { Child } from '../helpers/child.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { type Step, startUpstream } from '../helpers/upstream.ts'
import { npmClients } from './agents/install.ts'

interface Tool {
  readonly npm: string
  /** What `gatewayctl launch` calls it; by default as the row. */
  readonly command?: string
  /** The name of the model of each wire; by default that of the wire. */
  readonly model?: string
  /** Those that it is run over; by default all. */
  readonly wires?: RegExp
  readonly args: readonly string[]
  readonly env?: Record<string, string>
  /** Calls that write `hello.txt` with `first`, change that into `second`, and run a command. */
  write(path: string, text: string): Call
  edit(path: string, from: string, to: string): Call
  run(command: string): Call
}
type Call = NonNullable<Exclude<Step['toolCalls'], 'offered'>>[number]

/** A model of whose abilities `codex` has a list: of others it offers no tool for patches. */
const KNOWN = 'gpt-5.5'
/** Of a model that it does not know it asks for no thinking by itself. */
const EFFORT = ['-c', 'model_reasoning_effort="high"', '-c', 'model_supports_reasoning_summaries=true']
/** Some models take no temperature, which `gemini` sends always. */
const parameters = [
  'max_tokens',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning',
  'reasoning_effort',
  'verbosity',
]
const supports = [...testMapping.supports, 'prompt_cache', 'verbosity']
const PROMPT = 'Write hello.txt, change it, and look at it.'
/** Of a model that it does not know, `codex` offers no tool for patches, but its commands have one. */
const patch = (...lines: string[]) => ['*** Begin Patch', ...lines, '*** End Patch', ''].join('\n')
const added = (text: string) => patch('*** Add File: hello.txt', `+${text}`)
const updated = (from: string, to: string) => patch('*** Update File: hello.txt', '@@', `-${from}`, `+${to}`)
const byTool = (input: string): Call => ({ name: 'apply_patch', input, args: { input } })
const byCommand = (input: string): Call => ({ name: 'exec_command', args: { cmd: `apply_patch <<'EOF'\n${input}EOF` } })
const codex = {
  npm: '@openai/codex',
  args: ['exec', ...EFFORT, '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', PROMPT],
  run: (cmd: string): Call => ({ name: 'exec_command', args: { cmd } }),
}

const tools: Record<string, Tool> = {
  codex: {
    ...codex,
    write: (_, text) => byCommand(added(text)),
    edit: (_, from, to) => byCommand(updated(from, to)),
  },
  'codex, with a model that it knows': {
    ...codex,
    command: 'codex',
    model: KNOWN,
    wires: /^openai/,
    write: (_, text) => byTool(added(text)),
    edit: (_, from, to) => byTool(updated(from, to)),
  },
  claude: {
    npm: '@anthropic-ai/claude-code',
    // It changes calls of `Edit` that it sends back, which the signatures of this upstream then do not fit.
    wires: /^(?!gemini)/,
    args: ['-p', PROMPT, '--allowedTools', 'Write,Edit,Bash'],
    write: (path, content) => ({ name: 'Write', args: { file_path: path, content: `${content}\n` } }),
    edit: (path, from, to) => ({
      name: 'Edit',
      args: { file_path: path, old_string: from, new_string: to },
    }),
    run: command => ({ name: 'Bash', args: { command, description: 'Runs' } }),
  },
  opencode: {
    npm: 'opencode-ai',
    args: ['run', '--title', 'hello', PROMPT],
    write: (path, content) => ({ name: 'write', args: { filePath: path, content: `${content}\n` } }),
    edit: (path, from, to) => ({ name: 'edit', args: { filePath: path, oldString: from, newString: to } }),
    run: command => ({ name: 'bash', args: { command, description: 'Runs' } }),
  },
  gemini: {
    npm: '@google/gemini-cli',
    // It names no effort, without which this model of Bedrock's fake refuses the thoughts that are scripted for it.
    wires: /^(?!bedrock)/,
    args: ['-p', PROMPT, '--approval-mode', 'yolo', '--skip-trust'],
    write: (path, content) => ({ name: 'write_file', args: { file_path: path, content: `${content}\n` } }),
    edit: (path, from, to) => ({
      name: 'replace',
      args: { file_path: path, instruction: 'Changes it', old_string: from, new_string: to },
    }),
    run: command => ({ name: 'run_shell_command', args: { command, description: 'Runs' } }),
  },
}

const installed = await npmClients(
  t,
  'tools',
  Object.values(tools).map(({ npm }) => npm),
)
if (installed) {
  const upstream = await startUpstream(t, { key: upstreamSecret })
  const shipped = (path: string) => readFileSync(join(import.meta.dirname, '../..', path), 'utf8')
  const gateway = await startGateway(t, {
    // What `auto` means here.
    files: {
      'providers.d/demo.yaml': shipped('providers.d/demo.yaml'),
      'config/models.d/demo.yaml': shipped('config/models.d/demo.yaml'),
    },
    providers: Object.fromEntries(
      wires.map(wire => {
        const { models, ...rest } = manifestOf(wire, upstream, wire.id, [wire.id, KNOWN])
        return [wire.id, { ...rest, models: (models as object[]).map(model => ({ ...model, parameters, supports })) }]
      }),
    ),
  })
  const bin = join(import.meta.dirname, '../../bin/gatewayctl.js')
  const chosen = process.env.TOOLS_ONLY?.split(',')

  for (const [name, tool] of Object.entries(tools)) {
    for (const { wire, id } of wires) {
      if (tool.wires?.test(wire) === false) continue
      if (chosen && !chosen.includes(tool.command ?? name) && !chosen.includes(`${name}/${id}`)) continue
      t.test(`${name} over ${wire}: files are written and changed, and commands run`, async t => {
        const home = await mkdtemp(join(homedir(), '.tools-'))
        t.teardown(() => rm(home, { recursive: true, force: true }))
        const cwd = join(home, 'work')
        await mkdir(cwd)
        const path = join(cwd, 'hello.txt')
        // A call of a custom tool exists on this wire alone.
        const made = ({ input, ...call }: Call): Call =>
          input !== undefined && wire === 'openai.responses' ? { name: call.name, input } : call
        const turns = [
          [tool.write(path, 'hello wörld')],
          [tool.edit(path, 'hello wörld', 'hello 🙂')],
          [tool.run('cat hello.txt > one.txt'), tool.run('wc -l < hello.txt > two.txt')],
        ]
        const steps: Step[] = turns.map((calls, i) => ({ reasoning: `Thought ${i}`, toolCalls: calls.map(made) }))
        await upstream.reset()
        await upstream.script(id, [...steps, { text: 'All is done.' }])
        const place = ['--admin', gateway.adminUrl, '--config', gateway.configPath, 'launch', tool.command ?? name]
        const args = [
          ...place,
          '--url',
          gateway.url,
          '--model',
          tool.model ? `${id}/${tool.model}` : id,
          '--',
          ...tool.args,
        ]
        const env = { PATH: installed.path, HOME: home, ...tool.env }
        const ctl = new Child(bin, args, { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] })
        t.equal(await ctl.exited, 0, 'it ends well')
        const read = (file: string) => readFile(join(cwd, file), 'utf8').catch((thrown: Error) => thrown.message)
        const seen = { hello: await read('hello.txt'), one: await read('one.txt'), two: (await read('two.txt')).trim() }
        t.strictSame(seen, { hello: 'hello 🙂\n', one: 'hello 🙂\n', two: '1' }, 'the files')
        t.match(ctl.stdout, 'All is done.')
        const requests = await upstream.record(id)
        // Names of its betas that the provider does not know are left out when the request is sent again.
        const refused = requests.flatMap(({ refused }) => refused ?? [])
        t.strictSame(
          refused.filter(({ message }) => !message.includes('anthropic-beta')),
          [],
          'no provider refuses what it is sent',
        )
        if (!t.passing()) {
          console.error(
            ctl.stdout.slice(-3000),
            ctl.stderr.slice(-3000),
            JSON.stringify(requests.at(-1)?.body ?? null).slice(-3000),
          )
        }
      })
    }
  }
  for (const [name, tool] of Object.entries(tools).filter(([, { command }]) => command === undefined)) {
    if (chosen && !chosen.includes(name)) continue
    t.test(`${name} starts with the model that launch gives it`, async t => {
      const home = await mkdtemp(join(homedir(), '.tools-'))
      t.teardown(() => rm(home, { recursive: true, force: true }))
      // The models of claude and gemini are their vendors', which this gateway has no credential for.
      const model = ['claude', 'gemini'].includes(name) ? ['--model', 'demo'] : []
      const place = ['--admin', gateway.adminUrl, '--config', gateway.configPath]
      const args = [...place, 'launch', name, '--url', gateway.url, ...model, '--', ...tool.args]
      const env = { PATH: installed.path, HOME: home, ...tool.env }
      const ctl = new Child(bin, args, { env, cwd: home, stdio: ['ignore', 'pipe', 'pipe'] })
      t.equal(await ctl.exited, 0, ctl.stderr.slice(-2000))
    })
  }
  t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
}
