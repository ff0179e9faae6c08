/** Calls of an answer as content blocks of Claude's form. */
import type { ChatRequest, Json, Target } from '../../src/plugin.ts'
import { type OpenBlock, openBlock } from '../shared/claude/open-block.ts'

/** `tools`: client tool calls before this one. `request`: its schema is that of an answer by tool. */
export function openTool(
  { toolUseId: id, name, input }: Json,
  tools: number,
  { provider }: Target,
  request: Readonly<ChatRequest> | undefined,
): OpenBlock {
  // Some models append their own markup to the name: `f<|channel|>commentary`.
  const called = typeof name === 'string' ? name.replace(/<\|.*$/s, '') : name
  const format = request?.response_format
  const schema = format?.type === 'json_schema' ? format.json_schema.schema : undefined
  return openBlock({ type: 'tool_use', id, name: called, input }, tools, provider.id, schema)
}
