/** Reasoning of earlier answers that the model accepts back. */
import { type Mapping, type Message, type Target, unseal } from '../../src/plugin.ts'
import { FORMAT as CLAUDE } from '../shared/claude/thinking.ts'
import type { Block } from './block.ts'
import { familyOf } from './family.ts'

/** Marks reasoning details that models of other makers hide behind this wire. */
const HIDDEN = 'bedrock-converse-v1'

/** The format of a model's signed or hidden reasoning. Only Claude signs visible reasoning. */
export const formatOf = (mapping: Mapping): string => (isClaude(mapping) ? CLAUDE : HIDDEN)
/** True for models of Anthropic, whose reasoning is signed. */
export const isClaude = (mapping: Mapping): boolean => familyOf(mapping).maker === 'anthropic'

interface Piece {
  text: string
  signature: string | undefined
  data: string | undefined
}
type Detail = NonNullable<Message['reasoning_details']>[number] & { block_index?: unknown }

/**
 * The reasoning blocks of an earlier answer that this provider sealed, unmodified and in order: the wire rejects
 * others. Details with one `block_index` are pieces of one block.
 */
export function replayReasoning(message: Message, target: Target): Block[] {
  const format = formatOf(target.mapping)
  const pieces = new Map<number, Piece>()
  message.reasoning_details?.forEach((detail: Detail, i) => {
    if (detail.format !== format) return
    const index = typeof detail.block_index === 'number' ? detail.block_index : i
    const piece = pieces.get(index) ?? { text: '', signature: undefined, data: undefined }
    pieces.set(index, piece)
    piece.text += detail.text ?? ''
    piece.signature ??= unseal(target, detail.signature)
    piece.data ??= unseal(target, detail.data)
  })
  const blocks: Block[] = []
  for (const [, { text, signature, data }] of [...pieces].sort(([a], [b]) => a - b)) {
    if (data !== undefined) blocks.push({ reasoningContent: { redactedContent: data } })
    else if (signature !== undefined) blocks.push({ reasoningContent: { reasoningText: { text, signature } } })
  }
  return blocks
}
