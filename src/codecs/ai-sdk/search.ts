/** Search tools of providers: the gateway's own search stands for them. */
import { isObject, type Json, listIn, objectIn, textIn } from '../../json/json.ts'
import type { SearchTool } from './call.ts'

/** Ids of tools that search the web, by what they begin with. */
const SEARCHES =
  /^(?:openai\.web_search(?:_preview)?|anthropic\.web_search_\d+|google\.(?:google_search|enterprise_web_search)|xai\.web_search|groq\.browser_search|gateway\.(?:perplexity|exa|tako|deepseek|browserbase|parallel)_search)$/

/** Whether a provider tool of this id is a web search. */
export const isSearch = (id: unknown): id is string => typeof id === 'string' && SEARCHES.test(id)

/** The tool of a chat request, by the arguments of any of them. */
export function searchToolOf(args: Json): Json {
  const filters = isObject(args.filters) ? args.filters : objectIn(args.sourcePolicy)
  const allowed = args.allowedDomains ?? filters.allowedDomains ?? args.includeDomains ?? filters.includeDomains
  const blocked =
    args.blockedDomains ??
    filters.blockedDomains ??
    args.excludedDomains ??
    args.excludeDomains ??
    filters.excludeDomains
  const { searchContextSize: size, maxUses, userLocation } = args
  const tool: Json = { type: 'web_search' }
  if (size === 'low' || size === 'medium' || size === 'high') tool.search_context_size = size
  if (typeof maxUses === 'number') tool.max_uses = maxUses
  const location = locationOf(userLocation ?? args.country)
  if (location) tool.user_location = location
  const allowedDomains = textsIn(allowed ?? args.searchDomainFilter)
  if (allowedDomains.length > 0) tool.allowed_domains = allowedDomains
  const blockedDomains = textsIn(blocked)
  if (blockedDomains.length > 0) tool.blocked_domains = blockedDomains
  return tool
}

const textsIn = (list: unknown): string[] => listIn(list).filter(text => typeof text === 'string')

function locationOf(place: unknown): Json | undefined {
  if (typeof place === 'string') return { country: place }
  if (!isObject(place)) return undefined
  const named = ['city', 'region', 'country', 'timezone'].filter(name => textIn(place[name]) !== undefined)
  return named.length > 0 ? Object.fromEntries(named.map(name => [name, place[name]])) : undefined
}

/** An address that a search has found. */
export interface Found {
  readonly url: string
  readonly title: string
}

/** Returns the arguments of a search call. The tool's schema requires a query in each. */
export const searchInput = ({ id }: SearchTool, query: string): string =>
  JSON.stringify(id === 'gateway.parallel_search' ? { query, objective: query } : { query })

/** In the form that the tool's author expects. */
export function searchResult({ id }: SearchTool, query: string, found: readonly Found[]): unknown {
  if (id.startsWith('anthropic.')) {
    return found.map(({ url, title }) => ({
      type: 'web_search_result',
      url,
      title,
      pageAge: null,
      encryptedContent: '',
    }))
  }
  if (id.startsWith('xai.')) return { query, sources: found.map(({ url, title }) => ({ title, url, snippet: '' })) }
  if (id.startsWith('gateway.')) {
    return { id: 'search', results: found.map(({ url, title }) => ({ title, url, snippet: '' })) }
  }
  if (id.startsWith('openai.')) {
    return { action: { type: 'search', query }, sources: found.map(({ url }) => ({ type: 'url', url })) }
  }
  return { sources: found.map(({ url, title }) => ({ type: 'url', url, title })) }
}
