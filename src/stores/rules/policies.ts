/** Limits of an organization's policy, and the scope of its rules. */

import type { RuleScope } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'

const MAX_RULES = 200
const MAX_PROVIDER_KEYS = 100
/** Manifests are linked within one turn of the event loop, after a change of one of them. */
const MAX_MANIFESTS = 10

/** Each throws a 400 when one more than `count` exceeds the limit. */
export function checkRules(count: number): void {
  if (count < MAX_RULES) return
  throw errors.badRequest(`An organization may have ${MAX_RULES} rules; one rule may have many entries.`)
}
/** Throws a 400 when one more than `count` exceeds the limit of an organization. */
export function checkProviderKeys(count: number): void {
  if (count < MAX_PROVIDER_KEYS) return
  throw errors.badRequest(`An organization may have ${MAX_PROVIDER_KEYS} provider keys; remove one first.`)
}
/** Throws a 400 when one more than `count` exceeds the limit of an organization. */
export function checkManifests(count: number): void {
  if (count < MAX_MANIFESTS) return
  throw errors.badRequest(`An organization may have ${MAX_MANIFESTS} custom providers; remove one first.`)
}

/** Throws a 400 for a member without an organization, or together with a key. */
export function checkScope({ organization, member, key }: RuleScope): void {
  if (member === undefined) return
  if (organization === undefined) {
    throw errors.invalidParameters('A rule for a member needs its organization.', 'organization')
  }
  if (key !== undefined) throw errors.invalidParameters('Name a member or a key, not both.', 'key')
}

/** The organization of a new rule. Throws a 400 for none. */
export function ruleOwner(orgId: string | null): string {
  if (orgId === null) throw errors.invalidParameters('A rule needs an organization or a key.', 'organization')
  return orgId
}

/** The 404 for an unknown custom provider. */
export const noManifest = (organization: string, provider: string) =>
  errors.notFound(`"${organization}" has no custom provider "${provider}".`)
