/** How much an organization's policy may hold, and whom its rules narrow. */
import { errors } from '../../core/error.ts'
import type { RuleScope } from '../../core/ports.ts'

const MAX_RULES = 200
const MAX_PROVIDER_KEYS = 100
/** They are linked within one turn of the event loop. */
const MAX_MANIFESTS = 10
/** Keys that one transaction of a re-encryption takes: it must not hold up requests. */
export const REENCRYPTION_BATCH = 100

/** Each throws a 400 when one more than `count` is too many. */
export function checkRules(count: number): void {
  if (count < MAX_RULES) return
  throw errors.badRequest(`An organization may have ${MAX_RULES} rules; one rule may hold many entries.`)
}
export function checkProviderKeys(count: number): void {
  if (count >= MAX_PROVIDER_KEYS)
    throw errors.badRequest(`An organization may have ${MAX_PROVIDER_KEYS} provider keys.`)
}
export function checkManifests(count: number): void {
  if (count >= MAX_MANIFESTS) throw errors.badRequest(`An organization may have ${MAX_MANIFESTS} providers of its own.`)
}

/** Throws a 400 for a member without an organization, or beside a key. */
export function checkScope({ organization, member, key }: RuleScope): void {
  if (member === undefined) return
  if (organization === undefined) {
    throw errors.invalidParameters('A member is one of an organization: name it.', 'organization')
  }
  if (key !== undefined) throw errors.invalidParameters('Name a member or a key, not both.', 'key')
}

/** The organization that a new rule is of. Throws a 400 for none. */
export function ruleOwner(orgId: string | null): string {
  if (orgId === null) throw errors.invalidParameters('A rule needs an organization or a key.', 'organization')
  return orgId
}

export const noManifest = (organization: string, provider: string) =>
  errors.notFound(`"${organization}" has no provider "${provider}" of its own.`)
