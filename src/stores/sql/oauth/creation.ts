/** New grants: by consent, with a code, and to clients that act for their own key. */
import type { Actor, NewGrant, NewToken, OAuthClient } from '../../../core/ports.ts'
import { shortId } from '../../../lib/id.ts'
import { actorOf, keyNameOf, MAX_GRANTS_OF_KEY } from '../../rules/oauth.ts'
import { newSecret } from '../../secret.ts'
import { type Change, Undone } from '../audit.ts'
import type { SqlKeys } from '../keys.ts'
import { ALL, first } from '../sql.ts'
import { takeLoginCode } from './login-codes.ts'
import { endGrant, findGrant } from './records.ts'
import { issueTokens } from './tokens.ts'

interface GrantFacts {
  readonly client: Pick<OAuthClient, 'id' | 'name'>
  readonly keyId: string
  readonly scopes: readonly string[]
  readonly resource: string
  readonly madeKey: boolean
}

const CLIENT = 'SELECT id FROM oauth_clients WHERE id = $1'
const ADD_GRANT = `
  INSERT INTO oauth_grants (id, client_id, client_name, key_id, scopes, resource, made_key, created_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
const ADD_CODE = `
  INSERT INTO oauth_codes (hash, grant_id, redirect_uri, challenge, expires_at) VALUES ($1, $2, $3, $4, $5)`
const ADD_KEY = `
  INSERT INTO keys (id, project_id, name, kind, hash, preview, created_by, created_at)
  VALUES ($1, $2, $3, 'key', $4, $5, $6, $7)`
const BEYOND = `revoked_at IS NULL ORDER BY rowid DESC LIMIT ${ALL} OFFSET ${MAX_GRANTS_OF_KEY - 1}`
const OLD_CONSENTS = `
  SELECT id FROM oauth_grants
  WHERE key_id = $1 AND client_id NOT IN (SELECT id FROM oauth_clients WHERE key_id = $1) AND ${BEYOND}`
const OLD_OWN = `SELECT id FROM oauth_grants WHERE key_id = $1 AND client_id = $2 AND ${BEYOND}`

/** Makes a grant and its code. Rejects with `Undone` when the proof or the client is no longer valid. */
export async function grantByConsent(change: Change, keys: SqlKeys, grant: NewGrant): Promise<void> {
  const { sql, now } = change
  const { client, proof, scopes, resource, code } = grant
  if (client.isRegistered && !(await first(sql, CLIENT, [client.id]))) throw new Undone()
  const madeKey = 'loginCode' in proof
  const keyId = madeKey ? await makeKey(change, proof.loginCode, client.name) : proof.keyId
  const principal = await keys.live(sql, keyId)
  if (!principal) throw new Undone()
  const old = await sql.query<{ id: string }>(OLD_CONSENTS, [keyId])
  for (const { id } of old) await endGrant(change, id, actorOf(client.id))
  const id = await addGrant(change, { client, keyId, scopes, resource, madeKey })
  await sql.query(ADD_CODE, [code.hash, id, code.redirectUri, code.challenge, code.expiresAt])
  await sql.query('UPDATE oauth_clients SET used_at = $2 WHERE id = $1', [client.id, now()])
  await noteGrant(change, id, principal.orgId)
}

/** Makes a grant of a client that acts for its own key, and its token; false when one of them is no longer valid. */
export async function grantByCredentials(
  change: Change,
  keys: SqlKeys,
  { id, name, keyId }: Pick<OAuthClient, 'id' | 'name' | 'keyId'>,
  scopes: readonly string[],
  resource: string,
  access: NewToken,
): Promise<boolean> {
  const { sql, now } = change
  const principal = keyId === null ? undefined : await keys.live(sql, keyId)
  if (keyId === null || !principal || !(await first(sql, CLIENT, [id]))) return false
  for (const old of await sql.query<{ id: string }>(OLD_OWN, [keyId, id])) await endGrant(change, old.id)
  const grant = await addGrant(change, { client: { id, name }, keyId, scopes, resource, madeKey: false })
  await issueTokens(sql, { grant_id: grant, client_id: id, scopes: scopes.join(' ') }, scopes, { access }, now())
  await noteGrant(change, grant, principal.orgId, actorOf(id))
  return true
}

async function addGrant(
  { sql, now }: Change,
  { client, keyId, scopes, resource, madeKey }: GrantFacts,
): Promise<string> {
  const id = shortId()
  await sql.query(ADD_GRANT, [id, client.id, client.name, keyId, scopes.join(' '), resource, madeKey, now()])
  return id
}

/** Without an actor the member who made the key has consented, or its holder. */
async function noteGrant({ sql, note }: Change, grant: string, organization: string, actor?: Actor): Promise<void> {
  const { record } = (await findGrant(sql, grant))!
  const by = actor ?? record.member ?? `key ${record.key}`
  await note({ actor: by, action: 'oauth.grant', organization, subject: grant, was: null, became: record })
}

async function makeKey({ sql, now }: Change, loginCode: string, clientName: string): Promise<string> {
  const login = await takeLoginCode(sql, loginCode, now())
  if (!login) throw new Undone()
  const id = shortId()
  // Its secret is dropped: only tokens stand for this key.
  const { hash, preview } = newSecret('key')
  const facts = [id, login.project_id, keyNameOf(clientName), hash, preview, login.member_id]
  await sql.query(ADD_KEY, [...facts, now()])
  return id
}
