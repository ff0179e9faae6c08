/** Checks conditions on callers, for virtual models and rules (docs/virtual-models.md). */
import type { CallerCondition, Catalog } from '../core/catalog.ts'
import type { RoutingQuery } from './query.ts'

/** Whether a request meets a condition on its caller. Without a caller only its tags may. */
export function isFrom(
  { orgs, projects, keys, tags }: CallerCondition,
  query: Pick<RoutingQuery, 'asker' | 'principal' | 'tags'>,
) {
  const asker = query.asker ?? query.principal
  if (orgs && !(asker && (orgs.includes(asker.orgId) || orgs.includes(asker.orgName)))) return false
  if (projects && !(asker && projects.includes(asker.projectId))) return false
  if (keys && !(asker && (keys.includes(asker.keyId) || keys.includes(asker.keyName)))) return false
  return tags === undefined || hasTags(tags, query.tags)
}

/** Whether each tag has one of its values. */
export function hasTags(wanted: NonNullable<CallerCondition['tags']>, given: RoutingQuery['tags']): boolean {
  return Object.entries(wanted).every(([key, values]) => {
    const value = given?.get(key)
    return value !== undefined && (typeof values === 'string' ? values === value : values.includes(value))
  })
}

const readers = new WeakMap<Catalog, boolean>()

/** Whether keys or tags decide which models requests of one project go to. */
export function splitsProjects(catalog: Catalog): boolean {
  let known = readers.get(catalog)
  if (known === undefined) {
    const conditions = [...(catalog.virtual?.values() ?? [])].flatMap(({ use }) => use.map(({ when }) => when ?? {}))
    known = [...conditions, ...(catalog.rules ?? []).map(({ match }) => match)].some(
      ({ keys, tags }) => keys !== undefined || tags !== undefined,
    )
    readers.set(catalog, known)
  }
  return known
}
