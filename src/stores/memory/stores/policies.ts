/** Rules, compliance policies and custom providers of organizations in memory. */
import { noDemands } from '../../../core/compliance.ts'
import type { Compliance, PolicyFacts } from '../../../core/policy.ts'
import type {
  Actor,
  ComplianceStore,
  ManifestRecord,
  ManifestStore,
  RuleRecord,
  RuleScope,
  RuleStore,
} from '../../../core/ports.ts'
import { ruleValue } from '../../../core/rule-value.ts'
import { shortId } from '../../../lib/id.ts'
import { budgetOf } from '../../rules/budgets.ts'
import { noSuch } from '../../rules/names.ts'
import { checkManifests, checkRules, checkScope, noManifest, ruleOwner } from '../../rules/policies.ts'
import { part } from './credits.ts'
import type { Limits } from './limits.ts'
import type { Names } from './names.ts'
import type { ManifestRow, RuleRow } from './rows.ts'
import { iso, later, order, type Tables } from './tables.ts'

/** Within a transaction: marks the organization's policy as changed. */
export function changed({ policies }: Tables, orgId: string): void {
  const { version = 0, compliance = null } = policies.get(orgId) ?? {}
  policies.set(orgId, { version: version + 1, compliance })
}

/** Facts of organizations: the same object until their version changes. */
export function policyFacts(tables: Tables, limits: Limits): (orgId: string) => PolicyFacts {
  const known = new Map<string, PolicyFacts>()
  const read = (orgId: string, version: number): PolicyFacts => ({
    orgId,
    version,
    rules: tables.rules
      .filter(rule => rule.orgId === orgId && rule.active)
      .sort((a, b) => order(a.id, b.id))
      .map(({ id, type, keyId, memberId, value }) => {
        return { ...value, id, type, keyId: keyId ?? undefined, memberId: memberId ?? undefined }
      }),
    compliance: tables.policies.get(orgId)?.compliance ?? undefined,
    keys: tables.providerKeys
      .filter(key => key.orgId === orgId)
      .sort((a, b) => order(a.id, b.id))
      .map(({ createdAt: _, models, ...key }) => {
        return { ...key, models: models ?? undefined, budgets: limits.states([key.id]).map(budgetOf) }
      }),
    manifests: tables.manifests
      .filter(one => one.orgId === orgId)
      .sort((a, b) => a.createdAt - b.createdAt || order(a.provider, b.provider))
      .map(({ manifest }) => manifest),
  })
  return orgId => {
    const version = tables.policies.get(orgId)?.version ?? 0
    let facts = known.get(orgId)
    if (facts?.version !== version) {
      facts = read(orgId, version)
      known.set(orgId, facts)
    }
    return facts
  }
}

/** Also moves the rules of a key to its successor, within a transaction. */
interface MemoryRules extends RuleStore {
  move(from: string, to: string): void
}

/** Rules of organizations, members and keys; each change raises the version of the organization's policy. */
export function ruleStore(tables: Tables, names: Names): MemoryRules {
  const { rules, now } = tables
  const record = ({ id, orgId, keyId, memberId, type, value, active, createdAt }: RuleRow): RuleRecord => ({
    ...{ id, type, value, organization: tables.nameOf(orgId), key: keyId },
    member: memberId === null ? null : tables.members.get(memberId)!.email,
    status: active ? 'active' : 'inactive',
    createdAt: iso(createdAt),
  })
  const scopeOf = ({ organization, member, key }: RuleScope) => {
    const org = organization === undefined ? null : names.findOrganization(organization).id
    checkScope({ organization, member, key })
    if (org !== null && member !== undefined) return { org, member: names.findMember(org, member).id, key: null }
    if (key === undefined) return { org, member: null, key: null }
    const found = tables.keys.get(key)
    const owner = found?.parentId === null ? tables.projects.get(found.projectId)!.orgId : undefined
    if (owner !== undefined && (org === null || org === owner)) return { org: owner, member: null, key }
    throw noSuch('key', key, organization)
  }
  const find = (id: string, organization: string | undefined): RuleRow => {
    const org = organization === undefined ? undefined : names.findOrganization(organization).id
    const row = rules.get(id)
    if (row && (org === undefined || row.orgId === org)) return row
    throw noSuch('rule', id, organization)
  }
  const noted = (action: string, actor: Actor, before: RuleRow | undefined, after: RuleRow | undefined): RuleRecord => {
    const { id, orgId } = (after ?? before)!
    const [was, became] = [before && record(before), after && record(after)]
    changed(tables, orgId)
    tables.note({ actor, action, organization: orgId, subject: id, was, became })
    return (became ?? was)!
  }
  return {
    async add({ type, value, ...scope }, actor) {
      const checked = ruleValue(type, value)
      return tables.run(() => {
        const { org, member: memberId, key: keyId } = scopeOf(scope)
        const orgId = ruleOwner(org)
        checkRules(rules.filter(rule => rule.orgId === orgId).length)
        const id = shortId()
        const made: RuleRow = { id, orgId, memberId, keyId, type, value: checked, active: true, createdAt: now() }
        rules.set(id, made)
        return noted('iam.add', actor, undefined, made)
      })
    },
    async list(scope, page) {
      const { org, member, key } = scopeOf(scope)
      const found = rules.filter(
        rule =>
          (org === null || rule.orgId === org) &&
          (member === null || rule.memberId === member) &&
          (key === null || rule.keyId === key),
      )
      return later(found, page).slice(0, page?.limit).map(record)
    },
    setStatus: (id, status, organization, actor) =>
      tables.run(() => {
        const before = find(id, organization)
        const after = { ...before, active: status === 'active' }
        rules.set(id, after)
        return noted('iam.update', actor, before, after)
      }),
    remove: (id, organization, actor) =>
      tables.run(() => {
        const before = find(id, organization)
        rules.delete(id)
        return noted('iam.remove', actor, before, undefined)
      }),
    move(from, to) {
      for (const rule of rules.filter(({ keyId }) => keyId === from)) {
        rules.set(rule.id, { ...rule, keyId: to })
        changed(tables, rule.orgId)
      }
    },
  }
}

