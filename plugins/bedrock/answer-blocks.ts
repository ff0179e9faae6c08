/** Content blocks of an answer: the parts that are usable only together, calls, and blocks of a whole message. */
import { type ChatRequest, entriesIn, isObject, type Json, objectIn, type Target } from '../../src/plugin.ts'
import { type OpenBlock, openBlock } from '../shared/claude/open-block.ts'

/** The state of one content block between its start and its stop. */
export class BlockAccumulator {
  signature = ''
  /** Names the format of an image. Bytes without a format are hidden reasoning. */
  format: unknown = undefined
  readonly #parts: string[] = []

  /** Adds a part of the block's bytes, in base64. */
  addBytes(part: unknown): void {
    if (typeof part === 'string' && part !== '') this.#parts.push(part)
  }

  /** All bytes in base64; a single part stays unchanged. Empty when there are none. */
  get bytes(): string {
    if (this.#parts.length < 2) return this.#parts[0] ?? ''
    return Buffer.concat(this.#parts.map(part => Buffer.from(part, 'base64'))).toString('base64')
  }
}

/**
 * Opens a call as a content block of Claude's form. `tools`: client tool calls before this one. `request`: its schema is
 * that of an answer by tool.
 */
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

interface Pieces {
  /** As in `contentBlockStart`. */
  readonly start?: Json
  /** As in `contentBlockDelta`. */
  readonly deltas: readonly unknown[]
}

/** Returns what a stream would send of this block, in the same order. */
export function piecesOf({ text, toolUse, reasoningContent: thought, citationsContent: cited, image }: Json): Pieces {
  if (toolUse) return { start: { toolUse }, deltas: [] }
  if (image) return { start: { image }, deltas: [{ image }] }
  if (isObject(thought)) {
    const { reasoningText: shown, redactedContent } = thought
    const { text, signature } = objectIn(shown)
    return { deltas: [{ reasoningContent: { text, signature, redactedContent } }] }
  }
  if (isObject(cited)) {
    const citations = entriesIn(cited.citations).map(citation => ({ citation }))
    return { deltas: [...entriesIn(cited.content), ...citations] }
  }
  return { deltas: [{ text }] }
}
