/** Where the two surfaces of the wire differ. */
import type { ChatRequest, Json } from '../../src/plugin.ts'

/** Fields and headers of a request that only one surface has. */
export interface Extras {
  body?: Json
  headers?: Record<string, string>
}

export interface Surface {
  readonly wire: string
  /** Where the models are, below the provider's base address. */
  readonly models: string
  /** Whether calls and their results carry ids; without, they pair by order alone. */
  readonly callIds: boolean
  /** Whether a search may leave domains out. */
  readonly excludesDomains: boolean
  /** What `toolConfig` needs besides the mode when a search stands beside functions. */
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

/** Vertex AI. Its base address names project and location. */
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

/** Values of labels are at most 63 of a-z, 0-9, "_" and "-". */
const labelOf = (user: string): string =>
  user
    .toLowerCase()
    .slice(0, 63)
    .replace(/[^a-z0-9_-]/g, '_')
