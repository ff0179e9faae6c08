/** `gatewayctl oauth`. */
import type { Command } from 'commander'
import type { ClientRecord, GrantRecord } from '../core/ports.ts'
import { adder } from './adder.ts'
import type { Open } from './session.ts'
import { facts, table } from './table.ts'

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
        clients.map(({ clientId, name, redirectUris, key, createdAt, usedAt }) => {
          const days = [createdAt.slice(0, 10), usedAt?.slice(0, 10) ?? 'never']
          return [clientId, plain(name), redirectUris.join(', '), key, ...days]
        }),
      )

const showGrants = (grants: readonly GrantRecord[]): string =>
  grants.length === 0
    ? 'no grants in force\n'
    : table(
        ['id', 'client', 'key', 'member', 'scope', 'created', 'used'],
        grants.map(({ id, clientName, key, member, scope, createdAt, lastUsedAt }) => {
          const days = [createdAt.slice(0, 10), lastUsedAt?.slice(0, 10) ?? 'never']
          return [id, plain(clientName), key, member, scope, ...days]
        }),
      )

/** Strangers name clients: nothing of it may turn a line of a terminal round. */
const plain = (name: string): string => name.replace(/[\p{Cc}\p{Cf}]/gu, '')

const showNew = (made: NewClient): string =>
  `${facts([
    ['client id', made.clientId],
    ['client secret', made.clientSecret],
    ['name', made.name],
    ['key', made.key],
    ['scope', made.scope],
  ])}The secret is shown only this once.\n`

/** Adds `oauth clients` and `oauth grants`. */
export function addOAuth(program: Command, open: Open): void {
  const oauth = program.command('oauth').description('programs that act for the holder of a key')
  const clients = oauth.command('clients').description('clients that registered, and those that the operator made')
  const addToClients = adder(clients, 'oauth.clients', open)
  addToClients('list', 'list clients', {}, showClients)
  addToClients(
    'create',
    'make a client that acts for a key by itself, and show its secret, once',
    {
      name: '--name <name>: what the client is called',
      key: '--key <id>: id of the key',
      scope: '--scope <scopes>: "mcp:tools", "usage:read", or both with a blank between (default: both)',
    },
    showNew,
  )
  const removed = ({ clientId, name }: ClientRecord) => `removed ${clientId} (${plain(name)})\n`
  addToClients('remove', 'remove a client; what it was granted ends', { id: '<id>: id of the client' }, removed)

  const addToGrants = adder(oauth.command('grants').description('what clients were granted'), 'oauth.grants', open)
  addToGrants(
    'list',
    'list grants that are in force',
    { organization: '--org <org>: only those of this organization', key: '--key <id>: only those of this key' },
    showGrants,
  )
  const ended = ({ id, clientName }: GrantRecord) => `revoked ${id} (${plain(clientName)})\n`
  addToGrants('revoke', 'end a grant at once, with its tokens', { id: '<id>: id of the grant' }, ended)
}
