/** `gatewayctl provider-keys`. */
import type { Command } from 'commander'
import type { ProviderKeyRecord, Reencryption } from '../core/ports.ts'
import { Failure, type Io } from './io.ts'
import type { Open } from './session.ts'
import { facts, table } from './table.ts'

const showList = (keys: readonly ProviderKeyRecord[]): string =>
  keys.length === 0
    ? 'no provider keys; add one with `gatewayctl provider-keys add --org O --provider ID < secret`\n'
    : table(
        ['id', 'organization', 'provider', 'label', 'fingerprint', 'master key', 'created'],
        keys.map(key => [
          key.id,
          key.organization,
          key.provider,
          key.label,
          key.fingerprint,
          key.keyVersion,
          key.createdAt.slice(0, 10),
        ]),
      )

const showReencryption = ({ reencrypted, unreadable, keyVersion }: Reencryption): string =>
  facts([
    ['encrypted anew', reencrypted],
    ['master key', keyVersion],
    ['unreadable', unreadable.join(', ')],
  ])

/** A secret as an argument would stand in the list of processes. */
async function readSecret(io: Io): Promise<string> {
  const secret = (await io.in?.())?.trim()
  if (secret) return secret
  throw new Failure('no secret on standard input; write it there: `gatewayctl provider-keys add … < file`')
}

export function addProviderKeys(program: Command, open: Open): void {
  const keys = program.command('provider-keys').description("organizations' own keys for providers")

  keys
    .command('add')
    .description('keep a key for a provider; its secret is read from standard input and never shown')
    .requiredOption('--org <organization>', 'id or name of the organization')
    .requiredOption('--provider <id>', 'id of the provider')
    .option('--label <label>', 'what the key is called in the routing of answers')
    .action(async ({ org, provider, label }, command) => {
      const { admin, print, io } = open(command)
      const secret = await readSecret(io)
      const record = await admin.command<ProviderKeyRecord>('provider-keys.add', {
        organization: org,
        provider,
        label,
        secret,
      })
      print(record, key => `kept ${key.id} (${key.label}) for ${key.provider}, fingerprint ${key.fingerprint}\n`)
    })

  keys
    .command('list')
    .description('list keys by their fingerprints; secrets are never shown')
    .option('--org <organization>', 'only those of this organization')
    .action(async ({ org }, command) => {
      const { admin, print } = open(command)
      print(await admin.command<ProviderKeyRecord[]>('provider-keys.list', { organization: org }), showList)
    })

  keys
    .command('remove')
    .description('forget a key')
    .argument('<id>', 'id of the key')
    .option('--org <organization>', 'only if it is a key of this organization')
    .action(async (id, { org }, command) => {
      const { admin, print } = open(command)
      const removed = await admin.command<ProviderKeyRecord>('provider-keys.remove', { id, organization: org })
      print(removed, key => `removed ${key.id} (${key.label}) for ${key.provider}\n`)
    })

  keys
    .command('reencrypt')
    .description('keep all keys under the newest master key; may be repeated when it was cut short')
    .option('--new-key', 'make a new master key first (where the keys are in the file beside the database)')
    .action(async ({ newKey }, command) => {
      const { admin, print } = open(command)
      print(await admin.command<Reencryption>('provider-keys.reencrypt', { newKey }), showReencryption)
    })
}
