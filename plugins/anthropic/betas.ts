/** Beta tokens: those that a body needs, and those of clients that are passed on. */
import { type Json, listIn, type Target, textIn } from '../../src/plugin.ts'
import { FILES_BETA, isFile } from './encode.ts'
import { isPassed, tokensIn } from './passed-betas.ts'

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
