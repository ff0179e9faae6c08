/** Reads the secrets and files that some commands take besides their options. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { errorCode, Failure, type Io } from './io.ts'
import { readSecret, refuseSecret } from './secrets.ts'
import type { Session } from './session.ts'

/** Arguments of a command by name. */
export type Arguments = Readonly<Record<string, unknown>>

interface Input {
  /** Adds options that no argument has. */
  add?(command: Command): void
  /** The arguments to send for those given. */
  read(given: Arguments, session: Session, command: Command): Arguments | Promise<Arguments>
}

/** Inputs by the command of the admin listener. */
export const inputs: Readonly<Record<string, Input>> = {
  'provider-keys.add': {
    add(command) {
      for (const flag of ['--secret', '--key']) refuseSecret(command, flag, 'write the secret to standard input')
    },
    read: async (given, { io }) => ({ ...given, secret: await readSecret(io, 'provider-keys create …') }),
  },
  'iam.add': {
    add: command => command.addOption(new Option('--pricing-type <kind>').choices(['free', 'paid']).hideHelp()),
    read(given, _, command) {
      if (given.organization === undefined && given.key === undefined) command.error('error: give --org or --key')
      return { ...given, pricing: given.pricing ?? command.opts().pricingType }
    },
  },
  'models.custom.add': {
    read: async (given, { io }) => ({ ...given, manifest: await readManifest(given.manifest, io) }),
  },
}

async function readManifest(path: unknown, io: Io): Promise<string> {
  if (typeof path !== 'string' || path === '-') {
    const text = await io.in?.()
    if (text?.trim()) return text
    throw new Failure('no manifest on standard input; name a file, or redirect one: `< manifest.yaml`')
  }
  try {
    return await readFile(resolve(io.cwd, path), 'utf8')
  } catch (thrown) {
    throw new Failure(`cannot read ${path} (${errorCode(thrown)})`)
  }
}
