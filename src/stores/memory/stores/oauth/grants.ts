/** Clients, grants, codes and tokens in memory. */
import type {
  Actor,
  GrantRecord,
  NewClient,
  NewGrant,
  NewTokens,
  OAuthClient,
  OAuthClientStore,
  OAuthGrantStore,
  OAuthStores,
  Principal,
} from '../../../../core/ports.ts'
import { shortId } from '../../../../lib/id.ts'
import {
  actorOf,
  clientRecord,
  clientsFull,
  grantRecord,
  keyNameOf,
  MAX_CLIENTS,
  MAX_CLIENTS_OF_KEY,
  MAX_GRANTS_OF_KEY,
  MAX_TOKENS_OF_GRANT,
  narrowed,
  noSuchClient,
  noSuchGrant,
  notRegular,
  presented,
  tooManyOfKey,
} from '../../../rules/oauth.ts'
import { newSecret } from '../../../secret.ts'
import type { Names } from '../names.ts'
import type { Grant } from '../rows.ts'
import { behind, later, type Tables } from '../tables.ts'
import { addLoginCode } from './login-codes.ts'
import { sweepOAuth } from './sweep.ts'

/** `live` is the principal of a regular key that may be used now. */
export type Live = (keyId: string) => Principal | undefined

/** Undoes what a transaction has done so far, and says no more than that nothing came of it. */
class Undone extends Error {}

const asIs = (cause: unknown): Error => cause as Error

export function oauthStores(tables: Tables, names: Names, live: Live): OAuthStores {
  const end = endIn(tables)
  return { clients: clientStore(tables, names, live, end), grants: grantStore(tables, names, live, end) }
}

/** Within `run`: ends a grant that is in force, and the key that was made for it. Without an actor nothing is said of it. */
export type End = (grant: Grant, actor?: Actor) => void

const orgOf = ({ keys, projects }: Tables, keyId: string): string | undefined =>
  projects.get(keys.get(keyId)?.projectId ?? '')?.orgId

function recordOf(tables: Tables, grant: Grant): GrantRecord {
  const creator = tables.keys.get(grant.keyId)?.createdBy
  return grantRecord({ ...grant, member: (creator && tables.members.get(creator)?.email) || null })
}

const endIn =
  (tables: Tables): End =>
  (grant, actor) => {
    if (grant.revokedAt !== null) return
    const now = tables.now()
    tables.grants.set(grant.id, { ...grant, revokedAt: now })
    const key = tables.keys.get(grant.keyId)
    if (grant.madeKey && key) tables.keys.set(key.id, { ...key, revokedAt: key.revokedAt ?? now })
    if (actor === undefined) return
    const note = { actor, action: 'oauth.revoke', organization: orgOf(tables, grant.keyId) ?? null, subject: grant.id }
    tables.note({ ...note, was: recordOf(tables, grant), became: null })
  }

function clientStore(tables: Tables, names: Names, live: Live, end: End): OAuthClientStore {
  const { clients, grants, now } = tables
  const add = (client: NewClient): OAuthClient => {
    const { keyId } = client
    if (keyId !== null && clients.filter(one => one.keyId === keyId).length >= MAX_CLIENTS_OF_KEY) throw tooManyOfKey()
    const all = clients.all()
    if (all.length >= MAX_CLIENTS) {
      const unused = all.find(one => one.usedAt === null && one.keyId === null)
      if (!unused) throw clientsFull()
      clients.delete(unused.id)
    }
    const made: OAuthClient = { ...client, createdAt: now(), usedAt: null }
    clients.set(client.id, made)
    return made
  }
  return {
    register: client =>
      tables.run(() => {
        if (client.keyId !== null && !live(client.keyId)) throw notRegular(client.keyId)
        add(client)
      }),
    find: async id => clients.get(id),
    create: (client, actor) =>
      tables.run(() => {
        const principal = live(names.findKey(client.keyId))
        if (!principal) throw notRegular(client.keyId)
        const became = clientRecord(add(client))
        const note = { actor, action: 'oauth.clients.create', organization: principal.orgId, subject: client.id }
        tables.note({ ...note, was: null, became })
        return became
      }),
    list: async page => behind(clients.all(), page).slice(0, page?.limit).map(clientRecord),
    remove: (id, actor) =>
      tables.run(() => {
        const client = clients.get(id)
        if (!client) throw noSuchClient(id)
        const was = clientRecord(client)
        for (const grant of grants.filter(one => one.clientId === id)) end(grant, actor)
        clients.delete(id)
        const organization = client.keyId === null ? null : (orgOf(tables, client.keyId) ?? null)
        tables.note({ actor, action: 'oauth.clients.remove', organization, subject: id, was, became: null })
        return was
      }),
  }
}

function grantStore(tables: Tables, names: Names, live: Live, end: End): OAuthGrantStore {
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
