/** The app that a request comes from, by its own header or by others (docs/contract.md#request-source). */

import type { Exchange } from '../core/exchange.ts'
import aliases from '../lib/app-aliases.json' with { type: 'json' }
import { errors } from '../lib/error.ts'
import { urlOf } from '../lib/url.ts'

const CLAUDE_CODE = 'claude.com/claude-code'

/** Apps by `User-Agent` or title, for those that send no `x-source`; the first match counts. */
const agents: readonly (readonly [pattern: RegExp, app: string])[] = [
  [/\bclaude[-_ ](?:cli|code)\b/i, CLAUDE_CODE],
  [/\bcodex(?:[-_]\w+)?\b/i, 'codex'],
  [/\bopen-?code\b/i, 'opencode'],
  [/\broo[-_ ]?(?:code|cline)\b/i, 'roo-code'],
  [/\bkilo[-_ ]?(?:code)?\b/i, 'kilo-code'],
  [/\bcline\b/i, 'cline'],
  [/\bcursor\b/i, 'cursor'],
  [/\bautohand\b/i, 'autohand'],
  [/\bsoulforge\b/i, 'soulforge'],
  [/\bn8n\b/i, 'n8n'],
  [/\baider\b/i, 'aider'],
  [/^continue\b|\bcontinue\//i, 'continue'],
  [/\b(?:windsurf|codeium)\b/i, 'windsurf'],
  [/^zed\b|\bzed\//i, 'zed'],
  [/\b(?:github[-_ ]?)?copilot/i, 'github-copilot'],
  [/\bpi-agent\b/i, 'pi-agent'],
  [/\bhermes(?:-agent)?\b/i, 'hermes-agent'],
  [/\bdevpass-code\b/i, 'devpass-code'],
  [/\w*claw\w*/i, 'openclaw'],
  [/^(?:Async)?OpenAI\//, 'openai-sdk'],
]

const NAME = /^[A-Za-z0-9./-]{1,128}$/
const bare = (text: string): string => text.replace(/^https?:\/\//, '').replace(/^www\./, '')
/** Names that apps have besides the one that they are counted by, in lower case. */
const otherNames: ReadonlyMap<string, string> = new Map(Object.entries(aliases))
const known = (name: string): string => otherNames.get(name.toLowerCase()) ?? name

/** Throws the 400 for an `x-source` that cannot be kept. */
export function checkSource(ex: Exchange): void {
  const given = ex.header('x-source')
  if (!given || NAME.test(bare(given))) return
  throw errors.invalidParameters('x-source may have at most 128 letters, digits, "-", "." and "/".', 'x-source')
}

/** The app that the request is attributed to; null when no header names one. */
export function sourceOf(ex: Exchange): string | null {
  const given = ex.header('x-source')
  if (given && NAME.test(bare(given))) return known(bare(given))
  return hostOf(ex.header('referer') ?? ex.header('http-referer')) ?? agentOf(ex)
}

function hostOf(referer: string | undefined): string | undefined {
  const url = referer ? urlOf(referer) : undefined
  if (!url) return undefined
  const host = bare(url.hostname)
  return NAME.test(host) ? known(host) : undefined
}

function agentOf(ex: Exchange): string | null {
  const candidates = [ex.header('user-agent'), ex.header('x-title'), ex.header('x-openrouter-title')]
  for (const text of candidates) {
    if (!text) continue
    const found = agents.find(([pattern]) => pattern.test(text.slice(0, MAX_AGENT_CHARACTERS)))
    if (found) return found[1]
  }
  return null
}
const MAX_AGENT_CHARACTERS = 256
