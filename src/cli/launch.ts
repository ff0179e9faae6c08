/** `gatewayctl launch`: starts an agent's command line on this gateway, with a temporary key. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { Argument, type Command } from 'commander'
import type { ListedModel } from '../admin/commands/catalogue.ts'
import type { ShownKey } from '../admin/commands/keys.ts'
import { abilitiesOf, type Launch, shellLines, type Tool, type ToolName, tools } from '../ui/launch-tools.ts'
import { Exited, errorCode, Failure, oneLine } from './io.ts'
import { publicBase } from './public.ts'
import type { Open, Session } from './session.ts'

interface LaunchOptions {
  readonly model?: string
  readonly project: string
  readonly expires: string
  readonly url?: string
  readonly print?: boolean
}

type NewKey = ShownKey & { readonly key: string }

/** Placeholder: only a tool that is started gets a key. */
const NO_KEY = 'mgw_YOUR_KEY'

/** Adds `launch`, which exits with the code of the tool. */
export function addLaunch(program: Command, open: Open): void {
  program
    .command('launch')
    .description("start an agent's command line on this gateway; its key is removed when it ends")
    .addArgument(new Argument('<tool>', 'tool to start').choices(Object.keys(tools)))
    .argument('[args...]', 'arguments of the tool, after --')
    .option('--model <model>', 'a model, or provider/model (default: auto; claude and gemini: their own)')
    .option('--project <project>', 'the project that pays', 'default')
    .option('--expires <time>', 'lifetime of the key, in case it is not removed', '12h')
    .option('--url <url>', 'the public listener (default: as the admin listener reports it)')
    .option('--print', 'show the settings instead, for a key of your own')
    .action(async (name: ToolName, args: readonly string[], options: LaunchOptions, command: Command) => {
      const session = open(command)
      const url = await publicBase(options.url, session)
      const tool: Tool = tools[name]
      const model = options.model ?? tool.model
      const abilities = abilitiesOf(model, await session.admin.command<readonly ListedModel[]>('models.list'))
      const launchWith = (key: string): Launch => tool.launch({ url, key, model, abilities })
      if (options.print) {
        session.print({ ...launchWith(NO_KEY) }, shellLines)
        return
      }
      const { admin, io } = session
      if (!io.run) throw new Failure('this terminal cannot start commands')
      const { project, expires } = options
      const { id, key } = await admin.command<NewKey>('keys.create', { project, expires, name: `launch ${name}` })
      let code: number
      try {
        const { command, args: own, env, settings } = launchWith(key)
        const start = io.run
        code = await withSettings(settings, more => start(command, [...own, ...args], { ...io.env, ...env, ...more }))
      } catch (thrown) {
        if (errorCode(thrown) !== 'ENOENT') throw thrown
        throw new Failure(`cannot find the command "${name}"; install it: npm install -g ${tool.npm}`)
      } finally {
        await remove(id, expires, session)
      }
      if (code !== 0) throw new Exited(code)
    })
}

/** The file is in the user's home: a tool may distrust a folder that others can write to. */
async function withSettings<T>(
  settings: Launch['settings'],
  run: (env: Readonly<Record<string, string>>) => Promise<T>,
): Promise<T> {
  if (!settings) return run({})
  const folder = await mkdtemp(join(homedir(), '.model-gateway-'))
  try {
    const path = join(folder, 'settings.json')
    await writeFile(path, JSON.stringify(settings.content), { mode: 0o600 })
    return await run({ [settings.variable]: path })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function remove(id: string, expires: string, { admin, io }: Session): Promise<void> {
  try {
    await admin.command('keys.revoke', { id })
  } catch (thrown) {
    io.err(`the key ${id} could not be removed and expires within ${expires}: ${oneLine(thrown)}\n`)
  }
}
