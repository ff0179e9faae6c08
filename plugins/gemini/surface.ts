/** Differences between the two surfaces of the wire. */
import type { ChatRequest, Json } from '../../src/plugin.ts'

/** Request fields and headers of one surface only. */
interface Extras {
  body?: Json
  headers?: Record<string, string>
}

/** How one surface differs: paths, tool calls and fields. */
export interface Surface {
  readonly wire: string
  /** Path of the models below the provider's base address. */
  readonly models: string
  /** Whether calls and results have ids; otherwise they pair by order. */
  readonly callIds: boolean
  /** Whether a search may exclude domains. */
  readonly excludesDomains: boolean
  /** Members of `toolConfig`, besides the mode, for a search beside functions. */
  readonly searchBesideFunctions: Json
  extras(request: Readonly<Pick<ChatRequest, 'service_tier' | 'user'>>): Extras
}

/** The Gemini API of AI Studio. */
export const studio: Surface = {
  wire: 'gemini.generate',
  models: '/models',
  callIds: true,
  excludesDomains: false,
  searchBesideFunctions: { includeServerSideToolInvocations: true },
  extras({ service_tier: tier }) {
    if (tier == null || tier === 'auto') return {}
    return { body: { serviceTier: tier === 'default' ? 'standard' : tier } }
  },
}

/** Vertex AI. Its base address contains project and location. */
export const vertex: Surface = {
  wire: 'gemini.vertex',
  models: '/publishers/google/models',
  callIds: false,
  excludesDomains: true,
  searchBesideFunctions: {},
  extras({ service_tier: tier, user }) {
    const label = labelOf(user ?? '')
    return {
      ...(label && { body: { labels: { user: label } } }),
      ...((tier === 'flex' || tier === 'priority') && {
        headers: { 'x-vertex-ai-llm-request-type': 'shared', 'x-vertex-ai-llm-shared-request-type': tier },
      }),
    }
  },
}

/** Label values are at most 63 characters of a-z, 0-9, "_" and "-". */
const labelOf = (user: string): string =>
  user
    .toLowerCase()
    .slice(0, 63)
    .replace(/[^a-z0-9_-]/g, '_')
