/** Applies an organization's policy to a plan: the allowed offers, and the credentials for each. */

import type { AccessIssue } from '../core/policy.ts'
import type { Credential } from '../core/provider-settings.ts'
import type { Mapping, Provider, Target } from '../core/translator.ts'
import { errors, type GatewayError } from '../lib/error.ts'
import { anyOf } from '../lib/nearest.ts'
import type { RoutingQuery } from './query.ts'

/** Reasons that one refusal names. */
const MAX_REASONS = 3
const MAX_LISTED_CREDENTIALS = 4

/** The offers of `model` (as requested) that the caller may use. Throws 403 with the reasons when there are none. */
export function permitted(query: RoutingQuery, offers: readonly Mapping[], model: string): readonly Mapping[] {
  const { access, operation } = query
  if (!access?.restricted || offers.length === 0) return offers
  const issues = offers.map(offer =>
    operation.ignoresModelRules ? access.providerIssue(offer) : access.issue(offer, query),
  )
  if (!issues.includes(undefined)) throw accessError(issues as AccessIssue[], model)
  return offers.filter((_, index) => issues[index] === undefined)
}

/** Reports access rules before missing credentials, so that a denied caller learns nothing of the provider. */
function accessError(issues: readonly AccessIssue[], model: string): GatewayError {
  const reasonsBy = (by: AccessIssue['by']) => [
    ...new Set(issues.filter(issue => issue.by === by).map(({ reason }) => reason)),
  ]
  const compliance = reasonsBy('compliance')
  if (compliance.length === 0) return errors.forbidden(`Access denied: ${some(reasonsBy('rules'))}.`)
  return errors.forbidden(
    "This request was blocked by your organization's provider compliance policy. " +
      `No available provider for ${model} meets it: ${some(compliance)}.`,
  )
}

const some = (reasons: readonly string[]): string =>
  [...reasons.slice(0, MAX_REASONS), ...(reasons.length > MAX_REASONS ? ['and more'] : [])].join('; ')

/** Undefined stands for a provider without authentication. Returns the same lists until something changes. */
export type Credentials = readonly (Credential | undefined)[]

const keyless: Credentials = [undefined]
/** For an organization's own provider without authentication, which the organization pays. */
const ownKeyless: Credentials = [Object.freeze({ id: '', source: 'byok', secret: '', fingerprint: '' })]

/** Facts that decide between the operator's credentials and the organization's own. */
export type Payer = Pick<RoutingQuery, 'policy' | 'principal'>

/** Whether a provider serves the caller's organization; an operator's question is about all that there is. */
export const admits = ({ organizations }: Provider, principal: Payer['principal']): boolean =>
  !organizations || !principal || organizations.some(one => one === principal.orgId || one === principal.orgName)

/** Returns the credentials for a provider, in the order in which they are tried; lists may be empty. */
export function credentialsFor({ policy, principal }: Payer, provider: Provider): readonly Credentials[] {
  if (!admits(provider, principal)) return []
  const isKeyless = provider.auth.scheme === 'none'
  const own = () => (isKeyless || !policy ? [] : policy.credentials(provider.id))
  if (provider.owner !== undefined) return [isKeyless ? ownKeyless : own()]
  const platform = isKeyless ? keyless : provider.credentials
  switch (principal?.mode) {
    case 'api-keys':
      return [own()]
    case 'hybrid':
      return [own(), platform]
    default:
      return [platform]
  }
}

/** The caller's own key at the provider: no credits are used. */
export const isByok = (credential: Credential | undefined): boolean => credential?.source === 'byok'

/** Puts offers with a key of the caller's own first: while that key works, no credits are spent. */
export function ownFirst<G extends { readonly targets: readonly Target[] }>(ranked: readonly G[]): readonly G[] {
  const hasOwn = ({ targets }: G) => targets.some(({ credential }) => isByok(credential))
  const own = ranked.filter(hasOwn)
  if (own.length === 0 || own.length === ranked.length) return ranked
  return [...own, ...ranked.filter(group => !hasOwn(group))]
}

/** Why no offer can be called, although the caller may use these. */
export function uncredentialed({ principal }: Payer, offers: readonly Mapping[], model: string): GatewayError {
  if (principal?.mode === 'api-keys') {
    return errors.noProviderKey(model, [...new Set(offers.map(({ provider }) => provider.id))])
  }
  const named = [...new Set(offers.flatMap(({ provider }) => provider.variables?.secret?.join(' and ') || []))]
  const some =
    named.length > MAX_LISTED_CREDENTIALS
      ? [...named.slice(0, MAX_LISTED_CREDENTIALS), 'another one of its providers']
      : named
  const remedy = some.length > 0 ? `Set ${anyOf(some)} and restart the gateway.` : undefined
  return errors.modelNotAvailable(model, 'no provider of it has a credential', remedy)
}
