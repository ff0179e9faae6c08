/** `gatewayctl oauth`, and `members login-link`. */
import type { Command } from 'commander'
import type { ClientRecord, GrantRecord, LoginCodeRecord } from '../core/ports.ts'
import { every, everyBy } from './pages.ts'
import type { Open } from './session.ts'
import { facts, table } from './table.ts'

type Login = LoginCodeRecord & { readonly code: string; readonly url: string }
interface NewClient {
  readonly clientId: string
  readonly clientSecret: string
  readonly name: string
  readonly key: string
  readonly scope: string
}

const showClients = (clients: readonly ClientRecord[]): string =>
  clients.length === 0
    ? 'no clients; programs register themselves when somebody connects them\n'
    : table(
        ['id', 'name', 'redirects to', 'key', 'created', 'used'],
        clients.map(({ clientId, name, redirectUris, key, createdAt, usedAt }) => [
          clientId,
          plain(name),
          redirectUris.join(', '),
          key ?? '',
          createdAt.slice(0, 10),
          usedAt?.slice(0, 10) ?? 'never',
        ]),
      )

const showGrants = (grants: readonly GrantRecord[]): string =>
  grants.length === 0
    ? 'no grants in force\n'
    : table(
        ['id', 'client', 'key', 'member', 'scope', 'created', 'used'],
        grants.map(({ id, clientName, key, member, scope, createdAt, lastUsedAt }) => [
          id,
          plain(clientName),
          key,
          member ?? '',
          scope,
          createdAt.slice(0, 10),
          lastUsedAt?.slice(0, 10) ?? 'never',
        ]),
      )

/** Strangers name clients: nothing of it may turn a line of a terminal round. */
const plain = (name: string): string => name.replace(/[\p{Cc}\p{Cf}]/gu, '')

const showLogin = ({ code, url, member, project, expiresAt }: Login): string =>
  `${facts([
    ['code', code],
    ['member', member],
    ['project', project],
    ['expires', expiresAt],
    ['how to connect', url],
  ])}The code is shown only this once, and good for one sign-in. It is pasted into the page that the program opens.\n`

/** Adds `login-link` to `members`. */
export function addLoginLink(members: Command, open: Open): void {
  members
    .command('login-link')
    .description('make a one-time code by which a member signs a program in')
    .argument('<member>', 'address or id of the member')
    .requiredOption('--org <org>', 'id or name of the organization')
    .option('--project <project>', 'what it is for; may be left out for a member of one project, or of "default"')
    .option('--expires <time>', 'how long the code is good: 90s, 10m, 1h (default: mcp.login_code)')
    .action(async (member, { org: organization, ...options }, command) => {
      const { admin, print } = open(command)
      print(await admin.command<Login>('members.login-link', { organization, member, ...options }), showLogin)
    })
}

/** Adds `oauth clients` and `oauth grants`. */
export function addOAuth(program: Command, open: Open): void {
  const oauth = program.command('oauth').description('programs that act for the holder of a key')
  const clients = oauth.command('clients').description('clients that registered, and those that the operator made')
  clients
    .command('list')
    .description('list clients')
    .action(async (_, command) => {
      const { admin, print } = open(command)
      const all = everyBy<ClientRecord>(admin, 'oauth.clients.list', {}, ({ clientId }) => clientId)
      print(await all, showClients)
    })
  clients
    .command('create')
    .alias('add')
    .description('make a client that acts for a key by itself, and show its secret, once')
    .requiredOption('--name <name>', 'what the client is called')
    .requiredOption('--key <id>', 'id of the key')
    .option('--scope <scopes>', '"mcp:tools", "usage:read", or both with a blank between (default: both)')
    .action(async (options, command) => {
      const { admin, print } = open(command)
      print(await admin.command<NewClient>('oauth.clients.create', options), made =>
        [
          facts([
            ['client id', made.clientId],
            ['client secret', made.clientSecret],
            ['name', made.name],
            ['key', made.key],
            ['scope', made.scope],
          ]),
          'The secret is shown only this once.\n',
        ].join(''),
      )
    })
  clients
    .command('remove')
    .description('remove a client; what it was granted ends')
    .argument('<id>', 'id of the client')
    .action(async (id, _, command) => {
      const { admin, print } = open(command)
      const removed = await admin.command<ClientRecord>('oauth.clients.remove', { id })
      print(removed, ({ clientId, name }) => `removed ${clientId} (${plain(name)})\n`)
    })

  const grants = oauth.command('grants').description('what clients were granted')
  grants
    .command('list')
    .description('list grants that are in force')
    .option('--org <org>', 'only those of this organization')
    .option('--key <id>', 'only those of this key')
    .action(async ({ org: organization, key }, command) => {
      const { admin, print } = open(command)
      print(await every<GrantRecord>(admin, 'oauth.grants.list', { organization, key }), showGrants)
    })
  grants
    .command('revoke')
    .description('end a grant at once, with its tokens')
    .argument('<id>', 'id of the grant')
    .action(async (id, _, command) => {
      const { admin, print } = open(command)
      const ended = await admin.command<GrantRecord>('oauth.grants.revoke', { id })
      print(ended, ({ id, clientName }) => `revoked ${id} (${plain(clientName)})\n`)
    })
}
