/** First start, and API keys, in memory. */
import type { AccountStore, Actor, KeyRecord, NewKey } from '../../../core/ports.ts'
import { shortId } from '../../../lib/id.ts'
import { checkRoll, expiryOf, keyStatus } from '../../rules/accounts.ts'
import { newSecret } from '../../secret.ts'
import type { Limits } from './limits.ts'
import type { Names } from './names.ts'
import type { Key } from './rows.ts'
import { behind, iso, type Tables } from './tables.ts'

/** Actor of changes without an operator. */
const GATEWAY: Actor = 'gateway'

type MadeKey = KeyRecord & { key: string }
/** Properties that a key inherits from its predecessor. */
type Heir = Pick<Key, 'projectId' | 'name' | 'kind' | 'createdBy' | 'expiresAt' | 'succeeds'>

/** `move` moves the rules of one key to another. */
export function accountStore(
  tables: Tables,
  names: Names,
  limits: Limits,
  move: (from: string, to: string) => void,
): AccountStore {
  const { keys, now } = tables
  const orgOf = ({ projectId }: Key): string => tables.projects.get(projectId)!.orgId
  const record = (key: Key): KeyRecord => {
    const { id, name, kind, preview, expiresAt } = key
    return {
      ...{ id, name, kind, preview },
      project: tables.projects.get(key.projectId)!.name,
      organization: tables.nameOf(orgOf(key)),
      status: keyStatus({ revoked: key.revokedAt !== null, expiresAt }, now()),
      createdBy: key.createdBy === null ? null : tables.members.get(key.createdBy)!.email,
      createdAt: iso(key.createdAt),
      expiresAt: expiresAt === null ? null : iso(expiresAt),
      limits: limits.of(id),
      spent: spentBy(tables, id),
    }
  }
  const create = (heir: Heir): { id: string; key: string } => {
    const id = shortId()
    const { key, hash, preview } = newSecret(heir.kind)
    const facts = { id, hash, preview, createdAt: now(), revokedAt: null, parentId: null, models: null }
    keys.set(id, { ...facts, ...heir })
    return { id, key }
  }
  const make = (input: NewKey, actor: Actor): MadeKey => {
    const { name, kind = 'key', createdBy: creator, limit } = input
    const { id: projectId, orgId } = names.findProject(input.project)
    const expiresAt = expiryOf(kind, input.expiresAt, now())
    const createdBy = creator === undefined ? null : names.findMember(orgId, creator).id
    const { id, key } = create({ projectId, name, kind, createdBy, expiresAt, succeeds: null })
    if (limit) limits.change('key', id, { set: limit })
    const became = record(keys.get(id)!)
    tables.note({ actor, action: 'keys.create', organization: orgId, subject: id, was: null, became })
    return { ...became, key }
  }
  const find = (id: string): Key => keys.get(names.findKey(id))!
  const change = (id: string, action: string, actor: Actor, work: (key: Key) => void): Promise<KeyRecord> =>
    tables.run(() => {
      const old = find(id)
      const was = record(old)
      work(old)
      const became = record(find(id))
      tables.note({ actor, action, organization: orgOf(old), subject: id, was, became })
      return became
    })
  const revoke = (key: Key) => keys.set(key.id, { ...key, revokedAt: key.revokedAt ?? now() })
  return {
    bootstrap: () =>
      tables.run(() => {
        if (tables.organizations.all().length > 0) return undefined
        const [org, project, member] = [shortId(), shortId(), shortId()]
        const at = { createdAt: now() }
        const name = 'default'
        tables.organizations.set(org, { id: org, name, account: 'open', retains: false, ...at })
        const settings = {
          mode: 'credits',
          cacheTtlMs: null,
          passesParameters: false,
          cachesPrompts: false,
          responsesMs: null,
          archivedAt: null,
        } as const
        tables.projects.set(project, { id: project, orgId: org, name, ...settings, ...at })
        const owner = { email: 'owner@localhost', role: 'owner', projects: null, removedAt: null } as const
        tables.members.set(member, { id: member, orgId: org, ...owner, ...at })
        const became = { name, account: 'open', project: name, owner: owner.email }
        tables.note({ actor: GATEWAY, action: 'bootstrap', organization: org, subject: org, was: null, became })
        return make({ project, name }, GATEWAY)
      }),
    createKey: (input, actor = GATEWAY) => tables.run(() => make(input, actor)),
    async listKeys(project, page) {
      const id = project === undefined ? undefined : names.findProject(project).id
      const listed = behind(keys.all(), page).filter(
        key => key.parentId === null && (id === undefined || key.projectId === id),
      )
      return listed.slice(0, page?.limit).map(record)
    },
    updateKey: (id, { name, expiresAt, limit }, actor = GATEWAY) =>
      change(id, 'keys.update', actor, key => {
        keys.set(id, { ...key, name: name ?? key.name, expiresAt: expiresAt === undefined ? key.expiresAt : expiresAt })
        if (limit) limits.change('key', id, limit)
      }),
    revokeKey: (id, actor = GATEWAY) => change(id, 'keys.revoke', actor, revoke),
    rollKey: (id, actor = GATEWAY) =>
      tables.run(() => {
        const old = find(id)
        const was = record(old)
        checkRoll(id, old.parentId !== null, was.status)
        revoke(old)
        const { projectId, name, kind, createdBy, expiresAt } = old
        const next = create({ projectId, name, kind, createdBy, expiresAt, succeeds: id })
        limits.move(id, next.id)
        move(id, next.id)
        const became = record(find(next.id))
        tables.note({ actor, action: 'keys.roll', organization: orgOf(old), subject: id, was, became })
        return { ...became, key: next.key }
      }),
  }
}

/** All-time spending of a key. */
export function spentBy(tables: Tables, keyId: string): bigint {
  let sum = 0n
  for (const { dimensions, cost } of tables.hours.rows()) if (dimensions[3] === keyId) sum += cost
  return sum
}
