/** Beta tokens of clients that are sent to the provider. */
import type { Target } from '../../src/plugin.ts'
import { fits, paysItself } from '../shared/operator-pays.ts'

/** Its value is a comma-separated list of tokens. */
export const BETA_HEADER = 'anthropic-beta'

const MAX_TOKENS = 32
const TOKEN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/**
 * On the operator's credentials: features that change the form of requests and answers, but not their price, the
 * answering model, or who can see or store the conversation. `*` ends a prefix.
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

/** Well-formed tokens of a client's header: at most 32, each once. */
export const tokensIn = (header: string): string[] => {
  const tokens = header.split(',').map(token => token.trim())
  return [...new Set(tokens.filter(token => TOKEN.test(token)))].slice(0, MAX_TOKENS)
}

/** A caller with its own key may use any token; otherwise this list and the manifest decide. */
export function isPassed(token: string, target: Target): boolean {
  if (paysItself(target)) return true
  return [...PASSED, ...(target.provider.passHeaders[BETA_HEADER] ?? [])].some(entry => fits(entry, token))
}
