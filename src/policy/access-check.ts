/** Judges a caller again whose request has been let in: rules may change while its answer runs. */

import type { Exchange } from '../core/exchange.ts'
import type { Policies } from '../core/policy.ts'
import { asError, errors, type GatewayError } from '../lib/error.ts'

/**
 * Resolves with the refusal where the policy of the caller's organization has changed since it was last judged: rules of
 * addresses and models, and zero data retention count from then on.
 */
export async function accessError(ex: Exchange, policies: Policies): Promise<GatewayError | undefined> {
  const principal = ex.caller.principal!
  const policy = await policies.of(principal.orgId)
  if (policy === ex.caller.policy) return undefined
  ex.caller.policy = policy
  ex.caller.access = policy.access(principal)
  try {
    ex.caller.access.admit(() => ex.http.clientAddress)
  } catch (thrown) {
    return asError(thrown)
  }
  const issue = ex.target && ex.caller.access.issue(ex.target.mapping)
  return issue && errors.forbidden(`${issue.reason}.`)
}
