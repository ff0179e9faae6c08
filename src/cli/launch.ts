/** `gatewayctl launch`: an agent's command line on this gateway, with a key of its own for as long as it runs. */
import { Argument, type Command } from 'commander'
import type { ShownKey } from '../admin/commands/keys.ts'
import { Exited, errorCode, Failure, oneLine } from './io.ts'
import { type Launch, type ToolName, tools } from './launch-tools.ts'
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

/** In place of a key, which only a tool that runs gets. */
const NO_KEY = 'mgw_YOUR_KEY'

export function addLaunch(program: Command, open: Open): void {
  program
    .command('launch')
    .description("start an agent's command line on this gateway; its key is removed when it ends")
    .addArgument(new Argument('<tool>', 'what to start').choices(Object.keys(tools)))
    .argument('[args...]', 'arguments of the tool, behind --')
    .option('--model <model>', 'model, or provider/model (default: as the tool chooses)')
    .option('--project <project>', 'the project that pays', 'default')
    .option('--expires <time>', 'end of the key, should it not be removed', '12h')
    .option('--url <url>', 'the public listener (default: asked of the admin listener)')
    .option('--print', 'show the settings instead, for a key of your own')
    .action(async (name: ToolName, args: readonly string[], options: LaunchOptions, command: Command) => {
      const session = open(command)
      const url = await publicBase(options.url, session)
      const launchWith = (key: string): Launch => tools[name].launch({ url, key, model: options.model })
      if (options.print) {
        session.print({ ...launchWith(NO_KEY) }, shell)
        return
      }
      const { admin, io } = session
      if (!io.run) throw new Failure('nothing can be started here')
      const { project, expires } = options
      const { id, key } = await admin.command<NewKey>('keys.create', { project, expires, name: `launch ${name}` })
      let code: number
      try {
        const { command, args: own, env } = launchWith(key)
        code = await io.run(command, [...own, ...args], { ...io.env, ...env })
      } catch (thrown) {
        if (errorCode(thrown) !== 'ENOENT') throw thrown
        throw new Failure(`there is no command "${name}"; install it: npm install -g ${tools[name].npm}`)
      } finally {
        await remove(id, expires, session)
      }
      if (code !== 0) throw new Exited(code)
    })
}

async function remove(id: string, expires: string, { admin, io }: Session): Promise<void> {
  try {
    await admin.command('keys.revoke', { id })
  } catch (thrown) {
    io.err(`the key ${id} ends within ${expires}; it could not be removed at once: ${oneLine(thrown)}\n`)
  }
}

/** Lines for a shell. */
const shell = ({ command, args, env }: Launch): string =>
  `${Object.entries(env)
    .map(([name, value]) => `export ${name}=${quoted(value)}\n`)
    .join('')}${[command, ...args].map(quoted).join(' ')}\n`

const quoted = (text: string): string => (/^[\w./:@=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)
