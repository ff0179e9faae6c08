/** OAuth clients, grants, codes and tokens. Each step is one transaction, so that of many at once exactly one succeeds. */
import type { OAuthGrantStore, OAuthStores } from '../../../core/ports.ts'
import { actorOf, noSuchGrant } from '../../rules/oauth.ts'
import { type AuditedTransaction, Undone } from '../audit.ts'
import type { SqlKeys } from '../keys.ts'
import { SqlOAuthClients } from './clients.ts'
import { grantByConsent, grantByCredentials } from './creation.ts'
import { endGrant } from './ends.ts'
import { addLoginCode } from './login-codes.ts'
import { findGrant, listGrants } from './records.ts'
import { redeemCode, refreshTokens } from './requests.ts'
import { sweepOAuth } from './sweep.ts'
import { takeToken, tokenOwner } from './tokens.ts'

/** Both stores of OAuth; `keys` gives the keys that grants stand for. */
export const sqlOAuth = (changes: AuditedTransaction, keys: SqlKeys): OAuthStores => ({
  clients: new SqlOAuthClients(changes, keys),
  grants: sqlGrants(changes, keys),
})

function sqlGrants(changes: AuditedTransaction, keys: SqlKeys): OAuthGrantStore {
  /** Converts reuse to `invalid_grant`. The principals of an ended grant's tokens are removed from memory. */
  const afterReuse = async <T>(result: T | 'reused'): Promise<T | 'invalid_grant'> => {
    if (result !== 'reused') return result as T
    await changes.keysChanged()
    return 'invalid_grant'
  }
  return {
    addLoginCode: (input, actor) => changes.write(change => addLoginCode(change, input, actor)),
    async begin(grant) {
      try {
        await changes.run(change => grantByConsent(change, keys, grant))
        return true
      } catch (thrown) {
        if (thrown instanceof Undone) return false
        throw thrown
      }
    },
    redeem: async (code, made) => afterReuse(await changes.write(change => redeemCode(change, keys, code, made))),
    refresh: async (token, made) => afterReuse(await changes.write(change => refreshTokens(change, keys, token, made))),
    issue: (client, scopes, resource, access) =>
      changes.run(change => grantByCredentials(change, keys, client, scopes, resource, access)),
    revokeToken: (hash, clientId) =>
      changes.run(async change => {
        const owner = await tokenOwner(change.sql, hash)
        if (owner?.client_id !== clientId) return
        if (owner.kind === 'refresh') await endGrant(change, owner.grant_id, actorOf(clientId))
        else await takeToken(change.sql, hash, change.now())
      }),
    list: query => changes.read(() => listGrants(changes, query)),
    revoke: (id, actor) =>
      changes.run(async change => {
        const found = await findGrant(change.sql, id)
        if (!found) throw noSuchGrant(id)
        await endGrant(change, id, actor)
        return found.record
      }),
    sweep: () => changes.run(sweepOAuth),
  }
}
