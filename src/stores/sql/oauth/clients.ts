/** Clients that registered by themselves, and those that the operator made. */
import type {
  ClientAuthentication,
  ClientRecord,
  GrantType,
  NewClient,
  OAuthClient,
  OAuthClientStore,
} from '../../../core/ports.ts'
import {
  clientRecord,
  clientsFull,
  MAX_CLIENTS,
  MAX_CLIENTS_OF_KEY,
  noSuchClient,
  notRegular,
  scopesOf,
  tooManyOfKey,
} from '../../rules/oauth.ts'
import type { AuditedTransaction, Change } from '../audit.ts'
import type { SqlKeys } from '../keys.ts'
import { first, numberOf, pageOf, type Sql } from '../sql.ts'
import { endGrant } from './records.ts'

interface ClientRow {
  id: string
  name: string
  redirect_uris: string
  grant_types: string
  method: ClientAuthentication
  secret_hash: string | null
  scopes: string
  key_id: string | null
  created_at: bigint
  used_at: bigint | null
}

const INSERT = `
  INSERT INTO oauth_clients (id, name, redirect_uris, grant_types, method, secret_hash, scopes, key_id, created_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
const PAGE = `
  SELECT * FROM oauth_clients
  WHERE rowid > CASE WHEN CAST($1 AS text) IS NULL THEN 0
    ELSE coalesce((SELECT rowid FROM oauth_clients WHERE id = $1), 0) END
  ORDER BY rowid LIMIT $2`
const DROP_IDLE = `
  DELETE FROM oauth_clients WHERE id IN (
    SELECT id FROM oauth_clients
    WHERE key_id IS NULL AND NOT EXISTS (
      SELECT 1 FROM oauth_grants WHERE client_id = oauth_clients.id AND revoked_at IS NULL
    )
    ORDER BY used_at IS NOT NULL, coalesce(used_at, created_at) LIMIT 1
  )
  RETURNING id`
const COUNT = 'SELECT count(*) AS clients FROM oauth_clients'
const GRANTS = 'SELECT id FROM oauth_grants WHERE client_id = $1 AND revoked_at IS NULL'

/** Makes the `OAuthClientStore` over `oauth_clients`; a client that is removed loses its grants. */
export const sqlOAuthClients = (changes: AuditedTransaction, keys: SqlKeys): OAuthClientStore => ({
  register: client =>
    changes.write(async change => {
      if (client.keyId !== null && !(await keys.live(change.sql, client.keyId))) throw notRegular(client.keyId)
      await add(change, client)
    }),

  find: id => changes.read(() => clientIn(changes.sql, id)),

  create: (client, actor) =>
    changes.write(async change => {
      const { sql, names, note } = change
      const keyId = await names.key(client.keyId)
      const principal = await keys.live(sql, keyId)
      if (!principal) throw notRegular(keyId)
      await add(change, client)
      const became = await recordIn(sql, client.id)
      const line = { actor, action: 'oauth.clients.create', organization: principal.orgId, subject: client.id }
      await note({ ...line, was: null, became })
      return became
    }),

  list(page) {
    const { after, limit } = pageOf(page)
    return changes.read(async () => {
      const rows = await changes.sql.query<ClientRow>(PAGE, [after, limit])
      return rows.map(row => clientRecord(clientOf(row)))
    })
  },

  remove: (id, actor) =>
    changes.run(async change => {
      const { sql, note } = change
      const was = await recordIn(sql, id)
      for (const grant of await sql.query<{ id: string }>(GRANTS, [id])) await endGrant(change, grant.id, actor)
      await sql.query('DELETE FROM oauth_clients WHERE id = $1', [id])
      const organization = was.key === null ? null : ((await keys.organizationOf(sql, was.key)) ?? null)
      await note({ actor, action: 'oauth.clients.remove', organization, subject: id, was, became: null })
      return was
    }),
})

async function add({ sql, now }: Change, client: NewClient): Promise<void> {
  const { id, name, redirectUris, grantTypes, method, secretHash, scopes, keyId } = client
  if (keyId !== null && (await countIn(sql, `${COUNT} WHERE key_id = $1`, keyId)) >= MAX_CLIENTS_OF_KEY) {
    throw tooManyOfKey()
  }
  if ((await countIn(sql, COUNT)) >= MAX_CLIENTS && !(await first(sql, DROP_IDLE))) throw clientsFull()
  const lists = [JSON.stringify(redirectUris), JSON.stringify(grantTypes)]
  await sql.query(INSERT, [id, name, ...lists, method, secretHash, scopes.join(' '), keyId, now()])
}

async function countIn(sql: Sql, text: string, ...values: readonly string[]): Promise<number> {
  return Number((await first<{ clients: bigint }>(sql, text, values))!.clients)
}

async function clientIn(sql: Sql, id: string): Promise<OAuthClient | undefined> {
  const row = await first<ClientRow>(sql, 'SELECT * FROM oauth_clients WHERE id = $1', [id])
  return row && clientOf(row)
}

async function recordIn(sql: Sql, id: string): Promise<ClientRecord> {
  const client = await clientIn(sql, id)
  if (!client) throw noSuchClient(id)
  return clientRecord(client)
}

const clientOf = (row: ClientRow): OAuthClient => ({
  id: row.id,
  name: row.name,
  redirectUris: JSON.parse(row.redirect_uris) as string[],
  grantTypes: JSON.parse(row.grant_types) as GrantType[],
  method: row.method,
  secretHash: row.secret_hash,
  scopes: scopesOf(row.scopes),
  keyId: row.key_id,
  createdAt: Number(row.created_at),
  usedAt: numberOf(row.used_at),
})
