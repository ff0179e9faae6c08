/** Clients of OAuth, what they were granted, and codes by which members prove who they are. */
import { s } from '../../core/schema.ts'
import { opaque } from '../../lib/opaque.ts'
import { durationOf, keyId, member, name, organization, pageArguments, pageOf, project } from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'
import type { AdminContext } from '../context.ts'

const LOGIN_BYTES = 20
const CLIENT_BYTES = 16
const SECRET_BYTES = 32

const clientId = s.string({ minLength: 1, description: 'the id of a client, as oauth.clients.list shows it' })
const grantId = s.string({ minLength: 1, description: 'the id of a grant, as oauth.grants.list shows it' })
const scopes = s.string({
  pattern: '^(mcp:tools|usage:read)( (mcp:tools|usage:read))?$',
  description: '"mcp:tools", "usage:read", or both with a blank between',
})
const lifetime = s.string({ pattern: '^[1-9]\\d{0,3}[smh]$', description: 'a time such as 90s, 10m or 1h' })

/** Where people find how to connect. */
async function setupUrl({ state }: AdminContext): Promise<string> {
  const { publicUrl, listen } = await state()
  return `${(publicUrl ?? `http://${listen}`).replace(/\/$/, '')}/mcp`
}

/** `oauth.*` and `members.login-link`. */
export const oauthCommands: CommandTable = {
  /** → the code, once. Its `url` is the set-up page, and never holds the code. */
  'members.login-link': command(
    s.object({ organization, member, project: s.optional(project), expires: s.optional(lifetime) }),
    async ({ expires, ...named }, context, actor) => {
      const ms = expires === undefined ? context.snapshot().mcp.oauth.loginCodeMs : durationOf(expires)
      const { text: code, hash } = opaque('mgw_li_', LOGIN_BYTES)
      const made = await context.oauth.grants.addLoginCode({ ...named, hash, expiresAt: Date.now() + ms }, actor)
      return { code, url: await setupUrl(context), ...made }
    },
  ),
  'oauth.clients.list': command(s.object(pageArguments), (page, { oauth }) => oauth.clients.list(pageOf(page))),
  /** A client that acts for a key by itself → its id, and its secret, which nothing shows again. */
  'oauth.clients.create': command(
    s.object({ name, key: keyId, scope: s.optional(scopes) }),
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
  ),
  /** Its grants end. */
  'oauth.clients.remove': command(s.object({ id: clientId }), ({ id }, { oauth }, actor) =>
    oauth.clients.remove(id, actor),
  ),
  /** Those in force, the oldest first. */
  'oauth.grants.list': command(
    s.object({ organization: s.optional(organization), key: s.optional(keyId), ...pageArguments }),
    ({ organization, key, ...page }, { oauth }) => oauth.grants.list({ organization, key, ...pageOf(page) }),
  ),
  'oauth.grants.revoke': command(s.object({ id: grantId }), ({ id }, { oauth }, actor) =>
    oauth.grants.revoke(id, actor),
  ),
}
