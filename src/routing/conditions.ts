/** Checks conditions on callers, for virtual models and rules (docs/virtual-models.md). */
import type { CallerCondition, Catalog } from '../core/catalog.ts'
import { perObject } from '../lib/per-object.ts'
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

/** Whether keys or tags decide which models requests of one project go to. */
export const splitsProjects = perObject(({ virtual, rules = [] }: Catalog): boolean => {
  const conditions = [...(virtual?.values() ?? [])].flatMap(({ use }) => use.map(({ when }) => when ?? {}))
  return [...conditions, ...rules.map(({ match }) => match)].some(
    ({ keys, tags }) => keys !== undefined || tags !== undefined,
  )
})
