/** `gatewayctl provider-keys`. */
import type { Command } from 'commander'
import type { ChangedProviderKey, ShownProviderKey } from '../admin/commands/provider-keys.ts'
import type { Reencryption, SealedKind } from '../core/ports.ts'
import { addLimitOptions, showLimits } from './limits.ts'
import { listOf, listOrAll } from './lists.ts'
import { every } from './pages.ts'
import { readSecret, refuseSecret } from './secrets.ts'
import { type Open, warnUnknown } from './session.ts'
import { facts, table } from './table.ts'

const showList = (keys: readonly ShownProviderKey[]): string =>
  keys.length === 0
    ? 'no provider keys; add one with `gatewayctl provider-keys create --org O --provider ID < secret`\n'
    : table(
        ['id', 'organization', 'provider', 'label', 'fingerprint', 'models', 'limits USD', 'master key', 'created'],
        keys.map(key => [
          key.id,
          key.organization,
          key.provider,
          key.label,
          key.fingerprint,
          key.models?.join(', ') ?? 'all',
          showLimits(key.limits),
          key.keyVersion,
          key.createdAt.slice(0, 10),
        ]),
      )

const NAMES: Readonly<Record<SealedKind, string>> = {
  provider_keys: 'provider keys',
  responses: 'stored responses',
  realtime_secrets: 'realtime client secrets',
  jobs: 'jobs',
}

const showReencryption = ({ reencrypted, unreadable, keyVersion, kinds }: Reencryption): string =>
  table(
    ['sealed values', 'encrypted anew', 'unreadable'],
    Object.entries(kinds).map(([kind, counts]) => [NAMES[kind as SealedKind], counts.reencrypted, counts.unreadable]),
  ) +
  facts([
    ['encrypted anew', reencrypted],
    ['master key', keyVersion],
    ['unreadable', unreadable.join(', ')],
  ])

/** Adds `provider-keys`; secrets come by standard input alone. */
export function addProviderKeys(program: Command, open: Open): void {
  const keys = program.command('provider-keys').description("organizations' own keys for providers")

  const add = addLimitOptions(
    keys
      .command('create')
      .alias('add')
      .description('add a key for a provider; its secret is read from standard input and never shown')
      .requiredOption('--org <organization>', 'id or name of the organization')
      .requiredOption('--provider <id>', 'id of the provider')
      .option('--label <label>', 'label of the key in the routing of answers')
      .option('--models <list>', 'only for these models: ids, aliases, or provider/model', listOf),
  ).action(async ({ org: organization, ...options }, command) => {
    const session = open(command)
    const { admin, print, io } = session
    const secret = await readSecret(io, 'provider-keys create …')
    const record = await admin.command<ChangedProviderKey>('provider-keys.add', { organization, ...options, secret })
    print(record, key => `kept ${key.id} (${key.label}) for ${key.provider}, fingerprint ${key.fingerprint}\n`)
    warnUnknown(record, session)
  })
  for (const flag of ['--secret', '--key']) refuseSecret(add, flag, 'write the secret to standard input')

  addLimitOptions(
    keys
      .command('update')
      .description('change the models and limits of a key; omitted options stay unchanged')
      .argument('<id>', 'id of the key')
      .option('--org <organization>', 'only if it is a key of this organization')
      .option('--label <label>', 'label of the key in the routing of answers')
      .option('--models <list>', 'only for these models, or all', listOrAll),
    'amount in USD from now on, or none to remove the limit',
  ).action(async (id, { org: organization, ...options }, command) => {
    const session = open(command)
    const record = await session.admin.command<ChangedProviderKey>('provider-keys.update', {
      id,
      organization,
      ...options,
    })
    session.print(record, key => showList([key]))
    warnUnknown(record, session)
  })

  keys
    .command('list')
    .description('list keys by their fingerprints; secrets are never shown')
    .option('--org <organization>', 'only those of this organization')
    .action(async ({ org }, command) => {
      const { admin, print } = open(command)
      print(await every<ShownProviderKey>(admin, 'provider-keys.list', { organization: org }), showList)
    })

  keys
    .command('remove')
    .description('forget a key')
    .argument('<id>', 'id of the key')
    .option('--org <organization>', 'only if it is a key of this organization')
    .action(async (id, { org }, command) => {
      const { admin, print } = open(command)
      const removed = await admin.command<ShownProviderKey>('provider-keys.remove', { id, organization: org })
      print(removed, key => `removed ${key.id} (${key.label}) for ${key.provider}\n`)
    })

  keys
    .command('reencrypt')
    .description('encrypt everything that is sealed under the newest master key; may be repeated after an interruption')
    .option('--new-key', 'create a new master key first (when master keys are in the file beside the database)')
    .action(async ({ newKey }, command) => {
      const { admin, print } = open(command)
      print(await admin.command<Reencryption>('provider-keys.reencrypt', { newKey }), showReencryption)
    })
}