/** Compliance policies; null where an organization has none. */
export function complianceStore(tables: Tables, names: Names): ComplianceStore {
  const { policies } = tables
  const show = (orgId: string): Compliance | null => policies.get(orgId)?.compliance ?? null
  const replace = <T extends Compliance | null>(
    organization: string,
    actor: Actor,
    action: string,
    next: (old: Compliance | null) => T,
  ) =>
    tables.run(() => {
      const { id } = names.findOrganization(organization)
      const was = show(id)
      const became = next(was)
      changed(tables, id)
      // JSON drops undefined requirements, as other stores do.
      policies.set(id, { ...policies.get(id)!, compliance: became && (JSON.parse(JSON.stringify(became)) as T) })
      tables.note({ actor, action, organization: id, subject: id, was, became })
      return became
    })
  return {
    show: async organization => show(names.findOrganization(organization).id),
    change: (organization, changes, actor) =>
      replace(organization, actor, 'compliance.set', old => ({ ...noDemands, ...old, ...changes })),
    async clear(organization, actor) {
      await replace(organization, actor, 'compliance.clear', () => null)
    },
  }
}

/** Manifests of custom providers, as YAML text, by organization and provider. */
export function manifestStore(tables: Tables, names: Names): ManifestStore {
  const { manifests, now } = tables
  const record = ({ orgId, provider, manifest, createdAt }: ManifestRow): ManifestRecord => {
    return { organization: tables.nameOf(orgId), provider, manifest, createdAt: iso(createdAt) }
  }
  /** Resolves with the new value, else with the old one. */
  const change = (
    organization: string,
    provider: string,
    actor: Actor,
    action: string,
    work: (orgId: string, id: string, old: ManifestRow | undefined) => void,
  ) =>
    tables.run(() => {
      const orgId = names.findOrganization(organization).id
      const id = JSON.stringify([orgId, provider])
      const before = manifests.get(id)
      work(orgId, id, before)
      const after = manifests.get(id)
      changed(tables, orgId)
      const [was, became] = [before && JSON.parse(before.manifest), after && JSON.parse(after.manifest)] as unknown[]
      tables.note({ actor, action, organization: orgId, subject: provider, was, became })
      return record((after ?? before)!)
    })
  return {
    put: ({ organization, provider, manifest }, actor) =>
      change(organization, provider, actor, 'models.custom.add', (orgId, id, old) => {
        if (!old) checkManifests(manifests.filter(one => one.orgId === orgId).length)
        manifests.set(id, { orgId, provider, manifest, createdAt: old?.createdAt ?? now() })
      }),
    async list(organization, limit, offset = 0) {
      const orgId = organization === undefined ? undefined : names.findOrganization(organization).id
      const found = manifests.filter(one => orgId === undefined || one.orgId === orgId).map(record)
      found.sort((a, b) => order(a.organization, b.organization) || order(a.provider, b.provider))
      return part(found, limit, offset)
    },
    remove: (organization, provider, actor) =>
      change(organization, provider, actor, 'models.custom.remove', (_, id, old) => {
        if (!old) throw noManifest(organization, provider)
        manifests.delete(id)
      }),
  }
}
