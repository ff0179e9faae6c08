/** Which beta tokens of clients go to the provider. */
import type { Target } from '../../src/plugin.ts'
import { fits, paysItself } from '../shared/operator-pays.ts'

export const BETA_HEADER = 'anthropic-beta'

const MAX_TOKENS = 32
const TOKEN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/**
 * On the operator's credentials: what changes the form of requests and answers, but neither their price, nor which
 * model answers, nor who else sees or keeps the conversation. `*` ends a prefix.
 */
const PASSED: readonly string[] = [
  'advanced-tool-use-*',
  'cache-diagnosis-*',
  'claude-code-*',
  'compact-*',
  'computer-use-*',
  'context-management-*',
  'effort-*',
  'extended-cache-ttl-*',
  'fine-grained-tool-streaming-*',
  'inline-tools-*',
  'interleaved-thinking-*',
  'mid-conversation-*',
  'model-context-window-exceeded-*',
  'output-128k-*',
  'pdfs-*',
  'prompt-caching-2*',
  'structured-outputs-*',
  'task-budgets-*',
  'thinking-binding-controls-*',
  'thinking-display-updates-*',
  'thinking-token-count-*',
  'token-efficient-tools-*',
  'tool-search-tool-*',
  'web-fetch-*',
  'web-search-*',
]

/** The tokens of a client's header, as far as they are well-formed: at most 32, each once. */
export const tokensIn = (header: string): string[] => {
  const tokens = header.split(',').map(token => token.trim())
  return [...new Set(tokens.filter(token => TOKEN.test(token)))].slice(0, MAX_TOKENS)
}

/** Who pays the provider itself decides alone; else the list above does, and what the manifest adds to it. */
export function isPassed(token: string, target: Target): boolean {
  if (paysItself(target)) return true
  return [...PASSED, ...(target.provider.passHeaders[BETA_HEADER] ?? [])].some(entry => fits(entry, token))
}
