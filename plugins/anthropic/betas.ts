/** Beta tokens: those that a body needs, and those of clients that are passed on. */
import { type Json, listIn, type Target, textIn } from '../../src/plugin.ts'
import { fits, paysItself } from '../shared/operator-pays.ts'

/** Its value is a comma-separated list of tokens. */
export const BETA_HEADER = 'anthropic-beta'

/** The token of `anthropic-beta` for files that a request names by id. */
export const FILES_BETA = 'files-api-2025-04-14'

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

/** Native blocks are replayed unread and may contain anything. */
type Maybe = Json | null | undefined

const list = (value: unknown) => listIn(value) as readonly Maybe[]
const usesTool =
  (test: (tool: Json) => boolean) =>
  ({ tools }: Json): boolean =>
    list(tools).some(tool => tool != null && test(tool))
const edits = ({ context_management: management }: Json) => list((management as Maybe)?.edits)
const isCompaction = (edit: Maybe) => textIn(edit?.type)?.startsWith('compact') === true

const rules: readonly (readonly [token: string, isNeeded: (body: Json) => boolean])[] = [
  [
    'context-management-2025-06-27',
    body => body.context_management != null && !(edits(body).length > 0 && edits(body).every(isCompaction)),
  ],
  ['compact-2026-01-12', body => edits(body).some(isCompaction)],
  ['mcp-client-2025-04-04', body => body.mcp_servers != null],
  ['skills-2025-10-02', ({ container }) => (container as Maybe)?.skills != null],
  ['fast-mode-2026-02-01', body => body.speed === 'fast'],
  ['task-budgets-2026-03-13', ({ output_config: output }) => (output as Maybe)?.task_budget != null],
  ['advanced-tool-use-2025-11-20', usesTool(tool => tool.input_examples != null || tool.allowed_callers != null)],
  ['web-fetch-2025-09-10', usesTool(tool => tool.type === 'web_fetch_20250910')],
  ['code-execution-web-tools-2026-02-09', usesTool(tool => tool.type === 'web_search_20260209')],
  [FILES_BETA, ({ messages }) => list(messages).some(message => list(message?.content).some(isFile))],
]

/** Tokens that `body` needs and that the client's header `given` adds; each token once. */
export function betasOf(body: Json, target: Target, given: string | undefined): string[] {
  const needed = rules.filter(([, isNeeded]) => isNeeded(body)).map(([token]) => token)
  if (given === undefined) return needed
  const features = new Set(needed.map(featureOf))
  const passed = tokensIn(given).filter(token => features.has(featureOf(token)) || isPassed(token, target))
  // A client that names another version of a needed feature wrote its body for that version.
  const named = new Set(passed.map(featureOf))
  return [...needed.filter(token => !named.has(featureOf(token))), ...passed]
}

/** `mcp-client` of `mcp-client-2025-11-20`. */
const featureOf = (token: string): string => token.replace(/-\d{4}-\d\d-\d\d$/, '')

/** Whether a block, or one nested in it, refers to a file by id. */
export function isFile(block: Maybe): boolean {
  const { source, content } = block ?? {}
  return (source as Maybe)?.type === 'file' || (Array.isArray(content) && content.some(isFile))
}

/**
 * Includes the provider's own tokens, because this header replaces the manifest's; undefined when there is nothing to
 * add.
 */
export function betaHeader({ provider }: Target, tokens: readonly string[]): Record<string, string> | undefined {
  const { name, value } = headerOf(provider.headers, BETA_HEADER) ?? { name: BETA_HEADER, value: '' }
  const own = value.split(',').flatMap(token => token.trim() || [])
  const added = tokens.filter(token => !own.includes(token))
  return added.length === 0 ? undefined : { [name]: [...own, ...added].join(',') }
}

/** The header as it is spelled, by its name in lower case; undefined where it is absent. */
export function headerOf(headers: Readonly<Record<string, string>>, lowerName: string) {
  for (const [name, value] of Object.entries(headers)) if (name.toLowerCase() === lowerName) return { name, value }
  return undefined
}
