/** Principals, and sessions of end users and of the operator, in memory. */
import { errors } from '../../../core/error.ts'
import type { Discount, KeyStore, OperatorSessionStore, Principal, SessionStore } from '../../../core/ports.ts'
import { shortId } from '../../../lib/id.ts'
import {
  cacheTtl,
  MAX_SESSIONS,
  OPERATOR_KEY,
  OPERATOR_SESSION_MS,
  operatorKeyRevoked,
  SESSIONS_FORGOTTEN,
} from '../../rules/accounts.ts'
import { budgetOf } from '../../rules/budgets.ts'
import { isAdmitted, isLiveKey, tokenPrincipal } from '../../rules/oauth.ts'
import { planState } from '../../rules/plans.ts'
import { newSecret } from '../../secret.ts'
import { spentBy } from './accounts.ts'
import type { Limits } from './limits.ts'
import type { Names, ProjectPlace } from './names.ts'
import type { Key } from './rows.ts'
import { iso, order, type Tables } from './tables.ts'

/** Principals by the SHA-256 of their key, session secret or access token. */
export function keyStore(tables: Tables, limits: Limits): KeyStore {
  const { keys, now } = tables
  return {
    find(hash) {
      for (const key of keys.rows()) {
        if (key.hash !== hash) continue
        const parent = key.parentId === null ? undefined : keys.get(key.parentId)
        return key.revokedAt === null && (parent?.revokedAt ?? null) === null
          ? principalOf(tables, limits, key, parent)
          : undefined
      }
      return ofToken(tables, limits, hash)
    },
    status: async ({ keyId, orgId, member }) => ({
      spent: spentBy(tables, keyId),
      budgets: limits.states([keyId, member?.id]),
      plan: planState(tables.plans.get(orgId), now()),
    }),
  }
}

/** Whom an access token stands for. */
function ofToken(tables: Tables, limits: Limits, hash: string): Principal | undefined {
  const token = tables.tokens.get(hash)
  const grant = token && tables.grants.get(token.grantId)
  const key = grant && tables.keys.get(grant.keyId)
  if (token?.kind !== 'access' || token.usedAt !== null || grant?.revokedAt !== null) return undefined
  if (!key || key.revokedAt !== null) return undefined
  return tokenPrincipal(principalOf(tables, limits, key, undefined), token.scopes.join(' '), token.expiresAt)
}

/** The principal of a regular key that may be used now. */
export function liveKey(tables: Tables, limits: Limits, keyId: string): Principal | undefined {
  const principal = currentKey(tables, limits, keyId)
  return principal && isLiveKey(principal, tables.now()) ? principal : undefined
}

/** Whether the key, of whatever kind, may be used now. */
export function admitsKey(tables: Tables, limits: Limits, keyId: string): boolean {
  const principal = currentKey(tables, limits, keyId)
  return principal !== undefined && isAdmitted(principal, tables.now())
}

function currentKey(tables: Tables, limits: Limits, keyId: string): Principal | undefined {
  const key = tables.keys.get(keyId)
  return key && key.revokedAt === null ? principalOf(tables, limits, key, undefined) : undefined
}

function principalOf(tables: Tables, limits: Limits, key: Key, parent: Key | undefined): Principal {
  const project = tables.projects.get(key.projectId)!
  const organization = tables.organizations.get(project.orgId)!
  const plan = tables.plans.get(project.orgId)
  const member = key.createdBy === null ? undefined : tables.members.get(key.createdBy)
  // A session ends with its parent key, even when that key got an earlier end later.
  const ends = [key.expiresAt, parent?.expiresAt ?? null].filter(at => at !== null)
  const isMember = !member || (member.removedAt === null && hasAccess(member, key.projectId))
  return {
    keyId: key.parentId ?? key.id,
    keyName: key.name,
    kind: key.kind,
    projectId: project.id,
    orgId: organization.id,
    orgName: organization.name,
    account: organization.account,
    mode: project.mode,
    archived: project.archivedAt !== null,
    expiresAt: ends.length > 0 ? Math.min(...ends) : undefined,
    cacheTtlMs: cacheTtl(project.cacheTtlMs, (plan?.plan ?? null) !== null),
    passesParameters: project.passesParameters,
    cachesPrompts: project.cachesPrompts,
    responsesMs: project.responsesMs ?? undefined,
    member: member && { id: member.id, role: member.role },
    access: isMember,
    session: key.parentId === null ? undefined : { id: key.id, models: key.models ?? undefined },
    budgets: limits.states([key.id, key.parentId ?? undefined, member?.id]).map(budgetOf),
    plan: plan?.plan ? { plan: plan.plan, since: plan.since, overflow: plan.overflow } : undefined,
    discounts: discountsOf(tables, organization.id),
    retains: organization.retains,
    since: organization.createdAt,
  }
}

/** Owners and admins have access to every project. */
export const hasAccess = (
  { role, projects }: { role: string; projects: readonly string[] | null },
  projectId: string,
) => role !== 'developer' || projects === null || projects.includes(projectId)

