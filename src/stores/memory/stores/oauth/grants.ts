/** Grants, their codes and their tokens in memory. */
import type { Actor, NewGrant, NewTokens, OAuthGrantStore } from '../../../../core/ports.ts'
import { shortId } from '../../../../lib/id.ts'
import {
  actorOf,
  keyNameOf,
  MAX_GRANTS_OF_KEY,
  MAX_TOKENS_OF_GRANT,
  narrowed,
  noSuchGrant,
  presented,
} from '../../../rules/oauth.ts'
import { newSecret } from '../../../secret.ts'
import type { Names } from '../names.ts'
import type { Grant } from '../rows.ts'
import { later, type Tables } from '../tables.ts'
import { type End, orgOf, recordOf } from './ends.ts'
import type { Live } from './index.ts'
import { addLoginCode } from './login-codes.ts'
import { sweepOAuth } from './sweep.ts'

/** Undoes what a transaction has done so far, and says no more than that nothing came of it. */
class Undone extends Error {}

const asIs = (cause: unknown): Error => cause as Error

/** `live` finds the keys that grants stand for; `end` ends a grant. */
export function grantStore(tables: Tables, names: Names, live: Live, end: End): OAuthGrantStore {
  const { clients, grants, codes, tokens, logins, keys, now } = tables
  const inForce = (test: (grant: Grant) => boolean) => grants.filter(one => one.revokedAt === null && test(one))
  /** Those before the newest: another one begins. */
  const beyond = (some: readonly Grant[]) => some.slice(0, Math.max(0, some.length - (MAX_GRANTS_OF_KEY - 1)))
  const isOwn = ({ clientId, keyId }: Grant): boolean => clients.get(clientId)?.keyId === keyId
  const used = (clientId: string): void => {
    const client = clients.get(clientId)
    if (client) clients.set(clientId, { ...client, usedAt: now() })
  }
  const begin = (
    facts: Pick<Grant, 'clientId' | 'clientName' | 'keyId' | 'scopes' | 'resource' | 'madeKey'>,
  ): Grant => {
    const grant = { ...facts, id: shortId(), createdAt: now(), usedAt: null, revokedAt: null }
    grants.set(grant.id, grant)
    used(grant.clientId)
    return grant
  }
  const note = (actor: Actor, grant: Grant, organization: string): void => {
    const became = recordOf(tables, grant)
    tables.note({ actor, action: 'oauth.grant', organization, subject: grant.id, was: null, became })
  }
  const issue = (grant: Grant, scopes: readonly string[], { access, refresh }: NewTokens): void => {
    const both = [
      ...[{ ...access, kind: 'access' as const, scopes }],
      ...(refresh ? [{ ...refresh, kind: 'refresh' as const, scopes: grant.scopes }] : []),
    ]
    for (const token of both) {
      tokens.set(token.hash, { ...token, grantId: grant.id, usedAt: null })
      const same = tokens.filter(one => one.grantId === grant.id && one.kind === token.kind)
      for (const old of same.slice(0, Math.max(0, same.length - MAX_TOKENS_OF_GRANT))) tokens.delete(old.hash)
    }
    grants.set(grant.id, { ...grant, usedAt: now() })
    used(grant.clientId)
  }
  const makeKey = (loginCode: string, clientName: string): string => {
    const login = logins.get(loginCode)
    if (!login || presented(login, now()) !== 'accepted') throw new Undone()
    logins.set(loginCode, { ...login, usedAt: now() })
    const id = shortId()
    const { hash, preview } = newSecret('key')
    const facts = { id, hash, preview, kind: 'key' as const, name: keyNameOf(clientName), createdAt: now() }
    const none = { expiresAt: null, revokedAt: null, parentId: null, models: null, succeeds: null }
    keys.set(id, { ...facts, ...none, projectId: login.projectId, createdBy: login.memberId })
    return id
  }
  return {
    addLoginCode: (input, actor) => tables.run(() => addLoginCode(tables, names, input, actor)),
    async begin({ client, proof, scopes, resource, code }: NewGrant) {
      const work = () => {
        if (client.isRegistered && !clients.get(client.id)) throw new Undone()
        const madeKey = 'loginCode' in proof
        const keyId = madeKey ? makeKey(proof.loginCode, client.name) : proof.keyId
        const principal = live(keyId)
        if (!principal) throw new Undone()
        for (const old of beyond(inForce(one => one.keyId === keyId && !isOwn(one)))) end(old, actorOf(client.id))
        const grant = begin({ clientId: client.id, clientName: client.name, keyId, scopes, resource, madeKey })
        codes.set(code.hash, { ...code, grantId: grant.id, usedAt: null })
        note(recordOf(tables, grant).member ?? `key ${keyId}`, grant, principal.orgId)
        return true
      }
      try {
        return await tables.run(work, asIs)
      } catch (thrown) {
        if (thrown instanceof Undone) return false
        throw thrown
      }
    },
    redeem: ({ hash, clientId, redirectUri, challenge }, made) =>
      tables.run(() => {
        const code = codes.get(hash)
        const grant = code && grants.get(code.grantId)
        if (!grant || grant.clientId !== clientId || grant.revokedAt !== null) return 'invalid_grant'
        const use = presented(code, now())
        if (use === 'reused') end(grant, actorOf(clientId))
        const isBound = code.redirectUri === redirectUri && code.challenge === challenge
        if (use !== 'accepted' || !isBound || !live(grant.keyId)) return 'invalid_grant'
        codes.set(hash, { ...code, usedAt: now() })
        issue(grant, grant.scopes, made)
        return { scopes: grant.scopes }
      }),
    refresh: ({ hash, clientId, scopes: wanted }, made) =>
      tables.run(() => {
        const token = tokens.get(hash)
        const grant = token?.kind === 'refresh' ? grants.get(token.grantId) : undefined
        if (!token || !grant || grant.clientId !== clientId || grant.revokedAt !== null) return 'invalid_grant'
        const use = presented(token, now())
        if (use === 'reused') end(grant, actorOf(clientId))
        if (use !== 'accepted' || !live(grant.keyId)) return 'invalid_grant'
        const scopes = narrowed(grant.scopes, wanted)
        if (!scopes) return 'invalid_scope'
        tokens.set(hash, { ...token, usedAt: now() })
        issue(grant, scopes, made)
        return { scopes }
      }),
    issue: ({ id, name, keyId }, scopes, resource, access) =>
      tables.run(() => {
        const principal = keyId === null ? undefined : live(keyId)
        if (keyId === null || !principal || !clients.get(id)) return false
        for (const old of beyond(inForce(one => one.keyId === keyId && one.clientId === id))) end(old)
        const grant = begin({ clientId: id, clientName: name, keyId, scopes, resource, madeKey: false })
        issue(grant, scopes, { access })
        note(actorOf(id), grant, principal.orgId)
        return true
      }),
    revokeToken: (hash, clientId) =>
      tables.run(() => {
        const token = tokens.get(hash)
        const grant = token && grants.get(token.grantId)
        if (grant?.clientId !== clientId) return
        if (token!.kind === 'refresh') end(grant, actorOf(clientId))
        else tokens.set(hash, { ...token!, usedAt: token!.usedAt ?? now() })
      }),
    async list({ organization, key, ...page }) {
      const orgId = organization === undefined ? undefined : names.findOrganization(organization).id
      const keyId = key === undefined ? undefined : names.findKey(key)
      const isUsable = (one: { grantId: string; usedAt: number | null; expiresAt: number }, grant: Grant) =>
        one.grantId === grant.id && presented(one, now()) === 'accepted'
      const isLive = (grant: Grant) => {
        const { revokedAt, expiresAt } = keys.get(grant.keyId)!
        if (revokedAt !== null || (expiresAt !== null && expiresAt <= now())) return false
        return [...tokens.all(), ...codes.all()].some(one => isUsable(one, grant))
      }
      const found = inForce(
        grant =>
          (orgId === undefined || orgOf(tables, grant.keyId) === orgId) &&
          (keyId === undefined || grant.keyId === keyId) &&
          isLive(grant),
      )
      return later(found, page)
        .slice(0, page.limit)
        .map(grant => recordOf(tables, grant))
    },
    revoke: (id, actor) =>
      tables.run(() => {
        const grant = grants.get(id)
        if (!grant || grant.revokedAt !== null) throw noSuchGrant(id)
        const record = recordOf(tables, grant)
        end(grant, actor)
        return record
      }),
    sweep: () => tables.run(() => sweepOAuth(tables, end)),
  }
}
