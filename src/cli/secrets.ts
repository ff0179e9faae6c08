/** Secrets come from the environment, a file or standard input: arguments are visible in the process list. */
import { type Command, Option } from 'commander'
import { Failure, type Io } from './io.ts'

const SEEN = 'every user of this machine can see the arguments of a process'

/** Reads the secret from standard input; throws a Failure that shows `usage` when there is none. */
export async function readSecret(io: Io, usage: string): Promise<string> {
  const secret = (await io.in?.())?.trim()
  if (secret) return secret
  throw new Failure(`no secret on standard input; write it there: \`gatewayctl ${usage} < file\``)
}

/** Refuses `flag`, which other tools have, and says what to use instead. Does not repeat its value. */
export function refuseSecret(command: Command, flag: string, fix: string): Command {
  const refuse = (): never => command.error(`error: ${flag} takes no secret, because ${SEEN}; ${fix}`)
  return command.addOption(new Option(`${flag} <secret>`).hideHelp().argParser(refuse))
}

/** A secret of the gateway, which the id of a client is not, by itself or as the value of an option. */
const API_KEY = /^(?:--[\w-]+=)?(?:mgw_(?!cl_)|ek_)[\w-]{24,}$/

/** Refuses an API key in any argument, such as in place of its id. */
export function refuseKeys(program: Command, args: readonly string[]): void {
  const at = args.findIndex(arg => API_KEY.test(arg))
  if (at < 0) return
  const fix = 'name a key by its id, and give chat its key in GATEWAY_API_KEY or with --key-stdin'
  program.error(`error: argument ${at + 1} is an API key, but ${SEEN}; ${fix}`)
}