/** Most specific first: of this organization, of this model, of this provider. */
const discountsOf = (tables: Tables, orgId: string): Discount[] =>
  tables.discounts
    .filter(one => one.orgId === '' || one.orgId === orgId)
    .sort((a, b) => order(b.orgId, a.orgId) || order(b.model, a.model) || order(b.provider, a.provider))
    .map(({ provider, model, millionths }) => ({ provider: provider || null, model: model || null, millionths }))

const endOf = ({ expiresAt }: Key): number => expiresAt ?? Number.POSITIVE_INFINITY

/** Sessions of end users, as keys whose `parentId` is the key that began them. */
export function sessionStore(tables: Tables, limits: Limits): SessionStore {
  const { keys, sessions, now } = tables
  /**
   * Within a transaction: removes expired sessions, and those beyond the limit of a key, the earliest to expire first.
   * One that money is held for stays, with its limit.
   */
  const forgetOver = (parent: string): void => {
    const { count, ends } = sessions.get(parent) ?? { count: 0, ends: Number.POSITIVE_INFINITY }
    if (count < MAX_SESSIONS && ends > now()) return
    const own = keys.filter(key => key.parentId === parent).sort((a, b) => endOf(a) - endOf(b))
    const beyond = own.length - (MAX_SESSIONS - 1)
    const over = new Set<Key>()
    for (const [at, key] of own.entries()) {
      if (over.size === SESSIONS_FORGOTTEN) break
      if ((endOf(key) > now() && at >= beyond) || limits.isHeld(key.id)) continue
      over.add(key)
      limits.forget(key.id)
      keys.delete(key.id)
    }
    const next = own.find(key => !over.has(key))
    sessions.set(parent, { count: own.length - over.size, ends: next ? endOf(next) : Number.POSITIVE_INFINITY })
  }
  return {
    begin: ({ principal, customer, models, limit, expiresAt }) =>
      tables.run(() => {
        const id = shortId()
        const { keyId: parentId, projectId, member } = principal
        const { key, hash, preview } = newSecret('session')
        forgetOver(parentId)
        const { count, ends } = sessions.get(parentId) ?? { count: 0, ends: expiresAt }
        sessions.set(parentId, { count: count + 1, ends: Math.min(ends, expiresAt) })
        keys.set(id, {
          ...{ id, projectId, hash, preview, expiresAt, parentId, name: customer, kind: 'session' },
          ...{ createdBy: member?.id ?? null, createdAt: now(), revokedAt: null, succeeds: null },
          models: models ?? null,
        })
        if (limit !== undefined) limits.change('session', id, { set: { amount: limit } })
        return { id, key }
      }, errors.storeUnavailable),
  }
}

/** Stands, with the project's id, for the hash of the sessions' parent key: no secret hashes to it. */
const NO_HASH = `none: ${OPERATOR_KEY} of `

/** Sessions of the operator, under one parent key for each project that authenticates nothing. */
export function operatorSessionStore(tables: Tables, names: Names): OperatorSessionStore {
  const { keys, now } = tables
  const insert = (facts: Pick<Key, 'projectId' | 'kind' | 'hash' | 'preview' | 'expiresAt' | 'parentId'>): string => {
    const id = shortId()
    const none = { createdBy: null, revokedAt: null, models: null, succeeds: null }
    keys.set(id, { id, name: OPERATOR_KEY, createdAt: now(), ...none, ...facts })
    return id
  }
  /** The project's parent key of operator sessions; it expires with them. */
  const parentIn = ({ id, name }: ProjectPlace, expiresAt: number): string => {
    const hash = NO_HASH + id
    const [known] = keys.filter(key => key.hash === hash)
    if (!known) return insert({ projectId: id, kind: 'key', hash, preview: 'none', expiresAt, parentId: null })
    if (known.revokedAt !== null) throw operatorKeyRevoked(name)
    keys.set(known.id, { ...known, expiresAt })
    return known.id
  }
  return {
    begin: (project, actor) =>
      tables.run(() => {
        const place = names.findProject(project)
        const expiresAt = now() + OPERATOR_SESSION_MS
        const parentId = parentIn(place, expiresAt)
        for (const old of keys.filter(key => key.parentId === parentId && (key.expiresAt ?? 0) <= now())) {
          keys.delete(old.id)
        }
        const { key, hash, preview } = newSecret('session')
        const id = insert({ projectId: place.id, kind: 'session', hash, preview, expiresAt, parentId })
        const became = { project: place.name, expiresAt: iso(expiresAt) }
        tables.note({ actor, action: 'sessions.begin', organization: place.orgId, subject: id, was: null, became })
        return { id, key, expiresAt: became.expiresAt }
      }),
    end: id =>
      tables.run(() => {
        const parent = keys.get(keys.get(id)?.parentId ?? '')
        if (!parent?.hash.startsWith(NO_HASH)) return
        keys.delete(id)
        const ends = keys.filter(key => key.parentId === parent.id).map(key => key.expiresAt ?? now())
        keys.set(parent.id, { ...parent, expiresAt: ends.length > 0 ? Math.max(...ends) : now() })
      }),
  }
}
