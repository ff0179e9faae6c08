/** `gatewayctl`: the operator's command line. */
import { Command, CommanderError } from 'commander'
import { version } from '../app/version.ts'
import { addChat } from './chat.ts'
import { addFamily } from './commands.ts'
import { addCompletion, COMPLETE, complete } from './complete.ts'
import { addDoctor } from './doctor.ts'
import { exitCode } from './exit-codes.ts'
import { addImage } from './image.ts'
import { addImport } from './import.ts'
import { CheckFailed, Exited, Failure, type Io, oneLine } from './io.ts'
import { addLaunch } from './launch.ts'
import { addModelsCheck, addModelsSync, addOperation } from './operation.ts'
import { addRequests } from './requests.ts'
import { refuseKeys, refuseSecret } from './secrets.ts'
import { type Open, openSession } from './session.ts'
import { addSpeak } from './speak.ts'
import { addCopy, addStores } from './stores.ts'
import { addTranscribe } from './transcribe.ts'
import { addVideo } from './video.ts'

type Add = (program: Command, open: Open) => void

/** Families of commands of the admin listener, and those made by hand, in the order of the help. */
const families: readonly (string | Add)[] = [
  ...['orgs', 'projects', 'members', 'keys', 'oauth', 'credits', 'plans', 'status', 'nodes', addOperation],
  ...['providers', 'models.list', addModelsCheck, addModelsSync, 'models.custom', 'explain'],
  ...['provider-keys', 'iam', 'compliance', 'route', 'videos', 'jobs', 'usage', addRequests, 'audit'],
  ...[addChat, addLaunch, addImport, addImage, addSpeak, addTranscribe, addVideo],
  ...[addCompletion, addStores, addCopy, addDoctor],
]

/** All commands, on this terminal. */
export function buildProgram(io: Io): Command {
  const program = new Command('gatewayctl')
    .description('Operates a running Model Gateway through its admin listener.')
    .version(version)
    .option(
      '--admin <url>',
      'the admin listener (GATEWAY_ADMIN; default: server.admin of --config, else the address beside the token)',
    )
    .option(
      '--token-file <file>',
      'the file of the admin token (default: GATEWAY_ADMIN_TOKEN, the one of --config, of GATEWAY_DATA or ./data)',
    )
    .option(
      '--config <file>',
      'the configuration file (GATEWAY_CONFIG; default ./config/gateway.yaml, else the packaged one)',
    )
    .option('--json', 'print one JSON value and nothing else')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ writeOut: io.out, writeErr: io.err })
    .exitOverride()
  refuseSecret(program, '--token', 'set GATEWAY_ADMIN_TOKEN, or name its file with --token-file')
  const open = openSession(io)
  for (const family of families) {
    if (typeof family === 'string') addFamily(program, open, family)
    else family(program, open)
  }
  return program
}

/** Runs one command line; resolves with the exit code. */
export async function run(args: readonly string[], io: Io): Promise<number> {
  const program = buildProgram(io)
  try {
    if (args[0] === COMPLETE) await complete(program, args.slice(1), io)
    else {
      refuseKeys(program, args)
      await program.parseAsync(args, { from: 'user' })
    }
    return exitCode.done
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? exitCode.done : exitCode.usage
    if (thrown instanceof CheckFailed) return exitCode.failed
    if (thrown instanceof Exited) return thrown.code
    const message = oneLine(thrown)
    if (program.opts().json) {
      const error = (thrown instanceof Failure && thrown.body) || { message }
      io.out(`${JSON.stringify({ error }, null, 2)}\n`)
    }
    io.err(`${message}\n`)
    return exitCode.failed
  }
}
