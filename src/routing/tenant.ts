/** The organization of a request, as health and stickiness know it. */
import type { Exchange } from '../core/exchange.ts'

/** '' for a request without an organization. */
export const tenantOf = ({ principal }: Exchange): string => principal?.orgId ?? ''

/** The organization whose measurements count; null for all of them. */
export const viewerOf = ({ principal }: Exchange): string | null => principal?.orgId ?? null
