/** Requirement of a service tier on an offer, for every operation with tiers. */
import type { Requirement } from '../core/operation.ts'

/** Every offer has `auto` and `default`. */
export const serviceTier: Requirement<{ readonly service_tier?: string | null | undefined }> = {
  param: 'service_tier',
  what: 'this service tier',
  code: 'unsupported_service_tier',
  needed: request => request.service_tier === 'flex' || request.service_tier === 'priority',
  offers: ({ serviceTiers }) => serviceTiers,
  met: (mapping, request) => mapping.serviceTiers.some(tier => tier === request.service_tier),
}
