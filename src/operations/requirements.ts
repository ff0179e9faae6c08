/** Requirements that several operations have. */
import type { Requirement } from '../core/operation.ts'
import type { Capability } from '../core/provider-settings.ts'

/** Requires a capability of an offer. */
export const supports = <R>(
  param: string,
  what: string,
  capability: Capability,
  needed: (request: R) => boolean,
  more: Pick<Requirement<R>, 'soft' | 'advice'> = {},
): Requirement<R> => ({ param, what, ...more, needed, met: mapping => mapping.supports.has(capability) })

/** Requires a service tier of an offer. Every one has `auto` and `default`. */
export const serviceTier: Requirement<{ readonly service_tier?: string | null | undefined }> = {
  param: 'service_tier',
  what: 'this service tier',
  code: 'unsupported_service_tier',
  needed: request => request.service_tier === 'flex' || request.service_tier === 'priority',
  offers: ({ serviceTiers }) => serviceTiers,
  met: (mapping, request) => mapping.serviceTiers.some(tier => tier === request.service_tier),
}
