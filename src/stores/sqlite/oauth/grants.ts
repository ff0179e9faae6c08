/** Grants, their codes and their tokens. Each step is one transaction, so that of many at once exactly one succeeds. */
import type { Actor, GrantRecord, OAuthGrantStore } from '../../../core/ports.ts'
import { actorOf, noSuchGrant } from '../../rules/oauth.ts'
import { Undone } from '../../sql/audit.ts'
import type { AuditedTransaction } from '../audited-transaction.ts'
import type { GrantCreation } from './creation.ts'
import type { GrantEnds } from './ends.ts'
import type { LoginCodes } from './login-codes.ts'
import type { GrantRecords } from './records.ts'
import type { TokenRequests } from './requests.ts'
import type { OAuthSweep } from './sweep.ts'
import type { Tokens } from './tokens.ts'

interface Dependencies {
  readonly records: GrantRecords
  readonly ends: GrantEnds
  readonly tokens: Tokens
  readonly logins: LoginCodes
  readonly creation: GrantCreation
  readonly requests: TokenRequests
  readonly sweep: OAuthSweep
}

/** Puts the parts of grants together as an `OAuthGrantStore`. */
export function sqliteGrants(
  changes: AuditedTransaction,
  { records, ends, tokens, logins, creation, requests, sweep }: Dependencies,
): OAuthGrantStore {
  /** Of a grant that has ended, the principals of its tokens are removed from memory. */
  const afterReuse = <T>(result: T | 'reused'): T | 'invalid_grant' => {
    if (result !== 'reused') return result as T
    changes.keysChanged()
    return 'invalid_grant'
  }
  return {
    addLoginCode: (input, actor) => changes.write(() => logins.add(input, actor)),
    async begin(grant) {
      try {
        await changes.run(() => creation.byConsent(grant))
        return true
      } catch (thrown) {
        if (thrown instanceof Undone) return false
        throw thrown
      }
    },
    redeem: async (code, made) => afterReuse(await changes.write(() => requests.redeem(code, made))),
    refresh: async (token, made) => afterReuse(await changes.write(() => requests.refresh(token, made))),
    issue: (client, scopes, resource, access) =>
      changes.run(() => creation.byClientCredentials(client, scopes, resource, access)),
    revokeToken: (hash, clientId) =>
      changes.run(() => {
        const owner = tokens.owner(hash)
        if (owner?.client_id !== clientId) return
        if (owner.kind === 'refresh') ends.end(owner.grant_id, actorOf(clientId))
        else tokens.take(hash)
      }),
    list: async query => records.list(query, changes.now()),
    revoke: (id: string, actor: Actor): Promise<GrantRecord> =>
      changes.run(() => {
        const found = records.find(id)
        if (!found) throw noSuchGrant(id)
        ends.end(id, actor)
        return found.record
      }),
    sweep: () => changes.run(() => sweep.run(changes.now())),
  }
}
