/** The organization of a request, as health and stickiness know it. */
import type { Exchange } from '../core/exchange.ts'

/** '' for a request of nobody's. */
export const tenantOf = ({ principal }: Exchange): string => principal?.orgId ?? ''

/** Whose view of the providers counts; null for a question about everybody's. */
export const viewerOf = ({ principal }: Exchange): string | null => principal?.orgId ?? null
