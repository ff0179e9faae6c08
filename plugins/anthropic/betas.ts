/** The beta tokens that a body needs (wire/anthropic.md section 2.3). Clients' own headers are not passed on. */
import { listIn } from '../../src/plugin.ts'
import { FILES_BETA, isFile } from './encode.ts'

type Json = Record<string, unknown>
type Maybe = Json | null | undefined

const list = (value: unknown) => listIn(value) as readonly Maybe[]
const usesTool =
  (test: (tool: Json) => boolean) =>
  ({ tools }: Json): boolean =>
    list(tools).some(tool => tool != null && test(tool))
const edits = ({ context_management: management }: Json) => list((management as Maybe)?.edits)
const isCompaction = (edit: Maybe) => String(edit?.type).startsWith('compact')

const rules: readonly (readonly [token: string, needed: (body: Json) => boolean])[] = [
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

/** A comma-separated list; empty when the body needs none. */
export const betasOf = (body: Json): string =>
  rules
    .filter(([, needed]) => needed(body))
    .map(([token]) => token)
    .join(',')
