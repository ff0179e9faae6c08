/** `gatewayctl keys`. */
import type { Command } from 'commander'
import type { KeyRecord } from '../core/ports.ts'
import type { Open } from './session.ts'
import { facts, table } from './table.ts'

type NewKey = KeyRecord & { readonly key: string }
type ListedKey = KeyRecord & { readonly spent: string }

const showNew = (key: NewKey): string =>
  `${facts([
    ['key', key.key],
    ['id', key.id],
    ['name', key.name],
    ['project', key.project],
    ['expires', key.expiresAt ?? 'never'],
  ])}The key is shown only this once.\n`

const showList = (keys: readonly ListedKey[]): string =>
  keys.length === 0
    ? 'no keys; make one with `gatewayctl keys create --project default`\n'
    : table(
        ['id', 'name', 'project', 'key', 'status', 'spent USD', 'created', 'expires'],
        keys.map(key => [
          key.id,
          key.name,
          key.project,
          key.preview,
          key.status,
          key.spent,
          key.createdAt.slice(0, 10),
          key.expiresAt?.slice(0, 10) ?? 'never',
        ]),
      )

export function addKeys(program: Command, open: Open): void {
  const keys = program.command('keys').description('API keys')

  keys
    .command('create')
    .description('make a key and show its secret, once')
    .requiredOption('--project <project>', 'id or name of the project')
    .option('--name <name>', 'what the key is for')
    .option('--expires <time>', 'end of the key from now on: 12h, 30d, 52w (default: never)')
    .action(async ({ project, name, expires }, command) => {
      const { admin, print } = open(command)
      print(await admin.command<NewKey>('keys.create', { project, name, expires }), showNew)
    })

  keys
    .command('list')
    .description('list keys; secrets are never shown')
    .option('--project <project>', 'only those of this project')
    .action(async ({ project }, command) => {
      const { admin, print } = open(command)
      print(await admin.command<ListedKey[]>('keys.list', { project }), showList)
    })

  keys
    .command('revoke')
    .description('end a key at once')
    .argument('<id>', 'id of the key')
    .action(async (id, _, command) => {
      const { admin, print } = open(command)
      print(await admin.command<KeyRecord>('keys.revoke', { id }), key => `revoked ${key.id} (${key.name})\n`)
    })

  keys
    .command('roll')
    .description('end a key and make its successor, whose secret is shown once')
    .argument('<id>', 'id of the key')
    .action(async (id, _, command) => {
      const { admin, print } = open(command)
      print(await admin.command<NewKey>('keys.roll', { id }), showNew)
    })
}
