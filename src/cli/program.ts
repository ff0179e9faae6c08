/** `gatewayctl`: the operator's command line. */
import { Command, CommanderError } from 'commander'
import { version } from '../app/version.ts'
import { addAudit } from './audit.ts'
import { addCatalogue } from './catalogue.ts'
import { addChat } from './chat.ts'
import { addCompliance } from './compliance.ts'
import { addCredits, addPlans } from './credits.ts'
import { addCustomModels } from './custom-models.ts'
import { addIam } from './iam.ts'
import { addImage } from './image.ts'
import { CheckFailed, Exited, Failure, type Io, oneLine } from './io.ts'
import { addJobs } from './jobs.ts'
import { addKeys } from './keys.ts'
import { addLaunch } from './launch.ts'
import { addMembers } from './members.ts'
import { addOAuth } from './oauth.ts'
import { addOperation } from './operation.ts'
import { addOrganizations, addProjects } from './organizations.ts'
import { addProviderKeys } from './provider-keys.ts'
import { addRoute } from './route.ts'
import { refuseKeys, refuseSecret } from './secrets.ts'
import { openSession } from './session.ts'
import { addSpeak } from './speak.ts'
import { addTranscribe } from './transcribe.ts'
import { addUsage } from './usage.ts'
import { addVideo } from './video.ts'

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
  addOrganizations(program, open)
  addProjects(program, open)
  addMembers(program, open)
  addKeys(program, open)
  addOAuth(program, open)
  addCredits(program, open)
  addPlans(program, open)
  addOperation(program, open)
  addCatalogue(program, open)
  addProviderKeys(program, open)
  addIam(program, open)
  addCompliance(program, open)
  addCustomModels(program, open)
  addRoute(program, open)
  addJobs(program, open)
  addUsage(program, open)
  addAudit(program, open)
  addChat(program, open)
  addLaunch(program, open)
  addImage(program, open)
  addSpeak(program, open)
  addTranscribe(program, open)
  addVideo(program, open)
  return program
}

/** Runs one command line; resolves with the exit code: 0 done, 1 refused or failed, 2 wrong use. */
export async function run(args: readonly string[], io: Io): Promise<number> {
  const program = buildProgram(io)
  try {
    refuseKeys(program, args)
    await program.parseAsync(args, { from: 'user' })
    return 0
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2
    if (thrown instanceof CheckFailed) return 1
    if (thrown instanceof Exited) return thrown.code
    const message = oneLine(thrown)
    if (program.opts().json) {
      const error = (thrown instanceof Failure && thrown.body) || { message }
      io.out(`${JSON.stringify({ error }, null, 2)}\n`)
    }
    io.err(`${message}\n`)
    return 1
  }
}
