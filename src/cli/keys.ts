/** `gatewayctl keys`. */
import { type Command, Option } from 'commander'
import type { ShownKey } from '../admin/commands/keys.ts'
import { addLimitOptions, showLimits } from './limits.ts'
import { every } from './pages.ts'
import type { Open } from './session.ts'
import { facts, table } from './table.ts'

type NewKey = ShownKey & { readonly key: string }

const showNew = (key: NewKey): string =>
  `${facts([
    ['key', key.key],
    ['id', key.id],
    ['name', key.name],
    ['project', key.project],
    ['expires', key.expiresAt ?? 'never'],
    ...(key.limits.length > 0 ? [['limits', showLimits(key.limits)] as const] : []),
  ])}The key is shown only this once.\n`

const showList = (keys: readonly ShownKey[]): string =>
  keys.length === 0
    ? 'no keys; create one with `gatewayctl keys create --project default`\n'
    : table(
        ['id', 'name', 'project', 'key', 'status', 'spent USD', 'limits USD', 'created', 'expires'],
        keys.map(key => [
          key.id,
          key.name,
          key.project,
          key.preview,
          key.status,
          key.spent,
          showLimits(key.limits),
          key.createdAt.slice(0, 10),
          key.expiresAt?.slice(0, 10) ?? 'never',
        ]),
      )

/** Adds `keys create`, `list`, `update`, `revoke` and `roll`. */
export function addKeys(program: Command, open: Open): void {
  const keys = program.command('keys').description('API keys')

  addLimitOptions(
    keys
      .command('create')
      .alias('add')
      .description('create a key and show its secret, once')
      .requiredOption('--project <project>', 'id or name of the project')
      .option('--name <name>', 'purpose of the key')
      .option('--expires <time>', 'lifetime of the key: 12h, 30d, 52w (default: unlimited; 15m for a session)')
      .addOption(new Option('--kind <kind>', 'kind of key').choices(['key', 'publishable', 'session']))
      .option('--created-by <member>', 'address of the member who owns the key'),
  ).action(async (options, command) => {
    const { admin, print } = open(command)
    print(await admin.command<NewKey>('keys.create', options), showNew)
  })

  keys
    .command('list')
    .description('list keys; secrets are never shown')
    .option('--project <project>', 'only those of this project')
    .action(async ({ project }, command) => {
      const { admin, print } = open(command)
      print(await every<ShownKey>(admin, 'keys.list', { project }), showList)
    })

  addLimitOptions(
    keys
      .command('update')
      .description('change a key; omitted options stay unchanged')
      .argument('<id>', 'id of the key')
      .option('--name <name>', 'purpose of the key')
      .option('--expires <time>', 'lifetime of the key from now on: 12h, 30d, 52w, or never'),
    'amount in USD, or none to remove the limit',
  ).action(async (id, options, command) => {
    const { admin, print } = open(command)
    print(await admin.command<ShownKey>('keys.update', { id, ...options }), key => showList([key]))
  })

  keys
    .command('revoke')
    .description('revoke a key at once')
    .argument('<id>', 'id of the key')
    .action(async (id, _, command) => {
      const { admin, print } = open(command)
      print(await admin.command<ShownKey>('keys.revoke', { id }), key => `revoked ${key.id} (${key.name})\n`)
    })

  keys
    .command('roll')
    .description('revoke a key and create its successor, whose secret is shown once')
    .argument('<id>', 'id of the key')
    .action(async (id, _, command) => {
      const { admin, print } = open(command)
      print(await admin.command<NewKey>('keys.roll', { id }), showNew)
    })
}
