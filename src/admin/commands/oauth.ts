/** Clients of OAuth, and what they were granted. */
import type { ClientRecord, GrantRecord } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { opaque } from '../../lib/opaque.ts'
import { keyId, name, ofOrganization, pageArguments, pageOf } from '../arguments.ts'
import { type CommandTable, command, day, facts, list, option, rows, shell } from '../command.ts'

const CLIENT_BYTES = 16
const SECRET_BYTES = 32

const clientId = shell(
  '<id>: id of the client',
  s.string({ minLength: 1, description: 'the id of a client, as oauth.clients.list shows it' }),
)
const grantId = shell(
  '<id>: id of the grant',
  s.string({ minLength: 1, description: 'the id of a grant, as oauth.grants.list shows it' }),
)
const scopes = shell(
  '--scope <scopes>: "mcp:tools", "usage:read", or both with a blank between (default: both)',
  s.string({
    pattern: '^(mcp:tools|usage:read)( (mcp:tools|usage:read))?$',
    description: '"mcp:tools", "usage:read", or both with a blank between',
  }),
)

/** Strangers name clients: nothing of it may turn a line of a terminal round. */
const plain = (name: string): string => name.replace(/[\p{Cc}\p{Cf}]/gu, '')
const lastUse = (time: string | null): string => (time === null ? 'never' : day(time))

const showClients = rows<ClientRecord>(
  'id, name, redirects to, key, created, used',
  ({ clientId, name, redirectUris, key, createdAt, usedAt }) => {
    return [clientId, plain(name), list(redirectUris), key, day(createdAt), lastUse(usedAt)]
  },
  'no clients; programs register themselves when somebody connects them\n',
)
const showGrants = rows<GrantRecord>(
  'id, client, key, member, scope, created, used',
  ({ id, clientName, key, member, scope, createdAt, lastUsedAt }) => {
    return [id, plain(clientName), key, member, scope, day(createdAt), lastUse(lastUsedAt)]
  },
  'no grants in force\n',
)

/** `oauth.*`. */
export const oauthCommands: CommandTable = {
  'oauth.clients.list': command(
    s.object(pageArguments),
    (page, { oauth }) => oauth.clients.list(pageOf(page)),
    'list clients',
    showClients,
  ),
  /** A client that acts for a key by itself → its id, and its secret, which nothing shows again. */
  'oauth.clients.create': command(
    s.object({ name: shell('--name <name>: what the client is called', name), key: keyId, scope: s.optional(scopes) }),
    async ({ name, key, scope = 'mcp:tools usage:read' }, { oauth }, actor) => {
      const { text: id } = opaque('mgw_cl_', CLIENT_BYTES)
      const { text: clientSecret, hash: secretHash } = opaque('mgw_cs_', SECRET_BYTES)
      const client = {
        ...{ id, name, secretHash, keyId: key, redirectUris: [], scopes: scope.split(' ') },
        ...({ grantTypes: ['client_credentials'], method: 'client_secret_basic' } as const),
      }
      const made = await oauth.clients.create(client, actor)
      return { clientId: id, clientSecret, name: made.name, key: made.key, scope: made.scope }
    },
    'make a client that acts for a key by itself, and show its secret, once',
    made =>
      `${facts([
        ['client id', made.clientId],
        ['client secret', made.clientSecret],
        ['name', made.name],
        ['key', made.key],
        ['scope', made.scope],
      ])}The secret is shown only this once.\n`,
  ),
  'oauth.clients.remove': command(
    s.object({ id: clientId }),
    ({ id }, { oauth }, actor) => oauth.clients.remove(id, actor),
    'remove a client; what it was granted ends',
    ({ clientId, name }) => `removed ${clientId} (${plain(name)})\n`,
  ),
  /** The oldest first. */
  'oauth.grants.list': command(
    s.object({
      organization: ofOrganization,
      key: option('--key <id>: only those of this key', keyId),
      ...pageArguments,
    }),
    ({ organization, key, ...page }, { oauth }) => oauth.grants.list({ organization, key, ...pageOf(page) }),
    'list grants that are in force',
    showGrants,
  ),
  'oauth.grants.revoke': command(
    s.object({ id: grantId }),
    ({ id }, { oauth }, actor) => oauth.grants.revoke(id, actor),
    'end a grant at once, with its tokens',
    ({ id, clientName }) => `revoked ${id} (${plain(clientName)})\n`,
  ),
}
