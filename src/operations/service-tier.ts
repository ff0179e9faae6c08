/** What a request for a service tier needs of an offer, in every operation that has tiers. */
import type { Requirement } from '../core/operation.ts'

/** `auto` and `default` any offer has. */
export const serviceTier: Requirement<{ readonly service_tier?: string | null | undefined }> = {
  param: 'service_tier',
  what: 'this service tier',
  code: 'unsupported_service_tier',
  needed: request => request.service_tier === 'flex' || request.service_tier === 'priority',
  offers: ({ serviceTiers }) => serviceTiers,
  met: (mapping, request) => mapping.serviceTiers.some(tier => tier === request.service_tier),
}
